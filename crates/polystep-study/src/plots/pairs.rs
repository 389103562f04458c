//! Ours against the paper's, a line for each row: two dots on one axis, which need not begin at 0 as bars would.

use std::fmt::Write;

use crate::chart::{Axis, Chart, Drawing, LETTER, escape};

/// A row of the chart; all numbers are percents.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// What it is about.
    pub label: String,
    /// Ours.
    pub ours: f64,
    /// The interval of ours.
    pub interval: Option<(f64, f64)>,
    /// The paper's.
    pub paper: f64,
    /// Where ours stood at the paper's count of examples.
    pub on_the_way: Option<f64>,
}

const WIDTH: f64 = 760.0;
const NUMBERS: f64 = 104.0;
const ROW: f64 = 26.0;

/// The chart.
pub fn chart(title: String, description: String, label: &str, pairs: &[Pair]) -> Chart {
    let lowest = pairs.iter().flat_map(|p| [Some(p.ours), Some(p.paper), p.on_the_way, p.interval.map(|i| i.0)]);
    let lowest = lowest.flatten().fold(100.0, f64::min);
    let axis = Axis::linear(label, ((lowest / 10.0 - 0.2).floor().clamp(0.0, 9.0) * 10.0, 100.0), "");
    let longest = pairs.iter().map(|p| p.label.chars().count()).max().unwrap_or(0);
    let (left, right) = (24.0 + LETTER * longest as f64, WIDTH - NUMBERS);
    let bottom = 14.0 + ROW * pairs.len() as f64;
    let across = |value: f64| left + axis.place(value) * (right - left);
    let mut drawing = Drawing::new(&title, &description, (WIDTH, bottom + 44.0));
    let svg = &mut drawing.body;
    for (value, text) in &axis.ticks {
        let x = across(*value);
        let _ = write!(svg, r#"<path class="grid" d="M{x:.1} 4V{bottom:.1}"/>"#);
        let _ = write!(svg, r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#, bottom + 17.0);
    }
    let _ = write!(svg, r#"<path class="base" d="M{left:.1} {bottom:.1}H{right:.1}"/>"#);
    let label = escape(label);
    let _ = write!(svg, r#"<text x="{right:.1}" y="{:.1}" text-anchor="end">{label}</text>"#, bottom + 36.0);
    for (i, pair) in pairs.iter().enumerate() {
        let y = 14.0 + ROW * (i as f64 + 0.5) - 4.0;
        let (ours, paper) = (across(pair.ours), across(pair.paper));
        let (words, base) = (escape(&pair.label), y + 4.0);
        let _ =
            write!(svg, r#"<text class="label" x="{:.1}" y="{base:.1}" text-anchor="end">{words}</text>"#, left - 12.0);
        let _ = write!(svg, r#"<path class="base" d="M{paper:.1} {y:.1}H{ours:.1}"/>"#);
        if let Some((lo, hi)) = pair.interval {
            let (lo, hi) = (across(lo), across(hi));
            let _ = write!(svg, r#"<path class="whisker" d="M{lo:.1} {:.1}v8m0 -4H{hi:.1}m0 -4v8"/>"#, y - 4.0);
        }
        for (class, at) in [(2, pair.on_the_way.map(across)), (1, Some(paper)), (0, Some(ours))] {
            if let Some(x) = at {
                let _ = write!(svg, r#"<circle class="dot s{class}" cx="{x:.1}" cy="{y:.1}" r="5"/>"#);
            }
        }
        let numbers = format!("{:.1} / {:.1}", pair.ours, pair.paper);
        let _ = write!(
            svg,
            r#"<text class="label" x="{:.1}" y="{base:.1}" text-anchor="end">{numbers}</text>"#,
            WIDTH - 14.0
        );
    }
    let mut legend = vec![("ours, tested".to_owned(), true), ("the paper's".to_owned(), true)];
    if pairs.iter().any(|p| p.on_the_way.is_some()) {
        legend.push(("ours on validation at the paper's count of examples".to_owned(), true));
    }
    Chart { title, description, legend, drawing }
}

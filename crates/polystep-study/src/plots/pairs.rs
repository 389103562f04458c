//! Ours against the paper's, a line for each row: two signs on one axis, which need not begin at 0 as bars would.

use std::fmt::Write;

use crate::chart::{Axis, Chart, Drawing, Key, LETTER, MARK, Sign, WIDTH, diamond, escape};

/// A row of the chart; all numbers are percents.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// What it has in common with its neighbours.
    pub group: &'static str,
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

const NUMBERS: f64 = 104.0;
const ROW: f64 = 26.0;
/// Above the first row, for the heading of the numbers.
const TOP: f64 = 22.0;
/// Between two groups.
const GAP: f64 = 10.0;

/// The chart.
pub fn chart(title: String, description: String, label: &str, pairs: &[Pair]) -> Chart {
    let lowest = pairs.iter().flat_map(|p| [Some(p.ours), Some(p.paper), p.on_the_way, p.interval.map(|i| i.0)]);
    let lowest = lowest.flatten().fold(100.0, f64::min);
    let axis = Axis::linear(label, ((lowest / 10.0 - 0.2).floor().clamp(0.0, 9.0) * 10.0, 100.0), "");
    let longest = pairs.iter().map(|p| p.label.chars().count()).max().unwrap_or(0);
    let (left, right) = (24.0 + LETTER * longest as f64, WIDTH - NUMBERS);
    let middles = middles(pairs);
    let bottom = middles.last().copied().unwrap_or(TOP) + ROW / 2.0;
    let across = |value: f64| left + axis.place(value) * (right - left);
    let mut drawing = Drawing::new(&title, &description, (WIDTH, bottom + 44.0));
    let svg = &mut drawing.body;
    for (value, text) in &axis.ticks {
        let x = across(*value);
        let _ = write!(svg, r#"<path class="grid" d="M{x:.1} {TOP}V{bottom:.1}"/>"#);
        let _ = write!(svg, r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#, bottom + 17.0);
    }
    let _ = write!(svg, r#"<path class="base" d="M{left:.1} {bottom:.1}H{right:.1}"/>"#);
    let label = escape(label);
    let _ = write!(svg, r#"<text x="{right:.1}" y="{:.1}" text-anchor="end">{label}</text>"#, bottom + 36.0);
    let end = WIDTH - 14.0;
    let _ = write!(svg, r#"<text x="{end}" y="{:.1}" text-anchor="end">ours / paper</text>"#, TOP - 8.0);
    for (pair, y) in pairs.iter().zip(middles) {
        let (ours, paper) = (across(pair.ours), across(pair.paper));
        let (words, base) = (escape(&pair.label), y + 4.0);
        let _ =
            write!(svg, r#"<text class="label" x="{:.1}" y="{base:.1}" text-anchor="end">{words}</text>"#, left - 12.0);
        let _ = write!(svg, r#"<path class="base" d="M{paper:.1} {y:.1}H{ours:.1}"/>"#);
        if let Some((lo, hi)) = pair.interval {
            let (lo, hi) = (across(lo), across(hi));
            let _ = write!(svg, r#"<path class="whisker" d="M{lo:.1} {:.1}v8m0 -4H{hi:.1}m0 -4v8"/>"#, y - 4.0);
        }
        if let Some(x) = pair.on_the_way.map(across) {
            let _ = write!(svg, r#"<circle class="mark s2" cx="{x:.1}" cy="{y:.1}" r="4"/>"#);
        }
        *svg += &diamond((paper, y), MARK, 1, "");
        let _ = write!(svg, r#"<circle class="dot s0" cx="{ours:.1}" cy="{y:.1}" r="5"/>"#);
        let numbers = format!("{:.1} / {:.1}", pair.ours, pair.paper);
        let _ = write!(svg, r#"<text class="label" x="{end}" y="{base:.1}" text-anchor="end">{numbers}</text>"#);
    }
    let on_the_way = pairs.iter().any(|p| p.on_the_way.is_some());
    let signs = [
        Some((Sign::Dot(0), "ours, tested")),
        Some((Sign::Diamond(1), "the paper's")),
        on_the_way.then_some((Sign::Ring(2), "ours on validation at the paper's count of examples")),
    ];
    let legend = signs.into_iter().flatten().map(|(sign, name)| Key { name: name.to_owned(), sign }).collect();
    Chart { title, description, legend, drawing }
}

/// How far down the middle of each row is. Groups stand apart, unless each is a row.
fn middles(pairs: &[Pair]) -> Vec<f64> {
    let apart = pairs.windows(2).any(|two| two[0].group == two[1].group);
    let mut y = TOP - ROW / 2.0;
    let mut before = pairs.first().map(|pair| pair.group);
    let mut middle = |pair: &Pair| {
        let new = before.replace(pair.group) != Some(pair.group);
        y += ROW + if apart && new { GAP } else { 0.0 };
        y
    };
    pairs.iter().map(&mut middle).collect()
}

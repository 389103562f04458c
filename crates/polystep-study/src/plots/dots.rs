//! Ours against the paper's, a line for each row: two dots on one axis, which need not begin at 0 as the axis of bars must.

use crate::chart::{Axis, Chart, LETTER, LegendEntry, MARK, Symbol, WIDTH, diamond, escape, svg};

/// A row of the chart; all numbers are percents.
#[derive(Clone, PartialEq, Debug)]
pub struct DotRow {
    /// What it has in common with its neighbours.
    pub group: &'static str,
    /// What it is about.
    pub label: String,
    /// Our number.
    pub ours: f64,
    /// The interval of our number.
    pub interval: Option<(f64, f64)>,
    /// The paper's number.
    pub paper: f64,
    /// Our run's validation at the paper's count of examples.
    pub validated: Option<f64>,
}

const NUMBERS: f64 = 104.0;
const ROW: f64 = 26.0;
/// Above the first row, for the heading of the numbers.
const TOP: f64 = 22.0;
/// Between two groups.
const GAP: f64 = 10.0;

/// The chart.
pub fn chart(title: &str, description: String, label: &str, rows: &[DotRow]) -> Chart {
    let lowest = rows.iter().flat_map(|r| [Some(r.ours), Some(r.paper), r.validated, r.interval.map(|i| i.0)]);
    let lowest = lowest.flatten().fold(100.0, f64::min);
    let axis = Axis::linear(label, ((lowest / 10.0 - 0.2).floor().clamp(0.0, 9.0) * 10.0, 100.0));
    let longest = rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(0);
    let (left, right) = (24.0 + LETTER * longest as f64, WIDTH - NUMBERS);
    let middles = middles(rows);
    let bottom = middles.last().copied().unwrap_or(TOP) + ROW / 2.0;
    let across = |value: f64| left + axis.place(value) * (right - left);
    let mut chart = Chart::new(title, description, (WIDTH, bottom + 44.0));
    let drawing = &mut chart.drawing;
    for (value, text) in &axis.ticks {
        let (x, below) = (across(*value), bottom + 17.0);
        svg!(drawing, r#"<path class="grid" d="M{x:.1} {TOP}V{bottom:.1}"/>"#);
        svg!(drawing, r#"<text x="{x:.1}" y="{below:.1}" text-anchor="middle">{text}</text>"#);
    }
    svg!(drawing, r#"<path class="base" d="M{left:.1} {bottom:.1}H{right:.1}"/>"#);
    let (label, below, end) = (escape(label), bottom + 36.0, WIDTH - 14.0);
    svg!(drawing, r#"<text x="{right:.1}" y="{below:.1}" text-anchor="end">{label}</text>"#);
    svg!(drawing, r#"<text x="{end}" y="{:.1}" text-anchor="end">ours / paper</text>"#, TOP - 8.0);
    for (row, y) in rows.iter().zip(middles) {
        let (ours, paper, base) = (across(row.ours), across(row.paper), y + 4.0);
        drawing.text("label", (left - 12.0, base), "end", &row.label);
        svg!(drawing, r#"<path class="base" d="M{paper:.1} {y:.1}H{ours:.1}"/>"#);
        if let Some((lo, hi)) = row.interval {
            let (lo, hi, top) = (across(lo), across(hi), y - 4.0);
            svg!(drawing, r#"<path class="whisker" d="M{lo:.1} {top:.1}v8m0 -4H{hi:.1}m0 -4v8"/>"#);
        }
        if let Some(x) = row.validated.map(across) {
            svg!(drawing, r#"<circle class="mark s2" cx="{x:.1}" cy="{y:.1}" r="4"/>"#);
        }
        drawing.body += &diamond((paper, y), MARK, 1, "");
        svg!(drawing, r#"<circle class="dot s0" cx="{ours:.1}" cy="{y:.1}" r="5"/>"#);
        let numbers = format!("{:.1} / {:.1}", row.ours, row.paper);
        svg!(drawing, r#"<text class="label" x="{end}" y="{base:.1}" text-anchor="end">{numbers}</text>"#);
    }
    let validated = rows.iter().any(|r| r.validated.is_some());
    let symbols = [
        Some((Symbol::Dot(0), "ours, tested")),
        Some((Symbol::Diamond(1), "the paper's")),
        validated.then_some((Symbol::Ring(2), "ours on validation at the paper's count of examples")),
    ];
    let entry = |(symbol, name): (Symbol, &str)| LegendEntry { name: name.to_owned(), symbol };
    chart.legend = symbols.into_iter().flatten().map(entry).collect();
    chart
}

/// How far down the middle of each row is. Groups are set apart, unless each group is a single row.
fn middles(rows: &[DotRow]) -> Vec<f64> {
    let apart = rows.windows(2).any(|two| two[0].group == two[1].group);
    let mut y = TOP - ROW / 2.0;
    let mut before = rows.first().map(|row| row.group);
    let mut middle = |row: &DotRow| {
        let new = before.replace(row.group) != Some(row.group);
        y += ROW + if apart && new { GAP } else { 0.0 };
        y
    };
    rows.iter().map(&mut middle).collect()
}

//! Small SVG charts, drawn here so that a page needs neither a network nor a library.
//!
//! Colours are CSS classes (`s0`, `s1`, …), not values: the page's light and dark themes both work without redrawing, and a
//! [`file`](Chart::file) of its own gets the light one on white. Every chart carries its title and a description for those who do not
//! see it, and every series its own dash beside its colour.

mod figure;

use std::fmt::Write;

use serde::{Serialize, Serializer};

pub use figure::{Chart, PALETTE, STYLE, line, plot, thin};

/// How wide a letter is, about: text cannot be measured here, and fonts differ.
pub const LETTER: f64 = 7.0;

/// Colours there are; a series after the last begins anew.
pub const COLOURS: usize = 12;

/// How a value becomes a place on an axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scale {
    /// Even.
    Linear,
    /// Even in the logarithm; values must be positive.
    Log,
}

/// One axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// How values are placed.
    pub scale: Scale,
    /// From where to where.
    pub range: (f64, f64),
    /// Places with a label.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis over `range`, with ticks at round numbers.
    pub fn linear(label: &str, range: (f64, f64), unit: &str) -> Axis {
        let ticks = round_ticks(range, 5).into_iter().map(|v| (v, format!("{}{unit}", short(v)))).collect();
        Axis { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// A logarithmic axis over the whole powers of ten around `range`, or over 1-2-5 steps if there are few.
    pub fn log(label: &str, range: (f64, f64)) -> Axis {
        let mut ticks = Vec::new();
        for power in range.0.log10().floor() as i32..=range.1.log10().ceil() as i32 {
            let many = (range.1 / range.0).log10() > 2.5;
            for step in if many { &[1.0][..] } else { &[1.0, 2.0, 5.0][..] } {
                let value = step * 10f64.powi(power);
                if value >= range.0 * 0.999 && value <= range.1 * 1.001 {
                    ticks.push((value, short(value)));
                }
            }
        }
        Axis { label: label.to_owned(), scale: Scale::Log, range, ticks }
    }

    /// Where a value lies, from 0 to 1; what is outside is moved to the end.
    pub fn place(&self, value: f64) -> f64 {
        let (from, to) = self.range;
        let place = match self.scale {
            Scale::Linear => (value - from) / (to - from),
            Scale::Log => (value.max(f64::MIN_POSITIVE) / from).ln() / (to / from).ln(),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether points get dots, which say their values when pointed at.
    pub dots: bool,
    /// Whether it is drawn as steps (a precision-recall curve is one).
    pub steps: bool,
}

/// Lines over two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// What there is to see, in words.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// A line from corner to corner: "confidence is truth".
    pub diagonal: bool,
    /// Points of somebody else's, in the colours of the series that they belong to.
    pub marks: Vec<Mark>,
    /// Its size.
    pub frame: Frame,
}

/// A point beside a series.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// The number of the series whose colour it has.
    pub series: usize,
    /// Where it is.
    pub at: (f64, f64),
    /// What it says when pointed at.
    pub note: String,
}

/// A bar with its interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// Under the bar.
    pub label: String,
    /// What it says when pointed at.
    pub note: String,
    /// Its height.
    pub value: f64,
    /// The interval.
    pub interval: (f64, f64),
}

/// What a chart draws, in units of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawing {
    label: String,
    /// How wide it is.
    pub width: f64,
    /// How high.
    pub height: f64,
    /// Its elements.
    pub body: String,
}

impl Drawing {
    /// An empty one, with what it shows in words.
    pub fn new(title: &str, description: &str, (width, height): (f64, f64)) -> Drawing {
        Drawing { label: escape(&format!("{title}. {description}")), width, height, body: String::new() }
    }

    /// As an element of a page.
    pub fn svg(&self) -> String {
        let Drawing { label, width, height, body } = self;
        format!(
            r#"<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">{body}</svg>"#
        )
    }
}

impl Serialize for Drawing {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.svg())
    }
}

/// The size of a drawing in its own units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    width: f64,
    height: f64,
    right: f64,
}

/// Two in a row.
pub const LARGE: Frame = Frame { width: 520.0, height: 300.0, right: 506.0 };
/// Three in a row.
pub const SMALL: Frame = Frame { width: 360.0, height: 250.0, right: 352.0 };
/// Alone.
pub const WIDE: Frame = Frame { width: 760.0, height: 420.0, right: 740.0 };
const LEFT: f64 = 54.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

impl Frame {
    fn across(self, place: f64) -> f64 {
        LEFT + place * (self.right - LEFT)
    }

    fn up(self, place: f64) -> f64 {
        self.height - BOTTOM - place * (self.height - TOP - BOTTOM)
    }
}

impl Plot {
    /// The chart.
    pub fn draw(&self) -> Drawing {
        let frame = self.frame;
        let mut drawing = Drawing::new(&self.title, &self.description, (frame.width, frame.height));
        let svg = &mut drawing.body;
        grid(frame, svg, &self.y);
        ticks(frame, svg, &self.x);
        axis_labels(frame, svg, &self.x.label, &self.y.label);
        if self.diagonal {
            let (x0, y0, x1, y1) = (frame.across(0.0), frame.up(0.0), frame.across(1.0), frame.up(1.0));
            let _ = write!(svg, r#"<line class="ideal" x1="{x0:.1}" y1="{y0:.1}" x2="{x1:.1}" y2="{y1:.1}"/>"#);
        }
        for (i, series) in self.series.iter().enumerate() {
            self.line(svg, i % COLOURS, series);
        }
        for mark in &self.marks {
            let ((x, y), i) = (self.place(mark.at), mark.series % COLOURS);
            let note = escape(&mark.note);
            // A diamond.
            let _ = write!(
                svg,
                r#"<path class="mark s{i}" d="M{x:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5 -5.5Z"><title>{note}</title></path>"#,
                y - 5.5
            );
        }
        drawing
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.frame.across(self.x.place(x)), self.frame.up(self.y.place(y)))
    }

    fn line(&self, svg: &mut String, i: usize, series: &Series) {
        let mut path = String::new();
        let mut before = None;
        for point in &series.points {
            let (x, y) = self.place(*point);
            let _ = match before {
                None => write!(path, "M{x:.1} {y:.1}"),
                Some(_) if series.steps => write!(path, "V{y:.1}H{x:.1}"),
                Some(_) => write!(path, "L{x:.1} {y:.1}"),
            };
            before = Some((x, y));
        }
        let _ = write!(svg, r#"<path class="line s{i}" d="{path}"/>"#);
        if series.dots {
            let radius = if series.points.len() == 1 { 5.5 } else { 3.0 };
            for point in &series.points {
                let (x, y) = self.place(*point);
                let (name, a, b) = (escape(&series.name), precise(point.0), precise(point.1));
                let _ = write!(
                    svg,
                    r#"<circle class="dot s{i}" cx="{x:.1}" cy="{y:.1}" r="{radius}"><title>{name}: {b} at {a}</title></circle>"#
                );
            }
        }
    }
}

/// Bars of one measure.
pub fn bars(title: &str, description: &str, x_label: &str, y: &Axis, bars: &[Bar]) -> Drawing {
    let mut drawing = Drawing::new(title, description, (SMALL.width, SMALL.height));
    let svg = &mut drawing.body;
    grid(SMALL, svg, y);
    axis_labels(SMALL, svg, x_label, &y.label);
    let slot = 1.0 / bars.len().max(1) as f64;
    let wide = (SMALL.right - LEFT) * slot;
    for (i, bar) in bars.iter().enumerate() {
        let middle = SMALL.across((i as f64 + 0.5) * slot);
        let (width, height) = ((wide * 0.62).min(46.0), SMALL.up(0.0) - SMALL.up(y.place(bar.value)));
        let (x, top) = (middle - width / 2.0, SMALL.up(y.place(bar.value)));
        let _ = write!(svg, r#"<g><title>{}</title>"#, escape(&bar.note));
        // A bar of height 0 would have nothing to point at.
        let _ = write!(
            svg,
            r#"<rect class="hit" x="{x:.1}" y="{:.1}" width="{width:.1}" height="{:.1}"/>"#,
            SMALL.up(1.0),
            SMALL.up(0.0) - SMALL.up(1.0)
        );
        let _ = write!(
            svg,
            r#"<rect class="bar" x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" rx="2"/>"#
        );
        let (lo, hi) = (SMALL.up(y.place(bar.interval.0)), SMALL.up(y.place(bar.interval.1)));
        // An interval that leaves the chart belongs to a handful of examples: it is drawn, but does not shout.
        let open = if bar.interval.1 > y.range.1 { " open" } else { "" };
        let _ = write!(svg, r#"<path class="whisker{open}" d="M{middle:.1} {lo:.1}V{hi:.1}"/></g>"#);
        let anchor = if wide < 42.0 { "end" } else { "middle" };
        let y = SMALL.up(0.0) + if wide < 42.0 { 13.0 } else { 17.0 };
        let turn = if wide < 42.0 { format!(r#" transform="rotate(-35 {middle:.1} {y:.1})""#) } else { String::new() };
        let label = escape(&bar.label);
        let _ =
            write!(svg, r#"<text class="tick" x="{middle:.1}" y="{y:.1}" text-anchor="{anchor}"{turn}>{label}</text>"#);
    }
    drawing
}

/// Parts of a whole, one upon the other. All series have the same places on the horizontal axis.
pub fn stack(title: &str, description: &str, x: &Axis, y: &Axis, series: &[Series]) -> Drawing {
    let mut drawing = Drawing::new(title, description, (LARGE.width, LARGE.height));
    let svg = &mut drawing.body;
    let mut floor: Vec<f64> = series.first().map_or_else(Vec::new, |s| vec![0.0; s.points.len()]);
    for (i, part) in series.iter().enumerate() {
        let at = |place: usize, value: f64| (LARGE.across(x.place(part.points[place].0)), LARGE.up(y.place(value)));
        let top: Vec<f64> = floor.iter().zip(&part.points).map(|(below, p)| below + p.1).collect();
        let mut path = String::new();
        for (place, &value) in top.iter().enumerate() {
            let (x, y) = at(place, value);
            let _ = write!(path, "{}{x:.1} {y:.1}", if place == 0 { "M" } else { "L" });
        }
        for (place, &value) in floor.iter().enumerate().rev() {
            let (x, y) = at(place, value);
            let _ = write!(path, "L{x:.1} {y:.1}");
        }
        let (i, name) = (i % COLOURS, escape(&part.name));
        let _ = write!(svg, r#"<path class="band s{i}" d="{path}Z"><title>{name}</title></path>"#);
        floor = top;
    }
    grid(LARGE, svg, y);
    ticks(LARGE, svg, x);
    axis_labels(LARGE, svg, &x.label, &y.label);
    drawing
}

fn ticks(frame: Frame, svg: &mut String, x: &Axis) {
    for (value, label) in &x.ticks {
        let at = frame.across(x.place(*value));
        let below = frame.up(0.0) + 17.0;
        let _ = write!(svg, r#"<text class="tick" x="{at:.1}" y="{below:.1}" text-anchor="middle">{label}</text>"#);
    }
}

fn grid(frame: Frame, svg: &mut String, y: &Axis) {
    for (value, label) in &y.ticks {
        let at = frame.up(y.place(*value));
        let _ = write!(svg, r#"<line class="grid" x1="{LEFT}" y1="{at:.1}" x2="{:.1}" y2="{at:.1}"/>"#, frame.right);
        let _ = write!(
            svg,
            r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{label}</text>"#,
            LEFT - 8.0,
            at + 4.0
        );
    }
    let _ = write!(
        svg,
        r#"<line class="base" x1="{LEFT}" y1="{:.1}" x2="{:.1}" y2="{:.1}"/>"#,
        frame.up(0.0),
        frame.right,
        frame.up(0.0)
    );
}

fn axis_labels(frame: Frame, svg: &mut String, x: &str, y: &str) {
    let (x, y) = (escape(x), escape(y));
    let _ = write!(
        svg,
        r#"<text class="axis" x="{:.1}" y="{:.1}" text-anchor="end">{x}</text>"#,
        frame.right,
        frame.height - 6.0
    );
    let (left, middle) = (13.0, frame.up(0.5));
    let _ = write!(
        svg,
        r#"<text class="axis" x="{left}" y="{middle:.1}" text-anchor="middle" transform="rotate(-90 {left} {middle:.1})">{y}</text>"#
    );
}

/// At most `count` + 1 numbers of the form {1, 2, 5}·10ⁿ inside the range.
pub fn round_ticks((from, to): (f64, f64), count: usize) -> Vec<f64> {
    let rough = (to - from) / count as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return vec![from];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999).unwrap_or(rough);
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    // Divided, not multiplied, by a whole number where the step is below 1: 3 · 0.1 is not 0.3.
    let value = |i: i64| {
        if step < 1.0 { i as f64 / (1.0 / step).round() } else { i as f64 * step }
    };
    (first..=last).map(value).collect()
}

/// 7100000 as `7.1M`, 0.05 as `0.05`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "B"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{unit}", precise(scaled))
}

/// Three significant digits, no trailing zeros.
fn precise(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Text inside XML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(round_ticks((0.0, 100.0), 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(round_ticks((0.0, 0.5), 5), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(round_ticks((93.0, 100.0), 5), [94.0, 96.0, 98.0, 100.0]);
        assert_eq!(round_ticks((3.0, 3.0), 5), [3.0]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [7.1e6, 16_384.0, 9000.0, 0.05, 0.0, 99.79].map(short),
            ["7.1M", "16.4k", "9000", "0.05", "0", "99.8"]
        );
    }

    #[test]
    fn a_plot_places_its_points_and_escapes_its_words() {
        let series = Series { name: "a<b".into(), points: vec![(0.0, 0.0), (10.0, 100.0)], dots: true, steps: false };
        let plot = Plot {
            title: "T".into(),
            description: "\"D\"".into(),
            x: Axis::linear("x", (0.0, 10.0), ""),
            y: Axis::linear("y", (0.0, 100.0), "%"),
            series: vec![series],
            diagonal: false,
            marks: vec![Mark { series: COLOURS, at: (5.0, 50.0), note: "paper & co".into() }],
            frame: LARGE,
        };
        let svg = plot.draw().svg();
        assert!(svg.contains(r#"d="M54.0 256.0L506.0 12.0""#), "{svg}");
        assert!(svg.contains("a&lt;b: 100 at 10") && svg.contains("&quot;D&quot;"));
        assert!(svg.contains(r#"<path class="mark s0" d="M280.0 128.5l"#) && svg.contains("paper &amp; co"), "{svg}");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn an_empty_or_constant_plot_has_no_nan() {
        let axis = Axis::linear("x", (1.0, 1.0), "");
        assert_eq!(axis.place(1.0), 0.0);
        let svg = bars("T", "D", "x", &Axis::linear("y", (0.0, 1.0), ""), &[]).svg();
        assert!(!svg.contains("NaN"));
    }
}

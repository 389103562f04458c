//! Small SVG charts, drawn here so that a page needs neither a network nor a library.
//!
//! Colours are CSS classes (`s0`, `s1`, …), not values: the page's light and dark themes both work without redrawing, and a
//! [`file`](Chart::file) of its own has both. Every chart carries its title and a description for those who do not see it, and six
//! series in a row have each a dash of their own beside their colour.

mod axis;
mod figure;
mod legend;
mod panels;

use std::fmt::Write;

use serde::{Serialize, Serializer};

pub use axis::{Axis, short};
pub use figure::{Chart, PALETTE, STYLE, line, plot, thin};
pub use legend::{Key, Sign, diamond};
pub use panels::{Mark, Panel, Panels};

use axis::precise;

/// How wide a letter of a name is, about: text cannot be measured here, and fonts differ.
pub const LETTER: f64 = 7.0;

/// How wide a figure of the tables is.
pub const WIDTH: f64 = 760.0;
/// From the middle of the paper's mark to its corners.
pub const MARK: f64 = 5.5;

/// Colours there are; a series after the last begins anew.
pub const COLOURS: usize = 12;

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

/// Where the axes stand in a drawing of this size, in its own units.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Room for the ticks and the label of an axis: beside it, and under it.
const BESIDE: f64 = 54.0;
const UNDER: f64 = 44.0;
/// Room above, so that half a tick's label is not cut.
const ABOVE: f64 = 12.0;

/// Two in a row.
const LARGE: Frame = Frame::alone(520.0, 300.0, 506.0);
/// Three in a row.
const SMALL: Frame = Frame::alone(360.0, 250.0, 352.0);

impl Frame {
    const fn alone(width: f64, height: f64, right: f64) -> Frame {
        Frame { width, height, left: BESIDE, right, top: ABOVE, bottom: height - UNDER }
    }

    fn across(self, place: f64) -> f64 {
        self.left + place * (self.right - self.left)
    }

    fn up(self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }
}

impl Plot {
    /// The chart.
    pub fn draw(&self) -> Drawing {
        let canvas = Canvas { frame: LARGE, x: &self.x, y: &self.y };
        let mut drawing = Drawing::new(&self.title, &self.description, (LARGE.width, LARGE.height));
        let svg = &mut drawing.body;
        grid(LARGE, svg, &self.y);
        y_ticks(LARGE, svg, &self.y);
        x_ticks(LARGE, svg, &self.x);
        axis_labels(LARGE, svg, &self.x.label, &self.y.label);
        if self.diagonal {
            let (x0, y0, x1, y1) = (LARGE.across(0.0), LARGE.up(0.0), LARGE.across(1.0), LARGE.up(1.0));
            let _ = write!(svg, r#"<line class="ideal" x1="{x0:.1}" y1="{y0:.1}" x2="{x1:.1}" y2="{y1:.1}"/>"#);
        }
        for (i, series) in self.series.iter().enumerate() {
            canvas.line(svg, i % COLOURS, series);
        }
        drawing
    }
}

/// A frame with its axes.
struct Canvas<'a> {
    frame: Frame,
    x: &'a Axis,
    y: &'a Axis,
}

impl Canvas<'_> {
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.frame.across(self.x.place(x)), self.frame.up(self.y.place(y)))
    }

    /// A line in a colour.
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
        let name = escape(&series.name);
        let _ = write!(svg, r#"<path class="line s{i}" d="{path}"><title>{name}</title></path>"#);
        if series.dots {
            let radius = if series.points.len() == 1 { 5.5 } else { 3.0 };
            for point in &series.points {
                let (x, y) = self.place(*point);
                let (a, b) = (precise(point.0), precise(point.1));
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
    y_ticks(SMALL, svg, y);
    axis_labels(SMALL, svg, x_label, &y.label);
    let slot = 1.0 / bars.len().max(1) as f64;
    let wide = (SMALL.right - SMALL.left) * slot;
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
    y_ticks(LARGE, svg, y);
    x_ticks(LARGE, svg, x);
    axis_labels(LARGE, svg, &x.label, &y.label);
    drawing
}

/// Lines across the frame at the ticks, and the one that it stands on.
fn grid(frame: Frame, svg: &mut String, y: &Axis) {
    let Frame { left, right, bottom, .. } = frame;
    for (value, _) in &y.ticks {
        let at = frame.up(y.place(*value));
        let _ = write!(svg, r#"<path class="grid" d="M{left:.1} {at:.1}H{right:.1}"/>"#);
    }
    let _ = write!(svg, r#"<path class="base" d="M{left:.1} {bottom:.1}H{right:.1}"/>"#);
}

fn x_ticks(frame: Frame, svg: &mut String, x: &Axis) {
    for (value, label) in &x.ticks {
        let (at, below) = (frame.across(x.place(*value)), frame.bottom + 17.0);
        let _ = write!(svg, r#"<text class="tick" x="{at:.1}" y="{below:.1}" text-anchor="middle">{label}</text>"#);
    }
}

fn y_ticks(frame: Frame, svg: &mut String, y: &Axis) {
    for (value, label) in &y.ticks {
        let (beside, at) = (frame.left - 8.0, frame.up(y.place(*value)) + 4.0);
        let _ = write!(svg, r#"<text class="tick" x="{beside:.1}" y="{at:.1}" text-anchor="end">{label}</text>"#);
    }
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
    fn a_plot_places_its_points_and_escapes_its_words() {
        let series = Series { name: "a<b".into(), points: vec![(0.0, 0.0), (10.0, 100.0)], dots: true, steps: false };
        let plot = Plot {
            title: "T".into(),
            description: "\"D\"".into(),
            x: Axis::linear("x", (0.0, 10.0), ""),
            y: Axis::linear("y", (0.0, 100.0), "%"),
            series: vec![series],
            diagonal: false,
        };
        let svg = plot.draw().svg();
        assert!(svg.contains(r#"d="M54.0 256.0L506.0 12.0""#), "{svg}");
        assert!(svg.contains("a&lt;b: 100 at 10") && svg.contains("&quot;D&quot;"));
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

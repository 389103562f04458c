//! Small SVG charts, drawn here so that a page needs neither a network nor a library.
//!
//! Colours are CSS classes (`s0`, `s1`, …), not values. So one drawing works in the page's light and dark themes, and a
//! [file](Chart::file) of its own contains both. Every chart carries its title and a description for people who cannot see
//! it. The first six series differ in their dashes too, not only in their colours.

mod axis;
mod file;
mod frame;
mod legend;
mod panels;

use std::fmt::{self, Write};

use serde::{Serialize, Serializer};

pub use axis::Axis;
pub use legend::{LegendEntry, Symbol, diamond};
pub use panels::{Mark, Panel, Panels};

use crate::number::precise;
use frame::{Canvas, Frame, LARGE, SMALL, UNDER};

/// The colours of a page, light and dark, as custom properties.
pub const PALETTE: &str = include_str!("palette.css");
/// How charts look, in these colours.
pub const STYLE: &str = include_str!("chart.css");

/// The approximate width of a letter: text cannot be measured here, and fonts differ.
pub const LETTER: f64 = 7.0;
/// The width of a figure that shows a table of the paper.
pub const WIDTH: f64 = 760.0;
/// From the middle of the paper's mark to its corners.
pub const MARK: f64 = 5.5;
/// The number of colours. After the last one they start again.
pub const COLOURS: usize = 12;
/// The most points of a line: more than a screen can show.
const POINTS: usize = 240;

/// A chart with its heading and legend.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// What it shows, in words.
    pub description: String,
    /// What its colours stand for. It is empty where that is clear without it.
    pub legend: Vec<LegendEntry>,
    /// The drawing.
    #[serde(rename = "svg")]
    pub drawing: Drawing,
}

impl Chart {
    /// An empty chart of this width and height.
    pub fn new(title: impl Into<String>, description: impl Into<String>, (width, height): (f64, f64)) -> Chart {
        let (title, description) = (title.into(), description.into());
        let label = escape(&format!("{title}. {description}"));
        let drawing = Drawing { label, width, height, body: String::new() };
        Chart { title, description, legend: Vec::new(), drawing }
    }
}

/// What a chart draws, in units of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawing {
    /// What it shows, for a screen reader.
    label: String,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// Its elements.
    pub body: String,
}

/// Adds formatted elements to a drawing.
macro_rules! svg {
    ($drawing:expr, $($format:tt)+) => { $drawing.add(format_args!($($format)+)) };
}
pub(crate) use svg;

impl Drawing {
    /// Adds elements; see [`svg!`].
    pub(crate) fn add(&mut self, elements: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(elements);
    }

    /// Adds a text whose `anchor` (start, middle or end) is at a place.
    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: &str, words: &str) {
        let words = escape(words);
        svg!(self, r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#);
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

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether each point has a dot that shows its value under the mouse.
    pub dots: bool,
    /// Whether it is drawn as steps, like a precision-recall curve.
    pub steps: bool,
}

impl Series {
    /// A line of at most 240 points; `None` without points. A short one has dots.
    pub fn line(name: &str, points: Vec<(f64, f64)>) -> Option<Series> {
        let points = thin(points);
        let dots = points.len() <= 40;
        (!points.is_empty()).then(|| Series { name: name.to_owned(), points, dots, steps: false })
    }

    /// One point.
    pub fn dot(name: String, at: (f64, f64)) -> Series {
        Series { name, points: vec![at], dots: true, steps: false }
    }
}

/// At most 240 points. Neighbours are averaged, so that noise stays visible but not every step of it.
pub fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(POINTS).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let n = chunk.len() as f64;
        (chunk.iter().map(|p| p.0).sum::<f64>() / n, chunk.iter().map(|p| p.1).sum::<f64>() / n)
    };
    points.chunks(size).map(mean).collect()
}

/// Lines over two axes, with a legend if there are several. `diagonal` adds the line from corner to corner.
pub fn plot(title: &str, description: String, (x, y): (Axis, Axis), series: Vec<Series>, diagonal: bool) -> Chart {
    let mut chart = Chart::new(title, description, (LARGE.width, LARGE.height));
    let canvas = Canvas { frame: LARGE, x: &x, y: &y };
    canvas.axes(&mut chart.drawing);
    if diagonal {
        let (x0, y0, x1, y1) = (LARGE.across(0.0), LARGE.up(0.0), LARGE.across(1.0), LARGE.up(1.0));
        svg!(chart.drawing, r#"<line class="ideal" x1="{x0:.1}" y1="{y0:.1}" x2="{x1:.1}" y2="{y1:.1}"/>"#);
    }
    let several = series.len() > 1;
    for (i, series) in series.into_iter().enumerate() {
        canvas.line(&mut chart.drawing, i % COLOURS, &series);
        if several {
            let symbol = if series.points.len() == 1 { Symbol::Dot(i) } else { Symbol::Line(i) };
            chart.legend.push(LegendEntry { name: series.name, symbol });
        }
    }
    chart
}

/// A bar with its interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// The text before the bar.
    pub label: String,
    /// The text behind the bar: how many it is of.
    pub count: String,
    /// The text under the mouse.
    pub note: String,
    /// Its length.
    pub value: f64,
    /// The interval.
    pub interval: (f64, f64),
}

/// The height of a bar with its room.
const BAR: f64 = 24.0;

/// Bars of one measure, one under the other, so that no label is too long.
pub fn bars(title: &str, description: &str, what: &str, value: &Axis, bars: &[Bar]) -> Chart {
    let widest = |text: fn(&Bar) -> &str| bars.iter().map(|b| text(b).chars().count()).max().unwrap_or(0) as f64;
    let (left, right) = (16.0 + LETTER * widest(|b| &b.label), 16.0 + LETTER * widest(|b| &b.count));
    let (top, height) = (28.0, BAR * bars.len() as f64);
    let bottom = top + height;
    let frame = Frame { width: SMALL, height: bottom + UNDER, left, right: SMALL - right, top, bottom };
    let mut chart = Chart::new(title, description, (SMALL, frame.height));
    let drawing = &mut chart.drawing;
    drawing.text("axis", (4.0, 14.0), "start", what);
    for (at, text) in &value.ticks {
        let x = frame.across(value.place(*at));
        svg!(drawing, r#"<path class="grid" d="M{x:.1} {top:.1}V{bottom:.1}"/>"#);
        drawing.text("tick", (x, bottom + 17.0), "middle", text);
    }
    svg!(drawing, r#"<path class="base" d="M{left:.1} {top:.1}V{bottom:.1}"/>"#);
    drawing.text("axis", (frame.right, frame.height - 6.0), "end", &value.label);
    for (i, bar) in bars.iter().enumerate() {
        let y = top + BAR * i as f64 + 4.0;
        let (middle, high, full) = (y + BAR / 2.0 - 4.0, BAR - 8.0, frame.right - left);
        svg!(drawing, r#"<g><title>{}</title>"#, escape(&bar.note));
        // An invisible rectangle: the mouse could not find a bar of length 0.
        svg!(drawing, r#"<rect class="hit" x="{left:.1}" y="{y:.1}" width="{full:.1}" height="{high}"/>"#);
        let width = value.place(bar.value) * full;
        svg!(drawing, r#"<rect class="bar" x="{left:.1}" y="{y:.1}" width="{width:.1}" height="{high}" rx="2"/>"#);
        let (lo, hi) = (frame.across(value.place(bar.interval.0)), frame.across(value.place(bar.interval.1)));
        // An interval that leaves the chart comes from a handful of examples. It is drawn, but faintly.
        let open = if bar.interval.1 > value.range.1 { " open" } else { "" };
        svg!(drawing, r#"<path class="whisker{open}" d="M{lo:.1} {middle:.1}H{hi:.1}"/></g>"#);
        drawing.text("tick", (left - 6.0, middle + 4.5), "end", &bar.label);
        drawing.text("tick", (SMALL - 4.0, middle + 4.5), "end", &bar.count);
    }
    chart
}

/// Parts of a whole, stacked. All series have the same places on the horizontal axis.
pub fn stack(title: &str, description: String, (x, y): (Axis, Axis), series: Vec<Series>) -> Chart {
    let mut chart = Chart::new(title, description, (LARGE.width, LARGE.height));
    let canvas = Canvas { frame: LARGE, x: &x, y: &y };
    let mut floor: Vec<f64> = series.first().map_or_else(Vec::new, |s| vec![0.0; s.points.len()]);
    for (i, part) in series.into_iter().enumerate() {
        let top: Vec<f64> = floor.iter().zip(&part.points).map(|(below, p)| below + p.1).collect();
        let across = part.points.iter().map(|p| p.0);
        // Along the top to the right, and along the bottom back.
        let there = across.clone().zip(top.iter().copied());
        let outline = there.chain(across.zip(floor).rev());
        let (colour, name) = (i % COLOURS, escape(&part.name));
        let path = canvas.path(outline, false);
        svg!(chart.drawing, r#"<path class="band s{colour}" d="{path}Z"><title>{name}</title></path>"#);
        chart.legend.push(LegendEntry { name: part.name, symbol: Symbol::Band(i) });
        floor = top;
    }
    canvas.axes(&mut chart.drawing);
    chart
}

/// Text inside XML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_places_its_points_and_escapes_its_words() {
        let series = Series { name: "a<b".into(), points: vec![(0.0, 0.0), (10.0, 100.0)], dots: true, steps: false };
        let axes = (Axis::linear("x", (0.0, 10.0)), Axis::linear("y", (0.0, 100.0)));
        let svg = plot("T", "\"D\"".into(), axes, vec![series], false).drawing.svg();
        assert!(svg.contains(r#"d="M66.0 226.0L410.0 12.0""#), "{svg}");
        assert!(svg.contains("a&lt;b: 100 at 10") && svg.contains("&quot;D&quot;"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn an_empty_or_constant_plot_has_no_nan() {
        let axis = Axis::linear("x", (1.0, 1.0));
        assert_eq!(axis.place(1.0), 0.0);
        let svg = bars("T", "D", "x", &Axis::linear("y", (0.0, 1.0)), &[]).drawing.svg();
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn long_logs_are_thinned_to_their_means() {
        let points: Vec<_> = (0..1000).map(|i| (f64::from(i), 2.0)).collect();
        let thinned = thin(points);
        assert!(thinned.len() <= POINTS && thinned.iter().all(|p| p.1 == 2.0));
        assert_eq!(thinned[0].0, 2.0, "the mean of 0 to 4");
    }
}

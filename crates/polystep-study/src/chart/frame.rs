//! The place of a plot inside its drawing: axes with their ticks and labels, and lines between them.

use std::fmt::Write;

use super::{Axis, Drawing, Series, escape, precise, svg};

/// Where the axes are in a drawing of this size, in its own units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// Room for the ticks and the label of an axis: beside it, and under it.
pub const BESIDE: f64 = 54.0;
pub const UNDER: f64 = 44.0;
/// Room above, so that half a tick's label is not cut off.
pub const ABOVE: f64 = 12.0;

/// A chart of which two or three fit in a row of a page, or one on a phone, where its text is still large enough.
pub const LARGE: Frame =
    Frame { width: 420.0, height: 270.0, left: 66.0, right: 410.0, top: ABOVE, bottom: 270.0 - UNDER };
/// The width of a chart of bars.
pub const SMALL: f64 = 360.0;

impl Frame {
    pub fn across(self, place: f64) -> f64 {
        self.left + place * (self.right - self.left)
    }

    pub fn up(self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }
}

/// A frame with its axes.
pub struct Canvas<'a> {
    pub frame: Frame,
    pub x: &'a Axis,
    pub y: &'a Axis,
}

impl Canvas<'_> {
    pub fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.frame.across(self.x.place(x)), self.frame.up(self.y.place(y)))
    }

    /// Grid, ticks and labels.
    pub fn axes(&self, drawing: &mut Drawing) {
        self.grid(drawing);
        self.y_ticks(drawing);
        self.x_ticks(drawing);
        self.labels(drawing);
    }

    /// Lines across the frame at the ticks of the vertical axis, and the base line.
    pub fn grid(&self, drawing: &mut Drawing) {
        let Frame { left, right, bottom, .. } = self.frame;
        for (value, _) in &self.y.ticks {
            let at = self.frame.up(self.y.place(*value));
            svg!(drawing, r#"<path class="grid" d="M{left:.1} {at:.1}H{right:.1}"/>"#);
        }
        svg!(drawing, r#"<path class="base" d="M{left:.1} {bottom:.1}H{right:.1}"/>"#);
    }

    pub fn x_ticks(&self, drawing: &mut Drawing) {
        for (value, label) in &self.x.ticks {
            let at = (self.frame.across(self.x.place(*value)), self.frame.bottom + 17.0);
            drawing.text("tick", at, "middle", label);
        }
    }

    pub fn y_ticks(&self, drawing: &mut Drawing) {
        for (value, label) in &self.y.ticks {
            let at = (self.frame.left - 8.0, self.frame.up(self.y.place(*value)) + 4.0);
            drawing.text("tick", at, "end", label);
        }
    }

    pub fn labels(&self, drawing: &mut Drawing) {
        drawing.text("axis", (self.frame.right, self.frame.height - 6.0), "end", &self.x.label);
        let (left, middle, label) = (11.0, self.frame.up(0.5), escape(&self.y.label));
        svg!(
            drawing,
            r#"<text class="axis" x="{left}" y="{middle:.1}" text-anchor="middle" transform="rotate(-90 {left} {middle:.1})">{label}</text>"#
        );
    }

    /// Straight lines from point to point, or steps, as the data of an SVG path.
    pub fn path(&self, points: impl Iterator<Item = (f64, f64)>, steps: bool) -> String {
        let mut path = String::new();
        for point in points {
            let (x, y) = self.place(point);
            let _ = match path.as_str() {
                "" => write!(path, "M{x:.1} {y:.1}"),
                _ if steps => write!(path, "V{y:.1}H{x:.1}"),
                _ => write!(path, "L{x:.1} {y:.1}"),
            };
        }
        path
    }

    /// A series in a colour.
    pub fn line(&self, drawing: &mut Drawing, colour: usize, series: &Series) {
        let (path, name) = (self.path(series.points.iter().copied(), series.steps), escape(&series.name));
        svg!(drawing, r#"<path class="line s{colour}" d="{path}"><title>{name}</title></path>"#);
        let radius = if series.points.len() == 1 { 5.5 } else { 3.0 };
        for point in series.points.iter().filter(|_| series.dots) {
            let (x, y) = self.place(*point);
            let (a, b) = (precise(point.0), precise(point.1));
            svg!(
                drawing,
                r#"<circle class="dot s{colour}" cx="{x:.1}" cy="{y:.1}" r="{radius}"><title>{name}: {b} at {a}</title></circle>"#
            );
        }
    }
}

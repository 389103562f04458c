//! Small multiples: plots that share their axes, in a grid.
//!
//! Lines of the same name look the same in all of them, so one legend serves them all. A lone panel fills the width, and needs no title.

use std::fmt::Write;

use super::{
    ABOVE, Axis, BESIDE, COLOURS, Canvas, Chart, Drawing, Frame, Key, MARK, Series, Sign, UNDER, WIDTH, axis_labels,
    diamond, escape, grid, x_ticks, y_ticks,
};

/// Plots over the same two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Panels {
    /// The heading.
    pub title: String,
    /// What there is to see, in words.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The plots.
    pub panels: Vec<Panel>,
}

/// One of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// What tells it from the others.
    pub title: String,
    /// Its lines, and a point of somebody else's in the colour of each.
    pub lines: Vec<(Series, Option<Mark>)>,
}

/// A point beside a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Where it is.
    pub at: (f64, f64),
    /// What it says when pointed at.
    pub note: String,
}

const RIGHT: f64 = 740.0;
/// Between two panels, beside and above each other.
const GAP: (f64, f64) = (22.0, 16.0);
/// Above a panel, for its title.
const TITLE: f64 = 22.0;

impl Panels {
    /// The chart.
    pub fn chart(self) -> Chart {
        let names = self.names();
        let keys = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
        let lines = || self.panels.iter().flat_map(|panel| &panel.lines);
        let lone = |name: &str| lines().filter(|(s, _)| s.name == name).all(|(s, _)| s.points.len() == 1);
        let sign = |i, name: &str| if lone(name) { Sign::Dot(i) } else { Sign::Line(i) };
        let legend = keys.map(|(i, name)| Key { name: (*name).to_owned(), sign: sign(i, name) }).collect();
        let drawing = self.draw(&names);
        Chart { title: self.title, description: self.description, legend, drawing }
    }

    /// The names of all lines, each once.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (series, _) in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }

    fn draw(&self, names: &[&str]) -> Drawing {
        let (columns, high, title) = match self.panels.len() {
            0 | 1 => (1, 364.0, 0.0),
            2..=6 => (2, 200.0, TITLE),
            _ => (3, 180.0, TITLE),
        };
        let wide = (RIGHT - BESIDE - GAP.0 * (columns - 1) as f64) / columns as f64;
        let rows = self.panels.len().div_ceil(columns) as f64;
        let bottom = ABOVE + rows * (title + high + GAP.1) - GAP.1;
        let whole =
            Frame { width: WIDTH, height: bottom + UNDER, left: BESIDE, right: RIGHT, top: ABOVE + title, bottom };
        let mut drawing = Drawing::new(&self.title, &self.description, (whole.width, whole.height));
        for (i, panel) in self.panels.iter().enumerate() {
            let left = BESIDE + (i % columns) as f64 * (wide + GAP.0);
            let top = whole.top + (i / columns) as f64 * (title + high + GAP.1);
            let frame = Frame { left, right: left + wide, top, bottom: top + high, ..whole };
            let canvas = Canvas { frame, x: &self.x, y: &self.y };
            panel.draw(&mut drawing.body, &canvas, names);
            if i % columns == 0 {
                y_ticks(frame, &mut drawing.body, &self.y);
            }
            if i + columns >= self.panels.len() {
                x_ticks(frame, &mut drawing.body, &self.x);
            }
        }
        axis_labels(whole, &mut drawing.body, &self.x.label, &self.y.label);
        drawing
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, canvas: &Canvas, names: &[&str]) {
        let Frame { left, top, bottom, .. } = canvas.frame;
        if !self.title.is_empty() {
            let title = escape(&self.title);
            let _ = write!(svg, r#"<text class="panel" x="{left:.1}" y="{:.1}">{title}</text>"#, top - 9.0);
        }
        for (value, _) in &canvas.x.ticks {
            let x = canvas.frame.across(canvas.x.place(*value));
            let _ = write!(svg, r#"<path class="grid" d="M{x:.1} {top:.1}V{bottom:.1}"/>"#);
        }
        grid(canvas.frame, svg, canvas.y);
        let colour = |series: &Series| names.iter().position(|name| *name == series.name).unwrap_or(0) % COLOURS;
        for (series, _) in &self.lines {
            canvas.line(svg, colour(series), series);
        }
        let marks: Vec<_> = self.lines.iter().filter_map(|(s, mark)| Some((colour(s), mark.as_ref()?))).collect();
        for (i, (colour, mark)) in marks.iter().enumerate() {
            // Marks at one place stand one inside the other.
            let inside = marks[i + 1..].iter().filter(|(_, other)| other.at == mark.at).count();
            *svg += &diamond(canvas.place(mark.at), MARK + 3.5 * inside as f64, *colour, &mark.note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels(names: &[&[&str]]) -> Panels {
        let line = |name: &&str| {
            let points = vec![(0.0, 0.0), (10.0, 100.0)];
            let series = Series { name: (*name).to_owned(), points, dots: false, steps: false };
            (series, Some(Mark { at: (5.0, 50.0), note: format!("{name} & co") }))
        };
        let panel =
            |(i, names): (usize, &&[&str])| Panel { title: format!("P<{i}"), lines: names.iter().map(line).collect() };
        let (x, y) = (Axis::linear("x", (0.0, 10.0), ""), Axis::linear("y", (0.0, 100.0), ""));
        let panels = names.iter().enumerate().map(panel).collect();
        Panels { title: "T".into(), description: "D".into(), x, y, panels }
    }

    fn drawn(names: &[&[&str]]) -> (Vec<String>, String) {
        let Chart { legend, drawing, .. } = panels(names).chart();
        (legend.into_iter().map(|key| key.name).collect(), drawing.body)
    }

    #[test]
    fn a_name_has_one_colour_in_all_panels_and_one_entry_in_the_legend() {
        let (legend, svg) = drawn(&[&["a", "b"], &["b", "c"], &["b"]]);
        assert_eq!(legend, ["a", "b", "c"]);
        let count = |class: &str| svg.matches(&format!("class=\"{class}\"")).count();
        assert_eq!(["line s0", "line s1", "line s2"].map(count), [1, 3, 1]);
        assert_eq!(["mark s0", "mark s1", "mark s2"].map(count), [1, 3, 1]);
        assert!(
            svg.contains("<title>b</title>") && svg.contains("<title>b &amp; co</title>") && svg.contains(">P&lt;2<")
        );
    }

    #[test]
    fn panels_share_their_axes() {
        let (_, svg) = drawn(&[&["a"], &["a"], &["a"]]);
        // Two columns: the same line twice in a row, and the third under the first.
        for path in ["M54.0 234.0L386.0 34.0", "M408.0 234.0L740.0 34.0", "M54.0 472.0L386.0 272.0"] {
            assert!(svg.contains(&format!("d=\"{path}\"")), "{path} in {svg}");
        }
        let ticks = |label: &str| svg.matches(&format!(">{label}</text>")).count();
        assert_eq!(ticks("100"), 2, "of y: at the left of both rows");
        assert_eq!(ticks("10"), 2, "of x: under both columns, though the second is shorter");
        assert_eq!((ticks("x"), ticks("y")), (1, 1));
    }

    #[test]
    fn a_lone_panel_fills_the_width() {
        let (legend, svg) = drawn(&[&["a"]]);
        assert_eq!(legend, ["a"], "which run it is");
        assert!(svg.contains("d=\"M54.0 376.0L740.0 12.0\""), "{svg}");
    }

    #[test]
    fn marks_at_one_place_stand_one_inside_the_other() {
        let (_, svg) = drawn(&[&["a", "b", "c"]]);
        for (colour, top) in [("s0", "181.5l12.5 "), ("s1", "185.0l9 "), ("s2", "188.5l5.5 ")] {
            assert!(svg.contains(&format!("class=\"mark {colour}\" d=\"M397.0 {top}")), "{colour} in {svg}");
        }
    }
}

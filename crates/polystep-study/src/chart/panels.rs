//! Small multiples: plots that share their axes, in a grid.
//!
//! Lines of the same name look the same in all panels, so one legend serves them all. A single panel fills the width and needs
//! no title.

use super::frame::{ABOVE, BESIDE, Canvas, Frame, UNDER};
use super::{Axis, COLOURS, Chart, Drawing, LegendEntry, MARK, Series, Symbol, WIDTH, diamond, escape, svg};

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

/// One plot.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// What tells it from the others.
    pub title: String,
    /// Its lines, each with the paper's point in the same colour, if there is one.
    pub lines: Vec<(Series, Option<Mark>)>,
}

/// A point beside a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Where it is.
    pub at: (f64, f64),
    /// The text under the mouse.
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
        let canvas = |frame: Frame| Canvas { frame, x: &self.x, y: &self.y };
        let names = self.names();
        let mut chart = Chart::new(&self.title, &self.description, (whole.width, whole.height));
        for (i, panel) in self.panels.iter().enumerate() {
            let left = BESIDE + (i % columns) as f64 * (wide + GAP.0);
            let top = whole.top + (i / columns) as f64 * (title + high + GAP.1);
            let canvas = canvas(Frame { left, right: left + wide, top, bottom: top + high, ..whole });
            panel.draw(&mut chart.drawing, &canvas, &names);
            if i % columns == 0 {
                canvas.y_ticks(&mut chart.drawing);
            }
            if i + columns >= self.panels.len() {
                canvas.x_ticks(&mut chart.drawing);
            }
        }
        canvas(whole).labels(&mut chart.drawing);
        let keys = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
        chart.legend =
            keys.map(|(i, name)| LegendEntry { name: (*name).into(), symbol: self.symbol(i, name) }).collect();
        chart
    }

    fn lines(&self) -> impl Iterator<Item = &Series> {
        self.panels.iter().flat_map(|panel| &panel.lines).map(|(series, _)| series)
    }

    /// The names of all lines, each once.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for series in self.lines() {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }

    /// A dot if every line of this name is a single point.
    fn symbol(&self, i: usize, name: &str) -> Symbol {
        let single = self.lines().filter(|series| series.name == name).all(|series| series.points.len() == 1);
        if single { Symbol::Dot(i) } else { Symbol::Line(i) }
    }
}

impl Panel {
    fn draw(&self, drawing: &mut Drawing, canvas: &Canvas, names: &[&str]) {
        let Frame { left, top, bottom, .. } = canvas.frame;
        if !self.title.is_empty() {
            let title = escape(&self.title);
            svg!(drawing, r#"<text class="panel" x="{left:.1}" y="{:.1}">{title}</text>"#, top - 9.0);
        }
        for (value, _) in &canvas.x.ticks {
            let x = canvas.frame.across(canvas.x.place(*value));
            svg!(drawing, r#"<path class="grid" d="M{x:.1} {top:.1}V{bottom:.1}"/>"#);
        }
        canvas.grid(drawing);
        let colour = |series: &Series| names.iter().position(|name| *name == series.name).unwrap_or(0) % COLOURS;
        for (series, _) in &self.lines {
            canvas.line(drawing, colour(series), series);
        }
        let marks: Vec<_> = self.lines.iter().filter_map(|(s, mark)| Some((colour(s), mark.as_ref()?))).collect();
        for (i, (colour, mark)) in marks.iter().enumerate() {
            // Marks at the same place are drawn inside each other.
            let inside = marks[i + 1..].iter().filter(|(_, other)| other.at == mark.at).count();
            drawing.body += &diamond(canvas.place(mark.at), MARK + 3.5 * inside as f64, *colour, &mark.note);
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
        let (x, y) = (Axis::linear("x", (0.0, 10.0)), Axis::linear("y", (0.0, 100.0)));
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

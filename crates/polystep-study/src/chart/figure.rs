//! A chart with its heading and legend: a part of a page, or a file of its own.
//!
//! A file is for places that know nothing of our style sheet (a Markdown page on any background): its colours are written out, and
//! its background is white.

use std::fmt::Write;

use serde::Serialize;

use super::{Axis, COLOURS, Drawing, LARGE, LETTER, Plot, Series, escape};

/// The colours of a page, light and dark, as custom properties.
pub const PALETTE: &str = include_str!("palette.css");
/// How charts look, in these colours.
pub const STYLE: &str = include_str!("chart.css");

/// Points kept per line: more than a screen can show.
const POINTS: usize = 240;

/// A chart with its heading and legend.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// What there is to see.
    pub description: String,
    /// Names of its series in the order of their colours, and whether it is a lone dot; empty if there is only one.
    pub legend: Vec<(String, bool)>,
    /// The drawing.
    #[serde(rename = "svg")]
    pub drawing: Drawing,
}

/// At most [`POINTS`] points: neighbours are averaged, so that noise stays visible but not every step of it.
pub fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(POINTS).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let n = chunk.len() as f64;
        (chunk.iter().map(|p| p.0).sum::<f64>() / n, chunk.iter().map(|p| p.1).sum::<f64>() / n)
    };
    points.chunks(size).map(mean).collect()
}

/// A line; none without points.
pub fn line(name: &str, points: Vec<(f64, f64)>) -> Option<Series> {
    let points = thin(points);
    let dots = points.len() <= 40;
    (!points.is_empty()).then(|| Series { name: name.to_owned(), points, dots, steps: false })
}

/// Lines with a legend where there are several.
pub fn plot(title: &str, description: String, x: Axis, y: Axis, series: Vec<Series>, diagonal: bool) -> Chart {
    let (title, marks) = (title.to_owned(), Vec::new());
    Chart::of(Plot { title, description, x, y, series, diagonal, marks, frame: LARGE })
}

/// Where the heading of a file begins, and how high its lines are.
const MARGIN: f64 = 14.0;
const LINE: f64 = 18.0;

impl Chart {
    /// A plot with a legend where it has several lines.
    pub fn of(plot: Plot) -> Chart {
        let drawing = plot.draw();
        let keys = plot.series.iter().map(|s| (s.name.clone(), s.points.len() == 1));
        let legend = if plot.series.len() > 1 { keys.collect() } else { Vec::new() };
        Chart { title: plot.title, description: plot.description, legend, drawing }
    }

    /// An SVG file that needs nothing but itself.
    pub fn file(&self) -> String {
        let Drawing { width, height, body, .. } = &self.drawing;
        let mut head = String::new();
        let mut y = 26.0;
        let _ = write!(head, r#"<text class="title" x="{MARGIN}" y="{y}">{}</text>"#, escape(&self.title));
        for line in wrapped(&self.description, ((width - 2.0 * MARGIN) / LETTER) as usize) {
            y += LINE;
            let _ = write!(head, r#"<text x="{MARGIN}" y="{y}">{}</text>"#, escape(&line));
        }
        y += LINE;
        let mut x = MARGIN;
        for (i, (name, dot)) in self.legend.iter().enumerate() {
            let (i, wide) = (i % COLOURS, 48.0 + LETTER * name.chars().count() as f64);
            if x > MARGIN && x + wide > *width {
                (x, y) = (MARGIN, y + LINE);
            }
            let (middle, words, name) = (y - 4.0, x + 32.0, escape(name));
            let _ = match dot {
                true => write!(head, r#"<circle class="dot s{i}" cx="{:.1}" cy="{middle}" r="4.5"/>"#, x + 13.0),
                false => write!(head, r#"<path class="line s{i}" d="M{x:.1} {middle}h26"/>"#),
            };
            let _ = write!(head, r#"<text x="{words:.1}" y="{y}">{name}</text>"#);
            x += wide;
        }
        let top = if self.legend.is_empty() { y - LINE } else { y } + 10.0;
        let (total, style) = (top + height, style());
        let label = escape(&format!("{}. {}", self.title, self.description));
        let size = format!(r#"width="{width}" height="{total}""#);
        // The style's `.chart` fills a page's column; here it is a group, and the file keeps its size.
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} viewBox=\"0 0 {width} {total}\" role=\"img\" aria-label=\"{label}\">\n\
             <style>{style}</style>\n<rect {size} fill=\"#ffffff\"/>\n<g class=\"chart\">{head}\n\
             <g transform=\"translate(0 {top})\">{body}</g></g>\n</svg>\n"
        )
    }
}

/// How charts look, with the light colours written out: not every reader of SVG knows custom properties.
fn style() -> String {
    let light = PALETTE.split(['{', '}']).nth(1).unwrap_or_default();
    let mut style = STYLE.trim().to_owned();
    for (name, value) in light.split(';').filter_map(|rule| rule.trim().split_once(':')) {
        style = style.replace(&format!("var({name})"), value);
    }
    style
}

/// A sentence in lines of at most so many letters, where words are not longer.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= letters) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_logs_are_thinned_to_their_means() {
        let points: Vec<_> = (0..1000).map(|i| (f64::from(i), 2.0)).collect();
        let thinned = thin(points);
        assert!(thinned.len() <= POINTS && thinned.iter().all(|p| p.1 == 2.0));
        assert_eq!(thinned[0].0, 2.0, "the mean of 0 to 4");
    }

    #[test]
    fn a_file_has_its_colours_written_out() {
        let points = |y: f64| (0..9).map(|x| (f64::from(x), y)).collect();
        let axis = || Axis::linear("x", (0.0, 10.0), "");
        let series = [line("a & b", points(1.0)), line("c", points(2.0))].into_iter().flatten().collect();
        let file = plot("T", "many words ".repeat(20), axis(), axis(), series, false).file();
        assert!(!file.contains("var(") && file.contains("stroke:#2157a8"), "{file}");
        assert!(file.contains(r##"<rect width="520" height="##) && file.contains(r##"fill="#ffffff"/>"##), "{file}");
        assert_eq!(file.matches("many").count(), 40, "to be read and to be heard");
        assert!(file.contains(">a &amp; b</text>") && file.contains(">c</text>"), "{file}");
    }

    #[test]
    fn sentences_are_wrapped_between_words() {
        assert_eq!(wrapped("to be or not to be", 9), ["to be or", "not to be"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
        assert!(wrapped("", 3).is_empty());
    }
}

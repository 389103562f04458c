//! A chart with its heading and legend: a part of a page, or a file of its own.
//!
//! A file is for places that know nothing of our style sheet (a Markdown page on any background): its colours are written out,
//! the light ones and for those who ask for them the dark ones, and it has a background of its own.

use std::fmt::Write;

use serde::Serialize;

use super::legend::rows;
use super::{Axis, Drawing, Key, Plot, Series, Sign, escape};

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
    /// What its colours stand for; empty where that needs no telling.
    pub legend: Vec<Key>,
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
    let plot = Plot { title: title.to_owned(), description, x, y, series, diagonal };
    let drawing = plot.draw();
    let key = |(i, Series { name, points, .. }): (usize, Series)| Key {
        name,
        sign: if points.len() == 1 { Sign::Dot(i) } else { Sign::Line(i) },
    };
    let keys = plot.series.into_iter().enumerate().map(key);
    let legend = if keys.len() > 1 { keys.collect() } else { Vec::new() };
    Chart { title: plot.title, description: plot.description, legend, drawing }
}

/// Where the heading of a file begins, and how high its lines are.
const MARGIN: f64 = 14.0;
const LINE: f64 = 18.0;
/// How wide a letter of a sentence is, with its spaces and commas, about.
const SENTENCE_LETTER: f64 = 6.2;

impl Chart {
    /// An SVG file that needs nothing but itself.
    pub fn file(&self) -> String {
        let Drawing { width, height, body, .. } = &self.drawing;
        let room = width - 2.0 * MARGIN;
        let (title, description) = (escape(&self.title), escape(&self.description));
        let mut y = 26.0;
        let mut head = format!(r#"<text class="title" x="{MARGIN}" y="{y}">{title}</text>"#);
        for line in wrapped(&self.description, (room / SENTENCE_LETTER) as usize) {
            y += LINE;
            let _ = write!(head, r#"<text x="{MARGIN}" y="{y}">{}</text>"#, escape(&line));
        }
        let (legend, high) = rows(&self.legend, (MARGIN, y + 12.0), room, LINE);
        let top = y + 12.0 + high;
        let (total, style) = (top + height, style());
        let size = format!(r#"width="{width}" height="{total}""#);
        // The style's `.chart` fills a page's column; here it is a group, and the file keeps its size.
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} viewBox=\"0 0 {width} {total}\" role=\"img\" aria-labelledby=\"title desc\">\n\
             <title id=\"title\">{title}</title>\n<desc id=\"desc\">{description}</desc>\n\
             <style>{style}</style>\n<rect class=\"page\" {size} fill=\"#ffffff\"/>\n<g class=\"chart\">{head}{legend}\n\
             <g transform=\"translate(0 {top})\">{body}</g></g>\n</svg>\n"
        )
    }
}

/// How charts look, with the colours written out: not every reader of SVG knows custom properties. The dark ones follow for those
/// who ask for them.
fn style() -> String {
    let mut blocks = PALETTE.split(['{', '}']);
    let light = blocks.nth(1).unwrap_or_default();
    let dark = blocks.rfind(|block| block.contains("--page")).unwrap_or_default();
    let rules = STYLE.split_inclusive('}').map(str::trim);
    // What the dark palette does not name (the fonts) is the same in both.
    let both = rules.map(|rule| (written_out(rule, light), written_out(&written_out(rule, dark), light)));
    let (mut style, mut other) = (String::new(), String::new());
    for (light, dark) in both {
        if light != dark {
            other += &dark;
        }
        style += &light;
    }
    format!("{style}\n@media (prefers-color-scheme: dark) {{ {other} }}")
}

/// CSS with the values of a palette.
fn written_out(css: &str, palette: &str) -> String {
    let colours = palette.split(';').filter_map(|rule| rule.trim().split_once(':'));
    colours.fold(css.to_owned(), |css, (name, value)| css.replace(&format!("var({name})"), value))
}

/// A sentence in lines of at most so many letters, where words are not longer; a number keeps its `%`.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let kept = text.trim().replace(" %", "\u{a0}%");
    for word in kept.split(' ').filter(|word| !word.is_empty()) {
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
        let (light, dark) = file.split_once("@media (prefers-color-scheme: dark)").unwrap();
        assert!(!file.contains("var(") && light.contains(".s0 { color:#2157a8; }"), "{file}");
        assert!(
            dark.contains(".s0 { color:#84b3ff; }") && !dark.contains("dasharray:7 4"),
            "only what differs: {dark}"
        );
        assert!(file.contains(r##"<rect class="page" width="520" height="##), "{file}");
        assert!(file.contains(r##"fill="#ffffff"/>"##), "{file}");
        assert_eq!(file.matches("many").count(), 40, "to be read and to be heard");
        assert!(file.contains(">a &amp; b</text>") && file.contains(">c</text>"), "{file}");
    }

    #[test]
    fn sentences_are_wrapped_between_words() {
        assert_eq!(wrapped("to be or not to be", 9), ["to be or", "not to be"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
        assert_eq!(wrapped("about 95 % or so", 8), ["about", "95\u{a0}% or", "so"]);
        assert!(wrapped("", 3).is_empty());
    }
}

//! A chart as a file of its own.
//!
//! A file is for places without our style sheet, such as a Markdown page on any background. So its colours are written out,
//! first the light ones and then the dark ones for readers who prefer those. It also has a background of its own.

use super::legend::rows;
use super::{Chart, Drawing, PALETTE, STYLE, escape};

/// The margin of a file, and the height of a line of text.
const MARGIN: f64 = 14.0;
const LINE: f64 = 18.0;
/// The approximate width of a letter in a sentence, where spaces and commas are narrow.
const SENTENCE_LETTER: f64 = 6.2;
/// The same in a title, which is larger and bold.
const TITLE_LETTER: f64 = 8.8;

impl Chart {
    /// An SVG file that needs nothing but itself.
    pub fn file(&self) -> String {
        let Drawing { width, height, body, .. } = &self.drawing;
        let room = width - 2.0 * MARGIN;
        let (title, description) = (escape(&self.title), escape(&self.description));
        let (mut y, mut head) = (6.0, String::new());
        for line in wrapped(&self.title, (room / TITLE_LETTER) as usize) {
            y += 20.0;
            head += &format!(r#"<text class="title" x="{MARGIN}" y="{y}">{}</text>"#, escape(&line));
        }
        for line in wrapped(&self.description, (room / SENTENCE_LETTER) as usize) {
            y += LINE;
            head += &format!(r#"<text x="{MARGIN}" y="{y}">{}</text>"#, escape(&line));
        }
        let (legend, high) = rows(&self.legend, (MARGIN, y + 12.0), room, LINE);
        let top = y + 12.0 + high;
        let (total, style) = (top + height, style());
        let size = format!(r#"width="{width}" height="{total}""#);
        // In a page the class `chart` belongs to the whole drawing and fills the column. Here it belongs to a group, so that the
        // file keeps its own size.
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} viewBox=\"0 0 {width} {total}\" role=\"img\" aria-labelledby=\"title desc\">\n\
             <title id=\"title\">{title}</title>\n<desc id=\"desc\">{description}</desc>\n\
             <style>{style}</style>\n<rect class=\"page\" {size} fill=\"#ffffff\"/>\n<g class=\"chart\">{head}{legend}\n\
             <g transform=\"translate(0 {top})\">{body}</g></g>\n</svg>\n"
        )
    }
}

/// How charts look, with the colours written out, because not every program that shows SVG knows custom properties. The dark
/// colours follow in a media query.
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

/// A sentence in lines of at most so many letters. A longer word has a line of its own, and a number keeps its `%`.
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
    use super::super::{Axis, Series, plot};
    use super::*;

    #[test]
    fn a_file_has_its_colours_written_out() {
        let points = |y: f64| (0..9).map(|x| (f64::from(x), y)).collect();
        let axis = || Axis::linear("x", (0.0, 10.0));
        let series =
            [Series::line("a & b", points(1.0)), Series::line("c", points(2.0))].into_iter().flatten().collect();
        let file = plot("T", "many words ".repeat(20), (axis(), axis()), series, false).file();
        let (light, dark) = file.split_once("@media (prefers-color-scheme: dark)").unwrap();
        assert!(!file.contains("var(") && light.contains(".s0 { color:#2157a8; }"), "{file}");
        assert!(
            dark.contains(".s0 { color:#84b3ff; }") && !dark.contains("dasharray:7 4"),
            "only what differs: {dark}"
        );
        assert!(file.contains(r##"<rect class="page" width="420" height="##), "{file}");
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

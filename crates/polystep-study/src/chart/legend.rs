//! What the colours of a chart stand for.

use serde::{Serialize, Serializer};

use super::{COLOURS, LETTER, escape};

/// An entry of a legend.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LegendEntry {
    /// What it is called.
    pub name: String,
    /// How it is drawn.
    pub symbol: Symbol,
}

/// How something is drawn, and the number of its colour. It is serialised as a drawing of 26 × 10.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Symbol {
    /// A line.
    Line(usize),
    /// A full circle.
    Dot(usize),
    /// An empty circle.
    Ring(usize),
    /// A diamond: the paper's.
    Diamond(usize),
    /// A band of a stack.
    Band(usize),
}

impl Symbol {
    /// As elements of an SVG.
    fn svg(self) -> String {
        let (Symbol::Line(i) | Symbol::Dot(i) | Symbol::Ring(i) | Symbol::Diamond(i) | Symbol::Band(i)) = self;
        let i = i % COLOURS;
        match self {
            Symbol::Line(_) => format!(r#"<path class="line s{i}" d="M1 5h24"/>"#),
            Symbol::Dot(_) => format!(r#"<circle class="dot s{i}" cx="13" cy="5" r="4.5"/>"#),
            Symbol::Ring(_) => format!(r#"<circle class="mark s{i}" cx="13" cy="5" r="4"/>"#),
            Symbol::Diamond(_) => diamond((13.0, 5.0), 5.0, i, ""),
            Symbol::Band(_) => format!(r#"<rect class="band s{i}" x="4" width="18" height="10" rx="2"/>"#),
        }
    }
}

impl Serialize for Symbol {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.svg())
    }
}

/// An empty diamond around a place. The note appears under the mouse.
pub fn diamond((x, y): (f64, f64), size: f64, colour: usize, note: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!("<title>{}</title>", escape(note)) };
    let top = y - size;
    format!(
        r#"<path class="mark s{colour}" d="M{x:.1} {top:.1}l{size} {size}l-{size} {size}l-{size} -{size}Z">{note}</path>"#
    )
}

/// Between two entries.
const GAP: f64 = 22.0;
/// From the symbol to its name.
const SYMBOL: f64 = 32.0;

/// Draws the entries from a corner on, within a width and in lines of a height. Returns the elements and their height. Entries
/// that need more than one line are set in columns.
pub fn rows(keys: &[LegendEntry], (left, top): (f64, f64), width: f64, line: f64) -> (String, f64) {
    let wide = |key: &LegendEntry| SYMBOL + LETTER * key.name.chars().count() as f64 + GAP;
    let all: f64 = keys.iter().map(wide).sum();
    let widest = keys.iter().map(wide).fold(0.0, f64::max);
    let most = if all - GAP <= width { keys.len() } else { ((width + GAP) / widest) as usize }.max(1);
    // The entries are spread evenly over the lines, so that no line is nearly empty.
    let columns = keys.len().div_ceil(keys.len().div_ceil(most).max(1)).max(1);
    let (mut svg, mut x) = (String::new(), left);
    for (i, key) in keys.iter().enumerate() {
        if i % columns == 0 {
            x = left;
        }
        let y = top + line * (i / columns) as f64;
        let (symbol, name) = (key.symbol.svg(), escape(&key.name));
        svg +=
            &format!(r#"<g transform="translate({x:.1} {y:.1})">{symbol}<text x="{SYMBOL}" y="9">{name}</text></g>"#);
        x += if columns < keys.len() { widest } else { wide(key) };
    }
    (svg, line * keys.len().div_ceil(columns) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<LegendEntry> {
        let key = |(i, name): (usize, &&str)| LegendEntry { name: (*name).to_owned(), symbol: Symbol::Line(i) };
        names.iter().enumerate().map(key).collect()
    }

    #[test]
    fn entries_stand_in_one_line_or_in_columns() {
        let (svg, high) = rows(&keys(&["a", "long name", "b"]), (10.0, 0.0), 400.0, 18.0);
        assert_eq!(high, 18.0);
        assert!(svg.contains("translate(10.0 0.0)") && svg.contains("translate(71.0 0.0)"), "{svg}");
        let (svg, high) = rows(&keys(&["a", "long name", "b"]), (10.0, 0.0), 215.0, 18.0);
        assert_eq!(high, 36.0);
        assert!(svg.contains("translate(127.0 0.0)") && svg.contains("translate(10.0 18.0)"), "{svg}");
        let (svg, high) = rows(&keys(&["long name"; 6]), (10.0, 0.0), 600.0, 18.0);
        assert_eq!((high, svg.matches(" 18.0)").count()), (36.0, 3), "five would fit: {svg}");
        assert_eq!(rows(&[], (10.0, 0.0), 215.0, 18.0).1, 0.0);
    }

    #[test]
    fn a_colour_after_the_last_begins_anew() {
        assert!(Symbol::Line(COLOURS + 1).svg().contains("class=\"line s1\""));
    }
}

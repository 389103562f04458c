//! Texts in rows and columns, as Markdown, LaTeX or CSV.
//!
//! The texts may be names that somebody else chose. Each output escapes them, so that none of them is markup or a formula.

use std::iter::once;

use crate::csv;

/// Rows of texts under a header.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grid {
    /// The headings.
    pub header: Vec<String>,
    /// The rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// How many columns hold words. They come first and are aligned to the left; the others hold numbers.
    pub words: usize,
}

impl Grid {
    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        once(&self.header).chain(&self.rows)
    }

    /// Columns become rows, for a table with more columns than a page can hold.
    pub fn turned(&self, corner: &str) -> Grid {
        let column = |i: usize| self.lines().map(|line| line[i].clone()).collect();
        let mut columns: Vec<Vec<String>> = (0..self.header.len()).map(column).collect();
        let mut header = if columns.is_empty() { Vec::new() } else { columns.remove(0) };
        if let Some(first) = header.first_mut() {
            *first = corner.to_owned();
        }
        Grid { header, rows: columns, words: self.words }
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        let line = |texts: &Vec<String>| {
            let texts: Vec<String> = texts.iter().map(|text| markdown(text)).collect();
            format!("| {} |\n", texts.join(" | "))
        };
        let numbers = "---:|".repeat(self.header.len().saturating_sub(self.words));
        let mut lines: Vec<String> = self.lines().map(line).collect();
        lines.insert(1, format!("|{}{numbers}\n", "---|".repeat(self.words)));
        lines.concat()
    }

    /// A LaTeX table for `booktabs`. Neighbouring columns of a group have its name above them.
    pub fn latex(&self, groups: &[(&str, usize)]) -> String {
        let line =
            |texts: &Vec<String>| texts.iter().map(|text| latex(text)).collect::<Vec<_>>().join(" & ") + " \\\\\n";
        let columns = "l".repeat(self.words) + &"r".repeat(self.header.len().saturating_sub(self.words));
        let group = |(name, count): &(&str, usize)| format!(" & \\multicolumn{{{count}}}{{c}}{{{}}}", latex(name));
        let mut out = format!("\\begin{{tabular}}{{{columns}}}\n\\toprule\n");
        out += &groups.iter().map(group).collect::<String>();
        out += if groups.is_empty() { "" } else { " \\\\\n" };
        out += &(line(&self.header) + "\\midrule\n");
        out += &self.rows.iter().map(line).collect::<String>();
        out + "\\bottomrule\n\\end{tabular}\n"
    }

    /// Comma-separated values.
    pub fn csv(&self) -> String {
        csv::write(self.lines())
    }
}

/// Neighbouring columns of one group, with their number.
pub fn groups<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match groups.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => groups.push((name, 1)),
        }
    }
    groups
}

/// Text inside Markdown: it opens no cell, no link and no HTML. A bound such as `<1` opens nothing and stays as it is.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '<' if letters.peek().is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(*next)) => {
                out.push_str("&lt;");
            }
            '|' | '[' | ']' | '`' | '\\' => out.extend(['\\', c]),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Text inside LaTeX.
pub fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '#' | '%' | '&' | '_' | '$' | '{' | '}' => out.extend(['\\', c]),
            '<' | '>' => out.extend(['$', c, '$']),
            '↓' => out.push_str("$\\downarrow$"),
            '–' => out.push_str("--"),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' | '^' => out.extend(['\\', c, '{', '}']),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latex_escapes_what_it_must() {
        assert_eq!(latex("#EE 5% small_coeff a^b <1"), "\\#EE 5\\% small\\_coeff a\\^{}b $<$1");
        assert_eq!(latex("31.00 ↓ (33.4) –"), "31.00 $\\downarrow$ (33.4) --");
    }

    #[test]
    fn a_name_is_never_markdown() {
        assert_eq!(markdown("<script>alert(1)</script>"), "&lt;script>alert(1)&lt;/script>");
        assert_eq!(markdown("a|b [c](d) `e`\n<!-- <1"), "a\\|b \\[c\\](d) \\`e\\` &lt;!-- <1");
    }

    #[test]
    fn a_wide_grid_can_be_turned() {
        let texts = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let wide = Grid { header: texts("trained a b c"), rows: vec![texts("run 1 2 3")], words: 1 };
        let turned = wide.turned("tested on");
        assert_eq!(turned.header, ["tested on", "run"]);
        assert_eq!(turned.rows, [texts("a 1"), texts("b 2"), texts("c 3")]);
        assert_eq!(turned.markdown(), "| tested on | run |\n|---|---:|\n| a | 1 |\n| b | 2 |\n| c | 3 |\n");
    }
}

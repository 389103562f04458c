//! Text from files and arguments, made safe and short enough to print.

use std::borrow::Cow;
use std::ops::Range;

/// Characters that are shown of a long line, on each side of the place that matters.
const SIDE: usize = 60;

/// Whether a terminal would act on a character instead of showing it.
fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// The text with every control character but line breaks and tabs written as an escape: `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// A sentence that may quote anything: control characters escaped, and the middle of a long line left out.
pub fn short(text: &str) -> String {
    let line = |line: &str| {
        let length = line.chars().count();
        if length <= 16 * SIDE {
            return line.to_owned();
        }
        let [head, tail] = [8 * SIDE, length - 4 * SIDE];
        let (head, tail): (String, String) = (line.chars().take(head).collect(), line.chars().skip(tail).collect());
        format!("{head}…{tail}")
    };
    printable(text).split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The text with long lines cut and control characters escaped, and where `span` is in it. Lines keep their numbers.
pub fn window(text: &str, span: Range<usize>) -> (String, Range<usize>) {
    let (mut out, mut start, mut end) = (String::new(), None, None);
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let here = |at: usize| at.checked_sub(line_start).filter(|at| *at < line.len());
        let centre = here(span.start).map_or(0, |at| line[..at].chars().count());
        let length = line.chars().count();
        for (i, (at, c)) in line.char_indices().enumerate() {
            if line_start + at >= span.start {
                start.get_or_insert(out.len());
            }
            if line_start + at >= span.end {
                end.get_or_insert(out.len());
            }
            let far = i + SIDE < centre || i > centre + 2 * SIDE;
            match c {
                '\n' => out.push('\n'),
                _ if length > 4 * SIDE && far => {
                    if !out.ends_with('…') {
                        out.push('…');
                    }
                }
                c => out.push_str(&printable(c.encode_utf8(&mut [0; 4]))),
            }
        }
        line_start += line.len();
    }
    let (start, end) = (start.unwrap_or(out.len()), end.unwrap_or(out.len()));
    (out, start..end)
}

//! Marks the parts of a prediction that differ from the target, and the parts of the target that differ from the prediction.
//!
//! The units are numbers, variables and signs, not digits: in `12*x1` against `18*x1` the whole 12 is marked. What both texts
//! share is their longest common subsequence. A single shared sign between two differing parts is marked with them.

use std::ops::Range;

use serde::Serialize;

/// A piece of text and whether it differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Not in the other one.
    pub differs: bool,
}

/// Marks what differs in both.
pub fn diff(prediction: &str, target: &str) -> (Vec<Piece>, Vec<Piece>) {
    let (a, b) = (units(prediction), units(target));
    let same = |i: usize, j: usize| prediction[a[i].clone()].trim_end() == target[b[j].clone()].trim_end();
    // Most of a text is an equal beginning and end. These need no table.
    let head = (0..a.len().min(b.len())).take_while(|&i| same(i, i)).count();
    let rest = a.len().min(b.len()) - head;
    let tail = (0..rest).take_while(|&i| same(a.len() - 1 - i, b.len() - 1 - i)).count();
    let ends = |len: usize| (0..len).map(|i| i < head || i >= len - tail).collect::<Vec<_>>();
    let (mut keep_a, mut keep_b) = (ends(a.len()), ends(b.len()));
    let (m, n) = (a.len() - head - tail, b.len() - head - tail);
    let mut longest = vec![vec![0u32; n + 1]; m + 1];
    for i in (0..m).rev() {
        for j in (0..n).rev() {
            longest[i][j] = if same(head + i, head + j) {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < m && j < n {
        if same(head + i, head + j) {
            (keep_a[head + i], keep_b[head + j]) = (true, true);
            (i, j) = (i + 1, j + 1);
        } else if longest[i + 1][j] >= longest[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    (pieces(prediction, &a, &keep_a), pieces(target, &b, &keep_b))
}

/// Numbers, names and single signs, each with the blank behind it.
fn units(text: &str) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let mut before = None;
    for (at, c) in text.char_indices() {
        let kind = if c.is_whitespace() {
            'b'
        } else if c.is_ascii_digit() && before != Some('a') {
            '0'
        } else if c.is_alphanumeric() {
            'a'
        } else {
            's'
        };
        let end = at + c.len_utf8();
        match units.last_mut() {
            Some(last) if kind == 'b' || (kind != 's' && before == Some(kind)) => last.end = end,
            _ => units.push(at..end),
        }
        // x1 is one name: letters take the digits behind them.
        before = Some(kind);
    }
    units
}

fn pieces(text: &str, units: &[Range<usize>], keep: &[bool]) -> Vec<Piece> {
    let differs = |i: usize| {
        let lone =
            i > 0 && i + 1 < keep.len() && !keep[i - 1] && !keep[i + 1] && text[units[i].clone()].trim_end().len() == 1;
        !keep[i] || lone
    };
    let mut pieces: Vec<Piece> = Vec::new();
    for (i, unit) in units.iter().enumerate() {
        let (part, differs) = (&text[unit.clone()], differs(i));
        match pieces.last_mut() {
            Some(last) if last.differs == differs => last.text.push_str(part),
            _ => pieces.push(Piece { text: part.to_owned(), differs }),
        }
    }
    // The blank behind a differing token of prefix is not part of the difference.
    for i in 0..pieces.len().saturating_sub(1) {
        if pieces[i].differs && pieces[i].text.ends_with(' ') {
            pieces[i].text.pop();
            pieces[i + 1].text.insert(0, ' ');
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Differing parts in braces.
    fn show(pieces: &[Piece]) -> String {
        pieces.iter().map(|p| if p.differs { format!("{{{}}}", p.text) } else { p.text.clone() }).collect()
    }

    fn both(prediction: &str, target: &str) -> (String, String) {
        let (a, b) = diff(prediction, target);
        (show(&a), show(&b))
    }

    #[test]
    fn whole_numbers_are_marked() {
        assert_eq!(both("12*x1^2+3", "18*x1^2+3"), ("{12}*x1^2+3".into(), "{18}*x1^2+3".into()));
        assert_eq!(both("6*x1", "6*x1+4"), ("6*x1".into(), "6*x1{+4}".into()));
        assert_eq!(both("x1+4", "x2+4"), ("{x1}+4".into(), "{x2}+4".into()));
        assert_eq!(both("", "4"), ("".into(), "{4}".into()));
        assert_eq!(both("4", "4"), ("4".into(), "4".into()));
    }

    #[test]
    fn a_shared_sign_between_differences_belongs_to_them() {
        assert_eq!(both("(12*x2)", "(18*x1)"), ("({12*x2})".into(), "({18*x1})".into()));
    }

    #[test]
    fn prefix_keeps_its_blanks() {
        assert_eq!(both("* INT+ 1 2 x1", "* INT+ 1 3 x1"), ("* INT+ 1 {2} x1".into(), "* INT+ 1 {3} x1".into()));
    }

    proptest! {
        /// Nothing is lost, and without the marks what both keep is equal.
        #[test]
        fn the_pieces_are_the_text(a in "[0-9x+*()^ ]{0,40}", b in "[0-9x+*()^ ]{0,40}") {
            let (left, right) = diff(&a, &b);
            let join = |pieces: &[Piece]| pieces.iter().map(|p| p.text.as_str()).collect::<String>();
            prop_assert_eq!(join(&left), a.clone());
            prop_assert_eq!(join(&right), b.clone());
            let kept = |pieces: &[Piece]| pieces.iter().filter(|p| !p.differs).map(|p| p.text.as_str()).collect::<String>();
            if a == b {
                prop_assert_eq!(kept(&left), a);
            }
        }
    }
}

//! Attention between terms: which terms of the input the model looked at while it wrote each new term.
//!
//! A model writes tokens, and people read terms. The attention of a term is the mean over its tokens. What a term receives is the
//! sum over its tokens. The rest went to signs and parentheses.

use std::ops::Range;

use polystep_core::notation::laid_out;
use polystep_core::token::{self, decode, decoded_spans, name};
use polystep_core::{Notation, Writing};
use polystep_learn::decode::AttentionMap;
use serde::Serialize;

/// A part of a line: a term, or what stands between two terms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinePart {
    /// Its text.
    pub text: String,
    /// Whether it is a term.
    pub term: bool,
    /// Whether it is a term that the other line does not have in this place.
    pub new: bool,
}

/// From each term of the output to each term of the input.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TermAttention {
    /// The input, cut into its terms.
    pub source: Vec<LinePart>,
    /// The output, cut into its terms.
    pub target: Vec<LinePart>,
    /// A row for each term of the output, a number for each term of the input.
    pub weights: Vec<Vec<f32>>,
}

/// Adds up the attention of tokens to that of terms; none if the terms of a line are not known.
pub fn term_attention(writing: &Writing, input: &[u8], output: &[u8], map: &AttentionMap) -> Option<TermAttention> {
    let (from, to) = (terms(input, writing)?, terms(output, writing)?);
    let weight = |row: &Range<usize>, column: &Range<usize>| {
        let sum: f32 = row.clone().map(|token| map.row(token)[column.clone()].iter().sum::<f32>()).sum();
        sum / row.len() as f32
    };
    let weights = to.iter().map(|row| from.iter().map(|column| weight(row, column)).collect()).collect();
    Some(TermAttention {
        source: parts(input, output, &from, writing.notation),
        target: parts(output, input, &to, writing.notation),
        weights,
    })
}

/// Where the terms of a line are, as ranges of its tokens.
fn terms(tokens: &[u8], writing: &Writing) -> Option<Vec<Range<usize>>> {
    match writing.notation {
        Notation::Infix => Some(infix_terms(tokens)),
        Notation::Prefix => {
            let (laid, layout) = laid_out(&writing.state(tokens)?, Notation::Prefix, writing.style);
            (laid == tokens).then(|| layout.terms.into_iter().flatten().flatten().collect())
        }
    }
}

/// A term in infix is what stands between signs and parentheses; a bracket belongs to its term.
fn infix_terms(tokens: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut open, mut depth) = (Vec::new(), None, 0);
    for (at, &token) in tokens.iter().enumerate() {
        depth += i32::from(token == token::BRACKET) - i32::from(token == token::UNBRACKET);
        let outside = depth == 0 && token != token::UNBRACKET;
        let ends = outside && (matches!(name(token), "(" | ")" | "+" | "-" | "#" | "$") || token::is_tag(token));
        match (ends, open) {
            (true, Some(start)) => {
                found.push(start..at);
                open = None;
            }
            // The sign between two factors is no term.
            (false, None) if name(token) != "*" => open = Some(at),
            _ => {}
        }
    }
    found.extend(open.map(|start| start..tokens.len()));
    found
}

/// A line cut at its terms. A term is new if it is not among the tokens that both lines begin or end with.
fn parts(tokens: &[u8], other: &[u8], terms: &[Range<usize>], notation: Notation) -> Vec<LinePart> {
    let same = |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(a, b)| a == b).count();
    let left = same(&mut tokens.iter().zip(other));
    let right = tokens.len() - same(&mut tokens.iter().rev().zip(other.iter().rev()));
    let (text, spans) = (decode(tokens, notation), decoded_spans(tokens, notation));
    let (mut parts, mut at) = (Vec::new(), 0);
    let mut push = |text: &str, term: bool, new: bool| {
        if !text.is_empty() {
            parts.push(LinePart { text: text.to_owned(), term, new });
        }
    };
    for term in terms {
        let (start, end) = (spans[term.start].start, spans[term.end - 1].end);
        push(&text[at..start], false, false);
        // A term ends where the next token says so: it is old only if that token is old, too.
        push(&text[start..end], true, term.end >= left && term.start <= right);
        at = end;
    }
    push(&text[at..], false, false);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_core::Setting;
    use polystep_core::token::encode;

    fn cut(text: &str, notation: Notation) -> Vec<String> {
        let (tokens, writing) = (encode(text).unwrap(), Writing { notation, ..Writing::default() });
        let spans = terms(&tokens, &writing).unwrap();
        spans.into_iter().map(|term| decode(&tokens[term], notation)).collect()
    }

    #[test]
    fn lines_are_cut_at_their_terms() {
        assert_eq!(cut("(2*x1^2+3)*(x2)+(4)", Notation::Infix), ["2*x1^2", "3", "x2", "4"]);
        assert_eq!(cut("([3*4+5]*x1)*(2)", Notation::Infix), ["[3*4+5]*x1", "2"]);
        assert_eq!(cut("MUL $ #(x1)*(2)#+(3)", Notation::Infix), ["x1", "2", "3"]);
        assert_eq!(cut("+ * INT+ 2 x1 INT+ 3", Notation::Prefix), ["* INT+ 2 x1", "INT+ 3"]);
    }

    #[test]
    fn weights_are_means_of_sums() {
        let writing = Writing { setting: Setting::Plain, ..Writing::default() };
        let [input, output] = ["(x1)*(2)", "2*x1"].map(|text| encode(text).unwrap());
        // Seven tokens and the end; the first token of the output looks at x1, the others at 2.
        let mut weights = vec![0.0; 4 * 8];
        for (row, column) in [(0, 1), (1, 5), (2, 5), (3, 7)] {
            weights[row * 8 + column] = 1.0;
        }
        let found = term_attention(&writing, &input, &output, &AttentionMap { source: 8, weights }).unwrap();
        let texts: Vec<&str> = found.source.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(texts, ["(", "x1", ")*(", "2", ")"]);
        let row = &found.weights[0];
        assert!((row[0] - 1.0 / 3.0).abs() < 1e-6 && (row[1] - 2.0 / 3.0).abs() < 1e-6, "{row:?}");
    }

    #[test]
    fn a_term_that_was_copied_is_not_new() {
        let [a, b] = ["(x1+x1)*(2)+(3)", "(2*x1)*(2)+(3)"].map(|text| encode(text).unwrap());
        let new: Vec<(String, bool)> = parts(&b, &a, &infix_terms(&b), Notation::Infix)
            .into_iter()
            .filter(|part| part.term)
            .map(|part| (part.text, part.new))
            .collect();
        assert_eq!(new, [("2*x1".into(), true), ("2".into(), false), ("3".into(), false)]);
    }
}

//! Characters to tokens, for text that a person may have typed.
//!
//! Blanks are skipped; `x_1`, `x_{1}`, `x`, `y`, `z`, `**`, `·` and `×` are understood. The lexer knows where each token stood,
//! so that every later complaint can point at it.

use std::ops::Range;

use super::{Complaint, Notation, NotationError};
use crate::monomial::MAX_VARS;
use crate::token;

/// A token and the bytes it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lexeme {
    pub token: u8,
    pub span: Range<usize>,
}

pub(super) fn lex(text: &str, notation: Notation) -> Result<Vec<Lexeme>, NotationError> {
    let mut lexemes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (token, len) = one(&text[at..], c, notation)
            .map_err(|(complaint, place)| NotationError::new(complaint, at + place.start..at + place.end))?;
        lexemes.push(Lexeme { token, span: at..at + len });
        at += len;
    }
    Ok(lexemes)
}

/// The token that `rest` begins with and its length, or what is wrong with it, and where.
fn one(rest: &str, c: char, notation: Notation) -> Result<(u8, usize), (Complaint, Range<usize>)> {
    let len = c.len_utf8();
    match c {
        '-' | '−' | '–' => Ok((token::MINUS, len)),
        '/' | '.' | '÷' => Err((Complaint::Fraction, 0..len)),
        '·' | '×' | '⋅' | '∗' => Ok((token::TIMES, len)),
        '*' if rest.starts_with("**") => Ok((token::POWER, 2)),
        '+' | '*' if notation == Notation::Infix && !rest.starts_with("+P") && !rest.starts_with("*F") => {
            Ok((if c == '+' { token::PLUS } else { token::TIMES }, 1))
        }
        'x' | 'X' | 'y' | 'Y' | 'z' | 'Z' => variable(rest, c.to_ascii_lowercase()),
        _ => match token::token_at(rest) {
            Some(found) => Ok(found),
            None if c.is_alphabetic() => Err((Complaint::Variable(word(rest)), 0..word(rest).len())),
            None => Err((Complaint::Character(c), 0..len)),
        },
    }
}

/// `x`, `x1`, `x_1`, `x_{1}`, `y`, `z`.
fn variable(rest: &str, letter: char) -> Result<(u8, usize), (Complaint, Range<usize>)> {
    let tail = &rest[1..];
    let underscore = tail.strip_prefix('_');
    let braced = underscore.and_then(|t| t.strip_prefix('{'));
    let digits_of = |t: &str| t.len() - t.trim_start_matches(|d: char| d.is_ascii_digit()).len();
    let (index, len) = match (braced, underscore) {
        (Some(t), _) if t[digits_of(t)..].starts_with('}') => (&t[..digits_of(t)], digits_of(t) + 4),
        (None, Some(t)) => (&t[..digits_of(t)], digits_of(t) + 2),
        (Some(_), _) => return Err((Complaint::Variable(rest[..3].to_owned()), 0..3)),
        (None, None) => (&tail[..digits_of(tail)], digits_of(tail) + 1),
    };
    let letter_after = rest[len..].chars().next().filter(|c| c.is_alphabetic());
    let var = match (letter, index, underscore) {
        ('x', "", None) => Some(0),
        ('y', "", None) => Some(1),
        ('z', "", None) => Some(2),
        ('x', n, _) => n.parse::<usize>().ok().filter(|n| (1..=MAX_VARS).contains(n)).map(|n| n - 1),
        _ => None,
    };
    match (var, letter_after) {
        (Some(v), None) => Ok((token::VAR + v as u8, len)),
        (Some(_), Some(c)) => Err((Complaint::MissingOperator, len..len + c.len_utf8())),
        (None, _) => Err((Complaint::Variable(rest[..len].to_owned()), 0..len)),
    }
}

fn word(rest: &str) -> String {
    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

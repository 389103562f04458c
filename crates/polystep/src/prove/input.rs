//! The expression to prove: what a person typed, or the strict prefix notation.
//!
//! Infix goes through [`typed`], which reads what people write. The proofs have no signs yet, so an expression with a
//! minus is refused here, at the minus.

use polystep_core::typed::{self, Names, TypedProblem};
use polystep_core::{Notation, State, Style, notation};

use crate::failure::{Failure, Result, bad_text};

/// An expression, ready to be proved.
pub struct Input {
    /// Where the proof starts.
    pub start: State,
    /// The names that the user gave to the variables.
    pub names: Names,
    /// The start in the user's names, if it differs from what was typed in more than spelling.
    pub read_as: Option<String>,
}

/// Reads an expression; one that holds `INT+` is in prefix.
pub fn read(text: &str, style: Style) -> Result<Input> {
    if text.contains("INT+") {
        let read = notation::parse(text, Notation::Prefix, style);
        let start = read.map_err(|e| bad_text("", text, e.span.clone(), &e, "here"))?;
        return Ok(Input { start, names: Names::default(), read_as: None });
    }
    let typed = match typed::read_in(text, style) {
        Ok(typed) => typed,
        Err(error) => {
            // The limits are there for what is rewritten. The strict language itself has none, and needs no rewriting.
            let strict = notation::parse(text, Notation::Infix, style).ok().filter(|_| is_limit(&error.problem));
            let refused = || bad_text("", text, error.span.clone(), &error, "here");
            return Ok(Input { start: strict.ok_or_else(refused)?, names: Names::default(), read_as: None });
        }
    };
    let start = typed.unsigned_state().ok_or_else(|| signed(text))?;
    let read_as = typed.rewritten().then(|| typed.text_in_names());
    Ok(Input { start, names: typed.names().clone(), read_as })
}

/// Whether an expression is only too large for the reader of what people type.
fn is_limit(problem: &TypedProblem) -> bool {
    use TypedProblem::{Factors, Products, Tokens, TooLarge, TooLong};
    matches!(problem, Factors(_) | Products(_) | Tokens(_) | TooLarge | TooLong)
}

/// Refuses an expression that the unsigned language cannot hold: it has a minus, or a zero.
fn signed(text: &str) -> Failure {
    let minus = text.char_indices().find(|(_, c)| "-−–—‒﹣".contains(*c));
    let zero = || text.char_indices().find(|&(i, c)| c == '0' && !text[..i].ends_with(|b: char| b.is_ascii_digit()));
    let (sentence, (at, found)) = match minus {
        Some(minus) => ("minus signs are not supported by the proofs yet", minus),
        None => ("zero is not supported by the proofs yet", zero().unwrap_or((0, ' '))),
    };
    bad_text("", text, at..at + found.len_utf8(), sentence, "here")
}

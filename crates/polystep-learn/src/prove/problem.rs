//! The expression to prove: what a person typed, or the strict prefix notation.
//!
//! Infix goes through [`typed`], which reads what people write.

use std::ops::Range;

use polystep_core::typed::{self, Names, TypedError, TypedProblem};
use polystep_core::{Notation, State, Style, notation};

/// An expression that cannot be read or proved: what is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ProblemError {
    /// One sentence.
    pub message: String,
    /// The bytes of the typed text that are wrong; empty at its end.
    pub span: Range<usize>,
}

impl ProblemError {
    fn new(message: impl ToString, span: Range<usize>) -> ProblemError {
        ProblemError { message: message.to_string(), span }
    }
}

/// An expression, ready to be proved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Where the proof starts.
    pub start: State,
    /// The names that the user gave to the variables.
    pub names: Names,
    /// The start in the user's names, if it differs from what was typed in more than spelling.
    pub read_as: Option<String>,
}

impl Problem {
    /// Reads what a person typed, within the limits of [`typed`].
    pub fn read(text: &str, style: Style) -> Result<Problem, ProblemError> {
        Problem::of_typed(text, style).map_err(|refused| refused.0)
    }

    /// Reads an expression; one that holds `INT+` or `INT-` is in prefix. The limits are there for what is rewritten. The strict language
    /// needs no rewriting, so it is read beyond them.
    pub fn read_any(text: &str, style: Style) -> Result<Problem, ProblemError> {
        let strict = |start: State| Problem { start, names: Names::default(), read_as: None };
        if ["INT+", "INT-"].iter().any(|int| text.contains(int)) {
            let read = notation::parse(text, Notation::Prefix, style);
            return read.map(strict).map_err(|e| ProblemError::new(&e, e.span.clone()));
        }
        Problem::of_typed(text, style).or_else(|(error, limit)| {
            let read = limit.then(|| notation::parse(text, Notation::Infix, style).ok()).flatten();
            read.map(strict).ok_or(error)
        })
    }

    /// Reads what a person typed. An error says, too, whether only a limit is in the way.
    fn of_typed(text: &str, style: Style) -> Result<Problem, (ProblemError, bool)> {
        let refused = |e: TypedError| (ProblemError::new(&e, e.span.clone()), is_limit(&e.problem));
        let typed = typed::read_in(text, style).map_err(refused)?;
        let read_as = typed.rewritten().then(|| typed.text_in_names());
        Ok(Problem { start: typed.state().clone(), names: typed.names().clone(), read_as })
    }
}

/// Whether an expression is only too large for the reader of what people type.
fn is_limit(problem: &TypedProblem) -> bool {
    use TypedProblem::{Factors, Products, Tokens, TooLarge, TooLong};
    matches!(problem, Factors(_) | Products(_) | Tokens(_) | TooLarge | TooLong)
}

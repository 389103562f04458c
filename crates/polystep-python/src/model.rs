//! Expressions that a person typed.

use polystep_core::{State, Style, typed as reader};
use pyo3::prelude::*;

use crate::error::bad_input;

/// Reads an expression that a person typed; an error shows the place.
pub fn typed(text: &str, style: Style) -> PyResult<State> {
    let read = reader::read_in(text, style).map_err(|e| bad_input(pointed(text, e.span.start, &e.to_string())))?;
    read.unsigned_state().ok_or_else(|| bad_input("minus signs are not supported by the proofs yet"))
}

/// A sentence about a place in a text: below it, if it is short, the text with a caret.
fn pointed(text: &str, at: usize, sentence: &str) -> String {
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    let short = text.len() <= 100 && !text.contains('\n');
    if short { format!("{sentence}\n{text}\n{}^", " ".repeat(before)) } else { sentence.to_owned() }
}

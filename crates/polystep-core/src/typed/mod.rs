//! What a person types, read as a state: `2(x-1)^2 - y` becomes `(2)*(x1-1)*(x1-1)+(-x2)`.
//!
//! People write `2x`, `(x+1)(x+2)`, `x²`, `\left(x+1\right)^{3}`, and letters of their own. The language of proofs has none
//! of that: a state is a sum of products of factors in x1 to x8. Reading goes through three stages:
//!
//! 1. `symbol`, with `spelling`, turns characters into symbols: numbers, names, exponents, signs and parentheses.
//! 2. `tree` turns symbols into the expression as it was typed.
//! 3. `rewrite` turns the expression into a sum of products of factors.
//!
//! Rewriting distributes over sums in inner parentheses, but never multiplies two sums: that is the work of the proof. Every
//! limit is checked by counting before anything is built, so `((x+1)^9999)^9999` is refused at once.
//!
//! Records and the outputs of models are never read here. They use the strict parser in [`notation`](crate::notation).

mod error;
mod limits;
mod names;
mod rewrite;
mod spelling;
mod symbol;
mod tree;

pub use error::{TypedError, TypedProblem};
pub use limits::{MAX_DEPTH, MAX_FACTORS, MAX_PRODUCTS, MAX_SYMBOLS, MAX_TOKENS};
pub use names::{Name, Names};

use crate::expr::State;
use crate::notation::{self, Notation, Style};
use symbol::{Symbol, SymbolKind};

/// An expression that a person typed, read as a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Typed {
    state: State,
    names: Names,
    style: Style,
    rewritten: bool,
}

/// Reads what a person typed, in the default style.
///
/// ```
/// let typed = polystep_core::typed::read("-2a(a-3) + 4a")?;
/// assert_eq!(typed.text(), "(-2*x1)*(x1-3)+(4*x1)");
/// assert_eq!(typed.text_in_names(), "(-2*a)*(a-3)+(4*a)");
///
/// let error = polystep_core::typed::read("x/2").unwrap_err();
/// assert_eq!(error.span, 1..2);
/// # Ok::<(), polystep_core::typed::TypedError>(())
/// ```
pub fn read(text: &str) -> Result<Typed, TypedError> {
    read_in(text, Style::default())
}

/// Reads what a person typed. The style decides whether a bare polynomial is in normal form, and how ones are written.
pub fn read_in(text: &str, style: Style) -> Result<Typed, TypedError> {
    let symbols = symbol::symbols(text)?;
    let names = Names::of(&symbols)?;
    let sum = tree::parse(text, &symbols, &names)?;
    let state = rewrite::rewrite(&sum, style)?;
    let mut typed = Typed { state, names, style, rewritten: false };
    typed.rewritten = spelling(&symbols) != spelling(&symbol::symbols(&typed.text_in_names())?);
    Ok(typed)
}

/// The symbols without multiplication signs: `2x²` and `2*x^2` are spelled alike.
fn spelling(symbols: &[Symbol]) -> Vec<SymbolKind> {
    symbols.iter().map(|s| s.kind).filter(|&kind| kind != SymbolKind::Times).collect()
}

impl Typed {
    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state in the strict infix language, with the variables x1 to x8.
    pub fn text(&self) -> String {
        notation::print(&self.state, Notation::Infix, self.style)
    }

    /// The state in the strict infix language, with the user's own names.
    pub fn text_in_names(&self) -> String {
        self.names.rename(&self.text())
    }

    /// Which name the user gave to which variable.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Whether the state differs from what was typed in more than spelling, so that "read as …" is worth showing.
    pub fn rewritten(&self) -> bool {
        self.rewritten
    }
}

#[cfg(test)]
mod tests;

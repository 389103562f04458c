//! LaTeX, for papers and slides. Output only.
//!
//! `(2*x2^2)*(3*x2^1+4)` becomes `\left(2 x_{2}^{2}\right) \left(3 x_{2}^{1} + 4\right)`: multiplication is juxtaposition.

use crate::expr::{State, Term};
use crate::monomial::Monomial;
use crate::notation::Style;

/// A state as LaTeX, without dollar signs.
pub fn latex(state: &State, style: Style) -> String {
    match state {
        State::Bare(poly) => sum(poly.terms().iter().map(|&(c, m)| Term::plain(c, m)), style),
        State::Sum(products) => {
            let factor = |f: &crate::expr::Factor| format!(r"\left({}\right)", sum(f.0.iter().copied(), style));
            let product = |p: &crate::expr::Product| p.0.iter().map(factor).collect::<Vec<_>>().join(" ");
            products.iter().map(product).collect::<Vec<_>>().join(" + ")
        }
    }
}

fn sum(terms: impl Iterator<Item = Term>, style: Style) -> String {
    terms.map(|t| term(t, style)).collect::<Vec<_>>().join(" + ")
}

fn term(term: Term, style: Style) -> String {
    let mut parts = Vec::new();
    if term.coeff != 1 || term.monomial == Monomial::ONE || (term.raw && style.ones) {
        parts.push(term.coeff.to_string());
    }
    for (var, e) in term.monomial.powers() {
        let exponent = if e > 1 || term.raw { format!("^{{{e}}}") } else { String::new() };
        parts.push(format!("x_{{{}}}{exponent}", var + 1));
    }
    parts.join(" ")
}

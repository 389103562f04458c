//! LaTeX, for papers and slides. Output only.
//!
//! `(2*x2^2)*(3*x2^1+4)` becomes `\left(2 x_{2}^{2}\right) \left(3 x_{2}^{1} + 4\right)`: multiplication is juxtaposition.

use crate::expr::{Factor, State, Term};
use crate::monomial::Monomial;
use crate::notation::Style;

/// A state as LaTeX, without dollar signs.
pub fn latex(state: &State, style: Style) -> String {
    match state {
        State::Bare(poly) => sum(&Factor::from(poly), style),
        State::Sum(products) => {
            let factor = |f: &Factor| format!(r"\left({}\right)", sum(f, style));
            let product = |p: &crate::expr::Product| p.0.iter().map(factor).collect::<Vec<_>>().join(" ");
            products.iter().map(product).collect::<Vec<_>>().join(" + ")
        }
    }
}

fn sum(factor: &Factor, style: Style) -> String {
    let mut text = String::new();
    for (i, &t) in factor.0.iter().enumerate() {
        text += match (i, t.coeff < 0) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        };
        text += &term(t, style);
    }
    text
}

/// A term without its sign.
fn term(term: Term, style: Style) -> String {
    let mut parts = Vec::new();
    let magnitude = term.coeff.unsigned_abs();
    if magnitude != 1 || term.monomial == Monomial::ONE || (term.raw && style.ones) {
        parts.push(magnitude.to_string());
    }
    for (var, e) in term.monomial.powers() {
        let exponent = if e > 1 || term.raw { format!("^{{{e}}}") } else { String::new() };
        parts.push(format!("x_{{{}}}{exponent}", var + 1));
    }
    parts.join(" ")
}

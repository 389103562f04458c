//! A signed state: a sum of products of factors, or a bare polynomial, whose coefficients may be negative or zero.
//!
//! Zero stands only as a whole factor or as a whole bare polynomial. A minus joins the terms of one factor and never joins
//! products: `(-2*x1)*(x1-3)+(4*x1)`.

use super::error::TypedProblem;
use crate::expr::{Factor, Product, State, Term};
use crate::monomial::Monomial;
use crate::notation::Style;
use crate::poly::Poly;

/// A signed integer times powers of variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignedTerm {
    /// The coefficient. It is 0 only if the term is a whole factor.
    pub coeff: i64,
    /// The powers of variables.
    pub monomial: Monomial,
    /// Whether first powers are written `^1` (and, with [`Style::ones`], a coefficient 1 as `1*`).
    pub raw: bool,
}

impl SignedTerm {
    /// A number.
    pub(super) fn number(coeff: i64) -> SignedTerm {
        SignedTerm { coeff, monomial: Monomial::ONE, raw: false }
    }

    /// The product, with every first power written plainly.
    pub(super) fn times(self, other: SignedTerm) -> Result<SignedTerm, TypedProblem> {
        let coeff = self.coeff.checked_mul(other.coeff).ok_or(TypedProblem::Overflow)?;
        let monomial = self.monomial.checked_mul(other.monomial).ok_or(TypedProblem::Degree)?;
        Ok(SignedTerm { coeff, monomial, raw: false })
    }

    /// The power, with every first power written plainly.
    pub(super) fn power(self, exponent: u64) -> Result<SignedTerm, TypedProblem> {
        let coeff = match self.coeff {
            0 | 1 => self.coeff,
            -1 if exponent.is_multiple_of(2) => 1,
            -1 => -1,
            c => u32::try_from(exponent).ok().and_then(|e| c.checked_pow(e)).ok_or(TypedProblem::Overflow)?,
        };
        let mut monomial = Monomial::ONE;
        for (variable, e) in self.monomial.powers() {
            let raised = u64::from(e).checked_mul(exponent).and_then(|e| u8::try_from(e).ok());
            let power = raised.and_then(|e| Monomial::power(variable, e)).ok_or(TypedProblem::Degree)?;
            monomial = monomial.checked_mul(power).ok_or(TypedProblem::Degree)?;
        }
        Ok(SignedTerm { coeff, monomial, raw: false })
    }

    /// Appends the term without its sign.
    fn write(self, style: Style, out: &mut String) {
        let written = self.coeff.unsigned_abs() != 1 || self.monomial == Monomial::ONE || (self.raw && style.ones);
        let mut parts = Vec::new();
        if written {
            parts.push(self.coeff.unsigned_abs().to_string());
        }
        for (variable, e) in self.monomial.powers() {
            let exponent = if e > 1 || self.raw { format!("^{e}") } else { String::new() };
            parts.push(format!("x{}{exponent}", variable + 1));
        }
        out.push_str(&parts.join("*"));
    }

    fn unsigned(self) -> Option<Term> {
        let coeff = u64::try_from(self.coeff).ok().filter(|&c| c > 0)?;
        Some(Term { coeff, monomial: self.monomial, raw: self.raw })
    }
}

/// A sum of terms as it is written: `-3*x1^2+x1-4`.
pub(super) fn terms_text(terms: &[SignedTerm], style: Style) -> String {
    let mut text = String::new();
    for (i, term) in terms.iter().enumerate() {
        match (term.coeff < 0, i) {
            (true, _) => text.push('-'),
            (false, 0) => {}
            (false, _) => text.push('+'),
        }
        term.write(style, &mut text);
    }
    text
}

/// How many tokens a sum of terms has in the strict infix language: `x1` is one, every other character is one.
pub(super) fn terms_tokens(terms: &[SignedTerm], style: Style) -> u64 {
    terms_text(terms, style).chars().filter(|&c| c != 'x').count() as u64
}

/// A state whose coefficients may be negative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SignedState {
    /// Products of factors of terms: `(-2*x1)*(x1-3)+(4*x1)`.
    Sum(Vec<Vec<Vec<SignedTerm>>>),
    /// A polynomial in normal form without parentheses: `-3*x1^2+x1-4`, or `0`.
    Bare(Vec<SignedTerm>),
}

impl SignedState {
    /// A polynomial that was typed without parentheses: bare if it is in normal form, else `(P)`.
    pub(super) fn bare_or_wrapped(terms: Vec<SignedTerm>, style: Style) -> SignedState {
        let sorted = terms.is_sorted_by(|a, b| style.order.compare(a.monomial, b.monomial).is_lt());
        if sorted && terms.iter().all(|t| !t.raw) {
            SignedState::Bare(terms)
        } else {
            SignedState::Sum(vec![vec![terms]])
        }
    }

    /// The state in the strict infix language.
    pub fn text(&self, style: Style) -> String {
        let factor = |terms: &Vec<SignedTerm>| format!("({})", terms_text(terms, style));
        let product = |factors: &Vec<Vec<SignedTerm>>| factors.iter().map(factor).collect::<Vec<_>>().join("*");
        match self {
            SignedState::Sum(products) => products.iter().map(product).collect::<Vec<_>>().join("+"),
            SignedState::Bare(terms) => terms_text(terms, style),
        }
    }

    /// The state of the unsigned language; `None` if a coefficient is not positive.
    pub fn unsigned(&self, style: Style) -> Option<State> {
        let factor = |terms: &Vec<SignedTerm>| terms.iter().map(|t| t.unsigned()).collect::<Option<_>>().map(Factor);
        let product = |factors: &Vec<Vec<SignedTerm>>| factors.iter().map(factor).collect::<Option<_>>().map(Product);
        match self {
            SignedState::Sum(products) => products.iter().map(product).collect::<Option<_>>().map(State::Sum),
            SignedState::Bare(terms) => {
                let terms: Vec<Term> = factor(terms)?.0;
                Poly::collect(terms.iter().map(|t| (t.coeff, t.monomial)), style.order).ok().map(State::Bare)
            }
        }
    }
}

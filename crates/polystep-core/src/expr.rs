//! The unsimplified state: a sum of products of factors, each factor a sum of terms (§2, P₀ … P₅).
//!
//! A state is either a sum of products with every factor in parentheses, or the endpoint, a bare polynomial; never a mixture.
//! A term remembers whether it is still written with its ones (`x1^1`): that is what a facstep removes, so `(x1^1)` and
//! `(x1)` are two states with one value.
//!
//! Zero stands only as a whole factor `(0)`, with one term whose coefficient is 0, or as the bare endpoint `0`.

use crate::monomial::{Monomial, TermOrder};
use crate::poly::{ArithmeticError, Poly};

/// An integer times powers of variables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The coefficient. It is 0 only if the term is a whole factor.
    pub coeff: i64,
    /// The powers of variables.
    pub monomial: Monomial,
    /// Whether first powers are written `^1` (and, with [`Style::ones`](crate::notation::Style), a coefficient ±1 as `1*`).
    pub raw: bool,
}

impl Term {
    /// A simplified term.
    pub fn plain(coeff: i64, monomial: Monomial) -> Term {
        Term { coeff, monomial, raw: false }
    }

    /// A term as it is sampled: written with its ones, if it has any to write. `one` says that its coefficient is such a one
    /// ([`Style::writes_one`](crate::notation::Style::writes_one)).
    pub fn raw(coeff: i64, monomial: Monomial, one: bool) -> Term {
        Term { coeff, monomial, raw: (one && monomial != Monomial::ONE) || monomial.has_first_power() }
    }
}

/// A sum of terms, not necessarily collected or sorted.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Factor(pub Vec<Term>);

impl Factor {
    /// The factor with its like terms collected, in term order.
    pub fn value(&self, order: TermOrder) -> Result<Poly, ArithmeticError> {
        Poly::collect(self.0.iter().map(|t| (t.coeff, t.monomial)), order)
    }

    /// Whether a facstep would leave it alone.
    pub fn is_simplified(&self, order: TermOrder) -> bool {
        self.0.iter().all(|t| !t.raw) && self.0.is_sorted_by(|a, b| order.compare(a.monomial, b.monomial).is_lt())
    }
}

impl From<&Poly> for Factor {
    fn from(poly: &Poly) -> Factor {
        let terms: Vec<Term> = poly.terms().iter().map(|&(c, m)| Term::plain(c, m)).collect();
        Factor(if terms.is_empty() { vec![Term::plain(0, Monomial::ONE)] } else { terms })
    }
}

/// A product of factors.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Product(pub Vec<Factor>);

impl Product {
    /// The expanded product.
    pub fn value(&self, order: TermOrder) -> Result<Poly, ArithmeticError> {
        self.0.iter().try_fold(Poly::one(), |p, f| p.mul(&f.value(order)?, order))
    }
}

/// One line of a proof.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// `(2*x2^2)*(3*x2^1+4)+(5*x1^2)*(2)`
    Sum(Vec<Product>),
    /// `6*x2^3-10*x1^2+8*x2^2` or `0`: the endpoint.
    Bare(Poly),
}

impl State {
    /// The polynomial that the state denotes.
    pub fn value(&self, order: TermOrder) -> Result<Poly, ArithmeticError> {
        match self {
            State::Sum(products) => {
                // Terms are collected only now and then: collecting after each product would take quadratic time.
                let mut terms: Vec<(i64, Monomial)> = Vec::new();
                let mut collected = 0;
                for product in products {
                    terms.extend_from_slice(product.value(order)?.terms());
                    if terms.len() > 2 * collected + (1 << 16) {
                        terms = Poly::collect(terms, order)?.terms().to_vec();
                        collected = terms.len();
                    }
                }
                Poly::collect(terms, order)
            }
            State::Bare(poly) => Poly::collect(poly.terms().iter().copied(), order),
        }
    }

    /// The products; a bare polynomial has none.
    pub fn products(&self) -> &[Product] {
        match self {
            State::Sum(products) => products,
            State::Bare(_) => &[],
        }
    }

    /// Whether it is the bare polynomial at the end of a proof.
    pub fn is_endpoint(&self) -> bool {
        matches!(self, State::Bare(_))
    }

    /// How many variables a space needs to hold it: the largest index that occurs.
    pub fn vars(&self) -> usize {
        let monomials: Vec<Monomial> = match self {
            State::Sum(products) => products.iter().flat_map(|p| &p.0).flat_map(|f| &f.0).map(|t| t.monomial).collect(),
            State::Bare(poly) => poly.terms().iter().map(|t| t.1).collect(),
        };
        monomials.iter().flat_map(|m| m.powers()).map(|(v, _)| v + 1).max().unwrap_or(0)
    }
}

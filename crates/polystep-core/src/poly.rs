//! A polynomial in normal form: no coefficient is 0, no two terms are alike, terms are in term order (the endpoint, P̂).
//!
//! Coefficients are signed 64-bit numbers and every operation is checked: an overflow is an error, never a wrapped number that
//! looks right. Like terms that cancel vanish, so the zero polynomial is the one without terms.

use thiserror::Error;

use crate::monomial::{Monomial, TermOrder};
use crate::proof::MAX_STATE_TERMS;

/// A number or a degree left the range that polystep computes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ArithmeticError {
    /// A coefficient is below −2^63 or above 2^63 − 1.
    #[error("a coefficient does not fit: coefficients go from -2^63 to 2^63 - 1")]
    Coefficient,
    /// A degree exceeds 255.
    #[error("a degree exceeds 255, the largest degree polystep computes with")]
    Degree,
    /// A product of sums has too many terms before they are collected.
    #[error("an expansion has more than {MAX_EXPANSION} terms")]
    Terms,
    /// A state of a proof has too many terms.
    #[error("a state has more than {MAX_STATE_TERMS} terms")]
    State,
}

/// The most terms that a product of two polynomials may have before they are collected.
pub const MAX_EXPANSION: usize = 1 << 22;

/// A polynomial in normal form.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Poly {
    terms: Vec<(i64, Monomial)>,
}

impl Poly {
    /// Collects like terms and sorts: the one way to make a `Poly`. What comes to 0 is left out.
    pub fn collect(
        terms: impl IntoIterator<Item = (i64, Monomial)>,
        order: TermOrder,
    ) -> Result<Poly, ArithmeticError> {
        let mut sorted: Vec<_> = terms.into_iter().collect();
        sorted.sort_by(|a, b| order.compare(a.1, b.1));
        let mut terms: Vec<(i64, Monomial)> = Vec::with_capacity(sorted.len());
        for alike in sorted.chunk_by(|a, b| a.1 == b.1) {
            // Only the whole sum has to fit, so the order of the terms does not matter.
            let sum: i128 = alike.iter().map(|t| i128::from(t.0)).sum();
            match i64::try_from(sum) {
                Ok(0) => {}
                Ok(coeff) => terms.push((coeff, alike[0].1)),
                Err(_) => return Err(ArithmeticError::Coefficient),
            }
        }
        Ok(Poly { terms })
    }

    /// The constant polynomial 1, the empty product.
    pub fn one() -> Poly {
        Poly { terms: vec![(1, Monomial::ONE)] }
    }

    /// Coefficients and monomials in term order; none for zero.
    pub fn terms(&self) -> &[(i64, Monomial)] {
        &self.terms
    }

    /// self + other.
    pub fn add(&self, other: &Poly, order: TermOrder) -> Result<Poly, ArithmeticError> {
        Poly::collect(self.terms.iter().chain(&other.terms).copied(), order)
    }

    /// self · other.
    pub fn mul(&self, other: &Poly, order: TermOrder) -> Result<Poly, ArithmeticError> {
        let expansion = self.terms.len() * other.terms.len();
        if expansion > MAX_EXPANSION {
            return Err(ArithmeticError::Terms);
        }
        let mut terms = Vec::with_capacity(expansion);
        for &(a, m) in &self.terms {
            for &(b, n) in &other.terms {
                let c = a.checked_mul(b).ok_or(ArithmeticError::Coefficient)?;
                terms.push((c, m.checked_mul(n).ok_or(ArithmeticError::Degree)?));
            }
        }
        Poly::collect(terms, order)
    }

    /// The largest coefficient without its sign.
    pub fn max_coeff(&self) -> u64 {
        self.terms.iter().map(|t| t.0.unsigned_abs()).max().unwrap_or(0)
    }

    /// The total degree.
    pub fn degree(&self) -> u32 {
        self.terms.iter().map(|t| t.1.degree()).max().unwrap_or(0)
    }

    /// A 64-bit name of the polynomial, the same in every term order and on every machine: the guard's key.
    pub fn fingerprint(&self) -> u64 {
        self.terms.iter().fold(0, |sum: u64, &(c, m)| sum.wrapping_add(fingerprint_term(c, m)))
    }
}

/// One term's share of [`Poly::fingerprint`]; the shares are added, so their order does not matter.
pub(crate) fn fingerprint_term(coeff: i64, monomial: Monomial) -> u64 {
    mix(coeff.cast_unsigned() ^ mix(monomial.bits() ^ 0x9e37_79b9_7f4a_7c15))
}

/// The finaliser of SplitMix64, a bijection of 64-bit words.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x(e: u8) -> Monomial {
        Monomial::power(0, e).unwrap()
    }

    #[test]
    fn products_and_sums_are_collected() {
        let order = TermOrder::Paper;
        // (3x + 4)(x + 4x^2) = 4x·3x^2… = 12x^3 + 19x^2 + 4x
        let a = Poly::collect([(4, x(0)), (3, x(1))], order).unwrap();
        let b = Poly::collect([(1, x(1)), (4, x(2))], order).unwrap();
        assert_eq!(a.mul(&b, order).unwrap().terms(), &[(12, x(3)), (19, x(2)), (4, x(1))]);
        assert_eq!(a.add(&b, order).unwrap().terms(), &[(4, x(2)), (4, x(1)), (4, x(0))]);
    }

    #[test]
    fn overflow_is_an_error() {
        let order = TermOrder::Paper;
        let big = Poly::collect([(i64::MAX, x(1))], order).unwrap();
        assert_eq!(big.add(&big, order), Err(ArithmeticError::Coefficient));
        assert_eq!(big.mul(&big, order), Err(ArithmeticError::Coefficient));
        let high = Poly::collect([(1, x(200))], order).unwrap();
        assert_eq!(high.mul(&high, order), Err(ArithmeticError::Degree));
    }

    #[test]
    fn terms_that_cancel_vanish() {
        let order = TermOrder::Paper;
        let found = Poly::collect([(i64::MAX, x(1)), (3, x(2)), (5, x(1)), (0, x(3)), (-5, x(1))], order).unwrap();
        assert_eq!(found.terms(), &[(3, x(2)), (i64::MAX, x(1))]);
        let (a, b) = ([(1, x(1)), (1, x(0))], [(1, x(1)), (-1, x(0))]);
        let [a, b] = [a, b].map(|terms| Poly::collect(terms, order).unwrap());
        assert_eq!(a.mul(&b, order).unwrap().terms(), &[(1, x(2)), (-1, x(0))]);
        let minus = Poly::collect([(-1, x(0))], order).unwrap();
        assert_eq!(a.add(&a.mul(&minus, order).unwrap(), order), Ok(Poly::default()));
    }

    #[test]
    fn the_fingerprint_ignores_the_term_order() {
        let y = Monomial::power(1, 3).unwrap();
        let xy = Monomial::from_exponents(&[2, 1]).unwrap();
        let terms = [(6, y), (6, xy)];
        let paper = Poly::collect(terms, TermOrder::Paper).unwrap();
        let grlex = Poly::collect(terms, TermOrder::Grlex).unwrap();
        assert_ne!(paper, grlex);
        assert_eq!(paper.fingerprint(), grlex.fingerprint());
    }
}

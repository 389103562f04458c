//! A monomial x1^a1 · x2^a2 · … in at most eight variables (§2 of the paper: the powers inside a term).
//!
//! The exponents are packed into one `u64`, one byte per variable, x1 in the highest byte, so that multiplying two
//! monomials is one addition. The total degree never exceeds 255: that keeps every byte from carrying into its neighbour.
//!
//! The decision a reader would get wrong: the term order is *not* graded lexicographic. The paper's own example,
//! `30*x1^3+6*x2^3+6*x1^2*x2+8*x2^2`, puts x2^3 before x1^2*x2, so within one degree fewer variables come first.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::named;

/// The vocabulary has the variables x1…x8.
pub const MAX_VARS: usize = 8;

/// The largest total degree a monomial can have.
pub const MAX_DEGREE: u32 = 255;

/// A product of powers of x1…x8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Monomial(u64);

impl Monomial {
    /// The empty product, 1.
    pub const ONE: Monomial = Monomial(0);

    /// x_{i+1}^exponent; `None` if there is no such variable.
    pub fn power(var: usize, exponent: u8) -> Option<Monomial> {
        (var < MAX_VARS).then(|| Monomial(u64::from(exponent) << shift(var)))
    }

    /// The monomial with these exponents of x1, x2, …; `None` if there are too many or their sum exceeds [`MAX_DEGREE`].
    pub fn from_exponents(exponents: &[u8]) -> Option<Monomial> {
        let mut product = Monomial::ONE;
        for (var, &e) in exponents.iter().enumerate() {
            product = product.checked_mul(Monomial::power(var, e)?)?;
        }
        Some(product)
    }

    /// The exponent of x_{var+1}.
    pub fn exponent(self, var: usize) -> u8 {
        if var < MAX_VARS { (self.0 >> shift(var)) as u8 } else { 0 }
    }

    /// The variables that occur, with their exponents, x1 first.
    pub fn powers(self) -> impl Iterator<Item = (usize, u8)> {
        (0..MAX_VARS).map(move |v| (v, self.exponent(v))).filter(|&(_, e)| e > 0)
    }

    /// The sum of the exponents.
    pub fn degree(self) -> u32 {
        // Σ bytes ≤ 255, so the top byte of the product holds it without a carry.
        (self.0.wrapping_mul(0x0101_0101_0101_0101) >> 56) as u32
    }

    /// How many variables occur.
    pub fn variables(self) -> u32 {
        self.powers().count() as u32
    }

    /// Whether some variable occurs to the first power, which an unsimplified factor writes as `^1`.
    pub fn has_first_power(self) -> bool {
        self.powers().any(|(_, e)| e == 1)
    }

    /// The product, unless its degree exceeds [`MAX_DEGREE`].
    pub fn checked_mul(self, other: Monomial) -> Option<Monomial> {
        (self.degree() + other.degree() <= MAX_DEGREE).then(|| Monomial(self.0 + other.0))
    }

    /// The packed exponents, a key for hashing.
    pub fn bits(self) -> u64 {
        self.0
    }
}

fn shift(var: usize) -> u32 {
    8 * (MAX_VARS - 1 - var) as u32
}

impl fmt::Debug for Monomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Monomial::ONE {
            return f.write_str("1");
        }
        for (i, (var, e)) in self.powers().enumerate() {
            let times = if i > 0 { "*" } else { "" };
            write!(f, "{times}x{}^{e}", var + 1)?;
        }
        Ok(())
    }
}

/// In which order the terms of a polynomial are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TermOrder {
    /// Degree descending, fewer variables first, then the higher exponent of x1, of x2, … first.
    #[default]
    Paper,
    /// Graded lexicographic: degree descending, then the higher exponent of x1, of x2, … first.
    Grlex,
}
named!(TermOrder, "order of terms": Paper "paper", Grlex "grlex");

impl TermOrder {
    /// `Less` when `a` is written before `b`.
    pub fn compare(self, a: Monomial, b: Monomial) -> Ordering {
        let by_degree = b.degree().cmp(&a.degree());
        let by_variables = match self {
            TermOrder::Paper => a.variables().cmp(&b.variables()),
            TermOrder::Grlex => Ordering::Equal,
        };
        by_degree.then(by_variables).then(b.0.cmp(&a.0))
    }
}

/// All monomials in the first `vars` variables up to `degree`, in term order. `None` if there are more than `limit`.
pub fn monomials(vars: usize, degree: u32, order: TermOrder, limit: usize) -> Option<Vec<Monomial>> {
    let mut all = vec![Monomial::ONE];
    for var in 0..vars {
        let mut wider = Vec::new();
        for &m in &all {
            for e in 0..=degree - m.degree() {
                wider.push(m.checked_mul(Monomial::power(var, u8::try_from(e).ok()?)?)?);
                if wider.len() > limit {
                    return None;
                }
            }
        }
        all = wider;
    }
    all.sort_unstable_by(|&a, &b| order.compare(a, b));
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn m(exponents: &[u8]) -> Monomial {
        Monomial::from_exponents(exponents).unwrap()
    }

    #[test]
    fn multiplying_adds_exponents() {
        assert_eq!(m(&[2, 1]).checked_mul(m(&[0, 3])), Some(m(&[2, 4])));
        assert_eq!(m(&[2, 4]).degree(), 6);
        assert_eq!(m(&[200]).checked_mul(m(&[0, 56])), None);
        assert_eq!(m(&[200]).checked_mul(m(&[0, 55])).unwrap().degree(), 255);
    }

    #[test]
    fn the_papers_order() {
        // 30*x1^3 + 6*x2^3 + 6*x1^2*x2 + 8*x2^2
        let terms = [m(&[3]), m(&[0, 3]), m(&[2, 1]), m(&[0, 2])];
        assert!(terms.is_sorted_by(|&a, &b| TermOrder::Paper.compare(a, b) == Ordering::Less));
        assert_eq!(TermOrder::Grlex.compare(terms[1], terms[2]), Ordering::Greater);
    }

    #[test]
    fn all_monomials_are_listed_once() {
        let all = monomials(2, 3, TermOrder::Paper, 100).unwrap();
        assert_eq!(all.len(), 10);
        assert_eq!(all[0], m(&[3]));
        assert_eq!(all[1], m(&[0, 3]));
        assert_eq!(all[9], Monomial::ONE);
        assert_eq!(monomials(8, 12, TermOrder::Paper, 65_535), None);
    }
}

//! The monomials of a space, numbered in term order: the sampler's arithmetic.
//!
//! A space has few monomials (7 of one variable up to degree 6, 91 of two up to degree 12), so a monomial is its rank, a
//! product of monomials is a table look-up, and a polynomial is a sorted list of (rank, coefficient). Rank 0 is written first.

use rustc_hash::FxHashMap;

use crate::monomial::{Monomial, TermOrder, monomials};
use crate::poly::mix;
use crate::space::SpaceError;

/// A coefficient and the rank of its monomial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cell {
    pub coeff: i64,
    pub rank: u16,
}

#[derive(Debug)]
pub(crate) struct Basis {
    pub monomials: Vec<Monomial>,
    pub degrees: Vec<u8>,
    /// `mix` of each monomial, for fingerprints.
    pub mixed: Vec<u64>,
    /// Rank of x_{v+1}^d at `v * (top + 1) + d`.
    powers: Vec<u16>,
    top: usize,
    /// Rank of m · x_{v+1} at `m * vars + v`.
    times: Vec<u16>,
    vars: usize,
    /// Rank of m · n at `m * len + n`, for small bases.
    products: Vec<u16>,
    ranks: FxHashMap<u64, u16>,
}

/// Largest basis whose multiplication table is stored.
const TABLE: usize = 512;
/// No monomial: a product beyond the space's degree.
const NONE: u16 = u16::MAX;

impl Basis {
    pub fn new(vars: usize, degree: u32, order: TermOrder) -> Result<Basis, SpaceError> {
        let monomials = monomials(vars, degree, order, usize::from(NONE)).ok_or(SpaceError::TooLarge {
            cap: "degree.polynomial",
            value: u64::from(degree),
            reason: format!("with {vars} variables there are more than {NONE} monomials"),
        })?;
        let ranks: FxHashMap<u64, u16> = monomials.iter().enumerate().map(|(i, m)| (m.bits(), i as u16)).collect();
        let rank = |m: Option<Monomial>| m.and_then(|m| ranks.get(&m.bits()).copied()).unwrap_or(NONE);
        let top = degree as usize;
        let powers = (0..vars).flat_map(|v| (0..=top).map(move |d| Monomial::power(v, d as u8))).map(rank).collect();
        let times =
            monomials.iter().flat_map(|m| (0..vars).map(|v| m.checked_mul(Monomial::power(v, 1)?))).map(rank).collect();
        let len = monomials.len();
        let products = if len > TABLE {
            Vec::new()
        } else {
            monomials.iter().flat_map(|m| monomials.iter().map(|n| m.checked_mul(*n))).map(rank).collect()
        };
        let degrees = monomials.iter().map(|m| m.degree() as u8).collect();
        let mixed = monomials.iter().map(|m| mix(m.bits() ^ 0x9e37_79b9_7f4a_7c15)).collect();
        Ok(Basis { monomials, degrees, mixed, powers, top, times, vars, products, ranks })
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.monomials.len()
    }

    /// The rank of x_{v+1}^d.
    #[inline]
    pub fn power(&self, var: usize, d: usize) -> u16 {
        self.powers[var * (self.top + 1) + d]
    }

    /// The rank of m · x_{v+1}.
    #[inline]
    pub fn times(&self, rank: u16, var: usize) -> u16 {
        self.times[usize::from(rank) * self.vars + var]
    }

    /// The rank of the constant monomial, the last one.
    #[inline]
    pub fn one(&self) -> u16 {
        (self.monomials.len() - 1) as u16
    }

    /// The rank of a product that lies in the space.
    #[inline]
    pub fn product(&self, a: u16, b: u16) -> u16 {
        if self.products.is_empty() {
            let product = self.monomials[usize::from(a)].checked_mul(self.monomials[usize::from(b)]);
            return product.map_or(NONE, |m| self.ranks[&m.bits()]);
        }
        self.products[usize::from(a) * self.monomials.len() + usize::from(b)]
    }

    /// Adds left · right.
    #[inline]
    pub fn multiply(&self, left: &[Cell], right: &[Cell], sum: &mut Accumulator) {
        let len = self.monomials.len();
        if self.products.is_empty() {
            for a in left {
                for b in right {
                    sum.add(self.product(a.rank, b.rank), a.coeff * b.coeff);
                }
            }
            return;
        }
        for a in left {
            let row = &self.products[usize::from(a.rank) * len..][..len];
            for b in right {
                sum.add(row[usize::from(b.rank)], a.coeff * b.coeff);
            }
        }
    }

    /// The share of one term in [`Poly::fingerprint`](crate::poly::Poly::fingerprint).
    #[inline]
    pub fn fingerprint(&self, cell: Cell) -> u64 {
        mix(cell.coeff.cast_unsigned() ^ self.mixed[usize::from(cell.rank)])
    }
}

/// A polynomial being summed: coefficients by rank, and which ranks occur.
#[derive(Debug)]
pub(crate) struct Accumulator {
    coeffs: Vec<i64>,
    present: Vec<u64>,
}

impl Accumulator {
    pub fn new(basis: &Basis) -> Accumulator {
        Accumulator { coeffs: vec![0; basis.len()], present: vec![0; basis.len().div_ceil(64)] }
    }

    #[inline]
    pub fn add(&mut self, rank: u16, coeff: i64) {
        let rank = usize::from(rank);
        self.coeffs[rank] += coeff;
        self.present[rank / 64] |= 1 << (rank % 64);
    }

    #[inline]
    pub fn coeff(&self, rank: u16) -> i64 {
        self.coeffs[usize::from(rank)]
    }

    /// Appends the terms of an unsigned polynomial in order and leaves the accumulator empty. Returns the largest coefficient.
    #[inline]
    pub fn drain(&mut self, out: &mut Vec<Cell>) -> i64 {
        let mut largest = 0;
        for (w, word) in self.present.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let rank = 64 * w + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let coeff = std::mem::take(&mut self.coeffs[rank]);
                largest = largest.max(coeff);
                out.push(Cell { coeff, rank: rank as u16 });
            }
        }
        largest
    }

    /// [`drain`](Accumulator::drain) where terms may have cancelled: those are left out.
    pub fn drain_signed(&mut self, out: &mut Vec<Cell>) {
        let from = out.len();
        self.drain(out);
        let mut to = from;
        for i in from..out.len() {
            out[to] = out[i];
            to += usize::from(out[i].coeff != 0);
        }
        out.truncate(to);
    }
}

//! The dropout mask of one op in one step. It is not stored: the backward op draws the same mask again. See [`crate::philox`].
//!
use crate::Dropout;
use crate::philox::{philox_many, threshold};

/// Counters drawn at once.
const SIDE: usize = 8;

/// A mask: a function of row and column.
#[derive(Clone, Copy)]
pub struct Mask {
    limit: u32,
    scale: f32,
    site: u32,
    seed: u64,
}

impl Mask {
    /// The mask of an op, if it has dropout.
    pub fn new(dropout: Option<Dropout>, seed: u64) -> Option<Mask> {
        dropout.map(|Dropout { p, site }| Mask { limit: threshold(p), scale: 1.0 / (1.0 - p), site, seed })
    }

    /// Calls `f(column, factor)` for each of the first `d` columns of a row.
    #[inline(always)]
    pub fn row(&self, row: usize, d: usize, mut f: impl FnMut(usize, f32)) {
        for first in (0..d).step_by(4 * SIDE) {
            let counters = std::array::from_fn(|i| (first / 4 + i) as u32);
            let words = philox_many::<SIDE>([counters, [row as u32; SIDE], [self.site; SIDE], [0; SIDE]], self.seed);
            let mut keep = [0f32; 4 * SIDE];
            for i in 0..SIDE {
                for (w, words) in words.iter().enumerate() {
                    keep[4 * i + w] = if words[i] >= self.limit { self.scale } else { 0.0 };
                }
            }
            for (i, keep) in keep.into_iter().enumerate().take(d - first) {
                f(first + i, keep);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::philox::philox;

    /// The factors (0 or 1/(1 − p)) of columns 4c … 4c+3.
    fn keep4(p: f32, site: u32, seed: u64, row: usize, c: usize) -> [f32; 4] {
        let (limit, scale) = (threshold(p), 1.0 / (1.0 - p));
        philox([c as u32, row as u32, site, 0], seed).map(|w| if w >= limit { scale } else { 0.0 })
    }

    #[test]
    fn keeps_the_expectation() {
        let n = 100_000;
        let mean: f32 = (0..n / 4).flat_map(|c| keep4(0.3, 7, 42, 5, c)).sum::<f32>() / n as f32;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn the_same_as_one_by_one() {
        let (p, site, seed) = (0.3, 9, 0x0123_4567_89AB_CDEF);
        let mask = Mask::new(Some(Dropout { p, site }), seed).unwrap();
        for d in [1, 30, 64, 100] {
            let mut drawn = Vec::new();
            mask.row(77, d, |i, keep| {
                assert_eq!(i, drawn.len());
                drawn.push(keep);
            });
            let want: Vec<f32> = (0..d.div_ceil(4)).flat_map(|c| keep4(p, site, seed, 77, c)).take(d).collect();
            assert_eq!(drawn, want);
        }
    }
}

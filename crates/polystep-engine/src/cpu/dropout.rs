//! The dropout mask of one op in one step. It is not stored: the backward op draws the same mask again. See [`crate::philox`].
//!
//! Eight counters are drawn side by side, so that the compiler makes vector code of the generator. The numbers are those of
//! `philox::keep4`.

use crate::Dropout;
use crate::philox::threshold;

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
            let words = self.words(row, first / 4);
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

    /// `philox` of the counters (c + i, row, site, 0): word w of counter i is at `[w][i]`.
    #[inline(always)]
    fn words(&self, row: usize, c: usize) -> [[u32; SIDE]; 4] {
        let mut x: [[u32; SIDE]; 4] =
            [std::array::from_fn(|i| (c + i) as u32), [row as u32; SIDE], [self.site; SIDE], [0; SIDE]];
        let (mut k0, mut k1) = (self.seed as u32, (self.seed >> 32) as u32);
        for _ in 0..10 {
            let a: [u64; SIDE] = std::array::from_fn(|i| u64::from(x[0][i]) * 0xD251_1F53);
            let b: [u64; SIDE] = std::array::from_fn(|i| u64::from(x[2][i]) * 0xCD9E_8D57);
            x = [
                std::array::from_fn(|i| (b[i] >> 32) as u32 ^ x[1][i] ^ k0),
                std::array::from_fn(|i| b[i] as u32),
                std::array::from_fn(|i| (a[i] >> 32) as u32 ^ x[3][i] ^ k1),
                std::array::from_fn(|i| a[i] as u32),
            ];
            k0 = k0.wrapping_add(0x9E37_79B9);
            k1 = k1.wrapping_add(0xBB67_AE85);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::philox::keep4;

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

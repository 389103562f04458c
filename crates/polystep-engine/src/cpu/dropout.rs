//! The dropout mask of one place in one step; drawn again by the backward op. See [`crate::philox`].

use crate::Dropout;
use crate::philox::keep4;

/// A mask: a function of row and column.
#[derive(Clone, Copy)]
pub struct Mask {
    dropout: Dropout,
    seed: u64,
}

impl Mask {
    /// The mask of an op, if it has dropout.
    pub fn new(dropout: Option<Dropout>, seed: u64) -> Option<Mask> {
        dropout.map(|dropout| Mask { dropout, seed })
    }

    /// Calls `f(column, factor)` for each of the first `d` columns of a row.
    #[inline(always)]
    pub fn row(&self, row: usize, d: usize, mut f: impl FnMut(usize, f32)) {
        for c in 0..d.div_ceil(4) {
            let keep = keep4(self.dropout.p, self.dropout.site, self.seed, row, c);
            for (i, keep) in keep.into_iter().enumerate().take(d - 4 * c) {
                f(4 * c + i, keep);
            }
        }
    }
}

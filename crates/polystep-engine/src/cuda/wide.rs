//! The gradients of a linear layer whose output is fp32 (the logits), by wide.cu. The gradient of the output stays in fp32: neither
//! cuBLASLt nor product.cu takes it without rounding it to bf16.

use super::compile::Unit;
use super::driver::{Args, Grid};
use super::lower::slots;
use super::record::{Recorder, Sums};
use super::schedule::{Partial, Path, Resource};
use crate::{Dtype, EngineError, Param, Result, View};

/// Rows that a block takes at once, and columns; ROWS of wide.cu and its threads.
const TILE: (usize, usize) = (32, 128);

/// The most blocks that divide the rows of a weight gradient among themselves. Each leaves a whole matrix of partial sums.
const CHUNKS: usize = 96;

/// The most outputs: a thread keeps the sums of all of them in registers.
const OUTPUTS: usize = 64;

/// wide.cu for a weight.
pub(super) fn unit(w: Param) -> Unit {
    Unit::new("wide.cu", &[("V", w.rows), ("D", w.cols)])
}

impl Recorder<'_> {
    /// Whether the gradient of a layer's output is fp32. Then the layer has no bias, at most 64 outputs, and all of the slot.
    pub(super) fn is_wide(&self, dy: View, w: Param, b: Option<Param>) -> Result<bool> {
        if self.info().info(dy.slot).dtype != Dtype::F32 {
            return Ok(false);
        }
        let fits = b.is_none() && w.rows <= OUTPUTS && w.rows.is_multiple_of(4) && self.cols(dy.slot) == w.rows;
        if fits && w.cols.is_multiple_of(4) {
            return Ok(true);
        }
        Err(EngineError::Compile(format!(
            "the gradient of a linear layer with {} fp32 outputs: on CUDA there are at most {OUTPUTS}, a multiple of 4, without a bias",
            w.rows
        )))
    }

    /// `dx = dy·W`.
    pub(super) fn wide_input_gradient(&mut self, w: Param, dy: View, dx: View) -> Result {
        let rows = self.rows_of(dy.slot);
        let args =
            Args::default().ptrs([self.at(dy.slot), self.copy(w), self.view(dx)]).int(self.cols(dx.slot)).int(rows);
        let grid =
            Grid { blocks: (rows.div_ceil(TILE.0), w.cols.div_ceil(TILE.1), 1), threads: (TILE.1, 1), shared: 0 };
        self.overwritten(dx.slot);
        let work = self.kernel(&unit(w), "wide_dx", grid, args)?;
        self.submit(Path::Critical, &slots([dy.slot]), &slots([dx.slot]), work)
    }

    /// `grad(w) = dyᵀ·x`.
    pub(super) fn wide_weight_gradient(&mut self, x: View, w: Param, dy: View) -> Result {
        let (count, room) = self.blocks(dy.slot, TILE.0, CHUNKS);
        let from = self.partial(Partial::Outputs, room * w.len())?;
        let res = Resource::Partial(self.op, Partial::Outputs);
        let args = Args::default()
            .ptrs([self.at(dy.slot), self.view(x), from])
            .int(self.cols(x.slot))
            .int(self.rows_of(dy.slot));
        let grid = Grid { blocks: (count, w.cols.div_ceil(TILE.1), 1), threads: (TILE.1, 1), shared: 0 };
        let work = self.kernel(&unit(w), "wide_dw", grid, args)?;
        self.submit(Path::Side, &slots([x.slot, dy.slot]), &[res], work)?;
        self.reduce_into(Sums { from, count, stride: w.len(), res }, w)
    }
}

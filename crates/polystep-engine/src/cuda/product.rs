//! Matrix products by our own kernel, product.cu, where it beats cuBLASLt: with few rows. Its launch overlaps the end of the
//! one before, it fetches weights meanwhile, and it applies the activation, or its slope, to the tile in its hands. Weight
//! gradients have no activation and no weights, but a tile of theirs takes few multiprocessors from the critical path.

use super::compile::Unit;
use super::driver::{Args, Shape};
use super::lower::slots;
use super::record::{Columns, Recorder, Work};
use super::schedule::{Lane, Res};
use crate::{Activation, Dtype, EngineError, Op, Param, Slot, View};

/// What a product is of, and what follows it: NEXT and FLIP of product.cu.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// x·Wᵀ + b.
    Nothing,
    /// dy·W.
    Input,
    /// act(x·Wᵀ + b), the sum kept as well.
    Activation,
    /// dy·W∘act'(h), with its column sums.
    Slope,
    /// dyᵀ·x, in fp32.
    Weight,
}

/// Side of the square tile of the result that a block makes with its 128 threads.
const TILE: usize = 64;

/// Up to so many rows our kernel is quicker (measured on an H200; with more, cuBLASLt's tiles win).
const FEW: usize = 6144;

fn unit(next: Next) -> Unit {
    let (next, flip) = match next {
        Next::Nothing => (0, 0),
        Next::Input => (0, 1),
        Next::Activation => (1, 0),
        Next::Slope => (2, 1),
        Next::Weight => (3, 2),
    };
    Unit::new("product.cu", &[("NEXT", next), ("FLIP", flip)])
}

/// Every variant in use.
pub(super) fn units() -> [Unit; 5] {
    [Next::Nothing, Next::Input, Next::Activation, Next::Slope, Next::Weight].map(unit)
}

/// The most shared memory that a product takes.
pub(super) const SHARED: usize = shared(usize::MAX);

/// Tiles of both operands that lie in shared memory at once: more of them for sums over more than 256 columns (LONG).
const fn shared(k: usize) -> usize {
    let stages = if k > 256 { 6 } else { 4 };
    stages * 2 * TILE * TILE * 2
}

impl Recorder<'_> {
    /// Whether a product is small enough for our kernel.
    pub(super) fn small(&self, rows: usize) -> bool {
        rows <= FEW
    }

    /// A product by our own kernel; false if its shape does not fit. `kept` is the slot before the activation.
    pub(super) fn product(
        &mut self,
        next: Next,
        x: View,
        w: Param,
        bias: Option<Param>,
        y: View,
        kept: Option<Slot>,
        gelu: i32,
    ) -> Result<bool, EngineError> {
        let rows = self.rows_of(x.slot);
        let most = self.machine.most_rows(self.info().info(x.slot).rows);
        let (n, k) = if matches!(next, Next::Nothing | Next::Activation) { (w.rows, w.cols) } else { (w.cols, w.rows) };
        let unit = unit(next);
        let (ldx, ldy) = (self.cols(x.slot), self.cols(y.slot));
        let fits = [n, k, rows].iter().all(|size| size.is_multiple_of(TILE))
            && [ldx, ldy, x.col, y.col].iter().all(|c| c.is_multiple_of(8))
            && [x.slot, y.slot].iter().all(|s| self.info().info(*s).dtype == Dtype::Act)
            && self.machine.has(unit.clone(), "product");
        if !fits {
            return Ok(false);
        }
        let lines = rows / TILE;
        let sums = if next == Next::Slope { self.partial(4, most.min(FEW).div_ceil(TILE) * n)? } else { 0 };
        let args = Args::default()
            .ptr(self.view(x))
            .int(ldx)
            .ptr(self.copy(w))
            .int(w.cols)
            .ptr(bias.map_or(0, |b| self.copy(b)))
            .ptr(self.view(y))
            .int(ldy)
            .ptr(kept.map_or(0, |slot| self.at(slot)))
            .ptr(sums)
            .int(k)
            .int(gelu);
        let kernel = self.machine.kernel(unit, "product")?;
        let shape = Shape { grid: (n / TILE, rows / TILE, 1), block: (128, 1), shared: shared(k) };
        let res = Res::Partial(self.op, 4);
        let (mut reads, mut writes) = (slots([Some(x.slot)]), slots([Some(y.slot)]));
        self.overwritten(y.slot);
        let label = match next {
            Next::Nothing | Next::Weight => format!("product {rows}x{n}x{k}"),
            Next::Input => format!("dx product {rows}x{n}x{k}"),
            Next::Activation => {
                writes.extend(slots([kept]));
                format!("product+activation {rows}x{n}x{k}")
            }
            Next::Slope => {
                reads.extend(slots([kept]));
                writes.push(res);
                self.summed(y.slot, Columns { col: y.col, width: n, from: sums, count: lines, stride: n, res });
                format!("dx product+slope {rows}x{n}x{k}")
            }
        };
        self.submit(&label, Lane::Main, &reads, &writes, Work::Kernel(kernel, shape, args))?;
        Ok(true)
    }

    /// A weight gradient by our own kernel; false if its shape does not fit. It fills fewer multiprocessors than cuBLASLt's,
    /// which leaves more of them to the critical path.
    pub(super) fn weight_product(&mut self, x: View, w: Param, dy: View) -> Result<bool, EngineError> {
        let rows = self.rows_of(dy.slot);
        let unit = unit(Next::Weight);
        let (ldx, ldy) = (self.cols(x.slot), self.cols(dy.slot));
        let fits = [w.rows, w.cols, rows].iter().all(|size| size.is_multiple_of(TILE))
            && [ldx, ldy, x.col, dy.col].iter().all(|c| c.is_multiple_of(8))
            && [x.slot, dy.slot].iter().all(|s| self.info().info(*s).dtype == Dtype::Act)
            && w.offset.is_multiple_of(2)
            && self.machine.has(unit.clone(), "product");
        if !fits {
            return Ok(false);
        }
        let args = Args::default()
            .ptr(self.view(dy))
            .int(ldy)
            .ptr(self.view(x))
            .int(ldx)
            .ptr(0)
            .ptr(self.grad(w))
            .int(w.cols)
            .ptr(0)
            .ptr(0)
            .int(rows)
            .int(0);
        let kernel = self.machine.kernel(unit, "product")?;
        let shape = Shape { grid: (w.cols / TILE, w.rows / TILE, 1), block: (128, 1), shared: shared(rows) };
        let label = format!("dw product {}x{}x{rows}", w.rows, w.cols);
        let reads = slots([Some(x.slot), Some(dy.slot)]);
        self.submit(&label, Lane::Side, &reads, &[Res::Grad(w.offset)], Work::Kernel(kernel, shape, args))?;
        Ok(true)
    }

    /// Two neighbouring ops in one launch, if they are a linear layer and its activation, or the gradients of both.
    pub(super) fn fused(&mut self, op: &Op, next: &Op) -> Result<bool, EngineError> {
        let gelu = |kind: &Activation| i32::from(*kind == Activation::Gelu);
        match (op, next) {
            (Op::Linear { x, w, b, y }, Op::Activate { kind, x: h, y: a })
                if y.slot == *h && self.whole(*y, w.rows) && self.small(self.rows_of(*h)) =>
            {
                let out = View { slot: *a, col: 0 };
                self.overwritten(*h);
                self.product(Next::Activation, *x, *w, *b, out, Some(*h), gelu(kind))
            }
            (Op::LinearBack { x, w, b, dy, dx: Some(dx) }, Op::ActivateBack { kind, x: h, d })
                if dx.slot == *d
                    && self.whole(*dx, w.cols)
                    && ![x.slot, dy.slot].contains(d)
                    && self.small(self.rows_of(*d)) =>
            {
                if !self.product(Next::Slope, *dy, *w, None, *dx, Some(*h), gelu(kind))? {
                    return Ok(false);
                }
                self.bias_gradient(*dy, *b)?;
                self.weight_gradient(*x, *w, *dy)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether a view is all of its slot.
    fn whole(&self, view: View, width: usize) -> bool {
        view.col == 0 && self.cols(view.slot) == width
    }
}

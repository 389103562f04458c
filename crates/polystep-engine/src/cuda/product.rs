//! Matrix products by our own kernel, product.cu. It is used for products with few rows, where it is faster than cuBLASLt for three
//! reasons: its launch overlaps the end of the launch before; it fetches weights during that time; and it applies the activation,
//! or its slope, to a tile that is still in registers. For weight gradients the reason is another one: our kernel takes fewer
//! multiprocessors from the critical path.

use super::compile::Unit;
use super::driver::{Args, Grid};
use super::lower::{gelu, slots};
use super::record::{Columns, Recorder, Sums, Work};
use super::schedule::{Partial, Path, Resource};
use crate::{Activate, ActivateBack, Dtype, Linear, LinearBack, Op, Param, Result, View};

/// The operands of a product, and what follows it.
#[derive(Clone, Copy)]
pub(super) enum Next {
    /// x·Wᵀ + b.
    Nothing,
    /// dy·W.
    Input,
    /// act(x·Wᵀ + b). The sum before the activation is stored too.
    Activation(Activate),
    /// dy·W∘act'(h), with its column sums.
    Slope(Activate),
}

/// Side of the square tile of the result that a block makes with its 128 threads.
const TILE: usize = 64;

/// With at most this many rows our kernel is faster than cuBLASLt (measured on an H200).
const FEW: usize = 6144;

/// NEXT and FLIP of product.cu.
type Variant = (usize, usize);

const WEIGHT: Variant = (3, 2);

impl Next {
    fn variant(self) -> Variant {
        match self {
            Next::Nothing => (0, 0),
            Next::Input => (0, 1),
            Next::Activation(_) => (1, 0),
            Next::Slope(_) => (2, 1),
        }
    }
}

fn unit((next, flip): Variant) -> Unit {
    Unit::new("product.cu", &[("NEXT", next), ("FLIP", flip)])
}

/// Every variant in use.
pub(super) fn units() -> [Unit; 5] {
    [(0, 0), (0, 1), (1, 0), (2, 1), WEIGHT].map(unit)
}

/// The most shared memory that a product takes.
pub(super) const SHARED: usize = shared(usize::MAX);

/// Bytes of shared memory for sums over k columns. They hold several tiles of both operands, more of them if k > 256 (LONG).
const fn shared(k: usize) -> usize {
    let stages = if k > 256 { 6 } else { 4 };
    stages * 2 * TILE * TILE * 2
}

impl Recorder<'_> {
    /// Whether our kernel takes a product of these sizes and operands. It must have few rows, and no tile may cross an edge.
    fn fits(&self, rows: usize, sizes: [usize; 2], views: [View; 2], unit: &Unit) -> bool {
        rows <= FEW
            && [rows, sizes[0], sizes[1]].iter().all(|size| size.is_multiple_of(TILE))
            && views.iter().all(|v| v.col.is_multiple_of(8) && self.cols(v.slot).is_multiple_of(8))
            && views.iter().all(|v| self.info().info(v.slot).dtype == Dtype::Act)
            && self.machine.has(unit, "product")
    }

    /// A product by our own kernel; false if its shape does not fit.
    pub(super) fn product(&mut self, next: Next, x: View, w: Param, bias: Option<Param>, y: View) -> Result<bool> {
        let rows = self.rows_of(x.slot);
        let flip = matches!(next, Next::Input | Next::Slope(_));
        let (n, k) = if flip { (w.cols, w.rows) } else { (w.rows, w.cols) };
        let unit = unit(next.variant());
        if !self.fits(rows, [n, k], [x, y], &unit) {
            return Ok(false);
        }
        let (mut reads, mut writes) = (slots([x.slot]), slots([y.slot]));
        self.overwritten(y.slot);
        let (mut kept, mut sums) = (None, 0);
        let what = match next {
            Next::Nothing => "product",
            Next::Input => "dx product",
            Next::Activation(act) => {
                kept = Some(act);
                writes.extend(slots([act.x]));
                "product+activation"
            }
            Next::Slope(act) => {
                kept = Some(act);
                let most = self.machine.most_rows(self.info().info(x.slot).rows);
                sums = self.partial(Partial::Tiles, most.min(FEW).div_ceil(TILE) * n)?;
                let res = Resource::Partial(self.op, Partial::Tiles);
                reads.extend(slots([act.x]));
                writes.push(res);
                let sums = Sums { from: sums, count: rows / TILE, stride: n, res };
                self.summed(y.slot, Columns { col: y.col, width: n, sums });
                "dx product+slope"
            }
        };
        let operands = [self.operand(x), (self.copy(w), w.cols), self.operand(y)];
        let extra = [bias.map_or(0, |b| self.copy(b)), self.at_if(kept.map(|act| act.x)), sums];
        let activation = kept.map_or(0, |act| gelu(act.kind));
        let work = self.product_work(what, &unit, operands, extra, [rows, n, k], activation)?;
        self.submit(Path::Critical, &reads, &writes, work)?;
        Ok(true)
    }

    /// Address and row stride of a view.
    fn operand(&self, view: View) -> (u64, usize) {
        (self.view(view), self.cols(view.slot))
    }

    /// A launch of product.cu: C (m × n) from A and B, summed over k. `extra` are the bias, what is kept before an activation, and
    /// the column sums.
    fn product_work(
        &self,
        what: &str,
        unit: &Unit,
        [a, b, c]: [(u64, usize); 3],
        [bias, kept, sums]: [u64; 3],
        [m, n, k]: [usize; 3],
        activation: i32,
    ) -> Result<Work> {
        let args = Args::default().ptr(a.0).int(a.1).ptr(b.0).int(b.1).ptrs([bias, c.0]).int(c.1).ptrs([kept, sums]);
        let grid = Grid { blocks: (n / TILE, m / TILE, 1), threads: (128, 1), shared: shared(k) };
        let work = self.kernel(unit, "product", grid, args.int(k).int(activation))?;
        Ok(Work { label: format!("{what} {m}x{n}x{k}"), ..work })
    }

    /// A weight gradient by our own kernel; false if its shape does not fit. It fills fewer multiprocessors than cuBLASLt's,
    /// which leaves more of them to the critical path.
    pub(super) fn weight_product(&mut self, x: View, w: Param, dy: View) -> Result<bool> {
        let (rows, unit) = (self.rows_of(dy.slot), unit(WEIGHT));
        if !self.fits(rows, [w.rows, w.cols], [x, dy], &unit) || !w.offset.is_multiple_of(2) {
            return Ok(false);
        }
        let operands = [self.operand(dy), self.operand(x), (self.grad(w), w.cols)];
        let work = self.product_work("dw product", &unit, operands, [0; 3], [w.rows, w.cols, rows], 0)?;
        self.submit(Path::Side, &slots([x.slot, dy.slot]), &[Resource::Grad(w.offset)], work)?;
        Ok(true)
    }

    /// Two neighbouring ops in one launch, if they are a linear layer and its activation, or the gradients of both.
    pub(super) fn fused(&mut self, op: &Op, next: &Op) -> Result<bool> {
        match (*op, *next) {
            (Op::Linear(Linear { x, w, b, y }), Op::Activate(act)) if y.slot == act.x && self.whole(y, w.rows) => {
                self.overwritten(act.x);
                self.product(Next::Activation(act), x, w, b, act.y.into())
            }
            (
                Op::LinearBack(LinearBack { of: Linear { x, w, b, .. }, dy, dx: Some(dx) }),
                Op::ActivateBack(ActivateBack { of: act, d }),
            ) if dx.slot == d && self.whole(dx, w.cols) && ![x.slot, dy.slot].contains(&d) => {
                if !self.product(Next::Slope(act), dy, w, None, dx)? {
                    return Ok(false);
                }
                self.bias_gradient(dy, b)?;
                self.weight_gradient(x, w, dy)?;
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

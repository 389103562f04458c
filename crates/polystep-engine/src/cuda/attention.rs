//! Attention as launches of kernels. For short sequences there are kernels that hold a whole head in shared memory, for long ones
//! kernels that walk over tiles. A batch with both kinds launches both, side by side. Which kernels a graph needs is part of
//! its key.

use super::compile::{SHORT, Unit, short_units};
use super::driver::{Args, Grid};
use super::lower::slots;
use super::machine::{short_bytes, tile_bytes};
use super::record::{Columns, Recorder, Sums, Work};
use super::schedule::{Partial, Resource};
use crate::{Attention, AttentionBack, Batch, EngineError, Heads, Packed, Result, Side, View};

/// For each pair of (queries, keys): whether the batch has sequences of each length of [`SHORT`], and whether it has longer
/// ones. The length of a sequence is that of its longer side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Lengths([[bool; SHORT.len() + 1]; 4]);

impl Lengths {
    pub(super) fn of(batch: &Batch) -> Self {
        let kinds = |queries: &Packed, keys: &Packed| {
            let mut found = [false; SHORT.len() + 1];
            for longest in queries.lengths().zip(keys.lengths()).map(|(a, b)| a.max(b)) {
                found[SHORT.iter().position(|most| longest <= *most).unwrap_or(SHORT.len())] = true;
            }
            found
        };
        let (src, tgt) = (&batch.src, &batch.tgt);
        Lengths([kinds(src, src), kinds(src, tgt), kinds(tgt, src), kinds(tgt, tgt)])
    }

    fn get(&self, queries: Side, keys: Side) -> [bool; SHORT.len() + 1] {
        self.0[queries as usize * 2 + keys as usize]
    }
}

/// The kernels of one direction.
struct Kernels {
    short: &'static str,
    /// For long sequences: file, kernel, tiles in shared memory, blocks that share a sequence and head.
    long: (&'static str, &'static str, usize, usize),
    backward: bool,
}

impl Recorder<'_> {
    /// Whether a batch has too few heads to fill the device.
    fn few(&self, heads: Heads) -> bool {
        self.machine.limits.sequences * heads.count <= 2 * self.machine.device.info.processors
    }

    /// Blocks that share the tiles of one long sequence and head.
    fn splits(&self, heads: Heads) -> usize {
        if self.few(heads) { 2 } else { 1 }
    }

    /// The launches that together cover every sequence: each takes those with more than `above` and at most `rows` tokens
    /// (0: no limit), given as (rows, above).
    fn variants(&self, it: &Attention, kernel: &'static str) -> Vec<(usize, usize)> {
        let found = self.lengths.get(it.queries, it.keys);
        let mut loaded = short_units(it.heads.dim).map(|unit| self.machine.has(&unit, kernel));
        if self.few(it.heads) {
            // One launch for all is faster than one per length.
            let largest = (0..SHORT.len()).rev().find(|i| found[*i]).unwrap_or(0);
            loaded[..largest].fill(false);
        }
        let mut variants = Vec::new();
        let (mut above, mut seen) = (0, false);
        for i in 0..SHORT.len() {
            seen |= found[i];
            if loaded[i] {
                if seen {
                    variants.push((SHORT[i], above));
                }
                (above, seen) = (SHORT[i], false);
            }
        }
        if seen || found[SHORT.len()] || variants.is_empty() {
            variants.push((0, above));
        }
        variants
    }

    pub(super) fn check_heads(&self, heads: Heads, views: &[View]) -> Result {
        let aligned = views.iter().all(|v| v.col.is_multiple_of(8) && self.cols(v.slot).is_multiple_of(8));
        if heads.dim.is_multiple_of(8) && heads.dim <= 128 && aligned {
            return Ok(());
        }
        Err(EngineError::Compile(format!("heads of {} columns: on CUDA a head has 8, 16, … 128 columns", heads.dim)))
    }

    /// Queries, keys and values.
    fn operands(&self, it: &Attention) -> Args {
        let views = [it.q, it.k, it.v];
        Args::default().ptrs(views.map(|view| self.view(view))).ints(views.map(|view| self.cols(view.slot)))
    }

    /// The header, and the lengths on both sides.
    fn lengths_args(&self, it: &Attention, args: Args) -> Args {
        args.ptr(self.head()).ptrs([it.queries, it.keys].map(|side| self.input(self.block.cu[side as usize])))
    }

    /// All launches of one direction; they have the same arguments but for the last few.
    fn works(&self, it: &Attention, kernels: Kernels, args: Args) -> Result<Vec<Work>> {
        let (heads, dim) = (it.heads.count, it.heads.dim);
        let sequences = self.machine.limits.sequences.max(1);
        let mut works = Vec::new();
        for (i, (rows, above)) in self.variants(it, kernels.short).into_iter().enumerate() {
            let mut args = args.clone().int(above).int(i32::from(i == 0));
            works.push(if rows == 0 {
                let (file, name, tiles, shares) = kernels.long;
                let grid =
                    Grid { blocks: (heads, sequences, shares), threads: (128, 1), shared: tile_bytes(dim, tiles) };
                self.kernel(&Unit::new(file, &[("HD", dim)]), name, grid, args)?
            } else {
                if kernels.backward {
                    args = args.int(self.splits(it.heads));
                }
                let shared = short_bytes(dim, rows, kernels.backward);
                let grid = Grid { blocks: (heads, sequences, 1), threads: (2 * rows, 1), shared };
                let unit = Unit::new("attention_short.cu", &[("HD", dim), ("ROWS", rows)]);
                let work = self.kernel(&unit, kernels.short, grid, args)?;
                Work { label: format!("{} {rows}", kernels.short), ..work }
            });
        }
        Ok(works)
    }

    pub(super) fn attention(&mut self, it: &Attention) -> Result {
        self.check_heads(it.heads, &[it.q, it.k, it.v])?;
        let args = self.operands(it).ptrs([self.at(it.out), self.at(it.lse)]);
        let args = self
            .lengths_args(it, args)
            .int(it.queries as i32)
            .int(self.rows[it.queries as usize])
            .int(i32::from(it.causal));
        let long = ("attention.cu", "attention", 5, self.splits(it.heads));
        let works = self.works(it, Kernels { short: "attention_short", long, backward: false }, args)?;
        self.overwritten(it.out);
        self.submit_together(&slots([it.q.slot, it.k.slot, it.v.slot]), &slots([it.out, it.lse]), works)
    }

    pub(super) fn attention_back(&mut self, back: &AttentionBack) -> Result {
        let AttentionBack { of: it, dout, dq, dk, dv } = back;
        let grads = [(Partial::Queries, *dq), (Partial::Keys, *dk), (Partial::Values, *dv)];
        self.check_heads(it.heads, &[it.q, it.k, it.v, *dq, *dk, *dv])?;
        let splits = self.splits(it.heads);
        let lines = self.machine.limits.sequences.max(1) * splits;
        let width = it.heads.width();
        let mut args = self.operands(it).ptrs([it.out, *dout, it.lse].map(|slot| self.at(slot)));
        let mut sums = Vec::new();
        for (which, view) in grads {
            let from = self.partial(which, lines * width)?;
            args = args.raw([self.view(view), self.cols(view.slot) as u64, from, 0]);
            sums.push(Sums { from, count: lines, stride: width, res: Resource::Partial(self.op, which) });
        }
        let sides = [it.queries, it.keys];
        let args = self
            .lengths_args(it, args)
            .ints(sides.map(|side| side as i32))
            .ints(sides.map(|side| self.rows[side as usize]))
            .int(i32::from(it.causal));
        let long = ("attention_back.cu", "attention_back", 4, 2 * splits);
        let works = self.works(it, Kernels { short: "attention_back_short", long, backward: true }, args)?;
        let reads = slots([it.q.slot, it.k.slot, it.v.slot, it.out, it.lse, *dout]);
        let mut writes = slots(grads.map(|(_, view)| view.slot));
        writes.extend(sums.iter().map(|sums| sums.res));
        self.submit_together(&reads, &writes, works)?;
        // Other columns of the same slot may hold sums of another op of this pass (keys and values of all layers side by side).
        for ((_, view), sums) in grads.into_iter().zip(sums) {
            self.summed_part(view.slot, Columns { col: view.col, width, sums });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_longer_side() {
        let mut batch = Batch::default();
        batch.src.push(vec![4; 60]);
        batch.tgt.push(vec![4; 129]);
        let lengths = Lengths::of(&batch);
        assert_eq!(lengths.get(Side::Src, Side::Src), [true, false, false, false]);
        assert_eq!(lengths.get(Side::Tgt, Side::Src), [false, false, false, true]);
    }
}

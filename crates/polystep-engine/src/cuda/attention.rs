//! Attention as launches: short sequences go to kernels that hold a whole head in shared memory, long ones to kernels that
//! walk over tiles. A batch with both gets both, side by side; which of them a graph needs is part of its key.

use super::compile::{SHORT, Unit, short_units};
use super::driver::{Args, Shape};
use super::lower::slots;
use super::machine::{short_bytes, tile_bytes};
use super::record::{Columns, Recorder, Work};
use super::schedule::Res;
use crate::{Batch, EngineError, Op, Packed, Side, View};

/// For each pair of (queries, keys): whether there are sequences of each length of [`SHORT`], and longer ones; of a
/// sequence's two sides the longer one counts.
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

/// One launch for the sequences with more than `above` tokens, up to `rows` (0: without end).
struct Variant {
    rows: usize,
    above: usize,
}

impl Recorder<'_> {
    /// Too few heads in a batch to fill the device.
    fn few(&self, heads: usize) -> bool {
        self.machine.limits.sequences * heads <= 2 * self.machine.device.info.processors
    }

    /// Blocks that share the tiles of one long sequence and head.
    fn splits(&self, heads: usize) -> usize {
        if self.few(heads) { 2 } else { 1 }
    }

    /// The launches that together take every sequence.
    fn variants(&self, queries: Side, keys: Side, heads: usize, head_dim: usize, kernel: &'static str) -> Vec<Variant> {
        let found = self.lengths.get(queries, keys);
        let mut loaded = short_units(head_dim).map(|unit| self.machine.has(unit, kernel));
        if self.few(heads) {
            // One launch for all is quicker than one per length.
            let largest = (0..SHORT.len()).rev().find(|i| found[*i]).unwrap_or(0);
            loaded[..largest].fill(false);
        }
        let mut variants = Vec::new();
        let (mut above, mut seen) = (0, false);
        for i in 0..SHORT.len() {
            seen |= found[i];
            if loaded[i] {
                if seen {
                    variants.push(Variant { rows: SHORT[i], above });
                }
                (above, seen) = (SHORT[i], false);
            }
        }
        if seen || found[SHORT.len()] || variants.is_empty() {
            variants.push(Variant { rows: 0, above });
        }
        variants
    }

    pub(super) fn check_heads(&self, head_dim: usize, views: &[View]) -> Result<(), EngineError> {
        let aligned = views.iter().all(|v| v.col.is_multiple_of(8) && self.cols(v.slot).is_multiple_of(8));
        if head_dim.is_multiple_of(8) && head_dim <= 128 && aligned {
            return Ok(());
        }
        Err(EngineError::Compile(format!("heads of {head_dim} columns: on CUDA a head has 8, 16, … 128 columns")))
    }

    pub(super) fn attention(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::Attention { q, k, v, queries, keys, causal, heads, head_dim, out, lse } = op else { return Ok(()) };
        self.check_heads(*head_dim, &[*q, *k, *v])?;
        let args = Args::default()
            .ptr(self.view(*q))
            .ptr(self.view(*k))
            .ptr(self.view(*v))
            .int(self.cols(q.slot))
            .int(self.cols(k.slot))
            .int(self.cols(v.slot))
            .ptr(self.at(*out))
            .ptr(self.at(*lse))
            .ptr(self.input(0))
            .ptr(self.input(self.layout.cu[*queries as usize]))
            .ptr(self.input(self.layout.cu[*keys as usize]))
            .int(*queries as i32)
            .int(self.rows[*queries as usize])
            .int(i32::from(*causal));
        let sequences = self.machine.limits.sequences.max(1);
        let mut works = Vec::new();
        for (i, variant) in self.variants(*queries, *keys, *heads, *head_dim, "attention_short").into_iter().enumerate()
        {
            let args = args.clone().int(variant.above).int(i32::from(i == 0));
            works.push(if variant.rows == 0 {
                let kernel = self.machine.kernel(Unit::new("attention.cu", &[("HD", *head_dim)]), "attention")?;
                let grid = (*heads, sequences, self.splits(*heads));
                let shape = Shape { grid, block: (128, 1), shared: tile_bytes(*head_dim, 5) };
                ("attention".into(), Work::Kernel(kernel, shape, args))
            } else {
                let unit = Unit::new("attention_short.cu", &[("HD", *head_dim), ("ROWS", variant.rows)]);
                let kernel = self.machine.kernel(unit, "attention_short")?;
                let shared = short_bytes(*head_dim, variant.rows, false);
                let shape = Shape { grid: (*heads, sequences, 1), block: (2 * variant.rows, 1), shared };
                (format!("attention_short {}", variant.rows), Work::Kernel(kernel, shape, args))
            });
        }
        self.overwritten(*out);
        let reads = slots([Some(q.slot), Some(k.slot), Some(v.slot)]);
        self.submit_together(&reads, &slots([Some(*out), Some(*lse)]), works)
    }

    pub(super) fn attention_back(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::AttentionBack { q, k, v, queries, keys, causal, heads, head_dim, out, lse, dout, dq, dk, dv } = op
        else {
            return Ok(());
        };
        self.check_heads(*head_dim, &[*q, *k, *v, *dq, *dk, *dv])?;
        let splits = self.splits(*heads);
        let sequences = self.machine.limits.sequences.max(1);
        let lines = sequences * splits;
        let width = heads * head_dim;
        let mut grads = Vec::new();
        for (which, view) in [dq, dk, dv].into_iter().enumerate() {
            let sums = self.partial(which as u8, lines * width)?;
            grads.push((sums, [self.view(*view), self.cols(view.slot) as u64, sums, 0]));
        }
        let args = Args::default()
            .ptr(self.view(*q))
            .ptr(self.view(*k))
            .ptr(self.view(*v))
            .int(self.cols(q.slot))
            .int(self.cols(k.slot))
            .int(self.cols(v.slot))
            .ptr(self.at(*out))
            .ptr(self.at(*dout))
            .ptr(self.at(*lse))
            .raw(grads[0].1)
            .raw(grads[1].1)
            .raw(grads[2].1)
            .ptr(self.input(0))
            .ptr(self.input(self.layout.cu[*queries as usize]))
            .ptr(self.input(self.layout.cu[*keys as usize]))
            .int(*queries as i32)
            .int(*keys as i32)
            .int(self.rows[*queries as usize])
            .int(self.rows[*keys as usize])
            .int(i32::from(*causal));
        let mut works = Vec::new();
        let variants = self.variants(*queries, *keys, *heads, *head_dim, "attention_back_short");
        for (i, variant) in variants.into_iter().enumerate() {
            let args = args.clone().int(variant.above).int(i32::from(i == 0));
            works.push(if variant.rows == 0 {
                let unit = Unit::new("attention_back.cu", &[("HD", *head_dim)]);
                let kernel = self.machine.kernel(unit, "attention_back")?;
                let grid = (*heads, sequences, 2 * splits);
                let shape = Shape { grid, block: (128, 1), shared: tile_bytes(*head_dim, 4) };
                ("attention_back".into(), Work::Kernel(kernel, shape, args))
            } else {
                let unit = Unit::new("attention_short.cu", &[("HD", *head_dim), ("ROWS", variant.rows)]);
                let kernel = self.machine.kernel(unit, "attention_back_short")?;
                let shared = short_bytes(*head_dim, variant.rows, true);
                let shape = Shape { grid: (*heads, sequences, 1), block: (2 * variant.rows, 1), shared };
                (format!("attention_back_short {}", variant.rows), Work::Kernel(kernel, shape, args.int(splits)))
            });
        }
        let reads = slots([Some(q.slot), Some(k.slot), Some(v.slot), Some(*out), Some(*lse), Some(*dout)]);
        let mut writes = slots([dq, dk, dv].map(|view| Some(view.slot)));
        for which in 0..3 {
            writes.push(Res::Partial(self.op, which));
        }
        self.submit_together(&reads, &writes, works)?;
        // Other columns of the same slot may hold sums of another op of this pass (keys and values of all layers side by side).
        for (which, view) in [dq, dk, dv].into_iter().enumerate() {
            let res = Res::Partial(self.op, which as u8);
            let columns = Columns { col: view.col, width, from: grads[which].0, count: lines, stride: width, res };
            self.summed_part(view.slot, columns);
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

//! The input block of a step: header, cumulative lengths, ids, positions, labels. One copy to the device per step.
//!
//! Its layout depends on the graph's capacities alone, so the pointers that a graph holds stay right for every batch that
//! it runs on. Rows past the batch get token 0 at position 0: real table rows, so that forward values stay finite.

use crate::{Batch, Limits, Op, Packed, Program, Scalars};

/// 32-bit words of the header; `struct Header` in kernels/common.cuh.
const HEADER: usize = 16;

/// Where the parts begin, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Source, target.
    pub(super) cu: [usize; 2],
    pub(super) ids: [usize; 2],
    pub(super) pos: [usize; 2],
    pub(super) labels: usize,
    /// Of the lanes, while decoding.
    pub(super) parents: usize,
    pub(super) sources: usize,
    pub(super) words: usize,
    rows: [usize; 2],
    sequences: usize,
}

impl Layout {
    pub(super) fn new(limits: &Limits, src: usize, tgt: usize) -> Self {
        let mut at = HEADER;
        let mut take = |words: usize| {
            let begin = at;
            at += words.next_multiple_of(4);
            begin
        };
        let cu = [take(limits.sequences + 1), take(limits.sequences + 1)];
        let ids = [take(src), take(tgt)];
        let pos = [take(src), take(tgt)];
        let labels = take(tgt);
        let (parents, sources) = (take(limits.sequences), take(limits.sequences));
        Layout { cu, ids, pos, labels, parents, sources, words: at, rows: [src, tgt], sequences: limits.sequences }
    }

    /// Writes a batch. A batch of lanes answers the sources that were encoded before: `encoded` are their cumulative lengths.
    pub(super) fn fill(
        &self,
        out: &mut [u32],
        program: &Program,
        batch: &Batch,
        encoded: &[i32],
        scalars: &Scalars,
        result: usize,
    ) {
        let (correct1, correct2) = corrections(program, scalars.step);
        let tokens = [batch.src.tokens(), batch.tgt.tokens()];
        let header = [
            scalars.lr.to_bits(),
            correct1.to_bits(),
            correct2.to_bits(),
            (1.0 / tokens[1].max(1) as f32).to_bits(),
            scalars.seed as u32,
            (scalars.seed >> 32) as u32,
            batch.tgt.sequences().max(batch.src.sequences()) as u32,
            tokens[0] as u32,
            tokens[1] as u32,
            result as u32,
            batch.lanes.position as u32,
        ];
        out[..header.len()].copy_from_slice(&header);
        let mut put = |at: usize, values: &[i32], len: usize, rest: i32| {
            for (to, from) in out[at..at + len].iter_mut().zip(values.iter().copied().chain(std::iter::repeat(rest))) {
                *to = from as u32;
            }
        };
        for (side, packed) in [&batch.src, &batch.tgt].into_iter().enumerate() {
            let Packed { ids, pos, cu } = packed;
            put(self.cu[side], cu, self.sequences + 1, tokens[side] as i32);
            put(self.ids[side], ids, self.rows[side], 0);
            put(self.pos[side], pos, self.rows[side], 0);
        }
        put(self.labels, &batch.labels, self.rows[1], 0);
        if !batch.lanes.sources.is_empty() {
            put(self.cu[0], encoded, self.sequences + 1, encoded.last().copied().unwrap_or(0));
            put(self.parents, &batch.lanes.parents, self.sequences, 0);
            put(self.sources, &batch.lanes.sources, self.sequences, 0);
        }
    }
}

/// Words of the block for capacities.
pub(super) fn words(limits: &Limits, src: usize, tgt: usize) -> usize {
    Layout::new(limits, src, tgt).words
}

/// Adam's 1/(1 − βᵗ), in double precision as the CPU computes them.
fn corrections(program: &Program, step: u64) -> (f32, f32) {
    let betas = program.ops.iter().find_map(|op| match op {
        Op::Adam { beta1, beta2, .. } => Some((*beta1, *beta2)),
        _ => None,
    });
    let correct = |beta: f32| (1.0 / (1.0 - f64::from(beta).powf(step.max(1) as f64))) as f32;
    betas.map_or((1.0, 1.0), |(b1, b2)| (correct(b1), correct(b2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_past_the_batch_are_token_zero() {
        let limits = Limits { sequences: 3, src_tokens: 64, tgt_tokens: 64 };
        let layout = Layout::new(&limits, 64, 64);
        let mut batch = Batch::default();
        batch.src.push([5, 6]);
        batch.tgt.push([1, 7, 8]);
        batch.labels = vec![7, 8, 2];
        let mut out = vec![9; layout.words];
        let scalars = Scalars { lr: 1.0, step: 1, seed: 1 << 40 };
        layout.fill(&mut out, &Program::default(), &batch, &[], &scalars, 3);
        assert_eq!(out[4..10], [0, 256, 1, 2, 3, 3]);
        assert_eq!(out[layout.cu[0]..layout.cu[0] + 4], [0, 2, 2, 2]);
        assert_eq!(out[layout.ids[1]..layout.ids[1] + 4], [1, 7, 8, 0]);
        assert_eq!(out[layout.labels + 3], 0);
    }
}

//! The input block of a step: header, cumulative lengths, ids, positions, labels. One copy to the device per step.
//!
//! The places of its parts depend only on the capacities of the graph. So the pointers in a graph are right for every batch that it
//! runs on. Rows past the end of the batch get token 0 at position 0. These are real rows of the tables, so forward values stay
//! finite.

use crate::{Batch, Limits, Packed, Program, Scalars};

/// 32-bit words of the header; `struct Header` in kernels/common.cuh.
const HEADER: usize = 16;

/// Where the parts begin, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InputBlock {
    /// Source, target.
    pub(super) cu: [usize; 2],
    pub(super) ids: [usize; 2],
    pub(super) pos: [usize; 2],
    pub(super) labels: usize,
    /// The parts of the hypotheses, while decoding.
    pub(super) parents: usize,
    pub(super) sources: usize,
    pub(super) words: usize,
    rows: [usize; 2],
    sequences: usize,
}

impl InputBlock {
    pub(super) fn new(limits: &Limits, rows: [usize; 2]) -> Self {
        let [src, tgt] = rows;
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
        InputBlock { cu, ids, pos, labels, parents, sources, words: at, rows, sequences: limits.sequences }
    }

    /// Writes a batch. `encoded` are the cumulative lengths of the sources that were encoded before; hypotheses refer to these.
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
            batch.hypotheses.position as u32,
            scalars.eps.to_bits(),
            program.adam().map_or(0.0, |adam| adam.share_of_new(scalars.step)).to_bits(),
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
        if !batch.hypotheses.sources.is_empty() {
            put(self.cu[0], encoded, self.sequences + 1, encoded.last().copied().unwrap_or(0));
            put(self.parents, &batch.hypotheses.parents, self.sequences, 0);
            put(self.sources, &batch.hypotheses.sources, self.sequences, 0);
        }
    }
}

/// Adam's 1/(1 − βᵗ), in double precision as the CPU computes them.
fn corrections(program: &Program, step: u64) -> (f32, f32) {
    let correct = |beta: f32| (1.0 / (1.0 - f64::from(beta).powf(step.max(1) as f64))) as f32;
    program.adam().map_or((1.0, 1.0), |adam| (correct(adam.beta1), correct(adam.beta2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_past_the_batch_are_token_zero() {
        let limits = Limits { sequences: 3, src_tokens: 64, tgt_tokens: 64 };
        let block = InputBlock::new(&limits, [64, 64]);
        let mut batch = Batch::default();
        batch.src.push([5, 6]);
        batch.tgt.push([1, 7, 8]);
        batch.labels = vec![7, 8, 2];
        let mut out = vec![9; block.words];
        let scalars = Scalars { lr: 1.0, eps: 0.5, step: 1, seed: 1 << 40 };
        block.fill(&mut out, &Program::default(), &batch, &[], &scalars, 3);
        assert_eq!(out[4..10], [0, 256, 1, 2, 3, 3]);
        assert_eq!(out[11], 0.5f32.to_bits());
        assert_eq!(out[block.cu[0]..block.cu[0] + 4], [0, 2, 2, 2]);
        assert_eq!(out[block.ids[1]..block.ids[1] + 4], [1, 7, 8, 0]);
        assert_eq!(out[block.labels + 3], 0);
    }
}

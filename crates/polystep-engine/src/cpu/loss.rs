//! Softmax cross-entropy. Its gradient overwrites the logits. It also finds out which tokens and sequences are right.

use super::Buffer;
use super::math::{exp, max};
use super::rows::{Per, for_blocks};
use crate::{Packed, StepResult};

/// Target tokens per block.
const BLOCK: usize = 64;

/// Loss and counts of a batch; `right` receives one entry per sequence.
pub fn cross_entropy(
    (tgt, labels): (&Packed, &[i32]),
    vocab: usize,
    logits: &mut [f32],
    backward: bool,
    scratch: &mut Buffer,
    right: &mut Vec<bool>,
) -> StepResult {
    let rows = tgt.tokens();
    let mean = 1.0 / rows.max(1) as f32;
    // Loss, and whether the arg-max is right, of each token.
    let (report, work) = scratch.first(2 * rows + rows.div_ceil(BLOCK) * vocab).split_at_mut(2 * rows);
    let outs = [(&mut *report, Per::Row(2)), (&mut *logits, Per::Row(vocab)), (work, Per::Block(vocab))];
    for_blocks(rows, BLOCK, outs, |first, [report, logits, e]| {
        for (r, (report, row)) in report.chunks_exact_mut(2).zip(logits.chunks_exact_mut(vocab)).enumerate() {
            let label = labels[first + r] as usize;
            let top = max(row);
            let best = row.iter().position(|&x| x == top);
            for (e, x) in e.iter_mut().zip(&*row) {
                *e = exp(x - top);
            }
            let total: f32 = super::math::sum(vocab, |i| e[i]);
            report[0] = total.ln() + top - row[label];
            report[1] = f32::from(u8::from(best == Some(label)));
            if backward {
                let scale = mean / total;
                for (x, e) in row.iter_mut().zip(&*e) {
                    *x = e * scale;
                }
                row[label] -= mean;
            }
        }
    });
    right.clear();
    let token_right = |t: usize| report[2 * t + 1] > 0.0;
    right.extend(tgt.cu.windows(2).map(|w| (w[0] as usize..w[1] as usize).all(token_right)));
    let loss: f64 = report.chunks_exact(2).map(|r| f64::from(r[0])).sum();
    StepResult {
        loss: (loss / rows.max(1) as f64) as f32,
        grad_norm: 0.0,
        right_tokens: (0..rows).filter(|&t| token_right(t)).count() as u32,
        right_sequences: right.iter().filter(|&&r| r).count() as u32,
    }
}

//! Decoding one token per lane: attention over cached keys and values, and the best next tokens.
//!
//! Cached rows never move. Row `position·lanes + l` was written by lane l of that step; `lineage` says, for each lane of the
//! present step, which lane of every earlier step it descends from.

use super::Buffer;
use super::gemm::Cols;
use super::math::{exp, max, sum};
use super::rows::{Per, for_blocks};
use crate::Batch;

/// What one decoding step leaves for the next.
pub struct Decoding {
    lanes: usize,
    position: usize,
    /// `lineage[l][p]`: the ancestor of lane l at position p < position.
    lineage: Vec<Vec<u32>>,
    spare: Vec<Vec<u32>>,
    /// Which source each lane answers.
    sources: Vec<i32>,
    /// Cumulative lengths of the encoded sources.
    cu: Vec<i32>,
    /// Found by the last `top`.
    pub tokens: Vec<u8>,
    /// Their log-probabilities.
    pub logprobs: Vec<f32>,
}

impl Decoding {
    /// For at most so many lanes.
    pub fn new(lanes: usize) -> Decoding {
        Decoding {
            lanes,
            position: 0,
            lineage: Vec::new(),
            spare: Vec::new(),
            sources: Vec::new(),
            cu: Vec::new(),
            tokens: Vec::new(),
            logprobs: Vec::new(),
        }
    }

    /// Takes note of the batch: new sources, or new lanes with their parents.
    pub fn follow(&mut self, batch: &Batch) {
        if batch.src.tokens() > 0 {
            self.cu.clone_from(&batch.src.cu);
        }
        let lanes = &batch.lanes;
        if lanes.sources.is_empty() {
            return;
        }
        self.position = lanes.position;
        self.sources.clone_from(&lanes.sources);
        self.spare.resize(lanes.sources.len(), Vec::new());
        for (line, &parent) in self.spare.iter_mut().zip(&lanes.parents) {
            line.clear();
            if lanes.position > 0 {
                line.extend_from_slice(&self.lineage[parent as usize]);
                line.push(parent as u32);
            }
        }
        std::mem::swap(&mut self.lineage, &mut self.spare);
    }

    /// The `k` best tokens of every row of `logits`.
    pub fn top(&mut self, logits: &[f32], vocab: usize, k: usize) {
        self.tokens.clear();
        self.logprobs.clear();
        let mut order: Vec<usize> = Vec::with_capacity(vocab);
        for row in logits.chunks_exact(vocab) {
            let best = max(row);
            let log_sum = best + sum(vocab, |i| exp(row[i] - best)).ln();
            order.clear();
            order.extend(0..vocab);
            let better = |a: &usize, b: &usize| row[*b].total_cmp(&row[*a]).then(a.cmp(b));
            if k < vocab {
                order.select_nth_unstable_by(k - 1, better);
            }
            order[..k].sort_unstable_by(better);
            self.tokens.extend(order[..k].iter().map(|&t| t as u8));
            self.logprobs.extend(order[..k].iter().map(|&t| row[t] - log_sum));
        }
    }
}

/// Softmax attention of one lane, all heads at once: `out = Σ softmax(q·k(i)/√dim)·v(i)` over `n` rows.
fn attend<'a>(
    q: &[f32],
    n: usize,
    row: impl Fn(usize) -> (&'a [f32], &'a [f32]),
    (heads, dim): (usize, usize),
    scores: &mut Vec<f32>,
    out: &mut [f32],
) {
    let scale = 1.0 / (dim as f32).sqrt();
    scores.resize(heads * n, 0.0);
    for i in 0..n {
        let (k, _) = row(i);
        for h in 0..heads {
            let (q, k) = (&q[h * dim..][..dim], &k[h * dim..][..dim]);
            scores[h * n + i] = scale * sum(dim, |j| q[j] * k[j]);
        }
    }
    for weights in scores.chunks_exact_mut(n) {
        let best = max(weights);
        weights.iter_mut().for_each(|w| *w = exp(*w - best));
        let inverse = 1.0 / sum(n, |i| weights[i]);
        weights.iter_mut().for_each(|w| *w *= inverse);
    }
    out.fill(0.0);
    for i in 0..n {
        let (_, v) = row(i);
        for h in 0..heads {
            let weight = scores[h * n + i];
            for (o, v) in out[h * dim..][..dim].iter_mut().zip(&v[h * dim..][..dim]) {
                *o = weight.mul_add(*v, *o);
            }
        }
    }
}

/// Writes this step's keys and values into the cache, then attends over each lane's own past.
pub fn cached_attention(
    decoding: &Decoding,
    qkv: &[f32],
    cache: &mut Buffer,
    (heads, dim): (usize, usize),
    out: &mut [f32],
) {
    let d = heads * dim;
    let (lanes, position) = (decoding.lanes, decoding.position);
    let past = cache.first((position + 1) * lanes * 2 * d);
    for (lane, qkv) in qkv.chunks_exact(3 * d).enumerate() {
        past[(position * lanes + lane) * 2 * d..][..2 * d].copy_from_slice(&qkv[d..]);
    }
    let past = &*past;
    for_blocks(qkv.len() / (3 * d), 1, [(out, Per::Row(d))], |lane, [out]| {
        let line = &decoding.lineage[lane];
        let row = |i: usize| {
            let ancestor = if i < position { line[i] as usize } else { lane };
            past[(i * lanes + ancestor) * 2 * d..][..2 * d].split_at(d)
        };
        attend(&qkv[lane * 3 * d..][..d], position + 1, row, (heads, dim), &mut Vec::new(), out);
    });
}

/// Attends over the keys and values of each lane's source.
pub fn lane_attention(decoding: &Decoding, q: &[f32], k: Cols, v: Cols, (heads, dim): (usize, usize), out: &mut [f32]) {
    let d = heads * dim;
    for_blocks(q.len() / d, 1, [(out, Per::Row(d))], |lane, [out]| {
        let source = decoding.sources[lane] as usize;
        let (first, end) = (decoding.cu[source] as usize, decoding.cu[source + 1] as usize);
        let row = |i: usize| {
            let at = first + i;
            (&k.data[at * k.stride + k.col..][..d], &v.data[at * v.stride + v.col..][..d])
        };
        attend(&q[lane * d..][..d], end - first, row, (heads, dim), &mut Vec::new(), out);
    });
}

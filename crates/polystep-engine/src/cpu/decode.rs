//! Decoding one token per lane: attention over cached keys and values, and the best next tokens.
//!
//! Cached rows never move. Row `position·lanes + l` was written by lane l of that step; `lineage` says, for each lane of the
//! present step, which lane of every earlier step it descends from.

use super::Buffer;
use super::gemm::Cols;
use super::lane::{Place, attend};
use super::math::{exp, max, sum};
use crate::Batch;
use rayon::prelude::*;
use std::cell::RefCell;

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
        assert!(k <= vocab);
        self.tokens.resize(logits.len() / vocab * k, 0);
        self.logprobs.resize(self.tokens.len(), 0.0);
        let rows = logits.chunks_exact(vocab);
        let found = self.tokens.chunks_exact_mut(k).zip(self.logprobs.chunks_exact_mut(k));
        let mut best: Vec<(f32, usize)> = Vec::with_capacity(k + 1);
        for (row, (tokens, logprobs)) in rows.zip(found) {
            let top = max(row);
            let log_sum = top + sum(vocab, |i| exp(row[i] - top)).ln();
            best.clear();
            for (token, &logit) in row.iter().enumerate() {
                // Few get past this; of equals, the first token stays in front.
                if best.len() == k && best[k - 1].0.total_cmp(&logit).is_ge() {
                    continue;
                }
                best.truncate(k - 1);
                let at = best.iter().rposition(|b| b.0.total_cmp(&logit).is_ge()).map_or(0, |i| i + 1);
                best.insert(at, (logit, token));
            }
            for ((token, logprob), &(logit, found)) in tokens.iter_mut().zip(logprobs).zip(&best) {
                (*token, *logprob) = (found as u8, logit - log_sum);
            }
        }
    }
}

thread_local! {
    /// Where the keys and values of a lane begin, and its scores.
    static ROOM: RefCell<(Vec<Place>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Below this many numbers of keys and values a second thread costs more than it gives.
const WORTH_A_THREAD: usize = 128 * 1024;

/// Calls `f(lane, its row of out, room)` for every lane; `keys` is about how many rows one of them attends to.
fn for_lanes(
    d: usize,
    keys: usize,
    out: &mut [f32],
    f: impl Fn(usize, &mut [f32], &mut Vec<Place>, &mut Vec<f32>) + Sync,
) {
    let lanes = out.len() / d;
    let one = |(lane, out): (usize, &mut [f32])| {
        ROOM.with_borrow_mut(|(rows, scores)| {
            rows.clear();
            f(lane, out, rows, scores);
        });
    };
    if lanes * keys * d < WORTH_A_THREAD {
        out.chunks_exact_mut(d).enumerate().for_each(one);
    } else {
        let piece = lanes.div_ceil(4 * rayon::current_num_threads());
        out.par_chunks_exact_mut(d).enumerate().with_min_len(piece).for_each(one);
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
    let out = &mut out[..qkv.len() / 3];
    for_lanes(d, position + 1, out, |lane, out, rows, scores| {
        let place = |i: usize, ancestor: usize| {
            let at = (i * lanes + ancestor) * 2 * d;
            (at, at + d)
        };
        rows.extend(decoding.lineage[lane].iter().enumerate().map(|(i, &ancestor)| place(i, ancestor as usize)));
        rows.push(place(position, lane));
        attend(&qkv[lane * 3 * d..][..d], (past, past), rows, dim, scores, out);
    });
}

/// Attends over the keys and values of each lane's source.
pub fn lane_attention(decoding: &Decoding, q: &[f32], k: Cols, v: Cols, (heads, dim): (usize, usize), out: &mut [f32]) {
    let d = heads * dim;
    let tokens = decoding.cu.last().map_or(0, |&n| n as usize);
    let keys = tokens / decoding.cu.len().saturating_sub(1).max(1);
    for_lanes(d, keys, &mut out[..q.len()], |lane, out, rows, scores| {
        let source = decoding.sources[lane] as usize;
        let span = decoding.cu[source] as usize..decoding.cu[source + 1] as usize;
        rows.extend(span.map(|at| (at * k.stride + k.col, at * v.stride + v.col)));
        attend(&q[lane * d..][..d], (k.data, v.data), rows, dim, scores, out);
    });
}

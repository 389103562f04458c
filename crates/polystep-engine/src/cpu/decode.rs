//! Decoding one token per hypothesis: attention over cached keys and values, and the best next tokens.
//!
//! Cached rows never move. Each step appends a row for each of its hypotheses, so a cache grows with the tokens that are
//! written, not with the longest output. `lineage` says, for each hypothesis of the present step, which one of every earlier step
//! it descends from.

use super::Buffer;
use super::attend::{Place, attend};
use super::math::{exp, max, sum};
use crate::{Batch, Heads};
use rayon::prelude::*;
use std::cell::RefCell;

/// What one decoding step hands to the next.
#[derive(Default)]
pub struct Decoding {
    position: usize,
    /// The first cached row of every position up to the present one.
    rows: Vec<usize>,
    /// `lineage[h][p]`: the ancestor of hypothesis h at position p < position.
    lineage: Vec<Vec<u32>>,
    spare: Vec<Vec<u32>>,
    /// Which source each hypothesis answers.
    sources: Vec<i32>,
    /// Cumulative lengths of the encoded sources.
    cu: Vec<i32>,
    /// Found by the last `top`.
    pub tokens: Vec<u8>,
    /// Their log-probabilities.
    pub logprobs: Vec<f32>,
}

impl Decoding {
    /// Takes note of the batch: new sources, or new hypotheses with their parents.
    pub fn follow(&mut self, batch: &Batch) {
        if batch.src.tokens() > 0 {
            self.cu.clone_from(&batch.src.cu);
        }
        let now = &batch.hypotheses;
        if now.sources.is_empty() {
            return;
        }
        self.rows.truncate(now.position + 1);
        if self.rows.len() == now.position {
            let next = self.rows.last().map_or(0, |row| row + self.sources.len());
            self.rows.push(next);
        }
        self.position = now.position;
        self.sources.clone_from(&now.sources);
        self.spare.resize(now.sources.len(), Vec::new());
        for (line, &parent) in self.spare.iter_mut().zip(&now.parents) {
            line.clear();
            if now.position > 0 {
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
                // Few tokens pass this test. Of equal ones, the first token stays in front.
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
    /// Where the keys and values of a hypothesis begin, and its scores.
    static ROOM: RefCell<(Vec<Place>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// With fewer numbers of keys and values than this a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 128 * 1024;

/// Attention for every hypothesis h, with the query `q(h)`. `find(h, places)` gives the places of its keys and values; `keys` is
/// about how many there are.
fn for_each<'a>(
    d: usize,
    keys: usize,
    out: &mut [f32],
    q: impl Fn(usize) -> &'a [f32] + Sync,
    (k, v, dim): (&[f32], &[f32], usize),
    find: impl Fn(usize, &mut Vec<Place>) + Sync,
) {
    let count = out.len() / d;
    let one = |(h, out): (usize, &mut [f32])| {
        ROOM.with_borrow_mut(|(places, scores)| {
            places.clear();
            find(h, places);
            attend(q(h), (k, v), places, dim, scores, out);
        });
    };
    if count * keys * d < WORTH_A_THREAD {
        out.chunks_exact_mut(d).enumerate().for_each(one);
    } else {
        let piece = count.div_ceil(4 * rayon::current_num_threads());
        out.par_chunks_exact_mut(d).enumerate().with_min_len(piece).for_each(one);
    }
}

/// Writes this step's keys and values into the cache, then each hypothesis attends to its own past.
pub fn cached_attention(decoding: &Decoding, qkv: &[f32], cache: &mut Buffer, heads: Heads, out: &mut [f32]) {
    let d = heads.width();
    let (rows, position) = (&decoding.rows, decoding.position);
    let now = rows[position];
    let past = cache.first((now + qkv.len() / (3 * d)) * 2 * d);
    for (row, qkv) in past[now * 2 * d..].chunks_exact_mut(2 * d).zip(qkv.chunks_exact(3 * d)) {
        row.copy_from_slice(&qkv[d..]);
    }
    let past = &*past;
    let place = |position: usize, h: usize| {
        let at = (rows[position] + h) * 2 * d;
        (at, at + d)
    };
    let q = |h: usize| &qkv[h * 3 * d..][..d];
    for_each(d, position + 1, &mut out[..qkv.len() / 3], q, (past, past, heads.dim), |h, places| {
        let ancestors = decoding.lineage[h].iter().enumerate();
        places.extend(ancestors.map(|(position, &ancestor)| place(position, ancestor as usize)));
        places.push(place(position, h));
    });
}

/// Each hypothesis attends to the keys and values of its source. `place` says where those of a token begin.
pub fn source_attention(
    decoding: &Decoding,
    q: &[f32],
    (k, v): (&[f32], &[f32]),
    place: impl Fn(usize) -> Place + Sync,
    heads: Heads,
    out: &mut [f32],
) {
    let (d, cu) = (heads.width(), &decoding.cu);
    let tokens = cu.last().map_or(0, |&n| n as usize);
    let keys = tokens / cu.len().saturating_sub(1).max(1);
    for_each(
        d,
        keys,
        &mut out[..q.len()],
        |h| &q[h * d..][..d],
        (k, v, heads.dim),
        |h, places| {
            let source = decoding.sources[h] as usize;
            places.extend((cu[source] as usize..cu[source + 1] as usize).map(&place));
        },
    );
}

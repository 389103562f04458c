//! Softmax attention of packed sequences, one task per sequence and head, queries in blocks that stay in the cache.
//!
//! The forward pass keeps only log-sum-exp; the backward pass computes the probabilities again as exp(score − lse).
//! Gradients of keys and values are summed over query blocks from the last to the first: under a causal mask only the last
//! block sees all keys, and it overwrites.
#![allow(unsafe_code)] // tasks write disjoint rows and columns of the same slots

use super::gemm::{Mat, Plus, product};
use super::math::{LANES, exp, max, sum};
use super::simd::{Ahead, Part};
use crate::Packed;
use rayon::prelude::*;
use std::cell::RefCell;

/// Queries per block.
const BLOCK: usize = 96;

thread_local! {
    /// Scores of one block of queries, and their gradient.
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// What both directions know.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub queries: &'a Packed,
    pub keys: &'a Packed,
    pub causal: bool,
    pub heads: usize,
    pub head_dim: usize,
}

/// One head of one sequence: rows of queries and of keys, columns of the head.
#[derive(Clone, Copy)]
struct Task {
    q0: usize,
    queries: usize,
    k0: usize,
    keys: usize,
    head: usize,
}

impl Shape<'_> {
    fn task(&self, i: usize) -> Task {
        let (s, head) = (i / self.heads, i % self.heads);
        let span = |cu: &[i32]| (cu[s] as usize, (cu[s + 1] - cu[s]) as usize);
        let ((q0, queries), (k0, keys)) = (span(&self.queries.cu), span(&self.keys.cu));
        Task { q0, queries, k0, keys, head }
    }

    /// Calls `f(task, the one after it)` for every sequence and head.
    fn for_each(&self, f: impl Fn(Task, Task) + Sync) {
        let tasks = self.queries.sequences() * self.heads;
        let task = |i: usize| f(self.task(i), self.task((i + 1).min(tasks - 1)));
        if tasks > 1 && self.queries.tokens() * self.heads * self.head_dim > 4096 {
            (0..tasks).into_par_iter().with_max_len(1).for_each(task);
        } else {
            (0..tasks).for_each(task);
        }
    }

    /// What a task will read of queries or keys: asked for while the task before it computes.
    fn ahead(&self, m: Mat, side: (usize, usize), head: usize) -> Ahead {
        m.at(side.0, head * self.head_dim).ahead(side.1, self.head_dim)
    }

    /// Keys that the queries up to `last` (exclusive) may see.
    fn seen(&self, last: usize, keys: usize) -> usize {
        if self.causal { keys.min(last) } else { keys }
    }

    /// What a causal mask leaves of the scores of the queries from `first` on, of a product over keys, and of one over queries.
    fn parts(&self, first: usize) -> [Part; 3] {
        let first = first as isize;
        if self.causal { [Part::Lower(first), Part::Until(first), Part::From(-first)] } else { [Part::Full; 3] }
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// Gives `f` room for n numbers that this thread keeps.
fn with_scores(n: usize, f: impl FnOnce(&mut [f32])) {
    SCORES.with_borrow_mut(|scores| {
        if scores.len() < n {
            scores.resize(n, 0.0);
        }
        f(&mut scores[..n]);
    });
}

/// `out` and `lse` of every sequence and head.
///
/// # Safety
/// The matrices have as many rows as `shape` has tokens on their side and heads·head_dim columns (lse: heads), lie in memory
/// that lives during the call, and nobody else touches `out` and `lse`.
pub unsafe fn forward(shape: Shape, q: Mat, k: Mat, v: Mat, out: Mat, lse: Mat) {
    let (dim, scale) = (shape.head_dim, shape.scale());
    shape.for_each(|task, next| {
        let Task { q0, queries, k0, keys, head } = task;
        let of_keys = |m| shape.ahead(m, (next.k0, next.keys), next.head);
        let ahead = [shape.ahead(q, (next.q0, next.queries), next.head), of_keys(k)];
        let ahead_v = [of_keys(v), Ahead::NOTHING];
        let (q, out) = (q.at(q0, head * dim), out.at(q0, head * dim));
        let (k, v) = (k.at(k0, head * dim), v.at(k0, head * dim));
        let lse = lse.at(q0, head);
        with_scores(BLOCK * keys.next_multiple_of(LANES), |scores| {
            for first in (0..queries).step_by(BLOCK) {
                let rows = BLOCK.min(queries - first);
                let width = shape.seen(first + rows, keys);
                let pitch = width.next_multiple_of(LANES);
                let (s, [part, over_keys, _]) = (Mat::rows(scores, pitch, 0), shape.parts(first));
                // SAFETY: rows of this sequence and columns of this head, which belong to this task alone.
                unsafe {
                    product((rows, width, dim), s, Plus::Nothing, q.at(first, 0), k.t(), part, None, ahead);
                }
                let mut factors = [0f32; BLOCK];
                for r in 0..rows {
                    // Whole vectors: what may not be seen counts as exp(−∞).
                    let row = &mut scores[r * pitch..(r + 1) * pitch];
                    row[shape.seen(first + r + 1, keys)..].fill(f32::NEG_INFINITY);
                    let top = max(row) * scale;
                    row.iter_mut().for_each(|x| *x = exp(x.mul_add(scale, -top)));
                    let total = sum(row.len(), |i| row[i]);
                    factors[r] = if total > 0.0 { 1.0 / total } else { 0.0 };
                    // SAFETY: as above.
                    unsafe { *lse.at(first + r, 0).start = top + total.ln() };
                }
                // SAFETY: as above.
                unsafe {
                    product((rows, dim, width), out.at(first, 0), Plus::Nothing, s, v, over_keys, None, ahead_v);
                    for (r, factor) in factors.iter().enumerate().take(rows) {
                        let row = std::slice::from_raw_parts_mut(out.at(first + r, 0).start, dim);
                        row.iter_mut().for_each(|x| *x *= factor);
                    }
                }
            }
        });
    });
}

/// What [`backward`] reads.
#[derive(Clone, Copy)]
pub struct Saved {
    pub q: Mat,
    pub k: Mat,
    pub v: Mat,
    pub out: Mat,
    pub lse: Mat,
    pub dout: Mat,
}

/// Gradients of q, k and v of every sequence and head.
///
/// # Safety
/// As [`forward`]; nobody else touches `dq`, `dk` and `dv`.
pub unsafe fn backward(shape: Shape, saved: Saved, dq: Mat, dk: Mat, dv: Mat) {
    let (dim, scale) = (shape.head_dim, shape.scale());
    shape.for_each(|task, next| {
        let Task { q0, queries, k0, keys, head } = task;
        let of_queries = |m| shape.ahead(m, (next.q0, next.queries), next.head);
        let of_keys = |m| shape.ahead(m, (next.k0, next.keys), next.head);
        let ahead_scores = [of_queries(saved.q), of_keys(saved.k)];
        let ahead_grads = [of_queries(saved.dout), of_keys(saved.v)];
        let ahead_out = [of_queries(saved.out), Ahead::NOTHING];
        let nothing = [Ahead::NOTHING; 2];
        let mine = |m: Mat, row| m.at(row, head * dim);
        let (q, out, dout, dq) = (mine(saved.q, q0), mine(saved.out, q0), mine(saved.dout, q0), mine(dq, q0));
        let (k, v, dk, dv) = (mine(saved.k, k0), mine(saved.v, k0), mine(dk, k0), mine(dv, k0));
        let lse = saved.lse.at(q0, head);
        if queries == 0 {
            for r in 0..keys {
                // SAFETY: rows of this sequence and columns of this head, which belong to this task alone.
                unsafe {
                    std::slice::from_raw_parts_mut(dk.at(r, 0).start, dim).fill(0.0);
                    std::slice::from_raw_parts_mut(dv.at(r, 0).start, dim).fill(0.0);
                }
            }
        }
        let room = BLOCK * keys.next_multiple_of(LANES);
        with_scores(2 * room, |scores| {
            let (p, ds) = scores.split_at_mut(room);
            for first in (0..queries).step_by(BLOCK).rev() {
                let rows = BLOCK.min(queries - first);
                let width = shape.seen(first + rows, keys);
                let plus = if first + BLOCK < queries { Plus::C } else { Plus::Nothing };
                let pitch = width.next_multiple_of(LANES);
                let (pm, dsm) = (Mat::rows(p, pitch, 0), Mat::rows(ds, pitch, 0));
                let [part, over_keys, over_queries] = shape.parts(first);
                let (q, dout) = (q.at(first, 0), dout.at(first, 0));
                // SAFETY: as above; p and ds belong to this thread.
                unsafe {
                    product((rows, width, dim), pm, Plus::Nothing, q, k.t(), part, None, ahead_scores);
                    product((rows, width, dim), dsm, Plus::Nothing, dout, v.t(), part, None, ahead_grads);
                }
                for r in 0..rows {
                    let seen = shape.seen(first + r + 1, keys);
                    let (p, ds) = (&mut p[r * pitch..(r + 1) * pitch], &mut ds[r * pitch..(r + 1) * pitch]);
                    p[seen..].fill(f32::NEG_INFINITY);
                    ds[seen..].fill(0.0);
                    // SAFETY: as above; these are only read.
                    let (lse, out, dout) = unsafe {
                        (
                            *lse.at(first + r, 0).start,
                            std::slice::from_raw_parts(out.at(first + r, 0).start, dim),
                            std::slice::from_raw_parts(dout.at(r, 0).start, dim),
                        )
                    };
                    let mean = sum(dim, |i| out[i] * dout[i]);
                    for (p, ds) in p.iter_mut().zip(ds) {
                        *p = exp(p.mul_add(scale, -lse));
                        *ds = *p * (*ds - mean) * scale;
                    }
                }
                // SAFETY: as above.
                unsafe {
                    product((rows, dim, width), dq.at(first, 0), Plus::Nothing, dsm, k, over_keys, None, ahead_out);
                    product((width, dim, rows), dv, plus, pm.t(), dout, over_queries, None, nothing);
                    product((width, dim, rows), dk, plus, dsm.t(), q, over_queries, None, nothing);
                }
            }
        });
    });
}

//! Softmax attention of packed sequences. There is one task for each sequence and head. It takes the queries in blocks that stay in
//! the cache.
//!
//! The forward pass keeps only log-sum-exp (lse). The backward pass computes the probabilities again as exp(score − lse). It sums
//! the gradients of keys and values over query blocks from the last to the first. Under a causal mask only the last block sees all
//! keys, so it overwrites what was there, and the others add to it.
#![allow(unsafe_code)] // tasks write disjoint rows and columns of the same slots

use super::Buffer;
use super::gemm::{Plus, Product};
use super::math::{LANES, exp, max, sum};
use super::matrix::Matrix;
use super::tile::{Ahead, Part};
use crate::{Heads, Packed};
use rayon::prelude::*;
use std::cell::RefCell;

/// Queries per block.
const BLOCK: usize = 96;

thread_local! {
    /// Scores of one block of queries, and their gradient.
    static SCORES: RefCell<Buffer> = RefCell::default();
}

/// Whose queries attend to whose keys.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub queries: &'a Packed,
    pub keys: &'a Packed,
    pub causal: bool,
    pub heads: Heads,
}

/// One head of one sequence. Its rows are given by the first of them and by their number.
#[derive(Clone, Copy)]
struct Task {
    queries: (usize, usize),
    keys: (usize, usize),
    head: usize,
    dim: usize,
}

impl Task {
    /// This task's part of a matrix of queries.
    fn q(&self, m: Matrix) -> Matrix {
        m.tile((self.queries.0, self.head * self.dim), (self.queries.1, self.dim))
    }

    /// This task's part of a matrix of keys.
    fn k(&self, m: Matrix) -> Matrix {
        m.tile((self.keys.0, self.head * self.dim), (self.keys.1, self.dim))
    }
}

impl Scope<'_> {
    fn task(&self, i: usize) -> Task {
        let (s, head) = (i / self.heads.count, i % self.heads.count);
        let rows = |cu: &[i32]| (cu[s] as usize, (cu[s + 1] - cu[s]) as usize);
        Task { queries: rows(&self.queries.cu), keys: rows(&self.keys.cu), head, dim: self.heads.dim }
    }

    /// Calls `f(task, the one after it)` for every sequence and head.
    fn for_each(&self, f: impl Fn(Task, Task) + Sync) {
        let tasks = self.queries.sequences() * self.heads.count;
        let task = |i: usize| f(self.task(i), self.task((i + 1).min(tasks - 1)));
        if tasks > 1 && self.queries.tokens() * self.heads.width() > 4096 {
            (0..tasks).into_par_iter().with_max_len(1).for_each(task);
        } else {
            (0..tasks).for_each(task);
        }
    }

    /// How many keys the queries before `last` may see.
    fn seen(&self, last: usize, keys: usize) -> usize {
        if self.causal { keys.min(last) } else { keys }
    }

    /// What a causal mask leaves, for the queries from `first` on: of the scores, of a product over keys, and of one over queries.
    fn parts(&self, first: usize) -> [Part; 3] {
        let first = first as isize;
        if self.causal { [Part::Lower(first), Part::Until(first), Part::From(-first)] } else { [Part::Full; 3] }
    }

    fn scale(&self) -> f32 {
        1.0 / (self.heads.dim as f32).sqrt()
    }
}

/// Calls `f` with N matrices of this thread's own. Each has room for one block of queries and for `keys` keys in whole vectors.
fn with_scores<const N: usize>(keys: usize, f: impl FnOnce([Matrix; N])) {
    SCORES.with_borrow_mut(|scores| {
        let (rows, pitch) = (N * BLOCK, keys.next_multiple_of(LANES));
        scores.reserve(rows * pitch);
        let all = scores.matrix((rows, pitch), pitch, 0);
        f(std::array::from_fn(|i| all.tile((i * BLOCK, 0), (BLOCK, pitch))));
    });
}

/// What the forward pass reads and writes.
#[derive(Clone, Copy)]
pub struct Operands {
    pub q: Matrix,
    pub k: Matrix,
    pub v: Matrix,
    pub out: Matrix,
    pub lse: Matrix,
}

/// `out` and `lse` of every sequence and head.
///
/// # Safety
/// The memory of the matrices is there, and nobody else touches `out` and `lse`.
pub unsafe fn forward(scope: Scope, at: Operands) {
    let scale = scope.scale();
    scope.for_each(|task, next| {
        let (queries, keys) = (task.queries.1, task.keys.1);
        let ahead = [next.q(at.q).ahead(), next.k(at.k).ahead()];
        let ahead_v = [next.k(at.v).ahead(), Ahead::NOTHING];
        let (q, k, v, out) = (task.q(at.q), task.k(at.k), task.k(at.v), task.q(at.out));
        let lse = at.lse.tile((task.queries.0, task.head), (queries, 1));
        with_scores(keys, |[scores]| {
            for first in (0..queries).step_by(BLOCK) {
                let rows = BLOCK.min(queries - first);
                let width = scope.seen(first + rows, keys);
                let block = |m: Matrix| m.tile((first, 0), (rows, m.cols));
                let padded = scores.packed(rows, width.next_multiple_of(LANES));
                let s = padded.tile((0, 0), (rows, width));
                let (k, v) = (k.tile((0, 0), (width, k.cols)), v.tile((0, 0), (width, v.cols)));
                let [part, over_keys, _] = scope.parts(first);
                // SAFETY: rows of this sequence and columns of this head belong to this task alone, the scores to this thread.
                unsafe {
                    Product { part, ahead, ..Product::new(s, block(q), k.t()) }.run(None);
                    let mut factors = [0f32; BLOCK];
                    for r in 0..rows {
                        // Whole vectors: what may not be seen counts as exp(−∞).
                        let row = padded.row_mut(r);
                        row[scope.seen(first + r + 1, keys)..].fill(f32::NEG_INFINITY);
                        let top = max(row) * scale;
                        row.iter_mut().for_each(|x| *x = exp(x.mul_add(scale, -top)));
                        let total = sum(row.len(), |i| row[i]);
                        factors[r] = if total > 0.0 { 1.0 / total } else { 0.0 };
                        *lse.at(first + r, 0) = top + total.ln();
                    }
                    Product { part: over_keys, ahead: ahead_v, ..Product::new(block(out), s, v) }.run(None);
                    for (r, factor) in factors.iter().enumerate().take(rows) {
                        block(out).row_mut(r).iter_mut().for_each(|x| *x *= factor);
                    }
                }
            }
        });
    });
}

/// Gradients of the output, and where those of queries, keys and values go.
#[derive(Clone, Copy)]
pub struct Gradients {
    pub dout: Matrix,
    pub dq: Matrix,
    pub dk: Matrix,
    pub dv: Matrix,
}

/// Gradients of q, k and v of every sequence and head.
///
/// # Safety
/// The memory of the matrices is there, and nobody else touches `dq`, `dk` and `dv`.
pub unsafe fn backward(scope: Scope, at: Operands, grads: Gradients) {
    let scale = scope.scale();
    scope.for_each(|task, next| {
        let (queries, keys) = (task.queries.1, task.keys.1);
        let ahead_scores = [next.q(at.q).ahead(), next.k(at.k).ahead()];
        let ahead_grads = [next.q(grads.dout).ahead(), next.k(at.v).ahead()];
        let ahead_out = [next.q(at.out).ahead(), Ahead::NOTHING];
        let (q, out, dout, dq) = (task.q(at.q), task.q(at.out), task.q(grads.dout), task.q(grads.dq));
        let (k, v, dk, dv) = (task.k(at.k), task.k(at.v), task.k(grads.dk), task.k(grads.dv));
        let lse = at.lse.tile((task.queries.0, task.head), (queries, 1));
        if queries == 0 {
            for r in 0..keys {
                // SAFETY: rows of this sequence and columns of this head belong to this task alone.
                unsafe {
                    dk.row_mut(r).fill(0.0);
                    dv.row_mut(r).fill(0.0);
                }
            }
        }
        with_scores(keys, |[p, ds]| {
            for first in (0..queries).step_by(BLOCK).rev() {
                let rows = BLOCK.min(queries - first);
                let width = scope.seen(first + rows, keys);
                let plus = if first + BLOCK < queries { Plus::C } else { Plus::Nothing };
                let pitch = width.next_multiple_of(LANES);
                let (p_padded, ds_padded) = (p.packed(rows, pitch), ds.packed(rows, pitch));
                let [p, ds] = [p_padded, ds_padded].map(|m| m.tile((0, 0), (rows, width)));
                let [q, out, dout, dq] = [q, out, dout, dq].map(|m| m.tile((first, 0), (rows, m.cols)));
                let [k, v, dk, dv] = [k, v, dk, dv].map(|m| m.tile((0, 0), (width, m.cols)));
                let [part, over_keys, over_queries] = scope.parts(first);
                // SAFETY: as above; p and ds belong to this thread.
                unsafe {
                    Product { part, ahead: ahead_scores, ..Product::new(p, q, k.t()) }.run(None);
                    Product { part, ahead: ahead_grads, ..Product::new(ds, dout, v.t()) }.run(None);
                    for r in 0..rows {
                        let seen = scope.seen(first + r + 1, keys);
                        let (p, ds) = (p_padded.row_mut(r), ds_padded.row_mut(r));
                        p[seen..].fill(f32::NEG_INFINITY);
                        ds[seen..].fill(0.0);
                        let lse = *lse.at(first + r, 0);
                        let (out, dout) = (out.row(r), dout.row(r));
                        let mean = sum(dout.len(), |i| out[i] * dout[i]);
                        for (p, ds) in p.iter_mut().zip(ds) {
                            *p = exp(p.mul_add(scale, -lse));
                            *ds = *p * (*ds - mean) * scale;
                        }
                    }
                    Product { part: over_keys, ahead: ahead_out, ..Product::new(dq, ds, k) }.run(None);
                    Product { part: over_queries, plus, ..Product::new(dv, p.t(), dout) }.run(None);
                    Product { part: over_queries, plus, ..Product::new(dk, ds.t(), q) }.run(None);
                }
            }
        });
    });
}

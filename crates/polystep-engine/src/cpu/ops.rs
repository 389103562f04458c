//! From an [`Op`] to the function that computes it: finds the slices that it reads and writes.
//!
//! A buffer that is written is taken out of its place for the time of the op, so the borrow checker sees that reads and
//! writes do not meet; an op that works in place says so by name.
#![allow(unsafe_code)] // attention's operands are columns of the same slot

use super::adam::Adam;
use super::attention::{self, Saved, Shape};
use super::dropout::Mask;
use super::gemm::{Cols, ColsMut, Mat};
use super::linear::Then;
use super::norm::{self, Stream};
use super::{Buffer, Memory, Size, activation, decode, embed, linear, loss};
use crate::{Batch, Norm, Op, Packed, Param, Program, Scalars, Side, Slot, StepResult, View};
use std::mem::take;

fn side(batch: &Batch, side: Side) -> &Packed {
    match side {
        Side::Src => &batch.src,
        Side::Tgt => &batch.tgt,
    }
}

fn at(param: Param) -> std::ops::Range<usize> {
    param.offset..param.offset + param.len()
}

/// Disjoint mutable ranges of the flat gradient, in the order asked for.
fn grads_of<const N: usize>(grads: &mut [f32], params: [Param; N]) -> [&mut [f32]; N] {
    grads.get_disjoint_mut(params.map(at)).expect("parameters of one op do not overlap")
}

impl Memory {
    fn take(&mut self, slot: Slot) -> Buffer {
        take(&mut self.slots[slot.0 as usize])
    }

    fn take_if(&mut self, slot: Option<Slot>) -> Buffer {
        slot.map(|slot| self.take(slot)).unwrap_or_default()
    }

    fn put(&mut self, slot: Slot, buffer: Buffer) {
        self.slots[slot.0 as usize] = buffer;
    }

    fn put_if(&mut self, slot: Option<Slot>, buffer: Buffer) {
        if let Some(slot) = slot {
            self.put(slot, buffer);
        }
    }

    fn slot(&self, slot: Slot) -> &[f32] {
        &self.slots[slot.0 as usize]
    }

    fn param(&self, param: Param) -> &[f32] {
        &self.params[at(param)]
    }

    fn norm(&self, norm: Norm) -> (&[f32], &[f32]) {
        (self.param(norm.gamma), self.param(norm.beta))
    }

    fn cols(&self, program: &Program, view: View) -> Cols<'_> {
        Cols { data: self.slot(view.slot), stride: program.info(view.slot).cols, col: view.col }
    }

    /// The address of a view of `rows` × `width` numbers.
    fn mat(&mut self, program: &Program, view: View, rows: usize, width: usize) -> Mat {
        let stride = program.info(view.slot).cols;
        let data = &mut self.slots[view.slot.0 as usize];
        assert!(view.col + width <= stride && rows * stride <= data.len(), "a view leaves its slot");
        Mat::rows(data, stride, view.col)
    }
}

/// What an op is called in timings.
pub fn kind(op: &Op) -> &'static str {
    match op {
        Op::Embed { .. } => "Embed",
        Op::EmbedBack { .. } => "EmbedBack",
        Op::AddNorm { .. } => "AddNorm",
        Op::AddNormBack { .. } => "AddNormBack",
        Op::Linear { .. } => "Linear",
        Op::LinearBack { .. } => "LinearBack",
        Op::Activate { .. } => "Activate",
        Op::ActivateBack { .. } => "ActivateBack",
        Op::Attention { .. } => "Attention",
        Op::AttentionBack { .. } => "AttentionBack",
        Op::CrossEntropy { .. } => "CrossEntropy",
        Op::CachedAttention { .. } => "CachedAttention",
        Op::LaneAttention { .. } => "LaneAttention",
        Op::TopTokens { .. } => "TopTokens",
        Op::Adam { .. } => "Adam",
    }
}

/// Runs the first of `ops`, together with those behind it that are done on the way; returns how many were done.
pub fn run(
    ops: &[Op],
    program: &Program,
    size: Size,
    batch: &Batch,
    scalars: &Scalars,
    memory: &mut Memory,
    result: &mut StepResult,
) -> usize {
    let mut done = 1;
    let rows_of = |slot: Slot| size.rows(program.info(slot).rows);
    let len = |slot: Slot| rows_of(slot) * program.info(slot).cols;
    let mask = |dropout| Mask::new(dropout, scalars.seed);
    let mut scratch = take(&mut memory.scratch);
    match ops[0] {
        Op::Embed { side: s, token, position, norm, scale, dropout, stat, out, out_act } => {
            let (mut st, mut o, mut act) = (memory.take(stat), memory.take(out), memory.take_if(out_act));
            let (gamma, beta) = memory.norm(norm);
            let tables =
                embed::Tables { token: memory.param(token), position: memory.param(position), gamma, beta, scale };
            embed::forward(side(batch, s), &tables, mask(dropout), &mut st, &mut o, &mut act, &mut scratch);
            memory.put(stat, st);
            memory.put(out, o);
            memory.put_if(out_act, act);
        }
        Op::EmbedBack { side: s, token, position, norm, scale, dropout, stat, g, dy } => {
            let mut grads = take(&mut memory.grads);
            let [dt, dp, dg, db] = grads_of(&mut grads, [token, position, norm.gamma, norm.beta]);
            let (gamma, beta) = memory.norm(norm);
            let tables =
                embed::Tables { token: memory.param(token), position: memory.param(position), gamma, beta, scale };
            let into = embed::TableGrads { token: dt, position: dp, gamma: dg, beta: db };
            let dy = dy.map(|dy| memory.slot(dy));
            let (stat, g) = (memory.slot(stat), memory.slot(g));
            embed::backward(side(batch, s), &tables, mask(dropout), stat, g, dy, &mut scratch, into);
            memory.grads = grads;
        }
        Op::AddNorm { x, f, dropout, norm, s, stat, y, y_stream } => {
            let written = f.map(|_| s);
            let (mut sum, mut st) = (memory.take_if(written), memory.take(stat));
            let (mut out, mut stream) = (memory.take(y), memory.take_if(y_stream));
            let from = if written == Some(x) {
                Stream::Sum
            } else if y_stream == Some(x) {
                Stream::Normed
            } else {
                Stream::Slot(memory.slot(x))
            };
            let into = norm::Forward { s: &mut sum, stat: &mut st, y: &mut out, y_stream: &mut stream };
            let f = f.map(|f| memory.slot(f));
            norm::forward(rows_of(y), norm.gamma.len(), from, f, mask(dropout), memory.norm(norm), into);
            memory.put_if(written, sum);
            memory.put(stat, st);
            memory.put(y, out);
            memory.put_if(y_stream, stream);
        }
        Op::AddNormBack { order, first, s, stat, norm, dropout, g, dy, df } => {
            let (mut stream, mut out) = (memory.take(g), memory.take_if(df));
            let mut grads = take(&mut memory.grads);
            let [dg, db] = grads_of(&mut grads, [norm.gamma, norm.beta]);
            let it = norm::Backward {
                order,
                first,
                s: memory.slot(s),
                stat: memory.slot(stat),
                gamma: memory.param(norm.gamma),
                mask: mask(dropout),
            };
            let from = (df != Some(dy)).then(|| memory.slot(dy));
            norm::backward(rows_of(g), norm.gamma.len(), it, &mut stream, from, &mut out, &mut scratch, (dg, db));
            memory.grads = grads;
            memory.put(g, stream);
            memory.put_if(df, out);
        }
        Op::Linear { x, w, b, y } => {
            let mut out = memory.take(y.slot);
            let to = ColsMut { data: &mut out, stride: program.info(y.slot).cols, col: y.col };
            let whole = |slot| slot == y.slot && w.rows == program.info(slot).cols;
            let behind = match ops.get(1) {
                Some(&Op::Activate { kind, x, y }) if whole(x) => Some((kind, y)),
                _ => None,
            };
            let mut activated = memory.take_if(behind.map(|(_, a)| a));
            let then = match behind {
                Some((kind, _)) => Then::Activate(kind, &mut activated),
                None => Then::Nothing,
            };
            let mut weights = take(&mut memory.weights);
            let packed = weights.get(w, &memory.params);
            let (x, b) = (memory.cols(program, x), b.map(|b| memory.param(b)));
            linear::forward(rows_of(y.slot), x, memory.param(w), packed, (w.rows, w.cols), b, to, then, &mut scratch);
            memory.weights = weights;
            memory.put_if(behind.map(|(_, a)| a), activated);
            memory.put(y.slot, out);
            done += usize::from(behind.is_some());
        }
        Op::LinearBack { x, w, b, dy, dx } => {
            let (rows, shape) = (rows_of(dy.slot), (w.rows, w.cols));
            let mut grads = take(&mut memory.grads);
            let from = memory.cols(program, dy);
            let (dw, db) = match b {
                Some(b) => {
                    let [dw, db] = grads_of(&mut grads, [w, b]);
                    (dw, Some(db))
                }
                None => (&mut grads[at(w)], None),
            };
            linear::weight_gradient(rows, &from, memory.cols(program, x), shape, dw, db);
            memory.grads = grads;
            if let Some(dx) = dx {
                let mut out = memory.take(dx.slot);
                let to = ColsMut { data: &mut out, stride: program.info(dx.slot).cols, col: dx.col };
                let whole = |slot| slot == dx.slot && w.cols == program.info(slot).cols;
                let then = match ops.get(1) {
                    Some(&Op::ActivateBack { kind, x, d }) if whole(d) => Then::ActivateBack(kind, memory.slot(x)),
                    _ => Then::Nothing,
                };
                done += usize::from(!matches!(then, Then::Nothing));
                let dy = memory.cols(program, dy);
                linear::input_gradient(rows, &dy, memory.param(w), shape, to, then, &mut scratch);
                memory.put(dx.slot, out);
            }
        }
        Op::Activate { kind, x, y } => {
            let mut out = memory.take(y);
            activation::forward(kind, &memory.slot(x)[..len(x)], &mut out);
            memory.put(y, out);
        }
        Op::ActivateBack { kind, x, d } => {
            let mut out = memory.take(d);
            activation::backward(kind, &memory.slot(x)[..len(x)], &mut out);
            memory.put(d, out);
        }
        Op::Attention { q, k, v, queries, keys, causal, heads, head_dim, out, lse } => {
            let shape = Shape { queries: side(batch, queries), keys: side(batch, keys), causal, heads, head_dim };
            let (n, m, d) = (shape.queries.tokens(), shape.keys.tokens(), heads * head_dim);
            let mut mat = |view: View, rows, width| memory.mat(program, view, rows, width);
            let (q, k, v) = (mat(q, n, d), mat(k, m, d), mat(v, m, d));
            let (out, lse) = (mat(out.into(), n, d), mat(lse.into(), n, heads));
            // SAFETY: `mat` checked every bound, and `memory` is borrowed mutably while this runs.
            unsafe { attention::forward(shape, q, k, v, out, lse) };
        }
        Op::AttentionBack { q, k, v, queries, keys, causal, heads, head_dim, out, lse, dout, dq, dk, dv } => {
            let shape = Shape { queries: side(batch, queries), keys: side(batch, keys), causal, heads, head_dim };
            let (n, m, d) = (shape.queries.tokens(), shape.keys.tokens(), heads * head_dim);
            let mut mat = |view: View, rows, width| memory.mat(program, view, rows, width);
            let (dq, dk, dv) = (mat(dq, n, d), mat(dk, m, d), mat(dv, m, d));
            let saved = Saved {
                q: mat(q, n, d),
                k: mat(k, m, d),
                v: mat(v, m, d),
                out: mat(out.into(), n, d),
                lse: mat(lse.into(), n, heads),
                dout: mat(dout.into(), n, d),
            };
            // SAFETY: as for `Attention`.
            unsafe { attention::backward(shape, saved, dq, dk, dv) };
        }
        Op::CrossEntropy { logits, backward } => {
            let mut values = memory.take(logits);
            let (vocab, right) = (program.info(logits).cols, &mut memory.right);
            let now = loss::cross_entropy(&batch.tgt, &batch.labels, vocab, &mut values, backward, &mut scratch, right);
            *result = StepResult { grad_norm: result.grad_norm, ..now };
            memory.put(logits, values);
        }
        Op::CachedAttention { qkv, cache, heads, head_dim, out } => {
            let (mut past, mut to) = (memory.take(cache), memory.take(out));
            let (qkv, decoding) = (&memory.slot(qkv)[..len(qkv)], &memory.decoding);
            decode::cached_attention(decoding, qkv, &mut past, (heads, head_dim), &mut to);
            memory.put(cache, past);
            memory.put(out, to);
        }
        Op::LaneAttention { q, k, v, heads, head_dim, out } => {
            let mut to = memory.take(out);
            let (k, v) = (memory.cols(program, k), memory.cols(program, v));
            let (q, decoding) = (&memory.slot(q)[..len(q)], &memory.decoding);
            decode::lane_attention(decoding, q, k, v, (heads, head_dim), &mut to);
            memory.put(out, to);
        }
        Op::TopTokens { logits, k } => {
            let Memory { decoding, slots, .. } = memory;
            let logits_of = &slots[logits.0 as usize][..len(logits)];
            decoding.top(logits_of, program.info(logits).cols, k);
        }
        Op::Adam { beta1, beta2, eps, weight_decay, clip } => {
            let adam = Adam { beta1, beta2, eps, weight_decay, clip, lr: scalars.lr, step: scalars.step };
            let n = program.params;
            let Memory { params, first, second, grads, .. } = memory;
            result.grad_norm =
                adam.step(&mut params[..n], &mut first[..n], &mut second[..n], &grads[..n], &mut scratch);
        }
    }
    memory.scratch = scratch;
    done
}

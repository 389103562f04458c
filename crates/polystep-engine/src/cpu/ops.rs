//! Calls the function that computes an [`Op`], with what the op reads and writes.
//!
//! A slot that an op writes is taken out of its place while the op runs. So the borrow checker sees that reads and writes do not
//! overlap. An op that works in place says so by its name. Products and attention take matrices by address instead, because their
//! operands may be columns of one slot.
#![allow(unsafe_code)] // matrices by address

use super::attention::{self, Gradients, Operands, Scope};
use super::dropout::Mask;
use super::linear::{Then, Weights};
use super::matrix::Matrix;
use super::norm::Stream;
use super::{Buffer, Memory, Size, activation, adam, decode, embed, linear, loss, norm};
use crate::{Attention, Batch, LinearBack, Op, Param, Program, Scalars, Slot, StepResult, View};
use std::mem::take;

/// The activations.
pub struct Slots(pub Vec<Buffer>);

impl Slots {
    fn get(&self, slot: Slot) -> &[f32] {
        &self.0[slot.0 as usize]
    }

    /// Calls `f(others, these)`, which may write to `these`. An absent slot is an empty buffer.
    fn writing<const N: usize>(&mut self, these: [Option<Slot>; N], f: impl FnOnce(&Slots, [&mut Buffer; N])) {
        let mut taken = these.map(|slot| slot.map(|s| take(&mut self.0[s.0 as usize])).unwrap_or_default());
        f(self, taken.each_mut());
        for (slot, buffer) in these.into_iter().zip(taken) {
            if let Some(slot) = slot {
                self.0[slot.0 as usize] = buffer;
            }
        }
    }
}

/// Disjoint mutable ranges of the flat gradient, in the order asked for.
fn disjoint<const N: usize>(grads: &mut [f32], params: [Param; N]) -> [&mut [f32]; N] {
    grads.get_disjoint_mut(params.map(|p| p.range())).expect("parameters of one op do not overlap")
}

/// Checks that an op which takes matrices by address writes nowhere twice and reads nothing that it writes, all views being
/// `width` wide (or whole slots, if that is [`WHOLE`]).
fn apart(width: usize, writes: &[View], reads: &[View]) {
    let meet = |a: &View, b: &View| a.slot == b.slot && a.col.abs_diff(b.col) < width;
    let twice = writes.iter().enumerate().any(|(i, a)| writes[..i].iter().chain(reads).any(|b| meet(a, b)));
    assert!(!twice, "an op that does not work in place writes to its own operand");
}

/// Any two views of one slot meet.
const WHOLE: usize = usize::MAX;

/// What all ops of a run share.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub program: &'a Program,
    pub size: Size,
    pub batch: &'a Batch,
    pub scalars: &'a Scalars,
}

impl Run<'_> {
    fn rows(&self, slot: Slot) -> usize {
        self.size.rows(self.program.info(slot).rows)
    }

    fn cols(&self, slot: Slot) -> usize {
        self.program.info(slot).cols
    }

    /// The real rows of a slot.
    fn real<'s>(&self, slots: &'s Slots, slot: Slot) -> &'s [f32] {
        &slots.get(slot)[..self.rows(slot) * self.cols(slot)]
    }

    /// A view of `width` columns by address.
    fn matrix(&self, slots: &mut Slots, view: impl Into<View>, width: usize) -> Matrix {
        let View { slot, col } = view.into();
        slots.0[slot.0 as usize].matrix((self.rows(slot), width), self.cols(slot), col)
    }

    /// Whether a view of `width` columns is all of a slot.
    fn whole(&self, view: View, width: usize, slot: Slot) -> bool {
        view.slot == slot && width == self.cols(slot)
    }

    fn attention(&self, slots: &mut Slots, it: &Attention) -> (Scope<'_>, Operands) {
        let (heads, width) = (it.heads, it.heads.width());
        let scope =
            Scope { queries: self.batch.side(it.queries), keys: self.batch.side(it.keys), causal: it.causal, heads };
        let [q, k, v, out] = [it.q, it.k, it.v, it.out.into()].map(|view| self.matrix(slots, view, width));
        (scope, Operands { q, k, v, out, lse: self.matrix(slots, it.lse, heads.count) })
    }

    /// Runs the first of `ops`, together with the ops behind it that can be computed in the same pass. Returns how many were run.
    pub fn step(&self, ops: &[Op], memory: &mut Memory, result: &mut StepResult) -> usize {
        let Memory { slots, params, grads, first, second, average, scratch, right, decoding, weights } = memory;
        let mask = |dropout| Mask::new(dropout, self.scalars.seed);
        let param = |param: Param| &params[param.range()];
        match ops[0] {
            Op::Embed(it) => slots.writing([Some(it.stat), Some(it.out), it.out_act], |_, out| {
                let tables = embed::Tables::new(&it, params, self.scalars.seed);
                embed::forward(self.batch.side(it.side), &tables, out);
            }),
            Op::EmbedBack(back) => {
                let it = back.of;
                let tables = embed::Tables::new(&it, params, self.scalars.seed);
                let into = disjoint(grads, [it.token, it.position, it.norm.gamma, it.norm.beta]);
                let (stat, g, dy) = (slots.get(it.stat), slots.get(back.g), back.dy.map(|dy| slots.get(dy)));
                embed::backward(self.batch.side(it.side), &tables, stat, g, dy, scratch, into);
            }
            Op::AddNorm(it) => {
                let written = it.f.map(|_| it.s);
                slots.writing([written, Some(it.stat), Some(it.y), it.y_stream], |slots, out| {
                    let from = match Some(it.x) {
                        x if x == written => Stream::Sum,
                        x if x == it.y_stream => Stream::Normed,
                        _ => Stream::Slot(slots.get(it.x)),
                    };
                    let (f, norm) = (it.f.map(|f| slots.get(f)), (param(it.norm.gamma), param(it.norm.beta)));
                    norm::forward(self.rows(it.y), from, f, mask(it.dropout), norm, out);
                });
            }
            Op::AddNormBack(back) => slots.writing([Some(back.g), back.df], |slots, [g, df]| {
                let it = back.of;
                let from = norm::Backward {
                    order: back.order,
                    first: back.first,
                    s: slots.get(it.s),
                    stat: slots.get(it.stat),
                    gamma: param(it.norm.gamma),
                    mask: mask(it.dropout),
                };
                let dy = (back.df != Some(back.dy)).then(|| slots.get(back.dy));
                let into = disjoint(grads, [it.norm.gamma, it.norm.beta]);
                norm::backward(self.rows(back.g), from, g, dy, df, scratch, into);
            }),
            Op::Linear(it) => {
                let shape = (it.w.rows, it.w.cols);
                let packed = weights.get(it.w, params);
                let with = Weights { w: Matrix::of(param(it.w), shape), packed, b: it.b.map(param) };
                let (x, y) = (self.matrix(slots, it.x, shape.1), self.matrix(slots, it.y, shape.0));
                let then = match ops.get(1) {
                    Some(Op::Activate(a)) if self.whole(it.y, shape.0, a.x) => {
                        apart(WHOLE, &[a.y.into()], &[it.x, it.y]);
                        Then::Activate(a.kind, self.matrix(slots, a.y, shape.0))
                    }
                    _ => Then::Nothing,
                };
                apart(WHOLE, &[it.y], &[it.x]);
                // SAFETY: slots and parameters are borrowed, the slots mutably, and what is written is another slot.
                unsafe { linear::forward(x, with, y, then, scratch) };
                return then.ops();
            }
            Op::LinearBack(LinearBack { of: it, dy: from, dx }) => {
                let shape = (it.w.rows, it.w.cols);
                let (dw, db) = match it.b {
                    Some(b) => {
                        let [dw, db] = disjoint(grads, [it.w, b]);
                        (dw, Some(db))
                    }
                    None => (&mut grads[it.w.range()], None),
                };
                let (dy, x) = (self.matrix(slots, from, shape.0), self.matrix(slots, it.x, shape.1));
                // SAFETY: slots and gradients are borrowed, the gradients mutably.
                unsafe { linear::weight_gradient(dy, x, Matrix::of_mut(dw, shape), db) };
                let Some(dx) = dx else { return 1 };
                let then = match ops.get(1) {
                    Some(Op::ActivateBack(a)) if self.whole(dx, shape.1, a.d) => {
                        apart(WHOLE, &[dx], &[a.of.x.into()]);
                        Then::ActivateBack(a.of.kind, self.matrix(slots, a.of.x, shape.1))
                    }
                    _ => Then::Nothing,
                };
                apart(WHOLE, &[dx], &[from]);
                let dx = self.matrix(slots, dx, shape.1);
                // SAFETY: slots and parameters are borrowed, the slots mutably, and what is written is another slot.
                unsafe { linear::input_gradient(dy, Matrix::of(param(it.w), shape), dx, then, scratch) };
                return then.ops();
            }
            Op::Activate(it) => slots.writing([Some(it.y)], |slots, [y]| {
                activation::forward(it.kind, self.real(slots, it.x), y);
            }),
            Op::ActivateBack(it) => slots.writing([Some(it.d)], |slots, [d]| {
                activation::backward(it.of.kind, self.real(slots, it.of.x), d);
            }),
            Op::Attention(it) => {
                let (scope, at) = self.attention(slots, &it);
                apart(WHOLE, &[it.out.into(), it.lse.into()], &[it.q, it.k, it.v]);
                // SAFETY: the slots are borrowed mutably, and `out` and `lse` are slots of their own.
                unsafe { attention::forward(scope, at) };
            }
            Op::AttentionBack(back) => {
                let (it, width) = (back.of, back.of.heads.width());
                let (scope, at) = self.attention(slots, &it);
                let read = [it.q, it.k, it.v, it.out.into(), back.dout.into()];
                apart(width, &[back.dq, back.dk, back.dv], &read);
                apart(WHOLE, &[it.lse.into()], &[back.dq, back.dk, back.dv]);
                let views = [back.dout.into(), back.dq, back.dk, back.dv];
                let [dout, dq, dk, dv] = views.map(|view| self.matrix(slots, view, width));
                // SAFETY: the slots are borrowed mutably, and the gradients do not meet what is read.
                unsafe { attention::backward(scope, at, Gradients { dout, dq, dk, dv }) };
            }
            Op::CrossEntropy(it) => slots.writing([Some(it.logits)], |_, [logits]| {
                let batch = (&self.batch.tgt, &self.batch.labels[..]);
                let now = loss::cross_entropy(batch, self.cols(it.logits), logits, it.backward, scratch, right);
                *result = StepResult { grad_norm: result.grad_norm, ..now };
            }),
            Op::CachedAttention(it) => slots.writing([Some(it.cache), Some(it.out)], |slots, [cache, out]| {
                decode::cached_attention(decoding, self.real(slots, it.qkv), cache, it.heads, out);
            }),
            Op::SourceAttention(it) => slots.writing([Some(it.out)], |slots, [out]| {
                let place = |view: View, row: usize| row * self.cols(view.slot) + view.col;
                let (q, kv) = (self.real(slots, it.q), (slots.get(it.k.slot), slots.get(it.v.slot)));
                let places = |row| (place(it.k, row), place(it.v, row));
                decode::source_attention(decoding, q, kv, places, it.heads, out);
            }),
            Op::BestTokens(it) => decoding.top(self.real(slots, it.logits), self.cols(it.logits), it.k),
            Op::Adam(it) => {
                let n = self.program.params;
                let state = [&mut params[..n], &mut first[..n], &mut second[..n]];
                result.grad_norm = adam::step(&it, self.scalars, state, &grads[..n], scratch);
                if it.averages() {
                    adam::follow(it.share_of_new(self.scalars.step), &params[..n], &mut average[..n]);
                }
            }
        }
        1
    }
}

//! The linear layer y = x·Wᵀ + b and its three gradients.
//!
//! # Safety
//! For every function here: the memory of the matrices is there; nobody else uses what the function writes; and nobody writes to
//! what it reads.
#![allow(unsafe_code)] // products take matrices by address

use super::gemm::{Done, Plus, tall, wide, wide_packed};
use super::matrix::Matrix;
use super::{Buffer, activation};
use crate::Activation;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// W (out × inp) and b; `packed` is W again, if it was packed before.
pub struct Weights<'a> {
    pub w: Matrix,
    pub packed: Option<&'a [f32]>,
    pub b: Option<&'a [f32]>,
}

/// An activation that follows a product. It is applied to rows that are still in the cache.
#[derive(Clone, Copy)]
pub enum Then {
    /// None.
    Nothing,
    /// `out = act(y)`; y and out are whole slots.
    Activate(Activation, Matrix),
    /// `dx ← dx·act'(h)`; dx and h are whole slots.
    ActivateBack(Activation, Matrix),
}

impl Then {
    /// How many ops are done: the product alone, or the activation with it.
    pub fn ops(self) -> usize {
        if matches!(self, Then::Nothing) { 1 } else { 2 }
    }
}

/// `y = x·Wᵀ + b`.
pub unsafe fn forward(x: Matrix, weights: Weights, y: Matrix, then: Then, scratch: &mut Buffer) {
    let Weights { w, packed, b } = weights;
    assert!(b.is_none_or(|b| b.len() == w.rows) && (x.cols, y.cols) == (w.cols, w.rows));
    let done = finish(y, then);
    let plus = b.map_or(Plus::Nothing, Plus::Row);
    // SAFETY: the caller's promise.
    unsafe {
        match packed {
            Some(packed) => wide_packed(y, plus, x, packed, done),
            None => wide(y, plus, x, w.t(), scratch, done),
        }
    }
}

/// What a product calls for the part of c that it has finished.
fn finish(c: Matrix, then: Then) -> impl Fn(Done) + Sync {
    if let Then::Activate(_, other) | Then::ActivateBack(_, other) = then {
        let whole = [c, other].iter().all(|m| m.row == c.cols && (m.rows, m.cols) == (c.rows, c.cols));
        assert!(whole, "an activation behind a product takes whole slots");
    }
    move |Done { first, rows, left, cols }| {
        // Whole rows are one piece.
        let (pieces, n) = if cols == c.cols { (1, rows * cols) } else { (rows, cols) };
        for r in first..first + pieces {
            let at = |m: Matrix| m.at(r, left);
            // SAFETY: whole slots, as checked above; this part of them belongs to one task, by the caller's promise.
            unsafe {
                match then {
                    Then::Nothing => return,
                    Then::Activate(kind, out) => {
                        activation::forward_part(kind, from_raw_parts(at(c), n), from_raw_parts_mut(at(out), n));
                    }
                    Then::ActivateBack(kind, h) => {
                        activation::backward_part(kind, from_raw_parts(at(h), n), from_raw_parts_mut(at(c), n));
                    }
                }
            }
        }
    }
}

/// `dx = dy·W`.
pub unsafe fn input_gradient(dy: Matrix, w: Matrix, dx: Matrix, then: Then, scratch: &mut Buffer) {
    // SAFETY: the caller's promise.
    unsafe { wide(dx, Plus::Nothing, dy, w, scratch, finish(dx, then)) };
}

/// `dw = dyᵀ·x`; `db = Σ rows of dy`.
pub unsafe fn weight_gradient(dy: Matrix, x: Matrix, dw: Matrix, db: Option<&mut [f32]>) {
    // SAFETY: the caller's promise.
    unsafe { tall(dw, dy.t(), x, db) };
}

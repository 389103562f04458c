//! The linear layer y = x·Wᵀ + b and its three gradients.
#![allow(unsafe_code)] // products take pointers

use super::gemm::{Cols, ColsMut, Done, Mat, Plus, tall, wide, wide_packed};
use super::narrow;
use super::{Buffer, activation};
use crate::Activation;

fn fits(len: usize, rows: usize, stride: usize, col: usize, width: usize) {
    assert!(rows * stride <= len && col + width <= stride, "a view leaves its slot");
}

/// An activation right behind a product, applied to rows that are still in the cache.
pub enum Then<'a> {
    /// None.
    Nothing,
    /// `out = act(y)`; y and out are whole slots.
    Activate(Activation, &'a mut [f32]),
    /// `dx ← dx·act'(h)`; dx and h are whole slots.
    ActivateBack(Activation, &'a [f32]),
}

/// `y = x·Wᵀ + b`; w is out × inp; `packed` is the same, if it was packed before.
pub fn forward(
    rows: usize,
    x: Cols,
    w: &[f32],
    packed: Option<&[f32]>,
    (out, inp): (usize, usize),
    b: Option<&[f32]>,
    y: ColsMut,
    then: Then,
    scratch: &mut Buffer,
) {
    fits(x.data.len(), rows, x.stride, x.col, inp);
    fits(y.data.len(), rows, y.stride, y.col, out);
    assert!(w.len() == out * inp && b.is_none_or(|b| b.len() == out));
    let to = Mat::rows(y.data, y.stride, y.col);
    let then = finish(rows, out, to, then);
    let plus = b.map_or(Plus::Nothing, Plus::Row);
    if let Some(packed) = packed {
        let x = Mat::of(x.data, x.stride, x.col);
        // SAFETY: checked above; y is borrowed mutably.
        return unsafe { wide_packed((rows, out, inp), to, plus, x, packed, then) };
    }
    if rows <= narrow::ROWS {
        let x = (&x.data[x.col.min(x.data.len())..], x.stride);
        // SAFETY: checked above; y is borrowed mutably, and every element of it is put once.
        narrow::forward(rows, x, w, (out, inp), b, |i, j, v| unsafe { *to.at(i, j).start = v });
        return then(Done { first: 0, rows, left: 0, cols: out });
    }
    let (x, w) = (Mat::of(x.data, x.stride, x.col), Mat::of(w, inp, 0).t());
    // SAFETY: checked above; y is borrowed mutably.
    unsafe { wide((rows, out, inp), to, plus, x, w, scratch, then) };
}

/// What [`wide`] calls for rows that are done.
fn finish(rows: usize, width: usize, c: Mat, then: Then) -> impl Fn(Done) + Sync {
    let (kind, back, other) = match then {
        Then::Nothing => (None, false, c),
        Then::Activate(kind, out) => {
            fits(out.len(), rows, width, 0, width);
            (Some(kind), false, Mat::rows(out, width, 0))
        }
        Then::ActivateBack(kind, h) => {
            fits(h.len(), rows, width, 0, width);
            (Some(kind), true, Mat::of(h, width, 0))
        }
    };
    assert!(kind.is_none() || c.row == width, "an activation behind a product takes whole slots");
    move |Done { first, rows, left, cols }| {
        let Some(kind) = kind else { return };
        // Whole rows are one piece.
        let (pieces, n) = if cols == width { (1, rows * width) } else { (rows, cols) };
        for r in 0..pieces {
            let (c, other) = (c.at(first + r, left).start, other.at(first + r, left).start);
            // SAFETY: both slots have `rows` whole rows (checked above and by the caller), and this part of them belongs to
            // one task.
            unsafe {
                if back {
                    let (d, h) = (std::slice::from_raw_parts_mut(c, n), std::slice::from_raw_parts(other, n));
                    activation::backward_part(kind, h, d);
                } else {
                    let (y, out) = (std::slice::from_raw_parts(c, n), std::slice::from_raw_parts_mut(other, n));
                    activation::forward_part(kind, y, out);
                }
            }
        }
    }
}

/// `dx = dy·W`.
pub fn input_gradient(
    rows: usize,
    dy: &Cols,
    w: &[f32],
    (out, inp): (usize, usize),
    dx: ColsMut,
    then: Then,
    scratch: &mut Buffer,
) {
    fits(dy.data.len(), rows, dy.stride, dy.col, out);
    fits(dx.data.len(), rows, dx.stride, dx.col, inp);
    assert!(w.len() == out * inp);
    let to = Mat::rows(dx.data, dx.stride, dx.col);
    let then = finish(rows, inp, to, then);
    let (dy, w) = (Mat::of(dy.data, dy.stride, dy.col), Mat::of(w, inp, 0));
    // SAFETY: checked above; dx is borrowed mutably.
    unsafe { wide((rows, inp, out), to, Plus::Nothing, dy, w, scratch, then) };
}

/// `dw = dyᵀ·x`; `db = Σ rows of dy`.
pub fn weight_gradient(
    rows: usize,
    dy: &Cols,
    x: Cols,
    (out, inp): (usize, usize),
    dw: &mut [f32],
    db: Option<&mut [f32]>,
) {
    fits(dy.data.len(), rows, dy.stride, dy.col, out);
    fits(x.data.len(), rows, x.stride, x.col, inp);
    assert!(dw.len() == out * inp);
    let to = Mat::rows(dw, inp, 0);
    let (dy, x) = (Mat::of(dy.data, dy.stride, dy.col).t(), Mat::of(x.data, x.stride, x.col));
    // SAFETY: checked above; dw is borrowed mutably.
    unsafe { tall((out, inp, rows), to, dy, x, db) };
}

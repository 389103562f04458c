//! The linear layer y = x·Wᵀ + b and its three gradients.
#![allow(unsafe_code)] // products take pointers

use super::Buffer;
use super::gemm::{Cols, ColsMut, Mat, Plus, tall, wide};

fn fits(len: usize, rows: usize, stride: usize, col: usize, width: usize) {
    assert!(rows * stride <= len && col + width <= stride, "a view leaves its slot");
}

/// `y = x·Wᵀ + b`; w is out × inp.
pub fn forward(
    rows: usize,
    x: Cols,
    w: &[f32],
    (out, inp): (usize, usize),
    b: Option<&[f32]>,
    y: ColsMut,
    scratch: &mut Buffer,
) {
    fits(x.data.len(), rows, x.stride, x.col, inp);
    fits(y.data.len(), rows, y.stride, y.col, out);
    assert!(w.len() == out * inp && b.is_none_or(|b| b.len() == out));
    let to = Mat::rows(y.data, y.stride, y.col);
    let (x, w) = (Mat::of(x.data, x.stride, x.col), Mat::of(w, inp, 0).t());
    // SAFETY: checked above; y is borrowed mutably.
    unsafe { wide((rows, out, inp), to, b.map_or(Plus::Nothing, Plus::Row), x, w, scratch, |_, _| ()) };
}

/// `dx = dy·W`.
pub fn input_gradient(
    rows: usize,
    dy: &Cols,
    w: &[f32],
    (out, inp): (usize, usize),
    dx: ColsMut,
    scratch: &mut Buffer,
) {
    fits(dy.data.len(), rows, dy.stride, dy.col, out);
    fits(dx.data.len(), rows, dx.stride, dx.col, inp);
    assert!(w.len() == out * inp);
    let to = Mat::rows(dx.data, dx.stride, dx.col);
    let (dy, w) = (Mat::of(dy.data, dy.stride, dy.col), Mat::of(w, inp, 0));
    // SAFETY: checked above; dx is borrowed mutably.
    unsafe { wide((rows, inp, out), to, Plus::Nothing, dy, w, scratch, |_, _| ()) };
}

/// `dw = dyᵀ·x`, or `dw += dyᵀ·x`; `db = Σ rows of dy`.
pub fn weight_gradient(
    rows: usize,
    dy: &Cols,
    x: Cols,
    (out, inp): (usize, usize),
    (dw, add): (&mut [f32], bool),
    db: Option<&mut [f32]>,
) {
    fits(dy.data.len(), rows, dy.stride, dy.col, out);
    fits(x.data.len(), rows, x.stride, x.col, inp);
    assert!(dw.len() == out * inp);
    let to = Mat::rows(dw, inp, 0);
    let (dy, x) = (Mat::of(dy.data, dy.stride, dy.col).t(), Mat::of(x.data, x.stride, x.col));
    let plus = if add { Plus::C } else { Plus::Nothing };
    // SAFETY: checked above; dw is borrowed mutably.
    unsafe { tall((out, inp, rows), to, plus, dy, x, db) };
}

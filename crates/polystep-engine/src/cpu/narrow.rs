//! `y = x·Wᵀ + b` for a few rows of x, as when one token per hypothesis is decoded. Here packing W would cost more than the product.
//!
//! So weights are read where they lie. Two rows of W are multiplied by two rows of x at a time, in registers.
#![allow(unsafe_code)] // matrices by address

use super::math::{LANES, total};
use super::matrix::Matrix;
use rayon::prelude::*;

/// With at most this many rows it is faster.
pub const ROWS: usize = 16;

/// Outputs of one task.
const BLOCK: usize = 64;

/// `Σ w[j]·x[i]` for J rows of W and I rows of x.
#[inline(always)]
fn dots<const J: usize, const I: usize>(w: [&[f32]; J], x: [&[f32]; I]) -> [[f32; I]; J] {
    let mut lanes = [[[0f32; LANES]; I]; J];
    let k = w[0].len();
    let whole = k / LANES * LANES;
    let (w, x) = (w.map(|w| &w[..k]), x.map(|x| &x[..k]));
    for at in (0..whole).step_by(LANES) {
        for (lanes, w) in lanes.iter_mut().zip(&w) {
            for (lanes, x) in lanes.iter_mut().zip(&x) {
                for (l, lane) in lanes.iter_mut().enumerate() {
                    *lane = w[at + l].mul_add(x[at + l], *lane);
                }
            }
        }
    }
    for at in whole..k {
        for (lanes, w) in lanes.iter_mut().zip(&w) {
            for (lanes, x) in lanes.iter_mut().zip(&x) {
                lanes[at - whole] = w[at].mul_add(x[at], lanes[at - whole]);
            }
        }
    }
    lanes.map(|lanes| lanes.map(total))
}

/// At most [`ROWS`] rows of x, w is `out × inp`; calls `put(row, output, value)`.
///
/// # Safety
/// The memory of x and w is there, and nobody writes to it meanwhile.
pub unsafe fn forward(x: Matrix, w: Matrix, b: Option<&[f32]>, put: impl Fn(usize, usize, f32) + Sync) {
    let (rows, out, inp) = (x.rows, w.rows, w.cols);
    // SAFETY: (both) the caller's promise.
    let row = |i: usize| unsafe { x.row(i) };
    let weights = |j: usize| unsafe { w.row(j) };
    let bias = |j: usize| b.map_or(0.0, |b| b[j]);
    fn each<const J: usize, const I: usize>(d: [[f32; I]; J], mut f: impl FnMut(usize, usize, f32)) {
        d.iter().enumerate().for_each(|(j, d)| d.iter().enumerate().for_each(|(i, &d)| f(i, j, d)));
    }
    let task = |first: usize| {
        let last = out.min(first + BLOCK);
        for j in (first..last).step_by(2) {
            for i in (0..rows).step_by(2) {
                let at = |di: usize, dj: usize, d: f32| put(i + di, j + dj, d + bias(j + dj));
                match (j + 1 < last, i + 1 < rows) {
                    (true, true) => each(dots([weights(j), weights(j + 1)], [row(i), row(i + 1)]), at),
                    (true, false) => each(dots([weights(j), weights(j + 1)], [row(i)]), at),
                    (false, true) => each(dots([weights(j)], [row(i), row(i + 1)]), at),
                    (false, false) => each(dots([weights(j)], [row(i)]), at),
                }
            }
        }
    };
    let tasks = out.div_ceil(BLOCK);
    if rows * out * inp > 200_000 && tasks > 1 {
        (0..tasks).into_par_iter().for_each(|t| task(t * BLOCK));
    } else {
        (0..tasks).for_each(|t| task(t * BLOCK));
    }
}

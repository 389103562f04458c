//! `y = x·Wᵀ + b` for a few rows, as when one token per lane is decoded: packing W would cost more than the product.
//!
//! Weights are read where they lie; two rows of W meet two rows of x in registers.

use super::math::{LANES, total};
use rayon::prelude::*;

/// Up to so many rows it pays.
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

/// `rows ≤ ROWS` rows of x (element (i, p) at `x[i·stride + p]`), w is `out × inp`; calls `put(row, output, value)`.
pub fn forward(
    rows: usize,
    (x, stride): (&[f32], usize),
    w: &[f32],
    (out, inp): (usize, usize),
    b: Option<&[f32]>,
    put: impl Fn(usize, usize, f32) + Sync,
) {
    let row = |i: usize| &x[i * stride..][..inp];
    let weights = |j: usize| &w[j * inp..][..inp];
    let bias = |j: usize| b.map_or(0.0, |b| b[j]);
    let task = |first: usize| {
        let last = out.min(first + BLOCK);
        let mut j = first;
        while j < last {
            let wide = j + 2 <= last;
            let mut i = 0;
            while i < rows {
                let count = if wide { 2.min(rows - i) } else { 1 };
                match (wide, count) {
                    (true, 2) => {
                        let d = dots([weights(j), weights(j + 1)], [row(i), row(i + 1)]);
                        for (dj, d) in d.iter().enumerate() {
                            for (di, d) in d.iter().enumerate() {
                                put(i + di, j + dj, d + bias(j + dj));
                            }
                        }
                    }
                    (true, _) => {
                        for (dj, [d]) in dots([weights(j), weights(j + 1)], [row(i)]).into_iter().enumerate() {
                            put(i, j + dj, d + bias(j + dj));
                        }
                    }
                    _ => {
                        let [[d]] = dots([weights(j)], [row(i)]);
                        put(i, j, d + bias(j));
                    }
                }
                i += count;
            }
            j += if wide { 2 } else { 1 };
        }
    };
    let tasks = out.div_ceil(BLOCK);
    if rows * out * inp > 200_000 && tasks > 1 {
        (0..tasks).into_par_iter().for_each(|t| task(t * BLOCK));
    } else {
        (0..tasks).for_each(|t| task(t * BLOCK));
    }
}

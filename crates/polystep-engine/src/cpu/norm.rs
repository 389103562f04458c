//! Residual sum, dropout and layer norm in one pass over each row, and the gradient of all three.
//!
//! With x̂ = (s − mean)/std and h = γ·dy: LN'(dy) = (h − mean(h) − x̂·mean(h·x̂))/std, grad γ = Σ dy·x̂, grad β = Σ dy.

use super::Buffer;
use super::dropout::Mask;
use super::math::sum;
use super::rows::{Per, add_up, for_blocks};
use crate::NormOrder;

/// Rows per block; also the rows of one partial sum of grad γ and grad β.
pub const BLOCK: usize = 32;

const EPS: f32 = 1e-5;

/// Mean and 1/std of a row.
#[inline(always)]
pub fn stat(row: &[f32]) -> [f32; 2] {
    let n = row.len() as f32;
    let mean = sum(row.len(), |i| row[i]) / n;
    let var = sum(row.len(), |i| (row[i] - mean) * (row[i] - mean)) / n;
    [mean, 1.0 / (var + EPS).sqrt()]
}

/// `row ← (row − mean)/std·γ + β`.
#[inline(always)]
pub fn normalise(row: &mut [f32], [mean, rstd]: [f32; 2], gamma: &[f32], beta: &[f32]) {
    for ((x, g), b) in row.iter_mut().zip(gamma).zip(beta) {
        *x = ((*x - mean) * rstd).mul_add(*g, *b);
    }
}

/// `dx = LN'(dy)`, and adds this row's share of grad γ and grad β.
#[inline(always)]
pub fn norm_back(
    s: &[f32],
    [mean, rstd]: [f32; 2],
    gamma: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    dgamma: &mut [f32],
    dbeta: &mut [f32],
) {
    let n = dx.len();
    let (s, gamma, dy) = (&s[..n], &gamma[..n], &dy[..n]);
    let (dgamma, dbeta) = (&mut dgamma[..n], &mut dbeta[..n]);
    let mean_h = sum(n, |i| dy[i] * gamma[i]) / n as f32;
    let mean_hx = sum(n, |i| dy[i] * gamma[i] * ((s[i] - mean) * rstd)) / n as f32;
    for i in 0..n {
        let hat = (s[i] - mean) * rstd;
        dgamma[i] += dy[i] * hat;
        dbeta[i] += dy[i];
        dx[i] = (dy[i] * gamma[i] - mean_h - hat * mean_hx) * rstd;
    }
}

/// Where the stream comes from: it may be updated in place.
pub enum Stream<'a> {
    /// A slot of its own.
    Slot(&'a [f32]),
    /// The slot that `s` is written to.
    Sum,
    /// The slot that `y_stream` is written to.
    Normed,
}

/// `s = x + drop(f)`, `y = LN(s)` for each of `rows` rows. Writes s, statistics, y and y_stream; absent ones are empty.
pub fn forward(
    rows: usize,
    x: Stream,
    f: Option<&[f32]>,
    mask: Option<Mask>,
    (gamma, beta): (&[f32], &[f32]),
    [s, stats, y, y_stream]: [&mut Buffer; 4],
) {
    let d = gamma.len();
    let width = |b: &Buffer| Per::Row(if b.is_empty() { 0 } else { d });
    let (with_s, with_stream) = (width(s), width(y_stream));
    let stream = !y_stream.is_empty();
    let outs = [
        (&mut s[..], with_s),
        (&mut stats[..], Per::Row(2)),
        (&mut y[..], Per::Row(d)),
        (&mut y_stream[..], with_stream),
    ];
    for_blocks(rows, BLOCK, outs, |first, [s, st, y, y_stream]| {
        for r in 0..st.len() / 2 {
            let (at, y) = (r * d..(r + 1) * d, &mut y[r * d..(r + 1) * d]);
            // The row of y holds first x, then s, then y, so that it stays in the nearest cache.
            match x {
                Stream::Slot(x) => y.copy_from_slice(&x[(first + r) * d..(first + r + 1) * d]),
                Stream::Sum => y.copy_from_slice(&s[at.clone()]),
                Stream::Normed => y.copy_from_slice(&y_stream[at.clone()]),
            }
            if let Some(f) = f {
                let f = &f[(first + r) * d..(first + r + 1) * d];
                match mask {
                    None => y.iter_mut().zip(f).for_each(|(y, f)| *y += f),
                    Some(mask) => mask.row(first + r, d, |i, keep| y[i] += f[i] * keep),
                }
                s[at.clone()].copy_from_slice(y);
            }
            let now = stat(y);
            st[2 * r..2 * r + 2].copy_from_slice(&now);
            normalise(y, now, gamma, beta);
            if stream {
                y_stream[at].copy_from_slice(y);
            }
        }
    });
}

/// What [`backward`] reads.
pub struct Backward<'a> {
    pub order: NormOrder,
    pub first: bool,
    pub s: &'a [f32],
    pub stat: &'a [f32],
    pub gamma: &'a [f32],
    pub mask: Option<Mask>,
}

/// The gradient of [`forward`]; see [`crate::AddNormBack`]. `dy` may be the slot of `df` (then `dy` is `None`). `grads`
/// receives grad γ and grad β; `scratch` holds the partial sums.
pub fn backward(
    rows: usize,
    it: Backward,
    g: &mut [f32],
    dy: Option<&[f32]>,
    df: &mut [f32],
    scratch: &mut Buffer,
    [dgamma, dbeta]: [&mut [f32]; 2],
) {
    let d = it.gamma.len();
    let with_f = !df.is_empty();
    let blocks = rows.div_ceil(BLOCK);
    // Two partial sums and two rows of working space per block.
    let (partial, rest) = scratch.first(blocks * 4 * d).split_at_mut(blocks * d);
    let (partial_beta, work) = rest.split_at_mut(blocks * d);
    let outs = [
        (g, Per::Row(d)),
        (df, Per::Row(if with_f { d } else { 0 })),
        (partial, Per::Block(d)),
        (partial_beta, Per::Block(d)),
        (work, Per::Block(2 * d)),
    ];
    for_blocks(rows, BLOCK, outs, |first, [g, df, dgamma, dbeta, work]| {
        dgamma.fill(0.0);
        dbeta.fill(0.0);
        let (total, dx) = work.split_at_mut(d);
        for r in 0..g.len() / d {
            let (row, at) = (first + r, r * d..(r + 1) * d);
            let g = &mut g[at.clone()];
            let dy = match dy {
                Some(dy) => &dy[row * d..(row + 1) * d],
                None => &df[at.clone()],
            };
            if it.order == NormOrder::Post && !it.first {
                total.iter_mut().zip(&*g).zip(dy).for_each(|((t, g), dy)| *t = g + dy);
            } else {
                total.copy_from_slice(dy);
            }
            let s = &it.s[row * d..(row + 1) * d];
            let stat = [it.stat[2 * row], it.stat[2 * row + 1]];
            norm_back(s, stat, it.gamma, total, dx, dgamma, dbeta);
            if it.order == NormOrder::Pre && !it.first {
                g.iter_mut().zip(&*dx).for_each(|(g, dx)| *g += dx);
            } else {
                g.copy_from_slice(dx);
            }
            if with_f {
                let df = &mut df[at];
                match it.mask {
                    None => df.copy_from_slice(g),
                    Some(mask) => mask.row(row, d, |i, keep| df[i] = g[i] * keep),
                }
            }
        }
    });
    add_up(&scratch[..blocks * d], dgamma);
    add_up(&scratch[blocks * d..2 * blocks * d], dbeta);
}

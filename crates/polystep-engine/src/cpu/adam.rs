//! Global gradient norm, clipping and Adam over the flat buffer, as in PyTorch's `clip_grad_norm_` and `AdamW`.
//!
//! m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², p ← p·(1 − lr·decay) − lr·m̂/(√v̂ + ε), where m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ) and g
//! was scaled by clip/(norm + 1e-6) if the norm is over `clip`. Behind it, the average of the weights.

use super::Buffer;
use super::math::sum;
use super::rows::{Per, for_blocks};
use crate::{Adam, Scalars};

/// Parameters per block.
const BLOCK: usize = 8192;

/// Updates parameters, first and second moments by one step. Returns the gradient's norm before clipping.
pub fn step(
    it: &Adam,
    scalars: &Scalars,
    [params, first, second]: [&mut [f32]; 3],
    grads: &[f32],
    scratch: &mut Buffer,
) -> f32 {
    let n = params.len();
    let squares = scratch.first(n.div_ceil(BLOCK));
    for_blocks(n, BLOCK, [(&mut *squares, Per::Block(1))], |at, [square]| {
        let g = &grads[at..n.min(at + BLOCK)];
        square[0] = sum(g.len(), |i| g[i] * g[i]);
    });
    let norm = squares.iter().map(|&s| f64::from(s)).sum::<f64>().sqrt() as f32;
    let clip = if it.clip > 0.0 && norm > it.clip { it.clip / (norm + 1e-6) } else { 1.0 };

    let correction = |beta: f32| 1.0 - f64::from(beta).powf(scalars.step as f64);
    let lr = (f64::from(scalars.lr) / correction(it.beta1)) as f32;
    let root = (1.0 / correction(it.beta2)).sqrt() as f32;
    let keep = 1.0 - scalars.lr * it.weight_decay;
    let outs = [(params, Per::Row(1)), (first, Per::Row(1)), (second, Per::Row(1))];
    for_blocks(n, BLOCK, outs, |at, [p, m, v]| {
        let g = &grads[at..at + p.len()];
        for (((p, m), v), g) in p.iter_mut().zip(m).zip(v).zip(g) {
            let g = g * clip;
            *m = (g - *m).mul_add(1.0 - it.beta1, *m);
            *v = (g * g - *v).mul_add(1.0 - it.beta2, *v);
            let step = lr * *m / v.sqrt().mul_add(root, scalars.eps);
            *p = p.mul_add(keep, -step);
        }
    });
    norm
}

/// Lets the average follow the parameters: a ← a + share·(p − a).
pub fn follow(share: f32, params: &[f32], average: &mut [f32]) {
    for_blocks(params.len(), BLOCK, [(average, Per::Row(1))], |at, [a]| {
        for (a, p) in a.iter_mut().zip(&params[at..]) {
            *a = (p - *a).mul_add(share, *a);
        }
    });
}

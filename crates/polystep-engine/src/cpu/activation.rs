//! ReLU and exact GELU, elementwise. The forward pass keeps x, and the gradient is computed from it.

use super::math::{cumulative, density};
use super::rows::{Per, for_blocks};
use crate::Activation;

/// Elements per block.
const BLOCK: usize = 4096;

/// `y = act(x)`.
pub fn forward(kind: Activation, x: &[f32], y: &mut [f32]) {
    for_blocks(x.len(), BLOCK, [(y, Per::Row(1))], |first, [y]| forward_part(kind, &x[first..first + y.len()], y));
}

/// The same, on this thread.
pub fn forward_part(kind: Activation, x: &[f32], y: &mut [f32]) {
    match kind {
        Activation::Relu => y.iter_mut().zip(x).for_each(|(y, x)| *y = x.max(0.0)),
        Activation::Gelu => y.iter_mut().zip(x).for_each(|(y, x)| *y = x * cumulative(*x)),
    }
}

/// `d ← d·act'(x)`.
pub fn backward(kind: Activation, x: &[f32], d: &mut [f32]) {
    for_blocks(x.len(), BLOCK, [(d, Per::Row(1))], |first, [d]| backward_part(kind, &x[first..first + d.len()], d));
}

/// The same, on this thread.
pub fn backward_part(kind: Activation, x: &[f32], d: &mut [f32]) {
    match kind {
        Activation::Relu => d.iter_mut().zip(x).for_each(|(d, x)| *d = if *x > 0.0 { *d } else { 0.0 }),
        Activation::Gelu => d.iter_mut().zip(x).for_each(|(d, x)| {
            *d *= x.mul_add(density(*x), cumulative(*x));
        }),
    }
}

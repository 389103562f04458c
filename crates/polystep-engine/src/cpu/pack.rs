//! Packs the operands of a product: copies them into panels that [`super::tile`] reads from the first number to the last.
#![allow(unsafe_code)] // strided matrices by pointer

use super::matrix::Matrix;
use super::simd::Isa;
use super::tile::{DEPTH, PITCH, Panels};

/// Numbers that the packed A of `rows` rows and depth k takes.
pub fn a_len(isa: Isa, rows: usize, k: usize) -> usize {
    rows.next_multiple_of(isa.rows()) * k.max(PITCH)
}

/// Numbers that one panel of B of depth k takes.
pub fn panel_len(isa: Isa, k: usize) -> usize {
    isa.cols() * k
}

/// Packs A in the order in which it lies in memory.
///
/// # Safety
/// The memory of A is there, and nobody writes to it meanwhile.
pub unsafe fn pack_a(isa: Isa, a: Matrix, to: &mut [f32]) -> Panels {
    let (rows, k) = (a.rows, a.cols);
    assert!(to.len() >= a_len(isa, rows, k) && k <= DEPTH);
    // SAFETY: the caller's promise, and the assertion.
    unsafe {
        if a.col == 1 {
            for r in 0..rows {
                std::ptr::copy_nonoverlapping(a.at(r, 0), to.as_mut_ptr().add(r * PITCH), k);
            }
            return Panels::RowMajor;
        }
        let height = isa.rows();
        for (i, top) in (0..rows).step_by(height).enumerate() {
            let panel = to.as_mut_ptr().add(i * height * k);
            let count = height.min(rows - top);
            match (count, a.row) {
                (12, 1) => copy_rows::<12>(k, a.at(top, 0), a.col, panel, 12),
                (6, 1) if height == 6 => copy_rows::<6>(k, a.at(top, 0), a.col, panel, 6),
                _ => {
                    for p in 0..k {
                        let (from, to) = (a.at(top, p), panel.add(p * height));
                        for r in 0..count {
                            *to.add(r) = *from.add(r * a.row);
                        }
                    }
                }
            }
        }
    }
    Panels::KMajor
}

/// Adds the sum over k of each row of a packed A to `sums`.
pub fn row_sums(isa: Isa, panels: Panels, k: usize, packed: &[f32], sums: &mut [f32]) {
    let height = isa.rows();
    match panels {
        Panels::RowMajor => {
            for (sum, row) in sums.iter_mut().zip(packed.chunks(PITCH)) {
                *sum += row[..k].iter().sum::<f32>();
            }
        }
        Panels::KMajor if height == 12 => panel_sums::<12>(k, packed, sums),
        Panels::KMajor => panel_sums::<6>(k, packed, sums),
    }
}

/// N sums at once; those of rows that are not there are not used.
fn panel_sums<const N: usize>(k: usize, packed: &[f32], sums: &mut [f32]) {
    for (sums, panel) in sums.chunks_mut(N).zip(packed.as_chunks::<N>().0.chunks(k.max(1))) {
        let mut lanes = [0f32; N];
        for column in &panel[..k] {
            for (lane, x) in lanes.iter_mut().zip(column) {
                *lane += x;
            }
        }
        sums.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += lane);
    }
}

/// k rows of N neighbours each.
#[inline(always)]
unsafe fn copy_rows<const N: usize>(k: usize, from: *const f32, stride: usize, to: *mut f32, pitch: usize) {
    for p in 0..k {
        // SAFETY: the caller's.
        unsafe {
            to.add(p * pitch)
                .cast::<[f32; N]>()
                .write_unaligned(from.add(p * stride).cast::<[f32; N]>().read_unaligned())
        };
    }
}

/// Packs one panel of B, at most as wide as the instruction set's tile; the rest of the panel is zero.
///
/// # Safety
/// The memory of B is there, and nobody writes to it meanwhile.
pub unsafe fn pack_panel(isa: Isa, b: Matrix, to: &mut [f32]) {
    let (k, cols, width) = (b.rows, b.cols, isa.cols());
    assert!(to.len() >= panel_len(isa, k) && cols <= width);
    // With 16 of 32 columns the second half is never read.
    if cols < width && (b.col, cols) != (1, 16) {
        to[..k * width].fill(0.0);
    }
    let panel = to.as_mut_ptr();
    // SAFETY: the caller's promise, and the assertion.
    unsafe {
        match (b.col, cols) {
            (1, 32) => copy_rows::<32>(k, b.at(0, 0), b.row, panel, width),
            (1, 16) => copy_rows::<16>(k, b.at(0, 0), b.row, panel, width),
            (1, _) => {
                for p in 0..k {
                    std::ptr::copy_nonoverlapping(b.at(p, 0), panel.add(p * width), cols);
                }
            }
            _ => transpose(b, panel, width),
        }
    }
}

/// Columns of B that lie as rows in memory.
#[inline(always)]
unsafe fn transpose(b: Matrix, panel: *mut f32, width: usize) {
    const STEP: usize = 8;
    let (k, cols) = (b.rows, b.cols);
    let whole = if b.row == 1 { (k / STEP * STEP, cols / STEP * STEP) } else { (0, 0) };
    // SAFETY: the caller's: rows and columns of `pack_panel`.
    unsafe {
        for p in (0..whole.0).step_by(STEP) {
            for j in (0..whole.1).step_by(STEP) {
                transpose8(b.at(p, j), b.col, panel.add(p * width + j), width);
            }
        }
        for p in 0..k {
            for j in if p < whole.0 { whole.1 } else { 0 }..cols {
                *panel.add(p * width + j) = *b.at(p, j);
            }
        }
    }
}

/// Eight rows of eight become columns.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
#[inline(always)]
unsafe fn transpose8(from: *const f32, stride: usize, to: *mut f32, width: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller's: eight rows of eight on both sides. The compiler was told that there is AVX2.
    unsafe {
        let row = |i: usize| _mm256_loadu_ps(from.add(i * stride));
        let pair = |i: usize| (_mm256_unpacklo_ps(row(i), row(i + 1)), _mm256_unpackhi_ps(row(i), row(i + 1)));
        let quad = |i: usize| {
            let ((a, b), (c, d)) = (pair(i), pair(i + 2));
            [
                _mm256_shuffle_ps::<0x44>(a, c),
                _mm256_shuffle_ps::<0xEE>(a, c),
                _mm256_shuffle_ps::<0x44>(b, d),
                _mm256_shuffle_ps::<0xEE>(b, d),
            ]
        };
        let (upper, lower) = (quad(0), quad(4));
        for i in 0..4 {
            _mm256_storeu_ps(to.add(i * width), _mm256_permute2f128_ps::<0x20>(upper[i], lower[i]));
            _mm256_storeu_ps(to.add((i + 4) * width), _mm256_permute2f128_ps::<0x31>(upper[i], lower[i]));
        }
    }
}

/// Eight rows of eight become columns.
#[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
#[inline(always)]
unsafe fn transpose8(from: *const f32, stride: usize, to: *mut f32, width: usize) {
    for i in 0..8 {
        for j in 0..8 {
            // SAFETY: the caller's: eight rows of eight on both sides.
            unsafe { *to.add(j * width + i) = *from.add(i * stride + j) };
        }
    }
}

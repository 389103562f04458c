//! Matrix products, and the linear layer made of them.
//!
//! The sum over k of one element of a product is never split between threads, so products do not depend on their number.
#![allow(unsafe_code)] // the `gemm` crate takes pointers

use super::Buffer;
use super::rows::{Per, add_up, for_blocks};
use gemm::Parallelism;

/// A matrix somewhere in memory: element (i, j) is at `start + i·row + j·col`.
#[derive(Clone, Copy)]
pub struct Mat {
    pub start: *mut f32,
    pub row: usize,
    pub col: usize,
}

// SAFETY: a `Mat` is only an address; whoever uses it (an unsafe function) answers for the memory behind it.
unsafe impl Send for Mat {}
// SAFETY: as above.
unsafe impl Sync for Mat {}

impl Mat {
    /// Rows of `stride` numbers, from column `col` on.
    pub fn rows(data: &mut [f32], stride: usize, col: usize) -> Mat {
        Mat {
            start: data.as_mut_ptr().wrapping_add(col),
            row: stride,
            col: 1,
        }
    }

    /// The same, of something that is only read.
    pub fn of(data: &[f32], stride: usize, col: usize) -> Mat {
        Mat {
            start: data.as_ptr().cast_mut().wrapping_add(col),
            row: stride,
            col: 1,
        }
    }

    /// Rows and columns exchanged.
    pub fn t(self) -> Mat {
        Mat {
            row: self.col,
            col: self.row,
            ..self
        }
    }

    /// From row i, column j on.
    pub fn at(self, i: usize, j: usize) -> Mat {
        Mat {
            start: self.start.wrapping_add(i * self.row + j * self.col),
            ..self
        }
    }
}

/// `c = scale·a·b` (m×k times k×n), or `c += scale·a·b`.
///
/// # Safety
/// Every element of the three matrices lies in memory that lives during the call; nobody else touches c.
pub unsafe fn product(
    m: usize,
    n: usize,
    k: usize,
    c: Mat,
    add: bool,
    scale: f32,
    a: Mat,
    b: Mat,
    threads: Parallelism,
) {
    // SAFETY: the caller's promise is what `gemm` asks for.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.start,
            c.col as isize,
            c.row as isize,
            add,
            a.start.cast_const(),
            a.col as isize,
            a.row as isize,
            b.start.cast_const(),
            b.col as isize,
            b.row as isize,
            1.0,
            scale,
            false,
            false,
            false,
            threads,
        );
    }
}

/// Some columns of a slot: `data[i·stride + col ..]`.
pub struct Cols<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub col: usize,
}

/// The same, to be written.
pub struct ColsMut<'a> {
    pub data: &'a mut [f32],
    pub stride: usize,
    pub col: usize,
}

fn fits(len: usize, rows: usize, stride: usize, col: usize, width: usize) {
    assert!(
        rows == 0 || (rows - 1) * stride + col + width <= len && col + width <= stride,
        "a view leaves its slot"
    );
}

/// Rows per block of everything here that goes over rows.
const BLOCK: usize = 64;

/// `y = x·Wᵀ + b`; w is out × inp.
pub fn linear(
    rows: usize,
    x: Cols,
    w: &[f32],
    (out, inp): (usize, usize),
    b: Option<&[f32]>,
    y: ColsMut,
) {
    fits(x.data.len(), rows, x.stride, x.col, inp);
    fits(y.data.len(), rows, y.stride, y.col, out);
    assert!(w.len() == out * inp && b.is_none_or(|b| b.len() == out));
    if let Some(b) = b {
        for_blocks(
            rows,
            BLOCK,
            [(&mut *y.data, Per::Row(y.stride))],
            |_, [y_rows]| {
                for row in y_rows.chunks_exact_mut(y.stride) {
                    row[y.col..y.col + out].copy_from_slice(b);
                }
            },
        );
    }
    let to = Mat::rows(y.data, y.stride, y.col);
    // SAFETY: checked above; y is borrowed mutably.
    unsafe {
        let (x, w) = (Mat::of(x.data, x.stride, x.col), Mat::of(w, inp, 0).t());
        product(
            rows,
            out,
            inp,
            to,
            b.is_some(),
            1.0,
            x,
            w,
            Parallelism::Rayon(0),
        );
    }
}

/// `dx = dy·W`.
pub fn linear_dx(rows: usize, dy: &Cols, w: &[f32], (out, inp): (usize, usize), dx: ColsMut) {
    fits(dy.data.len(), rows, dy.stride, dy.col, out);
    fits(dx.data.len(), rows, dx.stride, dx.col, inp);
    assert!(w.len() == out * inp);
    let to = Mat::rows(dx.data, dx.stride, dx.col);
    // SAFETY: checked above; dx is borrowed mutably.
    unsafe {
        let (dy, w) = (Mat::of(dy.data, dy.stride, dy.col), Mat::of(w, inp, 0));
        product(rows, inp, out, to, false, 1.0, dy, w, Parallelism::Rayon(0));
    }
}

/// `dw = dyᵀ·x`, or `dw += dyᵀ·x`.
pub fn linear_dw(
    rows: usize,
    dy: &Cols,
    x: Cols,
    (out, inp): (usize, usize),
    dw: &mut [f32],
    add: bool,
) {
    fits(dy.data.len(), rows, dy.stride, dy.col, out);
    fits(x.data.len(), rows, x.stride, x.col, inp);
    assert!(dw.len() == out * inp);
    let to = Mat::rows(dw, inp, 0);
    // SAFETY: checked above; dw is borrowed mutably.
    unsafe {
        let (dy, x) = (
            Mat::of(dy.data, dy.stride, dy.col).t(),
            Mat::of(x.data, x.stride, x.col),
        );
        product(out, inp, rows, to, add, 1.0, dy, x, Parallelism::Rayon(0));
    }
}

/// `db = Σ rows of dy`.
pub fn linear_db(rows: usize, dy: &Cols, db: &mut [f32], scratch: &mut Buffer) {
    let out = db.len();
    let partial = scratch.first(rows.div_ceil(BLOCK) * out);
    for_blocks(
        rows,
        BLOCK,
        [(&mut *partial, Per::Block(out))],
        |first, [sum]| {
            sum.fill(0.0);
            for row in first..rows.min(first + BLOCK) {
                for (s, dy) in sum
                    .iter_mut()
                    .zip(&dy.data[row * dy.stride + dy.col..][..out])
                {
                    *s += dy;
                }
            }
        },
    );
    add_up(partial, db);
}

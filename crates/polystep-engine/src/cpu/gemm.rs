//! Matrix products C = A·B. They are cut into blocks, which are packed and then computed tile by tile.
//!
//! The sum over k goes in order, in blocks of [`DEPTH`], and is never divided among threads. How C is cut into tiles changes no bit
//! of it. So the number of threads and the sizes of tiles may be chosen for speed alone.
#![allow(unsafe_code)] // strided matrices by pointer, shared between threads

use super::Buffer;
use super::matrix::Matrix;
use super::pack::{a_len, pack_a, pack_panel, panel_len, row_sums};
use super::simd::Isa;
use super::tile::{Ahead, Block, DEPTH, Part, Start};
use rayon::prelude::*;
use std::cell::RefCell;

/// What is added to a product.
#[derive(Clone, Copy)]
pub enum Plus<'a> {
    /// C = A·B.
    Nothing,
    /// C += A·B.
    C,
    /// C = A·B + this row.
    Row(&'a [f32]),
}

impl Plus<'_> {
    /// What the block of k number `block` does with C, from column j on.
    fn start(self, block: usize, j: usize) -> Start {
        match self {
            _ if block > 0 => Start::Add,
            Plus::Nothing => Start::Set,
            Plus::C => Start::Add,
            Plus::Row(row) => Start::Row(row.as_ptr().wrapping_add(j)),
        }
    }
}

thread_local! {
    /// Packed A and B of this thread. Never borrowed across anything that could run another task.
    static PACKED: RefCell<(Buffer, Buffer)> = RefCell::default();
}

/// Rows of A that are packed at a time. Together with a panel of B they fit into the second cache.
const A_ROWS: usize = 48;

/// Columns of C per task of [`tall`]; also bounds the packed B of a [`Product`].
const B_COLS: usize = 256;

/// `c = a·b` (m×k times k×n) on this thread. Columns of c are neighbours.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    pub c: Matrix,
    pub a: Matrix,
    pub b: Matrix,
    pub plus: Plus<'a>,
    /// Only the part of it that is needed.
    pub part: Part,
    /// What will be read after this product.
    pub ahead: [Ahead; 2],
}

impl Product<'_> {
    /// All of `a·b`, and nothing else.
    pub fn new(c: Matrix, a: Matrix, b: Matrix) -> Self {
        Product { c, a, b, plus: Plus::Nothing, part: Part::Full, ahead: [Ahead::NOTHING; 2] }
    }

    /// Computes it. `sums`, if given, receives the sum of each row of a.
    ///
    /// # Safety
    /// The memory of the three matrices is there; nobody else touches c, and nobody writes to a and b.
    pub unsafe fn run(self, sums: Option<&mut [f32]>) {
        // SAFETY: the same promise.
        unsafe { self.run_on(Isa::here(), sums) }
    }

    /// The same, with another instruction set than the best.
    unsafe fn run_on(self, isa: Isa, mut sums: Option<&mut [f32]>) {
        let Product { c, a, b, plus, part, ahead } = self;
        let (m, n, k) = (c.rows, c.cols, a.cols);
        assert!(c.col == 1 && (a.rows, b.rows, b.cols) == (m, k, n), "the shapes of a product");
        PACKED.with_borrow_mut(|(packed_a, packed_b)| {
            for left in (0..n).step_by(B_COLS) {
                let cols = B_COLS.min(n - left);
                for (block, p) in (0..k.max(1)).step_by(DEPTH).enumerate() {
                    let depth = DEPTH.min(k - p);
                    let b_next = panel_len(isa, depth);
                    let next = DEPTH.min(k - p - depth);
                    let packed_b = packed_b.first(cols.div_ceil(isa.cols()) * b_next);
                    for (panel, j) in packed_b.chunks_mut(b_next.max(1)).zip((0..cols).step_by(isa.cols())) {
                        // SAFETY: inside b by the caller's promise.
                        unsafe { pack_panel(isa, b.tile((p, left + j), (depth, isa.cols().min(cols - j))), panel) };
                    }
                    for top in (0..m).step_by(A_ROWS) {
                        let rows = A_ROWS.min(m - top);
                        let packed_a = packed_a.first(a_len(isa, rows, depth));
                        // SAFETY: inside a, b and c by the caller's promise.
                        unsafe {
                            let panels = pack_a(isa, a.tile((top, p), (rows, depth)), packed_a);
                            if let Some(sums) = sums.as_deref_mut().filter(|_| left == 0) {
                                let sums = &mut sums[top..top + rows];
                                if block == 0 {
                                    sums.fill(0.0);
                                }
                                row_sums(isa, panels, depth, packed_a, sums);
                            }
                            isa.block(Block {
                                rows,
                                cols,
                                k: depth,
                                a: packed_a.as_ptr(),
                                panels,
                                b: packed_b.as_ptr(),
                                b_next,
                                c: c.at(top, left),
                                ldc: c.row,
                                start: plus.start(block, left),
                                part: match part {
                                    Part::Lower(_) => part.at(top, left),
                                    _ => part.at(top, p),
                                },
                                ahead: if next == 0 {
                                    if top == 0 { ahead } else { [Ahead::NOTHING; 2] }
                                } else {
                                    let after = p + depth;
                                    let b_rows = next.div_ceil(m.div_ceil(A_ROWS));
                                    let b_from = (top / A_ROWS * b_rows).min(next);
                                    let b_rows = b_rows.min(next - b_from);
                                    let b_next = b.tile((after + b_from, left), (b_rows, cols));
                                    [a.tile((top, after), (rows, next)).ahead(), b_next.ahead()]
                                },
                            });
                        }
                    }
                }
            }
        });
    }
}

/// With fewer multiplications than this a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 256 * 1024;

/// Numbers of a packed k × n matrix.
pub fn packed_len(n: usize, k: usize) -> usize {
    let width = Isa::here().cols();
    k * n.div_ceil(width) * width
}

/// Packs b (k × n) for [`wide_packed`]. Panel j of the block of k that starts at p lies at (p·panels + j·depth)·width.
///
/// # Safety
/// The memory of b is there, and nobody writes to it meanwhile.
pub unsafe fn pack_wide(b: Matrix, to: &mut [f32], parallel: bool) {
    let (isa, n, k) = (Isa::here(), b.cols, b.rows);
    let (panels, width) = (n.div_ceil(isa.cols()), isa.cols());
    let to = Matrix::of_mut(to, (k * panels, width));
    let pack = |i: usize| {
        let (p, j) = (i / panels * DEPTH, i % panels);
        let depth = DEPTH.min(k - p);
        let from = b.tile((p, j * width), (depth, width.min(n - j * width)));
        let panel = to.tile((p * panels + j * depth, 0), (depth, width));
        // SAFETY: panels do not overlap, and their rows lie one behind the other in `to`; b is the caller's promise.
        unsafe { pack_panel(isa, from, std::slice::from_raw_parts_mut(panel.at(0, 0), depth * width)) };
    };
    let tasks = k.div_ceil(DEPTH) * panels;
    if parallel {
        (0..tasks).into_par_iter().with_min_len(4).for_each(pack);
    } else {
        (0..tasks).for_each(pack);
    }
}

/// Rows and columns of c that a task has finished.
#[derive(Clone, Copy)]
pub struct Done {
    pub first: usize,
    pub rows: usize,
    pub left: usize,
    pub cols: usize,
}

/// `c = a·b` with many rows, all of which use the same b (weights). So b is packed once. A task calls `done` for each part that it
/// has finished.
///
/// # Safety
/// As [`Product::run`].
pub unsafe fn wide(c: Matrix, plus: Plus, a: Matrix, b: Matrix, scratch: &mut Buffer, done: impl Fn(Done) + Sync) {
    assert!((a.cols, c.cols) == (b.rows, b.cols), "the shapes of a product");
    let packed = scratch.first(packed_len(b.cols, b.rows));
    // SAFETY: the same promise.
    unsafe {
        pack_wide(b, packed, c.rows * b.rows * b.cols > WORTH_A_THREAD);
        wide_packed(c, plus, a, packed, done);
    }
}

/// With at least this many weights a second thread is worth its cost even for one row, because reading them takes long.
const WORTH_READING: usize = 192 * 1024;

/// [`wide`] with a b that [`pack_wide`] has packed. A task takes rows of c if there are many. Otherwise it takes columns, so that
/// each weight is read once, by one thread.
///
/// # Safety
/// As [`Product::run`].
pub unsafe fn wide_packed(c: Matrix, plus: Plus, a: Matrix, packed: &[f32], done: impl Fn(Done) + Sync) {
    let (m, n, k) = (c.rows, c.cols, a.cols);
    assert!(c.col == 1 && a.rows == m && packed.len() >= packed_len(n, k), "the shapes of a product");
    let isa = Isa::here();
    let (panels, width) = (n.div_ceil(isa.cols()), isa.cols());
    let packed = Matrix::of(packed, (k * panels, width));
    let parallel = m * n * k > WORTH_A_THREAD || n * k >= WORTH_READING;
    let threads = if parallel { rayon::current_num_threads() } else { 1 };
    let row_blocks = m.div_ceil(A_ROWS);
    let (across, down) = if threads == 1 {
        (1, 1)
    } else if row_blocks >= 4 * threads {
        (1, row_blocks)
    } else {
        // If there is enough to do, more tasks than threads make up for a thread that starts late.
        let tasks = if m * n * k > 32 * WORTH_A_THREAD { 2 * threads } else { threads };
        let across = tasks.min(panels);
        (across, tasks.div_ceil(across).min(row_blocks))
    };
    let height = if down == row_blocks { A_ROWS } else { m.div_ceil(down).next_multiple_of(isa.rows()) };
    let task = |i: usize| {
        let (column, row) = (i % across, i / across);
        let (from, to) = (panels * column / across, panels * (column + 1) / across);
        let (left, cols) = (from * width, n.min(to * width) - from * width);
        for first in (row * height..m.min((row + 1) * height)).step_by(A_ROWS) {
            let rows = A_ROWS.min(m.min((row + 1) * height) - first);
            PACKED.with_borrow_mut(|(packed_a, _)| {
                for (block, p) in (0..k).step_by(DEPTH).enumerate() {
                    let depth = DEPTH.min(k - p);
                    let packed_a = packed_a.first(a_len(isa, rows, depth));
                    // SAFETY: inside a and c by the caller's promise; rows and columns of c belong to this task.
                    unsafe {
                        let order = pack_a(isa, a.tile((first, p), (rows, depth)), packed_a);
                        isa.block(Block {
                            rows,
                            cols,
                            k: depth,
                            a: packed_a.as_ptr(),
                            panels: order,
                            b: packed.at(p * panels + from * depth, 0),
                            b_next: depth * width,
                            c: c.at(first, left),
                            ldc: c.row,
                            start: plus.start(block, left),
                            part: Part::Full,
                            ahead: [
                                if p + depth < k {
                                    a.tile((first, p + depth), (rows, DEPTH.min(k - p - depth))).ahead()
                                } else {
                                    let after = (first + A_ROWS).min(m);
                                    a.tile((after, 0), (A_ROWS.min(m - after), DEPTH.min(k))).ahead()
                                },
                                Ahead::NOTHING,
                            ],
                        });
                    }
                }
            });
            done(Done { first, rows, left, cols });
        }
    };
    let tasks = across * m.div_ceil(height.max(1));
    if tasks > 1 {
        (0..tasks).into_par_iter().with_max_len(1).for_each(task);
    } else if m > 0 {
        task(0);
    }
}

/// `c = a·b` with a long k (a weight gradient: k is the batch's tokens): tasks take tiles of c. `sums`, if given, receives the
/// sum of each row of a (the gradient of a bias).
///
/// # Safety
/// As [`Product::run`].
pub unsafe fn tall(c: Matrix, a: Matrix, b: Matrix, sums: Option<&mut [f32]>) {
    let (m, n, k) = (c.rows, c.cols, a.cols);
    let sums = sums.map(|sums| Matrix::of_mut(sums, (1, m)));
    let across = n.div_ceil(B_COLS);
    let threads = if m * n * k > WORTH_A_THREAD { rayon::current_num_threads() } else { 1 };
    let height = m.div_ceil(threads.div_ceil(across)).clamp(24, 8 * A_ROWS).next_multiple_of(12);
    let task = |i: usize| {
        let (top, left) = (i / across * height, i % across * B_COLS);
        let (rows, cols) = (height.min(m - top), B_COLS.min(n - left));
        let (a, b) = (a.tile((top, 0), (rows, k)), b.tile((0, left), (k, cols)));
        // SAFETY: the caller's promise; tiles of c do not meet, nor do parts of the sums, which go with the first tile of a row.
        unsafe {
            let sums = sums.filter(|_| left == 0).map(|sums| sums.tile((0, top), (1, rows)).row_mut(0));
            Product::new(c.tile((top, left), (rows, cols)), a, b).run(sums);
        }
    };
    let tasks = m.div_ceil(height) * across;
    if threads > 1 {
        (0..tasks).into_par_iter().with_max_len(1).for_each(task);
    } else {
        (0..tasks).for_each(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bits_on_every_machine() {
        let (m, n, k) = (50, 75, 600);
        let fraction = |x: Vec<f32>| -> Vec<f32> { x.into_iter().map(|x| x / 7.0).collect() };
        let (a, b) = (fraction(numbers(m * k, 1)), fraction(numbers(k * n, 2)));
        let on = |isa| {
            let mut c = vec![0.0; m * n];
            let (to, a, b) = (Matrix::of_mut(&mut c, (m, n)), Matrix::of(&a, (m, k)), Matrix::of(&b, (k, n)));
            // SAFETY: the three vectors live, and c is used by nobody else.
            unsafe { Product::new(to, a, b).run_on(isa, None) };
            c
        };
        let best = on(Isa::here());
        assert!(best.iter().zip(on(Isa::Plain)).all(|(a, b)| a.to_bits() == b.to_bits()));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            assert!(best.iter().zip(on(Isa::Avx2)).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }

    /// Zeros where the mask is, and what is not needed may be anything.
    #[test]
    fn parts_of_a_causal_product() {
        let (m, n, k) = (70, 90, 300);
        for offset in [-5isize, 0, 20, 250] {
            let masked = |part: Part, i: usize, p: usize| match part {
                Part::Until(o) => p as isize > i as isize + o,
                Part::From(o) => (p as isize) < i as isize + o,
                _ => false,
            };
            for part in [Part::Lower(offset), Part::Until(offset), Part::From(offset)] {
                let (mut a, b) = (numbers(m * k, 1), numbers(k * n, 2));
                (0..m * k).filter(|&i| masked(part, i / k, i % k)).for_each(|i| a[i] = 0.0);
                let mut c = vec![7.0; m * n];
                let all = Product::new(Matrix::of_mut(&mut c, (m, n)), Matrix::of(&a, (m, k)), Matrix::of(&b, (k, n)));
                // SAFETY: the three vectors live, and c is used by nobody else.
                unsafe { Product { part, ..all }.run(None) };
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    if matches!(part, Part::Lower(o) if j as isize > i as isize + o) {
                        continue;
                    }
                    let want = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<f32>();
                    assert_eq!(c[i * n + j], want, "{offset}: row {i}, column {j}");
                }
            }
        }
    }

    fn numbers(n: usize, seed: u32) -> Vec<f32> {
        (0..n as u32).map(|i| (crate::philox::philox([i, seed, 0, 0], 1)[0] % 17) as f32 - 8.0).collect()
    }

    /// Small integers, so that every order of summation is exact.
    #[test]
    fn every_layout_and_edge() {
        for (m, n, k) in [(1, 1, 1), (12, 32, 7), (13, 33, 256), (97, 70, 300), (5, 300, 513), (200, 31, 64), (3, 5, 0)]
        {
            let (a, b, c0, row) = (numbers(m * k, 1), numbers(k * n, 2), numbers(m * n, 3), numbers(n, 4));
            let a_rows = &a;
            let dot = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<f32>();
            let at: Vec<f32> = (0..k * m).map(|i| a[i % m * k + i / m]).collect();
            let bt: Vec<f32> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
            let layouts_a = [Matrix::of(&a, (m, k)), Matrix::of(&at, (k, m)).t()];
            let layouts_b = [Matrix::of(&b, (k, n)), Matrix::of(&bt, (n, k)).t()];
            for (a, b) in layouts_a.into_iter().flat_map(|a| layouts_b.map(|b| (a, b))) {
                for how in 0..3 {
                    for plus in [Plus::Nothing, Plus::C, Plus::Row(&row)] {
                        if k == 0 && how == 1 {
                            continue; // a linear layer has inputs
                        }
                        if how == 2 && !matches!(plus, Plus::Nothing) {
                            continue; // nothing is added to a weight gradient
                        }
                        let (mut c, mut sums) = (c0.clone(), vec![9.0; m]);
                        let to = Matrix::of_mut(&mut c, (m, n));
                        // SAFETY: the vectors live, and c is used by nobody else.
                        unsafe {
                            match how {
                                0 => Product { plus, ..Product::new(to, a, b) }.run(Some(&mut sums)),
                                1 => wide(to, plus, a, b, &mut Buffer::default(), |_| ()),
                                _ => tall(to, a, b, Some(&mut sums)),
                            }
                        }
                        for (i, sum) in sums.iter().enumerate().filter(|_| how != 1) {
                            assert_eq!(*sum, (0..k).map(|p| a_rows[i * k + p]).sum::<f32>());
                        }
                        for i in 0..m * n {
                            let before = match plus {
                                Plus::Nothing => 0.0,
                                Plus::C => c0[i],
                                Plus::Row(row) => row[i % n],
                            };
                            assert_eq!(c[i], dot(i / n, i % n) + before, "{m}×{n}×{k}, way {how}, element {i}");
                        }
                    }
                }
            }
        }
    }
}

//! The one kernel of every matrix product: a tile of C in registers, over packed panels of A and B.
//!
//! A tile is `rows × 2 vectors`. Each element is one chain of fused multiply-adds over k, in order, whatever the shape of the tile.
//! So no bit depends on how C is cut into tiles, or on the width of the vectors.
#![allow(unsafe_code)] // pointers and vector instructions

#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512};
use super::simd::{Isa, Plain, Simd, prefetch, prefetch_far};

/// What a tile does with C.
#[derive(Clone, Copy)]
pub enum Start {
    /// C = A·B.
    Set,
    /// C = A·B + C.
    Add,
    /// C = A·B + this row, which begins at the tile's first column.
    Row(*const f32),
}

/// A tile of `M` rows and `V` vectors of columns of C, of which `cols` are there. Element (r, p) of A is at `r·RS + p·PS`; row p of B is at
/// `p·COLS` (padded to whole vectors).
#[inline(always)]
unsafe fn tile<S: Simd, const M: usize, const V: usize, const RS: usize, const PS: usize>(
    k: usize,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    ldc: usize,
    cols: usize,
    start: Start,
) {
    // SAFETY: the caller of `block` answers for every element that is named here, and for the machine.
    unsafe {
        let mut acc = [[S::zero(); V]; M];
        for r in 0..M {
            // C is needed at the end; ask for it now.
            prefetch(c.wrapping_add(r * ldc));
            prefetch(c.wrapping_add(r * ldc + V * S::LANES - 1));
        }
        let (mut a, mut b) = (a, b);
        for _ in 0..k {
            let mut columns = [S::zero(); V];
            for (i, column) in columns.iter_mut().enumerate() {
                *column = S::load(b.add(i * S::LANES));
            }
            for (r, acc) in acc.iter_mut().enumerate() {
                let x = S::splat(a.add(r * RS));
                for (acc, column) in acc.iter_mut().zip(columns) {
                    *acc = S::fma(x, column, *acc);
                }
            }
            a = a.add(PS);
            b = b.add(S::COLS);
        }
        if cols == V * S::LANES {
            for (r, acc) in acc.iter().enumerate() {
                for (i, &v) in acc.iter().enumerate() {
                    let to = c.add(r * ldc + i * S::LANES);
                    let v = match start {
                        Start::Set => v,
                        Start::Add => S::add(v, S::load(to)),
                        Start::Row(row) => S::add(v, S::load(row.add(i * S::LANES))),
                    };
                    S::store(to, v);
                }
            }
        } else {
            let mut row = [0f32; 32];
            for (r, acc) in acc.iter().enumerate() {
                for (i, &v) in acc.iter().enumerate() {
                    S::store(row.as_mut_ptr().add(i * S::LANES), v);
                }
                for (j, &v) in row.iter().enumerate().take(cols) {
                    let to = c.add(r * ldc + j);
                    *to = match start {
                        Start::Set => v,
                        Start::Add => v + *to,
                        Start::Row(row) => v + *row.add(j),
                    };
                }
            }
        }
    }
}

/// Panels of A: `ROWS` rows at a time. `RowMajor`: rows of [`PITCH`] numbers; `KMajor`: for each k, ROWS numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Panels {
    /// As the rows of a matrix.
    RowMajor,
    /// As the columns of one.
    KMajor,
}

/// The largest k of one packed block.
pub const DEPTH: usize = 384;

/// Numbers from one row of a row-major panel to the next. It is no power of two, since rows would then share a cache set.
pub const PITCH: usize = DEPTH + 16;

/// Columns of B that the second cache holds at depth [`DEPTH`], with room for the rest.
const CHUNK: usize = 256;

/// The part of a product that a causal mask leaves. Row i and column j of C (or depth p of A) are counted from the block's
/// own corner; the offset says how far the mask's diagonal is from it.
#[derive(Clone, Copy)]
pub enum Part {
    /// All of it.
    Full,
    /// C is not needed where j > i + offset.
    Lower(isize),
    /// A is zero where p > i + offset.
    Until(isize),
    /// A is zero where p < i + offset.
    From(isize),
}

impl Part {
    /// The same part, seen from `rows` further down and `across` further right (in C or in A).
    pub fn at(self, rows: usize, across: usize) -> Part {
        let by = rows as isize - across as isize;
        match self {
            Part::Full => Part::Full,
            Part::Lower(offset) => Part::Lower(offset + by),
            Part::Until(offset) => Part::Until(offset + by),
            Part::From(offset) => Part::From(offset + by),
        }
    }

    /// The depths that rows `top .. top + rows` need.
    #[inline(always)]
    fn depths(self, top: usize, rows: usize, k: usize) -> (usize, usize) {
        let clamp = |x: isize| x.clamp(0, k as isize) as usize;
        match self {
            Part::Full | Part::Lower(_) => (0, k),
            Part::Until(offset) => (0, clamp((top + rows) as isize + offset)),
            Part::From(offset) => (clamp(top as isize + offset), k),
        }
    }

    /// Whether rows `top .. top + rows` need nothing from column `left` on.
    #[inline(always)]
    fn leaves_out(self, top: usize, rows: usize, left: usize) -> bool {
        matches!(self, Part::Lower(offset) if left as isize >= (top + rows) as isize + offset)
    }
}

/// Rows of numbers that will be needed next: asked for, line by line, while tiles are computed.
#[derive(Clone, Copy)]
pub struct Ahead {
    start: *const f32,
    stride: usize,
    lines: usize,
    left: usize,
    line: usize,
}

impl Ahead {
    /// Nothing to ask for.
    pub const NOTHING: Ahead = Ahead { start: std::ptr::null(), stride: 0, lines: 0, left: 0, line: 0 };

    /// `rows` rows of `len` numbers.
    pub fn new(start: *const f32, stride: usize, rows: usize, len: usize) -> Ahead {
        let lines = len.div_ceil(16);
        Ahead { start, stride, lines, left: rows * lines, line: 0 }
    }

    /// Asks for the next n lines.
    #[inline(always)]
    fn ask(&mut self, n: usize) {
        for _ in 0..n.min(self.left) {
            prefetch_far(self.start.wrapping_add(self.line * 16));
            self.line += 1;
            if self.line == self.lines {
                self.line = 0;
                self.start = self.start.wrapping_add(self.stride);
            }
        }
        self.left = self.left.saturating_sub(n);
    }
}

/// C (`rows × cols`) from packed panels of A and B of depth k.
#[derive(Clone, Copy)]
pub struct Block {
    pub rows: usize,
    pub cols: usize,
    pub k: usize,
    pub a: *const f32,
    pub panels: Panels,
    pub b: *const f32,
    /// Numbers from one panel of B to the next.
    pub b_next: usize,
    pub c: *mut f32,
    pub ldc: usize,
    pub start: Start,
    pub part: Part,
    /// Two regions that the next block will read.
    pub ahead: [Ahead; 2],
}

macro_rules! tiles {
    ($s:ty, $pitch:expr, $it:ident, $rows:ident, $k:ident, $a:ident, $b:ident, $c:ident, $cols:ident, $start:ident, $($m:literal)*) => {
        match ($rows, $it.panels, $cols > <$s as Simd>::LANES) {
            $(
                ($m, Panels::RowMajor, true) => tile::<$s, $m, 2, PITCH, 1>($k, $a, $b, $c, $it.ldc, $cols, $start),
                ($m, Panels::KMajor, true) => tile::<$s, $m, 2, 1, $pitch>($k, $a, $b, $c, $it.ldc, $cols, $start),
                ($m, Panels::RowMajor, false) => tile::<$s, $m, 1, PITCH, 1>($k, $a, $b, $c, $it.ldc, $cols, $start),
                ($m, Panels::KMajor, false) => tile::<$s, $m, 1, 1, $pitch>($k, $a, $b, $c, $it.ldc, $cols, $start),
            )*
            _ => unreachable!("a tile has at most ROWS rows"),
        }
    };
}

macro_rules! block {
    ($name:ident, $s:ty, $pitch:literal, $(#[$attribute:meta])* $($m:literal)*) => {
        $(#[$attribute])*
        unsafe fn $name(it: Block) {
            const ROWS: usize = <$s as Simd>::ROWS;
            const COLS: usize = <$s as Simd>::COLS;
            let tiles = it.cols.div_ceil(COLS) * it.rows.div_ceil(ROWS);
            let mut ahead = it.ahead;
            let each = ahead.map(|a| a.left.div_ceil(tiles));
            // A panel of A stays in the first cache while panels of B pass through it, as many as the second cache holds.
            for chunk in (0..it.cols).step_by(CHUNK) {
                for (i, top) in (0..it.rows).step_by(ROWS).enumerate() {
                    let rows = ROWS.min(it.rows - top);
                    let (from, to) = it.part.depths(top, rows, it.k);
                    let k = to - from;
                    let a = it.a.wrapping_add(match it.panels {
                        Panels::RowMajor => i * ROWS * PITCH + from,
                        Panels::KMajor => i * ROWS * it.k + ROWS * from,
                    });
                    for left in (chunk..it.cols.min(chunk + CHUNK)).step_by(COLS) {
                        if it.part.leaves_out(top, rows, left) {
                            break;
                        }
                        let cols = COLS.min(it.cols - left);
                        let start = match it.start {
                            Start::Row(row) => Start::Row(row.wrapping_add(left)),
                            other => other,
                        };
                        let b = it.b.wrapping_add(left / COLS * it.b_next + from * COLS);
                        let c = it.c.wrapping_add(top * it.ldc + left);
                        ahead[0].ask(each[0]);
                        ahead[1].ask(each[1]);
                        // SAFETY: the caller answers for the packed panels and for C.
                        unsafe { tiles!($s, $pitch, it, rows, k, a, b, c, cols, start, $($m)*) };
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
block!(block_avx512, Avx512, 12, #[target_feature(enable = "avx512f")] 1 2 3 4 5 6 7 8 9 10 11 12);
#[cfg(target_arch = "x86_64")]
block!(block_avx2, Avx2, 6, #[target_feature(enable = "avx2,fma")] 1 2 3 4 5 6);

block!(block_plain, Plain, 6, 1 2 3 4 5 6);

impl Isa {
    /// Computes a block.
    ///
    /// # Safety
    /// The panels were packed for this instruction set as [`Block`] says, C is valid and nobody else touches it.
    #[inline]
    pub unsafe fn block(self, it: Block) {
        // SAFETY: the caller's promise; `here` detected the features.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => block_avx512(it),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => block_avx2(it),
                Isa::Plain => block_plain(it),
            }
        }
    }
}

//! Vectors of fp32 numbers, of the widest kind that the machine has.
#![allow(unsafe_code)] // intrinsics and pointers

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A vector of fp32 numbers. All functions are unsafe: the caller runs on a machine that has the instructions, and answers
/// for the pointers.
pub trait Simd: Copy {
    /// The register.
    type V: Copy;
    /// Numbers in it.
    const LANES: usize;
    /// Rows of a tile.
    const ROWS: usize;
    /// Columns of a tile.
    const COLS: usize = 2 * Self::LANES;

    /// All zero.
    unsafe fn zero() -> Self::V;
    /// One number in every lane.
    unsafe fn splat(from: *const f32) -> Self::V;
    /// Neighbours in memory.
    unsafe fn load(from: *const f32) -> Self::V;
    /// Back to memory.
    unsafe fn store(to: *mut f32, v: Self::V);
    /// a·b + c, rounded once.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// a + b.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
}

/// Declares a kind of vector: its register, lanes, rows of a tile, and the expression for each function of [`Simd`].
macro_rules! vectors {
    (
        $(#[$attribute:meta])* $name:ident($v:ty, $lanes:literal, $rows:literal)
        $($f:ident($($arg:ident: $type:ty),*) $(-> $out:ty)? = $body:expr;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy)]
        pub struct $name;

        $(#[$attribute])*
        impl Simd for $name {
            type V = $v;
            const LANES: usize = $lanes;
            const ROWS: usize = $rows;

            $(
                #[inline(always)]
                unsafe fn $f($($arg: $type),*) $(-> $out)? {
                    // SAFETY: the caller's promise, which is the trait's.
                    #[allow(unused_unsafe)]
                    unsafe { $body }
                }
            )*
        }
    };
}

vectors! {
    /// 16 lanes, 32 registers.
    #[cfg(target_arch = "x86_64")]
    Avx512(__m512, 16, 12)
    zero() -> __m512 = _mm512_setzero_ps();
    splat(from: *const f32) -> __m512 = _mm512_set1_ps(*from);
    load(from: *const f32) -> __m512 = _mm512_loadu_ps(from);
    store(to: *mut f32, v: __m512) = _mm512_storeu_ps(to, v);
    fma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
    add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
}

vectors! {
    /// 8 lanes, 16 registers.
    #[cfg(target_arch = "x86_64")]
    Avx2(__m256, 8, 6)
    zero() -> __m256 = _mm256_setzero_ps();
    splat(from: *const f32) -> __m256 = _mm256_broadcast_ss(&*from);
    load(from: *const f32) -> __m256 = _mm256_loadu_ps(from);
    store(to: *mut f32, v: __m256) = _mm256_storeu_ps(to, v);
    fma(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
    add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
}

vectors! {
    /// Any other machine: what the compiler makes of it.
    Plain([f32; 8], 8, 6)
    zero() -> [f32; 8] = [0.0; 8];
    splat(from: *const f32) -> [f32; 8] = [*from; 8];
    load(from: *const f32) -> [f32; 8] = from.cast::<[f32; 8]>().read();
    store(to: *mut f32, v: [f32; 8]) = to.cast::<[f32; 8]>().write(v);
    fma(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] = std::array::from_fn(|i| a[i].mul_add(b[i], c[i]));
    add(a: [f32; 8], b: [f32; 8]) -> [f32; 8] = std::array::from_fn(|i| a[i] + b[i]);
}

/// Asks for the cache line of an address, which need not be valid.
#[inline(always)]
pub fn prefetch(_at: *const f32) {
    // SAFETY: a prefetch reads nothing that the program sees; every x86-64 processor has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(_at.cast());
    }
}

/// The same, but only into the second cache.
#[inline(always)]
pub fn prefetch_far(_at: *const f32) {
    // SAFETY: as above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T1>(_at.cast());
    }
}

/// The instruction set whose vectors are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 12 × 32 tiles.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 6 × 16 tiles.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 6 × 16 tiles.
    Plain,
}

impl Isa {
    /// The widest vectors that this machine has.
    #[inline]
    pub fn here() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Isa::Avx2;
            }
        }
        Isa::Plain
    }

    /// Rows of a tile.
    pub fn rows(self) -> usize {
        self.tile().0
    }

    /// Columns of a tile.
    pub fn cols(self) -> usize {
        self.tile().1
    }

    fn tile(self) -> (usize, usize) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => (Avx512::ROWS, Avx512::COLS),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => (Avx2::ROWS, Avx2::COLS),
            Isa::Plain => (Plain::ROWS, Plain::COLS),
        }
    }
}

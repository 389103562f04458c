//! Philox4x32-10 (Salmon et al. 2011): the counter-based generator behind dropout, the same on both devices.
//!
//! The four words of counter (column / 4, row, site, 0) under the key (seed low, seed high) decide columns 4c … 4c+3 of a row.
//! An element is kept if its word is at least `threshold(p)`. `kernels/philox.cuh` is this file in CUDA.

use std::array::from_fn;

const M0: u32 = 0xD251_1F53;
const M1: u32 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// The four words of one counter.
pub fn philox(counter: [u32; 4], seed: u64) -> [u32; 4] {
    philox_many(counter.map(|word| [word]), seed).map(|[word]| word)
}

/// The four words of N counters, computed side by side, so that the compiler makes vector code of it. Word w of counter i is
/// at `[w][i]`.
#[inline(always)]
pub fn philox_many<const N: usize>(mut x: [[u32; N]; 4], seed: u64) -> [[u32; N]; 4] {
    let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
    for _ in 0..10 {
        let a = x[0].map(|x| u64::from(x) * u64::from(M0));
        let b = x[2].map(|x| u64::from(x) * u64::from(M1));
        x = [
            from_fn(|i| (b[i] >> 32) as u32 ^ x[1][i] ^ k0),
            b.map(|b| b as u32),
            from_fn(|i| (a[i] >> 32) as u32 ^ x[3][i] ^ k1),
            a.map(|a| a as u32),
        ];
        k0 = k0.wrapping_add(W0);
        k1 = k1.wrapping_add(W1);
    }
    x
}

/// Words below this are dropped.
pub fn threshold(p: f32) -> u32 {
    (f64::from(p) * 4_294_967_296.0).min(4_294_967_295.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors of the Random123 distribution (kat_vectors, philox 4x32 10).
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 4], 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }
}

//! Philox4x32-10 (Salmon et al. 2011): the counter-based generator behind dropout, the same on both devices.
//!
//! The four words of counter (column / 4, row, site, 0) under the key (seed low, seed high) decide columns 4c … 4c+3 of a row.
//! An element is kept if its word is at least `threshold(p)`. `kernels/philox.cuh` is this file in CUDA.

const M0: u32 = 0xD251_1F53;
const M1: u32 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// The four words of one counter.
#[inline]
pub fn philox(mut counter: [u32; 4], seed: u64) -> [u32; 4] {
    let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
    for _ in 0..10 {
        let a = u64::from(M0) * u64::from(counter[0]);
        let b = u64::from(M1) * u64::from(counter[2]);
        counter = [(b >> 32) as u32 ^ counter[1] ^ k0, b as u32, (a >> 32) as u32 ^ counter[3] ^ k1, a as u32];
        k0 = k0.wrapping_add(W0);
        k1 = k1.wrapping_add(W1);
    }
    counter
}

/// Words below this are dropped.
pub fn threshold(p: f32) -> u32 {
    (f64::from(p) * 4_294_967_296.0).min(4_294_967_295.0) as u32
}

/// The factors (0 or 1/(1 − p)) of columns 4c … 4c+3.
#[inline]
pub fn keep4(p: f32, site: u32, seed: u64, row: usize, c: usize) -> [f32; 4] {
    let limit = threshold(p);
    let scale = 1.0 / (1.0 - p);
    philox([c as u32, row as u32, site, 0], seed).map(|w| if w >= limit { scale } else { 0.0 })
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

    #[test]
    fn keeps_the_expectation() {
        let n = 100_000;
        let mean: f32 = (0..n / 4).flat_map(|c| keep4(0.3, 7, 42, 5, c)).sum::<f32>() / n as f32;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }
}

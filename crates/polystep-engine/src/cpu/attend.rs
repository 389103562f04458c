//! Softmax attention of one decoded token: in plain Rust, and with AVX-512 if the machine has it. Both give the same bits, since
//! both add in the same order. The product of a query and a key is sixteen chains of sums, which are then added pairwise. A column
//! of the output is one chain over the keys.
#![allow(unsafe_code)] // intrinsics and pointers

use super::math::{LANES, exp, max, sum, total};

/// Keys whose products with a query are computed together.
const KEYS: usize = 4;

/// Where a key and its value begin.
pub type Place = (usize, usize);

/// All heads: `out = Σ softmax(q·k(i)/√dim)·v(i)`, where key and value i begin at `rows[i]` of k and v.
pub fn attend(q: &[f32], (k, v): (&[f32], &[f32]), rows: &[Place], dim: usize, scores: &mut Vec<f32>, out: &mut [f32]) {
    let (d, n) = (q.len(), rows.len());
    assert!(out.len() == d && d % dim == 0 && n > 0);
    assert!(rows.iter().all(|row| row.0 + d <= k.len() && row.1 + d <= v.len()), "a key or value leaves its slot");
    let pitch = n.next_multiple_of(LANES);
    // The memory only grows. What an earlier call left in it is overwritten.
    if scores.len() < d / dim * pitch {
        scores.resize(d / dim * pitch, 0.0);
    }
    let scores = &mut scores[..d / dim * pitch];
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        let heads = d / dim;
        // SAFETY: the machine has AVX-512; bounds are checked above; dim and heads are what the constants say.
        unsafe {
            match (dim, heads % 4) {
                (64, 0) => return avx512::<4, 4>(q, k, v, rows, scores, out),
                (64, _) => return avx512::<4, 1>(q, k, v, rows, scores, out),
                (32, 0) => return avx512::<2, 4>(q, k, v, rows, scores, out),
                (32, _) => return avx512::<2, 1>(q, k, v, rows, scores, out),
                (16, _) => return avx512::<1, 1>(q, k, v, rows, scores, out),
                _ => {}
            }
        }
    }
    plain(q, k, v, rows, dim, scores, out);
}

/// Turns products into weights, in every row of `pitch` scores, of which the first n are used.
#[inline(always)]
fn softmax(n: usize, pitch: usize, scale: f32, scores: &mut [f32]) {
    for scores in scores.chunks_exact_mut(pitch) {
        // Whole vectors are computed: what lies behind the last key counts as exp(−∞).
        scores[n..].fill(f32::NEG_INFINITY);
        let best = max(scores) * scale;
        scores.iter_mut().for_each(|w| *w = exp(w.mul_add(scale, -best)));
        let inverse = 1.0 / sum(pitch, |i| scores[i]);
        scores.iter_mut().for_each(|w| *w *= inverse);
    }
}

/// Any machine, any number of dimensions.
fn plain(q: &[f32], k: &[f32], v: &[f32], rows: &[Place], dim: usize, scores: &mut [f32], out: &mut [f32]) {
    let (n, pitch) = (rows.len(), rows.len().next_multiple_of(LANES));
    for (h, (q, scores)) in q.chunks_exact(dim).zip(scores.chunks_exact_mut(pitch)).enumerate() {
        for (score, row) in scores.iter_mut().zip(rows) {
            let k = &k[row.0 + h * dim..][..dim];
            let mut lanes = [0f32; LANES];
            for (q, k) in q.chunks(LANES).zip(k.chunks(LANES)) {
                for ((lane, q), k) in lanes.iter_mut().zip(q).zip(k) {
                    *lane = q.mul_add(*k, *lane);
                }
            }
            *score = total(lanes);
        }
    }
    softmax(n, pitch, 1.0 / (dim as f32).sqrt(), scores);
    out.fill(0.0);
    for (h, (weights, out)) in scores.chunks_exact(pitch).zip(out.chunks_exact_mut(dim)).enumerate() {
        for (weight, row) in weights.iter().zip(rows) {
            for (out, v) in out.iter_mut().zip(&v[row.1 + h * dim..][..dim]) {
                *out = weight.mul_add(*v, *out);
            }
        }
    }
}

/// Heads of Q vectors each; H of them at a time.
///
/// # Safety
/// The machine has AVX-512; q and out have a multiple of H·Q·16 numbers, as have k and v from every place of `rows` on;
/// `scores` has a row of whole vectors for every head.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const Q: usize, const H: usize>(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    rows: &[Place],
    scores: &mut [f32],
    out: &mut [f32],
) {
    use std::arch::x86_64::*;
    let (n, dim) = (rows.len(), 16 * Q);
    let pitch = n.next_multiple_of(LANES);
    let heads = q.len() / dim;
    // The sum of sixteen lanes begins with halves, as `total` does.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn quarter(x: __m512) -> __m128 {
        let half = _mm256_add_ps(
            _mm512_castps512_ps256(x),
            _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(x))),
        );
        _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half))
    }
    // SAFETY: the caller's promise.
    unsafe {
        for first in (0..n).step_by(KEYS) {
            let key = |i: usize| k.as_ptr().add(rows[(first + i).min(n - 1)].0);
            let keys = [key(0), key(1), key(2), key(3)];
            for h in 0..heads {
                let mut sums = [_mm512_setzero_ps(); KEYS];
                for j in 0..Q {
                    let at = h * dim + 16 * j;
                    let q = _mm512_loadu_ps(q.as_ptr().add(at));
                    for (sum, key) in sums.iter_mut().zip(keys) {
                        *sum = _mm512_fmadd_ps(q, _mm512_loadu_ps(key.add(at)), *sum);
                    }
                }
                let [a, b, c, d] = [quarter(sums[0]), quarter(sums[1]), quarter(sums[2]), quarter(sums[3])];
                // Lanes 0 + 2 and 1 + 3 of each, then their sum: four results side by side.
                let ab = _mm_add_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
                let cd = _mm_add_ps(_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
                let dots = _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
                _mm_storeu_ps(scores.as_mut_ptr().add(h * pitch + first), dots);
            }
        }
        softmax(n, pitch, 1.0 / (dim as f32).sqrt(), scores);
        for head in (0..heads).step_by(H) {
            let mut sums = [[_mm512_setzero_ps(); Q]; H];
            for (i, row) in rows.iter().enumerate() {
                let v = v.as_ptr().add(row.1 + head * dim);
                for (h, sums) in sums.iter_mut().enumerate() {
                    let weight = _mm512_set1_ps(*scores.as_ptr().add((head + h) * pitch + i));
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_fmadd_ps(weight, _mm512_loadu_ps(v.add(h * dim + 16 * j)), *sum);
                    }
                }
            }
            for (h, sums) in sums.iter().enumerate() {
                for (j, &sum) in sums.iter().enumerate() {
                    _mm512_storeu_ps(out.as_mut_ptr().add((head + h) * dim + 16 * j), sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bits_on_every_machine() {
        let number =
            |i: usize, seed: u32| (crate::philox::philox([i as u32, seed, 0, 0], 1)[0] % 1000) as f32 / 300.0 - 1.5;
        for (dim, heads, n) in [(64, 4, 1), (64, 4, 44), (64, 3, 17), (32, 4, 6), (32, 2, 33), (16, 2, 9), (8, 2, 5)] {
            let d = dim * heads;
            let q: Vec<f32> = (0..d).map(|i| number(i, 1)).collect();
            let kv: Vec<f32> = (0..2 * d * (n + 3)).map(|i| number(i, 2)).collect();
            let rows: Vec<Place> = (0..n).map(|i| (i * 7 % (n + 3)) * 2 * d).map(|at| (at, at + d)).collect();
            let (mut best, mut same) = (vec![7.0; d], vec![9.0; d]);
            attend(&q, (&kv, &kv), &rows, dim, &mut Vec::new(), &mut best);
            plain(&q, &kv, &kv, &rows, dim, &mut vec![0.0; heads * n.next_multiple_of(LANES)], &mut same);
            assert!(
                best.iter().zip(&same).all(|(a, b)| a.to_bits() == b.to_bits()),
                "{heads} heads of {dim}, {n} keys"
            );
            // Weights add up to one, so the output lies within the values.
            assert!(best.iter().all(|x| x.abs() <= 2.0));
        }
    }
}

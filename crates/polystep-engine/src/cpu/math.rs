//! Elementary functions without branches, so that the compiler makes vector code of loops over them; and sums in a fixed order.
//!
//! exp is 2ⁿ·p(r) with |r| ≤ ln 2 / 2.

/// Vector lanes of a sum: two AVX registers.
pub const LANES: usize = 16;

/// eˣ to 2e-7 relative; 0 below −87.3, never infinite.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5·2²³: adding it leaves the nearest integer in the low bits
    let c = x.clamp(-87.3, 88.3);
    let t = c.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = t - ROUND;
    let r = n.mul_add(-0.693_359_4, c);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4f32;
    for k in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p.mul_add(r, k);
    }
    let p = p.mul_add(r * r, r) + 1.0;
    let scale = f32::from_bits((t.to_bits() << 23).wrapping_add(127 << 23));
    if x < -87.3 { 0.0 } else { p * scale }
}

/// The normal distribution's cumulative Φ(x), to 3e-7: erf(u) is u times a quotient of polynomials in u², |u| ≤ 4 (the
/// minimax approximation of Eigen and XLA).
#[inline(always)]
pub fn cumulative(x: f32) -> f32 {
    let u = (x * std::f32::consts::FRAC_1_SQRT_2).clamp(-4.0, 4.0);
    let v = u * u;
    let mut p = -2.726_142_3e-10f32;
    for k in [2.770_681_4e-8, -2.101_024e-6, -5.692_506_4e-5, -7.349_906_3e-4, -2.954_6e-3, -1.609_603_3e-2] {
        p = p.mul_add(v, k);
    }
    let mut q = -1.456_607_2e-5f32;
    for k in [-2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2] {
        q = q.mul_add(v, k);
    }
    (u * p / q).mul_add(0.5, 0.5)
}

/// Its density φ(x).
#[inline(always)]
pub fn density(x: f32) -> f32 {
    exp(-0.5 * x * x) * 0.398_942_3
}

/// Σ f(i) over 0..n in a fixed order: in sixteen lanes, which are added at the end.
#[inline(always)]
pub fn sum(n: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let whole = n / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane += f(at + l);
        }
    }
    for i in whole..n {
        lanes[i - whole] += f(i);
    }
    total(lanes)
}

/// The sum of the lanes, pairwise.
#[inline(always)]
pub fn total(mut lanes: [f32; LANES]) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}

/// The largest of the numbers; −∞ if there is none.
#[inline(always)]
pub fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, &v) in lanes.iter_mut().zip(chunk) {
            *lane = if v > *lane { v } else { *lane };
        }
    }
    let last = chunks.remainder().iter().copied();
    lanes.into_iter().chain(last).fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exact_to_two_ulps() {
        for i in -87_000..88_000 {
            let x = i as f32 * 1e-3;
            let want = f64::from(x).exp();
            let error = (f64::from(exp(x)) - want).abs() / want;
            assert!(error < 2e-7, "exp({x}): {error}");
        }
        assert_eq!(exp(-200.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(0.0), 1.0);
    }

    /// erf by its Taylor series and erfc by its continued fraction, in f64.
    fn phi(x: f64) -> f64 {
        let u = x.abs() / std::f64::consts::SQRT_2;
        let tail = if u < 2.5 {
            let (mut term, mut sum) = (u, u);
            for n in 1..200 {
                term *= -u * u / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            0.5 - sum / std::f64::consts::PI.sqrt()
        } else {
            let fraction = (1..200).rev().fold(0.0, |f, k| f64::from(k) / 2.0 / (u + f));
            0.5 * (-u * u).exp() / (u + fraction) / std::f64::consts::PI.sqrt()
        };
        if x < 0.0 { tail } else { 1.0 - tail }
    }

    #[test]
    fn normal_distribution() {
        for i in -12_000..12_000 {
            let x = i as f32 * 1e-3;
            let (want, bell) = (phi(f64::from(x)), (-0.5 * f64::from(x).powi(2)).exp() * 0.398_942_280_401_432_7);
            assert!((f64::from(cumulative(x)) - want).abs() < 3e-7, "Φ({x}) = {}, not {want}", cumulative(x));
            assert!((f64::from(density(x)) - bell).abs() < 1.5e-7, "φ({x})");
        }
    }

    #[test]
    fn sums_and_maxima() {
        let values: Vec<f32> = (0..37).map(|i| ((i * 7) % 37) as f32).collect();
        assert_eq!(sum(37, |i| values[i]), 666.0);
        assert_eq!(max(&values), 36.0);
        assert_eq!(max(&[]), f32::NEG_INFINITY);
    }
}

//! How sure we may be of a share: Wilson's score interval at 95 %.
//!
//! Wilson, not the normal approximation: 1000 of 1000 right proofs do not mean an interval of width 0.

/// The two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's 95 % interval of `count` successes in `of` trials, as fractions; of no trials anything may be true.
pub fn wilson(count: u64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, p, z2) = (of as f64, count as f64 / of as f64, Z * Z);
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    // At 0 and at n the interval touches the end exactly; the rounding of the square root must not say otherwise.
    let lo = if count == 0 { 0.0 } else { (centre - half).max(0.0) };
    let hi = if count == of { 1.0 } else { (centre + half).min(1.0) };
    (lo, hi)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe (1998), table I: 81 of 263 gives 0.2553 to 0.3662, 15 of 148 gives 0.0624 to 0.1605, 0 of 20 gives 0 to 0.1611.
    #[test]
    fn wilson_is_newcombes() {
        for (count, of, lo, hi) in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)] {
            let (l, h) = wilson(count, of);
            assert!((l - lo).abs() < 5e-5 && (h - hi).abs() < 5e-5, "{count}/{of}: {l} {h}");
        }
    }

    #[test]
    fn at_its_ends_it_is_exact() {
        assert_eq!((wilson(0, 10).0, wilson(10, 10).1), (0.0, 1.0));
        assert_eq!(wilson(0, 0), (0.0, 1.0), "of nothing anything may be true");
    }
}

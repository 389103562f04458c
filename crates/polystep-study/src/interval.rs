//! A proportion and how sure we may be of it: Wilson's score interval at 95 %.
//!
//! Wilson, not the normal approximation: 1000 of 1000 right proofs do not mean an interval of width 0.

use serde::{Deserialize, Serialize, Serializer};

/// The two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// `count` of `of`, as a percentage with its interval, in the units of the paper's tables.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Proportion {
    /// 100 · count ÷ of.
    #[serde(serialize_with = "six")]
    pub percent: f64,
    /// Lower end of the 95 % interval, in percent.
    #[serde(serialize_with = "six")]
    pub lo: f64,
    /// Upper end of the 95 % interval, in percent.
    #[serde(serialize_with = "six")]
    pub hi: f64,
    /// How many.
    pub count: u64,
    /// Out of how many.
    pub of: u64,
}

impl Proportion {
    /// `None` when there is nothing to divide by: "no sure output" has no precision, not the precision 0.
    pub fn new(count: u64, of: u64) -> Option<Proportion> {
        if of == 0 {
            return None;
        }
        let (lo, hi) = wilson(count, of);
        Some(Proportion { percent: 100.0 * count as f64 / of as f64, lo: 100.0 * lo, hi: 100.0 * hi, count, of })
    }

    /// The proportion of `true`.
    pub fn of(answers: impl IntoIterator<Item = bool>) -> Option<Proportion> {
        let (mut count, mut of) = (0, 0);
        for answer in answers {
            count += u64::from(answer);
            of += 1;
        }
        Proportion::new(count, of)
    }

    /// As a fraction.
    pub fn fraction(&self) -> f64 {
        self.percent / 100.0
    }
}

/// Six decimals: more than any set can tell apart, the same on every machine, and read back as written.
pub(crate) fn six<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e6).round() / 1e6)
}

/// [`six`], or null.
pub(crate) fn six_or_null<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => six(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Wilson's 95 % interval of `count` successes in `of` > 0 trials, as fractions.
pub fn wilson(count: u64, of: u64) -> (f64, f64) {
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

    /// `scipy.stats.binomtest(k, n).proportion_ci(0.95, "wilson")`, from reference/sklearn_golden.py.
    #[test]
    fn wilson_is_scipys() {
        let golden: serde_json::Value = serde_json::from_str(include_str!("../tests/golden/sklearn.json")).unwrap();
        let cases = golden["wilson"].as_array().unwrap();
        assert!(cases.len() >= 6);
        for case in cases {
            let (lo, hi) = wilson(case["count"].as_u64().unwrap(), case["of"].as_u64().unwrap());
            assert!((lo - case["lo"].as_f64().unwrap()).abs() < 1e-12, "{case}");
            assert!((hi - case["hi"].as_f64().unwrap()).abs() < 1e-12, "{case}");
        }
    }

    /// Newcombe (1998), table I: 81 of 263 gives 0.2553 to 0.3662, 15 of 148 gives 0.0624 to 0.1605, 0 of 20 gives 0 to 0.1611.
    #[test]
    fn wilson_is_newcombes() {
        for (count, of, lo, hi) in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)] {
            let (l, h) = wilson(count, of);
            assert!((l - lo).abs() < 5e-5 && (h - hi).abs() < 5e-5, "{count}/{of}: {l} {h}");
        }
    }

    #[test]
    fn nothing_has_no_proportion() {
        assert_eq!(Proportion::new(0, 0), None);
        let all = Proportion::of([true; 1000]).unwrap();
        assert_eq!((all.percent, all.hi), (100.0, 100.0));
        assert!(all.lo < 99.7);
    }
}

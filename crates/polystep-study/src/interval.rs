//! A proportion and how sure we may be of it: Wilson's score interval at 95 %.

use polystep_core::wilson;
use serde::{Deserialize, Serialize, Serializer};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.binomtest(k, n).proportion_ci(0.95, "wilson")`, from reference/sklearn_golden.py.
    #[test]
    fn intervals_are_scipys() {
        let golden: serde_json::Value = serde_json::from_str(include_str!("../tests/golden/sklearn.json")).unwrap();
        let cases = golden["wilson"].as_array().unwrap();
        assert!(cases.len() >= 6);
        for case in cases {
            let number = |name: &str| case[name].as_f64().unwrap();
            let found = Proportion::new(case["count"].as_u64().unwrap(), case["of"].as_u64().unwrap()).unwrap();
            assert!((found.lo - 100.0 * number("lo")).abs() < 1e-10, "{case}");
            assert!((found.hi - 100.0 * number("hi")).abs() < 1e-10, "{case}");
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

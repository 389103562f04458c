//! A proportion and how sure we may be of it: Wilson's score interval at 95 %.
//!
//! Wilson's interval and not the normal approximation: 1000 right proofs of 1000 do not mean an interval of width 0.
//! An evaluation stores percentages, with six decimals, and training stores fractions ([`fraction`]). Both forms repeat
//! what follows from the counts, so a figure that contradicts its counts is refused on reading.

use serde::{Deserialize, Serialize, Serializer};

/// `count` of `of`, as a percentage with its interval, in the units of the paper's tables.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
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
        (of > 0).then(|| Proportion::counted(count, of))
    }

    /// The proportion of a set that may be empty. For an empty set it is 0, with the interval from 0 to 100 %.
    pub fn counted(count: u64, of: u64) -> Proportion {
        let (lo, hi) = wilson(count, of);
        Proportion { percent: 100.0 * count as f64 / of.max(1) as f64, lo: 100.0 * lo, hi: 100.0 * hi, count, of }
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

    /// As a fraction, computed from the counts; 0 of nothing.
    pub fn share(&self) -> f64 {
        self.count as f64 / self.of.max(1) as f64
    }
}

/// What a file of an evaluation says.
#[derive(Deserialize)]
struct Stored {
    percent: f64,
    lo: f64,
    hi: f64,
    count: u64,
    of: u64,
}

impl TryFrom<Stored> for Proportion {
    type Error = String;

    fn try_from(Stored { percent, lo, hi, count, of }: Stored) -> Result<Proportion, String> {
        let counted = Proportion::counted(count, of);
        counted.check([("percent", percent), ("lo", lo), ("hi", hi)])?;
        Ok(Proportion { percent, lo, hi, ..counted })
    }
}

impl Proportion {
    /// Percentages are accepted only if they follow from the counts. Files have at least six decimals.
    fn check(&self, figures: [(&str, f64); 3]) -> Result<(), String> {
        let Proportion { percent, lo, hi, count, of } = *self;
        if count > of {
            return Err(format!("{count} of {of} is no proportion"));
        }
        let wrong = |((_, said), counted): &((&str, f64), f64)| said.is_nan() || (said - counted).abs() > 1e-6;
        match figures.into_iter().zip([percent, lo, hi]).find(wrong) {
            Some(((name, said), counted)) => {
                Err(format!("{name} is {said} %, but {count} of {of} gives {counted:.6} %"))
            }
            None => Ok(()),
        }
    }
}

/// A [`Proportion`] as training writes it: `{"right", "total", "share", "lo", "hi"}`, in fractions of full precision.
pub mod fraction {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::{Proportion, wilson};

    #[derive(Serialize, Deserialize)]
    struct Fraction {
        right: u64,
        total: u64,
        share: f64,
        lo: f64,
        hi: f64,
    }

    impl Fraction {
        fn proportion<E: de::Error>(self) -> Result<Proportion, E> {
            let counted = Proportion::counted(self.right, self.total);
            let figures = [("share", self.share), ("lo", self.lo), ("hi", self.hi)];
            counted.check(figures.map(|(name, figure)| (name, 100.0 * figure))).map_err(E::custom)?;
            Ok(counted)
        }
    }

    impl From<&Proportion> for Fraction {
        fn from(p: &Proportion) -> Fraction {
            let (lo, hi) = wilson(p.count, p.of);
            Fraction { right: p.count, total: p.of, share: p.share(), lo, hi }
        }
    }

    /// Writes fractions.
    pub fn serialize<S: Serializer>(p: &Proportion, serializer: S) -> Result<S::Ok, S::Error> {
        Fraction::from(p).serialize(serializer)
    }

    /// Reads fractions.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Proportion, D::Error> {
        Fraction::deserialize(deserializer)?.proportion()
    }

    /// The same for the values of a map.
    pub mod map {
        use std::collections::BTreeMap;

        use serde::{Deserialize, Deserializer, Serializer};

        use super::{Fraction, Proportion};

        /// Writes fractions.
        pub fn serialize<S: Serializer>(all: &BTreeMap<String, Proportion>, s: S) -> Result<S::Ok, S::Error> {
            s.collect_map(all.iter().map(|(name, p)| (name, Fraction::from(p))))
        }

        /// Reads fractions.
        pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<String, Proportion>, D::Error> {
            let all = BTreeMap::<String, Fraction>::deserialize(d)?;
            all.into_iter().map(|(name, f)| Ok((name, f.proportion()?))).collect()
        }
    }
}

/// The two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's 95 % interval of `count` successes in `of` trials, as fractions. Without trials it is 0 to 1.
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

/// Six decimals: more than any set can tell apart, the same on every machine, and read back as written.
pub fn six<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e6).round() / 1e6)
}

/// [`six`], or null.
pub fn six_or_null<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => six(value, serializer),
        None => serializer.serialize_none(),
    }
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

    #[test]
    fn nothing_has_no_proportion() {
        assert_eq!(Proportion::new(0, 0), None);
        let all = Proportion::of([true; 1000]).unwrap();
        assert_eq!((all.percent, all.hi), (100.0, 100.0));
        assert!(all.lo < 99.7);
    }

    #[test]
    fn a_figure_must_follow_from_its_counts() {
        let read = |text: &str| serde_json::from_str::<Proportion>(text).map_err(|e| e.to_string());
        let right = serde_json::to_string(&Proportion::new(1, 3).unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&read(&right).unwrap()).unwrap(), right);
        let forged = read(r#"{"percent":99.99,"lo":0.0,"hi":65.8,"count":0,"of":2}"#).unwrap_err();
        assert!(forged.starts_with("percent is 99.99 %, but 0 of 2 gives 0.000000 %"), "{forged}");
        assert!(read(&right.replace("\"of\":3", "\"of\":0")).is_err());
    }
}

//! McNemar's exact test: do two models differ by more than chance on the same proofs?
//!
//! Only the proofs that exactly one of the two models solves matter. If the models were equally good, each such proof would be
//! a fair coin. The p-value is two-sided and exact (binomial). The χ² approximation would be wrong for small counts.

use serde::{Deserialize, Serialize};

/// The fourfold table of two models on the same examples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Paired {
    /// Both right.
    pub both: u64,
    /// Only the first right.
    pub first_only: u64,
    /// Only the second right.
    pub second_only: u64,
    /// Both wrong.
    pub neither: u64,
}

impl Paired {
    /// Counts pairs of (first right, second right).
    pub fn count(pairs: impl IntoIterator<Item = (bool, bool)>) -> Paired {
        let mut table = Paired::default();
        for pair in pairs {
            match pair {
                (true, true) => table.both += 1,
                (true, false) => table.first_only += 1,
                (false, true) => table.second_only += 1,
                (false, false) => table.neither += 1,
            }
        }
        table
    }

    /// How many examples were compared.
    pub fn total(&self) -> u64 {
        self.both + self.first_only + self.second_only + self.neither
    }

    /// The probability of a split at least this uneven if both models were equally good; 1 if they never disagree.
    pub fn p_value(&self) -> f64 {
        let n = self.first_only + self.second_only;
        let k = self.first_only.min(self.second_only);
        // 2 · Σ_{i ≤ k} C(n, i) / 2^n, each term from the one before; in logarithms, since 2^n is too much for n > 1000.
        let mut ln_term = -(n as f64) * std::f64::consts::LN_2;
        let mut tail = ln_term.exp();
        for i in 0..k {
            ln_term += ((n - i) as f64).ln() - ((i + 1) as f64).ln();
            tail += ln_term.exp();
        }
        (2.0 * tail).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use polystep_record::Proportion;

    use super::*;

    /// `scipy.stats.binomtest(b, b + c).pvalue`, from reference/sklearn_golden.py.
    #[test]
    fn mcnemar_is_scipys() {
        let golden: serde_json::Value = serde_json::from_str(include_str!("../tests/golden/sklearn.json")).unwrap();
        let cases = golden["mcnemar"].as_array().unwrap();
        assert!(cases.len() >= 6);
        for case in cases {
            let (first_only, second_only) = (case["b"].as_u64().unwrap(), case["c"].as_u64().unwrap());
            let ours = Paired { first_only, second_only, ..Paired::default() }.p_value();
            let theirs = case["p"].as_f64().unwrap();
            assert!((ours - theirs).abs() <= 1e-10 * theirs.max(1e-30), "{case}: {ours}");
        }
    }

    /// 1 against 9: 2 · (1 + 10) / 2¹⁰.
    #[test]
    fn by_hand() {
        let pairs =
            [vec![(true, true); 5], vec![(true, false)], vec![(false, true); 9], vec![(false, false); 2]].concat();
        let table = Paired::count(pairs);
        assert_eq!(table, Paired { both: 5, first_only: 1, second_only: 9, neither: 2 });
        assert!((table.p_value() - 22.0 / 1024.0).abs() < 1e-15);
        assert_eq!(Paired::default().p_value(), 1.0);
    }

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
}

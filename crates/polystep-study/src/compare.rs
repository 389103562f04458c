//! Compares several runs: what differs in their configurations, which proofs only one of them solves, and whether that is more
//! than chance. Several seeds of one configuration are shown as mean and spread.
//!
//! Proofs are joined by their id and their value, which are the same in every granularity, notation and setting, so a coarse and a
//! fine model can be compared. The id alone is not enough, because two custom spaces may have the same name. A proof that only
//! one of two runs was tested on is left out of both.

use std::collections::{BTreeMap, BTreeSet};

use polystep_core::Writing;
use serde::Serialize;

use crate::columns::{COLUMNS, Column};
use crate::error::StudyError;
use crate::metrics::{Metrics, solved};
use crate::paired::Paired;
use crate::score::ScoredStep;
use crate::side_by_side::{Cell, cells};
use polystep_record::Prediction;

/// A key that not all configurations agree on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ConfigDifference {
    /// `model.layers`
    pub key: String,
    /// Its value in each run; nothing where it is not set.
    pub values: Vec<Option<String>>,
}

/// The keys in which configurations differ, in alphabetical order.
pub fn differences(configs: &[toml::Table]) -> Vec<ConfigDifference> {
    let flat: Vec<BTreeMap<String, String>> = configs.iter().map(texts).collect();
    let keys: BTreeSet<&String> = flat.iter().flat_map(BTreeMap::keys).collect();
    let difference = |key: &String| {
        let values: Vec<Option<String>> = flat.iter().map(|f| f.get(key).cloned()).collect();
        values.iter().any(|v| *v != values[0]).then(|| ConfigDifference { key: key.clone(), values })
    };
    keys.into_iter().filter_map(difference).collect()
}

fn texts(config: &toml::Table) -> BTreeMap<String, String> {
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    flattened(config).into_iter().map(|(key, value)| (key, text(value))).collect()
}

/// The values of a TOML table under their dotted keys.
pub fn flattened<'a>(table: &'a toml::Table) -> Vec<(String, &'a toml::Value)> {
    let entries = |(key, value): (&'a String, &'a toml::Value)| match value {
        toml::Value::Table(inner) => flattened(inner).into_iter().map(|(k, v)| (format!("{key}.{k}"), v)).collect(),
        other => vec![(key.clone(), other)],
    };
    table.iter().flat_map(entries).collect()
}

/// Which proofs a run solves (every step exact, teacher-forced), by id, with their starts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Solved {
    proofs: BTreeMap<String, TestedProof>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct TestedProof {
    right: bool,
    start: String,
    /// [`Writing::fingerprint`] of the proof.
    value: Option<u64>,
}

impl Solved {
    /// From predictions in this writing, and their scores.
    pub fn of(graded: &[(Prediction, ScoredStep)], writing: &Writing) -> Result<Solved, StudyError> {
        let right = solved(graded.iter().map(|(_, outcome)| outcome))?;
        let first = graded.iter().filter(|(p, _)| p.step == 0);
        let entry = |(p, _): &(Prediction, ScoredStep)| {
            let right = right.get(p.proof.as_str()).copied().unwrap_or(false);
            // Every state of a proof has its value, and an exercise's target too.
            (p.proof.clone(), TestedProof { right, start: p.input.clone(), value: writing.fingerprint(&p.target) })
        };
        Ok(Solved { proofs: first.map(entry).collect() })
    }
}

/// A proof that one run solves and the other does not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Example {
    /// Its id.
    pub proof: String,
    /// What the model that solves it reads first.
    pub start: String,
}

/// Two runs on the proofs that both were tested on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunPair {
    /// How many proofs both, one or none of them solve.
    #[serde(flatten)]
    pub table: Paired,
    /// McNemar's exact p-value.
    pub p_value: f64,
    /// What only the first solves.
    pub only_first: Vec<Example>,
    /// What only the second solves.
    pub only_second: Vec<Example>,
}

impl RunPair {
    /// Compares two runs; `None` if they share no proof.
    pub fn of(first: &Solved, second: &Solved) -> Option<RunPair> {
        let both = first.proofs.iter().filter_map(|(id, a)| Some((id, a, second.proofs.get(id)?)));
        let both: Vec<_> = both.filter(|(_, a, b)| a.value == b.value).collect();
        let table = Paired::count(both.iter().map(|(_, a, b)| (a.right, b.right)));
        let example = |id: &str, solved: &TestedProof| Example { proof: id.to_owned(), start: solved.start.clone() };
        let only_first = both.iter().filter(|(_, a, b)| a.right && !b.right).map(|(id, a, _)| example(id, a));
        let only_second = both.iter().filter(|(_, a, b)| b.right && !a.right).map(|(id, _, b)| example(id, b));
        (table.total() > 0).then(|| RunPair {
            table,
            p_value: table.p_value(),
            only_first: only_first.collect(),
            only_second: only_second.collect(),
        })
    }
}

/// Mean and spread of a column over seeds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The column.
    pub column: Column,
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation (n − 1).
    pub deviation: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Runs that differ in nothing but their seeds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeedGroup {
    /// Their places in the list of runs.
    pub runs: Vec<usize>,
    /// The results that all of them have.
    pub columns: Vec<Spread>,
}

/// Groups runs whose configurations agree in everything but keys named `seed`; groups of one are left out.
pub fn seed_groups(runs: &[(Option<&toml::Table>, Option<&Metrics>)]) -> Vec<SeedGroup> {
    let mut groups: BTreeMap<Vec<(String, String)>, Vec<usize>> = BTreeMap::new();
    for (i, (config, metrics)) in runs.iter().enumerate() {
        if let (Some(config), Some(_)) = (config, metrics) {
            let rest = texts(config).into_iter().filter(|(key, _)| key.rsplit('.').next() != Some("seed"));
            groups.entry(rest.collect()).or_default().push(i);
        }
    }
    let spreads = |members: Vec<usize>| {
        let rows = members.iter().filter_map(|&i| {
            let metrics = runs[i].1?;
            Some(cells(metrics, metrics.home()?.1))
        });
        let rows: Vec<_> = rows.collect();
        let of = |column: Column| {
            let one = |row: &Vec<Cell>| row.iter().find(|c| c.column == column)?.ours;
            spread(column, &rows.iter().map(one).collect::<Option<Vec<f64>>>()?)
        };
        let columns = COLUMNS.into_iter().filter(|c| c.more_is_better()).filter_map(of).collect();
        SeedGroup { runs: members, columns }
    };
    let mut groups: Vec<SeedGroup> = groups.into_values().filter(|g| g.len() > 1).map(spreads).collect();
    groups.sort_by_key(|g| g.runs[0]);
    groups
}

fn spread(column: Column, values: &[f64]) -> Option<Spread> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Spread { column, mean, deviation: variance.sqrt(), min, max })
}

#[cfg(test)]
mod tests {
    use polystep_core::{Notation, Setting, StepKind};

    use super::*;
    use crate::score::score;
    use polystep_record::Beam;

    #[test]
    fn only_what_differs_is_listed() {
        let a: toml::Table = toml::from_str("[data]\nseed = 1\nvars = 1\n[model]\nsize = \"S\"").unwrap();
        let b: toml::Table = toml::from_str("[data]\nseed = 2\nvars = 1\n[model]\nsize = \"S\"\nd = 64").unwrap();
        let found = differences(&[a, b]);
        let texts: Vec<_> =
            found.iter().map(|d| (d.key.as_str(), d.values.iter().map(Option::as_deref).collect::<Vec<_>>())).collect();
        assert_eq!(texts, [("data.seed", vec![Some("1"), Some("2")]), ("model.d", vec![None, Some("64")])]);
    }

    fn run(proofs: &[(&str, bool)]) -> Solved {
        let tested = |(id, right): &(&str, bool)| TestedProof { right: *right, start: format!("({id})"), value: None };
        Solved { proofs: proofs.iter().map(|proof| (proof.0.to_owned(), tested(proof))).collect() }
    }

    #[test]
    fn proofs_are_joined_by_id() {
        let first = run(&[("a", true), ("b", true), ("c", false), ("only here", true)]);
        let second = run(&[("a", true), ("b", false), ("c", false), ("d", true)]);
        let pair = RunPair::of(&first, &second).unwrap();
        assert_eq!(pair.table, Paired { both: 1, first_only: 1, second_only: 0, neither: 1 });
        assert_eq!(pair.only_first, [Example { proof: "b".into(), start: "(b)".into() }]);
        assert_eq!(pair.p_value, 1.0);
        assert!(RunPair::of(&first, &run(&[("z", true)])).is_none());
    }

    /// A custom space without a name is called `custom`, so two of them have the same ids.
    #[test]
    fn only_the_same_polynomial_is_joined() {
        let solved = |setting: Setting, notation: Notation, input: &str, target: &str| {
            let beams = vec![Beam { output: target.into(), logprob: None, finished: true }];
            let [proof, input, target] = ["custom:1:test:2021:0", input, target].map(str::to_owned);
            let prediction = Prediction { proof, step: 0, kind: StepKind::Mulstep, input, target, beams };
            let writing = Writing { setting, notation, ..Writing::default() };
            let outcome = score(&prediction, &writing);
            Solved::of(&[(prediction, outcome)], &writing).unwrap()
        };
        let infix = |setting, input, target| solved(setting, Notation::Infix, input, target);
        let plain = infix(Setting::Plain, "(2*x1)*(x1)+(3)", "(2*x1^2)+(3)");
        let others = [
            solved(Setting::Plain, Notation::Prefix, "…", "+P * INT+ 2 ^ x1 INT+ 2 INT+ 3"),
            infix(Setting::Calculator, "(2*x1)*(x1)+(3)", "([1+1]*x1^2)+(3)"),
            infix(Setting::Annotated, "MARK $ (2*x1)*(x1)+(3)", "MUL $ #(2*x1)*(x1)#+(3)"),
            infix(Setting::Endpoint, "(2*x1)*(x1)+(3)", "2*x1^2+3"),
        ];
        assert!(others.iter().all(|other| RunPair::of(&plain, other).is_some_and(|pair| pair.table.both == 1)));
        let another = infix(Setting::Plain, "(2*x1)*(x1)+(4)", "(2*x1^2)+(4)");
        assert_eq!(RunPair::of(&plain, &another), None);
        let sum = |notation, target| solved(Setting::Arithmetic, notation, "…", target);
        assert!(RunPair::of(&sum(Notation::Infix, "6912"), &sum(Notation::Prefix, "INT+ 6 9 1 2")).is_some());
    }

    #[test]
    fn spread_by_hand() {
        let found = spread(COLUMNS[3], &[96.0, 97.0, 99.5]).unwrap();
        assert!((found.mean - 97.5).abs() < 1e-12);
        // ((1.5² + 0.5² + 2²) / 2)^½
        assert!((found.deviation - 3.25f64.sqrt()).abs() < 1e-12);
        assert_eq!((found.min, found.max), (96.0, 99.5));
        assert_eq!(spread(COLUMNS[3], &[96.0]), None);
    }
}

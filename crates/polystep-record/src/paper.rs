//! The paper's own numbers, looked up by the keys of an experiment.
//!
//! The CSVs in `paper/` are compiled in, so that a report needs no file beside the run. One experiment may stand in several
//! tables (`var1coarsefull` has its accuracies, `var1error` its errors); where they overlap they agree, and the first wins.
//! The endpoint columns belong to a separate one-shot model, which the paper lists on the rows of the step-wise one.

use polystep_core::arithmetic::MIXTURE;
use polystep_core::named;
use serde::Serialize;

use crate::keys::{Keys, PaperSetting, key_text};
use crate::test_set::TestSet;

/// The tables with the six keys. Of two tables that share rows, the broader one comes first.
const TABLES: [(&str, &str); 13] = [
    ("var1coarsefull", include_str!("../paper/var1coarsefull.csv")),
    ("var1coarse", include_str!("../paper/var1coarse.csv")),
    ("var2coarse", include_str!("../paper/var2coarse.csv")),
    ("results2varfine", include_str!("../paper/results2varfine.csv")),
    ("var1error", include_str!("../paper/var1error.csv")),
    ("var2error", include_str!("../paper/var2error.csv")),
    ("var1combo", include_str!("../paper/var1combo.csv")),
    ("var1comboerrors", include_str!("../paper/var1comboerrors.csv")),
    ("annotate1var", include_str!("../paper/annotate1var.csv")),
    ("annotate2var", include_str!("../paper/annotate2var.csv")),
    ("annotate1varerror", include_str!("../paper/annotate1varerror.csv")),
    ("annotate2varerror", include_str!("../paper/annotate2varerror.csv")),
    ("curriculum-var1coarse", include_str!("../paper/curriculum-var1coarse.csv")),
];

/// The tables of models tested on another space than their own.
const OOD_TABLES: [(&str, &str); 3] = [
    ("OOD2var", include_str!("../paper/OOD2var.csv")),
    ("OODcoeff", include_str!("../paper/OODcoeff.csv")),
    ("OODterm", include_str!("../paper/OODterm.csv")),
];

/// The arithmetic probe. The paper says one sentence about it, so there is one row for all exercises.
const PROBE: [(&str, &str); 1] = [("arithmetic", include_str!("../paper/arithmetic.csv"))];

/// The sizes of the problem spaces.
const SIZES: (&str, &str) = ("colide", include_str!("../paper/colide.csv"));

/// The CSV text of a table in `paper/`, by its name.
pub fn csv(name: &str) -> Option<&'static str> {
    let all = TABLES.iter().chain(&OOD_TABLES).chain([&SIZES]);
    all.into_iter().find(|(table, _)| *table == name).map(|(_, csv)| *csv)
}

/// A number of the paper, as printed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Printed {
    /// The CSV it stands in.
    pub table: &'static str,
    /// The column's name.
    pub column: String,
    /// As printed.
    pub text: &'static str,
    /// Its value.
    pub value: f64,
}

/// Every number the paper prints about an experiment; empty if it has no such row.
pub fn lookup(keys: &Keys) -> Vec<Printed> {
    if keys.is(PaperSetting::Arithmetic) {
        let of_this_model = |column: &str| match column.strip_suffix("_acc") {
            Some(exercises) => keys.config == MIXTURE || keys.config == exercises,
            None => true,
        };
        return search(&PROBE, |_, _| true, of_this_model);
    }
    let endpoint = keys.is(PaperSetting::Endpoint);
    // The numbers of the endpoint model are on every row of its space and notation.
    let row = Keys { setting: if endpoint { Some(PaperSetting::Plain) } else { keys.setting }, ..keys.clone() };
    let wanted = |key, value: &str| endpoint && key == KeyColumn::Granularity || row.matches(key, value);
    search(&TABLES, wanted, |column| column.starts_with("endpoint_") == endpoint)
}

/// The paper's numbers of a model trained on one space and tested on another.
pub fn lookup_ood(trained: &Keys, test_config: &str, test_vars: u32) -> Vec<Printed> {
    let tested = Keys { config: test_config.to_owned(), vars: test_vars, ..Keys::default() };
    let wanted = |key, value: &str| match key {
        KeyColumn::TestVars => tested.matches(KeyColumn::Vars, value),
        KeyColumn::TestConfig => tested.matches(KeyColumn::Config, value),
        key => trained.matches(key, value),
    };
    search(&OOD_TABLES, wanted, |_| trained.curriculum.is_empty())
}

/// The text in one column of a table, on the row with these keys. It may be a word, such as the size of a tuned model.
pub fn cell(table: &str, keys: &Keys, column: &str) -> Option<&'static str> {
    let row = rows(csv(table)?).find(|row| row_has(row, |key, value| keys.matches(key, value)))?;
    row.into_iter().find(|(name, _)| *name == column).map(|(_, text)| text)
}

/// The size of a problem space: how many unsimplified polynomials it has, and how many endpoints.
pub fn size_estimate(set: &TestSet) -> Option<[f64; 2]> {
    let keys = Keys { config: set.config.clone(), vars: set.vars, ..Keys::default() };
    let number = |column| cell(SIZES.0, &keys, column)?.parse().ok();
    Some([number("equation_size_estimate")?, number("endpoint_size_estimate")?])
}

impl Keys {
    /// Whether a key of a row has this value.
    fn matches(&self, key: KeyColumn, value: &str) -> bool {
        match key {
            KeyColumn::Vars | KeyColumn::TrainVars => value.parse() == Ok(self.vars),
            KeyColumn::Config | KeyColumn::TrainConfig => value == self.config,
            KeyColumn::Setting => key_text(&self.setting) == value,
            KeyColumn::Granularity => key_text(&self.granularity) == value,
            KeyColumn::Notation => key_text(&self.notation) == value,
            KeyColumn::Curriculum => value == self.curriculum,
            KeyColumn::TestVars | KeyColumn::TestConfig | KeyColumn::Run => true,
        }
    }
}

/// A column of keys, in any table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KeyColumn {
    /// Number of variables.
    Vars,
    /// The space.
    Config,
    /// A [`PaperSetting`].
    Setting,
    /// How large the steps are.
    Granularity,
    /// The notation.
    Notation,
    /// The curriculum; mostly empty.
    Curriculum,
    /// Number of variables in training, where the test has another space.
    TrainVars,
    /// Number of variables in the test.
    TestVars,
    /// The space in training, where the test has another one.
    TrainConfig,
    /// The space in the test.
    TestConfig,
    /// The name of a run. Only tables of one's own have it.
    Run,
}

named!(
    KeyColumn, "key":
    Vars "vars", Config "config", Setting "setting", Granularity "granularity", Notation "notation",
    Curriculum "curriculum", TrainVars "train_vars", TestVars "test_vars", TrainConfig "train_config",
    TestConfig "test_config", Run "run",
);

impl KeyColumn {
    /// The key column of this name; none if the column holds results.
    pub fn named(name: &str) -> Option<KeyColumn> {
        KeyColumn::ALL.into_iter().find(|key| key.name() == name)
    }
}

/// The rows of a table: the name of each column, and what is printed there.
pub fn rows(csv: &'static str) -> impl Iterator<Item = Vec<(&'static str, &'static str)>> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines.map(move |line| header.iter().copied().zip(line.split(',')).collect())
}

/// Whether all keys of a row are wanted.
fn row_has(row: &[(&str, &str)], wanted: impl Fn(KeyColumn, &str) -> bool) -> bool {
    row.iter().all(|(name, value)| KeyColumn::named(name).is_none_or(|key| wanted(key, value)))
}

fn search(
    tables: &[(&'static str, &'static str)],
    wanted: impl Fn(KeyColumn, &str) -> bool,
    keep: impl Fn(&str) -> bool,
) -> Vec<Printed> {
    let mut found: Vec<Printed> = Vec::new();
    for &(table, csv) in tables {
        for row in rows(csv).filter(|row| row_has(row, &wanted)) {
            for (column, text) in row {
                let new =
                    KeyColumn::named(column).is_none() && keep(column) && found.iter().all(|p| p.column != column);
                // Hyper-parameters such as `size` are words, not results; `<1` is a bound.
                if let (true, Ok(value)) = (new, text.trim_start_matches('<').parse()) {
                    found.push(Printed { table, column: column.to_owned(), text, value });
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(vars: u32, config: &str, setting: &str, granularity: &str, notation: &str) -> Keys {
        let (granularity, notation) = (granularity.parse().ok(), notation.parse().ok());
        Keys { vars, config: config.into(), setting: setting.parse().ok(), granularity, notation, ..Keys::default() }
    }

    fn value(found: &[Printed], column: &str) -> Option<f64> {
        found.iter().find(|p| p.column == column).map(|p| p.value)
    }

    #[test]
    fn accuracies_and_errors_of_one_row_come_together() {
        let found = lookup(&keys(1, "small_coeff", "plain", "coarse", "infix"));
        assert_eq!(value(&found, "full_proof_acc"), Some(95.0));
        assert_eq!(value(&found, "recall"), Some(94.4));
        assert_eq!(value(&found, "err_first_mul"), Some(88.0));
        assert_eq!(value(&found, "endpoint_acc"), None, "another model's number");
    }

    #[test]
    fn the_endpoint_model_is_found_by_space_and_notation() {
        let found = lookup(&keys(1, "small_coeff", "endpoint", "", "infix"));
        assert_eq!(value(&found, "endpoint_acc"), Some(96.0));
        assert_eq!(value(&found, "full_proof_acc"), None);
    }

    #[test]
    fn the_probe_has_a_sentence_for_all_exercises() {
        let found = lookup(&keys(1, "arithmetic", "arithmetic", "coarse", "prefix"));
        assert_eq!((value(&found, "add9_acc"), value(&found, "mul4_acc")), (Some(99.0), Some(1.0)));
        assert_eq!(found.iter().find(|p| p.column == "mul9_acc").unwrap().text, "<1");
        let found = lookup(&keys(1, "add4", "arithmetic", "coarse", "infix"));
        assert_eq!(found.iter().map(|p| p.column.as_str()).collect::<Vec<_>>(), ["train_examples", "add4_acc"]);
    }

    #[test]
    fn curricula_are_rows_of_their_own() {
        let mut c2 = keys(1, "small_coeff", "curriculum", "coarse", "infix");
        assert!(lookup(&c2).is_empty());
        c2.curriculum = "C2".to_owned();
        let found = lookup(&c2);
        assert_eq!((value(&found, "full_proof_acc"), found[0].table), (Some(95.98), "curriculum-var1coarse"));
        assert_eq!(c2.title(), "1 variable · small_coeff · curriculum · coarse · infix · C2");
    }

    #[test]
    fn what_the_paper_did_not_do_has_no_numbers() {
        assert!(lookup(&keys(3, "small_coeff", "plain", "coarse", "infix")).is_empty());
        let found = lookup_ood(&keys(1, "small_coeff", "plain", "coarse", "prefix"), "medium_coeff", 1);
        assert_eq!(value(&found, "full_proof_acc"), Some(33.4));
    }

    #[test]
    fn every_space_of_the_paper_has_its_size() {
        for key in polystep_core::space::KEYS {
            assert!([1, 2].iter().all(|vars| size_estimate(&TestSet::new(key, *vars)).is_some()));
        }
        assert_eq!(size_estimate(&TestSet::new("medium_terms", 2)), Some([1.73e9, 801e6]));
        assert_eq!(size_estimate(&TestSet::new("medium_terms", 3)), None);
    }

    /// Every row of every table is reached by its own keys, so no file is misspelt or left out.
    #[test]
    fn every_row_is_found() {
        for (table, csv) in TABLES {
            for line in csv.lines().skip(1) {
                let cells: Vec<&str> = line.split(',').collect();
                let mut keys = keys(cells[0].parse().unwrap(), cells[1], cells[2], cells[3], cells[4]);
                keys.curriculum = cells[5].to_owned();
                assert!(value(&lookup(&keys), "full_proof_acc").is_some(), "{table}: {line}");
            }
        }
    }
}

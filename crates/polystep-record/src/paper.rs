//! The paper's own numbers, looked up by the keys of an experiment.
//!
//! The CSVs in `paper/` are compiled in, so that a report needs no file beside the run. One experiment may stand in several
//! tables (`var1coarsefull` has its accuracies, `var1error` its errors); where they overlap they agree, and the first wins.
//! The endpoint columns belong to a separate one-shot model, which the paper lists on the rows of the step-wise one.

use polystep_core::arithmetic::MIXTURE;
use serde::{Deserialize, Serialize};

/// The tables with the six keys; the broader table of two comes first.
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

/// The arithmetic probe, of which the paper has a sentence: one row for all exercises.
const PROBE: [(&str, &str); 1] = [("arithmetic", include_str!("../paper/arithmetic.csv"))];

/// The sizes of the problem spaces.
const SIZES: (&str, &str) = ("colide", include_str!("../paper/colide.csv"));

/// A table of the paper as it stands in `paper/`, by its name.
pub fn csv(name: &str) -> Option<&'static str> {
    let all = TABLES.iter().chain(&OOD_TABLES).chain([&SIZES]);
    all.into_iter().find(|(table, _)| *table == name).map(|(_, csv)| *csv)
}

/// What identifies a row of the paper's tables.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Keys {
    /// Number of variables.
    pub vars: u32,
    /// `medium_coeff`, …
    pub config: String,
    /// plain, tuned, calculator, annotated, curriculum; endpoint for the one-shot model.
    pub setting: String,
    /// coarse or fine.
    pub granularity: String,
    /// infix or prefix.
    pub notation: String,
    /// C, C2, C4, or empty.
    #[serde(default)]
    pub curriculum: String,
    /// Further spaces that the model learned beside its own, as `config:vars`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

impl Keys {
    /// The keys of the row for one test set, if the model was trained on its space; for a model of several spaces each of
    /// them is a home.
    pub fn at_home(&self, config: &str, vars: u32) -> Option<Keys> {
        let own = self.config == config && self.vars == vars;
        (own || self.also.contains(&format!("{config}:{vars}"))).then(|| Keys {
            config: config.to_owned(),
            vars,
            ..self.clone()
        })
    }

    /// The row's name for people: `1 variable · medium_coeff · plain · coarse · prefix`.
    pub fn title(&self) -> String {
        if self.setting == "arithmetic" {
            return format!("arithmetic probe · {} · {}", self.config, self.notation);
        }
        let vars = if self.vars == 1 { "1 variable".to_owned() } else { format!("{} variables", self.vars) };
        let mut parts = vec![vars, self.config.clone(), self.setting.clone()];
        if !self.also.is_empty() {
            let more = self.also.len();
            parts.insert(2, format!("and {more} more space{}", if more == 1 { "" } else { "s" }));
        }
        if self.setting != "endpoint" {
            parts.push(self.granularity.clone());
        }
        parts.push(self.notation.clone());
        parts.push(self.curriculum.clone());
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }
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
    if keys.setting == "arithmetic" {
        let of_this_model = |column: &str| match column.strip_suffix("_acc") {
            Some(exercises) => keys.config == MIXTURE || keys.config == exercises,
            None => true,
        };
        return search(&PROBE, |_, _| true, of_this_model);
    }
    let vars = keys.vars.to_string();
    let endpoint = keys.setting == "endpoint";
    let wanted = |key: &str, value: &str| match key {
        "vars" => value == vars,
        "config" => value == keys.config,
        "notation" => value == keys.notation,
        // The endpoint model stands on every row of its space and notation.
        "setting" => value == if endpoint { "plain" } else { &keys.setting },
        "granularity" => endpoint || value == keys.granularity,
        "curriculum" => value == keys.curriculum,
        _ => true,
    };
    let of_this_model = |column: &str| column.starts_with("endpoint_") == endpoint;
    search(&TABLES, wanted, of_this_model)
}

/// The paper's numbers of a model trained on one space and tested on another.
pub fn lookup_ood(trained: &Keys, test_config: &str, test_vars: u32) -> Vec<Printed> {
    let (train_vars, test_vars) = (trained.vars.to_string(), test_vars.to_string());
    let wanted = |key: &str, value: &str| match key {
        "train_vars" => value == train_vars,
        "test_vars" => value == test_vars,
        "train_config" => value == trained.config,
        "test_config" => value == test_config,
        "setting" => value == trained.setting,
        "granularity" => value == trained.granularity,
        "notation" => value == trained.notation,
        _ => true,
    };
    search(&OOD_TABLES, wanted, |_| trained.curriculum.is_empty())
}

/// What stands in a column of one table, on the row of these keys: also words, such as the size of a tuned model.
pub fn cell(table: &str, keys: &Keys, column: &str) -> Option<&'static str> {
    let mut lines = csv(table)?.lines();
    let header: Vec<&str> = lines.next()?.split(',').collect();
    let at = |name: &str| header.iter().position(|h| *h == name);
    let vars = keys.vars.to_string();
    let wanted = [
        (at("vars")?, &vars),
        (at("config")?, &keys.config),
        (at("setting")?, &keys.setting),
        (at("granularity")?, &keys.granularity),
        (at("notation")?, &keys.notation),
        (at("curriculum")?, &keys.curriculum),
    ];
    let column = at(column)?;
    let mut rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    rows.find(|row| wanted.iter().all(|(i, text)| row.get(*i) == Some(&text.as_str())))?.get(column).copied()
}

/// Names of the key columns, in any table.
pub const KEYS: [&str; 10] = [
    "vars",
    "config",
    "setting",
    "granularity",
    "notation",
    "curriculum",
    "train_vars",
    "test_vars",
    "train_config",
    "test_config",
];

fn search(
    tables: &[(&'static str, &'static str)],
    wanted: impl Fn(&str, &str) -> bool,
    keep: impl Fn(&str) -> bool,
) -> Vec<Printed> {
    let mut found: Vec<Printed> = Vec::new();
    for &(table, csv) in tables {
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        for line in lines {
            let row = || header.iter().copied().zip(line.split(','));
            if !row().all(|(key, value)| !KEYS.contains(&key) || wanted(key, value)) {
                continue;
            }
            for (column, text) in row() {
                let new = !KEYS.contains(&column) && keep(column) && found.iter().all(|p| p.column != column);
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
        let [config, setting, granularity, notation] = [config, setting, granularity, notation].map(str::to_owned);
        Keys { vars, config, setting, granularity, notation, curriculum: String::new(), also: Vec::new() }
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
    fn every_space_a_model_learned_is_a_home() {
        let mut both = keys(1, "small_coeff", "plain", "coarse", "infix");
        assert_eq!(both.at_home("large_coeff", 2), None);
        both.also = vec!["large_coeff:2".to_owned()];
        assert_eq!(both.title(), "1 variable · small_coeff · and 1 more space · plain · coarse · infix");
        let row = both.at_home("large_coeff", 2).unwrap();
        assert_eq!(
            value(&lookup(&row), "train_examples"),
            value(&lookup(&keys(2, "large_coeff", "plain", "coarse", "infix")), "train_examples")
        );
        assert!(value(&lookup(&row), "full_proof_acc").is_some());
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

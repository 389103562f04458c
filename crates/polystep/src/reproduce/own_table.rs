//! A table of one's own: a plan (`--plan FILE.toml`) that lists runs and test sets. It is made, kept and shown like a table of the
//! paper: records in results/runs, a ledger, figures and a page.
//!
//! Every run is guarded against the sets of one's own spaces that the table tests. So its folder knows these spaces, and can be
//! tested on them by their keys.

use polystep_learn::config::{is_space_file, read_space};
use polystep_record::{Keys, TestSet, as_texts};
use polystep_study::columns::Column;
use polystep_study::tables::OwnTable;
use serde::Deserialize;

use crate::failure::{Result, bad_input};

/// `[own]`: the table of a plan that is not one of the paper's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnKeys {
    /// The sets that every run is tested on, as `config:vars` or `FILE.toml:vars`.
    #[serde(default, with = "as_texts")]
    pub tests: Vec<TestSet>,
    /// The columns that are filled: names of the paper's columns.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Whether beam search is measured too.
    #[serde(default)]
    pub beam: bool,
    /// The runs.
    pub run: Vec<OwnRun>,
}

/// `[[own.run]]`: one run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnRun {
    /// Its name in the table; the run's folder is `TABLE-NAME`.
    pub name: String,
    /// What it is trained on: a configuration, or a file with a `[space]` table.
    pub config: String,
    /// With how many variables.
    #[serde(default = "one")]
    pub vars: u32,
    /// The sets that it is tested on; those of the table if there are none.
    #[serde(default, with = "as_texts")]
    pub tests: Vec<TestSet>,
    /// Keys of the run's TOML that it changes, as in `set = { model.layers = 6, data.notation = "prefix" }`.
    #[serde(default)]
    pub set: toml::Table,
}

fn one() -> u32 {
    1
}

/// What is measured unless the plan says otherwise.
const USUAL: [&str; 2] = ["full_proof_acc", "stepwise_acc"];

impl OwnKeys {
    /// The table. `keys` says what a run is trained on, from the keys of its TOML.
    pub fn table(&self, name: &str, keys: impl Fn(&OwnRun) -> Result<Keys>) -> Result<OwnTable> {
        let wrong = |why: String| Err(bad_input(format!("the table {name}: {why}")));
        let names: Vec<&str> = match self.columns.is_empty() {
            true => USUAL.to_vec(),
            false => self.columns.iter().map(String::as_str).collect(),
        };
        let mut columns = Vec::new();
        for name in names {
            match Column::named(name).filter(|column| !column.is_one_shot()) {
                Some(column) => columns.push(column),
                None => return wrong(format!("there is no column `{name}`; the ledgers in results/ show their names")),
            }
        }
        let mut runs: Vec<(String, Keys, Vec<TestSet>)> = Vec::new();
        for run in &self.run {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
            if run.name.is_empty() || !run.name.chars().all(plain) {
                return wrong(format!("the run `{}` needs a name of letters, digits, `_` and `.`", run.name));
            }
            if runs.iter().any(|(name, ..)| *name == run.name) {
                return wrong(format!("two runs have the name `{}`", run.name));
            }
            let mut tests = Vec::new();
            for test in self.tests_of(run) {
                let set = TestSet { config: key_of(&test.config)?, ..test.clone() };
                if tests.contains(&set) {
                    return wrong(format!("the set {set} stands twice in own.tests"));
                }
                tests.push(set);
            }
            runs.push((run.name.clone(), keys(run)?, tests));
        }
        if runs.is_empty() || runs.iter().any(|(.., tests)| tests.is_empty()) {
            return wrong("it needs a [[own.run]] and a test set at least".into());
        }
        Ok(OwnTable { name: name.to_owned(), runs, columns, beam: self.beam })
    }

    /// The sets that a run is tested on.
    fn tests_of<'a>(&'a self, run: &'a OwnRun) -> &'a [TestSet] {
        if run.tests.is_empty() { &self.tests } else { &run.tests }
    }

    /// What the table adds to the keys of all its runs: the guard against its own sets.
    pub fn guard(&self) -> Option<(String, String)> {
        let all = self.tests.iter().chain(self.run.iter().flat_map(|run| &run.tests));
        let own = all.filter(|test| is_space_file(&test.config)).map(|test| format!("{:?}", test.to_string()));
        let sets: std::collections::BTreeSet<String> = own.collect();
        let sets: Vec<String> = sets.into_iter().collect();
        (!sets.is_empty()).then(|| ("data.guard".to_owned(), format!("[{}]", sets.join(", "))))
    }
}

/// The key of a configuration, or of the space in a file.
fn key_of(config: &str) -> Result<String> {
    match is_space_file(config) {
        true => Ok(read_space(config).map_err(bad_input)?.key().to_owned()),
        false => Ok(config.to_owned()),
    }
}

impl OwnRun {
    /// What is trained, as keys of a run's TOML.
    pub fn overrides(&self) -> Vec<(String, String)> {
        vec![("data.config".into(), format!("{:?}", self.config)), ("data.vars".into(), self.vars.to_string())]
    }
}

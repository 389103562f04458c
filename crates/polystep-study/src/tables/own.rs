//! A table of one's own: runs × test sets, measured, kept and shown like a table of the paper. The paper's numbers are missing.

use super::{PaperRow, PaperTable};
use crate::columns::Column;
use polystep_record::paper::KeyColumn;
use polystep_record::{Keys, TestSet, key_text};

/// What a table of one's own is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnTable {
    /// Its name.
    pub name: String,
    /// Its runs: a name that no other run of the table has, what the run is trained on, and what it is tested on.
    pub runs: Vec<(String, Keys, Vec<TestSet>)>,
    /// What is measured.
    pub columns: Vec<Column>,
    /// Whether beam search is asked too.
    pub beam: bool,
}

/// The run of a row of one's own table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OwnRow {
    /// The name of its folder, with the usual recipe and seed.
    pub name: &'static str,
    /// Whether beam search is asked too.
    pub beam: bool,
}

impl OwnTable {
    /// The name of a run's folder, with the usual recipe and seed.
    pub fn run_name(&self, run: &str) -> String {
        format!("{}-{run}", self.name)
    }

    /// The table, with a row for each run and test set.
    pub fn table(&self) -> PaperTable {
        let mut rows = Vec::new();
        for (run, keys, tests) in &self.runs {
            let own = OwnRow { name: kept(self.run_name(run)), beam: self.beam };
            for test in tests {
                let texts = [
                    (KeyColumn::Run, run.clone()),
                    (KeyColumn::TrainConfig, keys.config.clone()),
                    (KeyColumn::TrainVars, keys.vars.to_string()),
                    (KeyColumn::Setting, key_text(&keys.setting)),
                    (KeyColumn::Granularity, key_text(&keys.granularity)),
                    (KeyColumn::Notation, key_text(&keys.notation)),
                    (KeyColumn::Curriculum, keys.curriculum.clone()),
                    (KeyColumn::TestConfig, test.config.clone()),
                    (KeyColumn::TestVars, test.vars.to_string()),
                ];
                let cells = texts.map(|(key, text)| (key.name(), kept(text))).into_iter();
                let cells = cells.chain(self.columns.iter().map(|column| (column.name, "")));
                rows.push(PaperRow { number: rows.len() + 1, cells: cells.collect(), own: Some(own) });
            }
        }
        let header = rows.first().map_or_else(Vec::new, |row| row.cells.iter().map(|(name, _)| *name).collect());
        PaperTable { name: kept(self.name.clone()), header, rows }
    }
}

/// A text that lives as long as the program does, as those of the paper's tables do, which are compiled in. A table is read once.
fn kept(text: String) -> &'static str {
    text.leak()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Kind, Recipe, test_sets};

    #[test]
    fn every_run_is_tested_on_every_set() {
        let keys = |config: &str| Keys {
            vars: 1,
            config: config.into(),
            setting: "plain".parse().ok(),
            notation: "infix".parse().ok(),
            granularity: "coarse".parse().ok(),
            ..Keys::default()
        };
        let tests = [TestSet::new("large_coeff", 1), TestSet::new("long", 1)];
        let own = OwnTable {
            name: "length".into(),
            runs: ["plain", "deep"].map(|run| (run.into(), keys("large_coeff"), tests.to_vec())).to_vec(),
            columns: ["full_proof_acc", "stepwise_acc"].into_iter().filter_map(Column::named).collect(),
            beam: false,
        };
        let table = own.table();
        assert_eq!((table.kind(), table.rows.len(), table.columns().count()), (Kind::Ood, 4, 2));
        let needs = table.needs(Recipe::Fast, 2);
        let names: Vec<String> = needs.iter().map(|(_, need)| need.experiment.name()).collect();
        assert_eq!(names, ["length-plain-seed2", "length-plain-seed2", "length-deep-seed2", "length-deep-seed2"]);
        let sets = test_sets([&table], &needs[0].1.experiment);
        let sets: Vec<(&str, u32, bool)> = sets.iter().map(|set| (set.config.as_str(), set.vars, set.beam)).collect();
        assert_eq!(sets, [("large_coeff", 1, false), ("long", 1, false)]);
        assert!(table.rows.iter().all(|row| table.columns().all(|column| row.printed(&table, column).is_none())));
    }
}

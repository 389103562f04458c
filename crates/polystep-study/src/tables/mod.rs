//! The paper's result tables as plans of work: for every row, which models it needs and on which sets they are tested.
//!
//! The rows are exactly those of the paper's CSVs. Their keys say what is trained, and the other columns what is measured.
//! Several rows may need the same model; the one-shot model of a space is on every row of that space. So a run is named by what
//! it is, not by the table that asked for it first.

mod experiment;
mod own;
mod view;

pub use experiment::{Experiment, size_of_config};
pub use polystep_record::Recipe;
use polystep_record::{Keys, PaperSetting};
pub use view::{RAW, TableView, ViewRow};

use own::OwnRow;
pub use own::OwnTable;

use crate::columns::Column;
use polystep_record::paper::{KeyColumn, Printed, csv, rows};

/// What kind of work a table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Sizes of problem spaces: nothing is trained.
    Sizes,
    /// Models tested on the space they were trained on: accuracies, errors.
    Accuracy,
    /// Models tested on other spaces.
    Ood,
}

/// A result table of the paper.
#[derive(Clone, PartialEq, Debug)]
pub struct PaperTable {
    /// Its name: the CSV's.
    pub name: &'static str,
    /// Names of its columns, in order.
    pub header: Vec<&'static str>,
    /// Its rows, in order.
    pub rows: Vec<PaperRow>,
}

/// A row of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaperRow {
    /// Its number, from 1.
    pub number: usize,
    /// Columns and what is printed there.
    cells: Vec<(&'static str, &'static str)>,
    /// Its run, if the table is one's own.
    own: Option<OwnRow>,
}

/// A test set, and how much is asked there.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AskedSet {
    /// The space.
    pub config: String,
    /// Its number of variables.
    pub vars: u32,
    /// Whether beam search is asked too.
    pub beam: bool,
}

/// What a row needs of one model.
#[derive(Clone, PartialEq, Debug)]
pub struct Need {
    /// The model.
    pub experiment: Experiment,
    /// Where it is tested.
    pub set: AskedSet,
    /// Whether it is the one-shot model of the `endpoint_` columns.
    pub endpoint: bool,
}

/// Hands the names of the 17 tables to another macro, so that each is written once, for those that include a file of it too.
#[macro_export]
macro_rules! for_tables {
    ($macro:ident) => {
        $macro![
            "var1coarsefull",
            "OODcoeff",
            "OODterm",
            "var1coarse",
            "var1error",
            "var2coarse",
            "OOD2var",
            "var2error",
            "curriculum-var1coarse",
            "var1combo",
            "var1comboerrors",
            "results2varfine",
            "annotate1var",
            "annotate1varerror",
            "annotate2var",
            "annotate2varerror",
            "colide",
        ]
    };
}

macro_rules! names {
    ($($name:literal),+ $(,)?) => { [$($name),+] };
}

/// The 17 tables, by name.
pub const NAMES: [&str; 17] = for_tables!(names);

impl PaperTable {
    /// The table of this name.
    pub fn named(name: &str) -> Option<PaperTable> {
        let name = NAMES.into_iter().find(|n| *n == name)?;
        let csv = csv(name)?;
        let header = csv.lines().next()?.split(',').collect();
        let rows = (1..).zip(rows(csv)).map(|(number, cells)| PaperRow { number, cells, own: None });
        Some(PaperTable { name, header, rows: rows.collect() })
    }

    /// All of them, in the order of [`NAMES`].
    pub fn all() -> Vec<PaperTable> {
        NAMES.into_iter().filter_map(PaperTable::named).collect()
    }

    /// What kind of work it is.
    pub fn kind(&self) -> Kind {
        let has = |wanted| self.keys().any(|key| key == wanted);
        match [KeyColumn::TestConfig, KeyColumn::Setting].map(has) {
            [true, _] => Kind::Ood,
            [false, true] => Kind::Accuracy,
            [false, false] => Kind::Sizes,
        }
    }

    /// Its key columns, in order.
    pub fn keys(&self) -> impl Iterator<Item = KeyColumn> {
        self.header.iter().filter_map(|name| KeyColumn::named(name))
    }

    /// Its columns of results that a model can fill, in order.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.header.iter().filter_map(|name| Column::named(name))
    }

    /// Its rows' needs, with the row's number.
    pub fn needs(&self, recipe: Recipe, seed: u64) -> Vec<(usize, Need)> {
        self.rows.iter().flat_map(|row| row.needs(recipe, seed).into_iter().map(|need| (row.number, need))).collect()
    }
}

impl PaperRow {
    /// What is printed in a column; nothing if the table has no such column.
    pub fn text(&self, column: &str) -> Option<&'static str> {
        self.cells.iter().find(|(name, _)| *name == column).map(|(_, text)| *text)
    }

    /// The value of a key; nothing if the table has no such key.
    pub fn key(&self, key: KeyColumn) -> Option<&'static str> {
        self.text(key.name())
    }

    /// The paper's number in a column.
    pub fn value(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok()
    }

    /// The paper's number in a column.
    pub fn printed(&self, table: &PaperTable, column: Column) -> Option<Printed> {
        let text = self.text(column.name)?;
        Some(Printed { table: table.name, column: column.name.into(), text, value: text.parse().ok()? })
    }

    /// Its keys and their values, in order.
    pub fn keys(&self) -> impl Iterator<Item = (KeyColumn, &'static str)> {
        self.cells.iter().filter_map(|(name, text)| Some((KeyColumn::named(name)?, *text)))
    }

    /// The models it needs and where they are tested; none for a row of sizes.
    ///
    /// A row with `endpoint_` columns needs two models, because the paper prints the one-shot model (start to endpoint) of a
    /// space beside each of its step-wise models. The one-shot model of an annotated row is the plain one, since an endpoint has
    /// no marks.
    pub fn needs(&self, recipe: Recipe, seed: u64) -> Vec<Need> {
        if self.key(KeyColumn::Setting).is_none() {
            return Vec::new();
        }
        let need = |keys: Keys, endpoint: bool| {
            let set = self.tested_on(&keys, !endpoint);
            let own = self.own.map(|own| own.name);
            Need { experiment: Experiment { keys, recipe, seed, own }, set, endpoint }
        };
        let keys = self.trained_on();
        let mut needs = vec![need(keys.clone(), false)];
        if self.text("endpoint_acc").is_some() {
            needs.push(need(Keys { setting: Some(PaperSetting::Endpoint), granularity: None, ..keys }, true));
        }
        needs
    }

    /// Where a model is tested: on another space with greedy decoding only, or else on its own.
    fn tested_on(&self, keys: &Keys, beam: bool) -> AskedSet {
        match self.key(KeyColumn::TestConfig) {
            Some(config) => {
                let vars = self.key(KeyColumn::TestVars).and_then(|vars| vars.parse().ok()).unwrap_or(0);
                AskedSet { config: config.to_owned(), vars, beam: self.own.is_some_and(|own| own.beam) }
            }
            None => AskedSet { config: keys.config.clone(), vars: keys.vars, beam },
        }
    }

    /// What its main model is trained on.
    fn trained_on(&self) -> Keys {
        let text = |key| self.key(key).unwrap_or_default();
        let either = |key, train| text(if self.key(train).is_some() { train } else { key });
        Keys {
            vars: either(KeyColumn::Vars, KeyColumn::TrainVars).parse().unwrap_or(0),
            config: either(KeyColumn::Config, KeyColumn::TrainConfig).to_owned(),
            setting: text(KeyColumn::Setting).parse().ok(),
            granularity: text(KeyColumn::Granularity).parse().ok(),
            notation: text(KeyColumn::Notation).parse().ok(),
            curriculum: text(KeyColumn::Curriculum).to_owned(),
            ..Keys::default()
        }
    }
}

/// Every test set that any of these tables asks of a model. Weights may be gone when the next table is made, so all are asked at
/// once.
pub fn test_sets<'t>(tables: impl IntoIterator<Item = &'t PaperTable>, experiment: &Experiment) -> Vec<AskedSet> {
    let mut sets: Vec<AskedSet> = Vec::new();
    let needs = tables.into_iter().flat_map(|table| table.needs(experiment.recipe, experiment.seed));
    for (_, need) in needs.filter(|(_, need)| need.experiment.name() == experiment.name()) {
        match sets.iter_mut().find(|s| (&s.config, s.vars) == (&need.set.config, need.set.vars)) {
            Some(set) => set.beam |= need.set.beam,
            None => sets.push(need.set),
        }
    }
    sets
}

#[cfg(test)]
mod tests;

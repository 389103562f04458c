//! The paper's 17 tables with our numbers beside the paper's, from the committed records.

use std::path::PathBuf;
use std::sync::OnceLock;

use polystep_study::ledger::Ledger;
use polystep_study::records::RunRecords;
use polystep_study::tables::{Kind, PaperRow, PaperTable, Recipe, TableView};
use serde::Serialize;

use crate::error::Refusal;

/// The most seeds of a row.
const SEEDS: u64 = 8;

/// The results folder. It is read when a table is first asked for.
pub struct Tables {
    results: Option<PathBuf>,
    records: OnceLock<Result<RunRecords, String>>,
}

/// A table in the list.
#[derive(Serialize)]
pub struct ListedTable {
    name: &'static str,
    rows: usize,
    /// Rows with a number of ours, fast recipe.
    filled: usize,
}

/// A table with the names of the runs behind each row.
#[derive(Serialize)]
pub struct TableAnswer {
    #[serde(flatten)]
    view: TableView,
    /// For each row, the records that its numbers come from.
    runs: Vec<Vec<String>>,
}

impl Tables {
    /// The tables of a results folder.
    pub fn new(results: Option<PathBuf>) -> Tables {
        Tables { results, records: OnceLock::new() }
    }

    fn records(&self) -> Result<&RunRecords, Refusal> {
        let read = || match &self.results {
            Some(results) => RunRecords::read(&results.join("runs")).map_err(|e| e.to_string()),
            None => Ok(RunRecords::default()),
        };
        self.records.get_or_init(read).as_ref().map_err(Refusal::internal)
    }

    /// All tables.
    pub fn list(&self) -> Result<Vec<ListedTable>, Refusal> {
        let listed = |table: PaperTable| {
            let view = self.view(&table, Recipe::Fast)?;
            let filled = view.rows.iter().filter(|row| row.cells.iter().any(|cell| cell.ours.is_some())).count();
            Ok(ListedTable { name: table.name, rows: table.rows.len(), filled })
        };
        PaperTable::all().into_iter().map(listed).collect()
    }

    fn view(&self, table: &PaperTable, recipe: Recipe) -> Result<TableView, Refusal> {
        let rows: Vec<&PaperRow> = table.rows.iter().collect();
        if table.kind() != Kind::Sizes {
            return Ok(TableView::of(table, &rows, recipe, SEEDS, self.records()?));
        }
        let path = self.results.as_ref().map(|results| results.join(format!("{}.csv", table.name)));
        let ledger = path.map(|path| Ledger::read(&path, table)).transpose().map_err(Refusal::internal)?.flatten();
        Ok(TableView::of_sizes(table, &rows, ledger.as_ref()))
    }

    /// One table.
    pub fn table(&self, name: &str, recipe: Recipe) -> Result<TableAnswer, Refusal> {
        let table = PaperTable::named(name).ok_or_else(|| Refusal::not_found("there is no table of that name"))?;
        let (view, records) = (self.view(&table, recipe)?, self.records()?);
        let runs = |row: &PaperRow| {
            let needs = (1..=SEEDS).flat_map(|seed| row.needs(recipe, seed));
            let mut names: Vec<String> = needs.map(|need| need.experiment.name()).collect();
            names.retain(|name| records.get(name).is_some());
            names.dedup();
            names
        };
        Ok(TableAnswer { runs: table.rows.iter().map(runs).collect(), view })
    }

    /// The folder of a record.
    pub fn record(&self, name: &str) -> Result<PathBuf, Refusal> {
        let known = self.records()?.get(name).is_some();
        let folder = self.results.as_ref().filter(|_| known).map(|results| results.join("runs").join(name));
        folder.ok_or_else(|| Refusal::not_found("there is no record of that name"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tables() -> Tables {
        Tables::new(Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results")))
    }

    #[test]
    fn all_seventeen_tables_are_there_with_their_runs() {
        let tables = tables();
        let list = tables.list().unwrap();
        assert_eq!(list.len(), 17);
        for table in &list {
            let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../results/{}.csv", table.name));
            assert_eq!(table.filled > 0, ledger.exists(), "{}: rows are there if its ledger is", table.name);
        }
        assert!(list.iter().filter(|table| table.filled > 0).count() >= 14, "ours are committed");
        let table = tables.table("var1coarsefull", Recipe::Fast).unwrap();
        let run = table.runs.iter().flatten().next().expect("a row with a run");
        assert!(tables.record(run).unwrap().join("metrics.json").is_file());
        assert!(tables.table("colide", Recipe::Fast).unwrap().view.rows[0].cells[0].ours.is_some());
    }

    #[test]
    fn only_records_can_be_named() {
        let tables = tables();
        for name in ["..", "../runs", "", "no-such-run", "/etc"] {
            assert!(tables.record(name).is_err(), "{name}");
        }
        assert!(tables.table("../var1coarse", Recipe::Fast).is_err());
        assert_eq!(Tables::new(None).list().unwrap().iter().map(|table| table.filled).sum::<usize>(), 0);
    }
}

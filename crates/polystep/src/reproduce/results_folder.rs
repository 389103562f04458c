//! The results folder: the records of runs, and the ledgers made from them. Files are never written in part. A file that cannot
//! be read stops the command before anything is overwritten.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use polystep_study::ledger::Ledger;
use polystep_study::records::RunRecords;
use polystep_study::tables::{Kind, PaperTable, Recipe};

use super::job::Folders;
use crate::failure::{Result, bad_input};
use crate::output::{OutputStream, note, working_folder};

/// The records and ledgers of a results folder.
pub struct ResultsFolder {
    results: PathBuf,
    /// Where the records are.
    folder: PathBuf,
    /// The records.
    pub records: RunRecords,
}

impl ResultsFolder {
    /// Opens the results. Every file that may be overwritten later is read now.
    pub fn open(folders: &Folders) -> Result<ResultsFolder> {
        let folder = folders.records();
        if !folders.results.is_dir() {
            let looked = if folders.results.is_relative() { working_folder() } else { String::new() };
            note(format_args!("note: there is no folder {}{looked}: no run is known yet", folders.results.display()));
        }
        let records = RunRecords::read(&folder).map_err(bad_input)?;
        let results = ResultsFolder { results: folders.results.clone(), folder, records };
        for table in PaperTable::all() {
            for recipe in [Recipe::Fast, Recipe::Paper] {
                results.ledger(&table, recipe)?;
            }
        }
        Ok(results)
    }

    /// Where the ledger of a table is. Sizes of spaces belong to no recipe.
    pub fn path(&self, table: &PaperTable, recipe: Recipe) -> PathBuf {
        let name = format!("{}.csv", table.name);
        match (recipe, table.kind()) {
            (Recipe::Paper, Kind::Accuracy | Kind::Ood) => self.results.join("paper").join(name),
            _ => self.results.join(name),
        }
    }

    /// Where the record of a run is.
    pub fn record(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The ledger of a table as it is on disk.
    pub fn ledger(&self, table: &PaperTable, recipe: Recipe) -> Result<Option<Ledger>> {
        Ledger::read(&self.path(table, recipe), table).map_err(bad_input)
    }

    /// Makes a record of a run's folder. The records are read again first, since another command may have added some.
    pub fn add_run(&mut self, name: &str, run: &Path) -> Result<()> {
        self.records = RunRecords::read(&self.folder).map_err(bad_input)?;
        let (record, files) = self.records.made_of(name, run).map_err(bad_input)?;
        for (path, text) in files {
            write_whole(&path, &text)?;
        }
        self.records.insert(name, record);
        Ok(())
    }

    /// Makes the ledgers of some tables from the records, and writes those that have changed. The records are read again first,
    /// since another command may have added some.
    pub fn update_ledgers<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t PaperTable>,
        recipe: Recipe,
    ) -> Result<()> {
        self.records = RunRecords::read(&self.folder).map_err(bad_input)?;
        for table in tables.into_iter().filter(|table| table.kind() != Kind::Sizes) {
            let ledger = Ledger::of(table, recipe, &self.records);
            let old = self.ledger(table, recipe)?;
            let path = self.path(table, recipe);
            for line in old.iter().flat_map(|old| old.unknown_to(&ledger)) {
                let path = path.display();
                note(format_args!("{path} line {line}: no record in results/runs backs it any more; it is left out"));
            }
            if old.as_ref() != Some(&ledger) && (old.is_some() || !ledger.lines.is_empty()) {
                self.write(table, recipe, &ledger)?;
            }
        }
        Ok(())
    }

    /// Writes a ledger.
    pub fn write(&self, table: &PaperTable, recipe: Recipe, ledger: &Ledger) -> Result<()> {
        write_whole(&self.path(table, recipe), &ledger.text())
    }
}

/// Writes a file in one piece. Makes its folder if necessary.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut out = OutputStream::create(Some(path))?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two commands are open at once. The one that adds no run writes the ledger last and keeps the row of the other.
    #[test]
    fn commands_keep_each_others_rows() {
        let place = tempfile::tempdir().expect("a folder");
        let results = place.path().join("results");
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/runs/large_coeff-1-coarse-infix");
        let folders = Folders { runs: place.path().join("runs"), results, models: None };
        let table = PaperTable::named("var1error").expect("a table");
        let open = || ResultsFolder::open(&folders).unwrap_or_else(|e| panic!("{e:?}"));
        let (mut ours, mut theirs) = (open(), open());
        theirs.add_run("large_coeff-1-coarse-infix", &run).unwrap_or_else(|e| panic!("{e:?}"));
        for results in [&mut theirs, &mut ours] {
            results.update_ledgers([&table], Recipe::Fast).unwrap_or_else(|e| panic!("{e:?}"));
            let ledger = results.ledger(&table, Recipe::Fast).unwrap_or_else(|e| panic!("{e:?}"));
            assert_eq!(ledger.map(|ledger| ledger.lines.len()), Some(1));
        }
    }
}

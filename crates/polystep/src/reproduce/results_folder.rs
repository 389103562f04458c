//! The results folder: the records of runs, and the ledgers made from them. Files are never written in part. A file that cannot
//! be read stops the command before anything is overwritten.
//!
//! A record is written by whoever holds the claim on its run, and by nobody else. Ledgers are written by whoever holds the
//! folder's lease. Nobody waits for that while there are runs to make: if another process writes them, ours go on without. They
//! are brought up to date when the command ends. A thousand processes would otherwise stand in line at each other's ledgers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use polystep_record::folder::lease_of;
use polystep_record::{Claim, Lease, LeaseWatch, RecordError, RunFolder};
use polystep_study::ledger::Ledger;
use polystep_study::records::{RunRecord, RunRecords};
use polystep_study::tables::{Kind, PaperTable, Recipe};

use super::job::Folders;
use crate::failure::{Result, bad_input};
use crate::output::{OutputStream, note, working_folder};

/// How often a command looks whether the ledgers are up to date that another process writes.
const LOOK: Duration = Duration::from_millis(200);

/// The records and ledgers of a results folder.
pub struct ResultsFolder {
    results: PathBuf,
    /// Where the records are.
    folder: PathBuf,
    /// The records.
    pub records: RunRecords,
    /// The tables whose ledgers are kept here: the paper's and one's own.
    tables: Arc<[PaperTable]>,
    /// Which file the numbers of a record were read from.
    stamps: BTreeMap<String, Stamp>,
    /// What is known of the processes that write ledgers.
    watch: LeaseWatch,
}

/// A ledger that is not what the records say.
struct Change<'t> {
    table: &'t PaperTable,
    old: Option<Ledger>,
    new: Ledger,
}

/// A file is replaced, not changed, so its number tells whether it is still the same.
type Stamp = (u64, Option<SystemTime>);

impl ResultsFolder {
    /// Opens the results. Every file that may be overwritten later is read now.
    pub fn open(folders: &Folders, own: impl IntoIterator<Item = PaperTable>) -> Result<ResultsFolder> {
        if !folders.results.is_dir() {
            let looked = if folders.results.is_relative() { working_folder() } else { String::new() };
            note(format_args!("note: there is no folder {}{looked}: no run is known yet", folders.results.display()));
        }
        let (folder, stamps) = (folders.records(), BTreeMap::new());
        let (results, records, watch) = (folders.results.clone(), RunRecords::default(), LeaseWatch::default());
        let tables = PaperTable::all().into_iter().chain(own).collect();
        let mut results = ResultsFolder { results, folder, records, tables, stamps, watch };
        results.read_all()?;
        for table in results.tables.iter() {
            for recipe in [Recipe::Fast, Recipe::Paper] {
                results.ledger(table, recipe)?;
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

    /// Waits until no other process writes ledgers. None does while the lease lives.
    pub fn hold(&self) -> Result<Lease> {
        fs::create_dir_all(&self.results).with_context(|| format!("cannot make {}", self.results.display()))?;
        Ok(Lease::wait(&lease_of(&self.results))?)
    }

    /// Takes the row of a table whose ledger is the only record of it; none if another process is at it.
    pub fn claim_row(&self, table: &PaperTable, row: usize) -> Result<Option<Lease>> {
        fs::create_dir_all(&self.results).with_context(|| format!("cannot make {}", self.results.display()))?;
        match Lease::take(&self.results.join(format!(".{}-{row}.claim", table.name))) {
            Err(RecordError::InUse { .. }) => Ok(None),
            taken => Ok(Some(taken?)),
        }
    }

    /// Reads all records.
    fn read_all(&mut self) -> Result<()> {
        self.stamps = self.names().into_iter().filter_map(|name| Some((name.clone(), self.stamp(&name)?))).collect();
        self.records = RunRecords::read(&self.folder).map_err(bad_input)?;
        Ok(())
    }

    /// Reads the records that have changed: other processes may have written some.
    fn refresh(&mut self) -> Result<()> {
        let names = self.names();
        if self.stamps.keys().any(|name| !names.contains(name)) {
            return self.read_all();
        }
        names.iter().try_for_each(|name| self.reload(name))
    }

    /// The folders in the folder of the records.
    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The file is opened, since a shared file system may answer out of its memory otherwise.
    fn stamp(&self, name: &str) -> Option<Stamp> {
        let file = fs::File::open(RunFolder::new(self.record(name)).metrics()).ok()?.metadata().ok()?;
        Some((file.ino(), file.modified().ok()))
    }

    /// Reads the record of a run if it has changed.
    pub fn reload(&mut self, name: &str) -> Result<()> {
        let stamp = self.stamp(name);
        if stamp.is_some() && self.stamps.get(name) != stamp.as_ref() {
            if let Some(record) = RunRecord::read(&self.record(name)).map_err(bad_input)? {
                self.records.insert(name, record);
            }
            self.stamps.extend(stamp.map(|stamp| (name.to_owned(), stamp)));
        }
        Ok(())
    }

    /// Makes a record of a run's folder, if `may` agrees. It sees the record of this run as it is on disk. Then the ledgers are
    /// brought up to date, unless another process is writing them. Gives the time that the ledgers took; none if there is no record.
    pub fn enter(
        &mut self,
        name: &str,
        run: &Path,
        recipe: Recipe,
        may: impl FnOnce(&RunRecords) -> Result<bool>,
    ) -> Result<Option<Duration>> {
        self.reload(name)?;
        if !may(&self.records)? {
            return Ok(None);
        }
        let (record, files) = self.records.made_of(name, run).map_err(bad_input)?;
        for (path, text) in files {
            write_whole(&path, &text)?;
        }
        self.records.insert(name, record);
        let began = Instant::now();
        if let Claim::Ours(_held) = self.watch.claim(&lease_of(&self.results))? {
            self.refresh()?;
            self.write_ledgers(self.tables.iter(), recipe)?;
        }
        Ok(Some(began.elapsed()))
    }

    /// Brings the ledgers of all tables up to date.
    pub fn update_all_ledgers(&mut self, recipe: Recipe) -> Result<()> {
        let tables = self.tables.clone();
        self.update_ledgers(tables.iter(), recipe)
    }

    /// Makes the ledgers of some tables from the records, and writes those that have changed. The records are read again first,
    /// since another command may have added some. Returns when the ledgers are right, whoever wrote them.
    pub fn update_ledgers<'t>(
        &mut self,
        tables: impl Iterator<Item = &'t PaperTable> + Clone,
        recipe: Recipe,
    ) -> Result<()> {
        while self.results.exists() {
            self.refresh()?;
            let lease = lease_of(&self.results);
            if self.changed(tables.clone(), recipe)?.is_empty() {
                // A process that was killed may have left its lease. Whoever lives keeps it.
                if lease.exists() {
                    self.watch.claim(&lease)?;
                }
                break;
            }
            if let Claim::Ours(_held) = self.watch.claim(&lease)? {
                self.refresh()?;
                return self.write_ledgers(tables, recipe);
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The ledgers that are not what the records say: as they are on disk, and as they must be.
    fn changed<'t>(&self, tables: impl Iterator<Item = &'t PaperTable>, recipe: Recipe) -> Result<Vec<Change<'t>>> {
        let mut changed = Vec::new();
        for table in tables.filter(|table| table.kind() != Kind::Sizes) {
            let (old, new) = (self.ledger(table, recipe)?, Ledger::of(table, recipe, &self.records));
            if old.as_ref() != Some(&new) && (old.is_some() || !new.lines.is_empty()) {
                changed.push(Change { table, old, new });
            }
        }
        Ok(changed)
    }

    fn write_ledgers<'t>(&self, tables: impl Iterator<Item = &'t PaperTable>, recipe: Recipe) -> Result<()> {
        for Change { table, old, new } in self.changed(tables, recipe)? {
            let path = self.path(table, recipe);
            for line in old.iter().flat_map(|old| old.unknown_to(&new)) {
                let path = path.display();
                note(format_args!("{path} line {line}: no record in results/runs backs it any more; it is left out"));
            }
            self.write(table, recipe, &new)?;
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
        let open = || ResultsFolder::open(&folders, []).unwrap_or_else(|e| panic!("{e:?}"));
        let (mut ours, mut theirs) = (open(), open());
        let entered = theirs.enter("large_coeff-1-coarse-infix", &run, Recipe::Fast, |_| Ok(true));
        assert!(entered.unwrap_or_else(|e| panic!("{e:?}")).is_some());
        for results in [&mut theirs, &mut ours] {
            results.update_ledgers([&table].into_iter(), Recipe::Fast).unwrap_or_else(|e| panic!("{e:?}"));
            let ledger = results.ledger(&table, Recipe::Fast).unwrap_or_else(|e| panic!("{e:?}"));
            assert_eq!(ledger.map(|ledger| ledger.lines.len()), Some(1));
        }
    }
}

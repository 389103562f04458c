//! The committed record of each finished run, `results/runs/NAME/`: its configuration, numbers and learning curves.
//!
//! Weights are large and stay where they were trained; a record is small and travels with the repository. Every ledger is made from
//! records alone. A record that cannot be read is an error, not a run that is missing: it would be trained again, and its
//! numbers replaced in silence.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StudyError;
use crate::metrics::{Evaluation, Metrics};
use crate::tables::AskedSet;
use polystep_record::folder::read_text;
use polystep_record::paper::size_estimate;
use polystep_record::{JsonLines, Keys, LogLine, PaperSetting, RecordError, RunFolder, TestSet, ValidLine};

/// Bytes of learning curves that are worth keeping.
const CURVES: usize = 80_000;

/// A finished run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// The resolved configuration.
    pub config: toml::Table,
    /// The numbers.
    pub metrics: Metrics,
    /// The learning curves.
    pub log: Vec<LogLine>,
}

/// A validation of a run on its way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Milestone {
    /// The number of examples that was asked about.
    pub examples: f64,
    /// Full proofs that are right, in percent.
    pub full_proof: f64,
    /// Whether a calculator's brackets were compared as they stand, before evaluation.
    pub raw: bool,
    /// Whether the learning rate was still on its way down a cosine.
    pub midway: bool,
}

impl RunRecord {
    /// Reads the record in a folder; none if the folder has no metrics.json.
    pub fn read(folder: &Path) -> Result<Option<RunRecord>, StudyError> {
        let folder = RunFolder::new(folder);
        let restore = |error| match error {
            RecordError::Document { path, why } => {
                RecordError::document(&path, format!("{why}; restore it or remove it"))
            }
            error => error,
        };
        let Some(mut metrics) = folder.read_metrics().map_err(restore)? else { return Ok(None) };
        let path = folder.config();
        let missing = || RecordError::document(&path, "it is missing beside its metrics.json");
        let config = folder.read_config()?.ok_or_else(missing)?;
        // Training alone does not write the keys.
        if metrics.keys.config.is_empty() {
            metrics.keys = Keys::of_config(&config).map_err(|why| RecordError::document(&path, why))?.0;
        }
        let curves = folder.log();
        let log = log(&curves, &read_text(&curves)?.unwrap_or_default())?;
        Ok(Some(RunRecord { config, metrics, log }))
    }

    /// The last validation before the run had seen more than so many examples, rounded up to a whole batch. None if the run
    /// never saw so many, or if that validation is longer ago than two of them lie apart.
    pub fn at(&self, examples: f64) -> Option<Milestone> {
        let train = self.config.get("train")?;
        let apart = train.get("valid_every")?.as_integer()? as f64;
        let batch = train.get("batch")?.as_integer()? as f64;
        let seen = self.metrics.run.examples.filter(|seen| *seen as f64 >= examples)? as f64;
        let cosine = train.get("schedule").and_then(toml::Value::as_str) == Some("cosine");
        let validation = |line: &ValidLine| {
            let at = line.examples as f64;
            let (raw, midway) = (self.is_raw(), cosine && seen - at > apart);
            let recent = at < examples + batch && examples - at <= apart;
            recent.then_some(Milestone { examples, full_proof: 100.0 * line.full_proof, raw, midway })
        };
        self.log.iter().rev().filter_map(LogLine::valid).find_map(validation)
    }

    /// After how many examples a validation first had so many percent of its proofs right; none if none had.
    pub fn examples_until(&self, percent: u32) -> Option<u64> {
        let reached = |line: &&ValidLine| 100.0 * line.full_proof >= f64::from(percent);
        self.log.iter().filter_map(LogLine::valid).find(reached).map(|line| line.examples)
    }

    /// How many unsimplified polynomials the paper estimates its space to have, for each polynomial that was trained on. A run that
    /// learned several spaces, or one of its own, has no such number.
    pub fn space_per_polynomial(&self) -> Option<f64> {
        let Keys { config, vars, also, .. } = &self.metrics.keys;
        let [equations, _] = size_estimate(&TestSet::new(config, *vars)).filter(|_| also.is_empty())?;
        let proofs = self.metrics.other.get("proofs")?.as_f64().filter(|proofs| *proofs > 0.0)?;
        Some(equations / proofs)
    }

    /// What the model did on a set.
    pub fn evaluation(&self, set: &AskedSet) -> Option<&Evaluation> {
        self.metrics.evaluations.iter().find(|e| e.config == set.config && e.vars == set.vars)
    }

    /// Whether all that is asked on a set was measured, on at least so many proofs.
    pub fn has(&self, set: &AskedSet, proofs: u64) -> bool {
        self.evaluation(set).is_some_and(|e| {
            let greedy = e.greedy.as_ref().is_some_and(|g| g.full_proof.exact.of >= proofs);
            greedy && (!set.beam || e.beam.is_some())
        })
    }

    /// Whether a calculator's brackets were validated as they stand, before evaluation; older logs do not say so.
    pub fn is_raw(&self) -> bool {
        self.metrics.keys.is(PaperSetting::Calculator)
            || self.log.iter().filter_map(LogLine::valid).any(|line| line.raw)
    }

    /// Adds evaluations that another record of the same run has; of two on one set the one on more proofs stays, then the one
    /// with beam search. Another run's are not ours, whatever its name.
    pub fn merge(&mut self, other: &RunRecord) {
        if self.metrics.run != other.metrics.run {
            return;
        }
        let measured = |e: &Evaluation| (e.greedy.as_ref().map(|g| g.full_proof.exact.of), e.beam.is_some());
        let both = [
            (&mut self.metrics.evaluations, &other.metrics.evaluations),
            (&mut self.metrics.long, &other.metrics.long),
        ];
        for (all, others) in both {
            for theirs in others {
                match all.iter_mut().find(|ours| ours.set() == theirs.set()) {
                    Some(ours) if measured(ours) < measured(theirs) => *ours = theirs.clone(),
                    Some(_) => {}
                    None => all.push(theirs.clone()),
                }
            }
        }
    }
}

/// The records of a folder, by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunRecords {
    folder: PathBuf,
    all: BTreeMap<String, RunRecord>,
}

impl RunRecords {
    /// Reads every record in a folder; none if there is no such folder.
    pub fn read(folder: &Path) -> Result<RunRecords, StudyError> {
        let mut records = RunRecords { folder: folder.to_path_buf(), all: BTreeMap::new() };
        let entries = match fs::read_dir(folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(records),
            entries => entries.map_err(RecordError::file("read", folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(RecordError::file("read", folder))?;
            if let Some(record) = RunRecord::read(&entry.path())? {
                records.all.insert(entry.file_name().to_string_lossy().into_owned(), record);
            }
        }
        Ok(records)
    }

    /// The record of a run.
    pub fn get(&self, name: &str) -> Option<&RunRecord> {
        self.all.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RunRecord)> {
        self.all.iter().map(|(name, record)| (name.as_str(), record))
    }

    /// The record that a run's folder gives, and its files in the order in which they are to be written. Evaluations that
    /// the old record of the same run has are kept.
    pub fn made_of(&self, name: &str, run: &Path) -> Result<(RunRecord, [(PathBuf, String); 3]), StudyError> {
        let from = RunFolder::new(run);
        let missing = || RecordError::document(&from.metrics(), "it is missing: the run is not finished");
        let mut record = RunRecord::read(run)?.ok_or_else(missing)?;
        if let Some(old) = self.get(name) {
            record.merge(old);
        }
        let config = read_text(&from.config())?.unwrap_or_default();
        let curves = thinned(&read_text(&from.log())?.unwrap_or_default());
        record.log = log(&from.log(), &curves)?;
        // An evaluation has a thousand numbers: one line for each would make the file three times as large.
        let metrics = serde_json::to_string(&record.metrics).map_err(|e| RecordError::document(&from.metrics(), e))?;
        // The numbers last: with them the record is there.
        let to = RunFolder::new(self.folder.join(name));
        Ok((record, [(to.config(), config), (to.log(), curves), (to.metrics(), metrics + "\n")]))
    }

    /// Knows a record from now on.
    pub fn insert(&mut self, name: &str, record: RunRecord) {
        self.all.insert(name.to_owned(), record);
    }
}

fn log(path: &Path, text: &str) -> Result<Vec<LogLine>, RecordError> {
    JsonLines::new(text.as_bytes(), path).collect()
}

/// Learning curves with as few lines left out as the size asks for: every validation stays, of the other kinds of lines every
/// n-th.
fn thinned(log: &str) -> String {
    let kept = |every: usize| -> String {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let keep = log.lines().filter(|line| {
            let kind = line.split('"').nth(3).unwrap_or_default();
            let n = seen.entry(kind).or_default();
            *n += 1;
            kind == "valid" || n.is_multiple_of(every)
        });
        keep.map(|line| format!("{line}\n")).collect()
    };
    let most = log.lines().count().max(1);
    (1..=most).map(kept).find(|text| text.len() <= CURVES).unwrap_or_else(|| kept(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{BeamScores, Greedy, Provenance, Right};
    use polystep_record::Proportion;
    use polystep_record::metrics::Errors;
    use polystep_record::metrics::Slices;

    fn take(records: &mut RunRecords, name: &str, run: &Path) {
        let (record, files) = records.made_of(name, run).unwrap();
        for (path, text) in files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        records.insert(name, record);
    }

    /// A run's folder with empty evaluations of some sets.
    fn run(folder: &Path, seconds: f64, sets: &[&str]) -> PathBuf {
        let path = folder.join("run");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("config.toml"), "[data]\nconfig = \"small_coeff\"\nvars = 1\n").unwrap();
        fs::write(path.join("metrics.jsonl"), "").unwrap();
        let evaluation = |config: &&str| Evaluation { config: (*config).into(), vars: 1, ..Evaluation::default() };
        let run = Provenance { seconds: Some(seconds), ..Provenance::default() };
        let metrics = Metrics { run, evaluations: sets.iter().map(evaluation).collect(), ..Metrics::default() };
        fs::write(path.join("metrics.json"), serde_json::to_string(&metrics).unwrap()).unwrap();
        path
    }

    fn sets(records: &RunRecords) -> Vec<&str> {
        records.get("a").unwrap().metrics.evaluations.iter().map(|e| e.config.as_str()).collect()
    }

    #[test]
    fn evaluations_of_the_same_run_add_up_and_of_another_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("runs");
        let mut records = RunRecords::read(&results).unwrap();
        take(&mut records, "a", &run(folder.path(), 7.0, &["small_coeff"]));
        take(&mut records, "a", &run(folder.path(), 7.0, &["large_coeff"]));
        assert_eq!(sets(&records), ["large_coeff", "small_coeff"]);
        assert_eq!(RunRecords::read(&results).unwrap(), records, "what is written is what is known");
        take(&mut records, "a", &run(folder.path(), 8.0, &["large_coeff"]));
        assert_eq!(sets(&records), ["large_coeff"], "trained anew: the old numbers are not its own");
        assert_eq!(records.get("a").unwrap().metrics.keys.config, "small_coeff");
    }

    /// A quick look at a few proofs does not take the place of the whole set, with beam search or without.
    #[test]
    fn the_evaluation_on_more_proofs_stays() {
        let record = |proofs: u64, beam: bool| {
            let share = Proportion::new(0, proofs).unwrap();
            let right = Right { exact: share, symbolic: share };
            let (errors, slices) = (Errors::default(), Slices::default());
            let greedy = Greedy {
                full_proof: right,
                stepwise: right,
                raw_exact: None,
                malformed: share,
                by_kind: BTreeMap::new(),
                by_class: BTreeMap::new(),
                errors,
                slices,
            };
            let beam = beam.then_some(BeamScores {
                width: 5,
                top1: right,
                any5: right,
                malformed: share,
                calibration: None,
                calibration_symbolic: None,
            });
            let evaluation = Evaluation { greedy: Some(greedy), beam, ..Evaluation::default() };
            let metrics = Metrics { evaluations: vec![evaluation], ..Metrics::default() };
            RunRecord { config: toml::Table::new(), metrics, log: Vec::new() }
        };
        let set = AskedSet { config: String::new(), vars: 0, beam: true };
        let merged = |mut ours: RunRecord, theirs: &RunRecord| {
            ours.merge(theirs);
            (ours.has(&set, 1000), ours.has(&AskedSet { beam: false, ..set.clone() }, 1000))
        };
        assert_eq!(merged(record(200, true), &record(1000, false)), (false, true));
        assert_eq!(merged(record(1000, false), &record(200, true)), (false, true));
        assert_eq!(merged(record(1000, false), &record(1000, true)), (true, true));
        assert_eq!(merged(record(1000, true), &record(1000, false)), (true, true));
    }

    #[test]
    fn a_damaged_record_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path(), 1.0, &[]);
        fs::write(path.join("metrics.json"), "{\"seed\": 1,\n\"keys\": 3}").unwrap();
        let error = RunRecords::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("run/metrics.json cannot be understood") && error.contains("line 2"), "{error}");
        run(folder.path(), 1.0, &[]);
        fs::write(path.join("config.toml"), "[data]\nvars = = 1\n").unwrap();
        let error = RunRecords::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("run/config.toml cannot be understood: line 2"), "{error}");
        fs::remove_file(path.join("config.toml")).unwrap();
        let error = RunRecords::read(folder.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("run/config.toml cannot be understood: it is missing beside its metrics.json"),
            "{error}"
        );
    }

    #[test]
    fn a_run_is_looked_at_on_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path(), 1.0, &[]);
        let schedule = |schedule: &str, setting: &str| {
            let data = format!("[data]\nconfig = \"small_coeff\"\nvars = 1\nsetting = \"{setting}\"\n");
            let train = format!("[train]\nbatch = 4\nvalid_every = 100\nschedule = \"{schedule}\"\n");
            fs::write(path.join("config.toml"), data + &train).unwrap();
            let provenance = Provenance { examples: Some(512), ..Provenance::default() };
            let metrics = Metrics { run: provenance, ..Metrics::default() };
            fs::write(path.join("metrics.json"), serde_json::to_string(&metrics).unwrap()).unwrap();
            RunRecord::read(&path).unwrap().unwrap()
        };
        let valid = |at: u32, right: f64| {
            format!("{{\"kind\":\"valid\",\"step\":{at},\"examples\":{at},\"full_proof\":{right},\"stepwise\":1.0}}\n")
        };
        let log = valid(100, 0.25) + &valid(204, 0.5) + &valid(512, 0.75);
        fs::write(path.join("metrics.jsonl"), &log).unwrap();
        let record = schedule("cosine", "plain");
        let at = |examples: f64| record.at(examples).map(|milestone| milestone.full_proof);
        // A batch is whole: what was validated 4 examples after 200 is not yet what is meant by 200, 3 are.
        assert_eq!([100.0, 200.0, 201.0, 304.0].map(at), [Some(25.0), Some(25.0), Some(50.0), Some(50.0)]);
        assert_eq!(at(512.0), Some(75.0));
        assert_eq!([96.0, 305.0, 513.0].map(at), [None; 3], "too early, too long ago, never seen");
        let marks = |record: RunRecord, examples| record.at(examples).map(|m| (m.raw, m.midway)).unwrap();
        assert_eq!(marks(record.clone(), 210.0), (false, true));
        assert_eq!(marks(record.clone(), 512.0), (false, false));
        assert_eq!(marks(schedule("constant", "calculator"), 210.0), (true, false));

        fs::write(path.join("metrics.jsonl"), log + "{\"kind\":\"va").unwrap();
        let error = RunRecords::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("run/metrics.jsonl line 4: "), "{error}");
    }

    #[test]
    fn long_curves_keep_every_validation() {
        let train = |i: usize| format!("{{\"kind\":\"train\",\"step\":{i},\"loss\":0.123456789,\"seconds\":1.0}}\n");
        let valid = |i: usize| format!("{{\"kind\":\"valid\",\"step\":{i},\"full_proof\":0.5}}\n");
        let log: String = (0..4000).map(|i| train(i) + &if i % 50 == 0 { valid(i) } else { String::new() }).collect();
        let thin = thinned(&log);
        let count = |kind: &str| thin.lines().filter(|l| l.contains(kind)).count();
        assert!(log.len() > 2 * CURVES && thin.len() <= CURVES);
        assert_eq!(count("valid"), 80);
        assert!(count("train") == 1000 && thin.lines().all(|l| log.contains(l)));
        assert_eq!(thinned(&valid(1)), valid(1));
    }
}

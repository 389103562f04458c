//! The user's runs: the folders under `--runs`, while they train and when they are done.
//!
//! A run is found by comparing its name with the folders that are there, so no name can lead out of `--runs`. Whether a run
//! still trains is told from its lease, which only the process that trains it holds. Reading it disturbs nobody.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use polystep_record::folder::lease_of;
use polystep_record::{CampaignFolder, LeaseHolder, LogLine, RunFolder};
use polystep_study::{StoredRun, report};
use serde::Serialize;

use crate::error::Refusal;

/// A run whose log did not grow for so long has stopped, if its process is on another host.
const SILENCE: Duration = Duration::from_secs(600);
/// The end of a log, in which the last validation is looked for.
const TAIL: u64 = 64 * 1024;
/// Points of a curve: more are not seen.
const POINTS: usize = 400;

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It has its numbers.
    Finished,
    /// A process is at it.
    Training,
    /// It ended with an error, or its process was killed.
    Failed,
    /// It was interrupted, and can go on.
    Stopped,
}

/// A run as a list shows it.
#[derive(Clone, Debug, Serialize)]
pub struct ListedRun {
    /// Its folder's name.
    pub name: String,
    /// What it is doing.
    pub state: RunState,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Examples seen, at its last line.
    pub examples: Option<u64>,
    /// Full proofs at its last validation, in percent.
    pub full_proof: Option<f64>,
    /// Whether its weights are there.
    pub model: bool,
}

/// The folder of runs.
pub struct RunList {
    folder: Option<PathBuf>,
}

impl RunList {
    /// The runs of a folder.
    pub fn new(folder: Option<PathBuf>) -> RunList {
        RunList { folder }
    }

    fn folders(&self) -> Vec<(String, PathBuf)> {
        let entries = self.folder.as_ref().and_then(|folder| folder.read_dir().ok());
        let named = |entry: fs::DirEntry| Some((entry.file_name().into_string().ok()?, entry.path()));
        let mut found: Vec<_> = entries.into_iter().flatten().flatten().filter_map(named).collect();
        found.retain(|(_, path)| RunFolder::new(path).is_begun());
        found.sort();
        found
    }

    /// All runs, by name.
    pub fn list(&self) -> Vec<ListedRun> {
        self.folders().into_iter().map(|(name, path)| listed(name, &RunFolder::new(path))).collect()
    }

    /// The folder of a run.
    pub fn folder(&self, name: &str) -> Result<PathBuf, Refusal> {
        let found = self.folders().into_iter().find(|(found, _)| found == name);
        found.map(|(_, path)| path).ok_or_else(|| Refusal::not_found("there is no run of that name under --runs"))
    }
}

fn listed(name: String, folder: &RunFolder) -> ListedRun {
    let lines = tail(&folder.log());
    let examples = lines.iter().filter_map(LogLine::progress).map(|(_, examples, _)| examples).next_back();
    let full_proof = lines.iter().rev().find_map(LogLine::valid).map(|valid| 100.0 * valid.full_proof);
    let (state, why) = state(folder);
    ListedRun { name, state, why, examples, full_proof, model: folder.has_model() }
}

/// What a run is doing; and of one that failed, why.
fn state(folder: &RunFolder) -> (RunState, Option<String>) {
    if folder.is_finished() {
        return (RunState::Finished, None);
    }
    let lease = lease_of(folder.path());
    if let Some(holder) = LeaseHolder::read(&lease) {
        let grown = |path: PathBuf| fs::metadata(path).and_then(|meta| meta.modified()).ok();
        // A run that has just begun has no log yet.
        let latest = grown(folder.log()).or_else(|| grown(folder.config()));
        let silent = latest.is_none_or(|time| time.elapsed().unwrap_or_default() >= SILENCE);
        let lives = holder.process.lives() || !silent;
        return (if lives { RunState::Training } else { RunState::Stopped }, None);
    }
    match CampaignFolder::new(folder.path()).failure() {
        Ok(Some(failure)) => (RunState::Failed, Some(failure.why)),
        Err(damaged) => (RunState::Failed, Some(damaged.to_string())),
        Ok(None) if lease.exists() => {
            (RunState::Failed, Some("its process was killed; polystep train --resume continues it".to_owned()))
        }
        Ok(None) => (RunState::Stopped, None),
    }
}

/// The last lines of a log. Those that are cut or unknown are left out.
fn tail(path: &Path) -> Vec<LogLine> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut end = Vec::new();
        file.take(TAIL).read_to_end(&mut end)?;
        Ok(end)
    };
    let text = read().unwrap_or_default();
    text.split(|&b| b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// A run with its curves.
#[derive(Clone, Debug, Serialize)]
pub struct RunDetail {
    name: String,
    title: String,
    state: RunState,
    /// Examples and loss.
    train: Vec<(u64, f64)>,
    /// Examples, full proofs and steps in percent.
    valid: Vec<(u64, f64, f64)>,
    /// Its results: test set, full proofs and steps in percent with their intervals.
    tests: Vec<TestResult>,
    /// What is missing or damaged, one sentence each.
    notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct TestResult {
    set: String,
    full_proof: [f64; 3],
    stepwise: [f64; 3],
    proofs: u64,
}

impl RunDetail {
    /// What there is of the run in a folder.
    pub fn of(folder: &Path) -> Result<RunDetail, Refusal> {
        let run = StoredRun::open(folder).map_err(Refusal::unprocessable)?;
        let train = run.log.iter().filter_map(LogLine::train).map(|line| (line.examples, line.loss));
        let valid = run.log.iter().filter_map(LogLine::valid);
        let valid = valid.map(|line| (line.examples, 100.0 * line.full_proof, 100.0 * line.stepwise));
        let evaluations = run.metrics.iter().flat_map(|metrics| &metrics.evaluations);
        let tests = evaluations.filter_map(|e| {
            let greedy = e.greedy.as_ref()?;
            let (full, step) = (greedy.full_proof.exact, greedy.stepwise.exact);
            Some(TestResult {
                set: format!("{}:{}", e.config, e.vars),
                full_proof: [full.percent, full.lo, full.hi],
                stepwise: [step.percent, step.lo, step.hi],
                proofs: full.of,
            })
        });
        let (state, why) = state(&run.folder);
        let notes = why.map(|why| format!("it failed: {why}")).into_iter().chain(run.notes);
        Ok(RunDetail {
            title: run.keys.title(),
            state,
            train: thinned(train.collect()),
            valid: thinned(valid.collect()),
            tests: tests.collect(),
            notes: notes.collect(),
            name: run.name,
        })
    }
}

/// At most so many points that they can be told apart; the last one is kept.
fn thinned<T: Copy>(points: Vec<T>) -> Vec<T> {
    let every = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, point)| *point).collect()
}

/// The page about a run, as `polystep report` writes it.
pub fn report_page(folder: &Path) -> Result<String, Refusal> {
    let run = StoredRun::open(folder).map_err(Refusal::unprocessable)?;
    report::html(&[run]).map_err(Refusal::internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_record::{Lease, RunFailure};

    fn begun(runs: &Path, name: &str) -> PathBuf {
        let folder = runs.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("config.toml"), "[data]\nconfig = \"small_coeff\"\nvars = 1\n").unwrap();
        folder
    }

    #[test]
    fn runs_are_found_by_name_only() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("runs");
        fs::create_dir(&runs).unwrap();
        begun(&runs, "a");
        begun(place.path(), "outside");
        fs::write(runs.join("notes.txt"), "no run").unwrap();
        let list = RunList::new(Some(runs));
        assert_eq!(list.list().iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert!(list.folder("a").is_ok());
        for name in ["../outside", "..", ".", "", "/etc", "a/../a", "notes.txt", "a/"] {
            assert!(list.folder(name).is_err(), "{name}");
        }
        assert!(RunList::new(None).list().is_empty());
    }

    #[test]
    fn a_run_trains_while_a_process_is_at_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = begun(place.path(), "a");
        let list = || RunList::new(Some(place.path().to_path_buf())).list().remove(0);
        assert_eq!(list().state, RunState::Stopped, "nobody is at it");
        let lease = Lease::take(&lease_of(&folder)).unwrap();
        assert_eq!(list().state, RunState::Training, "it has just begun");
        let valid = r#"{"kind":"valid","step":9,"examples":90,"full_proof":0.5,"stepwise":0.75}"#;
        let log = folder.join("metrics.jsonl");
        fs::write(&log, format!("{valid}\n{{\"kind\":\"train\",\"step\":10,\"examples\":100,\"loss\":1.5}}\n{{\"ki"))
            .unwrap();
        let run = list();
        assert_eq!((run.state, run.examples, run.full_proof), (RunState::Training, Some(100), Some(50.0)));

        // It fails.
        let failure = RunFailure { why: "no disk".into(), log: "a.log".into(), holder: lease.holder().clone() };
        drop(lease);
        CampaignFolder::new(&folder).fail(&failure).unwrap();
        assert_eq!((list().state, list().why.as_deref()), (RunState::Failed, Some("no disk")));
        assert_eq!(RunDetail::of(&folder).unwrap().notes[0], "it failed: no disk");

        // A process of which nothing is known here is at it again, and then says nothing for long.
        CampaignFolder::new(&folder).forget_failure().unwrap();
        fs::write(lease_of(&folder), "{}").unwrap();
        assert_eq!(list().state, RunState::Training);
        let long_ago = std::time::SystemTime::now() - 2 * SILENCE;
        File::options().append(true).open(&log).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(list().state, RunState::Stopped);

        fs::write(folder.join("metrics.json"), "{}").unwrap();
        assert_eq!(list().state, RunState::Finished);
        let detail = RunDetail::of(&folder).unwrap();
        assert_eq!((detail.train, detail.valid), (vec![(100, 1.5)], vec![(90, 50.0, 75.0)]));
    }

    #[test]
    fn curves_keep_their_end() {
        let thin = thinned((0..1001).collect());
        assert!(thin.len() <= POINTS + 1 && thin[0] == 0 && thin.last() == Some(&1000), "{thin:?}");
        assert_eq!(thinned(vec![1, 2]), [1, 2]);
        assert!(thinned(Vec::<u8>::new()).is_empty());
    }
}

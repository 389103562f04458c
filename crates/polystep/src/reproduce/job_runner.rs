//! Makes the missing runs. Each run is an ordinary `polystep train` and `polystep eval` in a child process. With `--jobs`,
//! several children work at a time.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use polystep_record::PaperSetting;
use polystep_record::paper::lookup;
use polystep_study::records::RunRecord;
use polystep_study::tables::{AskedSet, PaperTable, Recipe};

use super::child::{self, Board, Ended};
use super::job::{Folders, Job, Remaining};
use super::pace::Pace;
use super::results_folder::ResultsFolder;
use super::search::Search;
use super::table_plan::TablePlans;
use crate::device::Device;
use crate::failure::Result;
use crate::interrupt;

/// Seconds. With less time than this a training is not started.
const WORTHWHILE: f64 = 30.0;

/// What runs are made with.
pub struct JobRunner<'a> {
    /// The plans.
    pub plans: &'a TablePlans,
    /// Where runs live.
    pub folders: &'a Folders,
    /// How long runs take.
    pub pace: &'a Pace,
    /// Where to compute.
    pub device: Device,
    /// Threads of each child; if none, the child decides.
    pub threads: Option<usize>,
    /// Children at a time.
    pub jobs: usize,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Whether to train. If not, only trained models are evaluated.
    pub train: bool,
    /// Whether the hyper-parameters of tuned rows are searched.
    pub search: bool,
}

/// What became of the jobs.
#[derive(Debug, Default)]
pub struct Summary {
    /// Runs that were not finished: the time was too short, or another process works on them.
    pub left: Vec<String>,
    /// Runs that failed.
    pub failed: Vec<String>,
}

impl JobRunner<'_> {
    /// Does all jobs, or as many as there is time for. Every finished run is added to the results folder at once.
    pub fn work(&self, jobs: Vec<Job>, results: &mut ResultsFolder) -> Result<Summary> {
        let queue = Mutex::new(VecDeque::from(jobs));
        let results = Mutex::new(results);
        let summary = Mutex::new(Summary::default());
        let board = Board::new();
        let worker = || -> Result<()> {
            loop {
                let Some(job) = lock(&queue).pop_front() else { return Ok(()) };
                let mut ended = Ended::Freed;
                while matches!(ended, Ended::Freed) {
                    ended = self.make(&job, &results, &board).inspect_err(|_| lock(&queue).clear())?;
                }
                let mut summary = lock(&summary);
                match ended {
                    Ended::Well => {}
                    Ended::Failed(why) => {
                        board.say(&format!("{}: {why}", job.name));
                        summary.failed.push(job.name);
                    }
                    Ended::Stopped | Ended::Busy | Ended::Freed => summary.left.push(job.name),
                }
            }
        };
        let ended: Vec<Result<()>> = thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, worker).context("cannot start threads");
            let workers: Vec<_> = (0..self.jobs.max(1)).map(start).collect();
            let panicked = |_| Err(anyhow::anyhow!("a worker panicked; this is a bug").into());
            workers.into_iter().map(|worker| worker?.join().unwrap_or_else(panicked)).collect()
        });
        ended.into_iter().collect::<Result<()>>()?;
        interrupt::check()?;
        Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Trains and evaluates one run, and adds it to the results folder.
    fn make(&self, job: &Job, results: &Mutex<&mut ResultsFolder>, board: &Board) -> Result<Ended> {
        let remaining = self.folders.remaining(job, &lock(results).records)?;
        let evaluation = self.pace.evaluation(self.plans, &job.experiment);
        let left = self.pace.left(self.plans, &job.experiment, remaining);
        let training = matches!(remaining, Remaining::Resume | Remaining::Train);
        if training && !self.train || !self.has_time(left.min(evaluation + WORTHWHILE)) {
            return Ok(Ended::Stopped);
        }
        if training {
            match self.train(job, remaining, left, board)? {
                Ended::Well => {}
                Ended::Stopped => {
                    board.say(&format!("{}: stopped at a checkpoint", job.name));
                    return Ok(Ended::Stopped);
                }
                ended => return Ok(ended),
            }
            if !self.has_time(evaluation) {
                board.say(&format!("{}: trained; to be evaluated next time", job.name));
                return Ok(Ended::Stopped);
            }
        }
        self.folders.copy_bundled(&job.name)?;
        let run = self.folders.run(&job.name);
        for (sets, beam) in self.unevaluated(job, results)? {
            match self.eval(&job.name, &run, &sets, beam, job.proofs, board)? {
                Ended::Well => {}
                ended => return Ok(ended),
            }
        }
        let mut results = lock(results);
        results.add_run(&job.name, &run)?;
        results.update_ledgers(&PaperTable::all(), job.experiment.recipe)?;
        if let Some(record) = results.records.get(&job.name) {
            board.say(&format!("{}: {}", job.name, headline(job, record)));
        }
        Ok(Ended::Well)
    }

    /// Trains a run, or continues its training. The hyper-parameters of a tuned run may be searched first.
    fn train(&self, job: &Job, remaining: Remaining, left: f64, board: &Board) -> Result<Ended> {
        let mut overrides = job.overrides.clone();
        if self.search && remaining == Remaining::Train && job.experiment.keys.is(PaperSetting::Tuned) {
            let search = Search::new(job, self.folders)?;
            let [file, out] = [&search.write()?, &search.folder].map(|path| path.display().to_string());
            board.say(&format!("{}: its hyper-parameters are searched in {out}", job.name));
            let sweep = ["sweep", &file, "--out", &out].map(str::to_owned);
            match self.child(&job.name, sweep.into(), &search.folder.join("search.log"), self.deadline, board)? {
                Ended::Well => {}
                ended => return Ok(ended),
            }
            match search.found(job)? {
                Some(found) => overrides = found,
                None => return Ok(Ended::Failed(format!("no trial in {out} ended well"))),
            }
        }
        let run = self.folders.run(&job.name);
        fs::create_dir_all(&run).with_context(|| format!("cannot make {}", run.display()))?;
        let verb = if remaining == Remaining::Resume { "goes on" } else { "begins" };
        let log = run.join("train.log");
        board.say(&format!("{}: training {verb}, about {}; see {}", job.name, self.pace.about(left), log.display()));
        let mut args = vec!["train".to_owned(), "--out".to_owned(), run.display().to_string()];
        match remaining {
            Remaining::Resume => args.push("--resume".into()),
            _ => args.extend(overrides.iter().flat_map(|(key, value)| ["--set".into(), format!("{key}={value}")])),
        }
        self.child(&job.name, args, &log, self.deadline, board)
    }

    /// The sets for which neither the run's folder nor its record has an evaluation: those with beam search, then the others.
    fn unevaluated(&self, job: &Job, results: &Mutex<&mut ResultsFolder>) -> Result<Vec<(Vec<AskedSet>, bool)>> {
        let run = self.folders.run(&job.name);
        let mut known = RunRecord::read(&run)?;
        if let (Some(known), Some(old)) = (&mut known, lock(results).records.get(&job.name)) {
            known.merge(old);
        }
        let missing = job.missing(known.as_ref());
        let (beam, greedy): (Vec<_>, Vec<_>) = missing.into_iter().partition(|set| set.beam);
        Ok([(beam, true), (greedy, false)].into_iter().filter(|(sets, _)| !sets.is_empty()).collect())
    }

    /// Tests a run on some sets. An evaluation that has begun is not cut off at the deadline: its work would be lost.
    pub fn eval(
        &self,
        name: &str,
        run: &Path,
        sets: &[AskedSet],
        beam: bool,
        proofs: Option<u64>,
        board: &Board,
    ) -> Result<Ended> {
        let on: Vec<String> = sets.iter().map(|set| format!("{}:{}", set.config, set.vars)).collect();
        let mut args = ["eval", &run.display().to_string(), "--on", &on.join(",")].map(str::to_owned).to_vec();
        if !beam {
            args.push("--no-beam".into());
        }
        if let Some(proofs) = proofs {
            args.extend(["--proofs".into(), proofs.to_string()]);
        }
        self.child(name, args, &run.join("eval.log"), None, board)
    }

    fn child(
        &self,
        name: &str,
        mut args: Vec<String>,
        log: &Path,
        deadline: Option<Instant>,
        board: &Board,
    ) -> Result<Ended> {
        args.extend(["--until-stdin-closes".into(), "--device".into(), self.device.name()]);
        if let Some(threads) = self.threads {
            args.extend(["--threads".into(), threads.to_string()]);
        }
        child::run(name, &args, log, deadline, board)
    }

    /// Whether this many seconds are left before the deadline.
    pub fn has_time(&self, seconds: f64) -> bool {
        let stopped = interrupt::check().is_err();
        let enough = |deadline: Instant| Instant::now() + Duration::from_secs_f64(seconds) <= deadline;
        !stopped && self.deadline.is_none_or(enough)
    }
}

/// The result of a run in one line.
fn headline(job: &Job, record: &RunRecord) -> String {
    let keys = &job.experiment.keys;
    let column = if keys.is(PaperSetting::Endpoint) { "endpoint_acc" } else { "full_proof_acc" };
    let home = job.sets.iter().find(|set| (&set.config, set.vars) == (&keys.config, keys.vars));
    let full = home.and_then(|set| Some(record.evaluation(set)?.greedy.as_ref()?.full_proof.exact));
    let mut line = match full {
        Some(p) => format!("{:.1} % ({:.1} to {:.1})", p.percent, p.lo, p.hi),
        None => "done".into(),
    };
    if let Some(paper) = lookup(keys).into_iter().find(|p| p.column == column) {
        line += &format!(", paper {}", paper.text);
    }
    let run = &record.metrics.run;
    if let (Some(seconds), Some(device)) = (run.seconds, &run.device) {
        line += &format!("; trained in {seconds:.0} s on {device}");
    }
    match job.experiment.recipe {
        Recipe::Paper => line + " (recipe paper)",
        Recipe::Fast => line,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

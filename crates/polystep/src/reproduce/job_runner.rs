//! The work itself: each run is an ordinary `polystep train` and `polystep eval` in a process of its own, several at a time if asked.
//!
//! A child is stopped by closing its standard input (`train --until-stdin-closes`): it saves a checkpoint and leaves. That covers the
//! end of the time, Ctrl-C and the death of this process alike, so no run is ever lost beyond its last step.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use polystep_record::PaperSetting;
use polystep_record::paper::lookup;
use polystep_study::records::Record;
use polystep_study::tables::{Recipe, Table, TestSet};

use super::job::{Folders, Job, Remaining};
use super::pace::Pace;
use super::results_folder::ResultsFolder;
use super::search::Search;
use super::table_plan::TablePlans;
use crate::device::Device;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::output::note;

/// How often a child is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How often a log is told how far a child is.
const TELL: Duration = Duration::from_secs(60);
/// A training shorter than this is not worth its start.
const WORTHWHILE: f64 = 30.0;
/// Time that is kept for saving a checkpoint.
const SAVING: Duration = Duration::from_secs(5);

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
    /// Threads of each child; none leaves it to the child.
    pub threads: Option<usize>,
    /// Children at a time.
    pub jobs: usize,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Whether to train, or only to evaluate what is there.
    pub train: bool,
    /// Whether tuned rows search their hyper-parameters.
    pub search: bool,
}

/// What became of the jobs.
#[derive(Debug, Default)]
pub struct Summary {
    /// Runs that were finished.
    pub finished: usize,
    /// Runs that time was too short for, or that stopped at a checkpoint.
    pub left: Vec<String>,
    /// Runs that failed, with the reason.
    pub failed: Vec<String>,
}

/// What became of one child's work.
pub enum Made {
    /// All of it is done.
    Finished,
    /// It was stopped, or time was too short.
    Left,
    /// It failed, for this reason.
    Failed(String),
}

impl JobRunner<'_> {
    /// Does all jobs, or as many as there is time for. ResultsFolder are kept after each.
    pub fn work(&self, jobs: Vec<Job>, results: &mut ResultsFolder) -> Result<Summary> {
        let queue = Mutex::new(VecDeque::from(jobs));
        let results = Mutex::new(results);
        let summary = Mutex::new(Summary::default());
        let board = Board::new();
        let worker = || -> Result<()> {
            loop {
                let Some(job) = lock(&queue).pop_front() else { return Ok(()) };
                let made = self.make(&job, &results, &board).inspect_err(|_| lock(&queue).clear())?;
                let mut summary = lock(&summary);
                match made {
                    Made::Finished => summary.finished += 1,
                    Made::Left => summary.left.push(job.name),
                    Made::Failed(why) => {
                        board.say(&format!("{}: {why}", job.name));
                        summary.failed.push(job.name);
                    }
                }
            }
        };
        let outcomes: Vec<Result<()>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(worker)).collect();
            let panicked = |_| Err(Failure::Runtime(anyhow::anyhow!("a worker panicked; this is a bug")));
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(panicked)).collect()
        });
        outcomes.into_iter().collect::<Result<()>>()?;
        interrupt::check()?;
        Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Trains and evaluates one run, and enters it into the results.
    fn make(&self, job: &Job, results: &Mutex<&mut ResultsFolder>, board: &Board) -> Result<Made> {
        let state = self.folders.state(job, &lock(results).records)?;
        let evaluation = self.pace.evaluation(self.plans, &job.experiment);
        let left = self.pace.left(self.plans, &job.experiment, state);
        let training = matches!(state, Remaining::Resume | Remaining::Train);
        if training && !self.train || !self.has_time(left.min(evaluation + WORTHWHILE)) {
            return Ok(Made::Left);
        }
        if training {
            if let ControlFlow::Break(made) = self.train(job, state, left, board)? {
                return Ok(made);
            }
            if !self.has_time(evaluation) {
                board.say(&format!("{}: trained; to be evaluated next time", job.name));
                return Ok(Made::Left);
            }
        }
        self.folders.unbox(&job.name)?;
        let run = self.folders.run(&job.name);
        for (sets, beam) in self.unevaluated(job, results)? {
            let command = self.eval_command(&run, &sets, beam, job.proofs);
            if let ControlFlow::Break(made) = self.child(&job.name, &command, &run.join("eval.log"), board)? {
                return Ok(made);
            }
        }
        let mut results = lock(results);
        results.add_run(&job.name, &run)?;
        results.update_ledgers(&Table::all(), job.experiment.recipe)?;
        if let Some(record) = results.records.get(&job.name) {
            board.say(&format!("{}: {}", job.name, headline(job, record)));
        }
        Ok(Made::Finished)
    }

    /// Trains a run, or goes on with it; a tuned one may be searched first.
    fn train(&self, job: &Job, state: Remaining, left: f64, board: &Board) -> Result<ControlFlow<Made>> {
        let mut overrides = job.overrides.clone();
        if self.search && state == Remaining::Train && job.experiment.keys.is(PaperSetting::Tuned) {
            let search = Search::new(job, self.folders)?;
            let [file, out] = [&search.write()?, &search.folder].map(|path| path.display().to_string());
            board.say(&format!("{}: its hyper-parameters are searched in {out}", job.name));
            let command = ["sweep", &file, "--out", &out, "--until-stdin-closes"].map(str::to_owned);
            let log = search.folder.join("search.log");
            if let ControlFlow::Break(made) = self.child(&job.name, &self.with_device(command.into()), &log, board)? {
                return Ok(ControlFlow::Break(made));
            }
            match search.found(job)? {
                Some(found) => overrides = found,
                None => return Ok(ControlFlow::Break(Made::Failed(format!("no trial in {out} ended well")))),
            }
        }
        let run = self.folders.run(&job.name);
        fs::create_dir_all(&run).with_context(|| format!("cannot make {}", run.display()))?;
        let verb = if state == Remaining::Resume { "goes on" } else { "begins" };
        let log = run.join("train.log");
        board.say(&format!("{}: training {verb}, about {}; see {}", job.name, self.pace.about(left), log.display()));
        self.child(&job.name, &self.train_command(job, &overrides, state), &log, board)
    }

    /// Sets that neither the run's folder nor its record has, those with beam search apart.
    fn unevaluated(&self, job: &Job, results: &Mutex<&mut ResultsFolder>) -> Result<Vec<(Vec<TestSet>, bool)>> {
        let run = self.folders.run(&job.name);
        let mut known = Record::read(&run).map_err(crate::failure::bad_input)?;
        if let (Some(known), Some(old)) = (&mut known, lock(results).records.get(&job.name)) {
            known.merge(old);
        }
        let missing = job.missing(known.as_ref());
        let (beam, greedy): (Vec<_>, Vec<_>) = missing.into_iter().partition(|set| set.beam);
        Ok([(beam, true), (greedy, false)].into_iter().filter(|(sets, _)| !sets.is_empty()).collect())
    }

    fn train_command(&self, job: &Job, overrides: &[(String, String)], state: Remaining) -> Vec<String> {
        let mut args: Vec<String> = vec!["train".into(), "--until-stdin-closes".into()];
        args.extend(["--out".into(), self.folders.run(&job.name).display().to_string()]);
        match state {
            Remaining::Resume => args.push("--resume".into()),
            _ => args.extend(overrides.iter().flat_map(|(key, value)| ["--set".into(), format!("{key}={value}")])),
        }
        self.with_device(args)
    }

    /// How a run is tested.
    pub fn eval_command(&self, run: &Path, sets: &[TestSet], beam: bool, proofs: Option<u64>) -> Vec<String> {
        let on: Vec<String> = sets.iter().map(|set| format!("{}:{}", set.config, set.vars)).collect();
        let mut args: Vec<String> = vec!["eval".into(), run.display().to_string()];
        args.extend(["--on".into(), on.join(",")]);
        if !beam {
            args.push("--no-beam".into());
        }
        if let Some(proofs) = proofs {
            args.extend(["--proofs".into(), proofs.to_string()]);
        }
        self.with_device(args)
    }

    fn with_device(&self, mut args: Vec<String>) -> Vec<String> {
        let device = match self.device {
            Device::Auto => "auto",
            Device::Cpu => "cpu",
            Device::Cuda => "cuda",
        };
        args.extend(["--device".into(), device.into()]);
        if let Some(threads) = self.threads {
            args.extend(["--threads".into(), threads.to_string()]);
        }
        args
    }

    /// Whether so many seconds are left.
    pub fn has_time(&self, seconds: f64) -> bool {
        let stopped = interrupt::check().is_err();
        let enough = |deadline: Instant| Instant::now() + Duration::from_secs_f64(seconds) <= deadline;
        !stopped && self.deadline.is_none_or(enough)
    }

    /// Runs this binary with other arguments, its output in a log; breaks off unless it ends well.
    pub fn child(&self, name: &str, args: &[String], log: &Path, board: &Board) -> Result<ControlFlow<Made>> {
        let cannot = |what: &str| format!("cannot {what} {}", log.display());
        let mut file = OpenOptions::new().create(true).append(true).open(log).with_context(|| cannot("write"))?;
        // The child inherits the lock with its output, so it lasts as long as anybody works on the run.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            board.say(&format!("{name}: another command is at it"));
            return Ok(ControlFlow::Break(Made::Left));
        }
        writeln!(file, "$ polystep {}", args.join(" "))?;
        let began = file.metadata()?.len();
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
        let mut child = command.spawn().context("cannot start a child of this program")?;
        let line = board.line(name);
        let mut told = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let late = self.deadline.is_some_and(|deadline| Instant::now() + SAVING >= deadline);
            if late || interrupt::check().is_err() {
                drop(child.stdin.take());
            }
            let latest = || said(log, began).lines().last().unwrap_or_default().to_owned();
            match &line {
                Some(line) => line.set_message(latest()),
                None if told.elapsed() >= TELL => {
                    board.say(&format!("{name}: {}", latest()));
                    told = Instant::now();
                }
                None => {}
            }
            thread::sleep(LOOK);
        };
        if let Some(line) = line {
            line.finish_and_clear();
        }
        Ok(match status.code() {
            Some(0) => ControlFlow::Continue(()),
            Some(130) => {
                board.say(&format!("{name}: stopped at a checkpoint"));
                ControlFlow::Break(Made::Left)
            }
            // A child that a signal ended, as it ends this command.
            None if interrupt::check().is_err() => ControlFlow::Break(Made::Left),
            _ => {
                let said = said(log, began);
                let why = said.lines().find_map(|line| line.strip_prefix("error: ")).map(str::to_owned);
                let else_where = || format!("it ended with {status}; see {}", log.display());
                ControlFlow::Break(Made::Failed(why.unwrap_or_else(else_where)))
            }
        })
    }
}

/// What a child has said since `began`.
fn said(log: &Path, began: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(text.get(began as usize..).unwrap_or_default()).into_owned()
}

/// What a run has come to, in one line.
fn headline(job: &Job, record: &Record) -> String {
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

/// Where progress is shown: a live line for each child on a terminal, else lines.
pub struct Board {
    lines: Option<MultiProgress>,
}

impl Board {
    /// On standard error.
    pub fn new() -> Board {
        Board { lines: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// Says a line, above those that live.
    pub fn say(&self, line: &str) {
        match &self.lines {
            Some(lines) => drop(lines.println(line)),
            None => note(line),
        }
    }

    fn line(&self, name: &str) -> Option<ProgressBar> {
        let style = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}");
        let bar = ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Some(self.lines.as_ref()?.add(bar.with_prefix(name.to_owned())))
    }
}

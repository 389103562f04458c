//! Makes the missing runs. Each run is an ordinary `polystep train` and `polystep eval` in a child process. There is a thread for
//! each child that works at a time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use polystep_record::folder::lease_of;
use polystep_record::paper::lookup;
use polystep_record::{ClaimLine, Lease, LeaseHolder, PaperSetting, RunFailure};
use polystep_study::records::RunRecord;
use polystep_study::tables::{AskedSet, Recipe};

use super::job::{Folders, Job, Remaining};
use super::job_queue::{JobQueue, Look, Summary};
use super::pace::Pace;
use super::results_folder::ResultsFolder;
use super::search::Search;
use super::table_plan::TablePlans;
use crate::board::Board;
use crate::child::{self, Child, Ended};
use crate::device::Device;
use crate::failure::Result;
use crate::interrupt;

/// Seconds. With less time than this a training is not started.
const WORTHWHILE: f64 = 30.0;
/// The file in a run's folder with what its evaluations said.
const EVAL_LOG: &str = "eval.log";

/// What runs are made with.
pub struct JobRunner<'a> {
    /// The plans.
    pub plans: &'a TablePlans,
    /// Where runs live.
    pub folders: &'a Folders,
    /// How long runs take.
    pub pace: &'a Pace,
    /// Where children compute, each in one of these places.
    pub slots: Vec<Device>,
    /// Threads of each child; if none, the child decides.
    pub threads: Option<usize>,
    /// What each child has in its environment beside ours.
    pub environment: Vec<(&'static str, PathBuf)>,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Whether to train. If not, only trained models are evaluated.
    pub train: bool,
    /// Whether the hyper-parameters of tuned rows are searched.
    pub search: bool,
    /// Whether this is a task of a Slurm array.
    pub task: bool,
}

/// What became of one run.
enum Made {
    /// It is in the records.
    Entered,
    /// There was no time to finish it.
    Left,
    /// Another process is at it, or was faster.
    Others(LeaseHolder),
    /// Another process was at it a moment ago: what remains to be done must be looked at again.
    Again,
    /// It failed.
    Failed,
}

/// What the slots share.
struct Shared<'a, 'r> {
    queue: Mutex<JobQueue<'a>>,
    results: Mutex<&'r mut ResultsFolder>,
    summary: Mutex<Summary>,
    board: Board,
    /// Jobs in all, and those that are done.
    count: (usize, AtomicUsize),
}

impl JobRunner<'_> {
    /// Does all jobs, or as many as there is time for. Every finished run is added to the results folder at once.
    pub fn work(&self, jobs: Vec<Job>, results: &mut ResultsFolder) -> Result<Summary> {
        let count = (jobs.len(), AtomicUsize::new(0));
        let queue = Mutex::new(JobQueue::new(jobs, self.folders, self.task)?);
        let (results, summary) = (Mutex::new(results), Mutex::new(Summary::default()));
        let shared = Shared { queue, results, summary, board: Board::new(), count };
        let ended: Vec<Result<()>> = thread::scope(|scope| {
            let shared = &shared;
            let start = |device: &Device| {
                let device = *device;
                let slot = thread::Builder::new().spawn_scoped(scope, move || {
                    self.slot(device, shared).inspect_err(|_| lock(&shared.queue).close())
                });
                slot.context("cannot start threads")
            };
            let slots: Vec<_> = self.slots.iter().map(start).collect();
            let panicked = |_| Err(anyhow::anyhow!("a worker panicked; this is a bug").into());
            slots.into_iter().map(|slot| slot?.join().unwrap_or_else(panicked)).collect()
        });
        ended.into_iter().collect::<Result<()>>()?;
        let mut summary = lock(&shared.summary);
        lock(&shared.queue).sum_up(&mut summary)?;
        // A Slurm task that was interrupted is requeued, and still knows then that a run of its own has failed.
        interrupt::check()?;
        Ok(std::mem::take(&mut summary))
    }

    /// Makes one run after the other on a device.
    fn slot(&self, device: Device, shared: &Shared<'_, '_>) -> Result<()> {
        loop {
            let worthwhile = |job: &Job, remaining| {
                let evaluation = self.pace.evaluation(self.plans, &job.experiment);
                let left = self.pace.left(self.plans, &job.experiment, remaining);
                let training = matches!(remaining, Remaining::Resume | Remaining::Train);
                (self.train || !training) && self.has_time(left.min(evaluation + WORTHWHILE))
            };
            let look = lock(&shared.queue).look(&mut lock(&shared.results), &shared.board, worthwhile)?;
            let (job, claim) = match look {
                Look::Take(job, claim) => (job, claim),
                Look::Unclear => {
                    JobQueue::pause();
                    continue;
                }
                Look::Nothing => return Ok(()),
            };
            self.tell_total(shared);
            let mut made = Made::Again;
            while matches!(made, Made::Again) {
                made = self.make(&job, &claim, device, shared)?;
            }
            drop(claim);
            let mut summary = lock(&shared.summary);
            match made {
                Made::Entered => drop(shared.count.1.fetch_add(1, Ordering::Relaxed)),
                Made::Left => summary.left.push(job.name),
                Made::Others(holder) => summary.others.push((job.name, holder)),
                Made::Failed => summary.failed.push(job.name),
                Made::Again => {}
            }
        }
    }

    /// How far all runs are together.
    fn tell_total(&self, shared: &Shared<'_, '_>) {
        let queue = lock(&shared.queue);
        let left: f64 = queue.pending().map(|job| self.pace.left(self.plans, &job.experiment, Remaining::Train)).sum();
        let (all, done) = (shared.count.0, shared.count.1.load(Ordering::Relaxed));
        let about = self.pace.about(self.pace.together(left));
        let pending = queue.pending().count();
        shared.board.total(format!("{done} of {all} runs made here, {pending} not begun: about {about} more"));
    }

    /// Trains and evaluates one run, and adds it to the results folder.
    fn make(&self, job: &Job, claim: &Lease, device: Device, shared: &Shared<'_, '_>) -> Result<Made> {
        let Shared { results, board, .. } = shared;
        let name = &job.name;
        let run = self.folders.run(name);
        if let Some(holder) = self.trained_by_another(&run) {
            board.say(&format!("{name}: skipped; {} is at it", holder.described()));
            return Ok(Made::Others(holder));
        }
        let remaining = self.folders.remaining(job, &lock(results).records)?;
        let unfinished = |ended: Ended, log: &Path| -> Result<Option<Made>> {
            match ended {
                Ended::Well => Ok(None),
                Ended::Stopped => Ok(Some(Made::Left)),
                Ended::Busy => Ok(Some(Made::Again)),
                // The child of a command that was killed may have begun the run under our child's eyes.
                Ended::Failed(_)
                    if claim.is_taken_over() && self.folders.remaining(job, &lock(results).records)? != remaining =>
                {
                    Ok(Some(Made::Again))
                }
                Ended::Failed(why) => Ok(Some(self.failed(job, claim, why, log, board)?)),
            }
        };
        if matches!(remaining, Remaining::Resume | Remaining::Train) {
            let (ended, log) = self.train(job, remaining, device, board)?;
            if let Some(made) = unfinished(ended, &log)? {
                if matches!(made, Made::Left) {
                    board.say(&format!("{name}: stopped at a checkpoint"));
                }
                return Ok(made);
            }
            if !self.has_time(self.pace.evaluation(self.plans, &job.experiment)) {
                board.say(&format!("{name}: trained; to be evaluated next time"));
                return Ok(Made::Left);
            }
        }
        self.folders.copy_bundled(name)?;
        for (sets, beam) in self.unevaluated(job, results)? {
            let ended = self.eval(name, &run, (&sets, beam), job.proofs, device, board)?;
            if let Some(made) = unfinished(ended, &run.join(EVAL_LOG))? {
                return Ok(made);
            }
        }
        let began = Instant::now();
        let mut results = lock(results);
        // Only one is entered, even if two have trained the run: whoever holds the claim, and no second time.
        let entered = results.enter(name, &run, job.experiment.recipe, |records| {
            Ok(claim.check().is_ok() && !job.missing(records.get(name)).is_empty())
        })?;
        let Some(ledgers) = entered else {
            let campaign = self.folders.campaign(name);
            let holder = LeaseHolder::read(&campaign.claim()).unwrap_or_else(|| claim.holder().clone());
            board.say(&format!("{name}: another process has taken it over, so this one does not enter it"));
            return Ok(Made::Others(holder));
        };
        let (cost, milliseconds) = (claim.cost(), |time: Duration| 1e3 * time.as_secs_f64());
        self.folders.campaign(name).made(&ClaimLine {
            holder: claim.holder().clone(),
            claim_ms: milliseconds(cost.claim),
            heartbeats_ms: milliseconds(cost.heartbeats),
            entry_ms: milliseconds(began.elapsed()),
            ledgers_ms: milliseconds(ledgers),
        })?;
        if let Some(record) = results.records.get(name) {
            board.say(&format!("{name}: {}", headline(job, record)));
        }
        Ok(Made::Entered)
    }

    /// A process that trains in the run's folder, although we hold the claim: one started by hand, or one whose parent was
    /// killed. The latter saves and ends by itself.
    fn trained_by_another(&self, run: &Path) -> Option<LeaseHolder> {
        let began = Instant::now();
        loop {
            let holder = LeaseHolder::read(&lease_of(run)).filter(|holder| holder.process.lives())?;
            if began.elapsed() >= child::SAVING || interrupt::check().is_err() {
                return Some(holder);
            }
            JobQueue::pause();
        }
    }

    /// Says why a run failed, here and in its folder.
    fn failed(&self, job: &Job, claim: &Lease, why: String, log: &Path, board: &Board) -> Result<Made> {
        board.say(&format!("{}: {why}; see {}", job.name, log.display()));
        let failure = RunFailure { why, log: log.to_path_buf(), holder: claim.holder().clone() };
        self.folders.campaign(&job.name).fail(&failure)?;
        Ok(Made::Failed)
    }

    /// Trains a run, or continues its training. The hyper-parameters of a tuned run may be searched first. Also gives the log.
    fn train(&self, job: &Job, remaining: Remaining, device: Device, board: &Board) -> Result<(Ended, PathBuf)> {
        let name = &job.name;
        let mut overrides = job.overrides.clone();
        if self.search && remaining == Remaining::Train && job.experiment.keys.is(PaperSetting::Tuned) {
            let search = Search::new(job, self.folders)?;
            let [file, out] = [&search.write()?, &search.folder].map(|path| path.display().to_string());
            board.say(&format!("{name}: its hyper-parameters are searched in {out}"));
            let sweep = ["sweep", &file, "--out", &out].map(str::to_owned);
            let log = search.folder.join("search.log");
            match self.child(name, sweep.into(), &log, device, self.deadline, board)? {
                Ended::Well => {}
                ended => return Ok((ended, log)),
            }
            match search.found(job)? {
                Some(found) => overrides = found,
                None => return Ok((Ended::Failed(format!("no trial in {out} ended well")), log)),
            }
        }
        let run = self.folders.run(name);
        let verb = if remaining == Remaining::Resume { "goes on" } else { "begins" };
        let log = run.join("train.log");
        let left = self.pace.about(self.pace.left(self.plans, &job.experiment, remaining));
        board.say(&format!("{name}: training {verb}, about {left}; see {}", log.display()));
        let mut args = vec!["train".to_owned(), "--out".to_owned(), run.display().to_string()];
        match remaining {
            Remaining::Resume => args.push("--resume".into()),
            _ => args.extend(overrides.iter().flat_map(|(key, value)| ["--set".into(), format!("{key}={value}")])),
        }
        Ok((self.child(name, args, &log, device, self.deadline, board)?, log))
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
        (sets, beam): (&[AskedSet], bool),
        proofs: Option<u64>,
        device: Device,
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
        self.child(name, args, &run.join(EVAL_LOG), device, None, board)
    }

    fn child(
        &self,
        name: &str,
        args: Vec<String>,
        log: &Path,
        device: Device,
        deadline: Option<Instant>,
        board: &Board,
    ) -> Result<Ended> {
        let (threads, environment) = (self.threads, &self.environment[..]);
        Child { name: &|_| name.to_owned(), args, device, threads, environment, log, deadline }.run(board)
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

//! `polystep sweep`: the trials of a grid, and their ranking on the validation set.
//!
//! What has been done is read off the trials' folders each time, so the same command goes on where the last one stopped,
//! however that one ended. Trials are claimed by leases, so any number of processes share a sweep: those that `--gpus` and `--jobs`
//! start, tasks under Slurm, or commands given by hand.

mod show;
mod trials;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::Context;
use clap::Args as ClapArgs;
use polystep_learn::sweep::{Sweep, TrialFolder, TrialState, ranking};
use polystep_record::folder::lease_of;
use polystep_record::{CampaignFolder, LeaseHolder, LeaseWatch};

use crate::args::{StopArgs, ThreadArgs, at_least_one, deadline, positive_minutes};
use crate::board::Board;
use crate::child::{Child, Ended};
use crate::device::Device;
use crate::failure::{Failure, Result, bad_config};
use crate::run_config::read;
use crate::slots::SlotArgs;
use crate::slurm::{self, SlurmArgs, SlurmTable, TaskArray};
use crate::{interrupt, say};
use trials::{Ending, TrialRunner};

const EXAMPLES: &str = "\
Examples:
  polystep sweep configs/tuning-laptop.toml --device cpu
  polystep sweep configs/tuning.toml --list
  polystep sweep configs/tuning.toml --runs 24 --minutes 60 --out runs/tuning
  polystep sweep configs/tuning.toml --gpus 0-7
  polystep sweep configs/tuning.toml --slurm --partition gpu --gpus-per-task 1 --dry-run

Give the same command again to continue. Several commands may share a folder, on several machines
too: each takes trials that no other is at (docs/cluster.md). The test set is not used; test the
best trial with polystep eval.

Exit codes: 0, nothing failed; trials that have not ended are counted, with the command that goes
on. 1, something failed. 130, stopped by a signal, everything saved.";

/// Flags of `polystep sweep`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A run as a TOML file, with a [grid] of values; docs/tuning.md explains it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder of the trials and of sweep.csv [default: runs/ and the name of the file]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Try N combinations, drawn at random, instead of what the file says
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    runs: Option<NonZeroUsize>,
    /// Stop after M minutes, with a checkpoint of the running trial
    #[arg(long, value_name = "M", value_parser = positive_minutes)]
    minutes: Option<f64>,
    /// List the trials: their values, what became of them, and which process is at work on them
    #[arg(long)]
    list: bool,
    /// With --slurm: print the script, and do nothing
    #[arg(long, requires = "slurm")]
    dry_run: bool,
    #[command(flatten)]
    slots: SlotArgs,
    #[command(flatten)]
    stop: StopArgs,
    /// Print the ranking, or the list, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    slurm: SlurmArgs,
}

/// Sweeps.
pub fn run(args: Args) -> Result<()> {
    let text = read(&args.file)?;
    let name = args.file.display().to_string();
    let mut sweep = Sweep::from_toml(&text).map_err(|e| bad_config(e, &name, &text))?;
    if let Some(runs) = args.runs {
        sweep.settings.runs = Some(runs.get());
    }
    let table = SlurmTable::of_toml(&name, &text)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(args.file.file_stem().unwrap_or_default()));
    if args.list {
        return show::list(&sweep, &out, args.json);
    }
    if args.slurm.asked() {
        return args.submit(&sweep, &out, table);
    }
    let deadline = deadline(args.minutes);
    args.stop.listen()?;
    let slots = args.slots.slots()?;
    let trials = sweep.trials();
    for device in &slots {
        trials.iter().try_for_each(|trial| device.check_precision(&trial.config))?;
    }
    sweep.keep(&out)?;
    let cut = match slots.as_slice() {
        [device] => {
            args.threads.start()?;
            let device = device.resolve();
            trials.iter().try_for_each(|trial| device.check_precision(&trial.config))?;
            let (threads, task) = (args.threads.count(), args.slurm.task);
            TrialRunner { sweep: &sweep, out: &out, device, threads, deadline, task }.work()?
        }
        slots => args.at_a_time(&sweep, &out, slots, deadline)?,
    };
    // A process that was killed right after a trial has not written it.
    show::write_csv(&sweep, &out)?;
    let rows = ranking(&sweep, &out)?;
    if args.json {
        say!("{:#}", show::as_json(&sweep, &out, &rows, trials.len()))?;
    } else {
        show::print(&sweep, &out, &rows)?;
        args.tell_left(&sweep, &out)?;
    }
    if matches!(cut, Some(Ending::Interrupted)) { Err(Failure::Interrupted) } else { Ok(()) }
}

impl Args {
    /// Runs several trials at a time, each by a process of its own, which is this command for one device.
    fn at_a_time(
        &self,
        sweep: &Sweep,
        out: &Path,
        slots: &[Device],
        deadline: Option<Instant>,
    ) -> Result<Option<Ending>> {
        let trials = sweep.trials();
        let folders: Vec<TrialFolder> = trials.iter().map(|trial| TrialFolder::new(out, trial)).collect();
        folders.iter().try_for_each(|folder| CampaignFolder::new(folder.path()).forget_failure())?;
        // Which trial a process is at is said by the leases.
        let trial_of = |process: u32| {
            let is_its = |folder: &&TrialFolder| folder.holder().is_some_and(|h| h.process.number() == process);
            let name = |folder: &TrialFolder| folder.path().file_name().map(|n| n.to_string_lossy().into_owned());
            folders.iter().find(is_its).and_then(name).unwrap_or_else(|| "no trial".into())
        };
        let logs = out.join("logs");
        std::fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
        let board = Board::new();
        let own = LeaseHolder::own();
        let ended: Vec<Result<(Ended, PathBuf)>> = thread::scope(|scope| {
            let start = |(i, device): (usize, &Device)| {
                let (device, board, trial_of) = (*device, &board, &trial_of);
                let log = logs.join(format!("{}-{}-{}.log", own.host, own.process.number(), i + 1));
                let mut args = vec!["sweep".to_owned()];
                args.extend(self.words(out));
                args.push("--task".into());
                let threads = self.threads.threads.map(Into::into);
                scope.spawn(move || {
                    let child = Child { name: trial_of, args, device, threads, environment: &[], log: &log, deadline };
                    Ok((child.run(board)?, log))
                })
            };
            let children: Vec<_> = slots.iter().enumerate().map(start).collect();
            let panicked = |_| Err(anyhow::anyhow!("a worker panicked; this is a bug").into());
            children.into_iter().map(|child| child.join().unwrap_or_else(panicked)).collect()
        });
        for ended in ended {
            if let (Ended::Failed(why), log) = ended? {
                return Err(anyhow::anyhow!("{why}; see {}", log.display()).into());
            }
        }
        Ok(interrupt::check().is_err().then_some(Ending::Interrupted))
    }

    /// Says which trials have not ended, and how to go on.
    fn tell_left(&self, sweep: &Sweep, out: &Path) -> Result<()> {
        let (mut ended, mut others) = (0, Vec::new());
        let trials = sweep.trials();
        for trial in &trials {
            let folder = TrialFolder::new(out, trial);
            match (folder.state()?.is_some_and(TrialState::over), folder.holder()) {
                (true, _) => ended += 1,
                (false, Some(holder)) => others.push(format!("{} ({})", trial.name, holder.described())),
                (false, None) => {}
            }
        }
        if !others.is_empty() {
            say!("other processes are at {}", others.join(", "))?;
        }
        if ended < trials.len() {
            let SlotArgs { device, gpus, jobs } = &self.slots;
            let mut command = self.words(out).join(" ");
            if *device != Device::Auto {
                command += &format!(" --device {device}");
            }
            if let Some(gpus) = gpus {
                command += &format!(" --gpus {gpus}");
            }
            if *jobs > 1 {
                command += &format!(" --jobs {jobs}");
            }
            say!("{ended} of {} trials have ended; go on with: polystep sweep {command}", trials.len())?;
        }
        Ok(())
    }

    /// `--slurm`: submits the trials that have not ended and that nobody is at.
    fn submit(&self, sweep: &Sweep, out: &Path, table: SlurmTable) -> Result<()> {
        if !self.dry_run {
            sweep.keep(out)?;
        }
        let (mut open, mut over) = (Vec::new(), Vec::new());
        for trial in sweep.trials() {
            let folder = TrialFolder::new(out, trial);
            if folder.state()?.is_some_and(TrialState::over) {
                over.push(lease_of(folder.path()));
            } else {
                open.push(folder);
            }
        }
        if !self.dry_run {
            // What tasks that were killed have left: leases, and trials that are not in the ranking.
            LeaseWatch::clear(over)?;
            show::write_csv(sweep, out)?;
        }
        let left = slurm::unclaimed(open, |folder| lease_of(folder.path()), self.dry_run)?;
        if !self.dry_run {
            left.iter().try_for_each(|folder| CampaignFolder::new(folder.path()).forget_failure())?;
        }
        let SlotArgs { device, gpus, jobs } = &self.slots;
        let mut args = self.words(out);
        let threads = self.threads.threads.map(|n| n.to_string());
        for (name, value) in [
            ("--minutes", self.minutes.map(|m| m.to_string())),
            ("--gpus", gpus.as_ref().map(ToString::to_string)),
            ("--device", Some(device.to_string())),
            ("--jobs", Some(jobs.to_string())),
            ("--threads", threads),
        ] {
            args.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        let array = TaskArray {
            name: "sweep",
            unit: "trial",
            left: left.len(),
            jobs: (*jobs).into(),
            out,
            args,
            watch: format!("polystep sweep {} --list", self.words(out).join(" ")),
        };
        self.slurm.submit(table, &array, self.dry_run)
    }

    /// What is tried, and where.
    fn words(&self, out: &Path) -> Vec<String> {
        let mut words = vec![self.file.display().to_string(), "--out".into(), out.display().to_string()];
        words.extend(self.runs.into_iter().flat_map(|runs| ["--runs".to_owned(), runs.to_string()]));
        words
    }
}

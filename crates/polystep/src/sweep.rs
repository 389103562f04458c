//! `polystep sweep`: the trials of a grid one after the other on one device, and their ranking on the validation set.
//!
//! What has been done is read off the trials' folders each time, so the same command goes on where the last one stopped,
//! however that one ended.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args as ClapArgs;
use polystep_engine::EngineError;
use polystep_learn::LearnError;
use polystep_learn::log::{Event, Observer};
use polystep_learn::sweep::{MedianRule, RankedTrial, Sweep, Trial, TrialFolder, TrialState, csv, ranking};
use polystep_learn::train::{RunSetup, SessionEnd, Trainer};
use serde_json::{Map, Value, json};

use crate::args::{StopArgs, ThreadArgs, at_least_one, deadline, positive_minutes};
use crate::device::{self, Device, data_threads};
use crate::failure::{Failure, Result, bad_config};
use crate::output::{OutputStream, note};
use crate::run_config::read;
use crate::train_display::Display;
use crate::{interrupt, say, table};

const EXAMPLES: &str = "\
Examples:
  polystep sweep configs/tuning-laptop.toml --device cpu
  polystep sweep configs/tuning.toml --list
  polystep sweep configs/tuning.toml --runs 24 --minutes 60 --out runs/tuning

Give the same command again to continue. The test set is not used; test the best trial with
polystep eval.";

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
    /// Print the combinations that would be tried, and do nothing
    #[arg(long)]
    list: bool,
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
    device: Device,
    #[command(flatten)]
    stop: StopArgs,
    /// Print the ranking, or the list, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Sweeps.
pub fn run(args: Args) -> Result<()> {
    let text = read(&args.file)?;
    let name = args.file.display().to_string();
    let mut sweep = Sweep::from_toml(&text).map_err(|e| bad_config(e, &name, &text))?;
    if let Some(runs) = args.runs {
        sweep.settings.runs = Some(runs.get());
    }
    if args.list {
        return list(&sweep, args.json);
    }
    let deadline = deadline(args.minutes);
    args.stop.listen()?;
    args.threads.start()?;
    let device = args.device.resolve();
    let trials = sweep.trials();
    trials.iter().try_for_each(|trial| device.check_precision(&trial.config))?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(args.file.file_stem().unwrap_or_default()));
    let _lock = sweep.keep(&out)?;
    let runner = Runner { sweep: &sweep, out: &out, device, threads: args.threads.count(), deadline };
    let mut ended = 0;
    let mut cut = None;
    for (i, trial) in trials.iter().enumerate() {
        cut = runner.trial(trial, format_args!("{} of {}", i + 1, trials.len()))?;
        write_csv(&sweep, &out)?;
        if cut.is_some() {
            break;
        }
        ended += 1;
    }
    let rows = ranking(&sweep, &out)?;
    if args.json {
        say!("{:#}", as_json(&sweep, &out, &rows, trials.len()))?;
    } else {
        print(&sweep, &out, &rows)?;
        if ended < trials.len() {
            say!("{ended} of {} trials have ended; go on with: {}", trials.len(), args.to_go_on(&out))?;
        }
    }
    if matches!(cut, Some(Cut::Interrupted)) { Err(Failure::Interrupted) } else { Ok(()) }
}

impl Args {
    /// The command that goes on.
    fn to_go_on(&self, out: &Path) -> String {
        let mut command = format!("polystep sweep {} --out {}", self.file.display(), out.display());
        if let Some(runs) = self.runs {
            command += &format!(" --runs {runs}");
        }
        if self.device != Device::Auto {
            command += &format!(" --device {}", self.device.name());
        }
        command
    }
}

/// Why a trial is cut off.
enum Cut {
    /// A signal.
    Interrupted,
    /// `--minutes` are over.
    TimeIsUp,
    /// The median rule, in its words.
    Hopeless(String),
}

/// What every trial is run on.
struct Runner<'a> {
    sweep: &'a Sweep,
    out: &'a Path,
    device: Device,
    threads: usize,
    deadline: Option<Instant>,
}

impl Runner<'_> {
    /// Runs a trial unless it has ended, and says why if it could not come to an end.
    fn trial(&self, trial: &Trial, which: std::fmt::Arguments<'_>) -> Result<Option<Cut>> {
        let folder = TrialFolder::new(self.out, trial);
        if folder.state()?.is_some_and(TrialState::over) {
            return Ok(None);
        }
        if let Some(cut) = self.cut() {
            return Ok(Some(cut));
        }
        note(format_args!("{which}: {}", trial.name));
        let rule = MedianRule::new(self.sweep, self.out, &trial.config.train)?;
        let stop = AtomicBool::new(false);
        let mut watch = Watch { runner: self, folder: &folder, rule, stop: &stop, display: Display::new(), cut: None };
        let outcome = self.train(trial, &folder, &mut watch, &stop);
        let cut = watch.cut.take();
        drop(watch);
        let ended = match (outcome, cut) {
            (Ok(SessionEnd::Finished(report)), _) => {
                note(format_args!("  finished: {}", report.ended));
                folder.tidy()
            }
            (Ok(SessionEnd::Stopped { .. }), Some(Cut::Hopeless(why))) => {
                note(format_args!("  hopeless: {why}"));
                folder.end(TrialState::Hopeless, &why).and_then(|()| folder.tidy())
            }
            (Ok(SessionEnd::Stopped { .. }), cut) => return Ok(cut),
            (Err(error), _) if its_own_fault(&error) => {
                note(format_args!("  failed: {error}"));
                folder.end(TrialState::Failed, &error.to_string())
            }
            (Err(error), _) => Err(error),
        };
        ended?;
        Ok(None)
    }

    fn train(
        &self,
        trial: &Trial,
        folder: &TrialFolder,
        watch: &mut Watch<'_>,
        stop: &AtomicBool,
    ) -> std::result::Result<SessionEnd, LearnError> {
        let run = folder.run(trial)?;
        let setup = RunSetup::without_test(trial.config.clone())?;
        let mut executor = self.device.executor(setup.programs(), setup.limits, self.threads)?;
        let data = data_threads(self.device, self.threads);
        Trainer::new(&setup, &run, executor.as_mut(), watch, data)?.run(stop)
    }

    /// Whether the whole sweep is to stop.
    fn cut(&self) -> Option<Cut> {
        if interrupt::flag().load(Ordering::SeqCst) {
            return Some(Cut::Interrupted);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Cut::TimeIsUp)
    }
}

/// Another trial may do better. Any other error (a full disk, a lost device) would meet them all.
fn its_own_fault(error: &LearnError) -> bool {
    matches!(error, LearnError::NonFinite { .. } | LearnError::Engine(EngineError::OutOfMemory { .. }))
}

/// Draws a trial's progress, and raises its flag when it is to stop.
struct Watch<'a> {
    runner: &'a Runner<'a>,
    folder: &'a TrialFolder,
    rule: MedianRule<'a>,
    stop: &'a AtomicBool,
    display: Display,
    cut: Option<Cut>,
}

impl Watch<'_> {
    fn judge(&self, event: &Event<'_>) -> Option<Cut> {
        if let Event::Valid(line) = event {
            // The log holds what came before this line, in earlier sessions too. One that cannot be read cannot be written
            // either, and that ends the trial.
            let mut own = self.folder.curve().unwrap_or_default();
            own.push(line);
            if let Some(why) = self.rule.hopeless(&own, line) {
                return Some(Cut::Hopeless(why));
            }
        }
        self.runner.cut()
    }
}

impl Observer for Watch<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.display.event(event);
        if self.cut.is_none() {
            self.cut = self.judge(event);
            self.stop.store(self.cut.is_some(), Ordering::SeqCst);
        }
    }
}

fn list(sweep: &Sweep, json: bool) -> Result<()> {
    let trials = sweep.trials();
    if json {
        let trials: Vec<Value> = trials.iter().map(|t| json!({"name": t.name, "grid": grid(sweep, t)})).collect();
        return say!("{:#}", json!({"combinations": sweep.combinations.len(), "trials": trials}));
    }
    say!("number-{}", sweep.keys().join("-"))?;
    trials.iter().try_for_each(|trial| say!("{}", trial.name))?;
    say!("{} of {} combinations", trials.len(), sweep.combinations.len())
}

/// The trial's values under their keys.
fn grid(sweep: &Sweep, trial: &Trial) -> Map<String, Value> {
    let keys = sweep.keys().into_iter().map(str::to_owned);
    keys.zip(trial.values.iter().map(|value| json!(value))).collect()
}

fn write_csv(sweep: &Sweep, out: &Path) -> Result<()> {
    let rows = ranking(sweep, out)?;
    let mut file = OutputStream::create(Some(&out.join("sweep.csv")))?;
    file.write_all(csv(sweep, &rows).as_bytes())?;
    file.finish()
}

/// The best trial that can be tested.
fn best<'a, 'b>(rows: &'b [RankedTrial<'a>]) -> Option<&'b RankedTrial<'a>> {
    rows.iter().find(|row| row.state == TrialState::Finished)
}

fn print(sweep: &Sweep, out: &Path, rows: &[RankedTrial<'_>]) -> Result<()> {
    let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.2}", 100.0 * s));
    let cells = rows.iter().enumerate().map(|(i, row)| {
        [
            (i + 1).to_string(),
            row.trial.name.clone(),
            row.state.name().into(),
            percent(row.best.map(|b| b.full_proof)),
            percent(row.best.map(|b| b.stepwise)),
            row.best.map_or("-".into(), |b| format!("{:.4}", b.loss)),
            row.examples.to_string(),
            format!("{:.0}", row.seconds),
        ]
    });
    let name = format!("number-{}", sweep.keys().join("-"));
    let header = ["", &name, "state", "valid full proof", "stepwise", "loss", "examples", "seconds"];
    say!("{}", table::table(3, header, cells))?;
    if let Some(best) = best(rows) {
        say!("best on the validation set: {}", best.trial.name)?;
        say!("test it with: polystep eval {}", out.join(&best.trial.name).display())?;
    }
    Ok(())
}

fn as_json(sweep: &Sweep, out: &Path, rows: &[RankedTrial<'_>], runs: usize) -> Value {
    // To the digits of sweep.csv.
    let percent = |share: f64| (10_000.0 * share).round() / 100.0;
    let trials: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            json!({
                "rank": i + 1,
                "name": row.trial.name,
                "grid": grid(sweep, row.trial),
                "valid_full_proof": row.best.map(|b| percent(b.full_proof)),
                "valid_stepwise": row.best.map(|b| percent(b.stepwise)),
                "valid_loss": row.best.map(|b| b.loss),
                "examples": row.examples,
                "seconds": row.seconds,
                "state": row.state,
            })
        })
        .collect();
    json!({
        "out": out,
        "combinations": sweep.combinations.len(),
        "runs": runs,
        "best": best(rows).map(|row| &row.trial.name),
        "trials": trials,
    })
}

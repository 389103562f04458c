//! `polystep train`: a run from a TOML, a recipe and flags; or the continuation of one.
//!
//! Flags and `--set` are the same thing: both are laid over the TOML, which is laid over its recipe.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use polystep_core::sets::FixedSet;
use polystep_core::{Examples, Granularity, Notation, Purpose, Setting};
use polystep_learn::config::RunConfig;
use polystep_learn::feed::DatasetSummary;
use polystep_learn::train::{RunSetup, SessionEnd, TRAINING, Trainer, TrainingFolder};
use polystep_learn::trained::TrainedModel;
use polystep_record::{CampaignFolder, LeaseHolder, Proportion, RunFailure, TrainingReport};

use crate::args::{StopArgs, ThreadArgs, positive_minutes};
use crate::device::{self, Device, data_threads};
use crate::failure::{Failure, Result, bad_input};
use crate::output::note;
use crate::run_config::{assignments, parse, read};
use crate::table::counted;
use crate::train_display::Display;
use crate::{interrupt, say};

const EXAMPLES: &str = "\
Examples:
  polystep train configs/fast.toml --out runs/fast
  polystep train --recipe fast --config large_coeff --vars 1 --minutes 3 --out runs/large
  polystep train --recipe paper --config small_coeff --set model.layers=6 --set train.batch=64
  polystep train --recipe fast --config no_backtrack --curriculum C2 --out runs/c2
  polystep train --resume --out runs/fast
  polystep train --data mine.jsonl --config large_coeff --out runs/mine
  polystep train --init models/all-spaces --config longer.toml --examples 500000 --out runs/tuned
  polystep train --init runs/fast --more 2000000 --out runs/fast-more

--data trains on examples of your own: JSONL or Parquet with the fields input and target, or what
polystep generate writes. --init starts from weights, --more goes on where a finished run ended.
docs/data.md explains all three.";

/// Flags of `polystep train`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The run as a TOML file; docs/training.md explains every key
    #[arg(value_name = "CONFIG.toml")]
    file: Option<PathBuf>,
    /// The folder of the run [default: runs/ and a name made of the task, the recipe and the seed]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Continue the run in --out from its newest checkpoint
    #[arg(long, requires = "out")]
    resume: bool,
    /// Train on the examples of a file (JSONL or Parquet) or of a folder of such files, instead of drawing them. Those that
    /// belong to an evaluation set are left out. --config names the space that the model is tested on
    #[arg(long, value_name = "FILE|FOLDER")]
    data: Option<PathBuf>,
    /// Start from the weights of a run, of a bundled model, or of a folder made by polystep export
    #[arg(long, value_name = "RUN|MODEL")]
    init: Option<PathBuf>,
    /// Continue the finished run of --init for so many examples, as a new run in --out: with its weights, its optimiser, its
    /// place in the data and its learning curves
    #[arg(long, value_name = "EXAMPLES", requires = "init", requires = "out", conflicts_with_all = ["resume", "file"],
          value_parser = clap::value_parser!(u64).range(1..))]
    more: Option<u64>,
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
    device: Device,
    /// The recipe, paper or fast: it supplies every setting that you do not give
    #[arg(long)]
    recipe: Option<String>,
    /// A configuration of the paper, one of its sub-tasks, or a TOML file with a [space] table. In setting arithmetic: add4,
    /// add9, mul4, mul9, or arithmetic for all four (the default there)
    #[arg(long, value_name = "KEY|FILE.toml")]
    config: Option<String>,
    /// How many variables
    #[arg(long)]
    vars: Option<usize>,
    #[arg(long, help = Setting::listed())]
    setting: Option<Setting>,
    /// coarse, fine, fine_counted, or switches such as fac=term,mul=pair,sum=all
    #[arg(long)]
    granularity: Option<Granularity>,
    #[arg(long, help = Notation::listed())]
    notation: Option<Notation>,
    /// Learn by a curriculum of the paper: C, C2 or C4; a [curriculum] table describes others
    #[arg(long, value_name = "NAME")]
    curriculum: Option<String>,
    /// Size of the model: S or L
    #[arg(long)]
    size: Option<String>,
    /// Budget in examples
    #[arg(long, value_name = "N")]
    examples: Option<u64>,
    /// Budget in optimiser steps
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Budget in minutes
    #[arg(long, value_name = "M", value_parser = positive_minutes)]
    minutes: Option<f64>,
    /// The seed of data, dropout and first weights
    #[arg(long)]
    seed: Option<u64>,
    /// Any key of the TOML, as in model.layers=6; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    stop: StopArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Keys that a resumed run may change: they do not touch what it has computed so far.
const RESUMABLE: [&str; 7] = [
    "train.examples",
    "train.steps",
    "train.minutes",
    "train.patience",
    "train.log_every",
    "train.checkpoint_minutes",
    "train.checkpoint_steps",
];

/// Keys that a run may change when it continues a finished one: those of a resumed run, and how it learns from now on.
const CONTINUABLE: [&str; 3] = ["train.lr", "train.warmup", "train.schedule"];

/// Trains.
pub fn run(args: Args) -> Result<()> {
    args.stop.listen()?;
    args.threads.start()?;
    let overrides = args.overrides()?;
    let (folder, config) = match (args.more, &args.init) {
        (Some(more), Some(old)) => args.continued(old, more, &overrides)?,
        _ if args.resume => args.resumed(&overrides)?,
        _ => args.fresh(&overrides)?,
    };
    let device = args.device.resolve();
    device.check_precision(&config)?;
    if let Some(path) = &config.data.file {
        if !path.exists() {
            return Err(bad_input(format!("cannot read {}: there is no such file or folder", path.display())));
        }
        note(format_args!("reading {}", path.display()));
    }
    let setup = RunSetup::new(config)?;
    if let Some(data) = &setup.dataset {
        tell(data);
    }
    let threads = args.threads.count();
    let mut executor = device.executor(setup.programs(), setup.limits, threads)?;
    // The folder appears only when everything that can be refused has been.
    let folder = match folder {
        Folder::New(path) => TrainingFolder::create(&path, &setup.config)?,
        Folder::Continuing { old, path } => TrainingFolder::continuing(&old, &path, &setup.config)?,
        Folder::Old(folder) => {
            folder.write_config(&setup.config)?;
            folder
        }
    };
    let mut display = Display::new();
    display.say(&format!("{}: {}, {}", folder.path().display(), setup.config.description(), budget(&setup.config)));
    if let Some(warning) = least_hours(&setup, threads).filter(|_| device == Device::Cpu).and_then(hours_ahead) {
        display.say(&warning);
    }
    let trainer = Trainer::new(&setup, &folder, executor.as_mut(), &mut display, data_threads(device, threads));
    let campaign = CampaignFolder::new(folder.path());
    campaign.forget_failure()?;
    let outcome = trainer.and_then(|trainer| trainer.run(interrupt::flag())).inspect_err(|error| {
        // Whoever looks at the folder is told. If another process has taken it over, it is not ours to judge.
        let (why, log, holder) = (error.to_string(), "standard error".into(), LeaseHolder::own());
        if folder.check_lease().is_ok() {
            let _ = campaign.fail(&RunFailure { why, log, holder });
        }
    })?;
    drop(display);
    match outcome {
        SessionEnd::Finished(report) => {
            print(&report, setup.dataset.is_some())?;
            say!("  weights and metrics in {}", folder.path().display())
        }
        SessionEnd::Stopped { step } => {
            let name = folder.path().display();
            say!("saved at step {step}; continue with: polystep train --resume --out {name}")?;
            Err(Failure::Interrupted)
        }
    }
}

/// What files hold that a run learns from.
fn tell(data: &DatasetSummary) {
    let DatasetSummary { files, records, examples, guarded, too_long, .. } = data;
    let (files, records) = (counted(*files, "file"), counted(*records as usize, "record"));
    note(format_args!("{records} in {files}: {examples} examples"));
    note(format_args!("  {guarded} belong to an evaluation set and are left out"));
    if *too_long > 0 {
        note(format_args!("  {too_long} are longer than model.max_positions and are left out"));
    }
}

fn print(report: &TrainingReport, from_files: bool) -> Result<()> {
    let percent = |p: &Proportion| format!("{:.1} % of {} ({:.1} to {:.1})", 100.0 * p.share(), p.of, p.lo, p.hi);
    say!("finished: {}", report.ended)?;
    if let Some(test) = &report.test {
        if test.raw {
            say!("  brackets as they stand; polystep eval evaluates them first")?;
        }
        say!("  test, full proofs   {}", percent(&test.full_proof))?;
        say!("  test, steps         {}", percent(&test.stepwise))?;
        for (kind, share) in &test.by_kind {
            say!("    {kind:<18}{}", percent(share))?;
        }
    }
    say!("  {} examples in {:.0} s, {} steps", report.examples, report.seconds, report.steps)?;
    if from_files {
        return say!("  {} times an example met an evaluation set and was left out", report.rejected);
    }
    let rejected = 100.0 * report.rejected as f64 / (report.proofs + report.rejected).max(1) as f64;
    say!("  {rejected:.2} % of what was drawn for training met an evaluation set and was drawn again")
}

/// The most that a thread of a CPU computes in a second, in floating-point operations.
const FLOPS_PER_THREAD: f64 = 100e9;
/// More hours of training than this are worth a warning on a CPU.
const MANY_HOURS: f64 = 2.0;

/// How many hours training takes at least on these threads of a CPU; none if its budget is a time.
fn least_hours(setup: &RunSetup, threads: usize) -> Option<f64> {
    let train = &setup.config.train;
    let examples = train.examples.or(train.steps.map(|steps| steps * train.batch as u64));
    let examples = examples.filter(|_| train.minutes.is_none())? as f64;
    // The steps of the validation set are like those of training.
    let known = FixedSet::of(Purpose::Valid)?.examples(setup.tasks.first()?).ok()?;
    let lengths =
        |of: fn(&Examples, usize) -> &[u8]| (0..known.len()).map(|i| of(&known, i).len() + 1).collect::<Vec<_>>();
    let (src, tgt) = (lengths(Examples::src), lengths(Examples::tgt));
    let flops = setup.programs().get(TRAINING)?.flops(&src, &tgt) / known.len().max(1) as f64;
    Some(examples * flops / (FLOPS_PER_THREAD * threads as f64) / 3600.0)
}

/// What to do instead of waiting for days; none if it is not so long.
fn hours_ahead(hours: f64) -> Option<String> {
    (hours > MANY_HOURS).then(|| {
        format!(
            "the whole budget takes more than {hours:.0} hours on this CPU. Ctrl-C saves what was trained. configs/laptop.toml trains a small \
             model in 10 minutes (polystep train configs/laptop.toml); an NVIDIA GPU takes minutes"
        )
    })
}

/// By which recipe a run learns, how long, and what its validation is of.
fn budget(config: &RunConfig) -> String {
    let t = &config.train;
    let parts = [
        t.examples.map(|n| format!("{n} examples")),
        t.steps.map(|n| format!("{n} steps")),
        t.minutes.map(|m| format!("{m} minutes")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("recipe {}, {}; validated on {} proofs", t.recipe, parts.join(" or "), t.valid_proofs)
}

enum Folder {
    New(PathBuf),
    Old(TrainingFolder),
    /// A new folder for a run that continues another one.
    Continuing {
        old: PathBuf,
        path: PathBuf,
    },
}

impl Args {
    /// Flags and `--set` as overrides of the TOML, `--set` last.
    fn overrides(&self) -> Result<Vec<(String, String)>> {
        fn text(value: impl ToString) -> String {
            // A string, whatever it looks like.
            format!("{:?}", value.to_string())
        }
        let flags = [
            ("train.recipe", self.recipe.as_ref().map(text)),
            ("data.config", self.config.as_ref().map(text)),
            ("data.file", self.data.as_ref().map(|path| text(path.display()))),
            ("train.init", self.init.as_ref().filter(|_| self.more.is_none()).map(|path| text(path.display()))),
            ("data.vars", self.vars.map(|v| v.to_string())),
            ("data.setting", self.setting.map(text)),
            ("data.granularity", self.granularity.map(text)),
            ("data.notation", self.notation.map(text)),
            ("data.seed", self.seed.map(|v| v.to_string())),
            ("curriculum.name", self.curriculum.as_ref().map(text)),
            ("model.size", self.size.as_ref().map(text)),
            ("train.examples", self.examples.map(|v| v.to_string())),
            ("train.steps", self.max_steps.map(|v| v.to_string())),
            ("train.minutes", self.minutes.map(|v| format!("{v:?}"))),
        ];
        let mut all: Vec<(String, String)> =
            flags.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))).collect();
        all.extend(assignments(&self.set)?);
        Ok(all)
    }

    fn fresh(&self, overrides: &[(String, String)]) -> Result<(Folder, RunConfig)> {
        let text = match &self.file {
            Some(path) => read(path)?,
            None => String::new(),
        };
        let name = self.file.as_ref().map_or(String::new(), |file| file.display().to_string());
        let config = parse(&name, &text, overrides)?;
        if let Some(init) = &config.train.init {
            // Weights that cannot be read, or of another shape, are refused before there is a folder.
            TrainedModel::open(init)?.check_shape(&config.model, init)?;
        }
        let out = self.out.clone().unwrap_or_else(|| default_folder(&config));
        TrainingFolder::check_unused(&out)?;
        Ok((Folder::New(out), config))
    }

    /// A finished run that goes on as a new one.
    fn continued(&self, old: &Path, more: u64, overrides: &[(String, String)]) -> Result<(Folder, RunConfig)> {
        let path = self.out.clone().unwrap_or_default();
        TrainingFolder::check_unused(&path)?;
        let (_, config) = TrainingFolder::open(old)?;
        let config = config.continued(old, more)?;
        let changeable: Vec<&str> = RESUMABLE.into_iter().chain(CONTINUABLE).collect();
        let config = changed(&old.display().to_string(), &config.to_toml(), overrides, &changeable)?;
        Ok((Folder::Continuing { old: old.to_path_buf(), path }, config))
    }

    fn resumed(&self, overrides: &[(String, String)]) -> Result<(Folder, RunConfig)> {
        if self.file.is_some() {
            return Err(bad_input("--resume takes its configuration from the run's folder: leave out the TOML"));
        }
        let path = self.out.as_deref().unwrap_or(Path::new("."));
        let (folder, _) = TrainingFolder::resume(path)?;
        folder.check_unfinished()?;
        let name = folder.config().display().to_string();
        let text = read(&folder.config())?;
        let config = changed(&name, &text, overrides, &RESUMABLE)?;
        Ok((Folder::Old(folder), config))
    }
}

/// A run's TOML with overrides. Only some keys may be changed; of the others, what the run has already may be said again.
fn changed(name: &str, text: &str, overrides: &[(String, String)], changeable: &[&str]) -> Result<RunConfig> {
    let read = |set: &[_]| parse(name, text, set);
    let (mut set, fixed): (Vec<_>, Vec<_>) =
        overrides.iter().cloned().partition(|(key, _)| changeable.contains(&key.as_str()));
    let config = read(&set)?;
    for (key, value) in fixed {
        set.push((key.clone(), value));
        if read(&set)? != config {
            let sentence = format!("a resumed run cannot change {key}, only {}", changeable.join(", "));
            return Err(bad_input(sentence));
        }
    }
    Ok(config)
}

fn default_folder(config: &RunConfig) -> PathBuf {
    let d = &config.data;
    let also = if d.also.is_empty() { String::new() } else { format!("-and{}more", d.also.len()) };
    let task = format!("{}-{}var{also}-{}-{}-{}", d.config, d.vars, d.setting, d.granularity, d.notation);
    let curriculum = config.curriculum.as_ref().map(|c| format!("-{}", c.name.as_deref().unwrap_or("own")));
    let name = format!("{task}{}-{}-seed{}", curriculum.unwrap_or_default(), config.train.recipe, d.seed);
    Path::new("runs").join(name.replace(['/', '=', ','], "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_on_a_cpu_are_told() {
        let hours = |toml: &str| {
            let config = RunConfig::from_toml(toml, &[]).expect("a run");
            least_hours(&RunSetup::new(config).expect("a set-up run"), 2)
        };
        let said = hours("[data]\nconfig = \"large_coeff\"\n").and_then(hours_ahead).expect("a warning");
        assert!(said.contains("polystep train configs/laptop.toml"), "{said}");
        let laptop = include_str!("../../../configs/laptop.toml");
        assert_eq!(hours(laptop), None, "its budget is a time");
        assert!(hours(&laptop.replace("minutes = 10", "examples = 1000")).and_then(hours_ahead).is_none());
    }
}

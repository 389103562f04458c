//! `polystep quickstart`: the whole pipeline in under five minutes on two cores, with real output. It shows a sampled
//! polynomial and its proof, the check of a right proof and of a wrong one, a small model trained on this CPU with its
//! evaluation and its report, and a bundled model beside the paper's numbers. Each part names the command that does it alone.
//! Training has a fixed number of examples, so that the model learns the same on every machine; a slower one takes longer, and
//! is told so before.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Args as ClapArgs;
use polystep_core::typed::Names;
use polystep_core::{Purpose, Sampler, Space, StepKind, Task, Verdict};
use polystep_learn::config::RunConfig;
use polystep_learn::prove::known_models;
use polystep_learn::train::{RunSetup, SessionEnd, Trainer, TrainingFolder};
use polystep_record::{ProofRecord, RunFolder, SetFolder, TrainingReport};
use polystep_study::report;

use crate::args::{ThreadArgs, positive_minutes};
use crate::check::inspect;
use crate::device::{Device, data_threads};
use crate::eval::{self, Options};
use crate::failure::{Failure, Result, bad_input};
use crate::train_display::Display;
use crate::trained_model;
use crate::{bundled, interrupt, prove, say};

/// The space that is shown.
const CONFIG: &str = "medium_coeff";
/// Its number of variables.
const VARS: usize = 1;
/// Proofs that are generated and checked.
const PROOFS: u64 = 10_000;
/// The space that the bundled model is tested on.
const BUNDLED: &str = "large_coeff";
/// Proofs that a model is tested on.
const TESTED: usize = 200;
/// Training examples, and the seconds that they take on two idle cores.
const EXAMPLES: u64 = 450_000;
const SECONDS: f64 = 195.0;

/// What is trained: sums of single factors, which a small model learns in minutes.
const RUN: &str = r#"
[data]
config = "small_coeff/add"
vars = 1

[model]
d = 64
layers = 2
heads = 4
ffn = 256
max_positions = 128

[train]
recipe = "fast"
batch = 32
lr = 3e-3
warmup = 200
valid_every = 25_000
valid_proofs = 100
"#;

/// Flags of `polystep quickstart`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// The seed of everything
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Training examples
    #[arg(long, value_name = "N", default_value_t = EXAMPLES, value_parser = clap::value_parser!(u64).range(1..))]
    examples: u64,
    /// End training after so many minutes, whatever it has learned
    #[arg(long, value_name = "M", value_parser = positive_minutes)]
    minutes: Option<f64>,
    /// The folder of the run; an earlier quickstart in it is replaced
    #[arg(long, value_name = "FOLDER", default_value = "runs/quickstart")]
    out: PathBuf,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Shows the pipeline.
pub fn run(args: Args) -> Result<()> {
    let began = Instant::now();
    interrupt::listen()?;
    args.threads.start()?;
    let out = emptied(&args.out)?;
    let space = Space::named(CONFIG)?;
    let task = Task::new(space.clone(), VARS);
    let mut sampler = Sampler::new(&task, args.seed, Purpose::Train)?;

    say!("1. Sample a polynomial and prove it, step by step (polystep generate, polystep prove)\n")?;
    let shown = with_every_kind(&mut sampler);
    let mut text = Vec::new();
    prove::for_people(&sampler.proof(shown), &task.writing, &Names::default(), &mut text)?;
    say!("{}", String::from_utf8_lossy(&text))?;

    say!("2. Check {PROOFS} proofs; then one with a wrong number in it (polystep check)\n")?;
    let mut steps = 0;
    for index in 0..PROOFS {
        interrupt::check()?;
        let findings = inspect::proof(&ProofRecord::of(&mut sampler, index));
        let wrong = findings.steps.iter().find(|f| f.verdict != Verdict::Exact);
        if let Some(sentence) = wrong.map(|f| f.sentence.clone()).or(findings.broken) {
            return Err(bad_input(format!("proof {index} of seed {} is wrong: {sentence}", args.seed)));
        }
        steps += findings.steps.len();
    }
    say!("{PROOFS} proofs, {steps} steps: every step keeps the value and is the one that was expected")?;
    say!("{}\n", with_a_wrong_number(&mut sampler, shown))?;

    let threads = args.threads.count();
    let examples = args.examples;
    say!("3. Train a small model on this CPU with {examples} examples, made on the fly (polystep train)\n")?;
    say!("{}\n", expected_time(examples, threads))?;
    let report = train(out, &args, threads)?;

    say!("\n4. Test it on {TESTED} proofs that it has never met (polystep eval)\n")?;
    if report.test.as_ref().is_some_and(|test| test.full_proof.count > 0) {
        let options = Options {
            on: Vec::new(),
            checkpoint: None,
            device: Device::Cpu,
            beam: Some(5),
            proofs: Some(TESTED),
            long: false,
            threads,
        };
        let metrics = eval::evaluate_run(out, &options)?;
        for evaluation in &metrics.evaluations {
            eval::print(&metrics, evaluation, eval::is_measured)?;
        }
        say!("(sums of single factors: the paper has no row for this sub-task of its curricula)")?;
    } else {
        // Such a model does not know when to stop: it would write to the length limit, and for minutes.
        let learned = report.examples;
        say!(
            "After {learned} examples the model proves nothing yet, so it is not asked: --examples {EXAMPLES} is enough"
        )?;
    }
    interrupt::check()?;
    let page = RunFolder::new(out).report();
    report::write(&[polystep_study::StoredRun::open(out)?], &page)?;
    test_bundled(out, &args, threads)?;
    say!("\n{:.0} s in all. The report: {}", began.elapsed().as_secs_f64(), page.display())
}

/// A model that was trained before, on proofs drawn now, beside the paper's row.
fn test_bundled(out: &Path, args: &Args, threads: usize) -> Result<()> {
    say!("\n5. A bundled model, on {TESTED} proofs drawn now (polystep prove, polystep eval)\n")?;
    let Some(folder) = bundled::folder() else {
        return say!("there is no folder models/ with trained models: clone the repository to have them");
    };
    let plain = Task::new(Space::named(BUNDLED)?, 1);
    let learned = known_models(&folder)?.into_iter().filter(|m| m.tasks.contains(&plain));
    let Some(model) = learned.max_by(|a, b| a.accuracy(&plain).total_cmp(&b.accuracy(&plain))) else {
        return say!("no model in {} has learned {BUNDLED} in coarse infix steps", folder.display());
    };
    let trained = trained_model::open(&model.folder)?;
    let place = SetFolder::new(out.join("boxed"));
    let metrics = eval::evaluate_fresh(&trained, &plain, (args.seed, TESTED as u64), &place, threads)?;
    for evaluation in &metrics.evaluations {
        eval::print(&metrics, evaluation, eval::is_measured)?;
    }
    say!("Its own words: polystep prove '(3*x^2+5*x)*(2*x)+(4*x+7)*(x+9)'")
}

/// The folder, without an earlier quickstart. Another run in it is refused, and so is a file that no quickstart makes.
fn emptied(out: &Path) -> Result<&Path> {
    let marker = RunFolder::new(out).config();
    if !marker.exists() {
        return Ok(out);
    }
    let text = std::fs::read_to_string(&marker).with_context(|| format!("cannot read {}", marker.display()))?;
    let refused = |why: String| Err(bad_input(format!("{} {why}: choose another --out", out.display())));
    if !is_quickstart(&text) {
        return refused("holds another run".into());
    }
    if let Some(file) = foreign_file(out, Path::new(""))? {
        return refused(format!("holds a file that no quickstart makes, {}", file.display()));
    }
    std::fs::remove_dir_all(out).with_context(|| format!("cannot replace {}", out.display()))?;
    Ok(out)
}

/// The first file below `folder` of `out` that a quickstart does not make.
fn foreign_file(out: &Path, folder: &Path) -> Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(out.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let foreign = match entry.file_type()?.is_dir() {
            true => foreign_file(out, &path)?,
            false => Some(path).filter(|path| !is_made_by_quickstart(path)),
        };
        if foreign.is_some() {
            return Ok(foreign);
        }
    }
    Ok(None)
}

/// Whether a quickstart leaves a file of this name, relative to its folder.
fn is_made_by_quickstart(path: &Path) -> bool {
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    match names[..] {
        [name] => {
            let stem = name.split('.').next().unwrap_or_default();
            ["config", "metrics", "model", "report", "events"].contains(&stem)
        }
        ["checkpoints", name] => name.starts_with("step-") || name.starts_with("best"),
        ["predictions", _, name] | ["boxed", name] => name.ends_with(".jsonl"),
        _ => false,
    }
}

/// Whether a run's TOML is what a quickstart of any seed and length leaves behind.
fn is_quickstart(text: &str) -> bool {
    let alike = |text| {
        let mut config = RunConfig::from_toml(text, &[]).ok()?;
        (config.data.seed, config.train.examples, config.train.minutes) = (0, None, None);
        Some(config)
    };
    let run = alike(RUN);
    run.is_some() && run == alike(text)
}

/// How long training will take, for people. Other work on the machine slows it down.
fn expected_time(examples: u64, threads: usize) -> String {
    let minutes = |factor: f64| (SECONDS * examples as f64 / EXAMPLES as f64 * factor / 60.0).max(0.1);
    let idle = format!("About {:.1} minutes on two idle cores.", minutes(1.0));
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load: Option<f64> = load.and_then(|text| text.split(' ').next()?.parse().ok());
    let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    // Each of our threads gets its share of the cores; two of them are what was measured.
    let share = |load: f64| (cores / (load + threads as f64)).min(1.0) * threads as f64 / 2.0;
    match load.filter(|load| load + threads as f64 > 1.25 * cores) {
        Some(load) => format!(
            "{idle} This machine is busy (a load of {load:.1} on {cores} cores): expect about {:.0} minutes.",
            minutes(1.0 / share(load)).ceil()
        ),
        None => idle,
    }
}

fn train(out: &Path, args: &Args, threads: usize) -> Result<TrainingReport> {
    let mut overrides = vec![("data.seed", args.seed.to_string()), ("train.examples", args.examples.to_string())];
    overrides.extend(args.minutes.map(|minutes| ("train.minutes", format!("{minutes:?}"))));
    let overrides: Vec<_> = overrides.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let config = RunConfig::from_toml(RUN, &overrides).map_err(bad_input)?;
    let setup = RunSetup::new(config)?;
    let mut executor = Device::Cpu.executor(setup.programs(), setup.limits, threads)?;
    let folder = TrainingFolder::create(out, &setup.config)?;
    let mut display = Display::new();
    let data = data_threads(Device::Cpu, threads);
    let trainer = Trainer::new(&setup, &folder, executor.as_mut(), &mut display, data)?;
    match trainer.run(interrupt::flag())? {
        SessionEnd::Finished(report) => {
            say!("{} examples in {:.0} s", report.examples, report.seconds)?;
            Ok(*report)
        }
        SessionEnd::Stopped { .. } => Err(Failure::Interrupted),
    }
}

/// The first proof that has a step of every kind.
fn with_every_kind(sampler: &mut Sampler) -> u64 {
    let kinds = [StepKind::Facstep, StepKind::Mulstep, StepKind::Sumstep];
    let mut has_all = |&index: &u64| {
        let proof = sampler.proof(index);
        kinds.iter().all(|kind| proof.kinds().contains(kind))
    };
    (0..PROOFS).find(|index| has_all(index)).unwrap_or(0)
}

/// What the checker says when the last step of a proof comes to a wrong number.
fn with_a_wrong_number(sampler: &mut Sampler, index: u64) -> String {
    let mut record = ProofRecord::of(sampler, index);
    let Some(last) = record.steps.last_mut() else {
        return String::new();
    };
    // The first coefficient becomes one larger; a 1 is not written.
    let rest = last.target.trim_start_matches(|c: char| c.is_ascii_digit());
    let first: u64 = last.target[..last.target.len() - rest.len()].parse().unwrap_or(1);
    let times = if rest.starts_with('x') { "*" } else { "" };
    last.target = format!("{}{times}{rest}", first + 1);
    let findings = inspect::proof(&record);
    let wrong = findings.steps.iter().find(|f| f.verdict != Verdict::Exact);
    wrong.map_or(String::new(), |f| format!("{}\n{}: {}", f.output, f.verdict.name(), f.sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person's own run on the same sub-task is not a quickstart, and must not be replaced by one.
    #[test]
    fn a_quickstart_knows_its_own() {
        let run = |overrides: &[(&str, &str)]| {
            let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            RunConfig::from_toml(RUN, &overrides).expect("a run").to_toml()
        };
        assert!(is_quickstart(&run(&[("train.minutes", "0.1"), ("data.seed", "7")])));
        assert!(!is_quickstart(&run(&[("train.minutes", "0.1"), ("model.layers", "3")])));
        assert!(!is_quickstart("[data]\nconfig = \"small_coeff/add\"\n") && !is_quickstart("nothing of the kind"));
    }
}

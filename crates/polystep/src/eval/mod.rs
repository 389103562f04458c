//! `polystep eval`: a run's answers to the fixed sets, and every number the paper reports about a model.
//!
//! Decoding writes prediction records. `polystep-study` reads and scores them; `--predictions` scores a file that was made
//! elsewhere in the same way. What was measured stays: an evaluation of fewer proofs, or with a narrower beam, than
//! metrics.json holds is printed but not saved.

mod answers;
mod show;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args as ClapArgs;
use polystep_core::{GuardScope, Notation, Setting, Space, Task};
use polystep_learn::config::{is_space_file, read_space};
use polystep_learn::feed::Proofs;
use polystep_learn::train::WhichCheckpoint;
use polystep_learn::trained::TrainedModel;
use polystep_record::folder::lease_of;
use polystep_record::{
    Decoding, JsonLines, Keys, Lease, Prediction, RunFolder, SetFolder, TestSet, WholeFolder, write_whole,
};
use polystep_study::score::score;
use polystep_study::{Evaluation, Inputs, Matrix, Metrics, evaluate};

use crate::args::{StopArgs, ThreadArgs, WritingArgs, at_least_one};
use crate::bundled;
use crate::device::{self, Device};
use crate::failure::{Result, bad_input};
use crate::output::{cannot_write, note};
use crate::say;
use crate::trained_model;

pub use show::{is_measured, print};

const EXAMPLES: &str = "\
Examples:
  polystep eval runs/fast
  polystep eval runs/fast --on large_coeff:1,medium_coeff:1,small_coeff:2
  polystep eval runs/fast --on longer.toml:1         (a space of your own; see docs/spaces.md)
  polystep eval runs/ood-small runs/ood-large --on small_coeff:1,large_coeff:1
  polystep eval runs/ood-small runs/ood-large --matrix
  polystep eval runs/fast --no-beam --proofs 200 --device cpu
  polystep eval runs/fast --long                     (10 000 proofs of each set)
  polystep eval runs/unfinished --checkpoint last --no-beam
  polystep eval --predictions theirs.jsonl --notation prefix

The answers go to RUN/predictions/, the numbers to RUN/metrics.json; polystep report RUN shows both.
Those of a bundled model models/NAME go to runs/NAME-eval.
If you evaluate fewer proofs than last time, the result is printed but not saved. The same holds
if you leave the beam search out or make it narrower.";

/// Width of the paper's beam search.
const BEAM_WIDTH: u8 = polystep_learn::decode::BEAM_WIDTH as u8;

/// Flags of `polystep eval`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders of finished runs. With several, a matrix (trained x tested) is printed too
    #[arg(value_name = "RUN", required_unless_present = "predictions", conflicts_with = "WritingArgs")]
    runs: Vec<PathBuf>,
    /// Test sets, as config:vars or FILE.toml:vars [default: what the run was trained on]
    #[arg(long, value_name = "CONFIG:VARS", value_delimiter = ',')]
    on: Vec<String>,
    /// Score a file of prediction records instead of a run
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["runs", "on"])]
    predictions: Option<PathBuf>,
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
    device: Device,
    /// Evaluate a run that is not finished: its newest checkpoint (last), or its best weights so far (best; recipe paper keeps
    /// them). The result is printed but not saved, because the run will be tested at its end
    #[arg(long, value_name = "last|best", conflicts_with_all = ["predictions", "matrix"])]
    checkpoint: Option<WhichCheckpoint>,
    /// Width of the beam search
    #[arg(long, default_value_t = BEAM_WIDTH, value_parser = clap::value_parser!(u8).range(1..=5))]
    beam: u8,
    /// Leave the beam search out: greedy and recursive only
    #[arg(long)]
    no_beam: bool,
    /// Only the first N proofs of the test set and the first 5 N steps of the beam set, for a quick look
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    proofs: Option<NonZeroUsize>,
    /// The long sets instead: 10 000 proofs of the test stream, 10 000 steps of the beam stream. Their results are kept beside
    /// those of the 1000 proofs on which every model is tested
    #[arg(long, conflicts_with_all = ["predictions", "matrix"])]
    long: bool,
    /// Decode nothing: only print the matrix (trained x tested), from the runs' metrics.json
    #[arg(long, conflicts_with_all = ["predictions", "on", "beam", "no_beam", "proofs", "device"])]
    matrix: bool,
    #[command(flatten)]
    stop: StopArgs,
    /// Print JSON instead of tables, in the form of metrics.json; with several runs, a list of them and the matrix
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten, next_help_heading = "How the records of --predictions are written (not needed for a run)")]
    writing: WritingArgs,
}

/// What to decode, and where.
pub struct Options {
    /// Test sets, as config:vars; the run's own if empty.
    pub on: Vec<String>,
    /// Which weights of a run that is not finished; none for the finished model.
    pub checkpoint: Option<WhichCheckpoint>,
    /// Where to compute.
    pub device: Device,
    /// Width of the beam search; none leaves it out.
    pub beam: Option<u8>,
    /// Only the first proofs.
    pub proofs: Option<usize>,
    /// The long sets.
    pub long: bool,
    /// Threads of the CPU.
    pub threads: usize,
}

impl Options {
    /// Whether this looks at less of a set than was measured before.
    fn looks_at_less_than(&self, known: &Evaluation) -> bool {
        let proofs = known.greedy.as_ref().map_or(0, |greedy| greedy.full_proof.exact.of);
        let searched = known.beam.as_ref().map_or(0, |beam| beam.width);
        u64::from(self.beam.unwrap_or(0)) < searched || self.proofs.is_some_and(|n| (n as u64) < proofs)
    }
}

/// Evaluates.
pub fn run(args: Args) -> Result<()> {
    let options = Options {
        on: args.on,
        checkpoint: args.checkpoint,
        device: args.device,
        beam: (!args.no_beam).then_some(args.beam),
        proofs: args.proofs.map(NonZeroUsize::get),
        long: args.long,
        threads: args.threads.count(),
    };
    args.stop.listen()?;
    args.threads.start()?;
    let all = match &args.predictions {
        Some(file) => vec![score_file(file, &args.writing)?],
        None if args.matrix => args.runs.iter().map(|run| measured(run)).collect::<Result<_>>()?,
        None => args.runs.iter().map(|run| evaluate_run(run, &options)).collect::<Result<_>>()?,
    };
    let names: Vec<String> = args.runs.iter().map(|run| RunFolder::new(run).name()).collect();
    let matrix = Matrix::of(&names.iter().map(String::as_str).zip(all.iter().map(Some)).collect::<Vec<_>>());
    if args.matrix && matrix.is_none() {
        return Err(bad_input("one run on one test set is no matrix: polystep eval RUN... --on CONFIG:VARS,... first"));
    }
    if args.json {
        let text = match &all[..] {
            _ if args.matrix => serde_json::to_string_pretty(&matrix),
            [metrics] => serde_json::to_string_pretty(metrics),
            runs => serde_json::to_string_pretty(&serde_json::json!({ "runs": runs, "matrix": matrix })),
        };
        return say!("{}", text?);
    }
    if !args.matrix {
        for metrics in &all {
            let mut evaluations = metrics.evaluations.iter().chain(&metrics.long);
            evaluations.try_for_each(|evaluation| print(metrics, evaluation, show::is_known))?;
        }
    }
    matrix.iter().try_for_each(show::print_matrix)
}

/// What is known of a run already.
fn measured(run: &Path) -> Result<Metrics> {
    let metrics = read_metrics(run)?;
    if metrics.evaluations.is_empty() {
        return Err(bad_input(format!("{0} has not been evaluated: polystep eval {0} first", run.display())));
    }
    Ok(metrics)
}

/// Refuses records of the other notation: infix has parentheses and no INT+, prefix the other way round. An endpoint has
/// neither in infix, but what it is asked from has.
fn check_notation(file: &Path, record: &Prediction, notation: Notation) -> Result<()> {
    let (foreign, theirs) = match notation {
        Notation::Infix => ("INT+", Notation::Prefix),
        Notation::Prefix => ("(", Notation::Infix),
    };
    match record.input.contains(foreign) || record.target.contains(foreign) {
        true => Err(bad_input(format!("{} is written in {theirs}: add --notation {theirs}", file.display()))),
        false => Ok(()),
    }
}

/// Scores predictions from anywhere: one beam is greedy, more are beam search.
fn score_file(file: &Path, writing: &WritingArgs) -> Result<Metrics> {
    let mut scored = Vec::new();
    for prediction in JsonLines::open(file)? {
        let prediction: Prediction = prediction?;
        check_notation(file, &prediction, writing.notation)?;
        scored.push(score(&prediction, &writing.writing()));
    }
    let beam = scored.iter().any(|step| step.beams > 1).then(|| scored.clone());
    let inputs = Inputs { greedy: Some(scored), beam, ..Inputs::default() };
    let evaluation = evaluate(&TestSet::new(file.display().to_string(), 0), &inputs)?;
    Ok(Metrics { evaluations: vec![evaluation], ..Metrics::default() })
}

/// Has the model of a run answer the test sets, and scores the answers. Returns what was asked for; [`keep`] puts it into the
/// run's folder.
pub fn evaluate_run(run: &Path, options: &Options) -> Result<Metrics> {
    let trained = trained_model::at(run, options.checkpoint)?;
    let sets = test_sets(&options.on, &trained)?;
    if options.long && trained.home().writing.setting == Setting::Arithmetic {
        return Err(bad_input("the arithmetic probe has no long sets: leave out --long"));
    }
    let (place, model) = (place_of_results(run)?, run.display());
    let run = place.as_path();
    let mut stepper = trained_model::stepper(&trained, options.device, options.threads)?;
    note(format_args!("{} on {}", model, stepper.device()));
    if let Some(step) = trained.step {
        note(format_args!("note: these are the weights after step {step}. This result is not saved"));
    }
    if let Some(width) = options.beam.filter(|&width| width != BEAM_WIDTH) {
        note(format_args!("note: a beam of {width}, also where the paper's columns say {BEAM_WIDTH}"));
    }
    let guarded = trained.config.guarded().map_err(bad_input)?;
    let mut asked =
        Metrics { keys: trained.config.keys(), evaluations: Vec::new(), long: Vec::new(), ..read_metrics(run)? };
    for task in sets {
        let scratch = scratch_folder(run)?;
        let answers = SetFolder::new(scratch.place());
        answers::set(&mut stepper, &task, trained.tasks.contains(&task), &answers, options)?;
        let mut evaluation = measured_set(&task, &answers)?;
        let named = Space::in_setting(&task.space.key, task.writing.setting).is_ok_and(|space| space == task.space);
        evaluation.space = (!named).then(|| task.space.to_string());
        evaluation.long = options.long;
        evaluation.unguarded = !was_guarded(&trained, &guarded, &task, options.long);
        if let Some(caveat) = evaluation.caveat() {
            note(format_args!("note: {caveat}"));
        }
        for beam in [&mut evaluation.beam, &mut evaluation.beam_lp1].into_iter().flatten() {
            beam.width = options.beam.unwrap_or(0).into();
        }
        if trained.step.is_none() {
            keep(run, &answers, &asked.keys, &evaluation, options)?;
        }
        match evaluation.long {
            true => asked.long.push(evaluation),
            false => asked.evaluations.push(evaluation),
        }
    }
    Ok(asked)
}

/// Where the answers of a run's model and what is measured go: its own folder. A bundled model stays as it was delivered, so
/// its results go to a folder under `runs/`, which is set up like a run for `report`.
fn place_of_results(run: &Path) -> Result<PathBuf> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let Some(models) = bundled::folder().filter(|models| whole(run).parent() == Some(whole(models).as_path())) else {
        return Ok(run.to_path_buf());
    };
    let (from, name) = (RunFolder::new(run), format!("{}-eval", RunFolder::new(run).name()));
    let place = Path::new("runs").join(name);
    std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let to = RunFolder::new(&place);
    write_whole(&to.config(), std::fs::read(from.config())?)?;
    if !to.metrics().exists() {
        let known = Metrics { evaluations: Vec::new(), long: Vec::new(), ..read_metrics(run)? };
        write_whole(&to.metrics(), serde_json::to_string_pretty(&known)? + "\n")?;
    }
    let (models, place_name) = (models.display(), place.display());
    note(format_args!("nothing is written to {models}: answers and numbers go to {place_name}"));
    Ok(place)
}

/// Whether training was guarded against a set. Of first weights from elsewhere only this is known: they were guarded by the same
/// scope, or a wider one.
fn was_guarded(trained: &TrainedModel, guarded: &[Task], task: &Task, long: bool) -> bool {
    let scope = trained.config.data.guard.scope;
    let own: &[Task] = if trained.config.train.init.is_some() { &[] } else { &trained.tasks };
    let held = Proofs::guards(scope, own.iter().chain(guarded.iter().filter(|_| !own.is_empty())), task);
    trained.verified && held && (!long || scope == GuardScope::Long)
}

/// The test set of a task.
fn set_of(task: &Task) -> TestSet {
    TestSet::new(&task.space.key, task.vars as u32)
}

/// A folder for the answers to one set, removed at the end. It lies in the run's folder, so that the files can be renamed into
/// their place; a run that may not be written to can still be looked at.
fn scratch_folder(run: &Path) -> Result<WholeFolder> {
    let predictions = RunFolder::new(run).predictions();
    let inside =
        std::fs::create_dir_all(&predictions).is_ok().then(|| WholeFolder::create(&predictions.join("answers")));
    Ok(inside
        .and_then(|made| made.ok())
        .map_or_else(|| WholeFolder::create(&std::env::temp_dir().join("answers")), Ok)?)
}

/// Puts answers and their evaluation into the run's folder, unless its metrics.json knows more about the set. Another `eval` of
/// the same run may have written since this one began: metrics.json is read again, and written, under the folder's lease.
fn keep(run: &Path, answers: &SetFolder, keys: &Keys, evaluation: &Evaluation, options: &Options) -> Result<()> {
    let _lease = Lease::wait(&lease_of(run))?;
    let mut known = read_metrics(run)?;
    known.keys = keys.clone();
    let set = TestSet::new(&evaluation.config, evaluation.vars);
    let kept = if evaluation.long { &mut known.long } else { &mut known.evaluations };
    match kept.iter_mut().find(|e| e.config == set.config && e.vars == set.vars) {
        Some(old) if old.space.is_some() && old.space != evaluation.space => {
            let run = run.display();
            return Err(bad_input(format!(
                "{run} was evaluated on another space under the key {}: give your space a key of its own",
                set.config
            )));
        }
        Some(old) if options.looks_at_less_than(old) => {
            let run = run.display();
            note(format_args!("note: {run} already has a larger evaluation of {set}. This result is not saved"));
            return Ok(());
        }
        Some(old) => *old = evaluation.clone(),
        None => kept.push(evaluation.clone()),
    }
    let folder = RunFolder::new(run);
    let place = if evaluation.long { folder.long_set(&set) } else { folder.set(&set) };
    std::fs::create_dir_all(place.path()).with_context(|| format!("cannot make {}", place.path().display()))?;
    for decoding in Decoding::ALL {
        // What an earlier search left goes when this time none was made.
        place.remove(decoding)?;
        for (from, to) in [
            (answers.answers(decoding), place.answers(decoding)),
            (answers.verdicts(decoding), place.verdicts(decoding)),
        ] {
            if from.exists() {
                std::fs::rename(&from, &to).map_err(|e| cannot_write(to.display(), e))?;
            }
        }
    }
    Ok(write_whole(&RunFolder::new(run).metrics(), serde_json::to_string_pretty(&known)? + "\n")?)
}

/// Greedy answers to proofs that are in no set, scored; the records are written to `folder`.
pub fn evaluate_fresh(
    trained: &TrainedModel,
    task: &Task,
    (seed, proofs): (u64, u64),
    folder: &SetFolder,
    threads: usize,
) -> Result<Metrics> {
    answers::fresh(&mut trained_model::stepper(trained, Device::Cpu, threads)?, task, (seed, proofs), folder)?;
    Ok(Metrics { keys: trained.config.keys(), evaluations: vec![measured_set(task, folder)?], ..Metrics::default() })
}

/// Scores the answers to a set, as [`answers`] left them in a folder.
fn measured_set(task: &Task, folder: &SetFolder) -> Result<Evaluation> {
    Ok(evaluate(&set_of(task), &Inputs::judge(folder, &task.writing)?)?)
}

/// `config:vars,…` as tasks like the one that the model was trained on.
fn test_sets(on: &[String], trained: &TrainedModel) -> Result<Vec<Task>> {
    if on.is_empty() {
        return Ok(trained.tasks.clone());
    }
    let own = trained.home();
    on.iter()
        .map(|text| {
            let probe = own.writing.setting == Setting::Arithmetic;
            let set = match text.parse::<TestSet>() {
                // Exercises have no variables.
                Err(_) if probe && !text.contains(':') => Ok(TestSet::new(text, own.vars as u32)),
                parsed => parsed.map_err(|why| bad_input(format!("--on {text}: {why}"))),
            }?;
            if !is_space_file(&set.config) {
                return trained.config.task_on(&set).map_err(bad_input);
            }
            let space = read_space(&set.config).map_err(bad_input)?.resolve()?;
            let task = Task { space, vars: set.vars as usize, ..own.clone() };
            task.validate()?;
            Ok(task)
        })
        .collect()
}

fn read_metrics(run: &Path) -> Result<Metrics> {
    Ok(RunFolder::new(run).read_metrics()?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was measured is replaced by as much or more, of proofs and of beams, not by less.
    #[test]
    fn a_look_at_less_is_told_from_more() {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/runs/large_coeff-1-coarse-infix");
        let mut known = read_metrics(&run).unwrap_or_else(|e| panic!("{e:?}")).evaluations.remove(0);
        let less = |known: &Evaluation, beam, proofs| {
            Options { on: Vec::new(), checkpoint: None, device: Device::Cpu, beam, proofs, long: false, threads: 1 }
                .looks_at_less_than(known)
        };
        assert!(!less(&known, Some(5), None) && !less(&known, Some(5), Some(1000)));
        assert!(less(&known, None, None) && less(&known, Some(4), None) && less(&known, Some(5), Some(999)));
        known.beam.as_mut().unwrap().width = 2;
        assert!(!less(&known, Some(4), None) && less(&known, Some(1), None));
    }

    /// An endpoint has no parentheses, what it is asked from has.
    #[test]
    fn the_notation_of_one_shot_records_is_noticed_too() {
        let record = r#"{"proof":"p","step":0,"kind":"endpoint","input":"(x1^1)*(2)","target":"2*x1","beams":[]}"#;
        let record: Prediction = serde_json::from_str(record).unwrap();
        assert!(check_notation(Path::new("p.jsonl"), &record, Notation::Infix).is_ok());
        assert!(check_notation(Path::new("p.jsonl"), &record, Notation::Prefix).is_err());
    }
}

//! `polystep eval`: a run's answers to the fixed sets, and every number the paper reports about a model.
//!
//! Decoding writes prediction records; `polystep-study` reads and scores them, ours like anyone's: `--predictions` scores a
//! file from anywhere. What was measured stays: a look at less of a set than the run's metrics.json knows is only printed.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Args as ClapArgs;
use polystep_core::{Notation, Purpose, Setting, Space, Task, token};
use polystep_learn::decode::{Answered, BeamOptions, EngineStepper, Questions, Recursion, Stepper, Stopped};
use polystep_learn::feed::Proofs;
use polystep_study::columns::{Cell, Unit, cells};
use polystep_study::run::{BEAM, BEAM_LP1, GREEDY, RECURSIVE, VALID, keys_of_config, name_of, set_folder};
use polystep_study::{Evaluation, Inputs, Keys, Matrix, Metrics, Proportion, RecursiveRecord, Scoring, Stop, evaluate};
use serde::Serialize;

use crate::args::{ThreadArgs, WritingArgs, at_least_one};
use crate::device::Device;
use crate::failure::{Failure, Result, bad_input};
use crate::output::{Output, note};
use crate::trained::Trained;
use crate::watched::Watched;
use crate::{say, table};

const EXAMPLES: &str = "\
Examples:
  polystep eval runs/fast
  polystep eval runs/fast --on large_coeff:1,medium_coeff:1,small_coeff:2
  polystep eval runs/ood-small runs/ood-large --on small_coeff:1,large_coeff:1
  polystep eval runs/ood-small runs/ood-large --matrix
  polystep eval runs/fast --no-beam --proofs 200 --device cpu
  polystep eval --predictions theirs.jsonl --notation prefix

Writes RUN/predictions/ and adds to RUN/metrics.json; then: polystep report RUN. A look at less
than was measured before (--proofs, --no-beam, a narrower --beam) is printed and not written.";

/// Width of the paper's beam search.
const BEAM_WIDTH: u8 = 5;

/// A matrix wider than this is turned, if that makes it narrower.
const WIDE: usize = 120;
/// Steps of the validation set that the best threshold of confidence is chosen on.
const VALID_STEPS: usize = 1000;

/// Flags of `polystep eval`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folders of finished runs; of several, the matrix trained x tested is printed too
    #[arg(value_name = "RUN", required_unless_present = "predictions", conflicts_with = "WritingArgs")]
    runs: Vec<PathBuf>,
    /// Test sets, as config:vars [default: what the run was trained on]
    #[arg(long, value_name = "CONFIG:VARS", value_delimiter = ',')]
    on: Vec<String>,
    /// Score a file of prediction records instead of a run
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["runs", "on"])]
    predictions: Option<PathBuf>,
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    device: Device,
    /// Width of the beam search
    #[arg(long, default_value_t = BEAM_WIDTH, value_parser = clap::value_parser!(u8).range(1..=5))]
    beam: u8,
    /// Leave the beam search out: greedy and recursive only
    #[arg(long)]
    no_beam: bool,
    /// Only the first N proofs of the test set and the first 5 N steps of the beam set, for a quick look
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    proofs: Option<NonZeroUsize>,
    /// Decode nothing: only print the matrix trained x tested, from what the runs' metrics.json hold
    #[arg(long, conflicts_with_all = ["predictions", "on", "beam", "no_beam", "proofs", "device"])]
    matrix: bool,
    /// Print JSON instead of tables, in the form of metrics.json; of several runs a list of them and the matrix
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten, next_help_heading = "How the records of --predictions are written (a run knows itself)")]
    writing: WritingArgs,
}

/// What to decode, and where.
pub struct Options {
    /// Test sets, as config:vars; the run's own if empty.
    pub on: Vec<String>,
    /// Where to compute.
    pub device: Device,
    /// Width of the beam search; none leaves it out.
    pub beam: Option<u8>,
    /// Only the first proofs.
    pub proofs: Option<usize>,
    /// Threads of the CPU.
    pub threads: usize,
}

impl Options {
    /// Whether this looks at less of a set than was measured before.
    fn looks_at_less_than(&self, known: &Evaluation) -> bool {
        let proofs = known.greedy.as_ref().map_or(0, |greedy| greedy.full_proof.exact.of);
        let narrower = known.beam.is_some() && self.beam != Some(BEAM_WIDTH);
        narrower || self.proofs.is_some_and(|n| (n as u64) < proofs)
    }
}

/// Evaluates.
pub fn run(args: Args) -> Result<()> {
    let options = Options {
        on: args.on,
        device: args.device,
        beam: (!args.no_beam).then_some(args.beam),
        proofs: args.proofs.map(NonZeroUsize::get),
        threads: args.threads.count(),
    };
    let all = match &args.predictions {
        Some(file) => vec![score_file(file, &args.writing)?],
        None if args.matrix => args.runs.iter().map(|run| measured(run)).collect::<Result<_>>()?,
        None => args.runs.iter().map(|run| evaluate_run(run, &options)).collect::<Result<_>>()?,
    };
    let names: Vec<String> = args.runs.iter().map(|run| name_of(run)).collect();
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
        return say!("{}", text.map_err(anyhow::Error::from)?);
    }
    if !args.matrix {
        for metrics in &all {
            metrics.evaluations.iter().try_for_each(|evaluation| print(metrics, evaluation, is_known))?;
        }
    }
    matrix.iter().try_for_each(print_matrix)
}

/// What is known of a run already.
fn measured(run: &Path) -> Result<Metrics> {
    let metrics = read_metrics(run)?;
    if metrics.evaluations.is_empty() {
        return Err(bad_input(format!("{0} has not been evaluated: polystep eval {0} first", run.display())));
    }
    Ok(metrics)
}

/// Refuses records of the other notation: infix has parentheses and no INT+, prefix the other way round.
fn check_notation(file: &Path, target: &str, notation: Notation) -> Result<()> {
    let (foreign, theirs) = match notation {
        Notation::Infix => ("INT+", Notation::Prefix),
        Notation::Prefix => ("(", Notation::Infix),
    };
    match target.contains(foreign) {
        true => Err(bad_input(format!("{} is written in {theirs}: add --notation {theirs}", file.display()))),
        false => Ok(()),
    }
}

/// Scores predictions from anywhere: one beam is greedy, more are beam search.
fn score_file(file: &Path, writing: &WritingArgs) -> Result<Metrics> {
    let scoring = Scoring { setting: writing.setting, notation: writing.notation, style: writing.style() };
    let open = || polystep_study::predictions::open(file).map_err(study_failure);
    let mut widest = 0;
    for record in open()? {
        let record = record.map_err(study_failure)?;
        check_notation(file, &record.target, writing.notation)?;
        widest = widest.max(record.beams.len());
    }
    let mut inputs = Inputs { greedy: Some(Box::new(open()?)), ..Inputs::default() };
    if widest > 1 {
        inputs.beam = Some(Box::new(open()?));
    }
    let evaluation = evaluate(&file.display().to_string(), 0, inputs, &scoring).map_err(study_failure)?;
    Ok(Metrics { evaluations: vec![evaluation], ..Metrics::default() })
}

/// Has the model of a run answer the test sets, and scores the answers: returned is what was asked for. It is added to the
/// run's metrics.json, unless that knows more of the set already.
pub fn evaluate_run(run: &Path, options: &Options) -> Result<Metrics> {
    let trained = Trained::open(run)?;
    let sets = test_sets(&options.on, &trained)?;
    let mut stepper = trained.stepper(options.device, options.threads)?;
    note(format_args!("{} on {}", run.display(), stepper.device()));
    if let Some(width) = options.beam.filter(|&width| width != BEAM_WIDTH) {
        note(format_args!("note: a beam of {width}, also where the paper's columns say {BEAM_WIDTH}"));
    }
    let mut known = read_metrics(run)?;
    known.keys = keys_of(&trained)?;
    let mut asked = Metrics { evaluations: Vec::new(), ..known.clone() };
    for task in sets {
        let set = format!("{}:{}", task.space.key, task.vars);
        if !Proofs::guards(&trained.tasks, &task) {
            note(format_args!(
                "note: training was not guarded against {set}: it may have met some of these polynomials"
            ));
        }
        let is_set = |e: &Evaluation| e.config == task.space.key && e.vars as usize == task.vars;
        let before = known.evaluations.iter().position(is_set);
        let look = before.is_some_and(|at| options.looks_at_less_than(&known.evaluations[at]));
        let place = if look { Some(tempfile::tempdir().context("cannot make a temporary folder")?) } else { None };
        let folder = match &place {
            Some(place) => place.path().to_path_buf(),
            None => set_folder(run, &task.space.key, task.vars as u32),
        };
        answer(&mut stepper, &task, trained.tasks.contains(&task), &folder, options)?;
        let scoring = Scoring { setting: task.setting, notation: task.notation, style: task.style };
        let inputs = Inputs::open(&folder).map_err(study_failure)?;
        let evaluation = evaluate(&task.space.key, task.vars as u32, inputs, &scoring).map_err(study_failure)?;
        asked.evaluations.push(evaluation.clone());
        match before {
            Some(_) if look => {
                let run = run.display();
                note(format_args!("note: {run} keeps what it knows of {set}, which is more; this look is not written"));
                continue;
            }
            Some(at) => known.evaluations[at] = evaluation,
            None => known.evaluations.push(evaluation),
        }
        write_metrics(run, &known)?;
    }
    Ok(asked)
}

fn write_metrics(run: &Path, metrics: &Metrics) -> Result<()> {
    let text = serde_json::to_string_pretty(metrics).map_err(anyhow::Error::from)?;
    let mut out = Output::create(Some(&run.join("metrics.json")))?;
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.finish()
}

/// Greedy answers to proofs that are in no set, scored; the records are written to `folder`.
pub fn evaluate_fresh(
    trained: &Trained,
    task: &Task,
    (seed, proofs): (u64, u64),
    folder: &Path,
    threads: usize,
) -> Result<Metrics> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut stepper = trained.stepper(Device::Cpu, threads)?;
    let questions = Questions::fresh(task, seed, proofs).map_err(bad_input)?;
    timed(&mut stepper, task, "greedy", questions.len(), |stepper| {
        write(&folder.join(GREEDY), questions.greedy(stepper, &mut Answered::default())?)
    })?;
    let scoring = Scoring { setting: task.setting, notation: task.notation, style: task.style };
    let inputs = Inputs::open(folder).map_err(study_failure)?;
    let evaluation = evaluate(&task.space.key, task.vars as u32, inputs, &scoring).map_err(study_failure)?;
    Ok(Metrics { keys: keys_of(trained)?, evaluations: vec![evaluation], ..Metrics::default() })
}

/// `config:vars,…` as tasks like the one that the model was trained on.
fn test_sets(on: &[String], trained: &Trained) -> Result<Vec<Task>> {
    if on.is_empty() {
        return Ok(trained.tasks.clone());
    }
    let own = trained.home();
    on.iter()
        .map(|text| {
            let probe = own.setting == Setting::Arithmetic;
            let parsed = match text.rsplit_once(':') {
                Some((config, vars)) => vars.parse::<usize>().ok().map(|vars| (config, vars)),
                // Exercises have no variables.
                None => probe.then_some((text.as_str(), own.vars)),
            };
            let (config, vars) = parsed.ok_or_else(|| {
                bad_input(format!("--on {text}: write a configuration and a number of variables, as in large_coeff:1"))
            })?;
            let space = match config {
                own_key if own_key == own.space.key => Ok(own.space.clone()),
                exercises if probe => Space::exercises(exercises),
                key => Space::of_key(key),
            };
            let task = Task { space: space.map_err(bad_input)?, vars, ..own.clone() };
            task.validate().map_err(bad_input)?;
            Ok(task)
        })
        .collect()
}

/// Has the model answer one test set, and writes the records.
fn answer(stepper: &mut EngineStepper, task: &Task, own: bool, folder: &Path, options: &Options) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let questions = |purpose, most| Questions::new(task, purpose, most).map_err(bad_input);
    let proofs = options.proofs.unwrap_or(usize::MAX);

    let test = questions(Purpose::Test, usize::MAX)?.first_proofs(proofs);
    let mut answered = Answered::default();
    timed(stepper, task, "greedy", test.len(), |stepper| {
        write(&folder.join(GREEDY), test.greedy(stepper, &mut answered)?)
    })?;
    timed(stepper, task, "recursive", test.len(), |stepper| {
        let records = test.recursive(stepper, &mut answered)?.into_iter().map(|r| recursive_record(r, task));
        write(&folder.join(RECURSIVE), records)
    })?;
    let stale = |name: &str| match std::fs::remove_file(folder.join(name)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::from(e)),
        _ => Ok(()),
    };
    let Some(width) = options.beam else {
        return [BEAM, BEAM_LP1, VALID].into_iter().try_for_each(stale);
    };
    let search = BeamOptions { beam: usize::from(width) };
    let beam = questions(Purpose::Beam, proofs.saturating_mul(5))?;
    timed(stepper, task, "beam", beam.len(), |stepper| {
        let (headline, lp1) = beam.beam(stepper, search)?;
        write(&folder.join(BEAM), headline)?;
        write(&folder.join(BEAM_LP1), lp1)
    })?;
    if own {
        let valid = questions(Purpose::Valid, VALID_STEPS.min(proofs.saturating_mul(5)))?;
        timed(stepper, task, "threshold", valid.len(), |stepper| {
            write(&folder.join(VALID), valid.beam(stepper, search)?.0)
        })?;
    }
    Ok(())
}

fn recursive_record(recursion: Recursion, task: &Task) -> RecursiveRecord {
    let text = |states: &[Vec<u8>]| states.iter().map(|s| token::decode(s, task.notation)).collect();
    RecursiveRecord {
        proof: recursion.proof,
        states: text(&recursion.found.states),
        expected: text(&recursion.expected),
        stop: match recursion.found.stop {
            Stopped::End => Stop::End,
            Stopped::Malformed => Stop::Malformed,
            Stopped::Loop => Stop::Loop,
            Stopped::Limit => Stop::Limit,
        },
    }
}

fn write<T: Serialize>(path: &Path, records: impl IntoIterator<Item = T>) -> Result<()> {
    let mut out = Output::create(Some(path))?;
    for record in records {
        serde_json::to_writer(&mut out, &record).map_err(anyhow::Error::from)?;
        out.write_all(b"\n")?;
    }
    out.finish()
}

/// Has a model answer `steps` steps of a task's set, watched, and says how long it took.
fn timed(
    stepper: &mut EngineStepper,
    task: &Task,
    what: &str,
    steps: usize,
    work: impl FnOnce(&mut dyn Stepper) -> Result<()>,
) -> Result<()> {
    let start = Instant::now();
    let set = format!("{}:{}", task.space.key, task.vars);
    work(&mut Watched::new(stepper, format!("steps of {set}, {what}"), steps))?;
    note(format_args!("  {set}  {what:<10}{steps:>6} steps in {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

fn keys_of(trained: &Trained) -> Result<Keys> {
    let config: toml::Table = toml::from_str(&trained.config.to_toml()).map_err(anyhow::Error::from)?;
    Ok(keys_of_config(&config))
}

fn read_metrics(run: &Path) -> Result<Metrics> {
    let path = run.join("metrics.json");
    match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|e| bad_input(format!("{} is damaged: {e}", path.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Metrics::default()),
        Err(e) => Err(e.into()),
    }
}

fn study_failure(error: polystep_study::StudyError) -> Failure {
    bad_input(error)
}

/// Trained x tested, full proofs and steps.
fn print_matrix(matrix: &Matrix) -> Result<()> {
    for measure in matrix.measures() {
        let rows = matrix.grid(measure);
        say!(
            "\ntrained x tested, {} in percent (the paper's); ↓ where ours is lower",
            measure.heading().to_lowercase()
        )?;
        let (upright, turned) = (in_columns(rows.clone()), in_columns(turned(rows)));
        let width = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        say!("{}", if width(&upright) > WIDE && width(&turned) < width(&upright) { turned } else { upright })?;
    }
    Ok(())
}

/// A grid whose first row is its head.
fn in_columns(grid: Vec<Vec<String>>) -> String {
    let mut rows = grid.into_iter();
    table::grid(1, rows.next().unwrap_or_default(), rows)
}

/// Test sets down, runs across.
fn turned(grid: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let columns = grid.first().map_or(0, Vec::len);
    let mut turned: Vec<Vec<String>> = (0..columns).map(|i| grid.iter().map(|row| row[i].clone()).collect()).collect();
    if let Some(corner) = turned.first_mut().and_then(|head| head.first_mut()) {
        *corner = "tested on".into();
    }
    turned
}

/// Whether a column has our number or the paper's.
fn is_known(cell: &Cell) -> bool {
    cell.ours.is_some() || cell.paper.is_some()
}

/// Whether a column has our number.
pub fn is_measured(cell: &Cell) -> bool {
    cell.ours.is_some()
}

/// A line for each column that is to be shown.
fn rows(metrics: &Metrics, evaluation: &Evaluation, shown: impl Fn(&Cell) -> bool) -> Vec<[String; 5]> {
    let number = |value: f64, unit: Unit| match unit {
        Unit::Fraction => format!("{value:.3}"),
        Unit::Count => format!("{value:.0}"),
        Unit::Percent => format!("{value:.2}"),
    };
    let row = |cell: Cell| {
        let unit = cell.column.unit;
        let interval = cell.interval.map_or(String::new(), |(lo, hi)| format!("{lo:.1} to {hi:.1}"));
        [
            format!("{}: {}", cell.column.group, cell.column.heading),
            cell.ours.map_or("-".into(), |v| number(v, unit)),
            interval,
            cell.symbolic.map_or(String::new(), |v| number(v, unit)),
            cell.paper.as_ref().map_or(String::new(), |p| p.text.to_string()),
        ]
    };
    cells(metrics, evaluation).into_iter().filter(shown).map(row).collect()
}

/// The paper's columns that are to be shown, ours beside the paper's.
pub fn print(metrics: &Metrics, evaluation: &Evaluation, shown: impl Fn(&Cell) -> bool) -> Result<()> {
    let title = metrics.keys.title();
    let set = match evaluation {
        Evaluation { config, vars: 0, .. } => config.clone(),
        Evaluation { config, .. } if metrics.keys.setting == "arithmetic" => format!("{title}, tested on {config}"),
        Evaluation { config, vars, .. } => {
            format!("{title}, tested on {config} with {}", table::counted(*vars as usize, "variable"))
        }
    };
    say!("{set}")?;
    let rows = rows(metrics, evaluation, shown);
    say!("{}", table::table(1, ["", "ours", "95 %", "symbolic", "paper"], rows))?;
    let percent = |p: &Proportion| format!("{:.2} % ({:.1} to {:.1})", p.percent, p.lo, p.hi);
    if let Some(recursive) = &evaluation.recursive {
        say!("recursive proofs, every state right  {}", percent(&recursive.recursive_exact))?;
        say!("recursive proofs, right endpoint     {}", percent(&recursive.recursive_end))?;
    }
    if let Some(greedy) = &evaluation.greedy {
        if let Some(raw) = &greedy.raw_exact {
            say!("brackets right before evaluation     {}", percent(raw))?;
        }
        say!("malformed outputs                    {}", percent(&greedy.malformed))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run on many sets is a table of many lines, not of one that no terminal holds.
    #[test]
    fn a_wide_matrix_is_turned() {
        let grid =
            |text: &str| text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect::<Vec<_>>();
        let wide: Vec<Vec<String>> = grid("trained a b c\nrun 1 2 3");
        let tall: Vec<Vec<String>> = grid("tested run\na 1\nb 2\nc 3");
        assert_eq!(turned(wide)[1..], tall[1..]);
        assert_eq!(turned(grid("trained a\nrun 1"))[0], ["tested on", "run"]);
    }

    /// Without beam search the paper's columns of it are empty on our side: shown, or left out.
    #[test]
    fn columns_without_our_number_can_be_left_out() {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/runs/large_coeff-1-coarse-infix");
        let mut metrics = read_metrics(&run).unwrap_or_else(|e| panic!("{e:?}"));
        metrics.evaluations[0].beam = None;
        let lines = |shown: fn(&Cell) -> bool| rows(&metrics, &metrics.evaluations[0], shown);
        let beam = |lines: &[[String; 5]]| lines.iter().filter(|line| line[0].starts_with("Beam 5")).count();
        let (known, measured) = (lines(is_known), lines(is_measured));
        assert_eq!((beam(&known), beam(&measured)), (2, 0));
        let full = |line: &[String; 5]| line[0] == "Greedy: Full proof" && line[1] == "97.80" && line[4] == "82.1";
        assert!(measured.iter().any(full) && measured.iter().all(|line| line[1] != "-"), "{measured:?}");
    }
}

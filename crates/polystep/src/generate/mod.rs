//! `polystep generate`: proofs, or single step examples, as JSONL or Parquet. Work is cut into blocks; each block is made by all
//! threads and written in the order of its indices, so that the number of threads never shows in the data.

mod dataset_card;
mod parquet;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};
use polystep_core::sets::{BEAM_STEPS, FixedSet, SEED};
use polystep_core::{Guard, GuardScope, Purpose, Sampler, Setting, SpaceError, StepKind, Task};
use polystep_record::ProofRecord;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::args::{Named, TaskArgs, ThreadArgs};
use crate::failure::{Failure, Result, bad_input};
use crate::interrupt;
use crate::output::{OutputStream, note};
use crate::progress::WorkProgress;
use dataset_card::{Card, Contents, Split};
use parquet::{Shards, proof_batch, step_batch};

/// Proofs per block: enough to keep the threads busy, few enough to stop quickly.
const BLOCK: u64 = 4096;
/// Proofs that a thread takes at once.
const CHUNK: u64 = 64;

const EXAMPLES: &str = "\
Examples:
  polystep generate --config large_coeff --proofs 3
  polystep generate --config medium_terms --vars 2 --granularity fine --steps 9000 --out fine.jsonl
  polystep generate --setting calculator --notation prefix --format parquet --out dataset
  polystep generate --split train,valid,test --proofs 100000 --format parquet --out dataset
  polystep generate --split test --config no_backtrack        (the fixed test set: 1000 proofs)
  polystep generate --setting arithmetic --config mul9        (or add4, add9, mul4; else all four)
  polystep generate --config my-space.toml | polystep check -

You can describe your own space in a TOML file. `base` supplies what you leave out:
  [space]
  base = \"medium_coeff\"
  coeff = { polynomial = 500, product = 100, factor = 9 }
  max = { products = 4, factors = 2 }

Training polynomials whose endpoint occurs in a valid, test or beam set are drawn again.";

/// Flags of `polystep generate`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    task: TaskArgs,
    /// Which stream of polynomials: train, or the fixed sets valid, test and beam. A Parquet dataset may have several, with
    /// commas: the fixed sets are then whole, and --proofs or --steps is the size of train
    #[arg(long, default_value = "train", value_delimiter = ',')]
    split: Vec<Named<Purpose>>,
    /// How many proofs, one per record [default: 1000]
    #[arg(long, value_name = "N")]
    proofs: Option<u64>,
    /// How many steps, one per record [default for --split beam: 5000]
    #[arg(long, value_name = "N", conflicts_with = "proofs")]
    steps: Option<u64>,
    /// The seed [default: 1; the fixed sets valid, test and beam: 2021]
    #[arg(long)]
    seed: Option<u64>,
    /// jsonl, or parquet: a folder of shards with a dataset card, for Hugging Face `datasets`
    #[arg(long, default_value = "jsonl")]
    format: Format,
    /// The file (jsonl) or folder (parquet) to write; it appears only when it is complete [default: standard output]
    #[arg(long, value_name = "PATH", required_if_eq("format", "parquet"))]
    out: Option<PathBuf>,
    /// Rows per Parquet shard
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    shard_rows: u64,
    #[command(flatten)]
    threads: ThreadArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// One JSON object per line
    Jsonl,
    /// Parquet shards and a dataset card
    Parquet,
}

/// What the rows are, and how many are wanted.
type Amount = (Contents, u64);

/// A step on its own, as a row.
#[derive(Serialize, Deserialize, Debug)]
pub struct StepExample {
    /// The id of its proof.
    pub proof: String,
    /// Which step of the proof.
    pub step: usize,
    /// What the step does.
    pub kind: StepKind,
    /// What a model reads.
    pub input: String,
    /// What it is to write.
    pub target: String,
    /// With the brackets evaluated (calculator only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Generates what the flags ask for.
pub fn run(args: Args) -> Result<()> {
    let task = args.task.task()?;
    interrupt::listen()?;
    args.threads.start()?;
    match (args.format, &args.out, &args.split[..]) {
        (Format::Jsonl, out, [Named(purpose)]) => {
            let (amount, seed) = (args.amount(*purpose, &task)?, args.seed(*purpose));
            let generator = Generator::new(task, seed, *purpose, args.threads.count())?;
            let mut out = OutputStream::create(out.as_deref())?;
            let proofs = generator.blocks(amount, |rows| Ok(out.write_all(&jsonl(&rows)?)?))?;
            let is_file = matches!(out, OutputStream::File(..));
            out.finish()?;
            if is_file {
                generator.tell_redrawn();
            }
            tell_unguarded(*purpose, seed, proofs);
            Ok(())
        }
        (Format::Parquet, Some(path), purposes) => args.dataset(path, &task, purposes),
        (Format::Parquet, None, _) => Err(bad_input("--format parquet needs a folder: --out PATH")),
        (Format::Jsonl, ..) => Err(bad_input("several splits need --format parquet: a JSONL file holds one")),
    }
}

impl Args {
    /// How much of a split is wanted. Beside others, a fixed set is whole.
    fn amount(&self, purpose: Purpose, task: &Task) -> Result<Amount> {
        if let Some(set) = FixedSet::of(purpose).filter(|_| self.split.len() > 1) {
            let examples = set.examples(task)?;
            let proofs = examples.spans.iter().filter(|span| span.step == 0).count();
            let steps = (Contents::Steps, examples.len() as u64);
            return Ok(if self.steps.is_some() { steps } else { (Contents::Proofs, proofs as u64) });
        }
        Ok(match (self.proofs, self.steps, purpose) {
            (Some(n), ..) => (Contents::Proofs, n),
            (_, Some(n), _) => (Contents::Steps, n),
            (.., Purpose::Beam) => (Contents::Steps, BEAM_STEPS as u64),
            _ => (Contents::Proofs, 1000),
        })
    }

    /// The seed of a split. Beside others, a fixed set has its own.
    fn seed(&self, purpose: Purpose) -> u64 {
        match FixedSet::of(purpose) {
            Some(_) if self.split.len() > 1 => SEED,
            Some(_) => self.seed.unwrap_or(SEED),
            None => self.seed.unwrap_or(1),
        }
    }

    /// Writes a folder with the shards of every split, and its card.
    fn dataset(&self, path: &Path, task: &Task, purposes: &[Named<Purpose>]) -> Result<()> {
        let mut shards = Shards::create(path, self.shard_rows)?;
        let mut splits = Vec::new();
        for Named(purpose) in purposes {
            let (amount, seed) = (self.amount(*purpose, task)?, self.seed(*purpose));
            let generator = Generator::new(task.clone(), seed, *purpose, self.threads.count())?;
            shards.begin(purpose.name(), amount.1);
            let proofs = generator.blocks(amount, |rows| match rows {
                Rows::Proofs(proofs) => shards.write(proof_batch(&proofs)?),
                Rows::Steps(steps) => shards.write(step_batch(&steps)?),
            })?;
            generator.tell_redrawn();
            tell_unguarded(*purpose, seed, proofs);
            let guarded = is_guarded(*purpose, seed, proofs);
            splits.push(Split { name: purpose.name(), seed, guarded, written: shards.end()? });
        }
        let contents = if self.steps.is_some() { Contents::Steps } else { self.amount(purposes[0].0, task)?.0 };
        let empty = match contents {
            Contents::Proofs => proof_batch(&[])?,
            Contents::Steps => step_batch(&[])?,
        };
        let columns = empty.schema().fields().clone();
        shards.finish(&Card { task, splits, contents, columns }.markdown())
    }
}

/// Whether training avoids these first proofs of a split: those of train are not meant to be avoided.
fn is_guarded(purpose: Purpose, seed: u64, proofs: u64) -> bool {
    FixedSet::of(purpose).is_none_or(|set| seed == SEED && proofs <= set.proofs)
}

/// Says so where evaluation data is not kept from training.
fn tell_unguarded(purpose: Purpose, seed: u64, proofs: u64) {
    if let Some(set) = FixedSet::of(purpose).filter(|_| !is_guarded(purpose, seed, proofs)) {
        let FixedSet { name, proofs, .. } = set;
        note(format_args!(
            "warning: training is guarded against the first {proofs} proofs of --split {name} with seed {SEED} only. It may have \
             met the endpoints of the others"
        ));
    }
}

/// A block of rows in their order.
enum Rows {
    Proofs(Vec<ProofRecord>),
    Steps(Vec<StepExample>),
}

/// Everything that stays the same from block to block.
struct Generator {
    task: Task,
    samplers: Vec<Mutex<Sampler>>,
    guard: Option<Guard>,
}

impl Generator {
    fn new(task: Task, seed: u64, purpose: Purpose, threads: usize) -> Result<Self> {
        let sampler = |_| Sampler::new(&task, seed, purpose).map(Mutex::new);
        let samplers = (0..threads).map(sampler).collect::<std::result::Result<_, _>>()?;
        let polynomials = task.writing.setting != Setting::Arithmetic;
        let guard = match (purpose == Purpose::Train).then(Guard::standard).transpose()? {
            Some(mut guard) if polynomials && !GuardScope::All.always_holds(&task.space, task.vars) => {
                guard.extend(&task.space, task.vars)?;
                Some(guard)
            }
            guard => guard,
        };
        if let (Some(guard), true) = (&guard, polynomials) {
            guard.check_room(&task.space, task.vars, seed).map_err(no_room)?;
        }
        Ok(Generator { task, samplers, guard })
    }

    /// Calls `write` with one block of rows after the other. Returns how many proofs the rows are of.
    fn blocks(&self, (contents, wanted): Amount, mut write: impl FnMut(Rows) -> Result<()>) -> Result<u64> {
        let what = match contents {
            Contents::Proofs => "proofs",
            Contents::Steps => "steps",
        };
        let mut progress = WorkProgress::new(what, wanted);
        let (mut first, mut done, mut used) = (0, 0, 0);
        while done < wanted {
            interrupt::check()?;
            let n = BLOCK.min(wanted - done);
            let proofs = self.proofs(first..first + n);
            first += n;
            let (rows, n, begun) = match contents {
                Contents::Proofs => {
                    let n = proofs.len() as u64;
                    (Rows::Proofs(proofs), n, n)
                }
                Contents::Steps => {
                    let steps = steps_of(proofs, wanted - done);
                    let (n, begun) = (steps.len(), steps.iter().filter(|step| step.step == 0).count());
                    (Rows::Steps(steps), n as u64, begun as u64)
                }
            };
            write(rows)?;
            used += begun;
            done += n;
            progress.add(n);
        }
        Ok(used)
    }

    /// The proofs with these indices, made by all threads.
    fn proofs(&self, indices: Range<u64>) -> Vec<ProofRecord> {
        let chunks: Vec<Range<u64>> = (indices.start..indices.end)
            .step_by(CHUNK as usize)
            .map(|start| start..(start + CHUNK).min(indices.end))
            .collect();
        let made: Vec<Vec<ProofRecord>> = chunks.into_par_iter().map(|chunk| self.chunk(chunk)).collect();
        made.into_iter().flatten().collect()
    }

    /// Says how much the guard has refused: it shifts the training data away from the smallest polynomials.
    fn tell_redrawn(&self) {
        let samplers = self.samplers.iter().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        let (rejected, drawn) = samplers.fold((0, 0), |(r, d), s| (r + s.rejected(), d + s.drawn()));
        if self.guard.is_some() {
            let share = 100.0 * rejected as f64 / drawn.max(1) as f64;
            let exercises = self.task.writing.setting == Setting::Arithmetic;
            let what = if exercises { "these exercises are" } else { "their endpoints are" };
            note(format_args!("the guard drew {rejected} of {drawn} again ({share:.1} %): {what} in a fixed set"));
        }
    }

    fn chunk(&self, indices: Range<u64>) -> Vec<ProofRecord> {
        // Each thread has its own sampler, so the lock is always free.
        let mine = &self.samplers[rayon::current_thread_index().unwrap_or(0)];
        let mut sampler = mine.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.guard {
            Some(guard) => indices.filter_map(|index| ProofRecord::guarded(&mut sampler, index, guard)).collect(),
            None => indices.map(|index| ProofRecord::of(&mut sampler, index)).collect(),
        }
    }
}

/// Where training has no room, another split still has.
fn no_room(error: SpaceError) -> Failure {
    match error {
        SpaceError::TooSmall { .. } => bad_input(format!("{error}, or take --split test")),
        error => error.into(),
    }
}

/// The steps of these proofs one by one, at most so many.
fn steps_of(proofs: Vec<ProofRecord>, most: u64) -> Vec<StepExample> {
    let steps = proofs.into_iter().flat_map(|proof| {
        let id = proof.id;
        proof.steps.into_iter().enumerate().map(move |(step, s)| StepExample {
            proof: id.clone(),
            step,
            kind: s.kind,
            input: s.input,
            target: s.target,
            next: s.next,
        })
    });
    steps.take(usize::try_from(most).unwrap_or(usize::MAX)).collect()
}

/// A block as lines of JSON, made by all threads.
fn jsonl(rows: &Rows) -> Result<Vec<u8>> {
    fn lines<T: Serialize>(rows: &[T]) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut bytes, row).context("cannot write JSON")?;
            bytes.push(b'\n');
        }
        Ok(bytes)
    }
    let parts: Vec<Vec<u8>> = match rows {
        Rows::Proofs(proofs) => proofs.par_chunks(CHUNK as usize).map(lines).collect::<anyhow::Result<_>>(),
        Rows::Steps(steps) => steps.par_chunks(CHUNK as usize).map(lines).collect(),
    }?;
    Ok(parts.concat())
}

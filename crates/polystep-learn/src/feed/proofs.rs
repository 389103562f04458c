//! The proofs of a task as blocks. A block holds 16 384 consecutive proofs of the training stream. They pass the guard, are
//! flattened to step examples, and are permuted by (seed, shuffle, block).
//!
//! Several tasks share every block, in equal parts or by their weights, so that each batch mixes them. A [`Selection`] leaves out
//! steps of a block; which ones is decided by (seed, shuffle, block). The block still is the same 16 384 proofs. The tasks of a curriculum have blocks of
//! their own, which are smaller. An exercise of the arithmetic probe is a proof of one step.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use polystep_core::{ClassWeights, Guard, GuardScope, Purpose, Sampler, Setting, SpaceError, Streams, Task, Thinning};

use super::{Block, Generator, Source};
use crate::{ConfigError, LearnError};

/// Proofs in a block. Part of what a seed means: never to be changed.
pub const BLOCK_PROOFS: u64 = 16_384;

/// Which steps of the drawn proofs become examples.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Selection {
    /// A share of each class. With natural weights nothing is left out.
    Mix(ClassWeights),
    /// The first steps of each class that a block has of each task, at most this many.
    First(usize),
}

/// Training proofs of one task or several.
#[derive(Clone, Debug)]
pub struct Proofs {
    tasks: Vec<Task>,
    /// How many of the proofs belong to each task, relative to each other.
    weights: Vec<f64>,
    selection: Selection,
    seed: u64,
    purpose: Purpose,
    longest: usize,
    guard: Arc<Guard>,
    block_proofs: u64,
    shuffled: bool,
    /// Samplers of generators that have ended. Their tables are large, so they are used again.
    pool: Option<Arc<Mutex<Vec<Vec<Sampler>>>>>,
    inside: bool,
}

impl Proofs {
    /// Proofs of a task; examples with more than `longest` tokens on a side, `</s>` included, are skipped.
    pub fn new(task: &Task, seed: u64, longest: usize) -> Result<Self, LearnError> {
        Proofs::mixed(std::slice::from_ref(task), seed, longest)
    }

    /// Proofs of several tasks in equal parts.
    pub fn mixed(tasks: &[Task], seed: u64, longest: usize) -> Result<Self, LearnError> {
        Proofs::guarded(tasks, (GuardScope::default(), &[]), seed, longest)
    }

    /// Proofs of several tasks in equal parts, guarded against the sets of a scope and of further tasks.
    pub fn guarded(
        tasks: &[Task],
        (scope, more): (GuardScope, &[Task]),
        seed: u64,
        longest: usize,
    ) -> Result<Self, LearnError> {
        start_threads()?;
        let guard = guard_for(scope, tasks.iter().chain(more)).map_err(|e| LearnError::Data(e.to_string()))?;
        let purpose = Purpose::Train;
        let (weights, selection) = (vec![1.0; tasks.len()], Selection::Mix(ClassWeights::NATURAL));
        let (tasks, block_proofs, shuffled, inside) = (tasks.to_vec(), BLOCK_PROOFS, true, false);
        let proofs = Proofs {
            tasks,
            weights,
            selection,
            seed,
            purpose,
            longest,
            guard,
            block_proofs,
            shuffled,
            inside,
            pool: None,
        };
        proofs.check_room(&proofs.tasks)?;
        Ok(proofs)
    }

    /// An error if the guard leaves nothing to draw of one of the tasks.
    pub(crate) fn check_room(&self, tasks: &[Task]) -> Result<(), LearnError> {
        let polynomials = tasks.iter().filter(|task| task.writing.setting != Setting::Arithmetic);
        for task in polynomials {
            let room = self.guard.check_room(&task.space, task.vars, self.seed);
            room.map_err(|e| ConfigError::new(e.to_string()))?;
        }
        Ok(())
    }

    /// Proofs of another task under the same guard, seed and length.
    pub(crate) fn of(&self, task: &Task) -> Self {
        Proofs { tasks: vec![task.clone()], weights: vec![1.0], pool: None, ..self.clone() }
    }

    /// The same from the stream of another purpose.
    pub(crate) fn for_purpose(self, purpose: Purpose) -> Self {
        Proofs { purpose, ..self }
    }

    /// The same with other shares of the tasks.
    pub fn weighted(self, weights: Vec<f64>) -> Self {
        debug_assert_eq!(weights.len(), self.tasks.len());
        Proofs { weights, ..self }
    }

    /// The same with a share of each class of steps.
    pub fn mixing(self, weights: ClassWeights) -> Self {
        Proofs { selection: Selection::Mix(weights), ..self }
    }

    /// The same with no more than this many steps of each class in a block, of each task.
    pub(crate) fn first_of_each_class(self, most: usize) -> Self {
        Proofs { selection: Selection::First(most), ..self }
    }

    /// The same whose generators hand their tables on to those that are made after them, where that is often.
    pub(crate) fn pooled(self) -> Self {
        Proofs { pool: Some(Arc::default()), ..self }
    }

    /// How many of a block's proofs belong to each task: whole numbers that add up to the block.
    fn parts(&self) -> Vec<u64> {
        let (n, total) = (self.block_proofs as f64, self.weights.iter().sum::<f64>());
        let mut before = 0.0;
        let part = |weight: &f64| {
            let from = (n * before / total) as u64;
            before += weight;
            (n * before / total) as u64 - from
        };
        self.weights.iter().map(part).collect()
    }

    /// The same in blocks of another size.
    pub(crate) fn with_blocks_of(self, block_proofs: u64) -> Self {
        Proofs { block_proofs, ..self }
    }

    /// The same with a product alone [written as inside a sum](Sampler::inside), or not.
    pub(crate) fn inside(self, inside: bool) -> Self {
        Proofs { inside, ..self }
    }

    /// The same with the examples of a block in the order of their proofs.
    pub fn in_order(self) -> Self {
        Proofs { shuffled: false, ..self }
    }

    /// Whether the guard of a run that was guarded against a scope and these tasks, its own among them, holds the sets of another
    /// task. If not, training may have met some of their endpoints.
    pub fn guards<'t>(scope: GuardScope, tasks: impl IntoIterator<Item = &'t Task>, tested: &Task) -> bool {
        let same = |task: &Task| task.space == tested.space && task.vars == tested.vars;
        always_holds(scope, tested) || tasks.into_iter().any(same)
    }

    /// The endpoints and exercises that training never meets.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// Starts the threads that make the guard, unless they already run. Without this, a failure to start them would panic at their
/// first use.
fn start_threads() -> Result<(), LearnError> {
    match rayon::ThreadPoolBuilder::new().build_global() {
        Err(error) if error.source().is_some() => {
            Err(LearnError::Data(format!("cannot start the threads that make the guard: {error}")))
        }
        _ => Ok(()),
    }
}

/// The guard of a scope, which is made once, together with the sets of the tasks that it does not hold whatever is learned.
fn guard_for<'t>(scope: GuardScope, tasks: impl Iterator<Item = &'t Task>) -> Result<Arc<Guard>, SpaceError> {
    static MADE: [OnceLock<Arc<Guard>>; GuardScope::ALL.len()] = [const { OnceLock::new() }; GuardScope::ALL.len()];
    let known = &MADE[scope as usize];
    let mut guard = match known.get() {
        Some(guard) => Arc::clone(guard),
        None => {
            let made = Arc::new(Guard::of(scope)?);
            Arc::clone(known.get_or_init(|| made))
        }
    };
    for task in tasks.filter(|task| !always_holds(scope, task)) {
        Arc::make_mut(&mut guard).extend(&task.space, task.vars)?;
    }
    Ok(guard)
}

/// Whether a scope holds the sets of a task whatever is learned; every scope has all exercises of the probe.
fn always_holds(scope: GuardScope, task: &Task) -> bool {
    task.writing.setting == Setting::Arithmetic || scope.always_holds(&task.space, task.vars)
}

impl Source for Proofs {
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
        let used = self.pool.as_ref().and_then(|pool| pool.lock().unwrap_or_else(PoisonError::into_inner).pop());
        let sampler = |task| {
            let sampler = Sampler::new(task, self.seed, self.purpose)?;
            Ok(if self.inside { sampler.inside() } else { sampler })
        };
        let make = || self.tasks.iter().map(sampler).collect();
        let samplers = used.map_or_else(make, Ok).map_err(|e: SpaceError| LearnError::Data(e.to_string()))?;
        let shuffle = Streams::new(self.seed, Purpose::Shuffle, "");
        let mix = Streams::new(self.seed, Purpose::Shuffle, "mix");
        Ok(Box::new(ProofGenerator { parts: self.parts(), source: self.clone(), samplers, shuffle, mix }))
    }
}

struct ProofGenerator {
    source: Proofs,
    samplers: Vec<Sampler>,
    /// How many proofs of a block each of them makes.
    parts: Vec<u64>,
    shuffle: Streams,
    mix: Streams,
}

impl Drop for ProofGenerator {
    fn drop(&mut self) {
        if let Some(pool) = &self.source.pool {
            pool.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.samplers));
        }
    }
}

impl Generator for ProofGenerator {
    fn fill(&mut self, index: u64, block: &mut Block, stop: &AtomicBool) {
        let Proofs { longest, guard, shuffled, .. } = &self.source;
        block.clear();
        let parts = self.parts.len() as u64;
        for ((part, &share), sampler) in (0..).zip(&self.parts).zip(&mut self.samplers) {
            sampler.thin(match &self.source.selection {
                Selection::Mix(weights) if weights.is_natural() => None,
                Selection::Mix(weights) => Some(weights.thinning(self.mix.at(index * parts + part))),
                Selection::First(most) => Some(Thinning::first(*most)),
            });
            let before = sampler.rejected();
            for proof in (index * share..(index + 1) * share).take_while(|_| !stop.load(Ordering::Relaxed)) {
                sampler.write_examples(proof, Some(guard), &mut block.examples);
            }
            block.count(share, sampler.rejected() - before);
        }
        match shuffled {
            true => block.shuffle(*longest, &mut self.shuffle.at(index)),
            false => block.put_in_order(*longest),
        }
    }
}

//! The proofs of a task as blocks. A block holds 16 384 consecutive proofs of the training stream. They pass the guard, are
//! flattened to step examples, and are permuted by (seed, shuffle, block).
//!
//! Several tasks share every block in equal parts, so that each batch mixes them. The tasks of a curriculum have blocks of
//! their own, which are smaller. An exercise of the arithmetic probe is a proof of one step.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use polystep_core::{Guard, Purpose, Sampler, Setting, SpaceError, Streams, Task};

use super::{Block, Generator, Source};
use crate::{ConfigError, LearnError};

/// Proofs in a block. Part of what a seed means: never to be changed.
pub const BLOCK_PROOFS: u64 = 16_384;

/// Training proofs of one task or several.
#[derive(Clone, Debug)]
pub struct Proofs {
    tasks: Vec<Task>,
    seed: u64,
    purpose: Purpose,
    longest: usize,
    guard: Arc<Guard>,
    block_proofs: u64,
    shuffled: bool,
}

impl Proofs {
    /// Proofs of a task; examples with more than `longest` tokens on a side, `</s>` included, are skipped.
    pub fn new(task: &Task, seed: u64, longest: usize) -> Result<Self, LearnError> {
        Proofs::mixed(std::slice::from_ref(task), seed, longest)
    }

    /// Proofs of several tasks in equal parts.
    pub fn mixed(tasks: &[Task], seed: u64, longest: usize) -> Result<Self, LearnError> {
        Proofs::guarded(tasks, &[], seed, longest)
    }

    /// Proofs of several tasks in equal parts, guarded against the sets of further tasks too.
    pub fn guarded(tasks: &[Task], more: &[Task], seed: u64, longest: usize) -> Result<Self, LearnError> {
        start_threads()?;
        let guard = guard_for(tasks.iter().chain(more)).map_err(|e| LearnError::Data(e.to_string()))?;
        let purpose = Purpose::Train;
        let (all, block_proofs) = (tasks.to_vec(), BLOCK_PROOFS);
        let proofs = Proofs { tasks: all, seed, purpose, longest, guard, block_proofs, shuffled: true };
        proofs.check_room(tasks)?;
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
        Proofs { tasks: vec![task.clone()], ..self.clone() }
    }

    /// The same from the stream of another purpose.
    pub(crate) fn for_purpose(self, purpose: Purpose) -> Self {
        Proofs { purpose, ..self }
    }

    /// The same in blocks of another size.
    pub(crate) fn with_blocks_of(self, block_proofs: u64) -> Self {
        Proofs { block_proofs, ..self }
    }

    /// The same with the examples of a block in the order of their proofs.
    pub fn in_order(self) -> Self {
        Proofs { shuffled: false, ..self }
    }

    /// Whether the guard of a run that was guarded against these tasks, its own among them, holds the sets of another task. If not,
    /// training may have met some of their endpoints.
    pub fn guards<'t>(tasks: impl IntoIterator<Item = &'t Task>, tested: &Task) -> bool {
        let same = |task: &Task| task.space == tested.space && task.vars == tested.vars;
        is_standard(tested) || tasks.into_iter().any(same)
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

/// The standard guard, which is made once, together with the sets of the spaces that it does not know.
fn guard_for<'t>(tasks: impl Iterator<Item = &'t Task>) -> Result<Arc<Guard>, SpaceError> {
    static STANDARD: OnceLock<Arc<Guard>> = OnceLock::new();
    let mut guard = match STANDARD.get() {
        Some(guard) => Arc::clone(guard),
        None => {
            let made = Arc::new(Guard::standard()?);
            Arc::clone(STANDARD.get_or_init(|| made))
        }
    };
    for task in tasks.filter(|task| !is_standard(task)) {
        Arc::make_mut(&mut guard).extend(&task.space, task.vars)?;
    }
    Ok(guard)
}

/// Whether the standard guard holds the sets of a task; it has all exercises of the probe.
fn is_standard(task: &Task) -> bool {
    task.writing.setting == Setting::Arithmetic || Guard::is_standard(&task.space, task.vars)
}

impl Source for Proofs {
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
        let samplers = self.tasks.iter().map(|task| Sampler::new(task, self.seed, self.purpose));
        let samplers = samplers.collect::<Result<_, _>>().map_err(|e| LearnError::Data(e.to_string()))?;
        let shuffle = Streams::new(self.seed, Purpose::Shuffle, "");
        Ok(Box::new(ProofGenerator { source: self.clone(), samplers, shuffle }))
    }
}

struct ProofGenerator {
    source: Proofs,
    samplers: Vec<Sampler>,
    shuffle: Streams,
}

impl Generator for ProofGenerator {
    fn fill(&mut self, index: u64, block: &mut Block, stop: &AtomicBool) {
        let Proofs { longest, guard, block_proofs: n, shuffled, .. } = &self.source;
        block.clear();
        let parts = self.samplers.len() as u64;
        for (part, sampler) in (0..).zip(&mut self.samplers) {
            // Whole numbers that add up to the block.
            let share = n * (part + 1) / parts - n * part / parts;
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

//! The paper's task as a row of blocks: 16 384 consecutive proofs of the training stream each, guarded, flattened to step
//! examples and permuted by (seed, shuffle, block). An exercise of the arithmetic probe is a proof of one step.

use std::sync::{Arc, OnceLock};

use polystep_core::{Guard, Purpose, Sampler, Setting, Space, SpaceError, Streams, Task};

use super::{Block, Generator, Source};
use crate::LearnError;

/// Proofs in a block. Part of what a seed means: never to be changed.
pub const BLOCK_PROOFS: u64 = 16_384;

/// Training proofs of a task.
#[derive(Clone, Debug)]
pub struct Proofs {
    task: Task,
    seed: u64,
    longest: usize,
    guard: Arc<Guard>,
    block_proofs: u64,
}

impl Proofs {
    /// Proofs of a task; examples with more than `longest` tokens on a side, `</s>` included, are skipped.
    pub fn new(task: &Task, seed: u64, longest: usize) -> Result<Self, LearnError> {
        let guard = guard_for(task).map_err(|e| LearnError::Data(e.to_string()))?;
        Ok(Proofs { task: task.clone(), seed, longest, guard, block_proofs: BLOCK_PROOFS })
    }

    /// The same with smaller blocks, for tests.
    #[cfg(test)]
    pub(crate) fn with_blocks_of(self, block_proofs: u64) -> Self {
        Proofs { block_proofs, ..self }
    }

    /// The endpoints and exercises that training never meets.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// The standard guard, made once; and the sets of a space that it does not know.
fn guard_for(task: &Task) -> Result<Arc<Guard>, SpaceError> {
    let Task { space, vars, setting, .. } = task;
    static STANDARD: OnceLock<Arc<Guard>> = OnceLock::new();
    let standard = STANDARD.get_or_init(|| Arc::new(Guard::standard()));
    let known = *vars <= 2 && Space::named(&space.key).is_ok_and(|named| named == *space);
    if known || *setting == Setting::Arithmetic {
        return Ok(Arc::clone(standard));
    }
    let mut guard = Guard::clone(standard);
    guard.extend(space, *vars)?;
    Ok(Arc::new(guard))
}

impl Source for Proofs {
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
        let sampler = Sampler::new(&self.task, self.seed, Purpose::Train);
        let sampler = sampler.map_err(|e| LearnError::Data(e.to_string()))?;
        let shuffle = Streams::new(self.seed, Purpose::Shuffle, "");
        Ok(Box::new(ProofGenerator { source: self.clone(), sampler, shuffle }))
    }
}

struct ProofGenerator {
    source: Proofs,
    sampler: Sampler,
    shuffle: Streams,
}

impl Generator for ProofGenerator {
    fn fill(&mut self, index: u64, block: &mut Block) {
        let Proofs { longest, guard, block_proofs: n, .. } = &self.source;
        block.clear();
        let before = self.sampler.rejected();
        for proof in index * n..(index + 1) * n {
            self.sampler.write_examples(proof, Some(guard), &mut block.examples);
        }
        block.count(*n, self.sampler.rejected() - before);
        block.shuffle(*longest, &mut self.shuffle.at(index));
    }
}

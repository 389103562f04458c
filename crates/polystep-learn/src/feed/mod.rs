//! Where batches come from. Blocks of proofs are made in any thread, in any order; each is a function of its number alone,
//! and so is the row of batches cut from them. The data position (block, offset) is all that a checkpoint needs.
//!
//! [`Proofs`] is the paper's task. A mixture of tasks is another [`Source`] (its blocks are functions of their numbers); a
//! curriculum ([`crate::curriculum::Lessons`]) is another [`Feed`] (it watches the training).

mod background;
mod block;
mod cut;
mod proofs;
mod row;

pub use background::Background;
pub use block::{Block, Counts};
pub use cut::{Cutter, Position, fits, push_example};
pub use proofs::{BLOCK_PROOFS, Proofs};
pub use row::Row;

use polystep_engine::Batch;

use crate::LearnError;
use crate::curriculum::Course;
use crate::log::TaskLine;
use crate::train::{EvalSet, Scores};

/// Makes blocks, in a thread of its own.
pub trait Generator: Send {
    /// Makes block `index`: always the same, whatever was made before.
    fn fill(&mut self, index: u64, block: &mut Block);
}

/// A row of blocks.
pub trait Source: Send + Sync {
    /// A generator for one thread.
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError>;
}

/// A row of batches.
pub trait Feed {
    /// The next batch.
    fn next(&mut self) -> Result<&Batch, LearnError>;

    /// Where the batch after the last one given begins.
    fn position(&self) -> Position;

    /// What was drawn up to there.
    fn counts(&self) -> Counts;

    /// Where a curriculum stands.
    fn course(&self) -> Option<&Course> {
        None
    }

    /// What the model is to be examined on before the next batch, if the feed wants to know how it does.
    fn exam(&mut self) -> Result<Option<EvalSet>, LearnError> {
        Ok(None)
    }

    /// Takes the exam's scores after a step; says how each task stands.
    fn graded(&mut self, _step: u64, _scores: &Scores) -> Vec<TaskLine> {
        Vec::new()
    }
}

/// The threads of a feed end only when it does.
pub(crate) fn gone() -> LearnError {
    LearnError::Data("the threads that make the data have stopped; this is a bug".into())
}

#[cfg(test)]
mod tests;

//! Where batches come from.
//!
//! Blocks of proofs are made in any thread, in any order. Each block depends on its number alone, and so do the batches cut
//! from the blocks. So the data position (block, offset) is all that a checkpoint needs.
//!
//! [`Proofs`] makes the blocks of one task or of several, [`Dataset`] reads them from files. [`BatchQueue`] cuts them into batches; [`Lessons`] cuts them as a
//! curriculum wants them, and [`FocusedBatches`] with shares that follow the errors, both of which depend on how the training
//! goes. All three are a [`Feed`].
//!
//! A caller that waits for data passes a function that says when to give up. In some spaces there is so little to draw that a block
//! takes hours, and even then a signal or a budget in minutes must end the wait.

mod batches;
mod block;
mod course;
mod cut;
mod data_files;
mod dataset;
mod focus;
mod lessons;
mod proofs;
mod queue;
mod sets;

pub use batches::BatchQueue;
pub use block::{Block, Counts};
pub use course::{Course, Syllabus};
pub use cut::{ExampleReader, Position, fits, push_example};
pub use dataset::{Dataset, DatasetSummary};
pub use focus::{Focus, FocusedBatches};
pub use lessons::{Curriculum, Lessons};
pub use proofs::{BLOCK_PROOFS, Proofs};
pub use queue::BlockQueue;
pub use sets::{EvalSet, EvalStep, Questions};

use std::sync::atomic::AtomicBool;

use polystep_core::ByClass;
use polystep_engine::Batch;

use crate::LearnError;
use crate::curriculum::FocusState;
use polystep_record::{LogLine, Scores};

/// Makes blocks, in a thread of its own.
pub trait Generator: Send {
    /// Makes block `index`. It is always the same block, whatever was made before. When `stop` is raised the block is not
    /// needed any more, and may be left incomplete.
    fn fill(&mut self, index: u64, block: &mut Block, stop: &AtomicBool);
}

/// A sequence of blocks.
pub trait Source: Send + Sync {
    /// A generator for one thread.
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError>;
}

/// When something happened in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Optimiser steps done.
    pub step: u64,
    /// Examples seen.
    pub examples: u64,
    /// Seconds of training.
    pub seconds: f64,
}

/// A sequence of batches.
pub trait Feed {
    /// The next batch. None if `give_up` became true before there was one; then the position has not moved.
    fn next_unless(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Batch>, LearnError>;

    /// The next batch, however long it takes.
    fn next(&mut self) -> Result<&Batch, LearnError> {
        self.next_unless(&|| false)?.ok_or_else(threads_stopped)
    }

    /// Where the batch after the last one given begins.
    fn position(&self) -> Position;

    /// What was drawn up to there.
    fn counts(&self) -> Counts;

    /// How many examples of each class were given up to there, if they are counted.
    fn seen(&self) -> ByClass<u64> {
        ByClass::default()
    }

    /// Where a curriculum stands.
    fn course(&self) -> Option<&Course> {
        None
    }

    /// Where a stream that follows the errors stands.
    fn focus(&self) -> Option<&FocusState> {
        None
    }

    /// What the model is to be examined on before the next batch. None if no exam is due, or if `give_up` became true.
    fn exam(&mut self, _give_up: &dyn Fn() -> bool) -> Result<Option<EvalSet>, LearnError> {
        Ok(None)
    }

    /// Takes the exam's scores, and says how each task or class stands: a line for the log.
    fn graded(&mut self, _at: Moment, _scores: &Scores) -> Result<Option<LogLine>, LearnError> {
        Ok(None)
    }
}

/// The threads of a feed end only when it does.
fn threads_stopped() -> LearnError {
    LearnError::Data("the threads that make the data have stopped; this is a bug".into())
}

#[cfg(test)]
mod tests;

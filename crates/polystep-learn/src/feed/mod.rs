//! Where batches come from. Blocks of proofs are made in any thread, in any order; each is a function of its number alone,
//! and so is the row of batches cut from them. The data position (block, offset) is all that a checkpoint needs.
//!
//! [`Proofs`] is the paper's task. A curriculum or a mixture of tasks is another [`Source`] (if its blocks are functions of
//! their numbers) or another [`Feed`] (if it watches the training).

mod background;
mod block;
mod cut;
mod proofs;

pub use background::Background;
pub use block::{Block, Counts};
pub use cut::{Cutter, Position, fits, push_example};
pub use proofs::{BLOCK_PROOFS, Proofs};

use polystep_engine::Batch;

use crate::LearnError;

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
}

#[cfg(test)]
mod tests;

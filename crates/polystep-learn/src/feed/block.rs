//! A block: the step examples of some consecutive proofs in one flat buffer, and the order in which training sees them.

use std::fmt::Display;

use polystep_core::{ExampleSpan, Examples, Stream};
use serde::{Deserialize, Serialize};

use crate::LearnError;

/// How much was drawn, and how much of it training never sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Polynomials (or exercises) that became proofs.
    pub proofs: u64,
    /// Polynomials drawn again because the guard knows their endpoint, or exercises that it knows.
    pub rejected: u64,
    /// Examples longer than the model can take.
    pub skipped: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.proofs += other.proofs;
        self.rejected += other.rejected;
        self.skipped += other.skipped;
    }
}

/// The examples of one block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// All that was drawn, too long ones included.
    pub examples: Examples,
    /// Place in training → example.
    order: Vec<u32>,
    counts: Counts,
    /// Why it could not be made.
    failed: Option<String>,
}

impl Block {
    /// Empties it, keeping the memory.
    pub fn clear(&mut self) {
        self.examples.clear();
        self.order.clear();
        self.counts = Counts::default();
        self.failed = None;
    }

    /// Says why the block could not be made. It is then empty.
    pub fn fail(&mut self, why: String) {
        self.clear();
        self.failed = Some(why);
    }

    /// Counts examples that are too long.
    pub fn skip(&mut self, examples: u64) {
        self.counts.skipped += examples;
    }

    /// Counts proofs and rejections.
    pub fn count(&mut self, proofs: u64, rejected: u64) {
        self.counts.proofs += proofs;
        self.counts.rejected += rejected;
    }

    /// Puts the examples in the order of their proofs. Those with more than `longest` tokens on a side, `</s>` included, are left
    /// out, and counted as skipped.
    pub fn put_in_order(&mut self, longest: usize) {
        let spans = self.examples.spans.iter().enumerate();
        let short = spans.filter(|(_, s)| usize::from(s.src_len.max(s.tgt_len)) < longest);
        self.order.clear();
        self.order.extend(short.map(|(i, _)| i as u32));
        self.counts.skipped += (self.examples.len() - self.order.len()) as u64;
    }

    /// Orders the examples at random, after the long ones are left out.
    pub fn shuffle(&mut self, longest: usize, stream: &mut Stream) {
        self.put_in_order(longest);
        stream.shuffle(&mut self.order);
    }

    /// Number of examples that training sees.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// An error if the block has no examples, or fewer than `used`. `who` names the task in the message.
    pub fn check(&self, who: impl Display, used: u64) -> Result<(), LearnError> {
        if let Some(why) = &self.failed {
            return Err(LearnError::Data(why.clone()));
        }
        if self.is_empty() {
            let why = "its polynomials belong to the evaluation sets, are too long for model.max_positions, or have no \
                       step that [data.mix] keeps";
            return Err(LearnError::Data(format!("{who} has no examples to learn from: {why}")));
        }
        if used > self.len() as u64 {
            let why = format!("{used} examples of a block are used, and it has {}", self.len());
            return Err(LearnError::Data(format!("the checkpoint's data position is wrong: {why}")));
        }
        Ok(())
    }

    /// What was drawn.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Which example is the i-th that training sees.
    pub fn span(&self, i: usize) -> &ExampleSpan {
        &self.examples.spans[self.order[i] as usize]
    }

    /// Source and target of the i-th example that training sees.
    pub fn example(&self, i: usize) -> (&[u8], &[u8]) {
        let i = self.order[i] as usize;
        (self.examples.src(i), self.examples.tgt(i))
    }
}

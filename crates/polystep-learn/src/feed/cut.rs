//! Batches cut from blocks, across their borders.
//!
//! A batch has `limits.sequences` examples. It has fewer where the next one would exceed the tokens that memory was set up
//! for; the limits are chosen so that this almost never happens. Where a batch ends depends on data and limits alone.

use polystep_core::token;
use polystep_engine::{Batch, Limits, Packed};
use serde::{Deserialize, Serialize};

use super::{Block, BlockQueue, Counts, threads_stopped};
use crate::LearnError;

/// The next example: the `offset`-th of its block, in training's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The block.
    pub block: u64,
    /// How many of its examples are used already.
    pub offset: u64,
}

impl Position {
    /// How many proofs were drawn up to here, in blocks of this many; none if the number is too large.
    pub(crate) fn proofs(&self, block_proofs: u64) -> Option<u64> {
        self.block.checked_add(u64::from(self.offset > 0))?.checked_mul(block_proofs)
    }
}

/// Appends one example: source and `</s>`; `<s>` and target; target and `</s>`.
pub fn push_example(batch: &mut Batch, src: &[u8], tgt: &[u8]) {
    push(&mut batch.src, None, src, Some(token::EOS));
    push(&mut batch.tgt, Some(token::BOS), tgt, None);
    batch.labels.extend(tgt.iter().map(|&t| i32::from(t)));
    batch.labels.push(i32::from(token::EOS));
}

fn push(packed: &mut Packed, first: Option<u8>, tokens: &[u8], last: Option<u8>) {
    packed.push(first.into_iter().chain(tokens.iter().copied()).chain(last).map(i32::from));
}

/// Whether one more example fits.
pub fn fits(batch: &Batch, limits: &Limits, src: &[u8], tgt: &[u8]) -> bool {
    batch.src.sequences() < limits.sequences
        && batch.src.tokens() + src.len() < limits.src_tokens
        && batch.tgt.tokens() + tgt.len() < limits.tgt_tokens
}

/// Cuts batches from blocks that it is given one after the other.
#[derive(Clone, Debug)]
pub struct Cutter {
    limits: Limits,
    /// The next example.
    pub position: Position,
    /// What was drawn up to the position. A block counts as a whole as soon as one of its examples is used.
    pub counts: Counts,
}

impl Cutter {
    /// Starts at a position. `counts` says what was drawn before it.
    pub fn new(limits: Limits, position: Position, counts: Counts) -> Self {
        Cutter { limits, position, counts }
    }

    /// Fills a batch from the blocks that begin at the position.
    pub(super) fn fill(&mut self, blocks: &mut BlockQueue, batch: &mut Batch) -> Result<(), LearnError> {
        loop {
            let block = blocks.block(&|| false)?.ok_or_else(threads_stopped)?;
            block.check("the run", self.position.offset)?;
            if self.take(block, batch) {
                return Ok(());
            }
            blocks.pass();
        }
    }

    /// Puts examples of the block at the position into the batch until the batch is full (`true`) or the block is used up.
    pub fn take(&mut self, block: &Block, batch: &mut Batch) -> bool {
        loop {
            let at = self.position.offset as usize;
            if at >= block.len() {
                if at == 0 {
                    self.counts += block.counts();
                }
                self.position = Position { block: self.position.block + 1, offset: 0 };
                return false;
            }
            let (src, tgt) = block.example(at);
            if !fits(batch, &self.limits, src, tgt) {
                return true;
            }
            if at == 0 {
                self.counts += block.counts();
            }
            push_example(batch, src, tgt);
            self.position.offset += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use polystep_core::{ExampleSpan, Purpose, StepKind, Streams};

    use super::*;

    /// Examples of these lengths, in an order that only a shuffle of equals leaves open.
    fn block(lengths: &[(u16, u16)], longest: usize) -> Block {
        let mut block = Block::default();
        for (step, &(src_len, tgt_len)) in lengths.iter().enumerate() {
            let start = block.examples.tokens.len() as u32;
            let span = ExampleSpan { start, src_len, tgt_len, kind: StepKind::Facstep, proof: 0, step: step as u16 };
            block.examples.spans.push(span);
            block.examples.tokens.extend(vec![5; usize::from(src_len + tgt_len)]);
        }
        block.count(1, 2);
        block.shuffle(longest, &mut Streams::new(1, Purpose::Shuffle, "").at(0));
        block
    }

    const LIMITS: Limits = Limits { sequences: 3, src_tokens: 20, tgt_tokens: 50 };

    #[test]
    fn an_example_in_a_batch() {
        let mut batch = Batch::default();
        batch.clear();
        push_example(&mut batch, &[4, 5], &[6]);
        assert_eq!((batch.src.ids, batch.tgt.ids, batch.labels), (vec![4, 5, 2], vec![1, 6], vec![6, 2]));
        assert_eq!((batch.src.cu, batch.tgt.pos), (vec![0, 3], vec![0, 1]));
    }

    #[test]
    fn batches_run_across_borders() {
        let blocks = [block(&[(3, 3); 2], 100), block(&[(3, 3); 4], 100)];
        let mut cutter = Cutter::new(LIMITS, Position::default(), Counts::default());
        let mut batch = Batch::default();
        batch.clear();
        assert!(!cutter.take(&blocks[0], &mut batch));
        assert_eq!((cutter.position, cutter.counts.rejected), (Position { block: 1, offset: 0 }, 2));
        assert!(cutter.take(&blocks[1], &mut batch));
        assert_eq!((batch.src.sequences(), cutter.position.offset), (3, 1));
        assert_eq!(cutter.counts, Counts { proofs: 2, rejected: 4, skipped: 0 });
        batch.clear();
        // The last three fill a batch, and the block is used up at the same time.
        assert!(!cutter.take(&blocks[1], &mut batch));
        assert!(cutter.take(&blocks[0], &mut batch));
        assert_eq!((batch.src.sequences(), cutter.position), (3, Position { block: 2, offset: 0 }));
        assert_eq!(cutter.counts.proofs, 2);
    }

    #[test]
    fn a_batch_ends_where_the_tokens_do() {
        // Ten source tokens each with `</s>`: two of them fill the 20 there is room for.
        let block = block(&[(9, 1); 4], 100);
        let mut cutter = Cutter::new(LIMITS, Position::default(), Counts::default());
        let mut batch = Batch::default();
        batch.clear();
        assert!(cutter.take(&block, &mut batch));
        assert_eq!((batch.src.sequences(), batch.src.tokens()), (2, 20));
    }

    #[test]
    fn what_is_too_long_is_skipped_and_counted() {
        let block = block(&[(4, 4), (5, 1), (1, 5)], 5);
        assert_eq!((block.len(), block.counts().skipped), (1, 2));
        assert_eq!(block.example(0).0.len(), 4);
    }
}

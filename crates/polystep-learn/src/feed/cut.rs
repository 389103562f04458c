//! Examples read one after the other from blocks, and put into batches.
//!
//! A batch has `limits.sequences` examples. It has fewer where the next one would exceed the tokens that memory was set up
//! for; the limits are chosen so that this almost never happens. Where a batch ends depends on data and limits alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use polystep_core::{StepClass, token};
use polystep_engine::{Batch, Limits, Packed};
use serde::{Deserialize, Serialize};

use super::{Block, BlockQueue, Counts, Source};
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

/// An example as it is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadExample<'a> {
    /// Source tokens.
    pub src: &'a [u8],
    /// Target tokens.
    pub tgt: &'a [u8],
    /// How hard it is.
    pub class: StepClass,
    /// Whether it is the first of its block.
    pub first: bool,
}

/// Reads one example of a source after the other, across the borders of its blocks.
pub struct ExampleReader {
    /// Who learns from the examples, for errors.
    who: String,
    blocks: BlockQueue,
    /// The next example.
    pub position: Position,
}

impl ExampleReader {
    /// Starts at a position. `threads` make the blocks.
    pub fn start(who: String, source: &dyn Source, position: Position, threads: usize) -> Result<Self, LearnError> {
        Ok(ExampleReader { who, blocks: BlockQueue::start(source, position.block, threads)?, position })
    }

    /// When this is raised, blocks are left incomplete.
    pub(super) fn stop(&self) -> Arc<AtomicBool> {
        self.blocks.stop()
    }

    /// The example at the position; none if `give_up` became true before it was made.
    pub fn example(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<ReadExample<'_>>, LearnError> {
        let Some(block) = self.blocks.block(give_up)? else { return Ok(None) };
        block.check(&self.who, self.position.offset)?;
        if self.position.offset == block.len() as u64 {
            self.blocks.pass();
            self.position = Position { block: self.position.block + 1, offset: 0 };
        }
        let Some(block) = self.blocks.block(give_up)? else { return Ok(None) };
        block.check(&self.who, 0)?;
        let offset = self.position.offset as usize;
        let (src, tgt) = block.example(offset);
        Ok(Some(ReadExample { src, tgt, class: block.span(offset).class, first: offset == 0 }))
    }

    /// Moves to the next example. What was drawn for a block is counted with the block's first example.
    pub fn advance(&mut self) -> Counts {
        let first = self.position.offset == 0;
        self.position.offset += 1;
        self.blocks.current().filter(|_| first).map_or_else(Counts::default, Block::counts)
    }
}

#[cfg(test)]
mod tests {
    use polystep_core::{ExampleSpan, Purpose, StepKind, Streams};

    use super::*;
    use crate::feed::{BatchQueue, Feed, Generator};

    /// Examples of these lengths, in an order that only a shuffle of equals leaves open.
    fn block(lengths: &[(u16, u16)], longest: usize) -> Block {
        let mut block = Block::default();
        for (step, &(src_len, tgt_len)) in lengths.iter().enumerate() {
            let start = block.examples.tokens.len() as u32;
            let span = ExampleSpan {
                start,
                src_len,
                tgt_len,
                kind: StepKind::Facstep,
                class: StepClass::Facstep,
                proof: 0,
                step: step as u16,
            };
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

    /// A source of these blocks, again and again.
    struct Blocks(Vec<Block>);

    impl Source for Blocks {
        fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
            Ok(Box::new(Blocks(self.0.clone())))
        }
    }

    impl Generator for Blocks {
        fn fill(&mut self, index: u64, block: &mut Block, _: &AtomicBool) {
            *block = self.0[index as usize % self.0.len()].clone();
        }
    }

    fn batches(blocks: Vec<Block>) -> BatchQueue {
        BatchQueue::start(&Blocks(blocks), LIMITS, Position::default(), Counts::default(), 1).unwrap()
    }

    #[test]
    fn batches_run_across_borders() {
        let mut batches = batches(vec![block(&[(3, 3); 2], 100), block(&[(3, 3); 4], 100)]);
        assert_eq!(batches.next().unwrap().src.sequences(), 3);
        assert_eq!(batches.position(), Position { block: 1, offset: 1 });
        assert_eq!(batches.counts(), Counts { proofs: 2, rejected: 4, skipped: 0 });
        // The last three fill a batch, and the block is used up at the same time. The next one is not counted yet.
        assert_eq!(batches.next().unwrap().src.sequences(), 3);
        assert_eq!((batches.position(), batches.counts().proofs), (Position { block: 2, offset: 0 }, 2));
        assert_eq!(batches.next().unwrap().src.sequences(), 3);
        assert_eq!((batches.position(), batches.counts().proofs), (Position { block: 3, offset: 1 }, 4));
    }

    #[test]
    fn a_batch_ends_where_the_tokens_do() {
        // Ten source tokens each with `</s>`: two of them fill the 20 there is room for.
        let mut batches = batches(vec![block(&[(9, 1); 4], 100)]);
        let batch = batches.next().unwrap();
        assert_eq!((batch.src.sequences(), batch.src.tokens()), (2, 20));
    }

    #[test]
    fn what_is_too_long_is_skipped_and_counted() {
        let block = block(&[(4, 4), (5, 1), (1, 5)], 5);
        assert_eq!((block.len(), block.counts().skipped), (1, 2));
        assert_eq!(block.example(0).0.len(), 4);
    }
}

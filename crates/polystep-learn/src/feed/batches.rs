//! Batches made ahead: a background thread cuts them from the blocks of a source.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polystep_core::ByClass;
use polystep_engine::{Batch, Limits};

use super::cut::ReadExample;
use super::queue::Maker;
use super::{Counts, ExampleReader, Feed, Position, Source, fits, push_example, threads_stopped};
use crate::LearnError;

/// How many batches may wait for training. At 2 000 steps a second they last 30 ms, longer than the step from one block to the next.
const AHEAD: usize = 64;

/// A batch and where its successor begins.
#[derive(Default)]
struct Delivery {
    batch: Batch,
    position: Position,
    counts: Counts,
    seen: ByClass<u64>,
    /// Whether the batch is empty, because the round is over.
    over: bool,
}

/// The batches of a source, with the threads that make them.
pub struct BatchQueue {
    current: Delivery,
    batches: Maker<Delivery>,
    stop: Arc<AtomicBool>,
}

impl BatchQueue {
    /// Starts `threads` generators (at least one) at a position. `counts` says what was drawn before it.
    pub fn start(
        source: &dyn Source,
        limits: Limits,
        position: Position,
        counts: Counts,
        threads: usize,
    ) -> Result<Self, LearnError> {
        BatchQueue::resume(source, limits, position, (counts, ByClass::default()), threads)
    }

    /// The same for a run that counts the examples of each class, from those it has seen before.
    pub fn resume(
        source: &dyn Source,
        limits: Limits,
        position: Position,
        counted: (Counts, ByClass<u64>),
        threads: usize,
    ) -> Result<Self, LearnError> {
        BatchQueue::until(source, limits, (position, u64::MAX), counted, threads)
    }

    /// The same for a round, which is over at the first border of blocks after `end` examples. What is left of a batch there
    /// is dropped.
    pub(super) fn until(
        source: &dyn Source,
        limits: Limits,
        (position, end): (Position, u64),
        (mut counts, mut seen): (Counts, ByClass<u64>),
        threads: usize,
    ) -> Result<Self, LearnError> {
        let mut reader = ExampleReader::start("the run".into(), source, position, threads)?;
        let (stop, current) =
            (reader.stop(), Delivery { batch: Batch::default(), position, counts, seen, over: false });
        let mut delivered = seen;
        let cut = move |next: &mut Delivery| {
            let batch = &mut next.batch;
            batch.clear();
            loop {
                let example = reader.example(&|| false)?.ok_or_else(threads_stopped)?;
                let ReadExample { src, tgt, class, first } = example;
                let full = !fits(batch, &limits, src, tgt);
                if full {
                    delivered = seen;
                }
                next.over = !full && first && delivered.0.iter().sum::<u64>() >= end;
                if full || next.over {
                    (next.position, next.counts, next.seen) = (reader.position, counts, delivered);
                    return Ok(());
                }
                push_example(batch, src, tgt);
                *seen.at(class) += 1;
                // A block counts as a whole as soon as one of its examples is used.
                counts += reader.advance();
            }
        };
        Ok(BatchQueue { current, batches: Maker::start("batches".into(), AHEAD, cut)?, stop })
    }
}

impl BatchQueue {
    /// Moves to the next batch. False if `give_up` became true before there was one.
    pub(super) fn advance(&mut self, give_up: &dyn Fn() -> bool) -> Result<bool, LearnError> {
        let Some(next) = self.batches.next(give_up)? else { return Ok(false) };
        self.batches.give_back(std::mem::replace(&mut self.current, next));
        Ok(true)
    }

    /// The current batch.
    pub(super) fn batch(&self) -> &Batch {
        &self.current.batch
    }

    /// Whether the round is over: then there is no batch.
    pub(super) fn is_over(&self) -> bool {
        self.current.over
    }
}

impl Feed for BatchQueue {
    fn next_unless(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Batch>, LearnError> {
        Ok(self.advance(give_up)?.then_some(&self.current.batch))
    }

    fn position(&self) -> Position {
        self.current.position
    }

    fn counts(&self) -> Counts {
        self.current.counts
    }

    fn seen(&self) -> ByClass<u64> {
        self.current.seen
    }
}

impl Drop for BatchQueue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

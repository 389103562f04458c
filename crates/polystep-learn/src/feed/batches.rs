//! Batches made ahead: a background thread cuts them from the blocks of a source.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polystep_engine::{Batch, Limits};

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
}

/// The batches of a source, with the threads that make them.
pub struct BatchQueue {
    current: Delivery,
    batches: Maker<Delivery>,
    stop: Arc<AtomicBool>,
}

impl BatchQueue {
    /// Starts `threads` generators (at least one) at a position.
    pub fn start(
        source: &dyn Source,
        limits: Limits,
        position: Position,
        mut counts: Counts,
        threads: usize,
    ) -> Result<Self, LearnError> {
        let mut reader = ExampleReader::start("the run".into(), source, position, threads)?;
        let (stop, current) = (reader.stop(), Delivery { batch: Batch::default(), position, counts });
        let cut = move |Delivery { batch, position, counts: drawn }: &mut Delivery| {
            batch.clear();
            loop {
                let (src, tgt) = reader.example(&|| false)?.ok_or_else(threads_stopped)?;
                if !fits(batch, &limits, src, tgt) {
                    (*position, *drawn) = (reader.position, counts);
                    return Ok(());
                }
                push_example(batch, src, tgt);
                // A block counts as a whole as soon as one of its examples is used.
                counts += reader.advance();
            }
        };
        Ok(BatchQueue { current, batches: Maker::start("batches".into(), AHEAD, cut)?, stop })
    }
}

impl Feed for BatchQueue {
    fn next_unless(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Batch>, LearnError> {
        let Some(next) = self.batches.next(give_up)? else { return Ok(None) };
        self.batches.give_back(std::mem::replace(&mut self.current, next));
        Ok(Some(&self.current.batch))
    }

    fn position(&self) -> Position {
        self.current.position
    }

    fn counts(&self) -> Counts {
        self.current.counts
    }
}

impl Drop for BatchQueue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

//! Batches made ahead: a background thread cuts them from the blocks of a source. Used batches go back to it, as blocks go back to
//! their makers: after a short while nothing is allocated any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use polystep_engine::{Batch, Limits};

use super::queue::{receive, spawn};
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

/// A batch, or why there is none.
type Delivered = Result<Delivery, LearnError>;

/// The batches of a source, with the threads that make them.
pub struct BatchQueue {
    current: Delivery,
    /// Where batches come from, and where used ones go back to.
    channels: Option<(Receiver<Delivered>, Sender<Delivery>)>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl BatchQueue {
    /// Starts `threads` generators (at least one) at a position.
    pub fn start(
        source: &dyn Source,
        limits: Limits,
        position: Position,
        counts: Counts,
        threads: usize,
    ) -> Result<Self, LearnError> {
        let reader = ExampleReader::start("the run".into(), source, position, threads)?;
        let stop = reader.stop();
        let (send, full) = sync_channel(AHEAD);
        let (used, empties) = channel();
        let cutter = Cutter { reader, limits, counts };
        let thread = spawn("batches".into(), move || cutter.work(&send, &empties))?;
        let current = Delivery { batch: Batch::default(), position, counts };
        Ok(BatchQueue { current, channels: Some((full, used)), thread: Some(thread), stop })
    }
}

/// The cutting thread.
struct Cutter {
    reader: ExampleReader,
    limits: Limits,
    /// What was drawn up to the position. A block counts as a whole as soon as one of its examples is used.
    counts: Counts,
}

impl Cutter {
    /// Cuts batches until nobody takes them any more, or until there is nothing to cut.
    fn work(mut self, full: &SyncSender<Delivered>, empties: &Receiver<Delivery>) {
        loop {
            let mut delivery = empties.try_recv().unwrap_or_default();
            let filled = self.fill(&mut delivery.batch);
            delivery.position = self.reader.position;
            delivery.counts = self.counts;
            let failed = filled.is_err();
            if full.send(filled.map(|()| delivery)).is_err() || failed {
                return;
            }
        }
    }

    fn fill(&mut self, batch: &mut Batch) -> Result<(), LearnError> {
        batch.clear();
        loop {
            let (src, tgt) = self.reader.example(&|| false)?.ok_or_else(threads_stopped)?;
            if !fits(batch, &self.limits, src, tgt) {
                return Ok(());
            }
            push_example(batch, src, tgt);
            self.counts += self.reader.advance();
        }
    }
}

impl Feed for BatchQueue {
    fn next_unless(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Batch>, LearnError> {
        let (full, used) = self.channels.as_ref().ok_or_else(threads_stopped)?;
        let Some(next) = receive(full, give_up)? else { return Ok(None) };
        let _ = used.send(std::mem::replace(&mut self.current, next?));
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
        // Closing the channels ends the cutting thread, which ends the queue that it cuts from.
        self.channels = None;
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

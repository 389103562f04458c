//! Batches made ahead: a background thread cuts them from a [`BlockQueue`]. Used batches go back to it, as blocks go back to
//! their makers: after a short while nothing is allocated any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use polystep_engine::{Batch, Limits};

use super::queue::{BlockQueue, receive, spawn};
use super::{Counts, Cutter, Feed, Position, Source, threads_stopped};
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
        let blocks = BlockQueue::start(source, position.block, threads)?;
        let stop = blocks.stop();
        let (send, full) = sync_channel(AHEAD);
        let (used, empties) = channel();
        let cutter = Cutter::new(limits, position, counts);
        let thread = spawn("batches".into(), move || cut(cutter, blocks, &send, &empties))?;
        let current = Delivery { batch: Batch::default(), position, counts };
        Ok(BatchQueue { current, channels: Some((full, used)), thread: Some(thread), stop })
    }
}

/// The cutting thread: cuts batches until nobody takes them any more, or until there is nothing to cut.
fn cut(mut cutter: Cutter, mut blocks: BlockQueue, full: &SyncSender<Delivered>, empties: &Receiver<Delivery>) {
    loop {
        let mut delivery = empties.try_recv().unwrap_or_default();
        delivery.batch.clear();
        let filled = cutter.fill(&mut blocks, &mut delivery.batch);
        delivery.position = cutter.position;
        delivery.counts = cutter.counts;
        let failed = filled.is_err();
        if full.send(filled.map(|()| delivery)).is_err() || failed {
            return;
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

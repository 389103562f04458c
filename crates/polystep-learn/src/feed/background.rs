//! Batches made ahead in a background thread that cuts them from a [`Row`]. Batches travel in circles, as blocks do: after a
//! short while nothing is allocated any more.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use polystep_engine::{Batch, Limits};

use super::row::{Row, spawn};
use super::{Counts, Cutter, Feed, Position, Source, gone};
use crate::LearnError;

/// Batches that wait for training. At 2 000 steps a second this is a slack of 30 ms, longer than a block's border takes.
const AHEAD: usize = 64;

/// A batch and where its successor begins.
#[derive(Default)]
struct Delivery {
    batch: Batch,
    position: Position,
    counts: Counts,
}

/// A feed with its own threads.
pub struct Background {
    current: Delivery,
    full: Option<Receiver<Delivery>>,
    used: Option<Sender<Delivery>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts `threads` generators (at least one) at a position.
    pub fn start(
        source: &dyn Source,
        limits: Limits,
        position: Position,
        counts: Counts,
        threads: usize,
    ) -> Result<Self, LearnError> {
        let row = Row::start(source, position.block, threads)?;
        let (send, full) = sync_channel(AHEAD);
        let (used, empties) = channel();
        let cutter = Cutter::new(limits, position, counts);
        let thread = spawn("batches".into(), move || cut(cutter, row, &send, &empties))?;
        let current = Delivery { batch: Batch::default(), position, counts };
        Ok(Background { current, full: Some(full), used: Some(used), thread: Some(thread) })
    }
}

/// The cutting thread: until nobody takes its batches any more.
fn cut(mut cutter: Cutter, mut row: Row, full: &SyncSender<Delivery>, empties: &Receiver<Delivery>) {
    loop {
        let mut delivery = empties.try_recv().unwrap_or_default();
        delivery.batch.clear();
        loop {
            let Some(block) = row.block() else { return };
            if cutter.take(block, &mut delivery.batch) {
                break;
            }
            row.pass();
        }
        delivery.position = cutter.position();
        delivery.counts = cutter.counts();
        if full.send(delivery).is_err() {
            return;
        }
    }
}

impl Feed for Background {
    fn next(&mut self) -> Result<&Batch, LearnError> {
        let full = self.full.as_ref().ok_or_else(gone)?;
        let next = full.recv().map_err(|_| gone())?;
        let old = std::mem::replace(&mut self.current, next);
        if let Some(used) = &self.used {
            let _ = used.send(old);
        }
        Ok(&self.current.batch)
    }

    fn position(&self) -> Position {
        self.current.position
    }

    fn counts(&self) -> Counts {
        self.current.counts
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Closing the channels ends the cutting thread, which ends the row it cuts from.
        self.full = None;
        self.used = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

//! Batches made ahead in background threads: some make blocks, one cuts them.
//!
//! Thread t of n makes blocks t, t + n, t + 2n … and hands each over through a channel of its own; the cutting thread takes
//! from the channels in turn. So order and content cannot depend on the number of threads, and no lock is shared. Blocks and
//! batches travel in circles: after a short while nothing is allocated any more.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use polystep_engine::{Batch, Limits};

use super::{Block, Counts, Cutter, Feed, Generator, Position, Source};
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
    threads: Vec<JoinHandle<()>>,
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
        let n = threads.max(1) as u64;
        let mut handles = Vec::new();
        let mut makers = Vec::new();
        for t in 0..n {
            let generator = source.generator()?;
            let (full, blocks) = sync_channel(1);
            let (used, empties) = channel();
            handles
                .push(spawn(format!("blocks {t}"), move || make(generator, position.block + t, n, &full, &empties))?);
            makers.push((blocks, used));
        }
        let (send, full) = sync_channel(AHEAD);
        let (used, empties) = channel();
        let cutter = Cutter::new(limits, position, counts);
        handles.push(spawn("batches".into(), move || cut(cutter, &makers, &send, &empties))?);
        let current = Delivery { batch: Batch::default(), position, counts };
        Ok(Background { current, full: Some(full), used: Some(used), threads: handles })
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LearnError> {
    let failed = |e| LearnError::Data(format!("cannot start a thread for the data: {e}"));
    thread::Builder::new().name(name).spawn(work).map_err(failed)
}

/// A generator's thread: until nobody takes its blocks any more.
fn make(
    mut generator: Box<dyn Generator>,
    first: u64,
    every: u64,
    full: &SyncSender<Block>,
    empties: &Receiver<Block>,
) {
    let mut index = first;
    loop {
        let mut block = empties.try_recv().unwrap_or_default();
        generator.fill(index, &mut block);
        if full.send(block).is_err() {
            return;
        }
        index += every;
    }
}

/// The cutting thread: until nobody takes its batches any more.
fn cut(
    mut cutter: Cutter,
    makers: &[(Receiver<Block>, Sender<Block>)],
    full: &SyncSender<Delivery>,
    empties: &Receiver<Delivery>,
) {
    let mut makers = makers.iter().cycle();
    let mut current: Option<(Block, &Sender<Block>)> = None;
    loop {
        let mut delivery = empties.try_recv().unwrap_or_default();
        delivery.batch.clear();
        loop {
            let (block, _) = match &current {
                Some(current) => current,
                None => {
                    let Some((blocks, used)) = makers.next() else { return };
                    let Ok(block) = blocks.recv() else { return };
                    current.insert((block, used))
                }
            };
            if cutter.take(block, &mut delivery.batch) {
                break;
            }
            if let Some((block, used)) = current.take() {
                // The generator may have ended: then the block is not needed either.
                let _ = used.send(block);
            }
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
        let gone = || LearnError::Data("the threads that make the data have stopped; this is a bug".into());
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
        // Closing the last channel ends the cutting thread, which closes those of the generators.
        self.full = None;
        self.used = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

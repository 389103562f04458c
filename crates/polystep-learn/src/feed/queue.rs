//! Blocks of a source, made ahead in background threads and handed out in order.
//!
//! Thread t of n makes blocks t, t + n, t + 2n … and hands each over through a channel of its own; the reader takes from the
//! channels in turn. So order and content cannot depend on the number of threads, and no lock is shared. Used blocks go back
//! to their makers: after a short while nothing is allocated any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Block, Generator, Source, threads_stopped};
use crate::LearnError;

/// While it waits for data: how often it asks whether to give up.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Blocks in order, with the threads that make them.
pub struct BlockQueue {
    makers: Vec<Maker>,
    /// The thread that makes the current block.
    turn: usize,
    current: Option<Block>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

struct Maker {
    full: Receiver<Block>,
    used: Sender<Block>,
}

impl BlockQueue {
    /// Starts `threads` generators (at least one) at a block.
    pub fn start(source: &dyn Source, first: u64, threads: usize) -> Result<Self, LearnError> {
        let every = threads.max(1) as u64;
        let stop = Arc::<AtomicBool>::default();
        let mut queue = BlockQueue { makers: Vec::new(), turn: 0, current: None, threads: Vec::new(), stop };
        for t in 0..every {
            let generator = source.generator()?;
            let (send, full) = sync_channel(1);
            let (used, empties) = channel();
            let stop = queue.stop();
            queue.makers.push(Maker { full, used });
            let work = move || make(generator, (first + t..).step_by(every as usize), &send, &empties, &stop);
            queue.threads.push(spawn(format!("blocks {t}"), work)?);
        }
        Ok(queue)
    }

    /// When this is raised, the makers leave their blocks incomplete.
    pub(super) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// The current block, if it is ready.
    pub fn current(&self) -> Option<&Block> {
        self.current.as_ref()
    }

    /// The current block. Waits for it, unless `give_up` becomes true.
    pub fn block(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Block>, LearnError> {
        if self.current.is_none() {
            self.current = receive(&self.makers[self.turn].full, give_up)?;
        }
        Ok(self.current.as_ref())
    }

    /// Moves to the next block.
    pub fn pass(&mut self) {
        if let Some(block) = self.current.take() {
            // The maker may have ended: then the block is not needed either.
            let _ = self.makers[self.turn].used.send(block);
            self.turn = (self.turn + 1) % self.makers.len();
        }
    }
}

impl Drop for BlockQueue {
    fn drop(&mut self) {
        // Closing the channels ends the makers.
        self.stop.store(true, Ordering::SeqCst);
        self.makers.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Waits for something from a thread; none if `give_up` becomes true. An error if the thread has ended.
pub(super) fn receive<T>(channel: &Receiver<T>, give_up: &dyn Fn() -> bool) -> Result<Option<T>, LearnError> {
    loop {
        match channel.recv_timeout(ASK_EVERY) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Timeout) if give_up() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(threads_stopped()),
        }
    }
}

pub(super) fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LearnError> {
    let failed = |e| LearnError::Data(format!("cannot start a thread for the data: {e}"));
    thread::Builder::new().name(name).spawn(work).map_err(failed)
}

/// A generator's thread: makes blocks until nobody takes them any more.
fn make(
    mut generator: Box<dyn Generator>,
    indices: impl Iterator<Item = u64>,
    full: &SyncSender<Block>,
    empties: &Receiver<Block>,
    stop: &AtomicBool,
) {
    for index in indices {
        let mut block = empties.try_recv().unwrap_or_default();
        generator.fill(index, &mut block, stop);
        if full.send(block).is_err() {
            return;
        }
    }
}

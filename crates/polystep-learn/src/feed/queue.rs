//! Blocks of a source, made ahead in background threads and handed out in order.
//!
//! Thread t of n makes blocks t, t + n, t + 2n … and hands each over through a channel of its own; the reader takes from the
//! channels in turn. So order and content cannot depend on the number of threads, and no lock is shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Block, Source, threads_stopped};
use crate::LearnError;

/// While it waits for data: how often it asks whether to give up.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Where a thread's values come out, or its error.
type Made<T> = Receiver<Result<T, LearnError>>;

/// A thread that makes values ahead of their use. Used values go back to it and are filled again: after a short while nothing
/// is allocated any more.
pub(super) struct Maker<T> {
    channels: Option<(Made<T>, Sender<T>)>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Default + Send + 'static> Maker<T> {
    /// Starts a thread whose `fill` gets a used value, or a new one, and makes the next value of it. At most `ahead` values
    /// wait to be taken. The thread ends with the first error.
    pub fn start(
        name: String,
        ahead: usize,
        mut fill: impl FnMut(&mut T) -> Result<(), LearnError> + Send + 'static,
    ) -> Result<Self, LearnError> {
        let (send, full) = sync_channel(ahead);
        let (used, empties) = channel::<T>();
        let work = move || loop {
            let mut value = empties.try_recv().unwrap_or_default();
            let filled = fill(&mut value);
            let failed = filled.is_err();
            if send.send(filled.map(|()| value)).is_err() || failed {
                return;
            }
        };
        let failed = |e| LearnError::Data(format!("cannot start a thread for the data: {e}"));
        let thread = thread::Builder::new().name(name).spawn(work).map_err(failed)?;
        Ok(Maker { channels: Some((full, used)), thread: Some(thread) })
    }

    /// Waits for the next value. None if `give_up` becomes true first.
    pub fn next(&self, give_up: &dyn Fn() -> bool) -> Result<Option<T>, LearnError> {
        let (full, _) = self.channels.as_ref().ok_or_else(threads_stopped)?;
        loop {
            match full.recv_timeout(ASK_EVERY) {
                Ok(value) => return value.map(Some),
                Err(RecvTimeoutError::Timeout) if give_up() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(threads_stopped()),
            }
        }
    }

    /// Hands a used value back.
    pub fn give_back(&self, value: T) {
        if let Some((_, used)) = &self.channels {
            let _ = used.send(value);
        }
    }
}

impl<T> Drop for Maker<T> {
    fn drop(&mut self) {
        self.channels = None; // the thread ends when it finds that nobody takes its values
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Blocks in order, with the threads that make them.
pub struct BlockQueue {
    makers: Vec<Maker<Block>>,
    /// The thread that makes the current block.
    turn: usize,
    current: Option<Block>,
    stop: Arc<AtomicBool>,
}

impl BlockQueue {
    /// Starts `threads` generators (at least one) at a block.
    pub fn start(source: &dyn Source, first: u64, threads: usize) -> Result<Self, LearnError> {
        let every = threads.max(1) as u64;
        let stop = Arc::<AtomicBool>::default();
        let mut queue = BlockQueue { makers: Vec::new(), turn: 0, current: None, stop };
        for t in 0..every {
            let (mut generator, mut index, stop) = (source.generator()?, first + t, queue.stop());
            let fill = move |block: &mut Block| {
                generator.fill(index, block, &stop);
                index += every;
                Ok(())
            };
            queue.makers.push(Maker::start(format!("blocks {t}"), 1, fill)?);
        }
        Ok(queue)
    }

    /// Set, it ends the threads at once, in the middle of a block.
    pub(super) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// The current block, if it is there already.
    pub fn current(&self) -> Option<&Block> {
        self.current.as_ref()
    }

    /// Waits for the current block. None if `give_up` becomes true first.
    pub fn block(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Block>, LearnError> {
        if self.current.is_none() {
            self.current = self.makers[self.turn].next(give_up)?;
        }
        Ok(self.current.as_ref())
    }

    /// Hands the current block back and goes on to the next one.
    pub fn pass(&mut self) {
        if let Some(block) = self.current.take() {
            self.makers[self.turn].give_back(block);
            self.turn = (self.turn + 1) % self.makers.len();
        }
    }
}

impl Drop for BlockQueue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

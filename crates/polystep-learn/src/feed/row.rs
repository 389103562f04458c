//! Blocks of a source, made ahead in background threads and handed out in order.
//!
//! Thread t of n makes blocks t, t + n, t + 2n … and hands each over through a channel of its own; the reader takes from the
//! channels in turn. So order and content cannot depend on the number of threads, and no lock is shared. Blocks travel in
//! circles: after a short while nothing is allocated any more.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Block, Generator, Source};
use crate::LearnError;

/// A row of blocks with its own threads.
pub struct Row {
    makers: Vec<Maker>,
    /// Whose block is at hand or comes next.
    turn: usize,
    current: Option<Block>,
    threads: Vec<JoinHandle<()>>,
}

struct Maker {
    full: Receiver<Block>,
    used: Sender<Block>,
}

impl Row {
    /// Starts `threads` generators (at least one) at a block.
    pub fn start(source: &dyn Source, first: u64, threads: usize) -> Result<Self, LearnError> {
        let n = threads.max(1) as u64;
        let mut row = Row { makers: Vec::new(), turn: 0, current: None, threads: Vec::new() };
        for t in 0..n {
            let generator = source.generator()?;
            let (send, full) = sync_channel(1);
            let (used, empties) = channel();
            row.makers.push(Maker { full, used });
            row.threads.push(spawn(format!("blocks {t}"), move || make(generator, first + t, n, &send, &empties))?);
        }
        Ok(row)
    }

    /// The block at hand; none if its maker has stopped, which only a panic can cause.
    pub fn block(&mut self) -> Option<&Block> {
        if self.current.is_none() {
            self.current = self.makers[self.turn].full.recv().ok();
        }
        self.current.as_ref()
    }

    /// Goes on to the next block.
    pub fn pass(&mut self) {
        if let Some(block) = self.current.take() {
            // The maker may have ended: then the block is not needed either.
            let _ = self.makers[self.turn].used.send(block);
            self.turn = (self.turn + 1) % self.makers.len();
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // Closing the channels ends the makers.
        self.makers.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

pub(super) fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LearnError> {
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

//! The training stream: step examples in batches, made ahead in background threads.
//!
//! The stream is a sequence of blocks of consecutive proofs, the same blocks that `polystep train` learns from. A block depends on
//! its number alone. So a position is a block and a number of its examples that are used, and a rank takes every `world`-th block.
//!
//! Threads do not survive a fork. A stream that was made before one says so, instead of waiting for ever.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use polystep_core::{ExampleSpan, Purpose, Task as CoreTask};
use polystep_learn::LearnError;
use polystep_learn::feed::{BLOCK_PROOFS, Block, BlockQueue, Generator, Proofs, Source};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{Batch, Origin, Rows};
use crate::error::{Exception, bad_input, check_signals};
use crate::keywords::Keywords;
use crate::space::Task;

/// The step examples of a task, for ever, in batches: the data that `polystep train` learns from, guarded against the fixed sets.
///
/// - `batch_size`: examples in a batch.
/// - `padded`: whether `src` and `tgt` are rectangles. Packed is the default, and faster.
/// - `special_tokens`: whether a source ends with `</s>`, and a target stands between `<s>` and `</s>`.
/// - `shuffle`: whether the examples of a block (16384 proofs) are permuted, as in training. Without it they come in the order of
///   `polystep generate --steps`.
/// - `longest`: examples with more tokens on a side, `</s>` included, are left out.
/// - `seed`, `start`: which stream, and where to begin: the `position` of a batch, to go on after it.
/// - `rank`, `world`: this reader takes the blocks `rank`, `rank + world`, and so on. Together the readers meet each example once.
/// - `threads`: threads that make the data [default: one per core]. The data do not depend on it.
///
/// The other keywords are those of `polystep.Task`.
///
/// >>> import polystep
/// >>> stream = polystep.examples("large_coeff", batch_size=64, padded=True, special_tokens=True)
/// >>> first, second = next(stream), next(stream)
/// >>> first.src.shape[0], first.position
/// (64, (0, 64))
/// >>> again = next(polystep.examples("large_coeff", batch_size=64, start=first.position))
/// >>> again.inputs == second.inputs
/// True
#[pyfunction]
#[pyo3(signature = (
    task, *, batch_size = 256, padded = false, special_tokens = false, shuffle = true, longest = None, seed = 1, start = (0, 0),
    rank = 0, world = 1, threads = None, **keywords
))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn examples(
    py: Python<'_>,
    task: &Bound<'_, PyAny>,
    batch_size: usize,
    padded: bool,
    special_tokens: bool,
    shuffle: bool,
    longest: Option<usize>,
    seed: u64,
    start: (u64, u64),
    rank: u64,
    world: u64,
    threads: Option<usize>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<ExampleStream> {
    let keywords = Keywords::new(keywords)?;
    let task = Task::of(task, &keywords)?;
    keywords.finish()?;
    if batch_size == 0 || rank >= world || start.0 % world != if start == (0, 0) { 0 } else { rank } {
        return Err(bad_input(wrong_share(batch_size, start, rank, world)));
    }
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let (share, used) = (start.0 / world, start.1);
    let origin = Origin::new(&task, Purpose::Train, seed);
    let queue = py.detach(|| -> Result<_, LearnError> {
        let proofs = Proofs::new(&task, seed, longest.unwrap_or(usize::MAX))?;
        let proofs = if shuffle { proofs } else { proofs.in_order() };
        BlockQueue::start(&Share { proofs, rank, world }, share, threads)
    });
    let reader =
        Reader { queue: Some(queue.map_err(Exception::exception)?), share, used, rank, world, name: name(&task) };
    let process = std::process::id();
    Ok(ExampleStream { origin, batch_size, padded, special: special_tokens, reader: Mutex::new(reader), process })
}

fn wrong_share(batch_size: usize, start: (u64, u64), rank: u64, world: u64) -> String {
    match batch_size {
        0 => "batch_size is at least 1".to_owned(),
        _ if rank >= world => format!("rank {rank} of {world}: ranks are counted from 0"),
        _ => format!("block {} is not one of rank {rank} of {world}: start where this rank stopped", start.0),
    }
}

fn name(task: &CoreTask) -> String {
    format!("{} with {} variables", task.space.key, task.vars)
}

/// Every `world`-th block of a source.
struct Share {
    proofs: Proofs,
    rank: u64,
    world: u64,
}

impl Source for Share {
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
        Ok(Box::new(ShareGenerator { inner: self.proofs.generator()?, rank: self.rank, world: self.world }))
    }
}

struct ShareGenerator {
    inner: Box<dyn Generator>,
    rank: u64,
    world: u64,
}

impl Generator for ShareGenerator {
    fn fill(&mut self, index: u64, block: &mut Block, stop: &AtomicBool) {
        self.inner.fill(index * self.world + self.rank, block, stop);
    }
}

/// Reads examples across the borders of blocks.
struct Reader {
    /// None only while it is dropped.
    queue: Option<BlockQueue>,
    /// The number of the current block among those of this rank.
    share: u64,
    /// How many of its examples are used.
    used: u64,
    rank: u64,
    world: u64,
    /// The task, for errors.
    name: String,
}

impl Reader {
    /// The number of the current block in the stream.
    fn block(&self) -> u64 {
        self.share * self.world + self.rank
    }

    /// The next examples, and the exception of a signal that came in between.
    fn rows(&mut self, examples: usize, special: bool) -> PyResult<Rows> {
        let mut rows = Rows::with_room(examples, special);
        let mut raised = None;
        while rows.len() < examples {
            check_signals()?;
            let first = self.block() * BLOCK_PROOFS;
            let Some(queue) = &mut self.queue else { break };
            let signal = std::cell::RefCell::new(&mut raised);
            let give_up = || match check_signals() {
                Ok(()) => false,
                Err(error) => {
                    **signal.borrow_mut() = Some(error);
                    true
                }
            };
            let Some(block) = queue.block(&give_up).map_err(Exception::exception)? else { break };
            block.check(&self.name, self.used).map_err(Exception::exception)?;
            let from = self.used as usize;
            let to = block.len().min(from + examples - rows.len());
            // A span has the low bits of its proof's index.
            let proof = |span: &ExampleSpan| first + u64::from(span.proof.wrapping_sub(first as u32));
            rows.extend(&block.examples.tokens, (from..to).map(|i| *block.span(i)), proof);
            self.used = to as u64;
            if to == block.len() {
                queue.pass();
                (self.share, self.used) = (self.share + 1, 0);
            }
        }
        raised.map_or(Ok(rows), Err)
    }
}

/// Batches of step examples, for ever. `polystep.examples` makes it.
#[pyclass(module = "polystep", frozen)]
pub struct ExampleStream {
    origin: Origin,
    batch_size: usize,
    padded: bool,
    special: bool,
    reader: Mutex<Reader>,
    /// The process that made it, and has its threads.
    process: u32,
}

#[pymethods]
impl ExampleStream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Batch> {
        if std::process::id() != self.process {
            let what = "this stream of examples was made before the process was forked: make it in the worker";
            return Err(PyRuntimeError::new_err(what));
        }
        let (rows, position) = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let mut rows = reader.rows(self.batch_size, self.special)?;
            if self.padded {
                rows.pad();
            }
            Ok::<_, PyErr>((rows, (reader.block(), reader.used)))
        })?;
        Batch::new(py, rows, self.origin.clone(), position)
    }

    fn __repr__(&self) -> String {
        let layout = if self.padded { "padded" } else { "packed" };
        format!("<polystep.ExampleStream of {}, {layout}>", name(&self.origin.task))
    }
}

impl Drop for ExampleStream {
    fn drop(&mut self) {
        let queue = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner).queue.take();
        if std::process::id() != self.process {
            // Its threads are in another process; waiting for them would take for ever.
            std::mem::forget(queue);
        }
    }
}

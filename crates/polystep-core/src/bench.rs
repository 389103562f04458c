//! How fast proofs are sampled, proved and tokenised: the work behind `polystep bench generate`.

use std::time::{Duration, Instant};

use crate::examples::{Examples, Sampler};
use crate::space::SpaceError;
use crate::stream::Purpose;
use crate::task::Task;

/// What was generated, and how fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Throughput {
    /// Proofs.
    pub proofs: u64,
    /// Step examples.
    pub steps: u64,
    /// Tokens of sources and targets.
    pub tokens: u64,
    /// Wall-clock time, set-up not counted.
    pub elapsed: Duration,
}

impl Throughput {
    /// Step examples per second.
    pub fn steps_per_second(&self) -> f64 {
        self.steps as f64 / self.elapsed.as_secs_f64()
    }
}

/// Proofs per buffer; the buffer stays in the second-level cache.
const BLOCK: u64 = 256;

/// Generates proofs 0..n of a task in memory, on `threads` threads, and throws them away.
pub fn generate(task: &Task, seed: u64, proofs: u64, threads: usize) -> Result<Throughput, SpaceError> {
    let threads = threads.max(1) as u64;
    let mut samplers = (0..threads).map(|_| Sampler::new(task, seed, Purpose::Train)).collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let counts: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let work = |(t, sampler)| scope.spawn(move || generate_part(sampler, t as u64, threads, proofs));
        let handles: Vec<_> = samplers.iter_mut().enumerate().map(work).collect();
        handles.into_iter().map(|h| h.join().unwrap_or_default()).collect()
    });
    Ok(Throughput {
        proofs,
        steps: counts.iter().map(|c| c.0).sum(),
        tokens: counts.iter().map(|c| c.1).sum(),
        elapsed: start.elapsed(),
    })
}

/// The blocks of one thread.
fn generate_part(sampler: &mut Sampler, thread: u64, threads: u64, proofs: u64) -> (u64, u64) {
    let mut examples = Examples::default();
    let (mut steps, mut tokens) = (0, 0);
    let mut block = thread;
    while block * BLOCK < proofs {
        examples.clear();
        for index in block * BLOCK..((block + 1) * BLOCK).min(proofs) {
            sampler.write_examples(index, None, &mut examples);
        }
        steps += examples.len() as u64;
        let spans = &std::hint::black_box(&examples).spans;
        tokens += spans.iter().map(|s| u64::from(s.src_len) + u64::from(s.tgt_len)).sum::<u64>();
        block += threads;
    }
    (steps, tokens)
}

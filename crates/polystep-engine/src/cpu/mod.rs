//! The CPU device: fp32, interpreted op by op over the real rows of the batch.
//!
//! The same inputs give the same bits on every run and at any number of threads: rows are split in blocks of fixed size and
//! every sum has a fixed order. Slot i of every program lives in the same buffer, which grows to what the batches need, so
//! a run in the steady state allocates nothing of its own.

mod activation;
mod adam;
mod attention;
mod buffer;
mod decode;
mod dropout;
mod embed;
mod gemm;
mod lane;
mod linear;
mod loss;
mod math;
mod narrow;
mod norm;
mod ops;
mod pack;
mod rows;
mod simd;
mod weights;

use crate::{Batch, Dim, EngineError, Executor, Limits, Packed, Program, Scalars, Side, Slot, StepResult};
use buffer::Buffer;
use std::time::{Duration, Instant};

/// Everything that ops read and write.
struct Memory {
    slots: Vec<Buffer>,
    params: Buffer,
    grads: Buffer,
    first: Buffer,
    second: Buffer,
    scratch: Buffer,
    right: Vec<bool>,
    decoding: decode::Decoding,
    weights: weights::Weights,
}

/// Sequences, source tokens and target tokens of a batch.
#[derive(Clone, Copy, Default)]
struct Size {
    sequences: usize,
    src: usize,
    tgt: usize,
}

impl Size {
    fn of(batch: &Batch) -> Size {
        let (src, tgt) = (&batch.src, &batch.tgt);
        Size { sequences: src.sequences().max(tgt.sequences()), src: src.tokens(), tgt: tgt.tokens() }
    }

    fn rows(&self, dim: Dim) -> usize {
        match dim {
            Dim::Tokens(Side::Src) => self.src,
            Dim::Tokens(Side::Tgt) => self.tgt,
            // Grows with the positions that are reached: see `decode`.
            Dim::Cache(_) => 0,
        }
    }
}

/// The CPU with its memory.
pub struct Cpu {
    programs: Vec<Program>,
    limits: Limits,
    pool: rayon::ThreadPool,
    memory: Memory,
    params: usize,
    size: Size,
    results: Vec<StepResult>,
    times: Vec<(&'static str, Duration)>,
}

impl Cpu {
    /// All programs must have the same number of parameters: they share them. 0 threads means one per core.
    pub fn new(programs: Vec<Program>, limits: Limits, threads: usize) -> Result<Cpu, EngineError> {
        let params = programs.first().map_or(0, |p| p.params);
        for program in &programs {
            check("a program's parameter buffer", program.params, params)?;
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("polystep-cpu-{i}"))
            .build()
            .map_err(|e| EngineError::Device { what: "starting threads".into(), message: e.to_string() })?;
        let slots = programs.iter().map(|p| p.slots.len()).max().unwrap_or(0);
        let memory = Memory {
            slots: (0..slots).map(|_| Buffer::default()).collect(),
            params: Buffer::zeros(params),
            grads: Buffer::zeros(params),
            first: Buffer::zeros(params),
            second: Buffer::zeros(params),
            scratch: Buffer::default(),
            right: Vec::new(),
            decoding: decode::Decoding::new(limits.sequences),
            weights: weights::Weights::new(&programs),
        };
        Ok(Cpu {
            programs,
            limits,
            pool,
            memory,
            params,
            size: Size::default(),
            results: Vec::new(),
            times: Vec::new(),
        })
    }

    /// How long each kind of op took since the last call.
    pub fn times(&mut self) -> Vec<(&'static str, Duration)> {
        std::mem::take(&mut self.times)
    }
}

fn add_time(times: &mut Vec<(&'static str, Duration)>, kind: &'static str, time: Duration) {
    match times.iter_mut().find(|(k, _)| *k == kind) {
        Some((_, sum)) => *sum += time,
        None => times.push((kind, time)),
    }
}

fn check(what: &'static str, got: usize, want: usize) -> Result<(), EngineError> {
    if got == want { Ok(()) } else { Err(EngineError::Shape { what, got, want }) }
}

fn within(what: &'static str, got: usize, limit: usize) -> Result<(), EngineError> {
    if got <= limit { Ok(()) } else { Err(EngineError::Limit { what, got, limit }) }
}

/// Lengths that belong together; ids are checked by the slices they index.
fn consistent(packed: &Packed) -> Result<(), EngineError> {
    check("positions of a batch", packed.pos.len(), packed.ids.len())?;
    check("lengths of a batch", packed.cu.last().map_or(0, |&n| n as usize), packed.ids.len())
}

impl Executor for Cpu {
    fn device(&self) -> String {
        let threads = self.pool.current_num_threads();
        format!("CPU, {threads} thread{}", if threads == 1 { "" } else { "s" })
    }

    fn programs(&self) -> &[Program] {
        &self.programs
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn run(&mut self, program: usize, batch: &Batch, scalars: &Scalars) -> Result<(), EngineError> {
        let size = Size::of(batch);
        within("sequences", size.sequences, self.limits.sequences)?;
        within("source tokens", size.src, self.limits.src_tokens)?;
        within("target tokens", size.tgt, self.limits.tgt_tokens)?;
        consistent(&batch.src)?;
        consistent(&batch.tgt)?;
        self.size = size;
        let (pool, memory, program) = (&self.pool, &mut self.memory, &self.programs[program]);
        let times = &mut self.times;
        for (slot, info) in memory.slots.iter_mut().zip(&program.slots) {
            slot.reserve(size.rows(info.rows) * info.cols);
        }
        memory.decoding.follow(batch);
        let result = pool.install(|| {
            let mut result = StepResult::default();
            let mut ops = &program.ops[..];
            while let Some(op) = ops.first() {
                let start = Instant::now();
                let done = ops::run(ops, program, size, batch, scalars, memory, &mut result);
                add_time(times, ops::kind(op), start.elapsed());
                ops = &ops[done..];
            }
            result
        });
        self.results.push(result);
        Ok(())
    }

    fn results(&mut self) -> Result<Vec<StepResult>, EngineError> {
        Ok(std::mem::take(&mut self.results))
    }

    fn right(&mut self) -> Result<Vec<bool>, EngineError> {
        Ok(self.memory.right.clone())
    }

    fn top(&mut self, tokens: &mut Vec<u8>, logprobs: &mut Vec<f32>) -> Result<(), EngineError> {
        tokens.clone_from(&self.memory.decoding.tokens);
        logprobs.clone_from(&self.memory.decoding.logprobs);
        Ok(())
    }

    fn params(&mut self) -> Result<Vec<f32>, EngineError> {
        Ok(self.memory.params[..self.params].to_vec())
    }

    fn set_params(&mut self, params: &[f32]) -> Result<(), EngineError> {
        check("the parameters", params.len(), self.params)?;
        self.memory.params[..self.params].copy_from_slice(params);
        self.memory.weights.forget();
        Ok(())
    }

    fn moments(&mut self) -> Result<(Vec<f32>, Vec<f32>), EngineError> {
        Ok((self.memory.first[..self.params].to_vec(), self.memory.second[..self.params].to_vec()))
    }

    fn set_moments(&mut self, first: &[f32], second: &[f32]) -> Result<(), EngineError> {
        check("the first moments", first.len(), self.params)?;
        check("the second moments", second.len(), self.params)?;
        self.memory.first[..self.params].copy_from_slice(first);
        self.memory.second[..self.params].copy_from_slice(second);
        Ok(())
    }

    fn grads(&mut self) -> Result<Vec<f32>, EngineError> {
        Ok(self.memory.grads[..self.params].to_vec())
    }

    fn set_grads(&mut self, grads: &[f32]) -> Result<(), EngineError> {
        check("the gradient", grads.len(), self.params)?;
        self.memory.grads[..self.params].copy_from_slice(grads);
        Ok(())
    }

    fn read(&mut self, program: usize, slot: Slot) -> Result<Vec<f32>, EngineError> {
        let info = self.programs[program].info(slot);
        let n = self.size.rows(info.rows) * info.cols;
        Ok(self.memory.slots[slot.0 as usize].first(n).to_vec())
    }

    fn write(&mut self, program: usize, slot: Slot, values: &[f32]) -> Result<(), EngineError> {
        let info = self.programs[program].info(slot);
        check("what is written to a slot", values.len() % info.cols, 0)?;
        self.memory.slots[slot.0 as usize].first(values.len()).copy_from_slice(values);
        Ok(())
    }
}

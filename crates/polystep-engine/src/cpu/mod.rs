//! The CPU device. It computes in fp32, op by op, over the real rows of the batch.
//!
//! The same inputs give the same bits on every run and with any number of threads, because rows are split into blocks of a fixed
//! size and every sum has a fixed order. Slot i of every program lives in the same buffer. The buffer grows to what the batches
//! need, so after a while a run allocates nothing.

mod activation;
mod adam;
mod attend;
mod attention;
mod buffer;
mod decode;
mod dropout;
mod embed;
mod gemm;
mod linear;
mod loss;
mod math;
mod matrix;
mod norm;
mod ops;
mod pack;
mod rows;
mod simd;
mod tile;
mod weights;

use crate::error::check_len;
use crate::{
    Adam, Batch, Dim, EngineError, Executor, Inspect, Limits, Op, Packed, Program, Result, Scalars, Slot, StepResult,
};
use buffer::Buffer;
use std::time::{Duration, Instant};

/// Everything that ops read and write.
struct Memory {
    slots: ops::Slots,
    params: Buffer,
    grads: Buffer,
    first: Buffer,
    second: Buffer,
    average: Buffer,
    scratch: Buffer,
    right: Vec<bool>,
    decoding: decode::Decoding,
    weights: weights::PackedWeights,
}

/// Source and target tokens of a batch.
#[derive(Clone, Copy, Default)]
struct Size([usize; 2]);

impl Size {
    fn rows(&self, dim: Dim) -> usize {
        match dim {
            Dim::Tokens(side) => self.0[side as usize],
            // It grows with the positions that are reached; see `decode`.
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
    /// Numbers in the average of the weights: as many, or none.
    averaged: usize,
    size: Size,
    results: Vec<StepResult>,
    times: Vec<(&'static str, Duration)>,
}

impl Cpu {
    /// All programs must have the same number of parameters: they share them. 0 threads means one per core.
    pub fn new(programs: Vec<Program>, limits: Limits, threads: usize) -> Result<Cpu> {
        let params = programs.first().map_or(0, |p| p.params);
        for program in &programs {
            check_len("a program's parameter buffer", program.params, params)?;
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("polystep-cpu-{i}"))
            .build()
            .map_err(|e| EngineError::Device { what: "starting threads".into(), message: e.to_string() })?;
        let slots = programs.iter().map(|p| p.slots.len()).max().unwrap_or(0);
        // Where a model decodes there are no gradients.
        let decodes = programs.iter().flat_map(|p| &p.ops).any(|op| matches!(op, Op::BestTokens(_)));
        let learned = if decodes { 0 } else { params };
        let averaged = if programs.iter().filter_map(Program::adam).any(Adam::averages) { params } else { 0 };
        let memory = Memory {
            slots: ops::Slots((0..slots).map(|_| Buffer::default()).collect()),
            params: Buffer::zeros(params),
            grads: Buffer::zeros(learned),
            first: Buffer::zeros(learned),
            second: Buffer::zeros(learned),
            average: Buffer::zeros(averaged),
            scratch: Buffer::default(),
            right: Vec::new(),
            decoding: decode::Decoding::default(),
            weights: weights::PackedWeights::new(&programs),
        };
        Ok(Cpu {
            programs,
            limits,
            pool,
            memory,
            params,
            averaged,
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

/// Checks that the lengths fit together. Ids need no check: they index slices, which check them.
fn consistent(packed: &Packed) -> Result {
    check_len("positions of a batch", packed.pos.len(), packed.ids.len())?;
    check_len("lengths of a batch", packed.cu.last().map_or(0, |&n| n as usize), packed.ids.len())
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

    fn run(&mut self, program: usize, batch: &Batch, scalars: &Scalars) -> Result {
        let size = Size([batch.src.tokens(), batch.tgt.tokens()]);
        self.limits.admit(batch)?;
        consistent(&batch.src)?;
        consistent(&batch.tgt)?;
        self.size = size;
        let (pool, memory, program) = (&self.pool, &mut self.memory, &self.programs[program]);
        let times = &mut self.times;
        for (slot, info) in memory.slots.0.iter_mut().zip(&program.slots) {
            slot.reserve(size.rows(info.rows) * info.cols);
        }
        memory.decoding.follow(batch);
        let result = pool.install(|| {
            let run = ops::Run { program, size, batch, scalars };
            let mut result = StepResult::default();
            let mut ops = &program.ops[..];
            while let Some(op) = ops.first() {
                let start = Instant::now();
                let done = run.step(ops, memory, &mut result);
                add_time(times, op.name(), start.elapsed());
                ops = &ops[done..];
            }
            result
        });
        self.results.push(result);
        Ok(())
    }

    fn results(&mut self) -> Result<Vec<StepResult>> {
        Ok(std::mem::take(&mut self.results))
    }

    fn right(&mut self) -> Result<Vec<bool>> {
        Ok(self.memory.right.clone())
    }

    fn top(&mut self, tokens: &mut Vec<u8>, logprobs: &mut Vec<f32>) -> Result {
        tokens.clone_from(&self.memory.decoding.tokens);
        logprobs.clone_from(&self.memory.decoding.logprobs);
        Ok(())
    }

    fn params(&mut self) -> Result<Vec<f32>> {
        Ok(self.memory.params[..self.params].to_vec())
    }

    fn set_params(&mut self, params: &[f32]) -> Result {
        check_len("the parameters", params.len(), self.params)?;
        self.memory.params[..self.params].copy_from_slice(params);
        self.memory.weights.forget();
        Ok(())
    }

    fn moments(&mut self) -> Result<(Vec<f32>, Vec<f32>)> {
        let Memory { first, second, .. } = &mut self.memory;
        Ok((first.first(self.params).to_vec(), second.first(self.params).to_vec()))
    }

    fn set_moments(&mut self, first: &[f32], second: &[f32]) -> Result {
        check_len("the first moments", first.len(), self.params)?;
        check_len("the second moments", second.len(), self.params)?;
        self.memory.first.first(self.params).copy_from_slice(first);
        self.memory.second.first(self.params).copy_from_slice(second);
        Ok(())
    }

    fn average(&mut self) -> Result<Option<Vec<f32>>> {
        Ok((self.averaged > 0).then(|| self.memory.average[..self.averaged].to_vec()))
    }

    fn set_average(&mut self, average: &[f32]) -> Result {
        check_len("the average of the weights", average.len(), self.averaged)?;
        self.memory.average[..self.averaged].copy_from_slice(average);
        Ok(())
    }

    fn exchange(&mut self) -> Result {
        check_len("the average of the weights", self.averaged, self.params)?;
        let Memory { params, average, .. } = &mut self.memory;
        params[..self.params].swap_with_slice(&mut average[..self.params]);
        Ok(())
    }
}

impl Inspect for Cpu {
    fn grads(&mut self) -> Result<Vec<f32>> {
        Ok(self.memory.grads.first(self.params).to_vec())
    }

    fn set_grads(&mut self, grads: &[f32]) -> Result {
        check_len("the gradient", grads.len(), self.params)?;
        self.memory.grads.first(self.params).copy_from_slice(grads);
        Ok(())
    }

    fn read(&mut self, program: usize, slot: Slot) -> Result<Vec<f32>> {
        let info = self.programs[program].info(slot);
        let n = self.size.rows(info.rows) * info.cols;
        Ok(self.memory.slots.0[slot.0 as usize].first(n).to_vec())
    }

    fn write(&mut self, program: usize, slot: Slot, values: &[f32]) -> Result {
        let info = self.programs[program].info(slot);
        check_len("what is written to a slot", values.len() % info.cols, 0)?;
        self.memory.slots.0[slot.0 as usize].first(values.len()).copy_from_slice(values);
        Ok(())
    }
}

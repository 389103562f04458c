//! The CUDA device. Every program becomes a CUDA graph. It computes in bf16; sums, master weights and the residual stream are fp32.
//!
//! The decisions a reader would get wrong:
//! - A graph has fixed shapes. So the numbers of source and target tokens are rounded up to capacities, and there is one graph for
//!   each program and pair of capacities. What changes from step to step (batch, learning rate, seed) lies in one input block on
//!   the device.
//! - `run` waits for the device only if the device is eight steps behind.
//! - Nothing is chosen by timing and nothing is added by atomics. So two runs of one seed on one kind of GPU agree bit for bit.
//!
//! The way of a program: `library` finds CUDA; `compile` and `cache` supply the kernels; `machine` allocates memory; `record`,
//! `lower` and `schedule` turn ops into launches on streams; this module keeps and runs the graphs.

#![allow(unsafe_code)] // Send, for one type

mod attention;
mod cache;
mod compile;
mod decode;
mod driver;
mod gemm;
mod input;
mod library;
mod lower;
mod machine;
mod product;
mod record;
mod schedule;
mod wide;

use std::collections::HashMap;

pub use library::{Info, Library};

use crate::error::check_len;
use crate::{
    Adam, Batch, Dim, Dtype, EngineError, Executor, Inspect, Limits, Program, Result, Scalars, Side, Slot, StepResult,
};
use attention::Lengths;
use compile::Unit;
use driver::{Args, Device, DeviceMemory, Event, Graph, Grid, Pinned};
use input::InputBlock;
use machine::{Machine, RING, SIDES, capacity};
use record::{Mode, Recorder};
use schedule::Schedule;

/// How many steps the host may be ahead of the device.
const AHEAD: usize = 8;

/// How many graphs are kept. The graph that was unused for longest is dropped first.
const GRAPHS: usize = 512;

/// What a graph is made for: a program, capacities, and the kinds of lengths that occur, since long sequences have their own
/// kernels.
type Key = (usize, [usize; 2], Lengths);

struct Captured {
    graph: Graph,
    block: InputBlock,
    used: u64,
}

/// One NVIDIA GPU.
pub struct Cuda {
    graphs: HashMap<Key, Captured>,
    pinned: Vec<(Pinned, Event)>,
    runs: u64,
    /// Runs whose results lie in the ring.
    waiting: usize,
    drained: Vec<StepResult>,
    /// Source tokens, target tokens, sequences of the last run.
    last: [usize; 3],
    /// Cumulative lengths of the sources encoded last.
    encoded: Vec<i32>,
    machine: Machine,
}

// SAFETY: handles of the primary context may be used from any thread that has made it current, which every entry does; a
// `Cuda` is used by one thread at a time, since all its methods that touch the device take `&mut self`.
unsafe impl Send for Cuda {}

/// Microseconds of one kind of launch in a run of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Which kernel, or which matrix product.
    pub label: String,
    /// Launches of the kind.
    pub count: usize,
    /// All of them, one after the other.
    pub microseconds: f64,
}

impl Cuda {
    /// What `doctor` shows of the first GPU; an error says what is missing and what to do.
    pub fn available() -> Result<Info> {
        Cuda::info(0)
    }

    /// What `doctor` shows of a GPU, numbered from 0 among those that this process may see.
    pub fn info(gpu: u32) -> Result<Info> {
        Ok(Device::open(gpu)?.info.clone())
    }

    /// How many GPUs this process may see: `CUDA_VISIBLE_DEVICES` hides the others.
    pub fn count() -> Result<u32> {
        Device::count()
    }

    /// Allocates everything for batches up to the limits on the first GPU, and compiles the kernels that the programs need.
    pub fn new(programs: Vec<Program>, limits: Limits) -> Result<Self> {
        Cuda::on(0, programs, limits)
    }

    /// The same on a GPU, numbered from 0 among those that this process may see.
    pub fn on(gpu: u32, programs: Vec<Program>, limits: Limits) -> Result<Self> {
        let machine = Machine::new(gpu, programs, limits)?;
        let words = InputBlock::new(&limits, [limits.src_tokens, limits.tgt_tokens].map(capacity)).words;
        let pinned = (0..AHEAD).map(|_| Ok((Pinned::new(words)?, Event::new(false)?))).collect::<Result<Vec<_>>>()?;
        Ok(Cuda {
            graphs: HashMap::new(),
            pinned,
            runs: 0,
            waiting: 0,
            drained: Vec::new(),
            last: [0; 3],
            encoded: Vec::new(),
            machine,
        })
    }

    /// The capacities of the graph for a batch.
    fn rows(&self, batch: &Batch) -> [usize; 2] {
        if !batch.hypotheses.sources.is_empty() {
            // Hypotheses end one by one. With powers of two there are few graphs.
            return [capacity(0), capacity(batch.tgt.tokens().next_power_of_two().min(self.machine.limits.tgt_tokens))];
        }
        [capacity(batch.src.tokens()), capacity(batch.tgt.tokens())]
    }

    /// Plans, partial sums and tables for a program at some capacities.
    fn prepare(&mut self, (program, rows, lengths): Key) -> Result {
        Recorder::new(&mut self.machine, program, rows, lengths, Mode::Prepare).finish()?;
        let Machine { gemms, workspaces, streams, .. } = &mut self.machine;
        gemms.warm_up(&workspaces[0], &streams[0])
    }

    fn capture(&mut self, key: Key) -> Result {
        if self.graphs.len() >= GRAPHS {
            self.machine.wait()?;
            let oldest = self.graphs.iter().min_by_key(|(_, g)| g.used).map(|(key, _)| *key);
            oldest.and_then(|key| self.graphs.remove(&key));
        }
        self.prepare(key)?;
        let (program, rows, lengths) = key;
        let recorder = Recorder::new(&mut self.machine, program, rows, lengths, Mode::Capture(Schedule::new(SIDES)));
        let block = recorder.block;
        if let (Some(graph), _) = recorder.finish()? {
            graph.upload(&self.machine.streams[0])?;
            self.graphs.insert(key, Captured { graph, block, used: self.runs });
        }
        Ok(())
    }

    /// Starts copying the batch to the device.
    fn send(&mut self, program: usize, block: InputBlock, batch: &Batch, scalars: &Scalars) -> Result {
        let (pinned, event) = &mut self.pinned[(self.runs % AHEAD as u64) as usize];
        event.wait()?;
        if batch.src.tokens() > 0 {
            self.encoded.clone_from(&batch.src.cu);
        }
        block.fill(pinned.words(), &self.machine.programs[program], batch, &self.encoded, scalars, self.waiting);
        let stream = &self.machine.streams[0];
        pinned.send(&self.machine.input, block.words, stream)?;
        event.record(stream)?;
        self.last = [batch.src.tokens(), batch.tgt.tokens(), batch.tgt.sequences().max(batch.src.sequences())];
        Ok(())
    }

    /// Reads the ring of results.
    fn drain(&mut self) -> Result {
        self.machine.wait()?;
        let words: Vec<u32> = self.machine.ring.get(0, self.waiting * 4)?;
        self.drained.extend(words.chunks_exact(4).map(|w| StepResult {
            loss: f32::from_bits(w[0]),
            grad_norm: f32::from_bits(w[1]),
            right_tokens: w[2],
            right_sequences: w[3],
        }));
        self.waiting = 0;
        self.machine.ring.clear()
    }

    /// Times every launch of a program on a batch by itself, and adds up the times by kind of launch, the longest first. If the
    /// program trains, parameters and moments are undefined afterwards.
    pub fn profile(&mut self, program: usize, batch: &Batch, scalars: &Scalars) -> Result<Vec<Cost>> {
        self.run(program, batch, scalars)?;
        self.machine.wait()?;
        let rows = self.rows(batch);
        let (_, times) =
            Recorder::new(&mut self.machine, program, rows, Lengths::of(batch), Mode::Profile(Vec::new())).finish()?;
        let mut costs: Vec<Cost> = Vec::new();
        for (label, us) in times {
            match costs.iter_mut().find(|c| c.label == label) {
                Some(cost) => {
                    cost.count += 1;
                    cost.microseconds += us;
                }
                None => costs.push(Cost { label, count: 1, microseconds: us }),
            }
        }
        costs.sort_by(|a, b| b.microseconds.total_cmp(&a.microseconds));
        Ok(costs)
    }

    fn flat_len(&self) -> usize {
        self.machine.programs.iter().map(|p| p.params).max().unwrap_or(0)
    }

    /// Waits; all of a flat buffer.
    fn flat(&self, of: fn(&Machine) -> &DeviceMemory) -> Result<Vec<f32>> {
        self.machine.wait()?;
        of(&self.machine).get(0, self.flat_len())
    }

    /// Waits, and replaces a flat buffer.
    fn set_flat(&self, what: &'static str, of: fn(&Machine) -> &DeviceMemory, values: &[f32]) -> Result {
        check_len(what, values.len(), self.flat_len())?;
        self.machine.wait()?;
        of(&self.machine).put(0, values)
    }

    /// Whether a program keeps an average of the weights.
    fn averages(&self) -> bool {
        self.machine.programs.iter().filter_map(Program::adam).any(Adam::averages)
    }

    /// Runs a kernel over flat buffers, between steps; waits before and after it.
    fn launch_flat(&self, name: &'static str, buffers: &[u64]) -> Result {
        self.machine.wait()?;
        let groups = self.machine.flat / 4;
        let args = buffers.iter().fold(Args::default(), |args, &at| args.ptr(at)).int(groups);
        let kernel = self.machine.kernel(&Unit::new("optimiser.cu", &[]), name)?;
        kernel.launch(Grid::flat(groups.div_ceil(256), 256), &args, false, &self.machine.streams[0])?;
        self.machine.wait()
    }

    /// Real rows of a slot after the last run.
    fn real_rows(&self, program: usize, slot: Slot) -> usize {
        match self.machine.programs[program].info(slot).rows {
            Dim::Tokens(Side::Src) => self.last[0],
            Dim::Tokens(Side::Tgt) => self.last[1],
            Dim::Cache(positions) => positions * self.machine.limits.sequences,
        }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        let _ = self.machine.wait(); // nothing may run on memory that is about to be freed
    }
}

impl Executor for Cuda {
    fn device(&self) -> String {
        self.machine.device.info.device.clone()
    }

    fn programs(&self) -> &[Program] {
        &self.machine.programs
    }

    fn limits(&self) -> Limits {
        self.machine.limits
    }

    fn run(&mut self, program: usize, batch: &Batch, scalars: &Scalars) -> Result {
        self.machine.device.enter()?;
        self.machine.limits.admit(batch)?;
        let rows = self.rows(batch);
        let key = (program, rows, Lengths::of(batch));
        if !self.graphs.contains_key(&key) {
            self.capture(key)?;
        }
        if self.waiting == RING {
            self.drain()?;
        }
        self.send(program, InputBlock::new(&self.machine.limits, rows), batch, scalars)?;
        if let Some(captured) = self.graphs.get_mut(&key) {
            debug_assert_eq!(captured.block, InputBlock::new(&self.machine.limits, rows));
            captured.graph.launch(&self.machine.streams[0])?;
            captured.used = self.runs;
        }
        self.runs += 1;
        self.waiting += 1;
        Ok(())
    }

    fn results(&mut self) -> Result<Vec<StepResult>> {
        self.drain()?;
        Ok(std::mem::take(&mut self.drained))
    }

    fn right(&mut self) -> Result<Vec<bool>> {
        self.machine.wait()?;
        let flags: Vec<i32> = self.machine.right.get(0, self.last[2])?;
        Ok(flags.into_iter().map(|flag| flag != 0).collect())
    }

    fn top(&mut self, tokens: &mut Vec<u8>, logprobs: &mut Vec<f32>) -> Result {
        self.machine.wait()?;
        let len = self.last[1] * self.machine.top_k();
        tokens.clear();
        tokens.extend(self.machine.top_tokens.get::<i32>(0, len)?.into_iter().map(|t| t as u8));
        *logprobs = self.machine.top_logprobs.get(0, len)?;
        Ok(())
    }

    fn params(&mut self) -> Result<Vec<f32>> {
        self.flat(|machine| &machine.params)
    }

    fn set_params(&mut self, params: &[f32]) -> Result {
        self.set_flat("the parameters", |machine| &machine.params, params)?;
        self.launch_flat("copy_params", &[self.machine.params.at, self.machine.copy.at])
    }

    fn moments(&mut self) -> Result<(Vec<f32>, Vec<f32>)> {
        Ok((self.flat(|machine| &machine.first)?, self.flat(|machine| &machine.second)?))
    }

    fn set_moments(&mut self, first: &[f32], second: &[f32]) -> Result {
        self.set_flat("the first moments", |machine| &machine.first, first)?;
        self.set_flat("the second moments", |machine| &machine.second, second)
    }

    fn average(&mut self) -> Result<Option<Vec<f32>>> {
        self.averages().then(|| self.flat(|machine| &machine.average)).transpose()
    }

    fn set_average(&mut self, average: &[f32]) -> Result {
        check_len("the average of the weights", average.len(), if self.averages() { self.flat_len() } else { 0 })?;
        self.set_flat("the average of the weights", |machine| &machine.average, average)
    }

    fn exchange(&mut self) -> Result {
        check_len("the average of the weights", usize::from(self.averages()), 1)?;
        let Machine { params, average, copy, .. } = &self.machine;
        self.launch_flat("exchange", &[params.at, average.at, copy.at])
    }
}

impl Inspect for Cuda {
    fn grads(&mut self) -> Result<Vec<f32>> {
        self.flat(|machine| &machine.grads)
    }

    fn set_grads(&mut self, grads: &[f32]) -> Result {
        self.set_flat("the gradient", |machine| &machine.grads, grads)
    }

    fn read(&mut self, program: usize, slot: Slot) -> Result<Vec<f32>> {
        self.machine.wait()?;
        let info = self.machine.programs[program].info(slot);
        let (dtype, len) = (info.dtype, self.real_rows(program, slot) * info.cols);
        let (arena, at) = self.machine.arena(slot);
        match dtype {
            Dtype::F32 => arena.get(at, len),
            Dtype::Act => Ok(arena.get::<half::bf16>(at, len)?.into_iter().map(half::bf16::to_f32).collect()),
        }
    }

    fn write(&mut self, program: usize, slot: Slot, values: &[f32]) -> Result {
        let info = self.machine.programs[program].info(slot);
        let (dtype, most) = (info.dtype, self.machine.most_rows(info.rows) * info.cols);
        if values.len() > most {
            return Err(EngineError::Shape { what: "a slot", got: values.len(), want: most });
        }
        self.machine.wait()?;
        let (arena, at) = self.machine.arena(slot);
        match dtype {
            Dtype::F32 => arena.put(at, values),
            Dtype::Act => {
                let narrow: Vec<half::bf16> = values.iter().map(|v| half::bf16::from_f32(*v)).collect();
                arena.put(at, &narrow)
            }
        }
    }
}

//! What both devices can do: hold parameters, optimiser state and slots, and run programs on batches.
//!
//! `run` only enqueues (on CUDA nothing waits); results are collected later by `results`, which does wait.
//! Slot i of every program lives in the same memory: what one program leaves there, another may read (a decoder step reads
//! the encoder's keys). A run that does not write a slot leaves it as it was.

use crate::{Batch, EngineError, Program, Result, Slot};

/// The largest batch an executor must take; memory is allocated once for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Sequences in a batch.
    pub sequences: usize,
    /// Source tokens in a batch.
    pub src_tokens: usize,
    /// Target tokens in a batch.
    pub tgt_tokens: usize,
}

impl Limits {
    /// An error if a batch is larger.
    pub(crate) fn admit(&self, batch: &Batch) -> Result {
        let (src, tgt) = (&batch.src, &batch.tgt);
        let parts = [
            ("sequences", src.sequences().max(tgt.sequences()), self.sequences),
            ("source tokens", src.tokens(), self.src_tokens),
            ("target tokens", tgt.tokens(), self.tgt_tokens),
            ("labels", batch.labels.len(), self.tgt_tokens),
        ];
        match parts.into_iter().find(|(_, got, limit)| got > limit) {
            Some((what, got, limit)) => Err(EngineError::Limit { what, got, limit }),
            None => Ok(()),
        }
    }
}

/// Numbers that change from step to step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scalars {
    /// Learning rate of this step.
    pub lr: f32,
    /// What Adam adds to the root of its second moment in this step.
    pub eps: f32,
    /// Number of this optimiser step, from 1 (Adam's bias correction).
    pub step: u64,
    /// Seed of this step's dropout masks.
    pub seed: u64,
}

/// What a run reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepResult {
    /// Mean cross-entropy over the target tokens.
    pub loss: f32,
    /// Global gradient norm before clipping (0 without a [`crate::Adam`]).
    pub grad_norm: f32,
    /// Target tokens whose arg-max was right.
    pub right_tokens: u32,
    /// Sequences all of whose tokens were right.
    pub right_sequences: u32,
}

/// A device with its memory. Programs are given at construction and named by their index.
pub trait Executor {
    /// For people: "CPU, 2 threads" or "NVIDIA H200".
    fn device(&self) -> String;

    /// The programs, in the order given.
    fn programs(&self) -> &[Program];

    /// The largest batch.
    fn limits(&self) -> Limits;

    /// Enqueues one run. Errors: a batch over the limits, a device failure.
    fn run(&mut self, program: usize, batch: &Batch, scalars: &Scalars) -> Result;

    /// Waits for everything enqueued and returns the results of all runs since the last call, in order.
    fn results(&mut self) -> Result<Vec<StepResult>>;

    /// Waits; for each sequence of the *last* run, whether every arg-max equalled its label.
    fn right(&mut self) -> Result<Vec<bool>>;

    /// Waits; tokens and log-probabilities found by the last [`crate::BestTokens`], `k` per hypothesis.
    fn top(&mut self, tokens: &mut Vec<u8>, logprobs: &mut Vec<f32>) -> Result;

    /// The flat parameters in fp32.
    fn params(&mut self) -> Result<Vec<f32>>;

    /// Replaces the flat parameters (and their bf16 copy).
    fn set_params(&mut self, params: &[f32]) -> Result;

    /// Adam's first and second moments, flat.
    fn moments(&mut self) -> Result<(Vec<f32>, Vec<f32>)>;

    /// Replaces Adam's moments.
    fn set_moments(&mut self, first: &[f32], second: &[f32]) -> Result;

    /// The average of the weights, flat; none if no program keeps one.
    fn average(&mut self) -> Result<Option<Vec<f32>>>;

    /// Replaces the average of the weights.
    fn set_average(&mut self, average: &[f32]) -> Result;

    /// Exchanges the parameters with the average of the weights; twice is as if never.
    fn exchange(&mut self) -> Result;
}

/// What tests of single ops need on top of an [`Executor`]; training and decoding do without it.
pub trait Inspect: Executor {
    /// The flat gradient of the last run.
    fn grads(&mut self) -> Result<Vec<f32>>;

    /// Replaces the flat gradient (tests of ops that add to it, and of Adam).
    fn set_grads(&mut self, grads: &[f32]) -> Result;

    /// The real rows of a slot after the last run, as fp32, row-major.
    fn read(&mut self, program: usize, slot: Slot) -> Result<Vec<f32>>;

    /// Writes the first rows of a slot.
    fn write(&mut self, program: usize, slot: Slot, values: &[f32]) -> Result;
}

//! Results of steps, gathered into the lines of the log.

use polystep_engine::{Limits, StepResult};
use serde::{Deserialize, Serialize};

use polystep_record::TrainLine;

/// A step that was enqueued and whose result has not come yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pending {
    pub step: u64,
    /// Examples seen, this step included.
    pub examples: u64,
    pub sequences: u64,
    pub src_tokens: u64,
    pub tgt_tokens: u64,
    pub lr: f64,
}

/// The steps since the last line. It is part of a checkpoint, so that a resumed run writes the same lines as an unbroken one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    steps: u64,
    /// Σ loss · target tokens.
    loss: f64,
    grad_norm: f64,
    right: u64,
    pub(super) sequences: u64,
    pub(super) tokens: u64,
    tgt_tokens: u64,
}

impl Window {
    pub(crate) fn add(&mut self, step: &Pending, result: &StepResult) {
        self.steps += 1;
        self.loss += f64::from(result.loss) * step.tgt_tokens as f64;
        self.grad_norm += f64::from(result.grad_norm);
        self.right += u64::from(result.right_sequences);
        self.sequences += step.sequences;
        self.tokens += step.src_tokens + step.tgt_tokens;
        self.tgt_tokens += step.tgt_tokens;
    }

    /// Whether a run can have this window at this step.
    pub(crate) fn is_possible(&self, step: u64, limits: &Limits) -> bool {
        let sums = self.loss >= 0.0 && self.loss.is_finite() && self.grad_norm >= 0.0 && self.grad_norm.is_finite();
        let most = |each: usize| self.steps.saturating_mul(each as u64);
        sums && self.steps <= step
            && (self.steps..=most(limits.sequences)).contains(&self.sequences)
            && self.right <= self.sequences
            && self.tgt_tokens <= most(limits.tgt_tokens)
            && self.tokens <= most(limits.src_tokens).saturating_add(most(limits.tgt_tokens))
    }

    /// Mean loss over the target tokens so far.
    pub(crate) fn mean_loss(&self) -> f64 {
        self.loss / self.tgt_tokens.max(1) as f64
    }

    /// Share of examples with every token right.
    pub(crate) fn exact(&self) -> f64 {
        self.right as f64 / self.sequences.max(1) as f64
    }

    /// The line, if this step completes one; then the window is empty again.
    pub(crate) fn line(&mut self, last: &Pending, log_every: u64, seconds: f64) -> Option<TrainLine> {
        if !last.step.is_multiple_of(log_every.max(1)) {
            return None;
        }
        let line = TrainLine {
            step: last.step,
            examples: last.examples,
            loss: self.mean_loss(),
            grad_norm: self.grad_norm / self.steps.max(1) as f64,
            lr: last.lr,
            exact: Some(self.exact()),
            tokens: self.tokens,
            seconds,
        };
        *self = Window::default();
        Some(line)
    }
}

//! How a run goes, for whoever draws it.

use std::time::Instant;

use polystep_engine::{Program, StepResult};

use super::window::{Pending, Window};

/// A moment of a run, about once a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Optimiser steps whose results are known.
    pub step: u64,
    /// Examples seen.
    pub examples: u64,
    /// Mean loss over the steps since the last progress.
    pub loss: f64,
    /// Share of their training examples with every token right.
    pub exact: f64,
    /// Full proofs on the validation set, last time.
    pub full_proof: Option<f64>,
    /// Learning rate of the last step.
    pub lr: f64,
    /// Examples a second.
    pub examples_per_second: f64,
    /// Source and target tokens a second.
    pub tokens_per_second: f64,
    /// Operations of matrix products and attention a second.
    pub flops_per_second: f64,
    /// Share of the budget that is spent.
    pub done: f64,
    /// Seconds of training, over all sessions.
    pub seconds: f64,
    /// Seconds left, by the pace of this session.
    pub left: Option<f64>,
}

/// Measures the pace between two collections of results. Validation and saving are left out of it.
pub(crate) struct Pace {
    since: Instant,
    window: Window,
    /// Operations per token of the last batch that was looked at.
    flops_per_token: f64,
}

impl Pace {
    pub fn new() -> Self {
        Pace { since: Instant::now(), window: Window::default(), flops_per_token: 0.0 }
    }

    /// Starts to measure anew.
    pub fn restart(&mut self) {
        self.since = Instant::now();
        self.window = Window::default();
    }

    pub fn add(&mut self, step: &Pending, result: &StepResult) {
        self.window.add(step, result);
    }

    pub fn since(&self) -> std::time::Duration {
        self.since.elapsed()
    }

    /// Looks at one batch to know what a token costs; batches of one run are alike.
    pub fn look(&mut self, program: &Program, batch: &polystep_engine::Batch) {
        let src: Vec<usize> = batch.src.lengths().collect();
        let tgt: Vec<usize> = batch.tgt.lengths().collect();
        let tokens = (batch.src.tokens() + batch.tgt.tokens()).max(1);
        self.flops_per_token = program.flops(&src, &tgt) / tokens as f64;
    }

    /// The progress since the last one; `None` if nothing has happened.
    pub fn progress(&mut self, last: &Pending, done: f64, seconds: f64, session: Session) -> Option<Progress> {
        if self.window.sequences() == 0 {
            return None;
        }
        let elapsed = self.since.elapsed().as_secs_f64().max(1e-9);
        let tokens_per_second = self.window.tokens() as f64 / elapsed;
        let gained = done - session.began_at;
        let progress = Progress {
            step: last.step,
            examples: last.examples,
            loss: self.window.mean_loss(),
            exact: self.window.exact(),
            full_proof: session.full_proof,
            lr: last.lr,
            examples_per_second: self.window.sequences() as f64 / elapsed,
            tokens_per_second,
            flops_per_second: tokens_per_second * self.flops_per_token,
            done,
            seconds,
            left: (gained > 0.0).then(|| session.seconds * (1.0 - done).max(0.0) / gained),
        };
        self.restart();
        Some(progress)
    }
}

/// What a session knows beyond the pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    /// Share of the budget spent when it began.
    pub began_at: f64,
    /// Seconds since then.
    pub seconds: f64,
    /// Full proofs on the validation set, last time.
    pub full_proof: Option<f64>,
}

//! The progress of a run for its observer: the clock, the pace, and a report about once a second.

use std::time::{Duration, Instant};

use polystep_engine::{Batch, Program, StepResult};

use super::schedule::{Spent, share};
use super::window::{Pending, Window};
use crate::config::TrainTable;
use crate::log::{Event, Observer, Progress};

/// Watches a session of a run.
pub(super) struct Watch<'a> {
    observer: &'a mut dyn Observer,
    train: &'a TrainTable,
    /// When the session began, and what had been spent by then.
    began: (Instant, Spent),
    /// The steps since the last progress. Validation and saving are left out of their time.
    since: Instant,
    window: Window,
    /// Operations per token of the last batch that was looked at.
    flops_per_token: f64,
    last: Option<Pending>,
    /// Full proofs on the validation set, last time.
    full_proof: Option<f64>,
}

impl<'a> Watch<'a> {
    /// A watch that runs from now.
    pub fn new(observer: &'a mut dyn Observer, train: &'a TrainTable, spent: Spent, full_proof: Option<f64>) -> Self {
        let now = Instant::now();
        let window = Window::default();
        Watch { observer, train, began: (now, spent), since: now, window, flops_per_token: 0.0, last: None, full_proof }
    }

    /// Passes an event on.
    pub fn event(&mut self, event: &Event<'_>) {
        if let Event::Valid(line) = event {
            self.full_proof = Some(line.full_proof);
        }
        self.observer.event(event);
    }

    /// Begins the session now.
    pub fn begin(&mut self) {
        self.began.0 = Instant::now();
        self.restart();
    }

    /// Starts to measure the pace anew.
    pub fn restart(&mut self) {
        self.since = Instant::now();
        self.window = Window::default();
    }

    /// Time since the last progress.
    pub fn since(&self) -> Duration {
        self.since.elapsed()
    }

    /// Seconds of training until now, over all sessions.
    pub fn seconds(&self) -> f64 {
        self.began.1.seconds + self.began.0.elapsed().as_secs_f64()
    }

    /// Whether the budget is spent, steps and examples as enqueued.
    pub fn budget_over(&self, enqueued: Spent) -> bool {
        share(self.train, Spent { seconds: self.seconds(), ..enqueued }) >= 1.0
    }

    /// Computes from one batch how many operations a token takes. The batches of one run are alike.
    pub fn look(&mut self, program: &Program, batch: &Batch) {
        let src: Vec<usize> = batch.src.lengths().collect();
        let tgt: Vec<usize> = batch.tgt.lengths().collect();
        let tokens = (batch.src.tokens() + batch.tgt.tokens()).max(1);
        self.flops_per_token = program.flops(&src, &tgt) / tokens as f64;
    }

    /// Takes note of a step.
    pub fn add(&mut self, step: &Pending, result: &StepResult) {
        self.window.add(step, result);
        self.last = Some(*step);
    }

    /// Tells the progress since the last time, if there is any. `spent` is up to now, `seconds` up to the last result.
    pub fn tell_progress(&mut self, spent: Spent, seconds: f64) {
        let Some(last) = self.last.filter(|_| self.window.sequences > 0) else { return };
        let elapsed = self.since.elapsed().as_secs_f64().max(1e-9);
        let tokens_per_second = self.window.tokens as f64 / elapsed;
        let done = share(self.train, spent);
        let gained = done - share(self.train, self.began.1);
        let session = self.began.0.elapsed().as_secs_f64();
        let progress = Progress {
            step: last.step,
            examples: last.examples,
            loss: self.window.mean_loss(),
            since: self.window.sequences,
            exact: self.window.exact(),
            full_proof: self.full_proof,
            lr: last.lr,
            examples_per_second: self.window.sequences as f64 / elapsed,
            tokens_per_second,
            flops_per_second: tokens_per_second * self.flops_per_token,
            done,
            seconds,
            left: (gained > 0.0).then(|| session * (1.0 - done).max(0.0) / gained),
        };
        self.restart();
        self.observer.event(&Event::Progress(&progress));
    }
}

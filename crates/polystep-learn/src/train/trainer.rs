//! The training loop. It enqueues steps and reads results only now and then: on CUDA the host never waits for the device in
//! between.
//!
//! Everything that decides what is computed (batches, learning rates, validations, where checkpoints may begin) depends on
//! steps and examples, never on when results were read. So a run that was killed and resumed repeats an unbroken one bit for
//! bit, wherever its device does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polystep_core::stream::{Purpose, Streams};
use polystep_engine::{Executor, Scalars};

use super::evaluate::score;
use super::files::RunFiles;
use super::folder::TrainingFolder;
use super::schedule::{Spent, eps, is_late, learning_rate};
use super::watch::Watch;
use super::window::Pending;
use super::{Checkpoint, RunSetup, RunState, TRAINING};
use crate::LearnError;
use crate::config::Select;
use crate::feed::{Counts, EvalSet, Feed, Moment};
use crate::log::{Event, Observer};
use polystep_record::{BestValidation, LogLine, MixLine, TrainingEnd, TrainingReport, ValidLine};

/// How often results are read, in time.
const COLLECT_EVERY: Duration = Duration::from_millis(1000);
/// After this many steps results are read in any case.
const COLLECT_STEPS: usize = 2000;

/// How a session ended.
#[derive(Clone, Debug)]
pub enum SessionEnd {
    /// The run has come to its end, and was tested if its setup has a test set.
    Finished(Box<TrainingReport>),
    /// It was asked to stop, and saved itself first.
    Stopped {
        /// The step it will continue after.
        step: u64,
    },
}

/// A run on a device.
pub struct Trainer<'a> {
    setup: &'a RunSetup,
    /// What is trained: the numbers on the device, and the state around them.
    executor: &'a mut dyn Executor,
    state: RunState,
    /// What was enqueued. The state follows when the results of the pending steps have come.
    enqueued: Spent,
    pending: VecDeque<Pending>,
    /// Where the data comes from, whether it is cut for the late part of the budget, and how many threads make it.
    feed: Box<dyn Feed>,
    late: bool,
    threads: usize,
    dropout: Streams,
    /// Who watches.
    watch: Watch<'a>,
    /// What is written.
    files: RunFiles<'a>,
}

impl<'a> Trainer<'a> {
    /// Sets everything up, from the newest checkpoint of the folder if there is one. `threads` make data.
    pub fn new(
        setup: &'a RunSetup,
        folder: &'a TrainingFolder,
        executor: &'a mut dyn Executor,
        observer: &'a mut dyn Observer,
        threads: usize,
    ) -> Result<Self, LearnError> {
        let (files, newest) = RunFiles::open(setup, folder)?;
        let Checkpoint { state, params, first, second, average } = match newest {
            Some(checkpoint) => checkpoint,
            None => {
                let (params, zeros) = (setup.first_params()?, vec![0.0; setup.layout.len()]);
                let average = setup.config.train.ema.map(|_| params.clone());
                Checkpoint { state: setup.first_state(), params, first: zeros.clone(), second: zeros, average }
            }
        };
        executor.set_params(&params)?;
        executor.set_moments(&first, &second)?;
        if let Some(average) = &average {
            executor.set_average(average)?;
        }
        let spent = state.spent();
        let late = is_late(&setup.config.train, spent);
        Ok(Trainer {
            feed: setup.feed(&state, late, threads)?,
            late,
            threads,
            dropout: Streams::new(setup.seed(), Purpose::Dropout, ""),
            watch: Watch::new(observer, &setup.config.train, spent, state.best.map(|best| best.full_proof)),
            enqueued: spent,
            pending: VecDeque::with_capacity(COLLECT_STEPS),
            setup,
            executor,
            state,
            files,
        })
    }

    /// Trains until the end of the budget, early stopping or `stop`.
    pub fn run(mut self, stop: &AtomicBool) -> Result<SessionEnd, LearnError> {
        let device = self.executor.device();
        let (parameters, step) = (self.setup.layout.parameters(), self.state.step);
        let valid = (self.setup.valid.proofs, self.setup.valid.steps.len());
        self.watch.event(&Event::Started { device: &device, parameters, step, valid });
        self.watch.begin();
        let ended = loop {
            self.examine_if_due(stop)?;
            if stop.load(Ordering::SeqCst) {
                self.collect()?;
                self.save()?;
                return Ok(SessionEnd::Stopped { step: self.state.step });
            }
            let over = self.watch.budget_over(self.enqueued);
            if over || self.validation_due() {
                self.collect()?;
                if self.state.validated < self.state.examples {
                    self.validate()?;
                }
                if over {
                    break TrainingEnd::BudgetSpent;
                }
            }
            // A resumed run checks this before its first step too: it may have been killed between its last step and its report.
            if self.patience_over() {
                break TrainingEnd::NoNewBest;
            }
            if self.files.save_due(self.enqueued.steps) {
                self.collect()?;
                self.save()?;
                continue;
            }
            self.begin_late_if_due()?;
            self.enqueue(stop)?;
            if self.pending.len() >= COLLECT_STEPS || self.watch.since() >= COLLECT_EVERY {
                self.collect()?;
            }
        };
        Ok(SessionEnd::Finished(Box::new(self.finish(device, ended)?)))
    }

    /// Steps and examples enqueued, seconds until now.
    fn spent(&self) -> Spent {
        Spent { seconds: self.watch.seconds(), ..self.enqueued }
    }

    /// Begins the late part of the budget when its share is reached: from here on, batches are cut for it. What was cut ahead is cut
    /// again, so a run that is resumed here cuts the same batches.
    fn begin_late_if_due(&mut self) -> Result<(), LearnError> {
        if self.late || !is_late(&self.setup.config.train, self.spent()) {
            return Ok(());
        }
        self.late = true;
        let [early, late] = self.setup.config.train.batches();
        if early != late {
            self.collect()?;
            self.feed = self.setup.feed(&self.state, self.late, self.threads)?;
        }
        Ok(())
    }

    /// Enqueues the next step; none if the run is to end before there is a batch.
    fn enqueue(&mut self, stop: &AtomicBool) -> Result<(), LearnError> {
        let give_up = || stop.load(Ordering::SeqCst) || self.watch.budget_over(self.enqueued);
        let Some(batch) = self.feed.next_unless(&give_up)? else { return Ok(()) };
        let spent = Spent { seconds: self.watch.seconds(), ..self.enqueued };
        let train = &self.setup.config.train;
        let (lr, eps) = (learning_rate(train, spent), eps(train, spent) as f32);
        let step = self.enqueued.steps + 1;
        let scalars = Scalars { lr: lr as f32, eps, step, seed: self.dropout.at(step).word() };
        self.executor.run(TRAINING, batch, &scalars)?;
        if self.pending.is_empty() {
            self.watch.look(&self.executor.programs()[TRAINING], batch);
        }
        let sequences = batch.src.sequences() as u64;
        self.enqueued.steps = step;
        self.enqueued.examples += sequences;
        self.pending.push_back(Pending {
            step,
            examples: self.enqueued.examples,
            sequences,
            src_tokens: batch.src.tokens() as u64,
            tgt_tokens: batch.tgt.tokens() as u64,
            lr,
        });
        Ok(())
    }

    /// Waits for all results, updates the state to what was enqueued, and reports the progress.
    fn collect(&mut self) -> Result<(), LearnError> {
        self.gather()?;
        self.watch.tell_progress(self.spent(), self.state.seconds);
        Ok(())
    }

    /// Waits for all results, and updates the state to what was enqueued.
    fn gather(&mut self) -> Result<(), LearnError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let results = self.executor.results()?;
        if results.len() != self.pending.len() {
            let why = format!("{} results for {} steps; this is a bug", results.len(), self.pending.len());
            return Err(LearnError::Data(why));
        }
        self.state.seconds = self.watch.seconds();
        for result in results {
            let Some(step) = self.pending.pop_front() else { break };
            for (what, value) in [("the loss", result.loss), ("the gradient norm", result.grad_norm)] {
                if !value.is_finite() {
                    return Err(self.files.not_finite(what, value, step.step, &self.state)?);
                }
            }
            self.state.step = step.step;
            self.state.examples = step.examples;
            self.state.window.add(&step, &result);
            self.watch.add(&step, &result);
            if let Some(line) = self.state.window.line(&step, self.setup.config.train.log_every, self.state.seconds) {
                self.watch.event(&Event::Train(&line));
                self.files.log(&LogLine::Train(line))?;
            }
        }
        self.follow_feed();
        Ok(())
    }

    /// Takes over where the feed stands.
    fn follow_feed(&mut self) {
        self.state.position = self.feed.position();
        self.state.counts = self.feed.counts();
        self.state.course = self.feed.course().cloned();
        self.state.seen = self.state.seen.map(|_| self.feed.seen());
        self.state.focus = self.feed.focus().copied();
    }

    /// Whether `train.valid_every` examples have passed since the last validation.
    fn validation_due(&self) -> bool {
        let every = self.setup.config.train.valid_every;
        every > 0 && self.enqueued.examples / every > self.state.validated / every
    }

    /// Whether the last validation came too long after the best one.
    fn patience_over(&self) -> bool {
        let patience = self.setup.config.train.patience;
        let best = self.state.best.map_or(0, |b| b.examples);
        patience > 0 && self.state.validated - best >= patience
    }

    /// Validates the weights, or their average if the run keeps one. All results must have been collected.
    fn validate(&mut self) -> Result<(), LearnError> {
        let averaged = self.setup.config.train.ema.is_some();
        if averaged {
            self.executor.exchange()?;
        }
        let scores = score(&self.setup.valid, self.executor, self.setup.model.max_positions)?;
        let RunState { step, examples, .. } = self.state;
        if !scores.loss.is_finite() {
            return Err(self.files.not_finite("the validation loss", scores.loss as f32, step, &self.state)?);
        }
        self.state.validated = examples;
        let (full_proof, stepwise) = (scores.full_proof.share(), scores.stepwise.share());
        let better = self.state.best.is_none_or(|best| best.beaten_by(&scores));
        if better {
            self.state.best = Some(BestValidation { step, examples, full_proof, stepwise });
            if self.setup.config.train.select == Select::Best {
                self.files.keep_best(self.executor.params()?);
            }
        }
        if averaged {
            self.executor.exchange()?;
        }
        self.state.seconds = self.watch.seconds();
        let seconds = self.state.seconds;
        let by_kind = scores.by_kind.into_iter().map(|(kind, share)| (kind, share.share())).collect();
        let (loss, raw) = (Some(scores.loss), scores.raw);
        let best = better;
        let line = ValidLine { step, examples, full_proof, stepwise, by_kind, raw, loss, best, averaged, seconds };
        self.watch.event(&Event::Valid(&line));
        self.files.log(&LogLine::Valid(line))?;
        if let (Some(seen), None) = (self.state.seen, self.state.focus) {
            let line = MixLine::new((step, examples, seconds), &seen, &self.setup.config.class_weights());
            self.watch.event(&Event::Mix(&line));
            self.files.log(&LogLine::Mix(line))?;
        }
        self.watch.restart();
        Ok(())
    }

    /// Examines the tasks of a curriculum, or the classes of a stream that follows the errors, at the end of a round. How tasks
    /// stand is logged once in a window of the log.
    fn examine_if_due(&mut self, stop: &AtomicBool) -> Result<(), LearnError> {
        let give_up = || stop.load(Ordering::SeqCst) || self.watch.budget_over(self.enqueued);
        let Some(exam) = self.feed.exam(&give_up)? else { return Ok(()) };
        self.gather()?;
        let scores = score(&exam, self.executor, self.setup.model.max_positions)?;
        let RunState { step, examples, .. } = self.state;
        let log_every = self.setup.config.train.log_every;
        let window = |step: u64| step / log_every;
        let before = self.state.course.as_ref().map_or(0, |course| course.examined);
        let line = self.feed.graded(Moment { step, examples, seconds: self.watch.seconds() }, &scores)?;
        self.follow_feed();
        match &line {
            Some(LogLine::Curriculum(line)) if window(step) > window(before) => {
                self.watch.event(&Event::Curriculum(line));
            }
            Some(LogLine::Mix(line)) => self.watch.event(&Event::Mix(line)),
            _ => return Ok(()),
        }
        line.map_or(Ok(()), |line| self.files.log(&line))
    }

    /// Writes a checkpoint. All results must have been collected.
    fn save(&mut self) -> Result<(), LearnError> {
        let params = self.executor.params()?;
        let (first, second) = self.executor.moments()?;
        let average = self.executor.average()?;
        let path = self.files.save(&Checkpoint { state: self.state.clone(), params, first, second, average })?;
        self.watch.event(&Event::Saved { step: self.state.step, path: &path });
        self.watch.restart();
        Ok(())
    }

    /// Saves a checkpoint, chooses the weights, and tests them once if the setup has a test set. Only then it writes them, because a
    /// run folder with weights counts as finished.
    fn finish(&mut self, device: String, ended: TrainingEnd) -> Result<TrainingReport, LearnError> {
        self.save()?;
        let setup = self.setup;
        let averaged = setup.config.train.ema.is_some();
        let mut tested_step = self.state.step;
        if let (Some(weights), Some(best)) = (self.files.best(), &self.state.best) {
            self.executor.set_params(weights)?;
            tested_step = best.step;
        } else if averaged {
            self.executor.exchange()?;
        }
        let score = |set: &EvalSet| score(set, self.executor, setup.model.max_positions);
        let test = setup.test.as_ref().map(score).transpose()?;
        let Counts { proofs, rejected, skipped } = self.state.counts;
        let report = TrainingReport {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: crate::COMMIT.into(),
            device,
            recipe: setup.config.train.recipe,
            seed: setup.seed(),
            parameters: setup.layout.parameters(),
            steps: self.state.step,
            examples: self.state.examples,
            seconds: self.state.seconds,
            tested_step,
            averaged,
            proofs,
            rejected,
            skipped,
            ended,
            valid: self.state.best,
            test,
        };
        self.files.finish(&self.executor.params()?, &report)?;
        self.watch.event(&Event::Finished(&report));
        Ok(report)
    }
}

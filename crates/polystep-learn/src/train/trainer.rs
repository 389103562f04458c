//! The training loop. It enqueues steps and looks at results only now and then: on CUDA the host never waits for the device
//! in between.
//!
//! Everything that decides what is computed (batches, learning rates, validations, where checkpoints may begin) depends on
//! steps and examples, never on when results were read. So a run that was killed and resumed repeats an unbroken one bit for
//! bit, wherever its device does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polystep_core::stream::{Purpose, Streams};
use polystep_engine::{Executor, Scalars};

use super::evaluate::EvalSet;
use super::folder::RunFolder;
use super::progress::{Pace, Session};
use super::schedule::{Spent, learning_rate, share};
use super::score::{Best, TestReport};
use super::window::Pending;
use super::{EVALUATION, Plan, TRAINING};
use crate::LearnError;
use crate::checkpoint::{Checkpoint, Checkpoints, State};
use crate::config::Select;
use crate::curriculum::Curriculum;
use crate::feed::{Counts, Feed, Position};
use crate::log::{CurriculumLine, Event, Line, Logs, Observer, ValidLine};
use crate::model::initial_params;
use crate::weights::{WeightType, load_weights, save_weights};

/// How often results are read.
const COLLECT_EVERY: Duration = Duration::from_millis(1000);
/// And after how many steps at the latest.
const COLLECT_STEPS: usize = 2000;

/// How a session ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The run has come to its end, and was tested if its plan says so.
    Finished(Box<TestReport>),
    /// It was asked to stop, and saved itself first.
    Stopped {
        /// The step it will continue after.
        step: u64,
    },
}

/// A run on a device.
pub struct Trainer<'a> {
    plan: &'a Plan,
    folder: &'a RunFolder,
    executor: &'a mut dyn Executor,
    observer: &'a mut dyn Observer,
    feed: Box<dyn Feed>,
    dropout: Streams,
    checkpoints: Checkpoints,
    logs: Logs,
    state: State,
    /// Steps enqueued; `state` follows when their results have come.
    enqueued: Spent,
    pending: VecDeque<Pending>,
    last: Option<Pending>,
    /// Weights of the best validation, and whether they are on the disk.
    best: Option<(Vec<f32>, bool)>,
    pace: Pace,
    began: Instant,
    began_at: Spent,
    saved: Instant,
    saved_step: u64,
    full_proof: Option<f64>,
}

impl<'a> Trainer<'a> {
    /// Sets everything up, from the newest checkpoint of the folder if there is one. `threads` make data.
    pub fn new(
        plan: &'a Plan,
        folder: &'a RunFolder,
        executor: &'a mut dyn Executor,
        observer: &'a mut dyn Observer,
        threads: usize,
    ) -> Result<Self, LearnError> {
        let checkpoints = Checkpoints::open(folder.path())?;
        let saved = checkpoints.newest(plan.layout.len())?;
        let (state, best) = match saved {
            Some(Checkpoint { state, params, first, second }) => {
                plan.check_resume(&state, &checkpoints.path(state.step))?;
                executor.set_params(&params)?;
                executor.set_moments(&first, &second)?;
                let best = match &state.best {
                    Some(best) if plan.config.train.select == Select::Best => {
                        Some((load_weights(&checkpoints.best_path(best.step), &plan.layout)?, true))
                    }
                    _ => None,
                };
                (state, best)
            }
            None => {
                executor.set_params(&initial_params(&plan.model, &plan.layout, plan.seed()))?;
                let zeros = vec![0.0; plan.layout.len()];
                executor.set_moments(&zeros, &zeros)?;
                (plan.first_state(), None)
            }
        };
        checkpoints.forget_after(state.step)?;
        let feed = plan.feed(&state, threads)?;
        let spent = Spent { steps: state.step, examples: state.examples, seconds: state.seconds };
        let now = Instant::now();
        Ok(Trainer {
            logs: Logs::open(folder.path(), state.step)?,
            dropout: Streams::new(plan.seed(), Purpose::Dropout, ""),
            feed,
            full_proof: state.best.map(|b| b.full_proof),
            enqueued: spent,
            began_at: spent,
            pending: VecDeque::with_capacity(COLLECT_STEPS),
            last: None,
            pace: Pace::new(),
            began: now,
            saved: now,
            saved_step: spent.steps,
            plan,
            folder,
            executor,
            observer,
            checkpoints,
            state,
            best,
        })
    }

    /// Trains until the end of the budget, early stopping or `stop`.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Outcome, LearnError> {
        let device = self.executor.device();
        self.observer.event(&Event::Started {
            device: &device,
            parameters: self.plan.layout.parameters(),
            step: self.state.step,
        });
        self.began = Instant::now();
        self.pace.restart();
        let ended = loop {
            if let Some(exam) = self.feed.exam()? {
                self.examine(&exam)?;
            }
            if stop.load(Ordering::SeqCst) {
                self.collect()?;
                self.save()?;
                return Ok(Outcome::Stopped { step: self.state.step });
            }
            let over = share(&self.plan.config.train, self.spent()) >= 1.0;
            if over || self.validation_due() {
                self.collect()?;
                if self.state.validated < self.state.examples {
                    self.validate()?;
                }
                if over {
                    break "the budget is spent";
                }
            }
            // Also before a resumed run's first step: it may have been killed between this and its report.
            if self.patience_over() {
                break "no new best on the validation set";
            }
            if self.save_due() {
                self.collect()?;
                self.save()?;
                continue;
            }
            self.enqueue()?;
            if self.pending.len() >= COLLECT_STEPS || self.pace.since() >= COLLECT_EVERY {
                self.collect()?;
            }
        };
        let report = self.finish(device, ended)?;
        Ok(Outcome::Finished(Box::new(report)))
    }

    /// Steps and examples enqueued, seconds until now.
    fn spent(&self) -> Spent {
        let seconds = self.began_at.seconds + self.began.elapsed().as_secs_f64();
        Spent { seconds, ..self.enqueued }
    }

    fn enqueue(&mut self) -> Result<(), LearnError> {
        let lr = learning_rate(&self.plan.config.train, self.spent());
        let step = self.enqueued.steps + 1;
        let scalars = Scalars { lr: lr as f32, step, seed: self.dropout.at(step).word() };
        let batch = self.feed.next()?;
        self.executor.run(TRAINING, batch, &scalars)?;
        if self.pending.is_empty() {
            self.pace.look(&self.executor.programs()[TRAINING], batch);
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

    /// Waits for all results, brings the state up to what was enqueued, and tells how it goes.
    fn collect(&mut self) -> Result<(), LearnError> {
        self.gather()?;
        self.tell_progress();
        Ok(())
    }

    /// Waits for all results and brings the state up to what was enqueued.
    fn gather(&mut self) -> Result<(), LearnError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let results = self.executor.results()?;
        if results.len() != self.pending.len() {
            let why = format!("{} results for {} steps; this is a bug", results.len(), self.pending.len());
            return Err(LearnError::Data(why));
        }
        self.state.seconds = self.spent().seconds;
        for result in results {
            let Some(step) = self.pending.pop_front() else { break };
            for (what, value) in [("the loss", result.loss), ("the gradient norm", result.grad_norm)] {
                if !value.is_finite() {
                    return Err(LearnError::NonFinite { what, step: step.step, value, kept: self.kept()? });
                }
            }
            self.state.step = step.step;
            self.state.examples = step.examples;
            self.state.window.add(&step, &result);
            self.pace.add(&step, &result);
            self.last = Some(step);
            if let Some(line) = self.state.window.line(&step, self.plan.config.train.log_every, self.state.seconds) {
                self.observer.event(&Event::Train(&line));
                self.logs.write(&Line::Train(line))?;
            }
        }
        self.state.position = self.feed.position();
        self.state.counts = self.feed.counts();
        self.state.course = self.feed.course().cloned();
        Ok(())
    }

    fn tell_progress(&mut self) {
        let Some(last) = self.last else { return };
        let train = &self.plan.config.train;
        let session = Session {
            began_at: share(train, self.began_at),
            seconds: self.began.elapsed().as_secs_f64(),
            full_proof: self.full_proof,
        };
        let done = share(train, self.spent());
        if let Some(progress) = self.pace.progress(&last, done, self.state.seconds, session) {
            self.observer.event(&Event::Progress(&progress));
        }
    }

    /// Saves what is still good of a run that cannot go on, and says what there is.
    fn kept(&mut self) -> Result<String, LearnError> {
        self.save_best()?;
        let mut kept = match self.checkpoints.steps()?.last() {
            Some(&last) => format!("{} is the last good checkpoint", self.checkpoints.path(last).display()),
            None => "there is no checkpoint yet".into(),
        };
        if let (Some(_), Some(best)) = (&self.best, &self.state.best) {
            kept += &format!(", {} holds the best weights", self.checkpoints.best_path(best.step).display());
        }
        Ok(kept)
    }

    /// Whether this many examples have passed since the last validation.
    fn validation_due(&self) -> bool {
        let every = self.plan.config.train.valid_every;
        every > 0 && self.enqueued.examples / every > self.state.validated / every
    }

    /// Whether the last validation came too long after the best one.
    fn patience_over(&self) -> bool {
        let patience = self.plan.config.train.patience;
        let best = self.state.best.map_or(0, |b| b.examples);
        patience > 0 && self.state.validated - best >= patience
    }

    /// Validates; everything enqueued has been collected.
    fn validate(&mut self) -> Result<(), LearnError> {
        let scores = self.plan.valid.score(self.executor, EVALUATION, self.plan.model.max_positions)?;
        let State { step, examples, .. } = self.state;
        if !scores.loss.is_finite() {
            let (what, value) = ("the validation loss", scores.loss as f32);
            return Err(LearnError::NonFinite { what, step, value, kept: self.kept()? });
        }
        self.state.validated = examples;
        let (full_proof, stepwise) = (scores.full_proof.share, scores.stepwise.share);
        let better = self.state.best.is_none_or(|best| best.beaten_by(&scores));
        if better {
            self.state.best = Some(Best { step, examples, full_proof, stepwise });
            if self.plan.config.train.select == Select::Best {
                self.best = Some((self.executor.params()?, false));
            }
        }
        self.full_proof = Some(full_proof);
        self.state.seconds = self.spent().seconds;
        let seconds = self.state.seconds;
        let by_kind = scores.by_kind.into_iter().map(|(kind, share)| (kind, share.share)).collect();
        let (loss, raw) = (scores.loss, scores.raw);
        let line = ValidLine { step, examples, full_proof, stepwise, by_kind, raw, loss, best: better, seconds };
        self.observer.event(&Event::Valid(&line));
        self.logs.write(&Line::Valid(line))?;
        self.pace.restart();
        Ok(())
    }

    /// Examines the tasks of a curriculum and logs how they stand, once in a window of the log.
    fn examine(&mut self, exam: &EvalSet) -> Result<(), LearnError> {
        self.gather()?;
        let scores = exam.score(self.executor, EVALUATION, self.plan.model.max_positions)?;
        let State { step, examples, .. } = self.state;
        let window = |step: u64| step / self.plan.config.train.log_every;
        let before = self.state.course.as_ref().map_or(0, |course| course.examined);
        let tasks = self.feed.graded(step, &scores);
        self.state.course = self.feed.course().cloned();
        if window(step) > window(before) {
            let line = CurriculumLine { step, examples, tasks, seconds: self.spent().seconds };
            self.observer.event(&Event::Curriculum(&line));
            self.logs.write(&Line::Curriculum(line))?;
        }
        Ok(())
    }

    fn save_due(&self) -> bool {
        let train = &self.plan.config.train;
        let new = self.enqueued.steps > self.saved_step;
        let by_steps = train.checkpoint_steps > 0 && self.enqueued.steps.is_multiple_of(train.checkpoint_steps);
        let by_time =
            train.checkpoint_minutes > 0.0 && self.saved.elapsed().as_secs_f64() >= 60.0 * train.checkpoint_minutes;
        new && (by_steps || by_time)
    }

    /// Writes the best weights, unless they are on the disk already.
    fn save_best(&mut self) -> Result<(), LearnError> {
        if let (Some((weights, on_disk @ false)), Some(best)) = (&mut self.best, &self.state.best) {
            save_weights(&self.checkpoints.best_path(best.step), &self.plan.layout, weights, WeightType::F32)?;
            *on_disk = true;
        }
        Ok(())
    }

    /// Writes a checkpoint; everything enqueued has been collected.
    fn save(&mut self) -> Result<(), LearnError> {
        self.save_best()?;
        let path = self.checkpoints.path(self.state.step);
        let params = self.executor.params()?;
        let (first, second) = self.executor.moments()?;
        if let Some(&value) = params.iter().chain(&first).chain(&second).find(|x| !x.is_finite()) {
            let (what, step) = ("a weight or moment", self.state.step);
            return Err(LearnError::NonFinite { what, step, value, kept: self.kept()? });
        }
        Checkpoint { state: self.state.clone(), params, first, second }.save(&path)?;
        self.checkpoints.tidy()?;
        self.observer.event(&Event::Saved { step: self.state.step, path: &path });
        self.saved = Instant::now();
        self.saved_step = self.state.step;
        self.pace.restart();
        Ok(())
    }

    /// Saves, chooses the weights, tests them once where the plan has a test set, and only then writes them.
    fn finish(&mut self, device: String, ended: &str) -> Result<TestReport, LearnError> {
        self.save()?;
        let plan = self.plan;
        let mut tested_step = self.state.step;
        if let (Some((weights, _)), Some(best)) = (&self.best, &self.state.best) {
            self.executor.set_params(weights)?;
            tested_step = best.step;
        }
        let score = |set: &EvalSet| set.score(self.executor, EVALUATION, plan.model.max_positions);
        let test = plan.test.as_ref().map(score).transpose()?;
        // Only now: who finds weights takes the run for a finished one.
        save_weights(&self.folder.model(), &plan.layout, &self.executor.params()?, WeightType::F32)?;
        let Counts { proofs, rejected, skipped } = self.state.counts;
        let report = TestReport {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: crate::COMMIT.into(),
            device,
            recipe: plan.config.train.recipe.to_string(),
            seed: plan.seed(),
            parameters: plan.layout.parameters(),
            steps: self.state.step,
            examples: self.state.examples,
            seconds: self.state.seconds,
            tested_step,
            proofs,
            rejected,
            skipped,
            ended: ended.into(),
            valid: self.state.best,
            test,
        };
        self.folder.write_metrics(&report)?;
        self.observer.event(&Event::Finished(&report));
        Ok(report)
    }
}

impl Plan {
    /// The state before the first step.
    pub(super) fn first_state(&self) -> State {
        State {
            step: 0,
            examples: 0,
            position: Position::default(),
            seed: self.seed(),
            counts: Counts::default(),
            seconds: 0.0,
            best: None,
            validated: 0,
            window: Default::default(),
            limits: self.limits,
            course: self.curriculum.as_ref().map(Curriculum::begin),
        }
    }
}

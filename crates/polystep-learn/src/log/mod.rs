//! What a run reports while it trains: lines of `metrics.jsonl`, TensorBoard event files, and events for an observer that shows
//! the progress.

mod tensorboard;

pub use tensorboard::EventFile;

use std::path::Path;

use polystep_record::{
    ClassLine, CurriculumLine, LogFile, LogLine, MixLine, RecordError, RunFolder, TaskLine, TrainLine, TrainingReport,
    ValidLine,
};

use crate::LearnError;

/// Something that happened in a run.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Before the first step of this session.
    Started {
        /// The device, for people.
        device: &'a str,
        /// Trained parameters of the model.
        parameters: usize,
        /// The step it continues after; 0 for a fresh run.
        step: u64,
        /// Proofs and steps of the validation set.
        valid: (usize, usize),
    },
    /// Results have arrived, about once a second.
    Progress(&'a Progress),
    /// A window of training steps is complete.
    Train(&'a TrainLine),
    /// A validation is done.
    Valid(&'a ValidLine),
    /// The tasks of a curriculum were examined.
    Curriculum(&'a CurriculumLine),
    /// The classes that were trained on, in a run that mixes them.
    Mix(&'a MixLine),
    /// A checkpoint is safe on the disk.
    Saved {
        /// Its step.
        step: u64,
        /// Its file.
        path: &'a Path,
    },
    /// The run has come to its end.
    Finished(&'a TrainingReport),
}

/// A moment of a run, about once a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Optimiser steps whose results are known.
    pub step: u64,
    /// Examples seen.
    pub examples: u64,
    /// Mean loss over the steps since the last progress.
    pub loss: f64,
    /// Their training examples.
    pub since: u64,
    /// Share of those with every token right.
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

/// An observer of a run. It is called between two steps, so its work costs training time.
pub trait Observer {
    /// Takes an event.
    fn event(&mut self, event: &Event<'_>);
}

/// An observer that ignores everything.
impl Observer for () {
    fn event(&mut self, _: &Event<'_>) {}
}

impl<F: FnMut(&Event<'_>)> Observer for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}

/// The two files that every run writes.
pub(crate) struct Logs {
    metrics: LogFile,
    events: EventFile,
    folder: std::path::PathBuf,
}

impl Logs {
    /// Opens both in a run's folder, to continue after `step`.
    pub fn open(folder: &Path, step: u64) -> Result<Self, LearnError> {
        let metrics = LogFile::open(&RunFolder::new(folder).log(), step)?;
        Ok(Logs { metrics, events: EventFile::create(folder, step)?, folder: folder.to_path_buf() })
    }

    /// Writes a line to both.
    pub fn write(&mut self, line: &LogLine) -> Result<(), LearnError> {
        let failed = |e| RecordError::file("write the logs in", &self.folder)(e).into();
        self.metrics.write(line).map_err(failed)?;
        match line.progress() {
            Some((step, ..)) => self.events.scalars(step, &scalars(line)).map_err(failed),
            None => Ok(()),
        }
    }
}

/// What TensorBoard shows of a line.
fn scalars(line: &LogLine) -> Vec<(String, f64)> {
    let named = |group: &str, values: &[(&str, f64)]| -> Vec<(String, f64)> {
        values.iter().map(|(name, value)| (format!("{group}/{name}"), *value)).collect()
    };
    match line {
        LogLine::Train(l) => {
            let exact = l.exact.unwrap_or_default();
            named("train", &[("loss", l.loss), ("grad_norm", l.grad_norm), ("exact", exact), ("lr", l.lr)])
        }
        LogLine::Valid(l) => {
            let all = [("full_proof", l.full_proof), ("stepwise", l.stepwise), ("loss", l.loss.unwrap_or_default())];
            let kinds = l.by_kind.iter().map(|(kind, share)| (kind.as_str(), *share));
            named("valid", &all.into_iter().chain(kinds).collect::<Vec<_>>())
        }
        LogLine::Curriculum(l) => {
            let task = |t: &TaskLine| {
                let TaskLine { accuracy, mastering, attention, share, .. } = *t;
                let values =
                    [("accuracy", accuracy), ("mastering", mastering), ("attention", attention), ("share", share)];
                named(&format!("curriculum/{}", t.task), &values)
            };
            l.tasks.iter().flat_map(task).collect()
        }
        LogLine::Mix(l) => {
            let class = |c: &ClassLine| {
                let accuracy = c.accuracy.map(|accuracy| ("accuracy", accuracy));
                let values: Vec<_> = [("share", c.share), ("weight", c.weight)].into_iter().chain(accuracy).collect();
                named(&format!("mix/{}", c.class), &values)
            };
            l.classes.iter().flat_map(class).collect()
        }
        LogLine::Other => Vec::new(),
    }
}

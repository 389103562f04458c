//! Which model fits an expression: the one that learned such expressions and proves most of them.
//!
//! Only the configuration and the numbers of a model are read here; its weights are read when it has been chosen.

use std::path::{Path, PathBuf};

use polystep_core::{ArithmeticError, State, Task, fit};
use polystep_record::metrics::Evaluation;
use polystep_record::{Metrics, RecordError, RunFolder};

use crate::LearnError;
use crate::train::TrainingFolder;

/// A model that has not been read yet.
#[derive(Clone, Debug)]
pub struct KnownModel {
    /// Its folder.
    pub folder: PathBuf,
    /// What it learned; the first is its own.
    pub tasks: Vec<Task>,
    metrics: Metrics,
}

impl KnownModel {
    /// The model of a run's folder.
    pub fn open(folder: PathBuf) -> Result<KnownModel, LearnError> {
        let (_, config) = TrainingFolder::open(&folder)?;
        let tasks = config.tasks()?;
        let missing = || LearnError::Folder(format!("{} has no metrics.json", folder.display()));
        // Whoever names the folder can put another there.
        let damaged = |e: RecordError| LearnError::Folder(e.to_string());
        let metrics = RunFolder::new(&folder).read_metrics().map_err(damaged)?.ok_or_else(missing)?;
        Ok(KnownModel { folder, tasks, metrics })
    }

    /// Full proofs on the test set of a task, in percent; 0 if that was not measured.
    pub fn accuracy(&self, task: &Task) -> f64 {
        let same = |e: &&Evaluation| e.config == task.space.key && e.vars as usize == task.vars;
        let greedy = self.metrics.evaluations.iter().find(same).and_then(|e| e.greedy.as_ref());
        greedy.map_or(0.0, |g| g.full_proof.exact.percent)
    }

    /// How well it does where the expression could have been sampled; nothing if that is nowhere.
    fn at_home(&self, start: &State) -> Result<Option<f64>, ArithmeticError> {
        let mut best: Option<f64> = None;
        for task in &self.tasks {
            if fit::fits(start, task)? {
                best = Some(best.unwrap_or(0.0).max(self.accuracy(task)));
            }
        }
        Ok(best)
    }
}

/// Every model of a folder, by name; a damaged one is named.
pub fn known_models(folder: &Path) -> Result<Vec<KnownModel>, LearnError> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(RecordError::file("read", folder))? {
        let path = entry.map_err(RecordError::file("read", folder))?.path();
        if RunFolder::new(&path).is_begun() {
            folders.push(path);
        }
    }
    folders.sort();
    folders.into_iter().map(KnownModel::open).collect()
}

/// The model for an expression among those that write as asked: the best one at home, else (with no home) the one that
/// learned most. With it comes why it was chosen.
pub fn fitting<'a>(
    models: impl IntoIterator<Item = &'a KnownModel>,
    start: &State,
    writes: impl Fn(&Task) -> bool,
) -> Result<Option<(&'a KnownModel, String)>, ArithmeticError> {
    let mut candidates = Vec::new();
    for model in models.into_iter().filter(|m| m.tasks.first().is_some_and(&writes)) {
        candidates.push((model.at_home(start)?, model));
    }
    let (all, at_home) = (candidates.len(), candidates.iter().filter(|c| c.0.is_some()).count());
    let mut best: Option<(Option<f64>, &KnownModel)> = None;
    for (home, model) in candidates {
        let better = best.as_ref().is_none_or(|b| (home, model.tasks.len()) > (b.0, b.1.tasks.len()));
        if better {
            best = Some((home, model));
        }
    }
    let why = match (all, at_home) {
        (1, 0) => "the only bundled model that writes such proofs, but it did not learn such expressions".to_owned(),
        (_, 0) => "no bundled model learned such expressions, and this one learned the most spaces".to_owned(),
        (_, 1) => "the only bundled model that learned such expressions".to_owned(),
        (_, n) => format!("the best of the {n} bundled models that learned such expressions"),
    };
    Ok(best.map(|b| (b.1, why)))
}

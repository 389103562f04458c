//! `--more`: a finished run continued as a new one.
//!
//! The new run has the old one's weights, moments, data position and learning curves. It draws data that the old run has not
//! seen, and it is tested at its own end. The old run stays as it is: what was tested once stays tested.

use std::path::Path;

use polystep_record::folder::lease_of;
use polystep_record::{Lease, RecordError, RunFolder};

use super::stored::newest;
use super::{Checkpoints, TrainingFolder};
use crate::LearnError;
use crate::config::RunConfig;
use crate::model::ParamLayout;

impl RunConfig {
    /// The configuration of a finished run that is continued for `more` examples. The budget in examples grows, other budgets and
    /// early stopping end.
    pub fn continued(mut self, old: &Path, more: u64) -> Result<RunConfig, LearnError> {
        let folder = RunFolder::new(old);
        if !folder.is_finished() || !folder.has_model() {
            let name = old.display();
            return Err(LearnError::Folder(format!(
                "{name} is not finished: continue it with polystep train --resume --out {name}"
            )));
        }
        let why = "has no checkpoint to continue from; --init alone starts from its weights";
        let state = newest(old, ParamLayout::new(&self.model).len()).map(|checkpoint| checkpoint.state);
        let state = state.map_err(|error| match error {
            LearnError::Folder(_) => LearnError::Folder(format!("{} {why}", old.display())),
            error => error,
        })?;
        self.train.examples = Some(state.examples.saturating_add(more));
        (self.train.steps, self.train.minutes, self.train.patience) = (None, None, 0);
        self.train.continues = Some(old.to_path_buf());
        Ok(self)
    }
}

impl TrainingFolder {
    /// A new folder that continues the run in another one: its newest checkpoint, the best weights and the learning curves are
    /// copied. The configuration comes last, because with it the folder holds a run.
    pub fn continuing(old: &Path, path: &Path, config: &RunConfig) -> Result<Self, LearnError> {
        std::fs::create_dir_all(path).map_err(RecordError::file("make", path))?;
        let folder = TrainingFolder::held(path, Lease::take(&lease_of(path))?);
        TrainingFolder::check_unused(path)?;
        let checkpoint = newest(old, ParamLayout::new(&config.model).len())?;
        let (from, to) = (Checkpoints::of(old), Checkpoints::open(path)?);
        let best = checkpoint.state.best.map(|best| (from.best_path(best.step), to.best_path(best.step)));
        let log = (RunFolder::new(old).log(), folder.log());
        for (from, to) in best.into_iter().chain([log]).filter(|(from, _)| from.exists()) {
            std::fs::copy(&from, &to).map_err(RecordError::file("copy", &from))?;
        }
        checkpoint.save(&to.path(checkpoint.state.step))?;
        folder.write_config(config)?;
        Ok(folder)
    }
}

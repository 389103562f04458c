//! What a run writes while it trains: its logs, its checkpoints and the best weights so far.

use std::time::Instant;

use polystep_record::{LogLine, TrainingReport};

use super::{Checkpoint, Checkpoints, RunSetup, RunState, TrainingFolder};
use crate::LearnError;
use crate::config::Select;
use crate::log::Logs;
use crate::weights::{LoadedWeights, WeightType, load_weights, save_weights};

/// The files of a run that is being trained.
pub(super) struct RunFiles<'a> {
    setup: &'a RunSetup,
    folder: &'a TrainingFolder,
    checkpoints: Checkpoints,
    logs: Logs,
    best: Option<BestWeights>,
    /// When and at which step the last checkpoint was written.
    saved: (Instant, u64),
}

/// The weights of the best validation.
struct BestWeights {
    weights: Vec<f32>,
    on_disk: bool,
}

impl<'a> RunFiles<'a> {
    /// Opens the files of a run's folder, and reads its newest checkpoint if there is one.
    pub fn open(setup: &'a RunSetup, folder: &'a TrainingFolder) -> Result<(Self, Option<Checkpoint>), LearnError> {
        let checkpoints = Checkpoints::open(folder.path())?;
        let newest = checkpoints.newest(setup.layout.len())?;
        let mut best = None;
        if let Some(checkpoint @ Checkpoint { state, .. }) = &newest {
            setup.check_resume(checkpoint, &checkpoints.path(state.step))?;
            if let (Some(found), Select::Best) = (&state.best, setup.config.train.select) {
                let path = checkpoints.best_path(found.step);
                let LoadedWeights { params: weights, verified } = load_weights(&path, &setup.layout)?;
                if !verified {
                    return Err(LearnError::Damaged { path, why: "it has no checksum".into(), help: String::new() });
                }
                best = Some(BestWeights { weights, on_disk: true });
            }
        }
        let step = newest.as_ref().map_or(0, |checkpoint| checkpoint.state.step);
        checkpoints.forget_after(step)?;
        let logs = Logs::open(folder.path(), step)?;
        Ok((RunFiles { setup, folder, checkpoints, logs, best, saved: (Instant::now(), step) }, newest))
    }

    /// Writes a line of the log.
    pub fn log(&mut self, line: &LogLine) -> Result<(), LearnError> {
        self.logs.write(line)
    }

    /// Whether a checkpoint is due after a step.
    pub fn save_due(&self, step: u64) -> bool {
        let train = &self.setup.config.train;
        let (when, last) = self.saved;
        let by_steps = train.checkpoint_steps > 0 && step.is_multiple_of(train.checkpoint_steps);
        let by_time = train.checkpoint_minutes > 0.0 && when.elapsed().as_secs_f64() >= 60.0 * train.checkpoint_minutes;
        step > last && (by_steps || by_time)
    }

    /// Writes the best weights, then a checkpoint.
    pub fn save(&mut self, checkpoint: &Checkpoint) -> Result<std::path::PathBuf, LearnError> {
        let Checkpoint { state, params, first, second, average } = checkpoint;
        self.folder.check_lease()?;
        self.save_best(state)?;
        if let Some(&value) =
            params.iter().chain(first).chain(second).chain(average.iter().flatten()).find(|x| !x.is_finite())
        {
            return Err(self.not_finite("a weight or moment", value, state.step, state)?);
        }
        let path = self.checkpoints.path(state.step);
        checkpoint.save(&path)?;
        self.checkpoints.tidy()?;
        self.saved = (Instant::now(), state.step);
        Ok(path)
    }

    /// Keeps weights as the best so far.
    pub fn keep_best(&mut self, weights: Vec<f32>) {
        self.best = Some(BestWeights { weights, on_disk: false });
    }

    /// The best weights so far, if the run keeps them.
    pub fn best(&self) -> Option<&[f32]> {
        self.best.as_ref().map(|best| best.weights.as_slice())
    }

    /// Writes the best weights, unless they are on the disk already.
    fn save_best(&mut self, state: &RunState) -> Result<(), LearnError> {
        if let (Some(BestWeights { weights, on_disk: on_disk @ false }), Some(best)) = (&mut self.best, &state.best) {
            save_weights(&self.checkpoints.best_path(best.step), &self.setup.layout, weights, WeightType::F32)?;
            *on_disk = true;
        }
        Ok(())
    }

    /// The error of a run that cannot continue because a number of a step is not finite. The weights that are still good are saved
    /// first, and the error names them.
    pub fn not_finite(
        &mut self,
        what: &'static str,
        value: f32,
        step: u64,
        state: &RunState,
    ) -> Result<LearnError, LearnError> {
        self.save_best(state)?;
        let mut kept = match self.checkpoints.steps()?.last() {
            Some(&last) => format!("{} is the last good checkpoint", self.checkpoints.path(last).display()),
            None => "there is no checkpoint yet".into(),
        };
        if let (Some(_), Some(best)) = (&self.best, &state.best) {
            kept += &format!(", {} holds the best weights", self.checkpoints.best_path(best.step).display());
        }
        Ok(LearnError::NonFinite { what, step, value, kept })
    }

    /// Writes the finished model, and then its report.
    pub fn finish(&self, weights: &[f32], report: &TrainingReport) -> Result<(), LearnError> {
        self.folder.check_lease()?;
        save_weights(&self.folder.model(), &self.setup.layout, weights, WeightType::F32)?;
        self.folder.write_metrics(report)
    }
}

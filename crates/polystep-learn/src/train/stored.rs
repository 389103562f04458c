//! The weights in a folder: of a finished run, of a bundled or exported model, or of a run that is still on its way.

use std::path::Path;

use polystep_core::named;
use polystep_record::RunFolder;

use super::{Checkpoint, Checkpoints};
use crate::LearnError;
use crate::config::{RunConfig, Select};
use crate::model::ParamLayout;
use crate::weights::{LoadedWeights, load_weights};

/// Which weights of a run that is not finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhichCheckpoint {
    /// Those of the newest checkpoint.
    Last,
    /// Those of the best validation up to that checkpoint; a run keeps them if its `train.select` is `best`.
    Best,
}

named!(WhichCheckpoint, "checkpoint": Last "last", Best "best");

/// Weights as they lie in a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredWeights {
    /// The flat buffer of the model.
    pub params: Vec<f32>,
    /// Whether a checksum says that polystep wrote them, and that they are whole.
    pub verified: bool,
    /// After how many steps of training this is; none for a finished model.
    pub step: Option<u64>,
}

impl StoredWeights {
    /// The finished weights of a folder, or with `which` those of a checkpoint.
    pub fn read(
        folder: &Path,
        config: &RunConfig,
        layout: &ParamLayout,
        which: Option<WhichCheckpoint>,
    ) -> Result<StoredWeights, LearnError> {
        let Some(which) = which else {
            let path = RunFolder::new(folder).model();
            if !path.exists() {
                let run = folder.display();
                return Err(LearnError::Folder(format!(
                    "{run} has no model.safetensors yet: the run is not finished; finish it with polystep train --resume \
                     --out {run}"
                )));
            }
            let LoadedWeights { params, verified } = load_weights(&path, layout)?;
            return Ok(StoredWeights { params, verified, step: None });
        };
        // A run with an average of the weights is validated and kept by it.
        let Checkpoint { state, params, average, .. } = newest(folder, layout.len())?;
        let params = average.unwrap_or(params);
        match (which, state.best) {
            (WhichCheckpoint::Last, _) => Ok(StoredWeights { params, verified: true, step: Some(state.step) }),
            (WhichCheckpoint::Best, Some(best)) if config.train.select == Select::Best => {
                let LoadedWeights { params, verified } =
                    load_weights(&Checkpoints::of(folder).best_path(best.step), layout)?;
                Ok(StoredWeights { params, verified, step: Some(best.step) })
            }
            _ => {
                let why = "its train.select is last, or it has not been validated yet; take --checkpoint last";
                Err(LearnError::Folder(format!("{} keeps no best weights: {why}", folder.display())))
            }
        }
    }
}

/// The newest checkpoint of a run.
pub(super) fn newest(folder: &Path, params: usize) -> Result<Checkpoint, LearnError> {
    let none = || LearnError::Folder(format!("{} has no checkpoint", folder.display()));
    if !RunFolder::new(folder).checkpoints().is_dir() {
        return Err(none());
    }
    Checkpoints::of(folder).newest(params)?.ok_or_else(none)
}

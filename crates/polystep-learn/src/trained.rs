//! A trained model from a run's folder, ready to decode.

use std::path::Path;

use polystep_core::Task;
use polystep_engine::cpu::Cpu;
use polystep_engine::{EngineError, Executor, Limits, Program};

use crate::LearnError;
use crate::config::RunConfig;
use crate::decode::EngineStepper;
use crate::model::{ModelConfig, ParamLayout, Size};
use crate::train::{StoredWeights, WhichCheckpoint};

/// Hypotheses that are extended at once on a CPU: enough to fill it.
pub const CPU_LANES: usize = 160;

/// Fewer are not worth trying.
const LEAST: usize = 64;

/// What `make` makes for as many of at most `lanes` hypotheses as the device has memory for.
fn as_many<T>(mut lanes: usize, make: impl Fn(usize) -> Result<T, EngineError>) -> Result<T, EngineError> {
    loop {
        match make(lanes) {
            Err(EngineError::OutOfMemory { .. }) if lanes > LEAST => lanes /= 2,
            made => return made,
        }
    }
}

/// A model with what it was trained on.
pub struct TrainedModel {
    /// What it was set up with.
    pub config: RunConfig,
    /// What it was trained on; the first is its own, the others it learned beside it.
    pub tasks: Vec<Task>,
    /// Its shape.
    pub model: ModelConfig,
    /// Where its parameters are.
    pub layout: ParamLayout,
    /// Its parameters.
    pub params: Vec<f32>,
    /// Whether a checksum says that polystep wrote the parameters, and that they are whole. An older file has none.
    pub verified: bool,
    /// After how many steps of training this is; none for a finished model.
    pub step: Option<u64>,
}

impl TrainedModel {
    /// The finished model of a run, a bundled one, or one that `export` or `transformers` wrote.
    pub fn open(folder: &Path) -> Result<TrainedModel, LearnError> {
        TrainedModel::at(folder, None)
    }

    /// The finished model of a folder, or a checkpoint of a run that is not finished.
    pub fn at(folder: &Path, which: Option<WhichCheckpoint>) -> Result<TrainedModel, LearnError> {
        let config = RunConfig::stored(folder)?;
        let (tasks, model) = (config.tasks()?, config.model.clone());
        let layout = ParamLayout::new(&model);
        let StoredWeights { params, verified, step } = StoredWeights::read(folder, &config, &layout, which)?;
        Ok(TrainedModel { config, tasks, model, layout, params, verified, step })
    }

    /// An error if a run of this shape cannot start from these weights. `folder` names them in the message.
    pub fn check_shape(&self, model: &ModelConfig, folder: &Path) -> Result<(), LearnError> {
        // Only what shapes the network: dropout and the scale of fresh weights may change.
        let shape = |m: &ModelConfig| ModelConfig { size: Size::S, dropout: 0.0, init_std: 0.02, ..m.clone() };
        if shape(&self.model) == shape(model) {
            return Ok(());
        }
        let why = "its model has another shape than [model]: leave the table out to take the shape of the weights";
        Err(LearnError::Mismatch { path: folder.to_path_buf(), why: why.into() })
    }

    /// The task that it is named after: how it writes steps is the same in all of them.
    pub fn home(&self) -> &Task {
        &self.tasks[0]
    }

    /// The model on a device: `make` builds an executor. It extends as many of at most `lanes` hypotheses at once as the
    /// device has memory for.
    pub fn stepper_on<'a>(
        &self,
        lanes: usize,
        make: impl Fn(Vec<Program>, Limits) -> Result<Box<dyn Executor + 'a>, EngineError>,
    ) -> Result<EngineStepper<'a>, EngineError> {
        as_many(lanes, |lanes| EngineStepper::new(&self.model, &self.layout, &self.params, lanes, &make))
    }

    /// The model on the CPU; 0 threads means one per core.
    pub fn cpu_stepper(&self, threads: usize) -> Result<EngineStepper<'static>, EngineError> {
        self.stepper_on(CPU_LANES, |programs, limits| Ok(Box::new(Cpu::new(programs, limits, threads)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_device_gets_fewer_lanes() {
        let memory = |limit| {
            move |lanes| {
                let full = EngineError::OutOfMemory { wanted_mib: lanes, free_mib: limit };
                if lanes > limit { Err(full) } else { Ok(lanes) }
            }
        };
        assert_eq!(as_many(8192, memory(10_000)).unwrap(), 8192);
        assert_eq!(as_many(8192, memory(1000)).unwrap(), 512);
        let error = as_many(8192, memory(10)).unwrap_err().to_string();
        assert!(error.contains("64 MiB asked"), "{error}");
    }
}

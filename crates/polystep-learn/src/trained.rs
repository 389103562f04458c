//! A trained model from a run's folder, ready to decode.

use std::path::Path;

use polystep_core::Task;
use polystep_engine::cpu::Cpu;
use polystep_engine::{EngineError, Executor, Limits, Program};

use crate::LearnError;
use crate::config::RunConfig;
use crate::decode::EngineStepper;
use crate::model::{ModelConfig, ParamLayout};
use crate::train::TrainingFolder;
use crate::weights::{LoadedWeights, load_weights};

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
    /// Whether a checksum says that the parameters are whole. An older file has none.
    pub verified: bool,
}

impl TrainedModel {
    /// Reads config.toml and model.safetensors of a run's folder.
    pub fn open(run: &Path) -> Result<TrainedModel, LearnError> {
        let (folder, config) = TrainingFolder::open(run)?;
        if !folder.model().exists() {
            let run = run.display();
            let sentence = format!(
                "{run} has no model.safetensors yet: the run is not finished; finish it with polystep train --resume --out {run}"
            );
            return Err(LearnError::Folder(sentence));
        }
        let tasks = config.tasks()?;
        let model = config.model.clone();
        let layout = ParamLayout::new(&model);
        let LoadedWeights { params, verified } = load_weights(&folder.model(), &layout)?;
        Ok(TrainedModel { config, tasks, model, layout, params, verified })
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

//! A trained model from a run's folder, ready to decode: what `eval`, `prove --model` and `export` begin with.

use std::path::Path;

use polystep_core::Task;
use polystep_engine::EngineError;
use polystep_learn::config::RunConfig;
use polystep_learn::decode::EngineStepper;
use polystep_learn::model::{ModelConfig, ParamLayout};
use polystep_learn::train::TrainingFolder;
use polystep_learn::weights::{LoadedWeights, load_weights};

use crate::device::Device;
use crate::failure::{self, bad_input};
use crate::output::note;

/// Hypotheses that are extended at once: enough to fill the device.
fn lanes(device: Device) -> usize {
    if device == Device::Cuda { 8192 } else { 160 }
}

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
}

impl TrainedModel {
    /// Reads config.toml and model.safetensors of a run's folder.
    pub fn open(run: &Path) -> failure::Result<TrainedModel> {
        let (folder, config) = TrainingFolder::open(run)?;
        if !folder.model().exists() {
            let run = run.display();
            let sentence = format!(
                "{run} has no model.safetensors yet: the run is not finished; finish it with polystep train --resume --out {run}"
            );
            return Err(bad_input(sentence));
        }
        let tasks = config.tasks().map_err(bad_input)?;
        let model = config.model.clone();
        let layout = ParamLayout::new(&model);
        let LoadedWeights { params, verified } = load_weights(&folder.model(), &layout)?;
        if !verified {
            note(format_args!(
                "{} has no checksum: whether its weights are whole cannot be told",
                folder.model().display()
            ));
        }
        Ok(TrainedModel { config, tasks, model, layout, params })
    }

    /// The task that it is named after: how it writes steps is the same in all of them.
    pub fn home(&self) -> &Task {
        &self.tasks[0]
    }

    /// The model on a device.
    pub fn stepper(&self, device: Device, threads: usize) -> failure::Result<EngineStepper<'static>> {
        let device = device.resolve();
        let stepper = |lanes| {
            EngineStepper::new(&self.model, &self.layout, &self.params, lanes, |programs, limits| {
                device.executor(programs, limits, threads)
            })
        };
        Ok(as_many(lanes(device), stepper)?)
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

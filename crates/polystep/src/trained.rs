//! A trained model from a run's folder, ready to decode: what `eval`, `prove --model` and `export` begin with.

use std::path::Path;

use polystep_core::Task;
use polystep_learn::config::RunConfig;
use polystep_learn::decode::EngineStepper;
use polystep_learn::model::{Layout, ModelConfig};
use polystep_learn::train::RunFolder;
use polystep_learn::weights::load_weights;

use crate::device::Device;
use crate::failure::{Result, bad_input};
use crate::train::failure;

/// Hypotheses that are extended at once: enough to fill the device, few enough for its memory.
fn lanes(device: Device) -> usize {
    if device == Device::Cuda { 8192 } else { 160 }
}

/// A model with what it was trained on.
pub struct Trained {
    /// What it was set up with.
    pub config: RunConfig,
    /// What it was trained on.
    pub task: Task,
    /// The same, and what it learned beside it.
    pub tasks: Vec<Task>,
    /// Its shape.
    pub model: ModelConfig,
    /// Where its parameters are.
    pub layout: Layout,
    /// Its parameters.
    pub params: Vec<f32>,
}

impl Trained {
    /// Reads config.toml and model.safetensors of a run's folder.
    pub fn open(run: &Path) -> Result<Trained> {
        let (folder, config) = RunFolder::open(run).map_err(failure)?;
        if !folder.model().exists() {
            let run = run.display();
            let sentence = format!(
                "{run} has no model.safetensors yet: the run is not finished; finish it with polystep train --resume --out {run}"
            );
            return Err(bad_input(sentence));
        }
        let tasks = config.tasks().map_err(bad_input)?;
        let task = config.task().map_err(bad_input)?;
        let model = config.model();
        let layout = Layout::new(&model);
        let params = load_weights(&folder.model(), &layout).map_err(failure)?;
        Ok(Trained { config, task, tasks, model, layout, params })
    }

    /// The model on a device.
    pub fn stepper(&self, device: Device, threads: usize) -> Result<EngineStepper<'static>> {
        let device = device.resolve();
        let stepper = EngineStepper::new(&self.model, &self.layout, &self.params, lanes(device), |programs, limits| {
            device.executor(programs, limits, threads)
        });
        Ok(stepper?)
    }
}

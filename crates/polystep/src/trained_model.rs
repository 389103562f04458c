//! A trained model on the device that a command asks for: what `eval`, `prove --model` and `export` begin with.

use std::path::Path;

use polystep_learn::decode::EngineStepper;
use polystep_learn::train::WhichCheckpoint;
use polystep_learn::trained::{CPU_LANES, TrainedModel};
use polystep_record::RunFolder;

use crate::device::Device;
use crate::failure::Result;
use crate::output::note;

/// Hypotheses that are extended at once on a GPU: enough to fill it.
const CUDA_LANES: usize = 8192;

/// The finished model of a run, a bundled one, or one that `export` or `transformers` wrote.
pub fn open(run: &Path) -> Result<TrainedModel> {
    at(run, None)
}

/// The finished model of a folder, or a checkpoint of a run that is not finished.
pub fn at(run: &Path, which: Option<WhichCheckpoint>) -> Result<TrainedModel> {
    let trained = TrainedModel::at(run, which)?;
    if !trained.verified {
        let file = RunFolder::new(run).model();
        note(format_args!("{} has no checksum: whether its weights are whole cannot be told", file.display()));
    }
    Ok(trained)
}

/// A model on a device; `threads` are the CPU's.
pub fn stepper(trained: &TrainedModel, device: Device, threads: usize) -> Result<EngineStepper<'static>> {
    let device = device.resolve();
    let lanes = if device.is_cuda() { CUDA_LANES } else { CPU_LANES };
    Ok(trained.stepper_on(lanes, |programs, limits| device.executor(programs, limits, threads))?)
}

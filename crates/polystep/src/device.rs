//! Which device computes. This is the one place for every command that trains or decodes.

use clap::ValueEnum;
use polystep_engine::cpu::Cpu;
use polystep_engine::cuda::Cuda;
use polystep_engine::{EngineError, Executor, Limits, Program};
use polystep_learn::config::{Precision, RunConfig};

use crate::failure::{Result, bad_input};
use crate::memory;
use crate::output::note;

/// `--device`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// CUDA where it can be used, else the CPU
    Auto,
    /// fp32 on the CPU
    Cpu,
    /// bf16 on an NVIDIA GPU
    Cuda,
}

impl Device {
    /// As the flag is typed.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// `Cpu` or `Cuda`; says why where `auto` takes the CPU.
    pub fn resolve(self) -> Device {
        match self {
            Device::Auto => match Cuda::available() {
                Ok(_) => Device::Cuda,
                Err(why) => {
                    note(format_args!("computing on the CPU: {why}"));
                    Device::Cpu
                }
            },
            device => device,
        }
    }

    /// An executor for programs; `threads` are the CPU's.
    pub fn executor(
        self,
        programs: Vec<Program>,
        limits: Limits,
        threads: usize,
    ) -> std::result::Result<Box<dyn Executor>, EngineError> {
        match self.resolve() {
            Device::Cuda => Ok(Box::new(Cuda::new(programs, limits)?)),
            _ => {
                memory::check(&programs, limits)?;
                Ok(Box::new(Cpu::new(programs, limits, threads)?))
            }
        }
    }

    /// An error if the device does not compute in the precision that a run wants.
    pub fn check_precision(self, config: &RunConfig) -> Result<()> {
        match (self, config.train.precision) {
            (Device::Cpu, Precision::Bf16) => Err(bad_input("train.precision = \"bf16\" needs --device cuda")),
            (Device::Cuda, Precision::Fp32) => Err(bad_input("train.precision = \"fp32\" needs --device cpu")),
            _ => Ok(()),
        }
    }
}

/// Dense bf16 operations a second that the device is sold with; none where we do not know, or on a CPU.
pub fn peak(device: &str) -> Option<f64> {
    let known = [("H200", 990e12), ("H100", 990e12), ("B200", 2250e12), ("A100", 312e12)];
    known.iter().find(|(name, _)| device.contains(name)).map(|(_, peak)| *peak)
}

/// Threads that make training data: few are enough for a GPU, and one beside a CPU that computes on all.
pub fn data_threads(device: Device, threads: usize) -> usize {
    if device == Device::Cuda { threads.saturating_sub(1).clamp(1, 4) } else { 1 }
}

//! Which device computes. This is the one place for every command that trains or decodes.

use std::fmt;
use std::str::FromStr;

use polystep_engine::cpu::Cpu;
use polystep_engine::cuda::Cuda;
use polystep_engine::{EngineError, Executor, Limits, Program};
use polystep_learn::config::{Precision, RunConfig};

use crate::failure::{Result, bad_input};
use crate::memory;
use crate::output::note;

/// What the flag's help says.
pub const HELP: &str = "Where to compute: cpu in fp32; cuda in bf16 on an NVIDIA GPU, cuda:3 on the fourth; auto, on a GPU if there is one";

/// `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// CUDA where it can be used, else the CPU.
    Auto,
    /// fp32 on the CPU.
    Cpu,
    /// bf16 on an NVIDIA GPU, by its number among those that can be seen; the first, or all for a command with several children.
    Cuda(Option<u32>),
}

/// As the flag is typed.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.pad("auto"),
            Device::Cpu => f.pad("cpu"),
            Device::Cuda(None) => f.pad("cuda"),
            Device::Cuda(Some(gpu)) => f.pad(&format!("cuda:{gpu}")),
        }
    }
}

impl FromStr for Device {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Device, &'static str> {
        match (text, text.strip_prefix("cuda:").map(str::parse)) {
            ("auto", _) => Ok(Device::Auto),
            ("cpu", _) => Ok(Device::Cpu),
            ("cuda", _) => Ok(Device::Cuda(None)),
            (_, Some(Ok(gpu))) => Ok(Device::Cuda(Some(gpu))),
            _ => Err("it is auto, cpu, cuda, or cuda:3 for the GPU with the number 3"),
        }
    }
}

impl Device {
    /// `Cpu` or `Cuda`; says why where `auto` takes the CPU.
    pub fn resolve(self) -> Device {
        match self {
            Device::Auto => match Cuda::available() {
                Ok(_) => Device::Cuda(None),
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
            Device::Cuda(gpu) => Ok(Box::new(Cuda::on(gpu.unwrap_or(0), programs, limits)?)),
            _ => {
                memory::check(&programs, limits)?;
                Ok(Box::new(Cpu::new(programs, limits, threads)?))
            }
        }
    }

    /// Whether it is a GPU.
    pub fn is_cuda(self) -> bool {
        matches!(self, Device::Cuda(_))
    }

    /// An error if the device does not compute in the precision that a run wants.
    pub fn check_precision(self, config: &RunConfig) -> Result<()> {
        match (self, config.train.precision) {
            (Device::Cpu, Precision::Bf16) => Err(bad_input("train.precision = \"bf16\" needs --device cuda")),
            (Device::Cuda(_), Precision::Fp32) => Err(bad_input("train.precision = \"fp32\" needs --device cpu")),
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
    if device.is_cuda() { threads.saturating_sub(1).clamp(1, 4) } else { 1 }
}

//! Tensors on two devices, and the few fused operations that an encoder-decoder Transformer needs.
//!
//! A model is written once, as a [`Program`]: a list of [`Op`]s over [`Slot`]s (activations) and [`Param`]s (ranges of one
//! flat parameter buffer). An [`Executor`] owns the memory and runs programs: [`cpu::Cpu`] interprets them in fp32,
//! [`cuda::Cuda`] captures each into a CUDA graph in bf16. Backward passes are ops like any other; there is no tape.
//!
//! Sequences are packed, not padded: a batch is one long row of tokens per side with cumulative lengths beside it.

pub mod batch;
pub mod cpu;
pub mod cuda;
pub mod error;
pub mod executor;
pub mod optest;
pub mod philox;
pub mod program;

pub use batch::{Batch, Hypotheses, Packed};
pub use error::EngineError;
pub use executor::{Executor, Inspect, Limits, Scalars, StepResult};
pub use program::*;

pub(crate) use error::Result;

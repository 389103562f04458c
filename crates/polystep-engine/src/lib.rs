#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! [`program`] has slots, params and [`Op`]s; each op is a struct of its own, such as [`Linear`] or [`Attention`]. An
//! [`Executor`] is made for some programs and [`Limits`], and runs them on a [`Batch`]. [`Inspect`] is for tests: it reads
//! and writes single slots.
//!
//! Sequences are packed, not padded: a batch is one long row of tokens per side with cumulative lengths beside it.

pub mod batch;
pub mod cpu;
pub mod cuda;
pub mod error;
pub mod executor;
pub mod optest;
pub mod optimiser;
pub mod philox;
pub mod program;

pub use batch::{Batch, Hypotheses, Packed};
pub use error::EngineError;
pub use executor::{Executor, Inspect, Limits, Scalars, StepResult};
pub use optimiser::Adam;
pub use program::*;

pub(crate) use error::Result;

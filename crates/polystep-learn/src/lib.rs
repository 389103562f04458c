//! Transformers that learn proofs: the model as a program, the data as a row of batches, and the training between them.
//!
//! `config` (a run's TOML) → `feed` (batches) → `model` (programs) → `train` (the loop) → `checkpoint`, `weights`, `log`.
//! Nothing here computes a tensor: the programs run on an executor of `polystep-engine`, on the CPU or on CUDA.

pub mod config;
pub mod curriculum;
pub mod decode;
mod error;
pub mod export;
pub mod feed;
pub mod log;
pub mod model;
pub mod sweep;
mod tensors;
pub mod train;
pub mod weights;

pub use error::{ConfigError, LearnError};

/// The commit this was built from, or `unknown`.
pub const COMMIT: &str = match option_env!("POLYSTEP_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

//! Transformers that learn to write proofs: the data as batches, the model as a program, and the training between them.
//!
//! Nothing here computes a tensor. The programs run on an executor of `polystep-engine`, on the CPU or on CUDA.
//!
//! # A run
//!
//! A run is a TOML, and nothing else decides what it computes. This one is tiny; keys that it leaves out are supplied by the
//! recipe `fast`.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use polystep_engine::cpu::Cpu;
//! use polystep_learn::config::RunConfig;
//! use polystep_learn::train::{RunSetup, SessionEnd, Trainer, TrainingFolder};
//!
//! let text = r#"
//!     [data]
//!     config = "small_coeff"
//!     [model]
//!     d = 64
//!     layers = 1
//!     [train]
//!     batch = 8
//!     steps = 3
//!     valid_proofs = 5
//! "#;
//! let setup = RunSetup::without_test(RunConfig::from_toml(text, &[])?)?;
//! let out = tempfile::tempdir()?;
//! let folder = TrainingFolder::create(out.path(), &setup.config)?;
//! let mut cpu = Cpu::new(setup.programs(), setup.limits, 1)?;
//! let end = Trainer::new(&setup, &folder, &mut cpu, &mut (), 1)?.run(&AtomicBool::new(false))?;
//! assert!(matches!(end, SessionEnd::Finished(report) if report.steps == 3 && report.examples == 24));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The modules
//!
//! Each module uses only those before it; a test keeps it so.
//!
//! - [`error`](LearnError): what can go wrong, each as one sentence.
//! - [`tensors`](weights): safetensors files with checksums.
//! - [`model`]: the shape of a network, the layout of its parameters, and its programs.
//! - [`curriculum`]: the Mastering-Rate algorithm, which decides what is learned next.
//! - [`config`]: a run's TOML, laid over its recipe.
//! - [`feed`]: proofs as blocks, cut into batches in background threads; the sets that a model is judged on.
//! - [`weights`]: `model.safetensors` under the names of Hugging Face.
//! - [`log`]: what a run tells while it trains.
//! - [`train`]: the loop, its schedule, checkpoints, validation, and the one test at the end.
//! - [`decode`]: greedy and beam search, recursive proofs, answers to the sets.
//! - [`trained`]: a trained model from a run's folder, ready to decode.
//! - [`prove`]: proofs of typed expressions by a trained model, with the checker or alone.
//! - [`export`]: a folder that `transformers` loads.
//! - [`sweep`]: a grid of runs, which of them may go on, and their ranking.

pub mod config;
pub mod curriculum;
pub mod decode;
mod error;
pub mod export;
pub mod feed;
pub mod log;
pub mod model;
pub mod prove;
pub mod sweep;
mod tensors;
pub mod train;
pub mod trained;
pub mod weights;

pub use error::{ConfigError, LearnError};

/// The commit this was built from, or `unknown`.
pub const COMMIT: &str = match option_env!("POLYSTEP_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

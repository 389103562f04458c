//! What can go wrong in a run, each as one sentence that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use polystep_engine::EngineError;

use crate::config::ConfigError;

/// An error of configuration, training or a run's files.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// What a person wrote in a TOML or behind `--set`.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file that cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// "cannot write" or the like.
        what: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A checkpoint or weight file whose bytes are not those that were written.
    #[error("{} is damaged ({why}){help}", path.display())]
    Damaged {
        /// Which one.
        path: PathBuf,
        /// What does not fit.
        why: String,
        /// What to do; begins with `: ` or is empty.
        help: String,
    },
    /// A whole file that belongs to another model or run.
    #[error("{} belongs to another run: {why}", path.display())]
    Mismatch {
        /// Which one.
        path: PathBuf,
        /// What differs.
        why: String,
    },
    /// A folder that cannot be resumed, or that holds a run already.
    #[error("{0}")]
    Folder(String),
    /// A loss, gradient or weight that is not a number.
    #[error("{what} of step {step} is {value}, so the run stops; {kept}. A smaller train.lr or train.clip may help")]
    NonFinite {
        /// "the loss" or the like.
        what: &'static str,
        /// The step.
        step: u64,
        /// NaN or infinity.
        value: f32,
        /// What is left of the run.
        kept: String,
    },
    /// The data cannot be made.
    #[error("{0}")]
    Data(String),
}

impl LearnError {
    /// A file that cannot be read or written.
    pub(crate) fn file(what: &'static str, path: &Path, source: io::Error) -> Self {
        LearnError::File { what, path: path.to_path_buf(), source }
    }
}

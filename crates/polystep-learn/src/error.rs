//! What can go wrong in a run. Each error is one sentence, and says what to do.

use std::ops::Range;
use std::path::PathBuf;

use polystep_engine::EngineError;
use polystep_record::RecordError;

/// An error of configuration, training or a run's files.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// What a person wrote in a TOML or behind `--set`.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A damaged checkpoint or weight file: its bytes are not those that were written.
    #[error("{} is damaged ({why}){help}", path.display())]
    Damaged {
        /// Which one.
        path: PathBuf,
        /// What does not fit.
        why: String,
        /// What to do; begins with `: ` or is empty.
        help: String,
    },
    /// A file that is not damaged, but belongs to another model or run.
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

/// An error in what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// One sentence.
    pub message: String,
    /// The place in the TOML, in bytes, if there is one.
    pub span: Option<Range<usize>>,
}

impl ConfigError {
    /// A sentence without a place.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ConfigError { message: message.into(), span: None }
    }

    /// A sentence about a place in the text. It begins with the number of the line.
    pub(crate) fn at(text: &str, span: Range<usize>, message: impl std::fmt::Display) -> Self {
        let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
        ConfigError { message: format!("line {line}: {message}"), span: Some(span) }
    }

    /// What TOML says of the text.
    pub(crate) fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        match error.span() {
            Some(span) => ConfigError::at(text, span, one_line(error.message())),
            None => ConfigError::new(one_line(error.message())),
        }
    }
}

/// What serde says, in one line and without the names of Rust's types.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let whole = "a whole number, at least 0";
    let words = [("usize", whole), ("u64", whole), ("u32", whole), ("f64", "a number"), ("bool", "true or false")];
    let named = words.iter().find_map(|(name, word)| Some((line.strip_suffix(name)?, word)));
    named.map_or_else(|| line.clone(), |(before, word)| format!("{before}{word}"))
}

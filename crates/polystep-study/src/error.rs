//! What can go wrong, by kind: a file, a record in it, a set of records, the page.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A file cannot be read or written.
    #[error("cannot {verb} {}: {source}", path.display())]
    File {
        /// read or write.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line of a file is not what it should be.
    #[error("{} line {line}: {why}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A file that is one document is not what it should be.
    #[error("{} cannot be understood: {why}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A folder in which nothing of a run can be read.
    #[error("{} holds no run: {why}", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// What is missing or damaged in it.
        why: String,
    },
    /// One step was predicted twice.
    #[error("step {step} of proof {proof} stands twice in the predictions: is a file joined to itself?")]
    Twice {
        /// The proof.
        proof: String,
        /// The step.
        step: usize,
    },
    /// A proof without one of its steps.
    #[error(
        "proof {proof} has a step {last} but no step {missing}: a full proof needs every step (a step that the model could not take is a record with no beams)"
    )]
    Gap {
        /// The proof.
        proof: String,
        /// Its last step.
        last: usize,
        /// What is missing.
        missing: usize,
    },
    /// The page could not be made.
    #[error("the report's template failed: {0:#}")]
    Template(#[from] minijinja::Error),
}

impl StudyError {
    /// A file that cannot be read.
    pub fn read(path: impl Into<PathBuf>, source: io::Error) -> StudyError {
        StudyError::File { verb: "read", path: path.into(), source }
    }

    /// A file that cannot be written.
    pub fn write(path: impl Into<PathBuf>, source: io::Error) -> StudyError {
        StudyError::File { verb: "write", path: path.into(), source }
    }
}

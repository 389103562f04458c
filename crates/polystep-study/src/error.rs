//! What can go wrong, by kind: a file, a folder without a run, a set of records, the page.

use std::path::PathBuf;

use polystep_record::RecordError;
use thiserror::Error;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A file, or a record in it.
    #[error(transparent)]
    Record(#[from] RecordError),
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

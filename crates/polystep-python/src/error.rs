//! Errors of the libraries as Python's exceptions, with the same sentences.

use std::fmt::Display;
use std::io::ErrorKind;

use polystep_core::SpaceError;
use polystep_engine::EngineError;
use polystep_learn::{ConfigError, LearnError};
use polystep_record::RecordError;
use polystep_study::StudyError;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// What is wrong with the input.
pub fn bad_input(sentence: impl Display) -> PyErr {
    PyValueError::new_err(sentence.to_string())
}

/// An error of a library.
pub trait Exception {
    /// The same as an exception.
    fn exception(self) -> PyErr;
}

impl Exception for SpaceError {
    fn exception(self) -> PyErr {
        bad_input(self)
    }
}

impl Exception for ConfigError {
    fn exception(self) -> PyErr {
        bad_input(self)
    }
}

impl Exception for EngineError {
    fn exception(self) -> PyErr {
        PyRuntimeError::new_err(self.to_string())
    }
}

impl Exception for RecordError {
    fn exception(self) -> PyErr {
        let sentence = self.to_string();
        match self {
            RecordError::File { source, .. } if source.kind() == ErrorKind::NotFound => {
                PyFileNotFoundError::new_err(sentence)
            }
            RecordError::Line { .. } | RecordError::Document { .. } => bad_input(sentence),
            _ => PyOSError::new_err(sentence),
        }
    }
}

impl Exception for LearnError {
    fn exception(self) -> PyErr {
        match self {
            LearnError::Record(error) => error.exception(),
            LearnError::Engine(error) => error.exception(),
            LearnError::NonFinite { .. } => PyRuntimeError::new_err(self.to_string()),
            error => bad_input(error),
        }
    }
}

impl Exception for StudyError {
    fn exception(self) -> PyErr {
        match self {
            StudyError::Record(error) => error.exception(),
            error => bad_input(error),
        }
    }
}

/// Raises what a signal asks for, e.g. `KeyboardInterrupt`. For code that has released the interpreter's lock.
pub fn check_signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

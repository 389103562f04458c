//! From prediction files and run logs to every number the paper reports about a model, and a page that explains them.
//!
//! Nothing here knows how a prediction was made: any model's predictions, ours or not, are scored by the same code.

pub mod calibration;
pub mod error;
pub mod errors;
pub mod interval;
pub mod metrics;
pub mod paired;
pub mod paper;
pub mod predictions;
pub mod ranking;
pub mod recursive;
pub mod score;
pub mod slices;
pub mod report {
    //! x
    pub mod chart;
    pub mod diff;
}

pub use error::StudyError;

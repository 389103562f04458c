//! From prediction files and run logs to every number the paper reports about a model, and a page that explains them.
//!
//! Nothing here knows how a prediction was made: any model's predictions, ours or not, are scored by the same code. In the
//! order of the data: predictions are read and [`score`]d one by one; [`metrics`] adds them up, with their [`calibration`],
//! [`wrong_steps`] and [`slices`]; [`columns`] puts them into the paper's columns beside the paper's own numbers; [`compare`] sets runs side by side, [`matrix`] runs and test sets; [`report`] writes the
//! page, from [`chart`]s. [`tables`] are the paper's tables as plans of work; [`records`] of finished runs fill their
//! [`ledger`]s and [`plots`].

pub mod calibration;
pub mod chart;
pub mod columns;
pub mod compare;
pub mod csv;
pub mod error;
pub mod evaluate;
pub mod grid;
pub mod ledger;
pub mod matrix;
pub mod metrics;
pub mod number;
pub mod paired;
pub mod plots;
pub mod ranking;
pub mod records;
pub mod recursive;
pub mod report;
pub mod run;
pub mod score;
pub mod side_by_side;
pub mod slices;
pub mod tables;
pub mod wrong_steps;

pub use error::StudyError;
pub use evaluate::{Inputs, evaluate};
pub use matrix::Matrix;
pub use metrics::{Evaluation, Metrics, Provenance};
pub use run::StoredRun;

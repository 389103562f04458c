//! A sweep: a run's TOML with a `[grid]` of values for some of its keys. Each combination of values is a trial.
//!
//! [`Sweep`] says what is tried, and in which order. Each trial has a run folder. [`MedianRule`] says which trials may go on, and
//! [`ranking`] which is best. All of this looks at the validation set alone: trials are trained from a
//! [`RunSetup::without_test`](crate::train::RunSetup::without_test). The test set is for the trial that is chosen afterwards.

mod file;
mod grid;
mod median;
mod ranking;
mod trial;

pub use file::{StopRule, Sweep, SweepTable};
pub use grid::{GridAxis, Trial};
pub use median::{MedianRule, Standing};
pub use ranking::{RankedTrial, csv, ranking};
pub use trial::{Curve, Score, TrialFolder, TrialState};

//! A sweep: one run's TOML with a `[grid]` of values for some of its keys, and the trials that come of it.
//!
//! `Sweep` (what is tried, in which order) → the trials' run folders → `MedianRule` (who may go on) and `ranking` (who is best).
//! All of it looks at the validation set alone: a trial is trained from a [`RunSetup::without_test`](crate::train::RunSetup), and
//! the test set is for the one that is chosen afterwards.

mod file;
mod grid;
mod median;
mod ranking;
mod trial;

pub use file::{Stop, Sweep, SweepTable};
pub use grid::{Axis, Trial};
pub use median::MedianRule;
pub use ranking::{RankedTrial, csv, ranking};
pub use trial::{Curve, Score, TrialFolder, TrialState};

//! From the predictions and logs of runs to every number that the paper reports about a model, and to pages that show them.
//!
//! Nothing here knows how a prediction was made. The predictions of any model, ours or not, are scored by the same code:
//!
//! ```
//! use polystep_core::Writing;
//! use polystep_record::{Prediction, TestSet};
//! use polystep_study::score::score;
//! use polystep_study::{Inputs, evaluate};
//!
//! // One record of a prediction file: the model was asked to add up `x1` and `2*x1`, and wrote `3*x1`.
//! let line = r#"{"proof":"a","step":0,"kind":"sumstep","input":"(x1)+(2*x1)","target":"3*x1",
//!                "beams":[{"output":"3*x1","logprob":-0.1}]}"#;
//! let prediction: Prediction = serde_json::from_str(line).unwrap();
//! let inputs = Inputs { greedy: Some(vec![score(&prediction, &Writing::default())]), ..Inputs::default() };
//! let evaluation = evaluate(&TestSet::new("small_coeff", 1), &inputs)?;
//! assert_eq!(evaluation.greedy.unwrap().full_proof.exact.percent, 100.0);
//! # Ok::<(), polystep_study::StudyError>(())
//! ```
//!
//! The modules, in the order of the data:
//!
//! 1. [`score`] judges one prediction. [`metrics`] adds the scores up to an evaluation, with [`calibration`] ([`ranking`]),
//!    [`wrong_steps`], [`slices`], [`digits`] and [`recursive`] proofs. [`evaluate()`] does all of this.
//! 2. [`columns`] are the columns of the paper's tables, filled from an evaluation. [`side_by_side`] sets our numbers beside the
//!    paper's. [`grid`] writes such tables as Markdown and LaTeX, [`csv`] as CSV, and [`number`] formats their numbers.
//! 3. [`run`] reads the folder of a run. [`compare`] compares several runs proof by proof ([`paired`]), and [`matrix`] shows
//!    every run on every test set. [`report`] writes the page about them.
//! 4. [`tables`] are the paper's tables: which runs each row needs. [`records`] are the committed runs. [`ledger`] makes
//!    `results/TABLE.csv` from them.
//! 5. [`plots`] decides which charts there are, and [`chart`] draws them.

mod assisted;
pub mod calibration;
pub mod chart;
pub mod columns;
pub mod compare;
pub mod csv;
pub mod digits;
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

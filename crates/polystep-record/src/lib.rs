//! What polystep keeps on disk, typed once: training writes these types, and the study and the command line read them.
//!
//! A run lies in a folder. [`RunFolder`] knows the names of its files, and reads them:
//!
//! ```
//! use polystep_record::{Beam, Decoding, JsonLines, Prediction, RunFolder, TestSet, write_json_lines};
//!
//! let place = tempfile::tempdir()?;
//! let set = RunFolder::new(place.path()).set(&TestSet::new("small_coeff", 1));
//! std::fs::create_dir_all(set.path())?;
//!
//! let line = r#"{"proof":"small_coeff:1:test:2021:0","step":0,"kind":"sumstep","input":"(x1)+(2*x1)","target":"3*x1","beams":[]}"#;
//! let mut prediction: Prediction = serde_json::from_str(line)?;
//! prediction.beams.push(Beam::finished("3*x1".to_owned(), -0.1));
//! write_json_lines(&set.answers(Decoding::Greedy), [&prediction])?;
//!
//! let read: Vec<Prediction> = JsonLines::open(&set.answers(Decoding::Greedy))?.collect::<Result<_, _>>()?;
//! assert_eq!(read, [prediction]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules:
//!
//! - `error`: why a file could not be read or written.
//! - [`whole`]: the one atomic writer. A file or folder is whole or not there.
//! - `process`: a process of any host, and whether it is gone. `lease`: who is at work on a folder, on hosts that share no locks.
//!   `campaign`: who made a run of a campaign, and why one failed.
//! - [`jsonl`]: files with one JSON object per line.
//! - `example`: what a model may be trained on. `answer`: a file of inputs, and what a model wrote for them. `proof`, `prediction`, `recursion`: proofs, a model's answers to their steps, and proofs that a model wrote alone.
//!   [`audit`]: is a proof record right? `verdict`: what an evaluation found out about each prediction.
//! - [`folder`]: the folder of a run and the names of all its files. [`log`]: its learning curves.
//! - [`proportion`]: so many of so many, with the interval. `training`: what training measures. [`metrics`]: `metrics.json`.
//! - `recipe`, `test_set`, `keys`: how a model was trained, where it is tested, and on what it was trained in the paper's words.
//!   [`paper`]: the paper's tables.

mod answer;
mod assisted;
pub mod audit;
mod campaign;
mod error;
mod example;
pub mod folder;
pub mod jsonl;
mod keys;
mod lease;
pub mod log;
pub mod metrics;
pub mod paper;
mod prediction;
mod process;
mod proof;
pub mod proportion;
mod recipe;
mod recursion;
mod test_set;
mod training;
mod verdict;
pub mod whole;

pub use answer::{AnswerRecord, CheckedStep, Question, WrittenAnswer};
pub use assisted::{AssistedRecord, Author};
pub use audit::{AuditError, audit_proof};
pub use campaign::{CampaignFolder, ClaimLine, RunFailure, same_job};
pub use error::RecordError;
pub use example::{ExamplePair, ExampleRecord};
pub use folder::{Decoding, RunFolder, SetFolder};
pub use jsonl::{JsonLines, write_json_lines};
pub use keys::{Keys, KeysError, PaperSetting, key_text};
pub use lease::{Claim, Lease, LeaseCost, LeaseHolder, LeaseWatch, utc};
pub use log::{ClassLine, CurriculumLine, LogFile, LogLine, MixLine, TaskLine, TrainLine, ValidLine};
pub use metrics::Metrics;
pub use prediction::{Beam, Prediction};
pub use process::ProcessMark;
pub use proof::{ProofRecord, StepRecord, proof_id};
pub use proportion::Proportion;
pub use recipe::Recipe;
pub use recursion::{RecursiveRecord, Stop};
pub use test_set::{NoTestSet, TestSet, WeightedSet, as_texts};
pub use training::{BestValidation, Scores, TrainingEnd, TrainingReport};
pub use verdict::{Judgeable, StepVerdict};
pub use whole::{WholeFile, WholeFolder, write_parts, write_whole};

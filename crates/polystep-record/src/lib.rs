//! What polystep keeps on disk, typed once: training writes these types, and the study and the command line read them.

pub mod audit;
mod error;
pub mod folder;
pub mod jsonl;
mod keys;
mod lock;
pub mod log;
pub mod metrics;
pub mod paper;
mod prediction;
mod proof;
pub mod proportion;
mod recipe;
mod recursion;
mod test_set;
mod training;
mod verdict;
pub mod whole;

pub use audit::{AuditError, audit_proof};
pub use error::RecordError;
pub use folder::{Decoding, RunFolder, SetFolder};
pub use jsonl::{JsonLines, write_json_lines};
pub use keys::{Keys, PaperSetting, key_text};
pub use lock::FolderLock;
pub use log::{CurriculumLine, LogFile, LogLine, TaskLine, TrainLine, ValidLine};
pub use metrics::Metrics;
pub use prediction::{Beam, Prediction};
pub use proof::{ProofRecord, StepRecord, proof_id};
pub use proportion::Proportion;
pub use recipe::Recipe;
pub use recursion::{RecursiveRecord, Stop};
pub use test_set::{NoTestSet, TestSet};
pub use training::{BestValidation, Scores, TrainingEnd, TrainingReport};
pub use verdict::{Judgeable, StepVerdict};
pub use whole::{WholeFile, WholeFolder, write_parts, write_whole};

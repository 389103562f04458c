//! The encoder-decoder Transformer of the paper, in the two shapes Hugging Face knows: BART (post-norm) and mBART
//! (pre-norm).
//!
//! A model is a [`ModelConfig`], a [`ParamLayout`] of its parameters in one flat buffer, and the [`Program`]s that the engine
//! runs. Nothing here computes: the same programs run on the CPU and on CUDA.

mod config;
mod init;
mod layout;
mod programs;
mod transformers;

pub use config::{ModelConfig, Size};
pub use init::initial_params;
pub use layout::{NamedParam, ParamLayout};
pub use programs::{DecodingPrograms, TrainingProgram, attention_program, decoding_programs};
pub use programs::{evaluation_program, training_program};
pub use transformers::ENTRY;

#[cfg(doc)]
use polystep_engine::Program;

//! Training: a [`RunSetup`] and a [`RunFolder`] on an executor, as a [`Trainer`].

mod checkpoint;
mod evaluate;
mod files;
mod folder;
mod schedule;
mod score;
mod setup;
mod trainer;
mod watch;
mod window;

pub use checkpoint::{Checkpoint, Checkpoints, RunState};
pub use evaluate::score;
pub use folder::RunFolder;
pub use schedule::{Spent, learning_rate, share};
pub use score::{Best, Scores, Share, TestReport};
pub use setup::RunSetup;
pub use trainer::{SessionEnd, Trainer};
pub use window::Window;

/// Index of the training program in an executor made from [`RunSetup::programs`].
pub const TRAINING: usize = 0;
/// Index of the evaluation program.
pub const EVALUATION: usize = 1;

//! Training. A [`Trainer`] trains a [`RunSetup`] in a [`TrainingFolder`] on an executor.

mod checkpoint;
mod evaluate;
mod files;
mod folder;
mod more;
mod schedule;
mod setup;
mod state;
mod stored;
mod trainer;
mod watch;
mod window;

pub use checkpoint::{Checkpoint, Checkpoints};
pub use evaluate::score;
pub use folder::TrainingFolder;
pub use schedule::{Spent, eps, is_late, learning_rate, share};
pub use setup::RunSetup;
pub use state::RunState;
pub use stored::{StoredWeights, WhichCheckpoint};
pub use trainer::{SessionEnd, Trainer};
pub use window::Window;

/// Index of the training program in an executor made from [`RunSetup::programs`].
pub const TRAINING: usize = 0;
/// Index of the evaluation program.
pub const EVALUATION: usize = 1;

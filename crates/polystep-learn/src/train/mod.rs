//! Training: a [`Plan`] and a [`RunFolder`] on an executor, as a [`Trainer`].

mod evaluate;
mod folder;
mod plan;
mod progress;
mod schedule;
mod score;
mod trainer;
mod window;

pub use evaluate::{EvalSet, EvalStep};
pub use folder::RunFolder;
pub use plan::Plan;
pub use progress::Progress;
pub use schedule::{Spent, learning_rate, share};
pub use score::{Best, Scores, Share, TestReport};
pub use trainer::{Outcome, Trainer};
pub use window::Window;

/// Index of the training program in an executor made from [`Plan::programs`].
pub const TRAINING: usize = 0;
/// Index of the evaluation program.
pub const EVALUATION: usize = 1;

//! Curricula by the Mastering-Rate algorithm (Willems et al. 2020), with the gAmax converter and the linear-regression
//! estimator of learning progress: the paper's C, C2 and C4, or the user's own graph.
//!
//! The decision a reader would get wrong: attention is redistributed in *reverse* topological order. Each task first gives a
//! share to its predecessors. Of what remains it gives a share to its successors. Attention that no other task can take is
//! dropped.
//!
//! Beside curricula there is [`FocusState`]: no graph, but shares of the classes of steps that follow the errors.
//!
//! This module decides what is learned next. [`crate::feed::Lessons`] and [`crate::feed::FocusedBatches`] make the batches.

mod focus;
mod graph;
mod mastering;
mod table;

pub use focus::{FocusState, FocusTable};
pub use graph::{Graph, GraphError};
pub use mastering::{Mastering, TaskState, shares};
pub use table::CurriculumTable;

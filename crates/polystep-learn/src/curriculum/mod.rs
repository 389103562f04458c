//! Curricula by the Mastering-Rate algorithm (Willems et al. 2020), with the gAmax converter and the linear-regression
//! estimator of learning progress: the paper's C, C2 and C4, or a graph of one's own.
//!
//! The decision a reader would get wrong: attention is redistributed in *reverse* topological order, each task giving first
//! to its predecessors and then, of what remains, to its successors; what has nobody to go to is lost.

mod course;
mod graph;
mod lessons;
mod mastering;

pub use course::{Course, Syllabus};
pub use graph::{Graph, GraphError};
pub use lessons::{Curriculum, Lessons};
pub use mastering::{Mastering, Settings, TaskState, shares};

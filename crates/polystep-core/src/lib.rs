//! polystep-core
mod basis;
pub mod expr;
pub mod monomial;
pub mod notation;
pub mod poly;
pub mod proof;
pub mod sample;
pub mod space;
pub mod stream;
pub mod task;
pub mod token;

pub use expr::{Factor, Product, State, Term};
pub use monomial::{Monomial, TermOrder};
pub use notation::{Notation, NotationError, Style};
pub use poly::{ArithmeticError, Poly};
pub use proof::{Line, Proof, Step, next_step};
pub use sample::Polynomials;
pub use space::{Space, SpaceError, SpaceTable, Subtask};
pub use stream::{Purpose, Stream, Streams};
pub use task::{Granularity, Setting, StepKind, Task};
pub mod arithmetic;
pub mod examples;
pub mod guard;
pub mod sets;
pub use examples::{ExampleSpan, Examples, Sampler};
pub use guard::Guard;

//! The exact core of polystep: polynomials, the proofs that simplify them, and the data that models learn them from.
//!
#![doc = include_str!("../tests/proofs/paper.md")]
//!
//! # Prove
//!
//! A [`State`] is a line of a proof. A [`Writing`] says how proofs are written: how large a step is, infix or prefix, with
//! brackets for a calculator or with annotations. This is the proof above:
//!
//! ```
//! use polystep_core::{StepKind, Writing};
//!
//! let writing = Writing::default(); // plain coarse steps in infix
//! let start = writing.parse("(2*x2^2)*(3*x2^1+4)+(5*x1^2+x1^1*x2^1)*(3*x1^1)*(2)")?;
//! let proof = writing.proof(&start)?;
//! assert_eq!(proof.kinds()[2], StepKind::Mulstep);
//! assert_eq!(writing.print(proof.end()), "30*x1^3+6*x2^3+6*x1^2*x2+8*x2^2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Check
//!
//! Every state of a proof has the same value, so a wrong step is one that changes it, or one that is not the expected step:
//!
//! ```
//! use polystep_core::{Verdict, Writing};
//!
//! let writing = Writing::default();
//! let before = writing.parse("(3*x+4)*(x+5)+(1)")?;
//! let check = writing.check(&before, "(3*x^2+18*x+20)+(1)")?;
//! assert_eq!(check.verdict, Verdict::WrongValue);
//! assert_eq!(
//!     check.why.to_string(),
//!     "In the mulstep of product 1, the coefficient of x1 should be 19, not 18."
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Generate
//!
//! A [`Space`] is a set of polynomials under caps; the paper has six. A [`Task`] is a space and a writing. A [`Sampler`] draws
//! its proofs. The n-th proof of a seed is the same on every machine, at any number of threads and in every later version.
//!
//! ```
//! use polystep_core::{Purpose, Sampler, Setting, Space, Task, Writing};
//!
//! let writing = Writing { setting: Setting::Calculator, ..Writing::default() };
//! let task = Task { writing, ..Task::new(Space::named("small_coeff")?, 1) };
//! let mut sampler = Sampler::new(&task, 1, Purpose::Train)?;
//! let proof = sampler.written(0, None).unwrap();
//! assert_eq!(proof.start, "(x1^1+x1^1+2*x1^1)+(4*x1^1)");
//! assert_eq!(writing.text(&proof.lines[0].target), "([1+1+2]*x1)+(4*x1^1)");
//! assert_eq!(proof.end, "8*x1");
//! # Ok::<(), polystep_core::SpaceError>(())
//! ```
//!
//! For training there is [`Sampler::write_examples`], which appends millions of steps per second to flat [`Examples`], as the
//! tokens that a model sees.
//!
//! # Score
//!
//! An answer is exact, or at least the same polynomial (the paper's test), or neither:
//!
//! ```
//! use polystep_core::{StepKind, Verdict, Writing};
//!
//! let writing = Writing::default();
//! let verdict = |answer| writing.judge_text(StepKind::Sumstep, "2*x1+3", answer).verdict;
//! assert_eq!(verdict("2*x1+3"), Verdict::Exact);
//! assert_eq!(verdict("3+2*x1"), Verdict::SameValue);
//! assert_eq!(verdict("2*x1+4"), Verdict::WrongValue);
//! assert_eq!(verdict("2*x1+"), Verdict::Malformed);
//! ```
//!
//! # The modules, in the order of the data
//!
//! - [`monomial`], [`poly`], [`expr`], [`notation`]: the algebra and its language.
//! - [`space`], [`stream`], [`sample`], [`arithmetic`]: drawing polynomials, and exercises.
//! - [`granularity`], [`proof`], [`class`]: the steps that simplify them, and how hard they are.
//! - [`writing`], [`token`], [`task`], [`examples`]: proofs as text, tokens and training examples. A private module, `fast`,
//!   writes the examples.
//! - [`sets`], [`guard`]: the fixed test sets, and what keeps training away from them.
//! - [`judge`], [`explain`]: what is right, and why something is not. [`fit`]: whether a space holds an expression.
//! - [`collision`]: how large a space is. [`mod@named`]: enums with names.

mod fast;

pub mod arithmetic;
pub mod class;
pub mod collision;
pub mod examples;
pub mod explain;
pub mod expr;
pub mod fit;
pub mod granularity;
pub mod guard;
pub mod judge;
pub mod monomial;
pub mod named;
pub mod notation;
pub mod poly;
pub mod proof;
pub mod sample;
pub mod sets;
pub mod space;
pub mod stream;
pub mod task;
pub mod token;
pub mod typed;
pub mod writing;

pub use class::{ByClass, CLASSES, ClassWeights, StepClass, Thinning};
pub use examples::{ExampleSpan, Examples};
pub use explain::{Check, Explanation};
pub use expr::{Factor, Product, State, Term};
pub use granularity::Granularity;
pub use guard::{Guard, GuardScope};
pub use judge::{Judgement, Verdict};
pub use monomial::{Monomial, TermOrder};
pub use named::UnknownName;
pub use notation::{Notation, NotationError, Style};
pub use poly::{ArithmeticError, Poly};
pub use proof::{Proof, Step, StepKind, next_step};
pub use sample::{Polynomials, Sampler, WrittenProof};
pub use sets::FixedSet;
pub use space::{Space, SpaceError, SpaceTable, Subtask};
pub use stream::{Purpose, Stream, Streams};
pub use task::Task;
pub use writing::{Line, Setting, Writing, WritingError};

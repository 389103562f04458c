//! The exact core of polystep: polynomials, the proofs that simplify them, and the data that models learn them from.
//!
#![doc = include_str!("../../../tests/proofs/paper.md")]
//!
//! The same proof in Rust:
//!
//! ```
//! use polystep_core::{Granularity, Notation, Proof, StepKind, Style, notation};
//!
//! let (infix, style) = (Notation::Infix, Style::default());
//! let p0 = notation::parse("(2*x2^2)*(3*x2^1+4)+(5*x1^2+x1^1*x2^1)*(3*x1^1)*(2)", infix, style)?;
//! let proof = Proof::of(&p0, Granularity::COARSE, style)?;
//! assert_eq!(proof.steps[2].kind, StepKind::Mulstep);
//! assert_eq!(notation::print(proof.end(), infix, style), "30*x1^3+6*x2^3+6*x1^2*x2+8*x2^2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! And proofs of one of the paper's configurations, as the tokens that a model sees:
//!
//! ```
//! use polystep_core::{Examples, Notation, Purpose, Sampler, Space, Task, token};
//!
//! let task = Task::new(Space::named("small_coeff")?, 1);
//! let mut sampler = Sampler::new(&task, 1, Purpose::Train)?;
//! let mut examples = Examples::default();
//! sampler.write_examples(0, None, &mut examples);
//! assert_eq!(token::decode(examples.src(0), Notation::Infix), "(x1^1+x1^1+2*x1^1)+(4*x1^1)");
//! assert_eq!(token::decode(examples.tgt(0), Notation::Infix), "(4*x1)+(4*x1^1)");
//! # Ok::<(), polystep_core::SpaceError>(())
//! ```
//!
//! The modules in the order of the data flow: [`monomial`], [`poly`], [`expr`] and [`notation`] are the algebra and its
//! language; [`space`], [`stream`] and [`sample`] draw polynomials; [`proof`] simplifies them; [`writing`], [`task`], [`token`] and
//! [`examples`] turn proofs into tokens; [`sets`] and [`guard`] keep training and testing apart; [`judge`] and [`explain`]
//! say what is right; [`collision`] estimates how large a space is.

mod basis;
mod ink;
mod scribe;

pub mod arithmetic;
pub mod bench;
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

pub use examples::{ExampleSpan, Examples, Sampler, WrittenProof};
pub use explain::{Check, Explanation};
pub use expr::{Factor, Product, State, Term};
pub use granularity::Granularity;
pub use guard::Guard;
pub use judge::{Judgement, Verdict};
pub use monomial::{Monomial, TermOrder};
pub use named::UnknownName;
pub use notation::{Notation, NotationError, Style};
pub use poly::{ArithmeticError, Poly};
pub use proof::{Proof, Step, StepKind, next_step};
pub use sample::Polynomials;
pub use sets::FixedSet;
pub use space::{Space, SpaceError, SpaceTable, Subtask};
pub use stream::{Purpose, Stream, Streams};
pub use task::Task;
pub use writing::{Line, Setting, Writing, WritingError};

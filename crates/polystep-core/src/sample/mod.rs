//! Drawing: polynomials of a space, and the proofs of a task.
//!
//! [`Polynomials`] draws polynomials by the paper's algorithms. [`Sampler`] draws what a task asks for and writes it down: as a
//! structured [`Proof`], as [lines](Sampler::written), or as training examples. The examples take the
//! fast path (the private module `fast`), which never builds a proof.

mod basis;
mod draft;
mod polynomials;

pub(crate) use basis::{Accumulator, Basis, Cell};
pub(crate) use draft::{Draft, FactorSpan, ProductSpan};
pub use polynomials::Polynomials;

use crate::arithmetic::Probe;
use crate::class::{StepClass, Thinning};
use crate::examples::Examples;
use crate::fast::{StepWriter, check_lengths};
use crate::guard::Guard;
use crate::proof::Proof;
use crate::space::SpaceError;
use crate::stream::Purpose;
use crate::task::Task;
use crate::writing::{Line, Setting};

/// How many refusals in a row a guard may give before a proof is left out.
pub const PATIENCE: u64 = 10_000;

/// A proof as a model meets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenProof {
    /// The steps.
    pub lines: Vec<Line>,
    /// The first state, without tag.
    pub start: String,
    /// The last state, without tag.
    pub end: String,
}

/// Draws proofs of a task and writes their steps as tokens. Built once per (task, seed, purpose).
#[derive(Debug)]
pub struct Sampler {
    task: Task,
    seed: u64,
    purpose: Purpose,
    source: Source,
    rejected: u64,
    drawn: u64,
}

/// What is drawn.
#[derive(Debug)]
enum Source {
    Polynomials(Box<(Polynomials, StepWriter)>),
    Exercises(Box<(Probe, Option<Thinning>)>),
}

impl Sampler {
    /// Fails if the task's choices do not fit together or its space cannot be sampled.
    pub fn new(task: &Task, seed: u64, purpose: Purpose) -> Result<Sampler, SpaceError> {
        task.validate()?;
        let source = if task.writing.setting == Setting::Arithmetic {
            Source::Exercises(Box::new((Probe::new(&task.space.key, seed, purpose), None)))
        } else {
            let polynomials = Polynomials::new(&task.space, task.vars, task.writing.style, seed, purpose)?;
            check_lengths(task, polynomials.basis.len())?;
            let writer = StepWriter::new(&polynomials.basis, &task.writing);
            Source::Polynomials(Box::new((polynomials, writer)))
        };
        Ok(Sampler { task: task.clone(), seed, purpose, source, rejected: 0, drawn: 0 })
    }

    /// From now on, [`write_examples`](Sampler::write_examples) leaves out the steps that this does not keep; none keeps all. What is drawn
    /// stays the same.
    pub fn thin(&mut self, by: Option<Thinning>) {
        match &mut self.source {
            Source::Polynomials(source) => source.1.thinning = by,
            Source::Exercises(source) => source.1 = by,
        }
    }

    /// The same for sub-tasks whose steps are to look as they do inside the target: a product alone keeps its parentheses, also in
    /// its last step. Only [examples](Sampler::write_examples) are written so; a proof by itself ends with a bare polynomial.
    pub fn inside(mut self) -> Sampler {
        if let Source::Polynomials(source) = self.source {
            let (polynomials, writer) = *source;
            self.source = Source::Polynomials(Box::new((polynomials, writer.inside())));
        }
        self
    }

    /// Appends all step examples of proof `index`; none if the guard leaves nothing to draw.
    pub fn write_examples(&mut self, index: u64, guard: Option<&Guard>, out: &mut Examples) {
        match &mut self.source {
            Source::Exercises(_) => {
                let line = self.exercise(index, guard);
                let class = StepClass::of_kind(line.kind);
                let Source::Exercises(source) = &mut self.source else { return };
                if source.1.as_mut().is_none_or(|thinning| thinning.keeps(class)) {
                    out.push((line.kind, class), index, 0, &line.input, &line.target);
                }
            }
            Source::Polynomials(_) => {
                if let Some((Polynomials { basis, draft, .. }, writer)) = self.draw(index, guard) {
                    writer.write(basis, draft, index, out);
                }
            }
        }
    }

    /// The structured proof of polynomial `index`.
    ///
    /// # Panics
    /// In the arithmetic setting: an exercise has no proof.
    pub fn proof(&mut self, index: u64) -> Proof {
        assert_ne!(self.task.writing.setting, Setting::Arithmetic, "an exercise has no proof");
        self.draw(index, None);
        self.proof_of_drawn()
    }

    /// Proof `index` as the lines of its steps, with its first and its last state as text. With a guard it is drawn again
    /// while its endpoint is guarded; the answer is `None` if the guard leaves nothing to draw.
    pub fn written(&mut self, index: u64, guard: Option<&Guard>) -> Option<WrittenProof> {
        let writing = self.task.writing;
        if let Source::Exercises(_) = self.source {
            let line = self.exercise(index, guard);
            let (start, end) = (writing.text(&line.input), writing.text(&line.target));
            return Some(WrittenProof { lines: vec![line], start, end });
        }
        self.draw(index, guard)?;
        let proof = self.proof_of_drawn();
        let (start, end) = (writing.print(proof.start()), writing.print(proof.end()));
        Some(WrittenProof { lines: writing.lines(&proof).collect(), start, end })
    }

    /// Draws polynomial `index`. With a guard it draws again, further along the same stream, while the endpoint is guarded.
    /// After [`PATIENCE`] refusals in a row it gives up: then the guard holds all there is.
    #[inline]
    fn draw(&mut self, index: u64, guard: Option<&Guard>) -> Option<(&Polynomials, &mut StepWriter)> {
        let Source::Polynomials(source) = &mut self.source else { return None };
        let (polynomials, writer) = &mut **source;
        polynomials.draw(index);
        self.drawn += 1;
        let mut refused = 0;
        while guard.is_some_and(|g| g.contains(polynomials.endpoint_fingerprint())) {
            self.rejected += 1;
            refused += 1;
            if refused == PATIENCE {
                return None;
            }
            self.drawn += 1;
            polynomials.redraw();
        }
        Some((polynomials, writer))
    }

    /// Exercise `index` of the arithmetic probe; a guarded one is drawn again.
    fn exercise(&mut self, index: u64, guard: Option<&Guard>) -> Line {
        let Source::Exercises(source) = &self.source else { unreachable!("polynomials are drawn elsewhere") };
        let (exercise, refused) = source.0.exercise(index, guard);
        self.rejected += refused;
        self.drawn += refused + 1;
        exercise.line(self.task.writing.notation)
    }

    /// The structured proof of the polynomial just drawn.
    pub(crate) fn proof_of_drawn(&self) -> Proof {
        let Source::Polynomials(source) = &self.source else { unreachable!("exercises are drawn elsewhere") };
        let writing = self.task.writing;
        let proof = writing.proof(&source.0.state(writing.notation));
        proof.expect("the caps keep every sampled coefficient below 2^63")
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The seed of its stream.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The purpose of its stream.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// How many polynomials (or exercises) the guard refused.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// How many polynomials (or exercises) were drawn, refused ones included.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }
}

#[cfg(test)]
mod tests;

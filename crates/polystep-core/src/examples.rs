//! Step examples as tokens, flat in memory: what training reads.
//!
//! The tokens of an example are its source and then its target, without `<s>` and `</s>`. Examples may overlap: where a
//! step's input is the target of the step before, it is stored once.

use crate::arithmetic::Probe;
use crate::guard::Guard;
use crate::proof::{MAX_COMBINATIONS, Proof, StepKind};
use crate::sample::Polynomials;
use crate::scribe::Scribe;
use crate::space::{Space, SpaceError};
use crate::stream::Purpose;
use crate::task::Task;
use crate::writing::{Line, Setting};

/// Where an example lies in [`Examples::tokens`], and which it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExampleSpan {
    /// Its first token.
    pub start: u32,
    /// How many tokens the source has.
    pub src_len: u16,
    /// How many tokens the target has.
    pub tgt_len: u16,
    /// What the step does.
    pub kind: StepKind,
    /// The index of its proof in the stream (its low 32 bits).
    pub proof: u32,
    /// Which step of the proof it is.
    pub step: u16,
}

/// Many examples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Examples {
    /// All tokens.
    pub tokens: Vec<u8>,
    /// One span per example.
    pub spans: Vec<ExampleSpan>,
}

impl Examples {
    /// Forgets the examples and keeps the memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.spans.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The source of example i.
    pub fn src(&self, i: usize) -> &[u8] {
        let s = &self.spans[i];
        &self.tokens[s.start as usize..][..usize::from(s.src_len)]
    }

    /// The target of example i.
    pub fn tgt(&self, i: usize) -> &[u8] {
        let s = &self.spans[i];
        &self.tokens[s.start as usize + usize::from(s.src_len)..][..usize::from(s.tgt_len)]
    }

    /// What example i does.
    pub fn kind(&self, i: usize) -> StepKind {
        self.spans[i].kind
    }

    pub(crate) fn push(&mut self, kind: StepKind, proof: u64, step: usize, src: &[u8], tgt: &[u8]) {
        self.spans.push(ExampleSpan {
            start: self.tokens.len() as u32,
            src_len: src.len() as u16,
            tgt_len: tgt.len() as u16,
            kind,
            proof: proof as u32,
            step: step as u16,
        });
        self.tokens.extend_from_slice(src);
        self.tokens.extend_from_slice(tgt);
    }
}

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
    polynomials: Polynomials,
    scribe: Scribe,
    probe: Probe,
    rejected: u64,
    drawn: u64,
}

impl Sampler {
    /// Fails if the task's choices do not fit together or its space cannot be sampled.
    pub fn new(task: &Task, seed: u64, purpose: Purpose) -> Result<Sampler, SpaceError> {
        task.validate()?;
        let polynomials = Polynomials::new(&task.space, task.vars, task.writing.style, seed, purpose)?;
        fits(task, polynomials.basis.len())?;
        Ok(Sampler {
            scribe: Scribe::new(&polynomials.basis, &task.writing),
            polynomials,
            probe: Probe::new(&task.space.key, seed, purpose),
            task: task.clone(),
            seed,
            purpose,
            rejected: 0,
            drawn: 0,
        })
    }

    /// Draws polynomial `index`; with a guard, draws again from the same stream while its endpoint is guarded.
    /// After [`PATIENCE`] refusals in a row nothing is drawn, and the answer is `false`: then the guard holds all there is.
    pub fn draw(&mut self, index: u64, guard: Option<&Guard>) -> bool {
        self.polynomials.draw(index);
        self.drawn += 1;
        let mut refused = 0;
        while guard.is_some_and(|g| g.contains(self.polynomials.endpoint_fingerprint())) {
            self.rejected += 1;
            refused += 1;
            if refused == PATIENCE {
                return false;
            }
            self.drawn += 1;
            self.polynomials.redraw();
        }
        true
    }

    /// Appends all step examples of proof `index`; none if the guard leaves nothing to draw.
    pub fn write_examples(&mut self, index: u64, guard: Option<&Guard>, out: &mut Examples) {
        if self.task.writing.setting == Setting::Arithmetic {
            let line = self.exercise_line(index, guard);
            out.push(line.kind, index, 0, &line.input, &line.target);
            return;
        }
        if self.draw(index, guard) {
            let Polynomials { basis, draft, .. } = &self.polynomials;
            self.scribe.write(basis, draft, index, out);
        }
    }

    /// The slow and obvious way to write the drawn polynomial's steps, by way of [`Proof`].
    #[cfg(test)]
    pub(crate) fn write_reference(&self, index: u64, out: &mut Examples) {
        for (i, line) in self.task.writing.lines(&self.proof_of_drawn()).iter().enumerate() {
            out.push(line.kind, index, i, &line.input, &line.target);
        }
    }

    /// The structured proof of polynomial `index`.
    pub fn proof(&mut self, index: u64) -> Proof {
        self.draw(index, None);
        self.proof_of_drawn()
    }

    /// Proof `index` as the lines of its steps, with its first and its last state as text. With a guard it is drawn again
    /// while its endpoint is guarded; the answer is `None` if the guard leaves nothing to draw.
    pub fn written(&mut self, index: u64, guard: Option<&Guard>) -> Option<WrittenProof> {
        let writing = self.task.writing;
        if writing.setting == Setting::Arithmetic {
            let line = self.exercise_line(index, guard);
            let (start, end) = (writing.text(&line.input), writing.text(&line.target));
            return Some(WrittenProof { lines: vec![line], start, end });
        }
        self.draw(index, guard).then(|| {
            let proof = self.proof_of_drawn();
            let (start, end) = (writing.print(&proof.start), writing.print(proof.end()));
            WrittenProof { lines: writing.lines(&proof), start, end }
        })
    }

    /// The structured proof of the polynomial just drawn.
    pub(crate) fn proof_of_drawn(&self) -> Proof {
        let proof = self.task.writing.proof(&self.polynomials.state());
        proof.expect("the caps keep every sampled coefficient below 2^64")
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

    /// Exercise `index` of the arithmetic probe; a guarded one is drawn again.
    pub(crate) fn exercise_line(&mut self, index: u64, guard: Option<&Guard>) -> Line {
        let (exercise, refused) = self.probe.exercise(index, guard);
        self.rejected += refused;
        self.drawn += refused + 1;
        exercise.line(self.task.writing.notation)
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

/// Whether every sequence of the task has a length that a span can hold, `monomials` being all that the space has.
fn fits(task: &Task, monomials: usize) -> Result<(), SpaceError> {
    let Space { terms, factors, products, .. } = &task.space;
    let term = 32 + 7 * task.vars as u64;
    let combinations = u64::from(terms.factor).saturating_pow(factors.max);
    let sampled = u64::from(factors.max) * (u64::from(terms.factor) * term + 4);
    let expanded = combinations.min(terms.product.into()).min(monomials as u64) * term + 4;
    // Every product may be multiplied or not, and one at a time is half so.
    let state = u64::from(products.max) * sampled.max(expanded) + sampled.min(expanded);
    let open = combinations.saturating_mul(term + 12 * u64::from(factors.max));
    let calculator = task.writing.setting == Setting::Calculator;
    let too_many = calculator && combinations > MAX_COMBINATIONS as u64;
    let longest = if calculator { state.saturating_add(open) } else { state };
    if longest > u64::from(u16::MAX) || too_many {
        let (cap, value) = if sampled < expanded && !too_many {
            ("terms.product", u64::from(terms.product))
        } else {
            ("max.factors", u64::from(factors.max))
        };
        let reason = format!("a step could have {longest} tokens");
        return Err(SpaceError::TooLarge { cap, value, reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::granularity::Granularity;
    use crate::monomial::TermOrder;
    use crate::notation::{Notation, Style, print};
    use crate::space::{KEYS, Retry, Subtask, Variables};
    use crate::writing::Writing;

    /// Both ways of writing steps agree on every example of a task.
    fn agree(task: &Task, proofs: u64) {
        let mut sampler = Sampler::new(task, 1, Purpose::Train).unwrap();
        for index in 0..proofs {
            let (mut fast, mut slow) = (Examples::default(), Examples::default());
            sampler.write_examples(index, None, &mut fast);
            sampler.write_reference(index, &mut slow);
            assert_eq!(fast.len(), slow.len(), "{task:?} {index}");
            for i in 0..fast.len() {
                let text = |tokens: &[u8]| task.writing.text(tokens);
                assert_eq!(text(fast.src(i)), text(slow.src(i)), "source {i} of {index}: {task:?}");
                assert_eq!(text(fast.tgt(i)), text(slow.tgt(i)), "target {i} of {index}: {task:?}");
                assert_eq!(fast.kind(i), slow.kind(i));
                let (f, s) = (fast.spans[i], slow.spans[i]);
                assert_eq!((f.proof, f.step), (s.proof, s.step));
            }
        }
    }

    fn agree_in_every_way(space: &Space, vars: usize, style: Style, proofs: u64) {
        for setting in [Setting::Plain, Setting::Calculator, Setting::Annotated, Setting::Endpoint] {
            for granularity in Granularity::known() {
                for notation in Notation::ALL {
                    let writing = Writing { setting, granularity, notation, style };
                    let task = Task { space: space.clone(), vars, writing };
                    if task.validate().is_ok() {
                        agree(&task, proofs);
                    }
                }
            }
        }
    }

    #[test]
    fn the_fast_path_writes_what_the_proof_says() {
        for key in KEYS {
            let space = Space::named(key).unwrap();
            for vars in [1, 2] {
                agree_in_every_way(&space, vars, Style::default(), 12);
            }
            for subtask in Subtask::ALL {
                agree_in_every_way(&space.subtask(subtask), 1, Style::default(), 6);
            }
        }
    }

    #[test]
    fn and_in_every_style_and_space() {
        let mut space = Space::named("medium_degree").unwrap();
        for order in [TermOrder::Paper, TermOrder::Grlex] {
            for ones in [false, true] {
                agree_in_every_way(&space, 2, Style { order, ones }, 4);
            }
        }
        (space.retry, space.variables, space.degree.polynomial) = (Retry::Factor, Variables::Uniform, 6);
        agree_in_every_way(&space, 5, Style::default(), 4);
        (space.retry, space.coeff.factor, space.coeff.product, space.coeff.polynomial) =
            (Retry::Polynomial, 5000, 1 << 32, 1 << 40);
        agree_in_every_way(&space, 3, Style::default(), 4);
    }

    /// Its starts fit into a span of 65 535 tokens; the last sumstep of its eighth proof would have 71 627 of them.
    #[test]
    fn a_space_whose_products_are_too_long_is_refused() {
        let mut space = Space::named("medium_terms").unwrap();
        (space.coeff.polynomial, space.coeff.product, space.coeff.factor) = (1 << 40, 1 << 32, 2);
        (space.degree.polynomial, space.degree.factor) = (255, 85);
        (space.terms.product, space.terms.factor, space.products.max, space.factors.max) = (1024, 16, 29, 3);
        let sampler = |space: &Space| Sampler::new(&Task::new(space.clone(), 2), 1, Purpose::Train);
        let error = sampler(&space).unwrap_err().to_string();
        assert!(error.starts_with("terms.product = 1024 is too large: a step could have"), "{error}");
        (space.degree.polynomial, space.degree.factor, space.products.max) = (6, 3, 28);
        assert!(sampler(&space).is_ok(), "there are only 28 monomials");
    }

    #[test]
    fn the_same_polynomial_in_every_task() {
        let space = Space::named("large_coeff").unwrap();
        let starts = |setting, granularity, order| {
            let style = Style { order, ..Style::default() };
            let writing = Writing { setting, granularity, style, ..Writing::default() };
            let task = Task { writing, ..Task::new(space.clone(), 2) };
            let mut sampler = Sampler::new(&task, 3, Purpose::Train).unwrap();
            (0..20).map(|i| sampler.proof(i).end().value(TermOrder::Paper).unwrap()).collect::<Vec<_>>()
        };
        let plain = starts(Setting::Plain, Granularity::COARSE, TermOrder::Paper);
        assert_eq!(plain, starts(Setting::Calculator, Granularity::FINE, TermOrder::Paper));
        assert_eq!(plain, starts(Setting::Plain, Granularity::FINE, TermOrder::Grlex));
    }

    #[test]
    fn a_guarded_endpoint_is_drawn_again() {
        let task = Task::new(Space::named("small_coeff").unwrap(), 1);
        let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
        let guard = Guard::standard();
        let mut examples = Examples::default();
        for index in 0..20_000 {
            sampler.write_examples(index, Some(&guard), &mut examples);
            assert!(!guard.contains(sampler.polynomials.endpoint_fingerprint()));
        }
        let share = sampler.rejected() as f64 / sampler.drawn() as f64;
        assert!((0.001..0.3).contains(&share), "{share}");
        for index in 0..20 {
            let (free, guarded) = (sampler.proof(index), sampler.written(index, Some(&guard)).unwrap());
            let fingerprint = free.end().value(TermOrder::Paper).unwrap().fingerprint();
            let same = print(free.end(), Notation::Infix, Style::default()) == guarded.end;
            assert_eq!(same, !guard.contains(fingerprint), "{index}");
        }
    }

    #[test]
    fn where_the_guard_holds_everything_nothing_is_drawn() {
        let text = "[space]\ncoeff = { polynomial = 2, product = 1, factor = 1 }\n\
                    degree = { polynomial = 1, factor = 1 }\nmax = { products = 2, factors = 2 }";
        let task = Task::new(Space::from_toml(text).unwrap(), 1);
        let mut guard = Guard::default();
        guard.extend(&task.space, 1).unwrap();
        let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
        assert_eq!(sampler.written(0, Some(&guard)), None);
        let mut examples = Examples::default();
        sampler.write_examples(0, Some(&guard), &mut examples);
        assert!(examples.is_empty());
        assert!(sampler.written(0, None).is_some());
    }
}

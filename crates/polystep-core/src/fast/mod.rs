//! The fast path of generation: the steps of a drawn polynomial written straight to tokens.
//!
//! # What it does
//!
//! [`Writing::lines`] writes a proof in the obvious way: it builds every state as a tree, finds the step that applies, and
//! prints each state from the beginning. That is how people's expressions, records and the checker work, and it is the
//! definition of what is right. Training needs the same tokens a hundred times faster, so [`StepWriter`] makes them without
//! building a state:
//!
//! 1. A drawn polynomial is a [`Draft`](crate::sample::Draft). It holds every factor as sampled and as collected, every
//!    product expanded, and the sum. The sampler had to compute them to check the caps, so no algebra is left to be done
//!    (but for products and sums in pairs).
//! 2. Every factor, product and sum is spelled once, as a *run* of tokens (`runs`, with the tables of [`spelling`]).
//! 3. A state is a sequence of runs with operators between them. A step replaces one run and writes the state again, which
//!    is mostly copying (`states`, `tokens`).
//! 4. The target of a step is the input of the next, so it is written once and the two examples overlap.
//! 5. Where a [`Thinning`] leaves out steps, a state is written when a step that is kept first needs it. A step that is left
//!    out only replaces its run.
//!
//! `steps` says which run each step replaces, in the order of a proof: it is the second place, after
//! [`next_step`](crate::proof::next_step), that knows the steps.
//!
//! # How it is tested
//!
//! `tests` compares it with [`Writing::lines`], token for token, on sampled polynomials: every space, sub-task, setting,
//! granularity and notation, both term orders, with and without ones. `tests/streams.rs` pins checksums of its output.
//!
//! # How long a sequence can be
//!
//! An example's lengths are stored in 16 bits ([`ExampleSpan`]). [`check_lengths`] refuses a task whose space could exceed
//! them, before anything is drawn.

mod runs;
mod spelling;
mod states;
mod steps;
mod tokens;

use crate::class::{StepClass, Thinning};
use crate::examples::{ExampleSpan, Examples};
use crate::granularity::{Fac, Mul};
use crate::notation::Notation;
use crate::proof::{MAX_COMBINATIONS, StepKind};
use crate::sample::{Accumulator, Basis, Cell, Draft};
use crate::space::{Space, SpaceError};
use crate::task::Task;
use crate::token;
use crate::writing::{Setting, Writing};
use spelling::Spelling;
use states::CurrentState;
use tokens::TokenBuffer;

/// Writes the steps of drafts as tokens, in one writing.
#[derive(Debug)]
pub(crate) struct StepWriter {
    writing: Writing,
    /// Whether a product alone is written as inside a sum: its last step keeps the parentheses.
    inside: bool,
    /// Whether a product is one run, because no step ever touches a single factor.
    fused: bool,
    spelling: Spelling,
    /// Every run, spelled once.
    runs: TokenBuffer,
    /// The states, one behind the other: the tokens of the examples.
    states: TokenBuffer,
    current: CurrentState,
    /// The examples so far; they count from the beginning of `states`.
    spans: Vec<ExampleSpan>,
    /// The index of the proof.
    index: u32,
    /// The number of the current step, and whether it is kept.
    step: u16,
    kept: bool,
    /// Which steps are kept; all if there is none.
    pub thinning: Option<Thinning>,
    scratch: Scratch,
}

/// Memory that is kept from proof to proof.
#[derive(Debug)]
struct Scratch {
    left: Vec<Cell>,
    counts: [Vec<Cell>; 2],
    sum: Accumulator,
    combinations: Vec<(u16, u32)>,
}

impl StepWriter {
    pub fn new(basis: &Basis, writing: &Writing) -> StepWriter {
        let Writing { setting, granularity, notation, style } = *writing;
        let whole_products = granularity.fac == Fac::Product && granularity.mul == Mul::Product;
        StepWriter {
            writing: *writing,
            inside: false,
            fused: whole_products || setting == Setting::Endpoint,
            spelling: Spelling::new(basis, notation, style),
            runs: TokenBuffer::default(),
            states: TokenBuffer::default(),
            current: CurrentState::default(),
            spans: Vec::new(),
            index: 0,
            step: 0,
            kept: true,
            thinning: None,
            scratch: Scratch {
                left: Vec::new(),
                counts: Default::default(),
                sum: Accumulator::new(basis),
                combinations: Vec::new(),
            },
        }
    }

    /// The same for proofs that are parts of others.
    pub fn inside(self) -> StepWriter {
        StepWriter { inside: true, ..self }
    }

    /// Appends the steps of the drawn polynomial that are kept.
    pub fn write(&mut self, basis: &Basis, draft: &Draft, index: u64, out: &mut Examples) {
        self.runs.clear();
        self.states.clear();
        self.spans.clear();
        self.current.clear();
        self.index = index as u32;
        self.step = 0;
        self.start(draft);
        match self.writing.setting {
            Setting::Endpoint => {
                if self.keeps(StepClass::Endpoint) {
                    let src = self.written();
                    let end = self.spell_simple(&draft.total);
                    let target = self.write_bare(end);
                    self.example((StepKind::Endpoint, StepClass::Endpoint), src, target);
                }
            }
            setting => {
                self.facsteps(draft);
                self.mulsteps(basis, draft);
                self.sumsteps(draft);
                if setting == Setting::Annotated {
                    self.mark_end();
                }
            }
        }
        let base = out.tokens.len() as u32;
        out.tokens.extend_from_slice(self.states.written());
        out.spans.extend(self.spans.iter().map(|s| ExampleSpan { start: s.start + base, ..*s }));
    }

    /// Spells the start and makes it the current state.
    fn start(&mut self, draft: &Draft) {
        for &p in &draft.products {
            let first = self.current.runs.len();
            let factors = draft.factors(p);
            if self.fused {
                let run = self.spell_product(draft, factors, true);
                self.current.runs.push(run);
            } else {
                for &f in factors {
                    let at = self.runs.len();
                    self.spelling.factor(draft.raw(f), true, &mut self.runs);
                    self.current.runs.push(self.runs.since(at));
                }
            }
            self.current.products.push((first, self.current.runs.len() - first));
        }
    }

    /// Annotated: `MARK $ E` leads to `END $ E`.
    fn mark_end(&mut self) {
        if !self.keeps(StepClass::Markstep) {
            return;
        }
        let end = self.current.written.unwrap_or_else(|| self.write_bare(self.current.end));
        self.states.reserve(end.len);
        let at = self.states.len();
        self.states.push(token::END);
        for i in end.start + 1..end.end() {
            let token = self.states.written()[i];
            self.states.push(token);
        }
        let target = self.states.since(at);
        self.example((StepKind::Markstep, StepClass::Markstep), end, target);
    }

    fn calculator(&self) -> bool {
        self.writing.setting == Setting::Calculator
    }

    fn prefix(&self) -> bool {
        self.writing.notation == Notation::Prefix
    }
}

/// Whether an operator stands before part i of n: infix writes it between two parts, prefix before all but the last.
#[inline]
fn operator_before(i: usize, n: usize, prefix: bool) -> bool {
    if prefix { i + 1 < n } else { i > 0 }
}

/// Refuses a task with a step that could be longer than a span can hold. `monomials` is how many the space has.
pub(crate) fn check_lengths(task: &Task, monomials: usize) -> Result<(), SpaceError> {
    let Space { terms, factors, products, .. } = &task.space;
    // A coefficient has at most 20 digits; signs, operators and brackets around it are fewer than 12. A power has a variable,
    // `^`, at most 3 digits, an operator and, in prefix, `INT+`.
    let term = 32 + 7 * task.vars as u64;
    let combinations = u64::from(terms.factor).saturating_pow(factors.max);
    // A product before and after it is multiplied out; 4 tokens are parentheses and operators.
    let sampled = u64::from(factors.max) * (u64::from(terms.factor) * term + 4);
    let expanded = combinations.min(terms.product.into()).min(monomials as u64) * term + 4;
    // At any moment each product is either multiplied out or not. At most one is half done.
    let state = u64::from(products.max) * sampled.max(expanded) + sampled.min(expanded);
    // A calculator writes every combination of terms, each as a product of coefficients.
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
mod tests;

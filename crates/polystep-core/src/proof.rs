//! Proofs: the sequence of facsteps, mulsteps and sumsteps that leads a state to its normal form (§2, P₀ … P₅).
//!
//! For each state exactly one step applies, so a proof is that step, repeated: all facsteps from left to right, then all
//! mulsteps, then sumsteps. A step that would change nothing is not one. The decision a reader would get wrong: with a
//! single product there is no sumstep; its last mulstep (or, with a single factor, its facstep) writes the bare endpoint.
//!
//! A proof does not hold its states. n steps from a start of length n would take n² memory. It holds its start, its end and
//! the kinds of its steps, and a [`Walk`] makes the states again, one at a time.

mod walk;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use walk::{MAX_COMBINATIONS, MAX_STATE_TERMS, Rewrite, Walk};

use crate::expr::State;
use crate::granularity::Granularity;
use crate::named;
use crate::notation::{Layout, Notation, Open, Style};
use crate::poly::ArithmeticError;
use crate::token;

/// What a step does; the paper's names.
///
/// The order of the variants is the order of the steps in a proof (the derived `Ord`): a proof never goes back from one
/// kind to an earlier one. Tables list the kinds in this order, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum StepKind {
    /// Terms are collected within a factor.
    Facstep,
    /// Factors are multiplied out.
    Mulstep,
    /// Products are added.
    Sumstep,
    /// The operand of the next step is marked (annotated proofs).
    Markstep,
    /// Everything at once.
    Endpoint,
    /// The arithmetic probe's a+b.
    Add,
    /// The arithmetic probe's a*b.
    Mul,
}
named!(
    StepKind, "kind of step":
    Facstep "facstep", Mulstep "mulstep", Sumstep "sumstep", Markstep "markstep", Endpoint "endpoint", Add "add",
    Mul "mul"
);

impl StepKind {
    /// The tag of an annotated operation step. Only the steps of a proof have one: an operation that [`next_step`] returns
    /// needs a tag of its own.
    pub fn tag(self) -> Option<u8> {
        match self {
            StepKind::Facstep => Some(token::FAC),
            StepKind::Mulstep => Some(token::MUL),
            StepKind::Sumstep => Some(token::SUM),
            StepKind::Markstep | StepKind::Endpoint | StepKind::Add | StepKind::Mul => None,
        }
    }
}

/// What a step rewrites: the whole unit, even where a part of it does not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    /// These products.
    Products(Range<usize>),
    /// These factors of a product.
    Factors {
        /// The product.
        product: usize,
        /// Its factors.
        factors: Range<usize>,
    },
    /// These terms of a factor.
    Terms {
        /// The product.
        product: usize,
        /// The factor in it.
        factor: usize,
        /// The terms in that.
        terms: Range<usize>,
    },
}

impl Operand {
    /// The operand's range in a layout of the state.
    pub fn range(&self, layout: &Layout) -> Range<usize> {
        let hull = |ranges: &[Range<usize>], r: &Range<usize>| ranges[r.start].start..ranges[r.end - 1].end;
        match self {
            Operand::Products(r) => hull(&layout.products, r),
            Operand::Factors { product, factors } => hull(&layout.factors[*product], factors),
            Operand::Terms { product, factor, terms } => hull(&layout.terms[*product][*factor], terms),
        }
    }

    /// Where the operand stands in the text of these tokens, in bytes.
    pub fn span(&self, tokens: &[u8], layout: &Layout, notation: Notation) -> Range<usize> {
        let range = self.range(layout);
        let spans = token::decoded_spans(tokens, notation);
        spans[range.start].start..spans[range.end - 1].end
    }
}

/// One step of a proof, with its own copies of both states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// The state it starts from.
    pub before: State,
    /// The state it leads to.
    pub after: State,
    /// What it rewrites in `before`.
    pub operand: Operand,
    /// The coefficients of `after` that a calculator would be left to compute; none where a product has more than
    /// [`MAX_COMBINATIONS`].
    pub open: Open,
}

/// A state and all the steps that simplify it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    start: State,
    end: State,
    kinds: Vec<StepKind>,
    granularity: Granularity,
    style: Style,
}

impl Proof {
    /// The proof that starts here.
    ///
    /// ```
    /// use polystep_core::{Granularity, Notation, Proof, Style, notation};
    /// let start = notation::parse("(2*x)*(x^1+1)", Notation::Infix, Style::default())?;
    /// let proof = Proof::of(&start, Granularity::COARSE, Style::default())?;
    /// let lines: Vec<String> =
    ///     proof.states().map(|s| notation::print(&s, Notation::Infix, Style::default())).collect();
    /// assert_eq!(lines, ["(2*x1)*(x1^1+1)", "(2*x1)*(x1+1)", "2*x1^2+2*x1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(start: &State, granularity: Granularity, style: Style) -> Result<Proof, ArithmeticError> {
        let mut walk = Walk::new(start.clone(), granularity, style, false);
        let mut kinds = Vec::new();
        while let Some(rewrite) = walk.try_advance()? {
            kinds.push(rewrite.kind);
        }
        Ok(Proof { start: start.clone(), end: walk.into_state(), kinds, granularity, style })
    }

    /// Where it starts.
    pub fn start(&self) -> &State {
        &self.start
    }

    /// Where it ends.
    pub fn end(&self) -> &State {
        &self.end
    }

    /// What its steps do, in order.
    pub fn kinds(&self) -> &[StepKind] {
        &self.kinds
    }

    /// A walk through its states, without open coefficients.
    pub fn walk(&self) -> Walk {
        Walk::new(self.start.clone(), self.granularity, self.style, false)
    }

    /// A walk through its states that says which coefficients a calculator would be left to compute.
    pub fn walk_open(&self) -> Walk {
        Walk::new(self.start.clone(), self.granularity, self.style, true)
    }

    /// The steps, each starting where the one before ended. They are made one at a time.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let mut walk = self.walk_open();
        std::iter::from_fn(move || {
            let before = walk.state().clone();
            let Rewrite { kind, operand, open } = walk.advance()?;
            Some(Step { kind, before, after: walk.state().clone(), operand, open })
        })
    }

    /// All states, from the start to the endpoint. They are made one at a time.
    pub fn states(&self) -> impl Iterator<Item = State> {
        let mut walk = self.walk();
        let rest = std::iter::from_fn(move || walk.advance().map(|_| walk.state().clone()));
        std::iter::once(self.start.clone()).chain(rest)
    }

    /// Which of its states this is, counted from the start; none if it is no state of the proof.
    pub fn place_of(&self, state: &State) -> Option<usize> {
        if *state == self.end {
            return Some(self.kinds.len());
        }
        let mut walk = self.walk();
        (0..self.kinds.len()).find(|_| {
            let found = walk.state() == state;
            walk.advance();
            found
        })
    }
}

/// The one step that applies to a state; none if it is the endpoint.
pub fn next_step(state: &State, granularity: Granularity, style: Style) -> Result<Option<Step>, ArithmeticError> {
    let mut walk = Walk::new(state.clone(), granularity, style, true);
    let rewrite = walk.try_advance()?;
    Ok(rewrite.map(|Rewrite { kind, operand, open }| {
        let (before, after) = (state.clone(), walk.into_state());
        Step { kind, before, after, operand, open }
    }))
}

#[cfg(test)]
mod tests;

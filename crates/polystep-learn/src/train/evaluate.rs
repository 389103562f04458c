//! Teacher-forced exact match. With every earlier token right, greedy decoding sees what teacher forcing shows; so an example
//! is exact under one if and only if it is under the other, and validation needs no decoding. A calculator's answer may differ
//! from the target and still evaluate to it; that is not visible here, so its scores are `raw`.

use std::collections::BTreeMap;

use polystep_core::token;
use polystep_engine::{Batch, Executor, Limits, Scalars};

use super::score::{Scores, Share};
use crate::LearnError;
use crate::feed::{fits, push_example};

/// One step of a proof of the set.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalStep {
    /// Which proof it belongs to.
    pub proof: usize,
    /// What kind of step is expected; an exercise's carries its digits.
    pub kind: String,
    /// Source tokens.
    pub src: Vec<u8>,
    /// Target tokens.
    pub tgt: Vec<u8>,
}

/// A fixed set of proofs, step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalSet {
    steps: Vec<EvalStep>,
    proofs: usize,
}

impl EvalSet {
    /// From steps in the order of their proofs; `proofs` counts those without steps too.
    pub fn new(steps: Vec<EvalStep>, proofs: usize) -> Self {
        EvalSet { steps, proofs }
    }

    /// The steps.
    pub fn steps(&self) -> &[EvalStep] {
        &self.steps
    }

    /// Number of proofs.
    pub fn proofs(&self) -> usize {
        self.proofs
    }

    /// Runs the executor's evaluation program (`program`) over all steps. Whatever was enqueued before must have been
    /// collected.
    pub fn score(
        &self,
        executor: &mut dyn Executor,
        program: usize,
        max_positions: usize,
    ) -> Result<Scores, LearnError> {
        let right = self.right(executor, program, max_positions)?;
        let mut proofs = vec![true; self.proofs];
        let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (step, right) in self.steps.iter().zip(&right.steps) {
            let right = *right == Some(true);
            proofs[step.proof] &= right;
            let kind = kinds.entry(&step.kind).or_default();
            *kind = (kind.0 + u64::from(right), kind.1 + 1);
        }
        let count = |it: &mut dyn Iterator<Item = bool>| it.filter(|&r| r).count() as u64;
        let steps = count(&mut right.steps.iter().map(|r| *r == Some(true)));
        Ok(Scores {
            full_proof: Share::new(count(&mut proofs.iter().copied()), self.proofs as u64),
            stepwise: Share::new(steps, self.steps.len() as u64),
            by_kind: kinds.into_iter().map(|(k, (r, n))| (k.to_owned(), Share::new(r, n))).collect(),
            loss: right.loss,
            too_long: count(&mut right.steps.iter().map(|r| r.is_none())),
            raw: self.steps.iter().any(|s| s.tgt.contains(&token::BRACKET)),
        })
    }

    fn right(&self, executor: &mut dyn Executor, program: usize, max_positions: usize) -> Result<Right, LearnError> {
        let limits = executor.limits();
        let mut steps = vec![None; self.steps.len()];
        let (mut loss, mut tokens) = (0.0, 0.0);
        let mut next = 0;
        let mut batch = Batch::default();
        let mut members = Vec::new();
        while self.pack(&limits, max_positions, &mut next, &mut batch, &mut members) {
            executor.run(program, &batch, &Scalars { lr: 0.0, step: 0, seed: 0 })?;
            for (&member, right) in members.iter().zip(executor.right()?) {
                steps[member] = Some(right);
            }
            let n = batch.tgt.tokens() as f64;
            tokens += n;
            loss += n * executor.results()?.last().map_or(0.0, |r| f64::from(r.loss));
        }
        Ok(Right { steps, loss: if tokens > 0.0 { loss / tokens } else { 0.0 } })
    }

    /// The next batch, in the set's order; `false` when there is none. Steps that are too long are passed over.
    fn pack(
        &self,
        limits: &Limits,
        max_positions: usize,
        next: &mut usize,
        batch: &mut Batch,
        members: &mut Vec<usize>,
    ) -> bool {
        batch.clear();
        members.clear();
        while let Some(EvalStep { src, tgt, .. }) = self.steps.get(*next) {
            if src.len().max(tgt.len()) < max_positions {
                if !fits(batch, limits, src, tgt) {
                    break;
                }
                push_example(batch, src, tgt);
                members.push(*next);
            }
            *next += 1;
        }
        !members.is_empty()
    }
}

struct Right {
    /// None if the step is too long.
    steps: Vec<Option<bool>>,
    loss: f64,
}

//! Teacher-forced exact match. As long as every earlier token is right, greedy decoding sees what teacher forcing shows. So an
//! example is exact under one if and only if it is exact under the other, and validation needs no decoding.
//!
//! A calculator's answer may differ from the target and still evaluate to it. That is not visible here, so its scores are
//! marked as `raw`.

use std::collections::BTreeMap;

use polystep_core::token;
use polystep_engine::{Batch, Executor, Scalars};

use super::EVALUATION;
use crate::LearnError;
use crate::feed::{EvalSet, EvalStep, fits, push_example};
use polystep_record::{Proportion, Scores};

/// Scores a model on a set. The executor must have the model's parameters, and no results may be pending.
pub fn score(set: &EvalSet, executor: &mut dyn Executor, max_positions: usize) -> Result<Scores, LearnError> {
    let (right, loss) = right_steps(&set.steps, executor, max_positions)?;
    let mut proofs = vec![true; set.proofs];
    let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (step, right) in set.steps.iter().zip(&right) {
        let right = *right == Some(true);
        proofs[step.proof] &= right;
        let kind = kinds.entry(&step.kind).or_default();
        *kind = (kind.0 + u64::from(right), kind.1 + 1);
    }
    let (whole, steps) = (proofs.iter().filter(|&&p| p).count(), right.iter().filter(|&&r| r == Some(true)).count());
    Ok(Scores {
        full_proof: Proportion::counted(whole as u64, set.proofs as u64),
        stepwise: Proportion::counted(steps as u64, right.len() as u64),
        by_kind: kinds.into_iter().map(|(kind, (right, n))| (kind.to_owned(), Proportion::counted(right, n))).collect(),
        loss,
        too_long: right.iter().filter(|r| r.is_none()).count() as u64,
        raw: set.steps.iter().any(|s| s.tgt.contains(&token::BRACKET)),
    })
}

/// Whether each step is right, none for those that are too long; and the mean loss over the target tokens of the others.
fn right_steps(
    steps: &[EvalStep],
    executor: &mut dyn Executor,
    max_positions: usize,
) -> Result<(Vec<Option<bool>>, f64), LearnError> {
    let limits = executor.limits();
    let mut right = vec![None; steps.len()];
    let (mut loss, mut tokens) = (0.0, 0.0);
    let mut short = (0..steps.len()).filter(|&i| steps[i].src.len().max(steps[i].tgt.len()) < max_positions).peekable();
    let mut batch = Batch::default();
    loop {
        batch.clear();
        let mut members = Vec::new();
        while let Some(i) = short.next_if(|&i| fits(&batch, &limits, &steps[i].src, &steps[i].tgt)) {
            push_example(&mut batch, &steps[i].src, &steps[i].tgt);
            members.push(i);
        }
        if members.is_empty() {
            return Ok((right, if tokens > 0.0 { loss / tokens } else { 0.0 }));
        }
        executor.run(EVALUATION, &batch, &Scalars::default())?;
        for (&member, is_right) in members.iter().zip(executor.right()?) {
            right[member] = Some(is_right);
        }
        let n = batch.tgt.tokens() as f64;
        tokens += n;
        loss += n * executor.results()?.last().map_or(0.0, |r| f64::from(r.loss));
    }
}

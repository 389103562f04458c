//! What training measures: scores on a validation or test set, the best of them, and the report of a finished run, which is
//! the head of its `metrics.json`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::proportion::{Proportion, fraction};
use crate::recipe::Recipe;

/// Teacher-forced exact match on a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Proofs with every step right.
    #[serde(with = "fraction")]
    pub full_proof: Proportion,
    /// Steps that are right.
    #[serde(with = "fraction")]
    pub stepwise: Proportion,
    /// Steps that are right, by what was expected.
    #[serde(default, with = "fraction::map")]
    pub by_kind: BTreeMap<String, Proportion>,
    /// Mean loss over the target tokens of the steps that fit into the model.
    #[serde(default)]
    pub loss: f64,
    /// Steps longer than the model can take: wrong, not dropped.
    #[serde(default)]
    pub too_long: u64,
    /// A calculator's brackets were compared as they stand, before evaluation: a lower bound of what `eval` counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// The best validation so far: full proofs decide, then steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestValidation {
    /// After this step.
    pub step: u64,
    /// Examples seen.
    pub examples: u64,
    /// Share of proofs.
    pub full_proof: f64,
    /// Share of steps.
    pub stepwise: f64,
}

impl BestValidation {
    /// Whether these scores beat it.
    pub fn beaten_by(&self, scores: &Scores) -> bool {
        let (full, step) = (scores.full_proof.share(), scores.stepwise.share());
        full > self.full_proof || full == self.full_proof && step > self.stepwise
    }
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrainingEnd {
    /// Examples, steps or minutes are used up.
    #[serde(rename = "the budget is spent")]
    BudgetSpent,
    /// Early stopping.
    #[serde(rename = "no new best on the validation set")]
    NoNewBest,
}

impl fmt::Display for TrainingEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// `metrics.json` of a run whose training is finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingReport {
    /// Version of polystep.
    pub version: String,
    /// Commit it was built from.
    pub commit: String,
    /// The device.
    pub device: String,
    /// The recipe.
    pub recipe: Recipe,
    /// The seed.
    pub seed: u64,
    /// Trained parameters.
    pub parameters: usize,
    /// Optimiser steps.
    pub steps: u64,
    /// Examples seen.
    pub examples: u64,
    /// Seconds of training, validation included, over all sessions.
    pub seconds: f64,
    /// The step whose weights were kept, and tested.
    pub tested_step: u64,
    /// Whether that is the average of the weights, and not the weights themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub averaged: bool,
    /// Training polynomials drawn.
    pub proofs: u64,
    /// Of these, drawn again because their endpoint belongs to a validation, test or beam set.
    pub rejected: u64,
    /// Training examples longer than the model can take.
    pub skipped: u64,
    /// Why training ended.
    pub ended: TrainingEnd,
    /// The best validation.
    pub valid: Option<BestValidation>,
    /// The test set, measured once; none for a trial of a sweep, which never sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Scores>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_in_full_proofs_are_broken_by_steps() {
        let best = BestValidation { step: 1, examples: 1, full_proof: 0.0, stepwise: 0.25 };
        let scores = |full, step| Scores {
            full_proof: Proportion::counted(full, 10),
            stepwise: Proportion::counted(step, 100),
            by_kind: BTreeMap::new(),
            loss: 1.0,
            too_long: 0,
            raw: false,
        };
        assert!(best.beaten_by(&scores(1, 10)) && best.beaten_by(&scores(0, 26)));
        assert!(!best.beaten_by(&scores(0, 25)));
    }
}

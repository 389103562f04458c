//! Shares with their intervals, and what a finished run reports.

use std::collections::BTreeMap;

use polystep_core::wilson;
use serde::{Deserialize, Serialize};

/// So many of so many, with Wilson's 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// How many are right.
    pub right: u64,
    /// Of how many.
    pub total: u64,
    /// Their quotient; 0 of nothing.
    pub share: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
}

impl Share {
    /// `right` of `total`.
    pub fn new(right: u64, total: u64) -> Self {
        let (lo, hi) = wilson(right, total);
        Share { right, total, share: right as f64 / total.max(1) as f64, lo, hi }
    }
}

/// Teacher-forced exact match on a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Proofs with every step right.
    pub full_proof: Share,
    /// Steps that are right.
    pub stepwise: Share,
    /// Steps that are right, by what was expected.
    pub by_kind: BTreeMap<String, Share>,
    /// Mean loss over the target tokens of the steps that fit into the model.
    pub loss: f64,
    /// Steps longer than the model can take: wrong, not dropped.
    pub too_long: u64,
    /// A calculator's brackets were compared as they stand, before evaluation: a lower bound of what `eval` counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// The best validation so far: full proofs decide, then steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// After this step.
    pub step: u64,
    /// Examples seen.
    pub examples: u64,
    /// Share of proofs.
    pub full_proof: f64,
    /// Share of steps.
    pub stepwise: f64,
}

impl Best {
    /// Whether these scores beat it.
    pub fn beaten_by(&self, scores: &Scores) -> bool {
        let (full, step) = (scores.full_proof.share, scores.stepwise.share);
        full > self.full_proof || full == self.full_proof && step > self.stepwise
    }
}

/// `metrics.json` of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestReport {
    /// Version of polystep.
    pub version: String,
    /// Commit it was built from.
    pub commit: String,
    /// The device.
    pub device: String,
    /// The recipe.
    pub recipe: String,
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
    /// Training polynomials drawn.
    pub proofs: u64,
    /// Of these, drawn again because their endpoint belongs to a validation, test or beam set.
    pub rejected: u64,
    /// Training examples longer than the model can take.
    pub skipped: u64,
    /// Why training ended.
    pub ended: String,
    /// The best validation.
    pub valid: Option<Best>,
    /// The test set, measured once; none for a trial of a sweep, which never sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Scores>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_in_full_proofs_are_broken_by_steps() {
        let best = Best { step: 1, examples: 1, full_proof: 0.0, stepwise: 0.25 };
        let scores = |full, step| Scores {
            full_proof: Share::new(full, 10),
            stepwise: Share::new(step, 100),
            by_kind: BTreeMap::new(),
            loss: 1.0,
            too_long: 0,
            raw: false,
        };
        assert!(best.beaten_by(&scores(1, 10)) && best.beaten_by(&scores(0, 26)));
        assert!(!best.beaten_by(&scores(0, 25)));
    }
}

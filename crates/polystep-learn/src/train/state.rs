//! The state of a run beside its numbers: part of every checkpoint.

use polystep_core::ByClass;
use polystep_core::sample::PATIENCE;
use polystep_engine::Limits;
use polystep_record::BestValidation;
use serde::{Deserialize, Serialize};

use super::{Spent, Window};
use crate::curriculum::FocusState;
use crate::feed::{BLOCK_PROOFS, Counts, Course, Position};

/// No proof has more steps than this, since they are counted in 16 bits.
const MOST_STEPS: u64 = 1 << 16;
/// No count is larger: a billion a second for two years. So nothing that is added to a count of a checkpoint overflows.
const MOST: u64 = 1 << 56;
/// No training took longer, in seconds: three centuries.
const LONGEST: f64 = 1e10;

/// What a run knows beside its numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// Optimiser steps done.
    pub step: u64,
    /// Examples seen.
    pub examples: u64,
    /// The next example.
    pub position: Position,
    /// The seed of data, dropout and first weights.
    pub seed: u64,
    /// Proofs drawn, rejected and too long, up to the position.
    pub counts: Counts,
    /// Seconds of training over all sessions: what a budget in minutes and its schedule are measured by.
    pub seconds: f64,
    /// The best validation.
    pub best: Option<BestValidation>,
    /// Examples seen at the last validation.
    pub validated: u64,
    /// The steps since the last line of the log.
    pub window: Window,
    /// The largest batch, on which the cutting of batches depends.
    #[serde(with = "SavedLimits")]
    pub limits: Limits,
    /// Examples in a batch early and late, if they differ: the limits know the larger one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<[usize; 2]>,
    /// Where its curriculum stands, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// Examples of each class that were trained on, if the run mixes classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ByClass<u64>>,
    /// Where its stream stands, if that follows the errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<FocusState>,
    /// The checksum of the files that it learns from, if it draws nothing itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
}

/// [`Limits`] as they are written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Limits")]
struct SavedLimits {
    sequences: usize,
    src_tokens: usize,
    tgt_tokens: usize,
}

impl RunState {
    /// What the run has spent.
    pub fn spent(&self) -> Spent {
        Spent { steps: self.step, examples: self.examples, seconds: self.seconds }
    }

    /// If no training can have reached this state, why not. A checksum says that a file is as it was written. It does not say that
    /// what was written makes sense.
    pub fn contradiction(&self) -> Option<String> {
        let batch = self.limits.sequences as u64;
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let best = self.best.is_none_or(|best| {
            best.step <= self.step && best.examples <= self.validated && share(best.full_proof) && share(best.stepwise)
        });
        let proofs = match &self.course {
            Some(course) => course.proofs(),
            None => self.position.proofs(BLOCK_PROOFS),
        };
        let Counts { proofs: drawn, rejected, skipped } = self.counts;
        // A proof is left out after so many refusals; more than its steps cannot be skipped.
        let refused = drawn.saturating_mul(PATIENCE + 1);
        let checks = [
            ([self.step, self.examples, drawn, rejected, skipped].into_iter().any(|n| n > MOST), "its counts"),
            (
                self.dataset.is_none() && (rejected > refused || skipped > drawn.saturating_mul(MOST_STEPS)),
                "the proofs that were drawn again or are too long",
            ),
            (
                self.step > self.examples || self.examples > self.step.saturating_mul(batch),
                "its examples and its steps",
            ),
            (self.validated > self.examples || !best, "its best validation and its examples"),
            (!(0.0..=LONGEST).contains(&self.seconds), "its seconds"),
            (!self.window.is_possible(self.step, &self.limits), "the steps since its last line of the log"),
            (
                self.dataset.is_none() && proofs != Some(self.counts.proofs),
                "its data position and the proofs it has drawn",
            ),
            (self.examples > self.counts.proofs.saturating_mul(MOST_STEPS), "its examples and the proofs it has drawn"),
            (
                self.seen
                    .is_some_and(|seen| seen.0.iter().try_fold(0u64, |n, &m| n.checked_add(m)) != Some(self.examples)),
                "its examples of each class",
            ),
            (
                self.focus.as_ref().is_some_and(|focus| !focus.is_possible(self.step, self.examples)),
                "the round of its stream",
            ),
            (self.course.as_ref().is_some_and(|c| !c.is_possible(self.step, self.examples)), "its curriculum"),
        ];
        let wrong = checks.into_iter().find(|(wrong, _)| *wrong);
        wrong.map(|(_, what)| format!("no training can have come to its state: look at {what}"))
    }
}

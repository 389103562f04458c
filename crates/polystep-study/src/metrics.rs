//! `metrics.json`: everything that is known about a run, as one documented document with a stable order of keys.
//!
//! Accuracies and shares are percentages with Wilson's 95 % interval and their counts; `f1`, `auroc` and `auprc` are
//! fractions, as in the paper. What was not measured is null, never 0. Training writes the head of the document, an evaluation
//! adds `keys` and `evaluations` and keeps whatever else stands there.

use std::collections::BTreeMap;

use polystep_core::StepKind;
use serde::{Deserialize, Serialize};

use crate::calibration::{Answer, Calibration, Sure, THRESHOLD, calibrate};
use crate::error::StudyError;
use crate::errors::Errors;
use crate::recursive::Recursive;
use crate::score::Outcome;
use crate::slices::Slices;
use polystep_record::Proportion;
use polystep_record::paper::Keys;

/// The document.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Metrics {
    /// Where the run comes from.
    #[serde(flatten)]
    pub run: Provenance,
    /// What it was trained on: the keys of the paper's tables.
    #[serde(default)]
    pub keys: Keys,
    /// One entry for each test set.
    #[serde(default)]
    pub evaluations: Vec<Evaluation>,
    /// Whatever else the document holds (training's own numbers), kept as it is.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

impl Metrics {
    /// The evaluation on the space that the model was trained on, and its place; else the first.
    pub fn home(&self) -> Option<(usize, &Evaluation)> {
        let own = |e: &Evaluation| e.config == self.keys.config && e.vars == self.keys.vars;
        let at = self.evaluations.iter().position(own).unwrap_or(0);
        Some((at, self.evaluations.get(at)?))
    }
}

/// Where a run comes from. A model from elsewhere may have none of this.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of polystep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Commit it was built from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The device it was trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Trained parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    /// Examples seen: the paper's `train_examples`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<u64>,
    /// Seconds of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// What a model does on one test set. Each part needs its own predictions; what was not predicted is null.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Evaluation {
    /// The space of the test set.
    pub config: String,
    /// Its number of variables.
    pub vars: u32,
    /// Greedy and teacher-forced.
    pub greedy: Option<Greedy>,
    /// The model alone.
    pub recursive: Option<Recursive>,
    /// Beam search, headline scoring: summed log-probability.
    pub beam: Option<BeamScores>,
    /// Beam search, the classic scoring: divided by length, the first five to finish.
    pub beam_lp1: Option<BeamScores>,
}

/// The two ways of being right.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Right {
    /// The expected tokens (calculator: after evaluation).
    pub exact: Proportion,
    /// The right value: the paper's test, which a copied input passes too.
    pub symbolic: Proportion,
}

impl Right {
    fn of(answers: impl Iterator<Item = (bool, bool)> + Clone) -> Option<Right> {
        Some(Right {
            exact: Proportion::of(answers.clone().map(|a| a.0))?,
            symbolic: Proportion::of(answers.map(|a| a.1))?,
        })
    }
}

/// Greedy, teacher-forced.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Greedy {
    /// Proofs with every step right.
    pub full_proof: Right,
    /// Steps that are right.
    pub stepwise: Right,
    /// Steps whose brackets are right before evaluation (calculator only).
    pub raw_exact: Option<Proportion>,
    /// Outputs that cannot be read.
    pub malformed: Proportion,
    /// Steps that are exact, by kind; an exercise's kind carries its digits (`mul9`).
    #[serde(default)]
    pub by_kind: BTreeMap<String, Proportion>,
    /// Errors by kind of step.
    pub errors: Errors,
    /// By terms, coefficients and length.
    pub slices: Slices,
}

/// Beam search, step by step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BeamScores {
    /// The most beams that a step has.
    pub width: u64,
    /// The first beam is right.
    pub top1: Right,
    /// One of the first five beams is right.
    pub any5: Right,
    /// First beams that cannot be read.
    pub malformed: Proportion,
    /// The model's confidence, against `exact`; nothing if the predictions have no probabilities.
    pub calibration: Option<Calibration>,
    /// The paper's columns against `symbolic`.
    pub calibration_symbolic: Option<Sure>,
}

/// How many beams "any of 5" looks at.
pub const ANY: usize = 5;

/// Scores greedy outcomes; nothing if there are none.
pub fn greedy(outcomes: &[Outcome]) -> Result<Option<Greedy>, StudyError> {
    let proofs = proofs(outcomes)?;
    let full = proofs
        .values()
        .map(|steps| (steps.values().all(|o| o.verdict.exact()), steps.values().all(|o| o.verdict.symbolic())));
    let steps = outcomes.iter().map(|o| (o.verdict.exact(), o.verdict.symbolic()));
    let (Some(full_proof), Some(stepwise)) = (Right::of(full), Right::of(steps)) else {
        return Ok(None);
    };
    let Some(malformed) = Proportion::of(outcomes.iter().map(|o| o.verdict.malformed())) else {
        return Ok(None);
    };
    let kinds: Vec<Vec<(StepKind, bool)>> =
        proofs.values().map(|steps| steps.values().map(|o| (o.kind, o.verdict.exact())).collect()).collect();
    let mut by_kind: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for outcome in outcomes {
        by_kind.entry(&outcome.kind_name).or_default().push(outcome.verdict.exact());
    }
    let by_kind = by_kind.into_iter().filter_map(|(kind, right)| Some((kind.to_owned(), Proportion::of(right)?)));
    let sliced: Vec<_> = outcomes.iter().map(|o| (o.features, !o.verdict.exact())).collect();
    Ok(Some(Greedy {
        full_proof,
        stepwise,
        raw_exact: Proportion::of(outcomes.iter().filter_map(|o| o.raw_exact)),
        malformed,
        by_kind: by_kind.collect(),
        errors: Errors::of(kinds.iter().map(Vec::as_slice)),
        slices: Slices::of(&sliced),
    }))
}

/// Scores beam outcomes; the best threshold is chosen on `valid`, the outcomes of beam search on validation steps.
pub fn beam(outcomes: &[Outcome], valid: Option<&[Outcome]>) -> Option<BeamScores> {
    let answers = |outcomes: &[Outcome], right: fn(&Outcome) -> bool| -> Option<Vec<Answer>> {
        let answer =
            |o: &Outcome| o.confidence.map(|c| Answer { right: right(o), margin: c.margin, logprob: c.logprob });
        outcomes.iter().map(answer).collect()
    };
    let valid = valid.and_then(|valid| answers(valid, |o| o.verdict.exact()));
    let exact = answers(outcomes, |o| o.verdict.exact());
    let symbolic = answers(outcomes, |o| o.verdict.symbolic());
    Some(BeamScores {
        width: outcomes.iter().map(|o| o.beams as u64).max().unwrap_or(0),
        top1: Right::of(outcomes.iter().map(|o| (o.verdict.exact(), o.verdict.symbolic())))?,
        any5: Right::of(outcomes.iter().map(|o| (o.any_exact, o.any_symbolic)))?,
        malformed: Proportion::of(outcomes.iter().map(|o| o.verdict.malformed()))?,
        calibration: exact.map(|answers| calibrate(&answers, valid.as_deref())),
        calibration_symbolic: symbolic.map(|answers| Sure::at(THRESHOLD, &answers)),
    })
}

/// Which proofs are solved: every step exact.
pub fn solved(outcomes: &[Outcome]) -> Result<BTreeMap<&str, bool>, StudyError> {
    let proofs = proofs(outcomes)?;
    Ok(proofs.into_iter().map(|(proof, steps)| (proof, steps.values().all(|o| o.verdict.exact()))).collect())
}

/// Outcomes by proof and step. A step may stand anywhere in the file, but once, and none may be missing.
fn proofs(outcomes: &[Outcome]) -> Result<BTreeMap<&str, BTreeMap<usize, &Outcome>>, StudyError> {
    let mut proofs: BTreeMap<&str, BTreeMap<usize, &Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        if proofs.entry(&outcome.proof).or_default().insert(outcome.step, outcome).is_some() {
            return Err(StudyError::Twice { proof: outcome.proof.clone(), step: outcome.step });
        }
    }
    for (proof, steps) in &proofs {
        if let Some((missing, (last, _))) = (0..).zip(steps).find(|(i, (step, _))| i != *step) {
            return Err(StudyError::Gap { proof: (*proof).to_owned(), last: *last, missing });
        }
    }
    Ok(proofs)
}

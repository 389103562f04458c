//! `metrics.json`: everything that is known about a run, in one document with a fixed order of keys.
//!
//! Accuracies and shares are percentages with Wilson's 95 % interval and their counts; `f1`, `auroc` and `auprc` are
//! fractions, as in the paper. What was not measured is null, never 0. Training writes the head of the document
//! ([`TrainingReport`](crate::TrainingReport)). An evaluation adds `keys` and `evaluations` and keeps whatever else is there.

use std::collections::BTreeMap;
use std::fmt::Display;

use polystep_core::{StepClass, StepKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::RecordError;
use crate::folder::{RunFolder, read_text};
use crate::keys::Keys;
use crate::proportion::{Proportion, fraction, six, six_or_null};
use crate::recursion::Stop;
use crate::test_set::TestSet;
use crate::training::Scores;

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
    /// One entry for each long test set. Apart from the others, because the paper's tables and every comparison take the 1000
    /// proofs on which all models are tested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long: Vec<Evaluation>,
    /// Whatever else the document holds (training's own numbers), kept as it is.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

impl RunFolder {
    /// The run's `metrics.json`; none if it is not there. A figure that does not follow from its counts is an error that names
    /// its key.
    pub fn read_metrics(&self) -> Result<Option<Metrics>, RecordError> {
        let path = self.metrics();
        let parse = |text: String| {
            let wrong = || wrong_figure(&serde_json::from_str(&text).unwrap_or_default(), String::new());
            let parsed = serde_json::from_str::<Metrics>(&text).map_err(|e| wrong().unwrap_or_else(|| e.to_string()));
            let checked = parsed.and_then(|metrics| metrics.check_training().map(|()| metrics));
            checked.map_err(|why| RecordError::document(&path, why))
        };
        read_text(&path)?.map(parse).transpose()
    }
}

/// The first figure of a document that does not follow from its counts: its key, and why not.
fn wrong_figure(value: &Value, key: String) -> Option<String> {
    let inner = |name: &dyn Display, value| {
        wrong_figure(value, format!("{key}{}{name}", if key.is_empty() { "" } else { "." }))
    };
    let figure = match value {
        Value::Object(map) if map.contains_key("percent") => Proportion::deserialize(value).map(drop),
        Value::Object(map) if map.contains_key("share") => fraction::deserialize(value).map(drop),
        Value::Object(map) => return map.iter().find_map(|(name, value)| inner(name, value)),
        Value::Array(all) => return all.iter().enumerate().find_map(|(i, value)| inner(&i, value)),
        _ => return None,
    };
    figure.err().map(|why| format!("{key}: {why}"))
}

impl Metrics {
    /// Training's numbers are kept as they are, so their figures are not checked by reading them.
    fn check_training(&self) -> Result<(), String> {
        self.other.iter().find_map(|(key, value)| wrong_figure(value, key.clone())).map_or(Ok(()), Err)
    }

    /// The evaluation on the space that the model was trained on, and its place; else the first.
    pub fn home(&self) -> Option<(usize, &Evaluation)> {
        let at = self.evaluations.iter().position(|e| e.set() == self.keys.home()).unwrap_or(0);
        Some((at, self.evaluations.get(at)?))
    }

    /// What training measured on the test set when it ended.
    pub fn test(&self) -> Option<Scores> {
        Scores::deserialize(self.other.get("test")?).ok()
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
    /// The caps of its space, if that is not one of the paper's: two spaces of one's own may have one key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Whether training was not guarded against this set, or may not have been.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unguarded: bool,
    /// Whether this is the long test set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub long: bool,
    /// Greedy and teacher-forced.
    pub greedy: Option<Greedy>,
    /// The model alone.
    pub recursive: Option<Recursive>,
    /// Model and checker together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assisted: Option<Assisted>,
    /// Beam search, headline scoring: summed log-probability.
    pub beam: Option<BeamScores>,
    /// Beam search, the classic scoring: divided by length, the first five to finish.
    pub beam_lp1: Option<BeamScores>,
}

impl Evaluation {
    /// The test set.
    pub fn set(&self) -> TestSet {
        TestSet::new(&self.config, self.vars)
    }

    /// What a reader must know before he compares the numbers of this set with others.
    pub fn caveat(&self) -> Option<String> {
        let why = "it may have met some of these polynomials";
        let (long, advice) =
            if self.long { ("the long set of ", " (data.guard = \"long\" keeps them away)") } else { ("", "") };
        self.unguarded.then(|| format!("Training was not guarded against {long}{}: {why}{advice}.", self.set()))
    }
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
    /// Counts answers: whether each is exact, and whether it has the right value.
    pub fn of(answers: impl Iterator<Item = (bool, bool)> + Clone) -> Option<Right> {
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
    /// Steps that are exact, by class; evaluations of earlier versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<StepClass, Proportion>,
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

/// Errors of one kind of step.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct KindErrors {
    /// The kind that was expected.
    pub kind: StepKind,
    /// Wrong steps of this kind among all steps of this kind: how hard it is.
    pub rate: Proportion,
    /// Wrong proofs whose first wrong step is of this kind, among wrong proofs; nothing if every proof is right.
    pub first: Option<Proportion>,
    /// Wrong steps of this kind among wrong steps; nothing if every step is right.
    pub total: Option<Proportion>,
}

/// Errors by kind of step, for the kinds that occur, in the order of a proof.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Errors {
    /// Proofs with a wrong step.
    pub wrong_proofs: u64,
    /// Wrong steps.
    pub wrong_steps: u64,
    /// By kind.
    pub kinds: Vec<KindErrors>,
}

impl Errors {
    /// The errors of one kind, if it occurs.
    pub fn of_kind(&self, kind: StepKind) -> Option<&KindErrors> {
        self.kinds.iter().find(|k| k.kind == kind)
    }
}

/// The examples between two values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Slice {
    /// The smallest value.
    pub from: u64,
    /// The largest value; nothing for "and more".
    pub to: Option<u64>,
    /// How many examples are wrong.
    pub wrong: Proportion,
}

/// Error rates, sliced three ways.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Slices {
    /// By the terms of the input.
    pub terms: Vec<Slice>,
    /// By the largest coefficient of the target.
    pub coefficient: Vec<Slice>,
    /// By the tokens of the input.
    pub length: Vec<Slice>,
}

/// What came of the recursive proofs of a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recursive {
    /// Proofs whose every state is the expected one.
    pub recursive_exact: Proportion,
    /// Proofs that stop at the right endpoint.
    pub recursive_end: Proportion,
    /// How the proofs stopped, for the reasons that occur.
    pub stops: Vec<Stopped>,
}

impl Recursive {
    /// Proofs with a wrong state that end at the right endpoint nevertheless, in percent of all proofs.
    pub fn recovered(&self) -> Option<f64> {
        let recovered = self.recursive_end.count.checked_sub(self.recursive_exact.count)?;
        Some(100.0 * recovered as f64 / self.recursive_end.of.max(1) as f64)
    }
}

/// Proofs that stopped for one reason.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stopped {
    /// The reason.
    pub stop: Stop,
    /// How many.
    pub proofs: Proportion,
}

/// What model and checker complete together, on the test proofs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assisted {
    /// Proofs without an exact step, if the checker looks at no beam, at one, at two and so on.
    pub completed: Vec<Completed>,
    /// Whose the steps are.
    pub steps: AssistedSteps,
}

/// Proofs without an exact step.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Completed {
    /// How many beams the checker looks at; with none it takes greedy answers only.
    pub beams: u64,
    /// How many proofs.
    pub proofs: Proportion,
}

/// Steps of assisted proofs by their author.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct AssistedSteps {
    /// Greedy answers.
    pub model: Proportion,
    /// Beams.
    pub beams: Proportion,
    /// The checker's.
    pub exact: Proportion,
}

/// The paper's four columns, at one threshold.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sure {
    /// An answer is sure if its margin is greater.
    #[serde(serialize_with = "six")]
    pub threshold: f64,
    /// Share of answers that are sure.
    pub sure_rate: Option<Proportion>,
    /// Share of sure answers that are right; nothing if none is sure.
    pub precision: Option<Proportion>,
    /// Share of right answers that are sure; nothing if none is right.
    pub recall: Option<Proportion>,
    /// Harmonic mean of precision and recall, a fraction.
    #[serde(serialize_with = "six_or_null")]
    pub f1: Option<f64>,
}

/// A threshold chosen on validation, and what it gives on test.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BestThreshold {
    /// How many validation steps it was chosen on.
    pub valid_steps: u64,
    /// The best F1, on validation.
    #[serde(serialize_with = "six")]
    pub valid_f1: f64,
    /// The columns on the test answers at this threshold.
    pub test: Sure,
}

/// A step of the precision-recall curve, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Answers with at least this margin are accepted; nothing stands for +∞.
    #[serde(serialize_with = "six_or_null")]
    pub margin: Option<f64>,
    /// Precision, in percent.
    #[serde(serialize_with = "six")]
    pub precision: f64,
    /// Recall, in percent.
    #[serde(serialize_with = "six")]
    pub recall: f64,
}

/// Answers whose probability lies in one tenth of the unit interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Lower end of p₁, in percent.
    #[serde(serialize_with = "six")]
    pub from: f64,
    /// Upper end of p₁, in percent.
    #[serde(serialize_with = "six")]
    pub to: f64,
    /// Mean p₁ of the answers, in percent.
    #[serde(serialize_with = "six")]
    pub confidence: f64,
    /// How many of them are right.
    pub right: Proportion,
}

/// Everything about the model's confidence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// The paper's columns, at its threshold.
    #[serde(flatten)]
    pub sure: Sure,
    /// Area under the ROC curve of the margin, right answers positive; nothing unless both kinds occur.
    #[serde(serialize_with = "six_or_null")]
    pub auroc: Option<f64>,
    /// Average precision of the margin, right answers positive.
    #[serde(serialize_with = "six_or_null")]
    pub auprc: Option<f64>,
    /// The threshold with the best F1 on validation; nothing without validation records.
    pub best: Option<BestThreshold>,
    /// Mean distance between p₁ and the share of right answers, over the bins, weighted; in percent.
    #[serde(serialize_with = "six_or_null")]
    pub expected_error: Option<f64>,
    /// Probability of the answer against how often it is right.
    pub reliability: Vec<ReliabilityBin>,
    /// The precision-recall curve, at most 100 points.
    pub curve: Vec<CurvePoint>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_does_not_follow_from_its_counts_is_refused_by_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::new(folder.path());
        let read = |text: &str| {
            std::fs::write(run.metrics(), text).unwrap();
            run.read_metrics().map_err(|e| e.to_string())
        };
        let forged = r#"{"evaluations":[{"config":"a","vars":1,"recursive":{"recursive_exact":
            {"percent":99.99,"lo":0.0,"hi":65.8,"count":0,"of":2},"recursive_end":null,"stops":[]}}]}"#;
        let error = read(forged).unwrap_err();
        assert!(error.contains("metrics.json cannot be understood: evaluations.0.recursive.recursive_exact: percent is 99.99 %, but 0 of 2 gives 0.000000 %"), "{error}");
        let test = |share: f64| {
            let half = r#"{"right":1,"total":2,"share":0.5,"lo":0.09453120573423074,"hi":0.9054687942657693}"#;
            let full = half.replace("0.5", &share.to_string());
            format!(r#"{{"test":{{"full_proof":{full},"stepwise":{half},"by_kind":{{}},"loss":1.0,"too_long":0}}}}"#)
        };
        let metrics = read(&test(0.5)).unwrap().unwrap();
        assert_eq!(metrics.test().unwrap().full_proof, Proportion::counted(1, 2));
        assert!(read(&test(0.75)).unwrap_err().contains("test.full_proof: share is 75 %, but 1 of 2"));
    }
}

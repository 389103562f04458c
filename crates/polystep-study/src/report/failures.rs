//! The list of failures: input, prediction, target, what differs, and the checker's sentence.

use polystep_core::Granularity;
use serde::Serialize;

use super::diff::{Piece, diff};
use super::sentence::explain;
use crate::predictions::Prediction;
use crate::score::{Outcome, Scoring};

/// How many failures a page holds; it should open quickly on a laptop.
pub const SHOWN: usize = 400;

/// One wrong step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Failure {
    /// The id of the proof.
    pub proof: String,
    /// Which step of it, from 1 as people count.
    pub step: usize,
    /// The kind that was expected.
    pub kind: &'static str,
    /// `wrong`, `same` (the right value, but not the expected step), `malformed` or `none`.
    pub class: &'static str,
    /// The model's probability of its answer, in percent.
    pub confidence: Option<String>,
    /// What the model read.
    pub input: String,
    /// What it wrote, cut where it differs.
    pub prediction: Vec<Piece>,
    /// What it was to write, cut where it differs.
    pub target: Vec<Piece>,
    /// What is wrong.
    pub sentence: String,
}

/// The failures among graded predictions in the order of their file, at most [`SHOWN`], and how many there are.
pub fn failures(
    graded: &[(Prediction, Outcome)],
    scoring: &Scoring,
    granularity: Granularity,
) -> (Vec<Failure>, usize) {
    let wrong: Vec<_> = graded
        .iter()
        .filter(|(_, outcome)| !outcome.verdict.exact)
        .collect();
    let shown = wrong
        .iter()
        .take(SHOWN)
        .map(|(p, o)| failure(p, o, scoring, granularity))
        .collect();
    (shown, wrong.len())
}

fn failure(
    prediction: &Prediction,
    outcome: &Outcome,
    scoring: &Scoring,
    granularity: Granularity,
) -> Failure {
    let answer = prediction.answers().next();
    let output = answer.map(|a| a.output.as_str());
    let (ours, target) = diff(output.unwrap_or_default(), &prediction.target);
    let class = match (answer, outcome.verdict) {
        (None, _) => "none",
        (_, v) if v.malformed => "malformed",
        (_, v) if v.symbolic => "same",
        _ => "wrong",
    };
    Failure {
        proof: prediction.proof.clone(),
        step: prediction.step + 1,
        kind: prediction.kind.name(),
        class,
        confidence: answer
            .and_then(|a| a.logprob)
            .map(|l| format!("{:.1}", 100.0 * l.exp())),
        input: prediction.input.clone(),
        prediction: ours,
        target,
        sentence: explain(prediction, output, scoring, granularity),
    }
}

//! A model's proof as one JSON object: what `polystep prove --json` prints.
//!
//! Expressions are in the variables of the language; `names` has the user's.

use std::collections::BTreeMap;

use polystep_core::Verdict;
use polystep_record::Stop;
use serde::{Serialize, Serializer};

use crate::decode::{Author, Hypothesis};

/// One line of the proof, with what the model answered there.
#[derive(Clone, Debug, Serialize)]
pub struct ModelStep {
    /// What the model was asked.
    pub input: String,
    /// What the model wrote greedily.
    pub output: String,
    /// The line with its brackets evaluated, where it has any: the next input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Of the greedy output.
    pub logprob: f32,
    /// ln p₁ − ln p₂ of the two best beams; none if only one finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f32>,
    /// How the greedy output turned out.
    #[serde(serialize_with = "by_name")]
    pub verdict: Verdict,
    /// Why.
    pub sentence: String,
    /// The beams with their log-probabilities, best first, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beams: Vec<(String, f32)>,
    /// The line of the proof.
    pub line: String,
    /// Whose it is.
    #[serde(serialize_with = "by_name")]
    pub author: Author,
    /// How probable it was, if it is the model's.
    pub probability: Option<f32>,
}

/// How many steps are whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct StepsBy {
    /// The model's greedy answers.
    pub model: usize,
    /// Its beams.
    pub beams: usize,
    /// The checker's.
    pub exact: usize,
}

/// The whole.
#[derive(Clone, Debug, Serialize)]
pub struct ModelProof {
    /// Where it starts.
    pub start: String,
    /// What the model was trained on, for people.
    pub trained_on: String,
    /// Why the start lies outside of that, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    /// Its lines.
    pub steps: Vec<ModelStep>,
    /// Why it stopped.
    pub stop: Stop,
    /// Whether the model, greedily, writes every line of the exact proof.
    pub right: bool,
    /// The name of the model.
    pub model: String,
    /// Why it was chosen.
    pub chosen: String,
    /// The start in the user's names, if it differs from what was typed in more than spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_as: Option<String>,
    /// The user's names of the variables.
    pub names: BTreeMap<String, String>,
    /// Whether the model worked without the checker.
    pub alone: bool,
    /// The exact endpoint.
    pub endpoint: String,
    /// Whose the steps are.
    pub steps_by: StepsBy,
    /// Whether the model's own answer is right; only if it works alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_right: Option<bool>,
}

impl ModelProof {
    /// Adds a line.
    pub(super) fn push(&mut self, step: ModelStep) -> &ModelStep {
        match step.author {
            Author::Model => self.steps_by.model += 1,
            Author::Beam(_) => self.steps_by.beams += 1,
            Author::Exact => self.steps_by.exact += 1,
        }
        self.right &= step.verdict.exact();
        self.steps.push(step);
        &self.steps[self.steps.len() - 1]
    }
}

/// How far the best beam is ahead of the second.
pub(super) fn margin(beams: &[Hypothesis]) -> Option<f32> {
    match beams {
        [a, b, ..] => Some(a.logprob - b.logprob),
        _ => None,
    }
}

/// Writes the name that people read.
fn by_name<T: ToString, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&value.to_string())
}

//! What a model wrote for the steps of a proof: one JSON object per line of a prediction file.
//!
//! A model from elsewhere may know less than ours. It may leave out `logprob`; then there is no calibration. It may say that
//! an answer was cut at the length limit (`"finished": false`); then the answer does not count.

use polystep_core::StepKind;
use serde::{Deserialize, Serialize};

/// What a model wrote for one step, best first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Prediction {
    /// The id of the proof.
    pub proof: String,
    /// Which step of it, from 0.
    pub step: usize,
    /// The kind of step that was expected.
    pub kind: StepKind,
    /// What the model read.
    pub input: String,
    /// What it was to write.
    pub target: String,
    /// What it wrote; empty if it could not take the input.
    pub beams: Vec<Beam>,
}

/// One answer of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Beam {
    /// The text.
    pub output: String,
    /// The sum of the log-probabilities of its tokens, `</s>` included, if the model tells it.
    #[serde(default)]
    pub logprob: Option<f64>,
    /// Whether it came to its end.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub finished: bool,
}

fn yes() -> bool {
    true
}

fn is_true(finished: &bool) -> bool {
    *finished
}

impl Beam {
    /// An answer that came to its end.
    pub fn finished(output: String, logprob: f64) -> Beam {
        Beam { output, logprob: logprob.is_finite().then_some(logprob), finished: true }
    }
}

impl Prediction {
    /// The answers that came to their end, best first.
    pub fn answers(&self) -> impl Iterator<Item = &Beam> {
        self.beams.iter().filter(|beam| beam.finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_one_line_of_json() {
        let line = r#"{"proof":"a","step":0,"kind":"sumstep","input":"(1)+(2)","target":"3","beams":[{"output":"3","logprob":-0.5}]}"#;
        let prediction: Prediction = serde_json::from_str(line).unwrap();
        assert_eq!(prediction.beams, [Beam::finished("3".into(), -0.5)]);
        assert_eq!(serde_json::to_string(&prediction).unwrap(), line);
    }

    #[test]
    fn models_from_elsewhere_may_know_less() {
        let text = r#"{"proof":"a","step":0,"kind":"add","input":"1+2","target":"3","beams":[{"output":"3"},{"output":"4","logprob":null,"finished":false}]}"#;
        let prediction: Prediction = serde_json::from_str(text).unwrap();
        assert_eq!(prediction.answers().count(), 1);
        assert_eq!(prediction.beams[0].logprob, None);
    }
}

//! What `polystep answer` reads and writes: one JSON object per line. An answer is the question with what the model wrote.
//!
//! The fields of a question that are not ours are kept. So an answer to a step that has `proof`, `step`, `kind` and `target` is a
//! [prediction](crate::Prediction), which `polystep eval --predictions` scores.

use polystep_core::Verdict;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::prediction::Beam;
use crate::recursion::Stop;

/// An input for a model: an object with the field `input`, or the input alone as a JSON string.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Question {
    /// Fields that are kept.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
    /// What the model reads.
    pub input: String,
}

impl<'de> Deserialize<'de> for Question {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Question, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(input) => Ok(Question { rest: Map::new(), input }),
            Value::Object(mut rest) => match rest.remove("input") {
                Some(Value::String(input)) => Ok(Question { rest, input }),
                Some(other) => Err(de::Error::custom(format!("`input` is {other}, not a text"))),
                None => Err(de::Error::custom("it has no field `input`")),
            },
            other => Err(de::Error::custom(format!("{other} is neither an object nor a text"))),
        }
    }
}

/// A question with what the model wrote.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AnswerRecord {
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// What the model wrote.
    #[serde(flatten)]
    pub written: WrittenAnswer,
}

/// What the model wrote.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum WrittenAnswer {
    /// Its answers to one step, best first; none if the input is too long for it.
    Step {
        /// The answers.
        beams: Vec<Beam>,
        /// The checker's verdict on the first one; none if the input asks for no step.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "named")]
        verdict: Option<Verdict>,
    },
    /// A proof that it wrote alone.
    Alone {
        /// Its states after the input.
        states: Vec<String>,
        /// Why it stopped.
        stop: Stop,
        /// Whether it ends in the exact endpoint.
        right: bool,
    },
    /// A proof that model and checker wrote together; it is always right.
    Checked {
        /// Its steps.
        steps: Vec<CheckedStep>,
    },
}

/// A step of a proof that model and checker wrote together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CheckedStep {
    /// What was written.
    pub output: String,
    /// By whom: `model`, `beam 2` (that beam of the model) or `exact` (the checker).
    pub author: String,
    /// Of the model's answer that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f64>,
}

fn named<S: Serializer>(verdict: &Option<Verdict>, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(verdict.map_or("", Verdict::name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_question_and_more() {
        let question = |text: &str| serde_json::from_str::<Question>(text).map_err(|e| e.to_string());
        let asked = question(r#"{"proof":"a","step":0,"input":"(1)+(2)"}"#).unwrap();
        let beams = vec![Beam::finished("3".into(), -0.5)];
        let answer =
            AnswerRecord { question: asked, written: WrittenAnswer::Step { beams, verdict: Some(Verdict::Exact) } };
        let line =
            r#"{"proof":"a","step":0,"input":"(1)+(2)","beams":[{"output":"3","logprob":-0.5}],"verdict":"exact"}"#;
        assert_eq!(serde_json::to_string(&answer).unwrap(), line);
        assert_eq!(question(r#""(1)+(2)""#).unwrap().input, "(1)+(2)");
        assert!(question(r#"{"start":"(1)"}"#).unwrap_err().starts_with("it has no field `input`"));
        assert!(question("7").unwrap_err().starts_with("7 is neither an object nor a text"));
    }
}

//! What a model may be trained on: a pair of an input and a target, or a proof with several such steps.
//!
//! Every line that `polystep generate` writes is one of the two. Records from elsewhere need the fields `input` and `target`, or
//! `steps` with them; other fields are ignored.

use serde::Deserialize;

/// An input and what a model is to write.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct ExamplePair {
    /// What the model reads.
    pub input: String,
    /// What it is to write.
    pub target: String,
}

/// One record of training data.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct ExampleRecord {
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    steps: Option<Vec<ExamplePair>>,
}

impl ExampleRecord {
    /// Its pairs, or what it lacks.
    pub fn pairs(self) -> Result<Vec<ExamplePair>, String> {
        match self {
            ExampleRecord { steps: Some(steps), .. } => Ok(steps),
            ExampleRecord { input: Some(input), target: Some(target), .. } => Ok(vec![ExamplePair { input, target }]),
            _ => Err("it has neither `input` and `target` nor `steps`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_and_pairs_are_read_and_the_rest_is_ignored() {
        let read = |text: &str| serde_json::from_str::<ExampleRecord>(text).unwrap().pairs();
        let pair = ExamplePair { input: "(1)+(2)".into(), target: "3".into() };
        let pairs = Ok(vec![pair]);
        assert_eq!(read(r#"{"input":"(1)+(2)","target":"3","kind":"sumstep","mine":1}"#), pairs);
        assert_eq!(read(r#"{"id":"a","steps":[{"kind":"sumstep","input":"(1)+(2)","target":"3"}]}"#), pairs);
        assert!(read(r#"{"input":"(1)+(2)"}"#).is_err());
    }
}

//! Proofs that a model and the checker write together: who wrote each step.
//!
//! The model is asked greedily. If its answer is not the expected step, the checker looks for that step among the beams of a
//! search, and if it is not there, takes the exact one. So the proof is always right, and what counts is how much of it is the
//! model's.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who wrote a step of an assisted proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The model, greedily.
    Model,
    /// The model, as this beam of the search, from 1.
    Beam(usize),
    /// The checker: neither the greedy answer nor a beam was the expected step.
    Exact,
}

impl Author {
    /// How many beams were looked at: 0 if the greedy answer was taken, none if no beam was enough.
    pub fn beams(self) -> Option<usize> {
        match self {
            Author::Model => Some(0),
            Author::Beam(n) => Some(n),
            Author::Exact => None,
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Author::Model => f.pad("model"),
            Author::Beam(n) => f.pad(&format!("beam {n}")),
            Author::Exact => f.pad("exact"),
        }
    }
}

/// One assisted proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AssistedRecord {
    /// The id of the proof.
    pub proof: String,
    /// Who wrote its steps.
    pub authors: Vec<Author>,
}

impl AssistedRecord {
    /// How many beams the proof needed; none if it has an exact step.
    pub fn beams(&self) -> Option<usize> {
        self.authors.iter().try_fold(0, |most, author| Some(author.beams()?.max(most)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_the_documented_one() {
        let json = r#"{"proof":"p","authors":["model",{"beam":2},"exact"]}"#;
        let record: AssistedRecord = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
        assert_eq!(record.beams(), None);
        assert_eq!(AssistedRecord { authors: record.authors[..2].to_vec(), ..record }.beams(), Some(2));
    }
}

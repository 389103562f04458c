//! Proofs that a model writes alone: its own output is its next input, until it stops.
//!
//! Teacher forcing forgives: after a wrong step the model is put back on the path. Here it is not put back. A proof can be
//! right in two ways: every state is the expected one, or only the endpoint is.

use polystep_core::token;
use serde::{Deserialize, Serialize};

/// Why a recursive proof stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// At a bare polynomial (annotated: at END).
    End,
    /// At an output that cannot be read.
    Malformed,
    /// At a state seen before.
    Loop,
    /// At the limit of steps.
    #[default]
    Limit,
}

impl Stop {
    /// All reasons.
    pub const ALL: [Stop; 4] = [Stop::End, Stop::Malformed, Stop::Loop, Stop::Limit];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Stop::End => "reached an endpoint",
            Stop::Malformed => "wrote something unreadable",
            Stop::Loop => "came back to an earlier state",
            Stop::Limit => "ran out of steps",
        }
    }
}

/// One recursive proof. Both lists begin after the start; a calculator's states are evaluated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecursiveRecord {
    /// The id of the proof.
    pub proof: String,
    /// What the model wrote, step by step.
    pub states: Vec<String>,
    /// What it was to write.
    pub expected: Vec<String>,
    /// Why it stopped.
    pub stop: Stop,
}

impl RecursiveRecord {
    /// Every state is the expected one.
    pub fn is_exact(&self) -> bool {
        self.states.len() == self.expected.len() && self.right_steps() == self.expected.len()
    }

    /// It stopped at the right endpoint, whatever the way.
    pub fn is_right_end(&self) -> bool {
        let last = (self.states.last(), self.expected.last());
        self.stop == Stop::End && last.0.map(|s| tokens(s)) == last.1.map(|s| tokens(s))
    }

    /// How many states are the expected ones before the first that is not.
    pub fn right_steps(&self) -> usize {
        self.states.iter().zip(&self.expected).take_while(|(a, b)| tokens(a) == tokens(b)).count()
    }
}

/// The tokens, or the text if it has none: two unreadable texts are equal only if they are the same.
fn tokens(text: &str) -> Result<Vec<u8>, &str> {
    token::encode(text).map_err(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_the_documented_one() {
        let json = r#"{"proof":"p","states":["7"],"expected":["7"],"stop":"end"}"#;
        let record: RecursiveRecord = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
    }
}

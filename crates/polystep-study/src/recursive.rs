//! Proofs that a model writes alone: its own output is its next input, until it stops.
//!
//! Teacher forcing forgives: after a wrong step the model is put back on the path. Here it is not, and both ways of being
//! right are counted: `recursive_exact` if every state is the expected one, `recursive_end` if only the endpoint is.

use polystep_core::token;
use serde::{Deserialize, Serialize};

use crate::error::StudyError;
use crate::interval::Proportion;

/// Why a recursive proof stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// At a bare polynomial (annotated: at END).
    End,
    /// At an output that cannot be read.
    Malformed,
    /// At a state seen before.
    Loop,
    /// At the limit of steps.
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

/// Proofs that stopped for one reason.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stopped {
    /// The reason.
    pub stop: Stop,
    /// How many.
    pub proofs: Proportion,
}

/// Scores recursive proofs; nothing if there are none.
pub fn score(
    records: impl IntoIterator<Item = Result<RecursiveRecord, StudyError>>,
) -> Result<Option<Recursive>, StudyError> {
    let (mut exact, mut end, mut of) = (0, 0, 0);
    let mut stops = [0u64; Stop::ALL.len()];
    for record in records {
        let record = record?;
        exact += u64::from(record.is_exact());
        end += u64::from(record.is_right_end());
        of += 1;
        for (count, stop) in stops.iter_mut().zip(Stop::ALL) {
            *count += u64::from(record.stop == stop);
        }
    }
    let share = |count| Proportion::new(count, of);
    let (Some(recursive_exact), Some(recursive_end)) = (share(exact), share(end)) else {
        return Ok(None);
    };
    let stopped = |(stop, count)| share(count).filter(|p| p.count > 0).map(|proofs| Stopped { stop, proofs });
    let stops = Stop::ALL.into_iter().zip(stops).filter_map(stopped).collect();
    Ok(Some(Recursive { recursive_exact, recursive_end, stops }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(states: &[&str], stop: Stop) -> RecursiveRecord {
        let own = |s: &[&str]| s.iter().map(|s| (*s).to_owned()).collect();
        RecursiveRecord {
            proof: "p".into(),
            states: own(states),
            expected: own(&["(2)*(3)+(1)", "(6)+(1)", "7"]),
            stop,
        }
    }

    #[test]
    fn two_ways_of_being_right() {
        let exact = record(&["(2)*(3)+(1)", "(6)+(1)", "7"], Stop::End);
        let detour = record(&["(2)*(3)+(1)", "7"], Stop::End);
        let wrong = record(&["(2)*(3)+(1)", "(5)+(1)", "6"], Stop::End);
        let broken = record(&["(2)*(3)+(1)", "(6"], Stop::Malformed);
        assert_eq!([&exact, &detour, &wrong, &broken].map(|r| r.is_exact()), [true, false, false, false]);
        assert_eq!([&exact, &detour, &wrong, &broken].map(|r| r.is_right_end()), [true, true, false, false]);
        assert_eq!(wrong.right_steps(), 1);
        let all = score([exact, detour, wrong, broken].map(Ok)).unwrap().unwrap();
        assert_eq!((all.recursive_exact.percent, all.recursive_end.percent), (25.0, 50.0));
        assert_eq!(
            all.stops.iter().map(|s| (s.stop, s.proofs.count)).collect::<Vec<_>>(),
            [(Stop::End, 3), (Stop::Malformed, 1)]
        );
    }

    #[test]
    fn too_long_a_proof_is_not_exact_even_if_it_begins_right() {
        let mut long = record(&["(2)*(3)+(1)", "(6)+(1)", "7", "7"], Stop::Loop);
        assert!(!long.is_exact() && !long.is_right_end());
        long.states.pop();
        assert!(long.is_exact());
        assert_eq!(score([]).unwrap(), None);
    }

    #[test]
    fn the_record_is_the_documented_one() {
        let json = r#"{"proof":"p","states":["7"],"expected":["7"],"stop":"end"}"#;
        let record: RecursiveRecord = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
    }
}

//! Predictions as they come from a file: one JSON object per line, read one at a time.
//!
//! The records are those of `polystep_core::record`, read generously: a model from elsewhere may not know the probability of
//! its answers (`logprob` left out or null; then there is no calibration), and may say that an answer was cut at the length
//! limit (`"finished": false`; then it is no answer).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use polystep_core::StepKind;
use polystep_core::record::PredictionRecord;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::StudyError;

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

/// One answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Beam {
    /// The text.
    pub output: String,
    /// The sum of the log-probabilities of its tokens, if the model tells.
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

impl Prediction {
    /// The answers that came to their end, best first.
    pub fn answers(&self) -> impl Iterator<Item = &Beam> {
        self.beams.iter().filter(|beam| beam.finished)
    }
}

impl From<PredictionRecord> for Prediction {
    fn from(record: PredictionRecord) -> Prediction {
        let PredictionRecord { proof, step, kind, input, target, beams } = record;
        let beam = |b: polystep_core::record::Beam| Beam {
            output: b.output,
            logprob: b.logprob.is_finite().then_some(b.logprob),
            finished: true,
        };
        Prediction { proof, step, kind, input, target, beams: beams.into_iter().map(beam).collect() }
    }
}

/// The records of a JSONL file, one at a time; a bad one is a sentence with the file and the line.
pub struct Records<T, R = BufReader<File>> {
    reader: R,
    path: PathBuf,
    line: usize,
    text: String,
    kind: PhantomData<T>,
}

impl<T> Records<T> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Records<T>, StudyError> {
        let file = File::open(path).map_err(|e| StudyError::read(path, e))?;
        Ok(Records::new(BufReader::new(file), path))
    }
}

impl<T, R: BufRead> Records<T, R> {
    /// Reads from anywhere; `path` is what errors call it.
    pub fn new(reader: R, path: &Path) -> Records<T, R> {
        Records { reader, path: path.to_path_buf(), line: 0, text: String::new(), kind: PhantomData }
    }
}

impl<T: DeserializeOwned, R: BufRead> Iterator for Records<T, R> {
    type Item = Result<T, StudyError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.text.clear();
            self.line += 1;
            match self.reader.read_line(&mut self.text) {
                Ok(0) => return None,
                Ok(_) if self.text.trim().is_empty() => continue,
                Ok(_) => break,
                Err(e) => return Some(Err(StudyError::read(&self.path, e))),
            }
        }
        Some(serde_json::from_str(&self.text).map_err(|e| {
            // serde_json counts lines too, within this one.
            let why = e.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            let column = if e.column() > 0 { format!(" (column {})", e.column()) } else { String::new() };
            StudyError::Record { path: self.path.clone(), line: self.line, why: format!("{why}{column}") }
        }))
    }
}

/// The predictions of a file.
pub fn open(path: &Path) -> Result<Records<Prediction>, StudyError> {
    Records::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<Prediction, StudyError>> {
        Records::new(text.as_bytes(), Path::new("predictions/test.jsonl")).collect()
    }

    const GOOD: &str = r#"{"proof":"a","step":0,"kind":"sumstep","input":"(1)+(2)","target":"3","beams":[{"output":"3","logprob":-0.5}]}"#;

    #[test]
    fn the_records_of_the_core_are_read() {
        let prediction = read(GOOD).remove(0).unwrap();
        let record: PredictionRecord = serde_json::from_str(GOOD).unwrap();
        assert_eq!(prediction, Prediction::from(record));
        assert_eq!(serde_json::to_string(&prediction).unwrap(), GOOD);
    }

    #[test]
    fn a_bad_line_is_named() {
        let text = format!("{GOOD}\n\n{}\n", GOOD.replace("sumstep", "leapstep"));
        let found = read(&text);
        assert_eq!(found.len(), 2);
        let sentence = found[1].as_ref().unwrap_err().to_string();
        assert!(
            sentence.starts_with("predictions/test.jsonl line 3: unknown variant `leapstep`, expected one of"),
            "{sentence}"
        );
        let cut = read(&GOOD[..40]).remove(0).unwrap_err().to_string();
        assert!(cut.starts_with("predictions/test.jsonl line 1: EOF while parsing"), "{cut}");
        let missing = read(r#"{"proof":"a","step":0}"#).remove(0).unwrap_err().to_string();
        assert!(missing.contains("line 1: missing field `kind`"), "{missing}");
        assert!(
            Records::<Prediction>::open(Path::new("no/such.jsonl"))
                .err()
                .unwrap()
                .to_string()
                .starts_with("cannot read no/such.jsonl: ")
        );
    }

    #[test]
    fn models_from_elsewhere_may_know_less() {
        let text = r#"{"proof":"a","step":0,"kind":"add","input":"1+2","target":"3","beams":[{"output":"3"},{"output":"4","logprob":null,"finished":false}]}"#;
        let prediction = read(text).remove(0).unwrap();
        assert_eq!(prediction.answers().count(), 1);
        assert_eq!(prediction.beams[0].logprob, None);
    }
}

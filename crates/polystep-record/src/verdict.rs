//! The verdict of `eval` on each prediction of a file. It is stored beside the file: `greedy.verdicts.jsonl` beside `greedy.jsonl`.
//!
//! Judging an answer means parsing and simplifying it. The verdicts are stored so that a report need not do that again. The
//! first line says which predictions they belong to, by a hash of that file, and how the answers were read. Verdicts of other
//! predictions, or of answers that were read otherwise, are not used.

use std::fs;
use std::path::Path;

use polystep_core::{Granularity, Notation, Setting, Style, Verdict, Writing};
use serde::{Deserialize, Serialize};

use crate::error::RecordError;
use crate::folder::{Decoding, SetFolder};
use crate::jsonl::JsonLines;
use crate::prediction::Prediction;
use crate::whole::write_whole;

/// How the answers to one step turned out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepVerdict {
    /// The id of the proof.
    pub proof: String,
    /// Which step of it, from 0.
    pub step: usize,
    /// How the first answer turned out.
    pub verdict: Verdict,
    /// Whether its brackets are the expected ones (calculator only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_exact: Option<bool>,
    /// How the best of the first five answers turned out.
    pub best: Verdict,
}

/// The first line of a file of verdicts.
#[derive(PartialEq, Serialize, Deserialize)]
struct Judged {
    /// The hash of the file of predictions.
    predictions: String,
    setting: Setting,
    granularity: Granularity,
    notation: Notation,
    style: Style,
}

impl Judged {
    fn new(predictions: &[u8], writing: &Writing) -> Judged {
        let Writing { setting, granularity, notation, style } = *writing;
        let predictions = blake3::hash(predictions).to_hex().to_string();
        Judged { predictions, setting, granularity, notation, style }
    }
}

impl SetFolder {
    /// The predictions of one way of decoding, with their verdicts if there are verdicts that belong to them. No predictions if
    /// there is no such file.
    pub fn read(&self, decoding: Decoding, writing: &Writing) -> Result<Option<Judgeable>, RecordError> {
        let path = self.answers(decoding);
        let text = match fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(RecordError::file("read", &path))?,
        };
        let predictions: Vec<Prediction> = JsonLines::new(text.as_slice(), &path).collect::<Result<_, _>>()?;
        let verdicts = stored(&self.verdicts(decoding), &Judged::new(&text, writing)).filter(|verdicts| {
            let same = |(verdict, p): (&StepVerdict, &Prediction)| (&verdict.proof, verdict.step) == (&p.proof, p.step);
            verdicts.len() == predictions.len() && verdicts.iter().zip(&predictions).all(same)
        });
        Ok(Some(Judgeable { predictions, verdicts }))
    }

    /// Stores the verdicts on the predictions that are there.
    pub fn write_verdicts(
        &self,
        decoding: Decoding,
        writing: &Writing,
        verdicts: &[StepVerdict],
    ) -> Result<(), RecordError> {
        let path = self.answers(decoding);
        let judged = Judged::new(&fs::read(&path).map_err(RecordError::file("read", &path))?, writing);
        let path = self.verdicts(decoding);
        let lines = || -> serde_json::Result<String> {
            let mut text = serde_json::to_string(&judged)? + "\n";
            for verdict in verdicts {
                text += &(serde_json::to_string(verdict)? + "\n");
            }
            Ok(text)
        };
        write_whole(&path, lines().map_err(|e| RecordError::document(&path, e))?)
    }
}

/// The predictions of a file, with their verdicts where those are known.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgeable {
    /// The predictions.
    pub predictions: Vec<Prediction>,
    /// One verdict for each, in the same order.
    pub verdicts: Option<Vec<StepVerdict>>,
}

/// The verdicts of a file; none if the file is missing, damaged, or about other predictions. The caller then judges again.
fn stored(path: &Path, judged: &Judged) -> Option<Vec<StepVerdict>> {
    let text = fs::read_to_string(path).ok()?;
    let (first, rest) = text.split_once('\n')?;
    let same = serde_json::from_str::<Judged>(first).is_ok_and(|first| first == *judged);
    same.then(|| JsonLines::new(rest.as_bytes(), path).collect::<Result<_, _>>().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonl::write_json_lines;
    use polystep_core::StepKind;

    #[test]
    fn verdicts_belong_to_their_predictions() {
        let place = tempfile::tempdir().unwrap();
        let (folder, writing) = (SetFolder::new(place.path()), Writing::default());
        let prediction = |target: &str| Prediction {
            proof: "a".into(),
            step: 0,
            kind: StepKind::Sumstep,
            input: "(1)+(2)".into(),
            target: target.into(),
            beams: Vec::new(),
        };
        let write = |target: &str| write_json_lines(&folder.answers(Decoding::Greedy), [prediction(target)]).unwrap();
        let known = |writing: &Writing| folder.read(Decoding::Greedy, writing).unwrap().unwrap().verdicts;
        assert_eq!(folder.read(Decoding::Greedy, &writing).unwrap(), None);
        write("3");
        assert_eq!(known(&writing), None, "nobody has judged them");
        let verdict = Verdict::Malformed;
        let judged = [StepVerdict { proof: "a".into(), step: 0, verdict, raw_exact: None, best: verdict }];
        folder.write_verdicts(Decoding::Greedy, &writing, &judged).unwrap();
        assert_eq!(known(&writing).as_deref(), Some(&judged[..]));
        assert_eq!(known(&Writing { setting: Setting::Calculator, ..writing }), None, "read otherwise");
        write("4");
        assert_eq!(known(&writing), None, "other predictions");
        write("3");
        let path = folder.verdicts(Decoding::Greedy);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"step\":0", "\"step\":1")).unwrap();
        assert_eq!(known(&writing), None, "another step");
        fs::write(&path, text.lines().next().unwrap()).unwrap();
        assert_eq!(known(&writing), None, "cut");
    }
}

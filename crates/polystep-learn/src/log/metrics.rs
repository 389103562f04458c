//! `metrics.jsonl`: one line per event, flushed as it is written. On a resume, lines past the checkpoint's step are cut off,
//! so that a run that was killed and resumed has the same lines as one that was not.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LearnError;

/// A window of training steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainLine {
    /// The last step of the window.
    pub step: u64,
    /// Examples seen so far.
    pub examples: u64,
    /// Mean loss over the window's target tokens.
    pub loss: f64,
    /// Mean gradient norm before clipping.
    pub grad_norm: f64,
    /// Learning rate of the last step.
    pub lr: f64,
    /// Share of the window's training examples with every token right.
    pub exact: f64,
    /// Source and target tokens of the window.
    pub tokens: u64,
    /// Seconds of training so far, over all resumes.
    pub seconds: f64,
}

/// A validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidLine {
    /// After this step.
    pub step: u64,
    /// Examples seen so far.
    pub examples: u64,
    /// Share of proofs with every step right.
    pub full_proof: f64,
    /// Share of steps that are right.
    pub stepwise: f64,
    /// The same by kind of step; logs of earlier versions have none.
    #[serde(default)]
    pub by_kind: BTreeMap<String, f64>,
    /// Whether a calculator's brackets were compared as they stand, before evaluation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Mean loss over the target tokens.
    pub loss: f64,
    /// Whether no earlier validation was as good.
    pub best: bool,
    /// Seconds of training so far, over all resumes.
    pub seconds: f64,
}

/// How the tasks of a curriculum stand after an exam.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurriculumLine {
    /// After this step.
    pub step: u64,
    /// Examples seen so far.
    pub examples: u64,
    /// In the order of the graph.
    pub tasks: Vec<TaskLine>,
    /// Seconds of training so far, over all resumes.
    pub seconds: f64,
}

/// One task of a curriculum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskLine {
    /// Its name.
    pub task: String,
    /// The tasks directly before it.
    pub after: Vec<String>,
    /// Share of the exam's examples that are right.
    pub accuracy: f64,
    /// The mastering rate.
    pub mastering: f64,
    /// Slope of the accuracy over steps.
    pub progress: f64,
    /// Attention after redistribution.
    pub attention: f64,
    /// Share of the examples of the next round.
    pub share: f64,
    /// Examples of it that were trained on so far.
    pub examples: u64,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// Training.
    Train(TrainLine),
    /// Validation.
    Valid(ValidLine),
    /// The tasks of a curriculum.
    Curriculum(CurriculumLine),
}

impl Line {
    /// The step it belongs to.
    pub fn step(&self) -> u64 {
        match self {
            Line::Train(line) => line.step,
            Line::Valid(line) => line.step,
            Line::Curriculum(line) => line.step,
        }
    }
}

/// The open file.
pub struct MetricsFile {
    file: File,
}

impl MetricsFile {
    /// Opens `path` for a run that continues after `step`; what an earlier session wrote past it is cut off, and so is a
    /// line that it did not finish.
    pub fn open(path: &Path, step: u64) -> Result<Self, LearnError> {
        let open = || -> std::io::Result<File> {
            let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            let keep = lines_until(BufReader::new(&file), step)?;
            file.set_len(keep)?;
            Ok(file)
        };
        Ok(MetricsFile { file: open().map_err(|e| LearnError::file("cannot write", path, e))? })
    }

    /// Appends a line.
    pub fn write(&mut self, line: &Line) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}

/// Length in bytes of the whole lines up to `step`.
fn lines_until(mut file: impl BufRead, step: u64) -> std::io::Result<u64> {
    let (mut keep, mut text) = (0, Vec::new());
    loop {
        text.clear();
        // Bytes: what a lost power supply leaves at the end may be no text.
        file.read_until(b'\n', &mut text)?;
        let within = serde_json::from_slice::<Line>(&text).is_ok_and(|line| line.step() <= step);
        if !text.ends_with(b"\n") || !within {
            return Ok(keep);
        }
        keep += text.len() as u64;
    }
}

/// Every line of a run.
pub fn read_metrics(path: &Path) -> Result<Vec<Line>, LearnError> {
    let text = std::fs::read_to_string(path).map_err(|e| LearnError::file("cannot read", path, e))?;
    let line = |(i, text): (usize, &str)| {
        serde_json::from_str(text).map_err(|e| LearnError::Damaged {
            path: path.to_path_buf(),
            why: format!("line {}: {e}", i + 1),
            help: String::new(),
        })
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(step: u64) -> Line {
        let line = ValidLine {
            step,
            examples: 32 * step,
            full_proof: 0.5,
            stepwise: 0.75,
            by_kind: BTreeMap::from([("mulstep".into(), 0.6)]),
            raw: false,
            loss: 0.1,
            best: true,
            seconds: 1.5,
        };
        Line::Valid(line)
    }

    #[test]
    fn a_resume_cuts_off_what_lies_past_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut file = MetricsFile::open(&path, 0).unwrap();
        for step in [10, 20, 30] {
            file.write(&valid(step)).unwrap();
        }
        // Killed in the middle of a line, which ends in no text.
        file.file.write_all(b"{\"kind\":\"valid\",\"st\xff\0").unwrap();
        MetricsFile::open(&path, 99).unwrap();
        assert_eq!(read_metrics(&path).unwrap(), [valid(10), valid(20), valid(30)]);
        let mut file = MetricsFile::open(&path, 20).unwrap();
        file.write(&valid(25)).unwrap();
        assert_eq!(read_metrics(&path).unwrap(), [valid(10), valid(20), valid(25)]);
    }

    #[test]
    fn a_line_without_kinds_is_read() {
        let old = r#"{"kind":"valid","step":3,"examples":96,"full_proof":0.5,"stepwise":0.75,"loss":0.1,"best":true,"seconds":1.5}"#;
        let Line::Valid(line) = serde_json::from_str(old).unwrap() else { panic!("{old}") };
        assert_eq!((line.step, line.by_kind.len()), (3, 0));
    }

    #[test]
    fn a_line_names_its_kind() {
        let text = serde_json::to_string(&valid(3)).unwrap();
        assert!(text.starts_with(r#"{"kind":"valid","step":3,"examples":96,"#), "{text}");
    }
}

//! `metrics.jsonl`, the learning curves of a run: one line per event, flushed as it is written.
//!
//! On a resume, lines past the checkpoint's step are cut off. So a run that was killed and resumed has the same lines as one
//! that was not. Lines of earlier versions, and of other programs, may leave out the fields that have a default here.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use polystep_core::{ByClass, ClassWeights, StepClass};
use serde::{Deserialize, Serialize};

use crate::error::RecordError;

/// A window of training steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainLine {
    /// The last step of the window.
    pub step: u64,
    /// Examples seen so far.
    pub examples: u64,
    /// Mean loss over the window's target tokens.
    pub loss: f64,
    /// Mean gradient norm before clipping.
    #[serde(default)]
    pub grad_norm: f64,
    /// Learning rate of the last step.
    #[serde(default)]
    pub lr: f64,
    /// Share of the window's training examples with every token right.
    #[serde(default)]
    pub exact: Option<f64>,
    /// Source and target tokens of the window.
    #[serde(default)]
    pub tokens: u64,
    /// Seconds of training so far, over all resumes.
    #[serde(default)]
    pub seconds: f64,
}

/// A validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub loss: Option<f64>,
    /// Whether the average of the weights was validated, and not the weights themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub averaged: bool,
    /// Whether no earlier validation was as good.
    #[serde(default)]
    pub best: bool,
    /// Seconds of training so far, over all resumes.
    #[serde(default)]
    pub seconds: f64,
}

/// The tasks of a curriculum after an exam.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurriculumLine {
    /// After this step.
    pub step: u64,
    /// Examples seen so far.
    pub examples: u64,
    /// In the order of the graph.
    pub tasks: Vec<TaskLine>,
    /// Seconds of training so far, over all resumes.
    #[serde(default)]
    pub seconds: f64,
}

/// One task of a curriculum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub progress: f64,
    /// Attention after redistribution.
    #[serde(default)]
    pub attention: f64,
    /// Share of the examples of the next round.
    #[serde(default)]
    pub share: f64,
    /// Examples of it that were trained on so far.
    pub examples: u64,
}

impl TaskLine {
    /// How many examples of each task an exam has.
    pub const EXAM: usize = 100;
}

/// The classes of the steps that were trained on, in a run that shows some of them more often than others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MixLine {
    /// After this step.
    pub step: u64,
    /// Examples seen so far.
    pub examples: u64,
    /// The classes that occurred.
    pub classes: Vec<ClassLine>,
    /// Seconds of training so far, over all resumes.
    #[serde(default)]
    pub seconds: f64,
}

/// One class of steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassLine {
    /// Which.
    pub class: StepClass,
    /// Examples of it that were trained on so far.
    pub examples: u64,
    /// Their share of all examples so far.
    pub share: f64,
    /// How many of the steps drawn next are kept, relative to the class with the largest weight.
    pub weight: f64,
    /// Share of the last exam's examples that were right, where there are exams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

impl MixLine {
    /// The line after (step, examples, seconds).
    pub fn new((step, examples, seconds): (u64, u64, f64), seen: &ByClass<u64>, weights: &ClassWeights) -> MixLine {
        let line = |class| {
            let share = seen.of(class) as f64 / examples.max(1) as f64;
            ClassLine { class, examples: seen.of(class), share, weight: weights.of(class), accuracy: None }
        };
        let classes = StepClass::ALL.into_iter().filter(|&class| seen.of(class) > 0).map(line).collect();
        MixLine { step, examples, classes, seconds }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LogLine {
    /// Training.
    Train(TrainLine),
    /// Validation.
    Valid(ValidLine),
    /// The tasks of a curriculum.
    Curriculum(CurriculumLine),
    /// The classes of the steps that were trained on.
    Mix(MixLine),
    /// Something that a later version writes.
    #[serde(other)]
    Other,
}

impl LogLine {
    /// The step, examples and seconds after which the line was written; none if it is of an unknown kind.
    pub fn progress(&self) -> Option<(u64, u64, f64)> {
        match self {
            LogLine::Train(line) => Some((line.step, line.examples, line.seconds)),
            LogLine::Valid(line) => Some((line.step, line.examples, line.seconds)),
            LogLine::Curriculum(line) => Some((line.step, line.examples, line.seconds)),
            LogLine::Mix(line) => Some((line.step, line.examples, line.seconds)),
            LogLine::Other => None,
        }
    }

    /// The window of training, if it is one.
    pub fn train(&self) -> Option<&TrainLine> {
        if let LogLine::Train(line) = self { Some(line) } else { None }
    }

    /// The validation, if it is one.
    pub fn valid(&self) -> Option<&ValidLine> {
        if let LogLine::Valid(line) = self { Some(line) } else { None }
    }
}

/// The open file.
#[derive(Debug)]
pub struct LogFile {
    file: File,
}

impl LogFile {
    /// Opens `path` for a run that continues after `step`. What an earlier session wrote past that step is cut off, and so
    /// is a line that it did not finish. A damaged line among those that stay is an error, and the file is left as it is. A
    /// link is refused: the file that it points to would be cut.
    pub fn open(path: &Path, step: u64) -> Result<LogFile, RecordError> {
        let cannot = |error| RecordError::file("write", path)(error);
        let damaged = |line| {
            let why = "it is damaged: repair it, or move the file away and the run begins a new log";
            RecordError::Line { path: path.to_path_buf(), line, why: why.into() }
        };
        if fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink()) {
            let why = "it is a symbolic link, and what it points to would be cut; remove the link";
            return Err(cannot(io::Error::other(why)));
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(cannot)?;
        let keep = lines_until(BufReader::new(&file), step).map_err(cannot)?.map_err(damaged)?;
        file.set_len(keep).map_err(cannot)?;
        Ok(LogFile { file })
    }

    /// Appends a line.
    pub fn write(&mut self, line: &LogLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}

/// Length in bytes of the whole lines up to `step`, or the number of a damaged line among them. What cannot be read at the end
/// of the file was not finished, and does not count.
fn lines_until(mut file: impl BufRead, step: u64) -> io::Result<Result<u64, usize>> {
    let (mut keep, mut length, mut damaged, mut text) = (0, 0, None, Vec::new());
    for number in 1.. {
        text.clear();
        // Bytes, because after a power failure the end of the file may not be text.
        length += file.read_until(b'\n', &mut text)? as u64;
        if !text.ends_with(b"\n") {
            break;
        }
        match serde_json::from_slice::<LogLine>(&text).map(|line| line.progress()) {
            Ok(Some((at, ..))) if at > step => break,
            Ok(Some(_)) => match damaged {
                Some(line) => return Ok(Err(line)),
                None => keep = length,
            },
            Ok(None) => {}
            Err(_) => damaged = damaged.or(Some(number)),
        }
    }
    Ok(Ok(keep))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonl::JsonLines;

    fn read_log(path: &Path) -> Vec<LogLine> {
        JsonLines::open(path).unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn valid(step: u64) -> LogLine {
        let line = ValidLine {
            step,
            examples: 32 * step,
            full_proof: 0.5,
            stepwise: 0.75,
            by_kind: BTreeMap::from([("mulstep".into(), 0.6)]),
            raw: false,
            loss: Some(0.1),
            best: true,
            averaged: false,
            seconds: 1.5,
        };
        LogLine::Valid(line)
    }

    #[test]
    fn a_resume_cuts_off_what_lies_past_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut file = LogFile::open(&path, 0).unwrap();
        for step in [10, 20, 30] {
            file.write(&valid(step)).unwrap();
        }
        // Killed in the middle of a line, which ends in no text.
        file.file.write_all(b"{\"kind\":\"valid\",\"st\xff\0").unwrap();
        LogFile::open(&path, 99).unwrap();
        assert_eq!(read_log(&path), [valid(10), valid(20), valid(30)]);
        let mut file = LogFile::open(&path, 20).unwrap();
        file.write(&valid(25)).unwrap();
        assert_eq!(read_log(&path), [valid(10), valid(20), valid(25)]);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_an_error_and_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut file = LogFile::open(&path, 0).unwrap();
        [10, 20, 30].iter().for_each(|&step| file.write(&valid(step)).unwrap());
        let text = fs::read_to_string(&path).unwrap().replacen("\"step\":20", "\"st?p\":20", 1);
        fs::write(&path, &text).unwrap();
        let error = LogFile::open(&path, 30).map(drop).unwrap_err().to_string();
        assert!(
            error.ends_with("line 2: it is damaged: repair it, or move the file away and the run begins a new log"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // Behind the checkpoint nothing is lost: what is damaged there is cut off with the rest.
        LogFile::open(&path, 10).unwrap();
        assert_eq!(read_log(&path), [valid(10)]);
    }

    #[test]
    fn a_line_without_kinds_is_read() {
        let old = r#"{"kind":"valid","step":3,"examples":96,"full_proof":0.5,"stepwise":0.75,"loss":0.1,"best":true,"seconds":1.5}"#;
        let LogLine::Valid(line) = serde_json::from_str(old).unwrap() else { panic!("{old}") };
        assert_eq!((line.step, line.by_kind.len()), (3, 0));
    }

    #[test]
    fn a_line_names_its_kind() {
        let text = serde_json::to_string(&valid(3)).unwrap();
        assert!(text.starts_with(r#"{"kind":"valid","step":3,"examples":96,"#), "{text}");
    }

    /// A run folder that somebody sent must not get a file elsewhere cut.
    #[test]
    fn a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, log] = ["victim", "metrics.jsonl"].map(|name| folder.path().join(name));
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, &log).unwrap();
        let error = LogFile::open(&log, 9).unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl: it is a symbolic link"), "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    }
}

//! The folder of one run, and the names of all files in it.
//!
//! Training writes `config.toml` (the resolved configuration), `metrics.jsonl` (the learning curves), TensorBoard events and
//! `checkpoints/`; when it is finished, `model.safetensors` and `metrics.json`. A trial of a sweep has `trial.txt` too, and
//! `ended.json` if it was given up. An evaluation adds `predictions/CONFIG-VARS/`, a report `report.html`. While a process
//! trains, `lease.json` says which.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use polystep_core::named;

use crate::error::RecordError;
use crate::test_set::TestSet;

/// The folder of a run, whether it exists or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The run in this folder.
    pub fn new(path: impl Into<PathBuf>) -> RunFolder {
        RunFolder { path: path.into() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's name for people: that of its folder.
    pub fn name(&self) -> String {
        let folder =
            fs::canonicalize(&self.path).ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        folder.unwrap_or_else(|| self.path.display().to_string())
    }

    /// The resolved configuration.
    pub fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The configuration of a folder that `export` made for `transformers`.
    pub fn exported(&self) -> PathBuf {
        self.path.join("config.json")
    }

    /// The weights of the finished model.
    pub fn model(&self) -> PathBuf {
        self.path.join("model.safetensors")
    }

    /// The numbers: what training reports when it is finished, and what evaluations add.
    pub fn metrics(&self) -> PathBuf {
        self.path.join("metrics.json")
    }

    /// The learning curves.
    pub fn log(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// The folder of checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// The mark of a sweep's trial, which is never tested.
    pub fn trial(&self) -> PathBuf {
        self.path.join("trial.txt")
    }

    /// Why a trial was given up.
    pub fn ended(&self) -> PathBuf {
        self.path.join("ended.json")
    }

    /// The page about the run.
    pub fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// The predictions of all test sets.
    pub fn predictions(&self) -> PathBuf {
        self.path.join("predictions")
    }

    /// The predictions of one test set.
    pub fn set(&self, set: &TestSet) -> SetFolder {
        SetFolder::new(self.predictions().join(set.folder_name()))
    }

    /// The predictions of the long set of the same stream.
    pub fn long_set(&self, set: &TestSet) -> SetFolder {
        SetFolder::new(self.predictions().join(set.folder_name() + "-long"))
    }

    /// The resolved configuration as a table; none if it is not there.
    pub fn read_config(&self) -> Result<Option<toml::Table>, RecordError> {
        let path = self.config();
        let parse = |text: String| {
            toml::from_str(&text).map_err(|e| {
                let line = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
                RecordError::document(&path, format!("line {line}: {}", e.message()))
            })
        };
        read_text(&path)?.map(parse).transpose()
    }

    /// Whether there is a run: it has a configuration.
    pub fn is_begun(&self) -> bool {
        self.config().exists()
    }

    /// Whether the run has come to its end: it has numbers.
    pub fn is_finished(&self) -> bool {
        self.metrics().exists()
    }

    /// Whether there is a model that can be used, and how it was set up.
    pub fn has_model(&self) -> bool {
        self.config().is_file() && self.model().is_file()
    }
}

/// How answers were found. Each way has a file of its own, under its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoding {
    /// Greedy and teacher-forced: every step of the test proofs.
    Greedy,
    /// Beam search on the beam set, headline scoring: summed log-probability.
    Beam,
    /// Beam search on the beam set, the classic scoring: divided by length.
    BeamLp1,
    /// Beam search on validation steps, from which the best threshold is chosen.
    Valid,
    /// Recursive proofs.
    Recursive,
    /// Who wrote the steps of the test proofs when model and checker worked together.
    Assisted,
}

named!(
    Decoding, "decoding":
    Greedy "greedy", Beam "beam", BeamLp1 "beam_lp1", Valid "valid", Recursive "recursive", Assisted "assisted"
);

/// A model's answers to one test set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetFolder {
    path: PathBuf,
}

impl SetFolder {
    /// The answers in this folder.
    pub fn new(path: impl Into<PathBuf>) -> SetFolder {
        SetFolder { path: path.into() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The answers of one way of decoding, as a file of one JSON object per line.
    pub fn answers(&self, decoding: Decoding) -> PathBuf {
        self.path.join(format!("{decoding}.jsonl"))
    }

    /// What `eval` found out about those answers.
    pub fn verdicts(&self, decoding: Decoding) -> PathBuf {
        self.path.join(format!("{decoding}.verdicts.jsonl"))
    }

    /// Removes the answers of one way of decoding, and what was found out about them.
    pub fn remove(&self, decoding: Decoding) -> Result<(), RecordError> {
        for path in [self.answers(decoding), self.verdicts(decoding)] {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(RecordError::file("remove", path)(e)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The lease of a folder whose files several processes may write: held while they train, or for the moment in which they write.
pub fn lease_of(folder: &Path) -> PathBuf {
    folder.join("lease.json")
}

/// The text of a file; none if it is not there.
pub fn read_text(path: &Path) -> Result<Option<String>, RecordError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(RecordError::file("read", path)(e)),
    }
}

//! A run's folder: `config.toml` (resolved), `metrics.jsonl`, TensorBoard events, `checkpoints/`, and when the run is
//! finished `model.safetensors` and `metrics.json`. A trial of a sweep has `trial.txt` too.

use std::path::{Path, PathBuf};

use super::score::TestReport;
use crate::LearnError;
use crate::config::{ConfigError, RunConfig};
use crate::files::{Lock, write_whole};

/// A folder that holds one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Held by who trains in it.
    _lock: Option<Lock>,
}

impl RunFolder {
    /// A folder for a new run; it must not hold one already.
    pub fn create(path: &Path, config: &RunConfig) -> Result<Self, LearnError> {
        std::fs::create_dir_all(path).map_err(|e| LearnError::file("cannot make", path, e))?;
        let folder = RunFolder { path: path.to_path_buf(), _lock: Some(Lock::take(path)?) };
        if folder.config_path().exists() {
            let name = path.display();
            return Err(LearnError::Folder(format!(
                "{name} holds a run already: choose another --out, or --resume it"
            )));
        }
        folder.write_config(config)?;
        Ok(folder)
    }

    /// The folder of a run that is to be continued, and what it was set up with. An error while another process trains in it.
    pub fn resume(path: &Path) -> Result<(Self, RunConfig), LearnError> {
        let (folder, config) = RunFolder::open(path)?;
        Ok((RunFolder { _lock: Some(Lock::take(path)?), ..folder }, config))
    }

    /// The folder of a run that is to be read, and what it was set up with.
    pub fn open(path: &Path) -> Result<(Self, RunConfig), LearnError> {
        let folder = RunFolder { path: path.to_path_buf(), _lock: None };
        let config = folder.config_path();
        if !config.exists() {
            return Err(LearnError::Folder(format!("{} holds no run: there is no config.toml in it", path.display())));
        }
        let text = std::fs::read_to_string(&config).map_err(|e| LearnError::file("cannot read", &config, e))?;
        let named = |e: ConfigError| ConfigError::new(format!("{}, {e}", config.display()));
        Ok((folder, RunConfig::from_toml(&text, &[]).map_err(named)?))
    }

    /// An error if the run does not go on by itself: it has come to its end (its weights were chosen, perhaps tested, and that
    /// number stays), or it is a trial of a sweep, which would be tested.
    pub fn check_unfinished(&self) -> Result<(), LearnError> {
        let why = if self.metrics_path().exists() {
            "is finished (see metrics.json): start another run to train more"
        } else if self.trial_path().exists() {
            "is a trial of a sweep, which is not tested: continue the sweep, or train its config.toml in another --out"
        } else {
            return Ok(());
        };
        Err(LearnError::Folder(format!("{} {why}", self.path.display())))
    }

    /// Marks the folder as a trial's before there is a run in it.
    pub(crate) fn mark_as_trial(path: &Path) -> Result<(), LearnError> {
        std::fs::create_dir_all(path).map_err(|e| LearnError::file("cannot make", path, e))?;
        let folder = RunFolder { path: path.to_path_buf(), _lock: None };
        write_whole(
            &folder.trial_path(),
            b"A trial of a sweep: validated, never tested. polystep sweep continues it.\n",
        )
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The resolved configuration.
    pub fn config_path(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The weights of the finished model.
    pub fn model(&self) -> PathBuf {
        self.path.join("model.safetensors")
    }

    /// What the finished run reports.
    pub fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.json")
    }

    /// Says that the run is a trial of a sweep.
    fn trial_path(&self) -> PathBuf {
        self.path.join("trial.txt")
    }

    /// Writes the resolved configuration.
    pub fn write_config(&self, config: &RunConfig) -> Result<(), LearnError> {
        write_whole(&self.config_path(), config.to_toml().as_bytes())
    }

    pub(super) fn write_metrics(&self, report: &TestReport) -> Result<(), LearnError> {
        let mut text = serde_json::to_string_pretty(report).map_err(|e| LearnError::Data(e.to_string()))?;
        text.push('\n');
        write_whole(&self.metrics_path(), text.as_bytes())
    }
}

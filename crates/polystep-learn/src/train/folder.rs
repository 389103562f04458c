//! A run's folder: `config.toml` (resolved), `metrics.jsonl`, TensorBoard events, `checkpoints/`, and when the run is
//! finished `model.safetensors` and `metrics.json`.

use std::path::{Path, PathBuf};

use super::score::TestReport;
use crate::LearnError;
use crate::config::RunConfig;
use crate::files::write_whole;

/// A folder that holds one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// A folder for a new run; it must not hold one already.
    pub fn create(path: &Path, config: &RunConfig) -> Result<Self, LearnError> {
        let folder = RunFolder { path: path.to_path_buf() };
        if folder.config_path().exists() {
            let name = path.display();
            return Err(LearnError::Folder(format!(
                "{name} holds a run already: choose another --out, or --resume it"
            )));
        }
        std::fs::create_dir_all(path).map_err(|e| LearnError::file("cannot make", path, e))?;
        folder.write_config(config)?;
        Ok(folder)
    }

    /// The folder of a run that is to be continued, and what it was set up with.
    pub fn open(path: &Path) -> Result<(Self, RunConfig), LearnError> {
        let folder = RunFolder { path: path.to_path_buf() };
        let config = folder.config_path();
        if !config.exists() {
            return Err(LearnError::Folder(format!("{} holds no run: there is no config.toml in it", path.display())));
        }
        let text = std::fs::read_to_string(&config).map_err(|e| LearnError::file("cannot read", &config, e))?;
        Ok((folder, RunConfig::from_toml(&text, &[])?))
    }

    /// An error if the run has come to its end: its weights were chosen, perhaps tested, and that number stays.
    pub fn check_unfinished(&self) -> Result<(), LearnError> {
        if !self.metrics_path().exists() {
            return Ok(());
        }
        let name = self.path.display();
        Err(LearnError::Folder(format!("{name} is finished (see metrics.json): start another run to train more")))
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

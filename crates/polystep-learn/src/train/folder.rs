//! The folder that a run is trained in: whether a run may begin or continue there, and the lease of the process that trains in it.

use std::ops::Deref;
use std::path::Path;

use polystep_record::folder::lease_of;
use polystep_record::{Lease, RecordError, RunFolder, TrainingReport, write_whole};

use crate::LearnError;
use crate::config::{ConfigError, RunConfig};

/// The folder of a run. The process that trains in it holds its lease.
#[derive(Debug)]
pub struct TrainingFolder {
    folder: RunFolder,
    lease: Option<Lease>,
}

impl Deref for TrainingFolder {
    type Target = RunFolder;

    fn deref(&self) -> &RunFolder {
        &self.folder
    }
}

impl TrainingFolder {
    /// A folder for a new run; it must not hold one already.
    pub fn create(path: &Path, config: &RunConfig) -> Result<Self, LearnError> {
        std::fs::create_dir_all(path).map_err(RecordError::file("make", path))?;
        TrainingFolder::create_under(Lease::take(&lease_of(path))?, path, config)
    }

    /// The same, for a process that holds the lease already.
    pub(crate) fn create_under(lease: Lease, path: &Path, config: &RunConfig) -> Result<Self, LearnError> {
        let folder = TrainingFolder::held(path, lease);
        TrainingFolder::check_unused(path)?;
        folder.write_config(config)?;
        Ok(folder)
    }

    /// The folder that a lease was taken of.
    pub(super) fn held(path: &Path, lease: Lease) -> Self {
        TrainingFolder { folder: RunFolder::new(path), lease: Some(lease) }
    }

    /// An error if a folder for a new run is a file, or holds a run.
    pub fn check_unused(path: &Path) -> Result<(), LearnError> {
        let name = path.display();
        if path.is_file() {
            return Err(LearnError::Folder(format!("{name} is a file: --out names a folder")));
        }
        match RunFolder::new(path).is_begun() {
            true => {
                Err(LearnError::Folder(format!("{name} holds a run already: choose another --out, or --resume it")))
            }
            false => Ok(()),
        }
    }

    /// The folder of a run that is to be continued, and what it was set up with. An error while another process trains in it.
    pub fn resume(path: &Path) -> Result<(Self, RunConfig), LearnError> {
        TrainingFolder::open(path)?;
        TrainingFolder::resume_under(Lease::take(&lease_of(path))?, path)
    }

    /// The same, for a process that holds the lease already.
    pub(crate) fn resume_under(lease: Lease, path: &Path) -> Result<(Self, RunConfig), LearnError> {
        let (folder, config) = TrainingFolder::open(path)?;
        Ok((TrainingFolder { lease: Some(lease), ..folder }, config))
    }

    /// The folder of a run that is to be read, and what it was set up with.
    pub fn open(path: &Path) -> Result<(Self, RunConfig), LearnError> {
        let folder = TrainingFolder { folder: RunFolder::new(path), lease: None };
        let config = folder.config();
        if !config.exists() {
            return Err(LearnError::Folder(format!("{} holds no run: there is no config.toml in it", path.display())));
        }
        let text = std::fs::read_to_string(&config).map_err(RecordError::file("read", &config))?;
        let named = |e: ConfigError| ConfigError::new(format!("{}, {e}", config.display()));
        Ok((folder, RunConfig::from_toml(&text, &[]).map_err(named)?))
    }

    /// An error if the run must not be continued. It may be finished: then its weights were chosen and perhaps tested, and that
    /// result stays. Or it may be a trial of a sweep: continued alone, it would be tested.
    pub fn check_unfinished(&self) -> Result<(), LearnError> {
        let why = if self.is_finished() {
            "is finished (see metrics.json): --more EXAMPLES --init RUN --out NEW continues it as a new run"
        } else if self.trial().exists() {
            "is a trial of a sweep, which is not tested: continue the sweep, or train its config.toml in another --out"
        } else {
            return Ok(());
        };
        Err(LearnError::Folder(format!("{} {why}", self.path().display())))
    }

    /// An error if another process has taken the folder over: what this one has computed must not be written any more.
    pub fn check_lease(&self) -> Result<(), LearnError> {
        Ok(self.lease.as_ref().map_or(Ok(()), Lease::check)?)
    }

    /// Marks the folder as a trial's before there is a run in it.
    pub(crate) fn mark_as_trial(path: &Path) -> Result<(), LearnError> {
        std::fs::create_dir_all(path).map_err(RecordError::file("make", path))?;
        let text = "A trial of a sweep: validated, never tested. polystep sweep continues it.\n";
        Ok(write_whole(&RunFolder::new(path).trial(), text)?)
    }

    /// Writes the resolved configuration.
    pub fn write_config(&self, config: &RunConfig) -> Result<(), LearnError> {
        Ok(write_whole(&self.config(), config.to_toml())?)
    }

    pub(super) fn write_metrics(&self, report: &TrainingReport) -> Result<(), LearnError> {
        let text = serde_json::to_string_pretty(report).map_err(|e| LearnError::Data(e.to_string()))?;
        Ok(write_whole(&self.metrics(), text + "\n")?)
    }
}

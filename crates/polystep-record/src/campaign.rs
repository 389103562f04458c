//! What a campaign keeps in the folder of a run beside the run itself: who has made it (`claims.jsonl`), and why it failed
//! (`failed.json`, which `train` writes too). Who is making it right now is said by the lease `claim.json`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::RecordError;
use crate::folder::read_text;
use crate::lease::LeaseHolder;
use crate::whole::write_whole;

/// A run of a campaign: its folder, as far as the campaign is concerned.
#[derive(Clone, Debug)]
pub struct CampaignFolder {
    path: PathBuf,
}

/// Why a run failed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFailure {
    /// In one sentence.
    pub why: String,
    /// Where the process told more.
    pub log: PathBuf,
    /// Who was at it, until it failed.
    pub holder: LeaseHolder,
}

/// One line of `claims.jsonl`: a run was made and entered. Times are in milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClaimLine {
    /// Who made it.
    pub holder: LeaseHolder,
    /// Taking the lease.
    pub claim_ms: f64,
    /// All heartbeats.
    pub heartbeats_ms: f64,
    /// Entering the run into records and ledgers.
    pub entry_ms: f64,
    /// Of these, bringing the ledgers up to date. Next to nothing if another process was writing them.
    pub ledgers_ms: f64,
}

impl CampaignFolder {
    /// The folder of a run, whether it exists or not.
    pub fn new(path: impl Into<PathBuf>) -> CampaignFolder {
        CampaignFolder { path: path.into() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lease of whoever makes the run. The processes that train and test it hold leases of their own.
    pub fn claim(&self) -> PathBuf {
        self.path.join("claim.json")
    }

    /// Why the run failed when it was last tried; none if it did not.
    pub fn failure(&self) -> Result<Option<RunFailure>, RecordError> {
        let path = self.failed();
        let parse = |text: String| serde_json::from_str(&text).map_err(|e| RecordError::document(&path, e));
        read_text(&path)?.map(parse).transpose()
    }

    /// Says why the run failed.
    pub fn fail(&self, failure: &RunFailure) -> Result<(), RecordError> {
        let path = self.failed();
        let text = serde_json::to_string(failure).map_err(|e| RecordError::document(&path, e))?;
        write_whole(&path, text + "\n")
    }

    /// Forgets an earlier failure, since the run is tried again.
    pub fn forget_failure(&self) -> Result<(), RecordError> {
        match fs::remove_file(self.failed()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(RecordError::file("remove", self.failed())(e)),
            _ => Ok(()),
        }
    }

    /// Says that the run was made and entered. Only the holder of the claim writes.
    pub fn made(&self, line: &ClaimLine) -> Result<(), RecordError> {
        let path = self.path.join("claims.jsonl");
        let text = serde_json::to_string(line).map_err(|e| RecordError::document(&path, e))?;
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()))
            .map_err(RecordError::file("write", path))
    }

    fn failed(&self) -> PathBuf {
        self.path.join("failed.json")
    }
}

/// Whether two leases, now or earlier, belong to one Slurm job.
pub fn same_job(a: &LeaseHolder, b: &LeaseHolder) -> bool {
    a.job.is_some() && a.job == b.job
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lease, folder::lease_of};

    #[test]
    fn a_failure_is_told_until_the_run_is_tried_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = CampaignFolder::new(place.path());
        assert_eq!(folder.failure().unwrap(), None);
        folder.forget_failure().unwrap();
        let lease = Lease::take(&lease_of(place.path())).unwrap();
        let failure = RunFailure { why: "no".into(), log: "a.log".into(), holder: lease.holder().clone() };
        folder.fail(&failure).unwrap();
        assert_eq!(folder.failure().unwrap().as_ref(), Some(&failure));
        folder.forget_failure().unwrap();
        assert_eq!(folder.failure().unwrap(), None);
        let line =
            ClaimLine { holder: failure.holder, claim_ms: 1.5, heartbeats_ms: 0.0, entry_ms: 3.0, ledgers_ms: 2.0 };
        folder.made(&line).unwrap();
        folder.made(&line).unwrap();
        let text = fs::read_to_string(place.path().join("claims.jsonl")).unwrap();
        let lines: Vec<ClaimLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, [line.clone(), line]);
    }
}

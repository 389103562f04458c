//! A job is a run that a table needs. This module finds out how much of it is already done: there may be a record, weights, a
//! checkpoint, or nothing.
//!
//! A job is done when its record has every evaluation that the tables ask for, on whichever machine it was made. If there are
//! weights but an evaluation is missing, the model is evaluated. If there is only a checkpoint, the training continues. If there
//! is nothing, the training starts from the beginning.

use std::path::{Path, PathBuf};

use anyhow::Context;
use polystep_core::Purpose;
use polystep_core::sets::FixedSet;
use polystep_record::{CampaignFolder, RunFolder};
use polystep_study::records::{RunRecord, RunRecords};
use polystep_study::tables::{AskedSet, Experiment, test_sets};

use super::table_plan::TablePlans;
use crate::failure::Result;

/// A run that a table needs.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is.
    pub experiment: Experiment,
    /// Its name.
    pub name: String,
    /// How it is set up, as keys of a run's TOML.
    pub overrides: Vec<(String, String)>,
    /// Every test set that any table asks of it.
    pub sets: Vec<AskedSet>,
    /// How many proofs of each set are tested; all if not given.
    pub proofs: Option<u64>,
}

impl Job {
    /// The job of a run, as its plan sets it up.
    pub fn new(experiment: Experiment, plans: &TablePlans) -> Job {
        Job {
            name: experiment.name(),
            overrides: plans.overrides(&experiment),
            sets: test_sets(plans.iter().map(|(table, _)| table), &experiment),
            proofs: plans.owner(&experiment).and_then(|(_, plan)| plan.evaluation.proofs),
            experiment,
        }
    }

    /// The sets that a record lacks.
    pub fn missing(&self, record: Option<&RunRecord>) -> Vec<AskedSet> {
        let whole = FixedSet::of(Purpose::Test).map_or(0, |set| set.proofs);
        let proofs = self.proofs.map_or(whole, |n| n.min(whole));
        self.sets.iter().filter(|set| !record.is_some_and(|r| r.has(set, proofs))).cloned().collect()
    }
}

/// What a job still needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remaining {
    /// Nothing: its record is complete.
    Done,
    /// An evaluation; the weights are there.
    Evaluate,
    /// The rest of its training, which was interrupted, and all evaluations.
    Resume,
    /// All of its training and all evaluations.
    Train,
}

/// Where runs live.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Weights and checkpoints, not committed.
    pub runs: PathBuf,
    /// The records of runs and the ledgers, committed.
    pub results: PathBuf,
    /// The bundled models, if this machine has them.
    pub models: Option<PathBuf>,
}

impl Folders {
    /// The folder of a run.
    pub fn run(&self, name: &str) -> PathBuf {
        self.runs.join(name)
    }

    /// What a campaign keeps beside a run.
    pub fn campaign(&self, name: &str) -> CampaignFolder {
        CampaignFolder::new(self.run(name))
    }

    fn bundled(&self, name: &str) -> Option<PathBuf> {
        Some(self.models.as_ref()?.join(name))
    }

    /// The folder of the records.
    pub fn records(&self) -> PathBuf {
        self.results.join("runs")
    }

    /// The jobs that are not done.
    pub fn open_jobs(&self, jobs: Vec<Job>, records: &RunRecords) -> Result<Vec<Job>> {
        let mut open = Vec::new();
        for job in jobs {
            if self.remaining(&job, records)? != Remaining::Done {
                open.push(job);
            }
        }
        Ok(open)
    }

    /// The claims on jobs that are done. A process that was killed right after its last entry leaves one.
    pub fn claims_on_done(&self, jobs: &[Job], records: &RunRecords) -> Vec<PathBuf> {
        let done = jobs.iter().filter(|job| job.missing(records.get(&job.name)).is_empty());
        done.map(|job| self.campaign(&job.name).claim()).collect()
    }

    /// What a job still needs.
    pub fn remaining(&self, job: &Job, records: &RunRecords) -> Result<Remaining> {
        if job.missing(records.get(&job.name)).is_empty() {
            return Ok(Remaining::Done);
        }
        let run = self.run(&job.name);
        if is_trained(&run) {
            RunRecord::read(&run)?;
            return Ok(Remaining::Evaluate);
        }
        Ok(match () {
            () if RunFolder::new(&run).is_begun() => Remaining::Resume,
            () if self.weights(&job.name).is_some() => Remaining::Evaluate,
            () => Remaining::Train,
        })
    }

    /// The folder that holds the weights of a finished run, if this machine has them.
    pub fn weights(&self, name: &str) -> Option<PathBuf> {
        [Some(self.run(name)), self.bundled(name)].into_iter().flatten().find(|folder| is_trained(folder))
    }

    /// Makes sure that the weights of a run lie in its folder, where they are evaluated. A bundled model is copied, so that its
    /// own folder stays as it is.
    pub fn copy_bundled(&self, name: &str) -> Result<()> {
        let to = self.run(name);
        let Some(from) = self.bundled(name).filter(|_| !RunFolder::new(&to).is_begun()) else { return Ok(()) };
        std::fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
        let (from, to) = (RunFolder::new(from), RunFolder::new(to));
        for file in [RunFolder::model, RunFolder::metrics, RunFolder::log, RunFolder::config] {
            let (from, to) = (file(&from), file(&to));
            if from.exists() {
                std::fs::copy(&from, to).with_context(|| format!("cannot copy {}", from.display()))?;
            }
        }
        Ok(())
    }
}

/// Whether a run's folder holds a finished model.
fn is_trained(folder: &Path) -> bool {
    let folder = RunFolder::new(folder);
    folder.is_begun() && folder.model().exists() && folder.is_finished()
}

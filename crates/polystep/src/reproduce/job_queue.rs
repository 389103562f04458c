//! Which run is made next. Any number of commands, on any number of hosts, may work on one folder: a run belongs to whoever holds
//! its claim, a lease in the run's folder.
//!
//! A command never waits for a run that another one is making. It does wait until it knows whether that other one still lives.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use polystep_record::{CampaignFolder, Claim, Lease, LeaseHolder, LeaseWatch, same_job};

use super::job::{Folders, Job, Remaining};
use super::results_folder::ResultsFolder;
use crate::board::Board;
use crate::failure::Result;
use crate::interrupt;
use crate::table::counted;

/// How often a command looks whether the holder of a claim lives.
const LOOK: Duration = Duration::from_millis(200);

/// The jobs of a command that nobody here has begun.
pub struct JobQueue<'a> {
    folders: &'a Folders,
    pending: VecDeque<Job>,
    watch: LeaseWatch,
    /// Runs whose earlier failure does not count: they are tried once more.
    retried: BTreeSet<String>,
    /// Whether a line was printed about waiting.
    told: bool,
}

/// A look at the queue.
pub enum Look {
    /// A job, and the claim on it.
    Take(Box<Job>, Lease),
    /// Whether somebody is at a run is not known yet.
    Unclear,
    /// There is nothing to do for us.
    Nothing,
}

/// What became of the jobs.
#[derive(Debug, Default)]
pub struct Summary {
    /// Runs that were not finished because the time was too short, or because training was not asked for.
    pub left: Vec<String>,
    /// Runs that other processes are making.
    pub others: Vec<(String, LeaseHolder)>,
    /// Runs that failed here, or in an earlier session of the same Slurm task.
    pub failed: Vec<String>,
    /// Runs that failed elsewhere and were not tried here.
    pub failed_elsewhere: Vec<String>,
}

impl Summary {
    /// Adds what became of more runs.
    pub fn add(&mut self, other: Summary) {
        self.left.extend(other.left);
        self.others.extend(other.others);
        self.failed.extend(other.failed);
        self.failed_elsewhere.extend(other.failed_elsewhere);
    }

    /// An error if a run failed.
    pub fn into_result(self) -> Result<()> {
        match self.failed.as_slice() {
            [] => Ok(()),
            failed => {
                let runs = counted(failed.len(), "run");
                Err(anyhow::anyhow!("{runs} failed: {}", failed.join(", ")).into())
            }
        }
    }
}

impl<'a> JobQueue<'a> {
    /// The queue of some jobs. Runs that failed before are tried again; but a task of a Slurm array leaves them, since every
    /// other task would try them too.
    pub fn new(jobs: Vec<Job>, folders: &'a Folders, task: bool) -> Result<JobQueue<'a>> {
        let mut retried = BTreeSet::new();
        for job in jobs.iter().filter(|_| !task) {
            if folders.campaign(&job.name).failure()?.is_some() {
                retried.insert(job.name.clone());
            }
        }
        Ok(JobQueue { folders, pending: jobs.into(), watch: LeaseWatch::default(), retried, told: false })
    }

    /// Drops the jobs that nobody here has begun.
    pub fn close(&mut self) {
        self.pending.clear();
    }

    /// The jobs that nobody here has begun.
    pub fn pending(&self) -> impl Iterator<Item = &Job> {
        self.pending.iter()
    }

    /// Looks for a job that nobody is at, and claims it. `worthwhile` says whether a job can be begun now.
    pub fn look(
        &mut self,
        results: &mut ResultsFolder,
        board: &Board,
        worthwhile: impl Fn(&Job, Remaining) -> bool,
    ) -> Result<Look> {
        let mut unclear = None;
        let mut at = 0;
        while at < self.pending.len() {
            if interrupt::check().is_err() {
                return Ok(Look::Nothing);
            }
            let job = &self.pending[at];
            results.reload(&job.name)?;
            let remaining = self.folders.remaining(job, &results.records)?;
            if remaining == Remaining::Done {
                self.pending.remove(at);
                continue;
            }
            let campaign = self.folders.campaign(&job.name);
            let failed = !self.retried.contains(&job.name) && campaign.failure()?.is_some();
            if failed || !worthwhile(job, remaining) {
                at += 1;
                continue;
            }
            make_folder(&campaign)?;
            match self.watch.claim(&campaign.claim())? {
                Claim::Ours(claim) => {
                    // Somebody may have made it just before.
                    results.reload(&job.name)?;
                    if self.folders.remaining(job, &results.records)? == Remaining::Done {
                        self.pending.remove(at);
                        continue;
                    }
                    campaign.forget_failure()?;
                    self.retried.remove(&job.name);
                    let Some(job) = self.pending.remove(at) else { return Ok(Look::Nothing) };
                    return Ok(Look::Take(Box::new(job), claim));
                }
                Claim::Theirs(_) => {}
                Claim::Unclear(holder) => unclear = Some(format!("{}: {}", job.name, holder.described())),
            }
            at += 1;
        }
        let Some(unclear) = unclear else { return Ok(Look::Nothing) };
        if !std::mem::replace(&mut self.told, true) {
            board.say(&format!("{unclear}: waiting to see whether it lives"));
        }
        Ok(Look::Unclear)
    }

    /// Waits a moment before the next look.
    pub fn pause() {
        thread::sleep(LOOK);
    }

    /// Says what became of the jobs that nobody here has begun.
    pub fn sum_up(&self, summary: &mut Summary) -> Result<()> {
        for job in &self.pending {
            let campaign = self.folders.campaign(&job.name);
            let failure = campaign.failure()?;
            let ours = |holder: &LeaseHolder| same_job(holder, &LeaseHolder::own());
            match (failure, LeaseHolder::read(&campaign.claim())) {
                (_, Some(holder)) => summary.others.push((job.name.clone(), holder)),
                (Some(failure), None) if ours(&failure.holder) => summary.failed.push(job.name.clone()),
                (Some(_), None) => summary.failed_elsewhere.push(job.name.clone()),
                (None, None) => summary.left.push(job.name.clone()),
            }
        }
        Ok(())
    }
}

/// Makes the folder of a run.
pub fn make_folder(campaign: &CampaignFolder) -> Result<()> {
    let path = campaign.path();
    Ok(fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?)
}

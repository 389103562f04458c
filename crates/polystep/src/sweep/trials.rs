//! Takes trials that nobody is at, and trains them in this process, one after the other. Any number of processes may do so in
//! one folder.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use polystep_engine::EngineError;
use polystep_learn::LearnError;
use polystep_learn::log::{Event, Observer};
use polystep_learn::sweep::{MedianRule, Sweep, Trial, TrialFolder, TrialState};
use polystep_learn::train::{RunSetup, SessionEnd, Trainer};
use polystep_record::{CampaignFolder, Claim, Lease, LeaseHolder, LeaseWatch, RunFailure};

use super::show;
use crate::device::{Device, data_threads};
use crate::failure::Result;
use crate::interrupt;
use crate::output::note;
use crate::train_display::Display;

/// How often a process looks whether the holder of a trial lives.
const LOOK: Duration = Duration::from_millis(200);

/// Why a trial is cut off.
pub enum Ending {
    /// A signal.
    Interrupted,
    /// `--minutes` are over.
    TimeIsUp,
    /// The median rule, in its words.
    Hopeless(String),
}

/// What every trial is run on.
pub struct TrialRunner<'a> {
    /// The sweep.
    pub sweep: &'a Sweep,
    /// Its folder.
    pub out: &'a Path,
    /// Where to compute.
    pub device: Device,
    /// Threads.
    pub threads: usize,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Whether trials that could not go on are left to whoever gives the command again.
    pub task: bool,
}

impl TrialRunner<'_> {
    /// Runs every trial that has not ended and that nobody else is at, and says why if it stopped before.
    pub fn work(&self) -> Result<Option<Ending>> {
        let trials = self.sweep.trials();
        let mut watch = LeaseWatch::default();
        loop {
            let (mut taken, mut unclear) = (false, false);
            for (i, trial) in trials.iter().enumerate() {
                let folder = TrialFolder::new(self.out, trial);
                let over = || Ok::<bool, LearnError>(folder.state()?.is_some_and(TrialState::over));
                let campaign = CampaignFolder::new(folder.path());
                if over()? || self.task && campaign.failure()?.is_some() {
                    continue;
                }
                if let Some(cut) = self.cut() {
                    return Ok(Some(cut));
                }
                match folder.claim(&mut watch)? {
                    Claim::Ours(lease) if !over()? => {
                        taken = true;
                        campaign.forget_failure()?;
                        note(format_args!("{} of {}: {}", i + 1, trials.len(), trial.name));
                        let cut = self.trial(trial, &folder, lease)?;
                        show::write_csv(self.sweep, self.out)?;
                        if cut.is_some() {
                            return Ok(cut);
                        }
                    }
                    Claim::Unclear(_) => unclear = true,
                    _ => {}
                }
            }
            match (taken, unclear) {
                (true, _) => {}
                (false, true) => thread::sleep(LOOK),
                (false, false) => return Ok(None),
            }
        }
    }

    /// Runs a trial, and says why if it could not come to an end.
    fn trial(&self, trial: &Trial, folder: &TrialFolder, lease: Lease) -> Result<Option<Ending>> {
        let rule = MedianRule::new(self.sweep, self.out);
        let stop = AtomicBool::new(false);
        let mut watch = Watch { runner: self, trial, rule, stop: &stop, display: Display::new(), cut: None };
        let outcome = self.train(trial, folder, lease, &mut watch, &stop);
        let cut = watch.cut.take();
        drop(watch);
        let ended = match (outcome, cut) {
            (Ok(SessionEnd::Finished(report)), _) => {
                note(format_args!("  finished: {}", report.ended));
                folder.tidy()
            }
            (Ok(SessionEnd::Stopped { .. }), Some(Ending::Hopeless(why))) => {
                note(format_args!("  hopeless: {why}"));
                folder.end(TrialState::Hopeless, &why).and_then(|()| folder.tidy())
            }
            (Ok(SessionEnd::Stopped { .. }), cut) => return Ok(cut),
            (Err(error), _) if its_own_fault(&error) => {
                note(format_args!("  failed: {error}"));
                folder.end(TrialState::Failed, &error.to_string())
            }
            (Err(error), _) => {
                let (why, log) = (error.to_string(), "standard error".into());
                note(format_args!("  {} cannot go on: {why}", trial.name));
                let _ = CampaignFolder::new(folder.path()).fail(&RunFailure { why, log, holder: LeaseHolder::own() });
                Err(error)
            }
        };
        ended?;
        Ok(None)
    }

    fn train(
        &self,
        trial: &Trial,
        folder: &TrialFolder,
        lease: Lease,
        watch: &mut Watch<'_>,
        stop: &AtomicBool,
    ) -> std::result::Result<SessionEnd, LearnError> {
        let run = folder.run(lease, trial)?;
        let setup = RunSetup::without_test(trial.config.clone())?;
        let mut executor = self.device.executor(setup.programs(), setup.limits, self.threads)?;
        let data = data_threads(self.device, self.threads);
        Trainer::new(&setup, &run, executor.as_mut(), watch, data)?.run(stop)
    }

    /// Whether the whole sweep is to stop.
    fn cut(&self) -> Option<Ending> {
        if interrupt::flag().load(Ordering::SeqCst) {
            return Some(Ending::Interrupted);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Ending::TimeIsUp)
    }
}

/// Another trial may do better. Any other error (a full disk, a lost device) would meet them all.
fn its_own_fault(error: &LearnError) -> bool {
    matches!(error, LearnError::NonFinite { .. } | LearnError::Engine(EngineError::OutOfMemory { .. }))
}

/// Draws a trial's progress, and raises its flag when it is to stop.
struct Watch<'a> {
    runner: &'a TrialRunner<'a>,
    trial: &'a Trial,
    rule: MedianRule<'a>,
    stop: &'a AtomicBool,
    display: Display,
    cut: Option<Ending>,
}

impl Watch<'_> {
    fn judge(&mut self, event: &Event<'_>) -> Option<Ending> {
        if let Event::Valid(line) = event {
            // The logs hold what came before this line, in earlier sessions too. While one cannot be read, nobody is stopped.
            if let Ok(Some(why)) = self.rule.hopeless(&self.trial.name, line) {
                return Some(Ending::Hopeless(why));
            }
        }
        self.runner.cut()
    }
}

impl Observer for Watch<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.display.event(event);
        if self.cut.is_none() {
            self.cut = self.judge(event);
            self.stop.store(self.cut.is_some(), Ordering::SeqCst);
        }
    }
}

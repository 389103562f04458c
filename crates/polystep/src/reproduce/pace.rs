//! How long a run will take here: its plan's seconds on an NVIDIA H200, scaled by what finished runs took on this device.

use std::io::Write;

use polystep_engine::cuda::Cuda;
use polystep_study::records::Records;
use polystep_study::tables::{Experiment, Recipe};

use super::plan::Plans;
use super::runs::State;
use crate::device::Device;

/// The pace of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// The device's name, as runs record it.
    device: String,
    /// Seconds here for a second of the plan; none if no run was measured here.
    factor: Option<f64>,
}

impl Pace {
    /// From the records of runs on this device.
    pub fn of(device: Device, threads: usize, plans: &Plans, records: &Records) -> Pace {
        let device = name(device, threads);
        let mut ratios: Vec<f64> = Vec::new();
        for (table, _) in plans.iter().filter(|(_, plan)| plan.cost.is_some()) {
            for (_, need) in [Recipe::Fast, Recipe::Paper].into_iter().flat_map(|recipe| table.needs(recipe, 1)) {
                let run = records.get(&need.experiment.name()).map(|record| &record.metrics.run);
                let here = run.filter(|run| run.device.as_ref() == Some(&device)).and_then(|run| run.seconds);
                ratios
                    .extend(here.map(|seconds| seconds / training(plans, &need.experiment)).filter(|r| r.is_finite()));
            }
        }
        ratios.sort_by(f64::total_cmp);
        Pace { device, factor: ratios.get(ratios.len() / 2).copied() }
    }

    /// Seconds that are left of a run.
    pub fn left(&self, plans: &Plans, experiment: &Experiment, state: State) -> f64 {
        match state {
            State::Done => 0.0,
            State::Evaluate => self.evaluation(plans, experiment),
            State::Resume | State::Train => {
                self.scaled(training(plans, experiment)) + self.evaluation(plans, experiment)
            }
        }
    }

    /// Seconds that testing a model takes.
    pub fn evaluation(&self, plans: &Plans, experiment: &Experiment) -> f64 {
        let cost = plans.owner(experiment).and_then(|(_, plan)| plan.cost);
        self.scaled(cost.map_or(0.0, |cost| cost.seconds_per_evaluation))
    }

    fn scaled(&self, seconds: f64) -> f64 {
        seconds * self.factor.unwrap_or(1.0)
    }

    /// What the seconds stand for.
    pub fn describe(&self) -> String {
        match self.factor {
            Some(_) => format!("as runs took on {} so far", self.device),
            None => "as on an NVIDIA H200".into(),
        }
    }
}

/// Seconds of training by the plan.
fn training(plans: &Plans, experiment: &Experiment) -> f64 {
    let Some(cost) = plans.owner(experiment).and_then(|(_, plan)| plan.cost) else { return 0.0 };
    match (experiment.recipe, experiment.keys.setting.as_str()) {
        (Recipe::Paper, _) => cost.seconds_per_paper_run,
        (Recipe::Fast, "endpoint") => cost.seconds_per_endpoint_run,
        (Recipe::Fast, _) => cost.seconds_per_run,
    }
}

/// The device's name, as executors give it.
fn name(device: Device, threads: usize) -> String {
    let cuda = || Cuda::available().ok().map(|info| info.device);
    match device {
        Device::Cpu => None,
        Device::Auto | Device::Cuda => cuda(),
    }
    .unwrap_or_else(|| format!("CPU, {threads} thread{}", if threads == 1 { "" } else { "s" }))
}

/// `0:42`, `1:05:00`: seconds for people.
pub fn clock(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// A line on standard error; a closed one must not end the work.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

//! How long a run will take on this device. Its plan has the seconds on an NVIDIA H200. They are scaled by what finished runs
//! took on this device.
//!
//! Runs at the same time share the device. With N of them each takes N times as long, so that all together take as long as one
//! after the other. Several devices divide the work. A record does not say how many runs shared the device. So the fastest run sets the pace: it is the one that
//! shared least.

use polystep_engine::cuda::Cuda;
use polystep_record::PaperSetting;
use polystep_study::records::RunRecords;
use polystep_study::tables::{Experiment, Recipe};

use super::job::Remaining;
use super::table_plan::TablePlans;
use crate::device::Device;
use crate::table::counted;

/// The device on which the seconds of the plans were measured.
const PLANNED: &str = "NVIDIA H200";

/// The pace of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// The device's name, as runs record it.
    device: String,
    /// Seconds on this device for one second of the plan; none if the records have no run on this device.
    factor: Option<f64>,
    /// Runs at a time on one device.
    jobs: usize,
    /// Devices.
    devices: usize,
}

impl Pace {
    /// Measures the pace from the records of runs on this device. A run that stopped before its budget does not count.
    pub fn of(slots: &[Device], threads: usize, plans: &TablePlans, records: &RunRecords) -> Pace {
        let first = slots.first().copied().unwrap_or(Device::Auto);
        let jobs = slots.iter().filter(|slot| **slot == first).count().max(1);
        let device = name(first, threads);
        let mut ratios: Vec<f64> = Vec::new();
        for (table, _) in plans.iter().filter(|(_, plan)| plan.cost.is_some()) {
            for (_, need) in [Recipe::Fast, Recipe::Paper].into_iter().flat_map(|recipe| table.needs(recipe, 1)) {
                let Some(record) = records.get(&need.experiment.name()) else { continue };
                let run = &record.metrics.run;
                let budget = plans.config(&need.experiment).ok().and_then(|config| config.train.examples);
                let whole = budget.is_none_or(|budget| run.examples.is_some_and(|seen| seen >= budget));
                let seconds = run.seconds.filter(|_| whole && run.device.as_ref() == Some(&device));
                ratios.extend(seconds.map(|s| s / training(plans, &need.experiment)).filter(|r| r.is_finite()));
            }
        }
        Pace { device, factor: ratios.into_iter().reduce(f64::min), jobs, devices: slots.len() / jobs }
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Seconds that a run still needs, if `jobs` runs share the device.
    pub fn left(&self, plans: &TablePlans, experiment: &Experiment, remaining: Remaining) -> f64 {
        match remaining {
            Remaining::Done => 0.0,
            Remaining::Evaluate => self.evaluation(plans, experiment),
            Remaining::Resume | Remaining::Train => {
                self.scaled(training(plans, experiment)) + self.evaluation(plans, experiment)
            }
        }
    }

    /// Seconds that testing a model takes.
    pub fn evaluation(&self, plans: &TablePlans, experiment: &Experiment) -> f64 {
        let cost = plans.owner(experiment).and_then(|(_, plan)| plan.cost);
        self.scaled(cost.map_or(0.0, |cost| cost.seconds_per_evaluation))
    }

    fn scaled(&self, seconds: f64) -> f64 {
        seconds * self.factor.unwrap_or(1.0) * self.jobs as f64
    }

    /// Seconds that all runs take together, given the sum of the seconds of each.
    pub fn together(&self, seconds: f64) -> f64 {
        seconds / (self.jobs * self.devices.max(1)) as f64
    }

    /// Seconds for people. If the pace of this device is unknown, it names the device that the seconds are of.
    pub fn about(&self, seconds: f64) -> String {
        let time = clock(seconds);
        match self.factor {
            None if !self.device.contains(PLANNED) => {
                format!("{time} on an {PLANNED}; {} may take much longer", self.device)
            }
            _ => time,
        }
    }

    /// What the estimates assume.
    pub fn describe(&self) -> String {
        let at_a_time = match (self.jobs, self.devices) {
            (1, 0 | 1) => "one run at a time".to_owned(),
            (jobs, 0 | 1) => format!("{jobs} runs at a time"),
            (1, devices) => format!("one run at a time on each of {devices} devices"),
            (jobs, devices) => format!("{jobs} runs at a time on each of {devices} devices"),
        };
        match &self.factor {
            Some(_) => format!("{at_a_time}, as fast as the fastest run on {} so far", self.device),
            None => format!("{at_a_time}, on an {PLANNED}"),
        }
    }
}

/// Seconds of training by the plan.
fn training(plans: &TablePlans, experiment: &Experiment) -> f64 {
    let Some(cost) = plans.owner(experiment).and_then(|(_, plan)| plan.cost) else { return 0.0 };
    match (experiment.recipe, experiment.keys.setting) {
        (Recipe::Paper, _) => cost.seconds_per_paper_run,
        (Recipe::Fast, Some(PaperSetting::Endpoint)) => cost.seconds_per_endpoint_run,
        (Recipe::Fast, Some(PaperSetting::Calculator)) => {
            cost.seconds_per_calculator_run.unwrap_or(cost.seconds_per_run)
        }
        (Recipe::Fast, _) => cost.seconds_per_run,
    }
}

/// The device's name, as executors give it.
fn name(device: Device, threads: usize) -> String {
    match device {
        Device::Cpu => None,
        Device::Auto => Cuda::available().ok(),
        Device::Cuda(gpu) => Cuda::info(gpu.unwrap_or(0)).ok(),
    }
    .map(|info| info.device)
    .unwrap_or_else(|| format!("CPU, {}", counted(threads, "thread")))
}

/// `0:42`, `1:05:00`: seconds for people.
pub fn clock(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_study::metrics::{Metrics, Provenance};
    use polystep_study::records::RunRecord;
    use polystep_study::tables::PaperTable;

    #[test]
    fn a_device_that_nobody_measured_is_named() {
        let pace = |device: &str, factor| Pace { device: device.to_owned(), factor, jobs: 1, devices: 1 };
        let cpu = "1:11 on an NVIDIA H200; CPU, 2 threads may take much longer";
        assert_eq!(pace("CPU, 2 threads", None).about(71.0), cpu);
        assert_eq!(pace("CPU, 2 threads", Some(9.0)).about(71.0), "1:11");
        assert_eq!(pace("NVIDIA H200", None).about(71.0), "1:11");
    }

    /// The fastest complete run sets the pace. Of two runs at a time each takes twice as long; together they take no longer.
    #[test]
    fn runs_share_a_device() {
        let plans = TablePlans::read::<&std::path::Path>(&[]).expect("the repository's plans are right");
        let table = PaperTable::named("var1coarsefull").expect("a table");
        let device = Some(name(Device::Cpu, 2));
        let experiments: Vec<_> = table.needs(Recipe::Fast, 1).into_iter().map(|(_, need)| need.experiment).collect();
        let stepwise: Vec<_> = experiments.iter().filter(|e| !e.keys.is(PaperSetting::Endpoint)).collect();
        let mut records = RunRecords::default();
        let alone = training(&plans, stepwise[0]);
        // A run that shared the device, one that was alone, and one that was stopped early.
        for (experiment, times, examples) in [(0, 6.0, 7_000_064), (1, 3.0, 7_000_064), (2, 0.1, 64)] {
            let (seconds, examples) = (Some(times * alone), Some(examples));
            let run = Provenance { device: device.clone(), seconds, examples, ..Provenance::default() };
            let metrics = Metrics { run, ..Metrics::default() };
            let record = RunRecord { config: Default::default(), metrics, log: Vec::new() };
            records.insert(&stepwise[experiment].name(), record);
        }
        let left = |jobs: usize| {
            let pace = Pace::of(&[Device::Cpu].repeat(jobs), 2, &plans, &records);
            let each = pace.left(&plans, stepwise[3], Remaining::Train);
            (each, pace.together(each), pace.describe())
        };
        let whole = 3.0 * (alone + 6.0);
        let so_far = "as fast as the fastest run on CPU, 2 threads so far";
        assert_eq!(left(1), (whole, whole, format!("one run at a time, {so_far}")));
        assert_eq!(left(2), (2.0 * whole, whole, format!("2 runs at a time, {so_far}")));
        let pace = Pace { devices: 4, ..Pace::of(&[Device::Cpu; 2], 2, &plans, &records) };
        assert_eq!(pace.together(left(2).0), whole / 4.0);
        assert_eq!(pace.describe(), format!("2 runs at a time on each of 4 devices, {so_far}"));
    }
}

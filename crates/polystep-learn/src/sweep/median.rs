//! The median stopping rule (Golovin et al., "Google Vizier", 2017), on validation scores at equal numbers of examples.
//!
//! A trial that ended early counts with its best validation, even where others went further. Without it, a new trial would be
//! compared with the survivors alone, and would have to beat the better half of the better half. If the number of others is
//! even, the median is the worse of the two in the middle, since two pairs of scores have no mean.

use std::path::Path;

use super::file::{StopRule, Sweep, SweepTable};
use super::trial::{Curve, Score, TrialFolder, TrialState};
use crate::LearnError;
use crate::config::TrainTable;
use crate::train::{Spent, share};
use polystep_record::ValidLine;

/// The rule for one trial.
#[derive(Clone, Debug)]
pub struct MedianRule<'a> {
    settings: &'a SweepTable,
    train: &'a TrainTable,
    others: Vec<Curve>,
}

impl<'a> MedianRule<'a> {
    /// The rule for a trial that is trained as in `train`. It is compared with the trials in the sweep's folder that have ended.
    pub fn new(sweep: &'a Sweep, out: &Path, train: &'a TrainTable) -> Result<Self, LearnError> {
        let mut others = Vec::new();
        for trial in sweep.trials() {
            let folder = TrialFolder::new(out, trial);
            if folder.state()?.is_some_and(TrialState::over) {
                others.push(folder.curve()?);
            }
        }
        Ok(MedianRule { settings: &sweep.settings, train, others })
    }

    /// Why the trial has no hope, if it has none. `own` ends with the validation `now`.
    pub fn hopeless(&self, own: &Curve, now: &ValidLine) -> Option<String> {
        let spent = Spent { steps: now.step, examples: now.examples, seconds: now.seconds };
        if self.settings.stop == StopRule::Never || share(self.train, spent) < self.settings.grace {
            return None;
        }
        // Batches of 32 and of 128 do not validate at the same number of examples. So validations are compared by their round.
        let round = |examples: u64| examples.checked_div(self.train.valid_every).unwrap_or(examples);
        let best = |curve: &Curve| curve.best_within(|examples| round(examples) <= round(now.examples));
        let mut others: Vec<Score> = self.others.iter().filter_map(best).collect();
        if others.len() < self.settings.least {
            return None;
        }
        others.sort_by(Score::order);
        let median = others[(others.len() - 1) / 2];
        let own = best(own)?;
        let numbers = |s: &Score| {
            let [proofs, steps] = [s.full_proof, s.stepwise].map(|share| 100.0 * share);
            format!("{proofs:.1} % of proofs, {steps:.2} % of steps, loss {:.4}", s.loss)
        };
        own.order(&median).is_lt().then(|| {
            format!(
                "after {} examples its best validation ({}) is below the median of {} others ({})",
                now.examples,
                numbers(&own),
                others.len(),
                numbers(&median)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Recipe, RunConfig};

    fn line(examples: u64, full_proof: f64, stepwise: f64) -> ValidLine {
        let by_kind = Default::default();
        ValidLine {
            step: examples / 10,
            examples,
            full_proof,
            stepwise,
            by_kind,
            raw: false,
            loss: Some(1.0),
            best: false,
            seconds: 1.0,
        }
    }

    fn curve(points: &[(u64, f64, f64)]) -> Curve {
        let mut curve = Curve::default();
        points.iter().for_each(|&(examples, full, step)| curve.push(&line(examples, full, step)));
        curve
    }

    /// What the rule says of a trial with these validations. The budget is 1000 examples, a validation every 100.
    fn judged(settings: &SweepTable, others: &[&[(u64, f64, f64)]], own: &[(u64, f64, f64)]) -> Option<String> {
        let fast = RunConfig::of_recipe(Recipe::Fast).train;
        let train = TrainTable { examples: Some(1000), valid_every: 100, ..fast };
        let rule = MedianRule { settings, train: &train, others: others.iter().map(|o| curve(o)).collect() };
        let &(examples, full, step) = own.last().unwrap();
        rule.hopeless(&curve(own), &line(examples, full, step))
    }

    const THREE: [&[(u64, f64, f64)]; 3] =
        [&[(300, 0.1, 0.5), (600, 0.9, 0.9)], &[(310, 0.2, 0.5), (600, 0.9, 0.9)], &[(300, 0.3, 0.5), (600, 0.9, 0.9)]];

    #[test]
    fn below_the_median_at_as_many_examples_there_is_no_hope() {
        let settings = SweepTable::default();
        let why = judged(&settings, &THREE, &[(301, 0.1, 0.9)]).unwrap();
        assert_eq!(
            why,
            "after 301 examples its best validation (10.0 % of proofs, 90.00 % of steps, loss 1.0000) is below the median of 3 others \
             (20.0 % of proofs, 50.00 % of steps, loss 1.0000)"
        );
        // The median itself is good enough, and what the others reached later does not count.
        assert_eq!(judged(&settings, &THREE, &[(301, 0.2, 0.5)]), None);
        // Equal proofs: steps decide.
        assert!(judged(&settings, &THREE, &[(301, 0.2, 0.4)]).is_some());
    }

    #[test]
    fn the_best_so_far_is_judged_not_the_last() {
        let settings = SweepTable::default();
        assert_eq!(judged(&settings, &THREE, &[(200, 0.25, 0.5), (300, 0.0, 0.0)]), None);
    }

    #[test]
    fn grace_and_too_few_others_protect() {
        let bad = [(200, 0.0, 0.0)];
        let early: [&[(u64, f64, f64)]; 3] = [&[(200, 0.5, 0.5)]; 3];
        let with = |grace, least| SweepTable { grace, least, ..SweepTable::default() };
        assert_eq!(judged(&with(0.25, 3), &early, &bad), None);
        assert!(judged(&with(0.2, 3), &early, &bad).is_some());
        assert_eq!(judged(&with(0.2, 4), &early, &bad), None);
        // A trial that has no validation by then is none to compare with.
        assert_eq!(judged(&with(0.2, 3), &[early[0], early[1], &[(300, 0.5, 0.5)]], &bad), None);
        let never = SweepTable { stop: StopRule::Never, ..with(0.0, 1) };
        assert_eq!(judged(&never, &early, &bad), None);
    }

    #[test]
    fn who_ended_early_counts_with_the_best_it_had() {
        let others: [&[(u64, f64, f64)]; 4] =
            [&[(300, 0.1, 0.5)], &[(300, 0.1, 0.5)], &[(600, 0.8, 0.9)], &[(600, 0.9, 0.9)]];
        let settings = SweepTable::default();
        // Of 10, 10, 80 and 90 % the worse middle one is 10 %.
        assert_eq!(judged(&settings, &others, &[(600, 0.1, 0.5)]), None);
        assert!(judged(&settings, &others, &[(600, 0.1, 0.4)]).is_some());
    }
}

//! The median stopping rule (Golovin et al., "Google Vizier", 2017), on validation scores at equal numbers of examples.
//!
//! A trial is compared with the trials before it. So it does not matter how many trials run at a time, or where: the rule says what
//! it would say of trials one after the other. A trial is judged as soon as those before it are known as far as it has come. That may
//! be after it has spent more, or has finished; then what came after the judgement does not count. Hence the ranking is a function
//! of the learning curves alone.
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

/// Where a trial stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// What became of it, by the rule and by its folder; none if it has not begun.
    pub state: Option<TrialState>,
    /// Its validations, up to the one at which the rule stopped it.
    pub curve: Curve,
    /// Why it has no hope, if the rule says so, and what it had spent by then.
    pub hopeless: Option<(Spent, String)>,
}

impl Standing {
    /// Whether its curve will not change any more.
    fn is_over(&self) -> bool {
        self.state.is_some_and(TrialState::over)
    }
}

/// The rule for the trials of a sweep.
#[derive(Clone, Debug)]
pub struct MedianRule<'a> {
    sweep: &'a Sweep,
    out: &'a Path,
    /// The first trials in order, as far as nothing can change for them any more.
    settled: Vec<Standing>,
}

impl<'a> MedianRule<'a> {
    /// The rule for the trials in a sweep's folder.
    pub fn new(sweep: &'a Sweep, out: &'a Path) -> Self {
        MedianRule { sweep, out, settled: Vec::new() }
    }

    /// Why a trial has no hope, if it has none. `now` is its newest validation, which is not in its log yet.
    pub fn hopeless(&mut self, trial: &str, now: &ValidLine) -> Result<Option<String>, LearnError> {
        let last = self.standings(Some((trial, now)))?.pop();
        Ok(last.and_then(|standing| standing.hopeless).map(|(_, why)| why))
    }

    /// Where the trials stand, in order; with `now`, only up to that trial.
    pub fn standings(&mut self, now: Option<(&str, &ValidLine)>) -> Result<Vec<Standing>, LearnError> {
        let mut all = self.settled.clone();
        for trial in &self.sweep.trials()[all.len()..] {
            let folder = TrialFolder::new(self.out, trial);
            let (mut state, mut curve) = (folder.state()?, folder.curve()?);
            let now = now.filter(|(name, _)| *name == trial.name).map(|(_, line)| line);
            now.into_iter().for_each(|line| curve.push(line));
            let hopeless = judge(&self.sweep.settings, &trial.config.train, &all, &curve).map(|(length, why)| {
                state = Some(TrialState::Hopeless);
                curve.0.truncate(length);
                (curve.0[length - 1].0, why)
            });
            all.push(Standing { state, curve, hopeless });
            if now.is_some() {
                break;
            }
        }
        self.settled = all.iter().take_while(|standing| standing.is_over()).cloned().collect();
        Ok(all)
    }
}

/// At which of its validations a trial has no hope, if at any, and why. The others are the trials before it.
fn judge(settings: &SweepTable, train: &TrainTable, others: &[Standing], own: &Curve) -> Option<(usize, String)> {
    if settings.stop == StopRule::Never {
        return None;
    }
    // Batches of 32 and of 128 do not validate at the same number of examples. So validations are compared by their round.
    let round = |examples: u64| examples.checked_div(train.valid_every).unwrap_or(examples);
    for (i, (spent, _)) in own.0.iter().enumerate() {
        if share(train, *spent) < settings.grace {
            continue;
        }
        let now = round(spent.examples);
        let is_known = |other: &Standing| {
            other.is_over() || other.curve.0.last().is_some_and(|(spent, _)| round(spent.examples) > now)
        };
        if !others.iter().all(is_known) {
            return None;
        }
        let best = |curve: &Curve| curve.best_within(|examples| round(examples) <= now);
        let mut scores: Vec<Score> = others.iter().filter_map(|other| best(&other.curve)).collect();
        if scores.len() < settings.least {
            continue;
        }
        scores.sort_by(Score::order);
        let median = scores[(scores.len() - 1) / 2];
        let own = Curve(own.0[..=i].to_vec()).best()?;
        if own.order(&median).is_lt() {
            let numbers = |s: &Score| {
                let [proofs, steps] = [s.full_proof, s.stepwise].map(|share| 100.0 * share);
                format!("{proofs:.1} % of proofs, {steps:.2} % of steps, loss {:.4}", s.loss)
            };
            let why = format!(
                "after {} examples its best validation ({}) is below the median of {} others ({})",
                spent.examples,
                numbers(&own),
                scores.len(),
                numbers(&median)
            );
            return Some((i + 1, why));
        }
    }
    None
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
            averaged: false,
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
        let over = |points: &&[(u64, f64, f64)]| standing(Some(TrialState::Finished), points);
        judge(settings, &train, &others.iter().map(over).collect::<Vec<_>>(), &curve(own)).map(|(_, why)| why)
    }

    fn standing(state: Option<TrialState>, points: &[(u64, f64, f64)]) -> Standing {
        Standing { state, curve: curve(points), hopeless: None }
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

    /// A trial that runs beside others is judged when those before it have passed the place, and at the place where it would have
    /// been judged after them.
    #[test]
    fn trials_at_the_same_time_are_judged_as_if_one_came_after_the_other() {
        let fast = RunConfig::of_recipe(Recipe::Fast).train;
        let train = TrainTable { examples: Some(1000), valid_every: 100, ..fast };
        let judged = |others: &[Standing], own: &[(u64, f64, f64)]| {
            judge(&SweepTable::default(), &train, others, &curve(own)).map(|(length, _)| length)
        };
        let own = [(100, 0.0, 0.5), (300, 0.1, 0.5), (400, 0.9, 0.9)];
        let mut others: Vec<Standing> = THREE.iter().map(|o| standing(Some(TrialState::Finished), o)).collect();
        assert_eq!(judged(&others, &own), Some(2), "the later, better validation does not count");
        others[1] = standing(Some(TrialState::Stopped), &[(310, 0.2, 0.5)]);
        assert_eq!(judged(&others, &own), None, "round 3 of the second may have another validation");
        others[1] = standing(Some(TrialState::Stopped), &[(310, 0.2, 0.5), (410, 0.8, 0.8)]);
        assert_eq!(judged(&others, &own), Some(2));
        others[1] = standing(None, &[]);
        assert_eq!(judged(&others, &own), None);
    }
}

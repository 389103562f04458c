//! The learning rate, Adam's eps, when the late part begins, and how much of the budget is spent.
//!
//! A cosine ends with the budget. The budget may be counted in examples, steps or minutes. Of several budgets the one of which
//! the largest share is spent counts. With a budget in minutes the learning rate depends on the clock. This is the only case in
//! which a resumed run does not repeat an unbroken one bit for bit.

use crate::config::{Schedule, TrainTable};

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Optimiser steps done.
    pub steps: u64,
    /// Examples seen.
    pub examples: u64,
    /// Seconds of training.
    pub seconds: f64,
}

/// Share of the budget that is spent; 1 or more when it is over.
pub fn share(train: &TrainTable, spent: Spent) -> f64 {
    let of = |done: f64, all: Option<f64>| all.map_or(0.0, |all| if all > 0.0 { done / all } else { 1.0 });
    of(spent.examples as f64, train.examples.map(|n| n as f64))
        .max(of(spent.steps as f64, train.steps.map(|n| n as f64)))
        .max(of(spent.seconds, train.minutes.map(|m| 60.0 * m)))
}

/// The learning rate of the step that comes after `spent`: linear warm-up over the first steps, then constant, or a cosine
/// over the rest of the budget. The rate of the warm-up's first step is not 0, but lr / warmup.
pub fn learning_rate(train: &TrainTable, spent: Spent) -> f64 {
    let step = spent.steps + 1;
    if step <= train.warmup {
        return train.lr * step as f64 / train.warmup as f64;
    }
    match train.schedule {
        Schedule::Constant => train.lr,
        Schedule::Cosine => {
            // Where the warm-up ended, in shares of the budget: exact for a budget in steps, else by proportion, as if all batches
            // were alike. Late batches of another size shift it a little; the curve still ends at 0.
            let now = share(train, spent);
            let began = if spent.steps == 0 { 0.0 } else { now * train.warmup as f64 / spent.steps as f64 };
            let along = ((now - began) / (1.0 - began).max(f64::EPSILON)).clamp(0.0, 1.0);
            train.lr * 0.5 * (1.0 + (std::f64::consts::PI * along).cos())
        }
    }
}

/// Whether the step that comes after `spent` belongs to the late part of the budget.
pub fn is_late(train: &TrainTable, spent: Spent) -> bool {
    train.late.as_ref().is_some_and(|late| share(train, spent) >= late.from)
}

/// Adam's eps in the step that comes after `spent`.
pub fn eps(train: &TrainTable, spent: Spent) -> f64 {
    let late = train.late.as_ref().and_then(|late| late.eps).filter(|_| is_late(train, spent));
    late.unwrap_or(train.eps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LateTable, Recipe, RunConfig};

    fn at(train: &TrainTable, steps: u64) -> f64 {
        learning_rate(train, Spent { steps, examples: steps * train.batch as u64, seconds: 0.0 })
    }

    #[test]
    fn fast_warms_up_for_1000_steps_and_falls_to_0() {
        let train = TrainTable { examples: None, steps: Some(11_000), ..RunConfig::of_recipe(Recipe::Fast).train };
        assert_eq!(at(&train, 0), 6e-7);
        assert_eq!(at(&train, 499), 3e-4);
        assert_eq!(at(&train, 999), 6e-4);
        assert!((at(&train, 1000) - 6e-4).abs() < 1e-12);
        assert!((at(&train, 6000) - 3e-4).abs() < 1e-9, "{}", at(&train, 6000));
        assert!(at(&train, 10_999) < 1e-10);
    }

    #[test]
    fn a_budget_in_examples_gives_the_same_curve() {
        let fast = RunConfig::of_recipe(Recipe::Fast).train;
        let by_steps = TrainTable { examples: None, steps: Some(8000), ..fast.clone() };
        let by_examples = TrainTable { examples: Some(8000 * fast.batch as u64), steps: None, ..fast };
        for steps in [0, 10, 1000, 1001, 4000, 7999] {
            assert_eq!(at(&by_steps, steps), at(&by_examples, steps));
        }
    }

    #[test]
    fn paper_is_constant() {
        let train = RunConfig::of_recipe(Recipe::Paper).train;
        assert_eq!([at(&train, 0), at(&train, 5), at(&train, 100_000)], [1e-4; 3]);
    }

    #[test]
    fn the_late_part_begins_with_its_share_of_the_budget() {
        let late = Some(LateTable { from: 0.5, batch: None, eps: Some(1e-12) });
        let train = TrainTable { late, examples: None, steps: Some(10), ..RunConfig::of_recipe(Recipe::Fast).train };
        let at = |steps| eps(&train, Spent { steps, ..Spent::default() });
        assert_eq!([at(0), at(4), at(5), at(9)], [1e-8, 1e-8, 1e-12, 1e-12]);
    }

    #[test]
    fn the_furthest_budget_counts() {
        let train = TrainTable {
            examples: Some(1000),
            steps: Some(10),
            minutes: Some(2.0),
            ..RunConfig::of_recipe(Recipe::Fast).train
        };
        assert_eq!(share(&train, Spent { steps: 1, examples: 320, seconds: 30.0 }), 0.32);
        assert_eq!(share(&train, Spent { steps: 1, examples: 32, seconds: 60.0 }), 0.5);
        assert_eq!(share(&train, Spent { steps: 10, examples: 32, seconds: 1.0 }), 1.0);
    }
}

//! Shares that follow the errors: how often each class of steps is shown after an exam.
//!
//! The weight of a class is its error relative to the worst class, but at least the floor, so that no class dies. Errors are
//! averaged over exams. Each class counts as if one more answer had been wrong and one right: an exam without an error does
//! not say that there are none.
//!
//! [`crate::feed`] makes the batches and the exams.

use std::collections::BTreeMap;

use polystep_core::{ByClass, CLASSES, ClassWeights, StepClass};
use polystep_record::Proportion;
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// `[train.focus]`: the shares of the classes follow the errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FocusTable {
    /// Examples between two exams, at least; a round ends with a block.
    pub every: u64,
    /// The smallest weight of a class, relative to the class with the most errors.
    pub floor: f64,
    /// How much of the earlier exams counts in the next one: 0 for nothing.
    pub smoothing: f64,
}

impl Default for FocusTable {
    fn default() -> Self {
        FocusTable { every: 500_000, floor: 0.04, smoothing: 0.8 }
    }
}

impl FocusTable {
    /// If it cannot be followed, one sentence that says why.
    pub fn check(&self) -> Result<(), ConfigError> {
        let rules = [
            (self.every > 0, "train.focus.every must be at least 1"),
            ((0.001..=1.0).contains(&self.floor), "train.focus.floor must be between 0.001 and 1"),
            ((0.0..1.0).contains(&self.smoothing), "train.focus.smoothing must be at least 0 and below 1"),
        ];
        let broken = rules.into_iter().find(|(kept, _)| !kept);
        broken.map_or(Ok(()), |(_, why)| Err(ConfigError::new(why)))
    }
}

/// Where a run stands: part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FocusState {
    /// The round, from 0.
    pub round: u64,
    /// Examples trained on before the round began.
    pub began: u64,
    /// The step of the last exam.
    pub examined: u64,
    /// Wrong answers to each class; each exam counts less with every exam after it.
    pub wrong: ByClass<f64>,
    /// All answers, counted in the same way.
    pub asked: ByClass<f64>,
    /// How often the steps of each class are shown in this round.
    pub weights: ClassWeights,
}

impl FocusState {
    /// Before the first exam, with the weights of `[data.mix]`.
    pub fn begin(weights: ClassWeights) -> Self {
        let none = ByClass([0.0; CLASSES]);
        FocusState { round: 0, began: 0, examined: 0, wrong: none, asked: none, weights }
    }

    /// Whether a run can be at this place after this many steps and examples.
    pub(crate) fn is_possible(&self, step: u64, examples: u64) -> bool {
        let answers = self.wrong.0.iter().zip(&self.asked.0).all(|(w, n)| (0.0..=*n).contains(w) && n.is_finite());
        let weights = self.weights.0.iter().all(|weight| *weight >= 0.0 && weight.is_finite());
        answers && weights && self.began <= examples && self.examined <= step && self.round <= step
    }

    /// Takes note of an exam, by the names of classes, after (step, examples), and begins the next round. `mix` are the weights
    /// of `[data.mix]`.
    pub fn graded(
        &mut self,
        (step, examples): (u64, u64),
        right: &BTreeMap<String, Proportion>,
        mix: &ClassWeights,
        table: &FocusTable,
    ) {
        for class in StepClass::ALL {
            let (wrong, of) = right.get(class.name()).map_or((0, 0), |share| (share.of - share.count, share.of));
            let now = |before: f64, new: u64| table.smoothing * before + new as f64;
            *self.wrong.at(class) = now(self.wrong.of(class), wrong);
            *self.asked.at(class) = now(self.asked.of(class), of);
        }
        let error = |class| (self.wrong.of(class) + 1.0) / (self.asked.of(class) + 2.0);
        let examined = StepClass::ALL.into_iter().filter(|&class| self.asked.of(class) > 0.0);
        let worst = examined.map(error).fold(0.0, f64::max);
        let mut weights = ClassWeights::NATURAL;
        for class in StepClass::ALL.into_iter().filter(|&class| self.asked.of(class) > 0.0) {
            *weights.at(class) = (error(class) / worst).max(table.floor);
        }
        self.weights = weights.times(mix);
        (self.round, self.began, self.examined) = (self.round + 1, examples, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_several_exams_are_averaged() {
        let table = FocusTable { every: 60, floor: 0.05, smoothing: 0.5 };
        let scores = |bad| {
            let right = |class| Proportion::counted(if class == bad { 40 } else { 200 }, 200);
            [StepClass::Facstep, StepClass::Mul2Multi2, StepClass::Sumstep]
                .map(|c| (c.name().to_owned(), right(c)))
                .into()
        };
        let mut state = FocusState::begin(ClassWeights::NATURAL);
        let mix = ClassWeights::NATURAL;
        state.graded((10, 100), &scores(StepClass::Sumstep), &mix, &table);
        assert_eq!(state.weights.of(StepClass::Mul2Multi2), 0.05, "the floor");
        assert_eq!(state.weights.of(StepClass::Sumstep), 1.0);
        state.graded((20, 200), &scores(StepClass::Facstep), &mix, &table);
        // Of 300 answers 80 and 160 are wrong: (81/302) / (161/302).
        let weights =
            [StepClass::Sumstep, StepClass::Facstep, StepClass::Endpoint].map(|class| state.weights.of(class));
        assert!((weights[0] - 81.0 / 161.0).abs() < 1e-12, "{weights:?}");
        assert_eq!(weights[1..], [1.0, 1.0], "what is never asked stays as it is");
        let (of_mix, mut half) = (state.weights, ClassWeights::NATURAL);
        *half.at(StepClass::Facstep) = 0.5;
        state.graded((20, 200), &BTreeMap::new(), &half, &table);
        assert_eq!(state.weights.of(StepClass::Facstep), 0.5 * of_mix.of(StepClass::Facstep), "beside the mix");
        assert!(state.is_possible(20, 200) && !state.is_possible(20, 199) && !state.is_possible(19, 200));
    }
}

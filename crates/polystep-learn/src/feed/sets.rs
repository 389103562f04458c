//! Sets of steps that a model is judged on: the fixed sets, and the exams of a curriculum.
//!
//! [`Questions`] are the steps of a fixed set under one task, with the names of their proofs: `eval` asks a model these.
//! Validation and the test of a run take the same steps of all tasks together, as an [`EvalSet`].

use polystep_core::arithmetic::kind_name;
use polystep_core::sets::{FixedSet, SEED};
use polystep_core::{Examples, Purpose, Sampler, SpaceError, Task};
use polystep_record::proof_id;

/// The steps of a fixed set under a task.
pub struct Questions {
    task: Task,
    purpose: Purpose,
    seed: u64,
    examples: Examples,
}

impl Questions {
    /// The set of this purpose (test, valid or beam), or its first `most` steps.
    pub fn new(task: &Task, purpose: Purpose, most: usize) -> Result<Self, SpaceError> {
        match FixedSet::of(purpose) {
            Some(set) => Questions::of(task, FixedSet { steps: set.steps.min(most), ..set }),
            None => Ok(Questions { task: task.clone(), purpose, seed: SEED, examples: Examples::default() }),
        }
    }

    /// The steps of a set.
    pub fn of(task: &Task, set: FixedSet) -> Result<Self, SpaceError> {
        Ok(Questions { task: task.clone(), purpose: set.purpose, seed: SEED, examples: set.examples(task)? })
    }

    /// Proofs that belong to no set: the test stream of another seed.
    pub fn fresh(task: &Task, seed: u64, proofs: u64) -> Result<Self, SpaceError> {
        let mut sampler = Sampler::new(task, seed, Purpose::Test)?;
        let mut examples = Examples::default();
        for index in 0..proofs {
            sampler.write_examples(index, None, &mut examples);
        }
        Ok(Questions { task: task.clone(), purpose: Purpose::Test, seed, examples })
    }

    /// Keeps the steps of the first `proofs` proofs.
    pub fn first_proofs(mut self, proofs: usize) -> Self {
        self.examples.spans.retain(|s| (s.proof as usize) < proofs);
        self
    }

    /// How many steps.
    pub fn len(&self) -> usize {
        self.examples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.examples.is_empty()
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The steps.
    pub fn examples(&self) -> &Examples {
        &self.examples
    }

    /// The id of the proof that step `i` belongs to.
    pub fn id(&self, i: usize) -> String {
        let index = u64::from(self.examples.spans[i].proof);
        proof_id(&self.task.space.key, self.task.vars, self.purpose, self.seed, index)
    }
}

/// One step of an [`EvalSet`].
#[derive(Clone, Debug, PartialEq)]
pub struct EvalStep {
    /// Which proof it belongs to.
    pub proof: usize,
    /// What kind of step is expected; an exercise's carries its digits.
    pub kind: String,
    /// Source tokens.
    pub src: Vec<u8>,
    /// Target tokens.
    pub tgt: Vec<u8>,
}

/// Proofs that a model is scored on, step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalSet {
    /// The steps, in the order of their proofs.
    pub steps: Vec<EvalStep>,
    /// Number of proofs, with those that have no steps.
    pub proofs: usize,
}

impl EvalSet {
    /// The first proofs of each task's fixed set, at most `most` of each.
    pub fn fixed(tasks: &[Task], purpose: Purpose, most: u64) -> Result<Self, SpaceError> {
        let proofs = FixedSet::of(purpose).map_or(0, |set| set.proofs.min(most)) as usize;
        let mut steps = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            let Questions { examples, .. } = Questions::new(task, purpose, usize::MAX)?.first_proofs(proofs);
            steps.extend(examples.spans.iter().enumerate().map(|(step, span)| EvalStep {
                proof: i * proofs + span.proof as usize,
                kind: kind_name(span.kind, examples.src(step)),
                src: examples.src(step).to_vec(),
                tgt: examples.tgt(step).to_vec(),
            }));
        }
        Ok(EvalSet { steps, proofs: proofs * tasks.len() })
    }
}

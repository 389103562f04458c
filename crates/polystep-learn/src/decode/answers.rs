//! A model's answers to the fixed sets, as prediction records: what `polystep eval` writes and `polystep-study` reads.

use super::{
    Answered, BeamOptions, BeamResult, Hypothesis, RecursiveProof, Start, Stepper, beam_search, recursive_proofs,
};
use polystep_core::judge::evaluate_brackets;
use polystep_core::record::{Beam, PredictionRecord, proof_id};
use polystep_core::sets::{FixedSet, SEED};
use polystep_core::{Examples, Purpose, Sampler, Setting, SpaceError, Task, token};
use polystep_engine::EngineError;

/// The step examples of a fixed set under a task, with the names of their proofs.
pub struct Questions {
    task: Task,
    purpose: Purpose,
    seed: u64,
    examples: Examples,
}

impl Questions {
    /// The set of this purpose (test, valid or beam), or its first `most` steps.
    pub fn new(task: &Task, purpose: Purpose, most: usize) -> Result<Self, SpaceError> {
        let mut examples = match FixedSet::of(purpose) {
            Some(set) => set.examples(task)?,
            None => Examples::default(),
        };
        examples.spans.truncate(most);
        Ok(Questions { task: task.clone(), purpose, seed: SEED, examples })
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

    fn id(&self, i: usize) -> String {
        let index = u64::from(self.examples.spans[i].proof);
        proof_id(&self.task.space.key, self.task.vars, self.purpose, self.seed, index)
    }

    fn sources(&self) -> Vec<&[u8]> {
        (0..self.len()).map(|i| self.examples.src(i)).collect()
    }

    fn text(&self, tokens: &[u8]) -> String {
        token::decode(tokens, self.task.notation)
    }

    fn record(&self, i: usize, answers: &[Hypothesis]) -> PredictionRecord {
        let beam = |h: &Hypothesis| Beam { output: self.text(&h.tokens), logprob: f64::from(h.logprob) };
        PredictionRecord {
            proof: self.id(i),
            step: usize::from(self.examples.spans[i].step),
            kind: self.examples.kind(i),
            input: self.text(self.examples.src(i)),
            target: self.text(self.examples.tgt(i)),
            // An answer cut at the length limit is no answer.
            beams: answers.iter().filter(|h| h.finished).map(beam).collect(),
        }
    }

    /// Greedy answers, one record per step.
    pub fn greedy(
        &self,
        stepper: &mut dyn Stepper,
        answered: &mut Answered,
    ) -> Result<Vec<PredictionRecord>, EngineError> {
        let answers = answered.greedy(stepper, &self.sources())?;
        Ok(answers.iter().enumerate().map(|(i, a)| self.record(i, std::slice::from_ref(a))).collect())
    }

    /// Beam answers: records in headline order, and in the classic one.
    pub fn beam(
        &self,
        stepper: &mut dyn Stepper,
        options: BeamOptions,
    ) -> Result<(Vec<PredictionRecord>, Vec<PredictionRecord>), EngineError> {
        let results = beam_search(stepper, &self.sources(), options)?;
        let records = |pick: fn(&BeamResult) -> &[Hypothesis]| {
            results.iter().enumerate().map(|(i, r)| self.record(i, pick(r))).collect()
        };
        Ok((records(|r| &r.headline), records(|r| &r.lp1)))
    }

    /// Recursive proofs: (id, the model's proof, the expected states as text). Single-shot settings have none.
    pub fn recursive(&self, stepper: &mut dyn Stepper, answered: &mut Answered) -> Result<Vec<Recursion>, EngineError> {
        if matches!(self.task.setting, Setting::Endpoint | Setting::Arithmetic) {
            return Ok(Vec::new());
        }
        let mut recursions: Vec<Recursion> = Vec::new();
        let mut starts: Vec<Start> = Vec::new();
        for i in 0..self.len() {
            if self.examples.spans[i].step == 0 {
                let empty = RecursiveProof::default();
                recursions.push(Recursion { proof: self.id(i), expected: Vec::new(), found: empty });
                starts.push(Start { input: self.examples.src(i).to_vec(), steps: 0 });
            }
            if let (Some(recursion), Some(start)) = (recursions.last_mut(), starts.last_mut()) {
                start.steps += 1;
                let target = self.examples.tgt(i);
                let state = match self.task.setting {
                    Setting::Calculator => evaluate_brackets(target, self.task.notation).unwrap_or_default(),
                    _ => target.to_vec(),
                };
                recursion.expected.push(state);
            }
        }
        let found = recursive_proofs(stepper, &self.task, &starts, answered)?;
        for (recursion, found) in recursions.iter_mut().zip(found) {
            recursion.found = found;
        }
        Ok(recursions)
    }
}

/// One recursive proof beside the right one.
#[derive(Clone, Debug, PartialEq)]
pub struct Recursion {
    /// The id of the proof.
    pub proof: String,
    /// The right states after the start, brackets evaluated.
    pub expected: Vec<Vec<u8>>,
    /// What the model wrote.
    pub found: RecursiveProof,
}

//! Recursive proofs: the model's own output is its next input, until it stops.
//!
//! A proof ends at the first bare polynomial (annotated: at END; one-shot: at the first output), at an output that cannot be read, at a state seen before, or
//! after 2n + 4 steps, where n is the length of the right proof. In the calculator setting the brackets are evaluated after each
//! step. All proofs advance together: each round makes one greedy call, for the inputs that were not answered before.

use super::{AnswerCache, Stepper};
use polystep_core::{Setting, Writing, token};
use polystep_engine::EngineError;
use polystep_record::Stop;

/// A proof that a model wrote alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecursiveProof {
    /// What it wrote, step by step.
    pub outputs: Vec<Vec<u8>>,
    /// The same with brackets evaluated: each is the next input.
    pub states: Vec<Vec<u8>>,
    /// The log-probability of each step.
    pub logprobs: Vec<f32>,
    /// Why it stopped.
    pub stop: Stop,
}

/// What one output means for the proof.
enum Reading {
    Next(Vec<u8>),
    End(Vec<u8>),
    Malformed(Vec<u8>),
}

/// Where a proof starts, as the model reads it, and how many steps the right one has.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The first input.
    pub input: Vec<u8>,
    /// Steps of the right proof.
    pub steps: usize,
}

/// Writes a proof for every start.
pub fn recursive_proofs(
    stepper: &mut dyn Stepper,
    writing: &Writing,
    starts: &[Start],
    cache: &mut AnswerCache,
) -> Result<Vec<RecursiveProof>, EngineError> {
    let mut proofs = vec![RecursiveProof::default(); starts.len()];
    let mut walking: Vec<usize> = (0..starts.len()).filter(|&i| starts[i].steps > 0).collect();
    while !walking.is_empty() {
        let inputs: Vec<&[u8]> =
            walking.iter().map(|&i| proofs[i].states.last().unwrap_or(&starts[i].input).as_slice()).collect();
        let outputs = cache.greedy(stepper, &inputs)?;
        let mut next = Vec::with_capacity(walking.len());
        for (i, output) in walking.into_iter().zip(outputs) {
            let (proof, start) = (&mut proofs[i], &starts[i]);
            proof.logprobs.push(output.logprob);
            proof.outputs.push(output.tokens.clone());
            let (state, stop) = match read(output.tokens, output.finished, writing) {
                Reading::End(state) => (state, Some(Stop::End)),
                Reading::Malformed(state) => (state, Some(Stop::Malformed)),
                Reading::Next(state) => {
                    let seen = state == start.input || proof.states.contains(&state);
                    (state, seen.then_some(Stop::Loop))
                }
            };
            proof.states.push(state);
            match stop {
                Some(stop) => proof.stop = stop,
                None if proof.states.len() < 2 * start.steps + 4 => next.push(i),
                None => proof.stop = Stop::Limit,
            }
        }
        walking = next;
    }
    Ok(proofs)
}

fn read(output: Vec<u8>, finished: bool, writing: &Writing) -> Reading {
    if !finished {
        return Reading::Malformed(output);
    }
    let Some(tokens) = writing.evaluated(&output) else { return Reading::Malformed(output) };
    let ends = match writing.state(&tokens) {
        None => return Reading::Malformed(output),
        // A one-shot model writes once, whatever it wrote.
        Some(_) if writing.setting == Setting::Endpoint => true,
        Some(_) if writing.setting == Setting::Annotated => tokens.first() == Some(&token::END),
        Some(state) => state.is_endpoint(),
    };
    if ends { Reading::End(tokens) } else { Reading::Next(tokens) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Branch, Capacity, TopTokens};
    use polystep_core::Notation;
    use polystep_core::token::{EOS, encode};
    use std::collections::HashMap;

    /// Writes what a table says, token by token, with certainty.
    struct Parrot {
        answers: HashMap<Vec<u8>, Vec<u8>>,
        now: Vec<Vec<u8>>,
    }

    impl Stepper for Parrot {
        fn capacity(&self) -> Capacity {
            Capacity { hypotheses: 3, tokens: 1000, longest: 100 }
        }

        fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError> {
            self.now = sources.iter().map(|s| self.answers.get(*s).cloned().unwrap_or_default()).collect();
            Ok(())
        }

        fn step(&mut self, position: usize, open: &[Branch], _: usize, out: &mut TopTokens) -> Result<(), EngineError> {
            let token = |h: &Branch| self.now[h.source as usize].get(position).copied().unwrap_or(EOS);
            *out = TopTokens { k: 1, tokens: open.iter().map(token).collect(), logprobs: vec![-0.1; open.len()] };
            Ok(())
        }
    }

    fn walk(setting: Setting, table: &[(&str, &str)], start: &str, steps: usize) -> (Vec<String>, Stop) {
        let proof = proof(setting, table, start, steps);
        (proof.states.iter().map(|s| token::decode(s, Notation::Infix)).collect(), proof.stop)
    }

    fn proof(setting: Setting, table: &[(&str, &str)], start: &str, steps: usize) -> RecursiveProof {
        let writing = Writing { setting, ..Writing::default() };
        let answers = table.iter().map(|(a, b)| (encode(a).unwrap(), encode(b).unwrap())).collect();
        let start = Start { input: encode(start).unwrap(), steps };
        let mut proofs =
            recursive_proofs(&mut Parrot { answers, now: Vec::new() }, &writing, &[start], &mut AnswerCache::default())
                .unwrap();
        proofs.remove(0)
    }

    #[test]
    fn a_proof_ends_at_a_bare_polynomial() {
        let table = [("(x1)*(2)+(3)", "(2*x1)+(3)"), ("(2*x1)+(3)", "2*x1+3")];
        let (states, stop) = walk(Setting::Plain, &table, "(x1)*(2)+(3)", 2);
        assert_eq!((states, stop), (vec!["(2*x1)+(3)".into(), "2*x1+3".into()], Stop::End));
    }

    #[test]
    fn a_loop_and_nonsense_are_noticed() {
        let table = [("(x1)*(2)+(3)", "(2*x1)+(3)"), ("(2*x1)+(3)", "(x1)*(2)+(3)")];
        assert_eq!(walk(Setting::Plain, &table, "(x1)*(2)+(3)", 2).1, Stop::Loop);
        let table = [("(x1)*(2)+(3)", "(2*x1)+(3")];
        assert_eq!(walk(Setting::Plain, &table, "(x1)*(2)+(3)", 2).1, Stop::Malformed);
    }

    #[test]
    fn a_one_shot_model_writes_once() {
        let table = [("(x1)*(2)+(3)", "(2*x1)+(3)"), ("(2*x1)+(3)", "2*x1+3")];
        let (states, stop) = walk(Setting::Endpoint, &table, "(x1)*(2)+(3)", 1);
        assert_eq!((states, stop), (vec!["(2*x1)+(3)".into()], Stop::End));
    }

    #[test]
    fn the_calculator_works_in_the_loop() {
        let table = [("(3*x1)*(4)+(3)", "([3*4]*x1)+(3)"), ("(12*x1)+(3)", "12*x1+3")];
        let (states, stop) = walk(Setting::Calculator, &table, "(3*x1)*(4)+(3)", 2);
        assert_eq!((states, stop), (vec!["(12*x1)+(3)".into(), "12*x1+3".into()], Stop::End));
        let outputs = proof(Setting::Calculator, &table, "(3*x1)*(4)+(3)", 2).outputs;
        assert_eq!(outputs, table.map(|(_, written)| encode(written).unwrap()));
        assert_eq!(walk(Setting::Plain, &table, "(3*x1)*(4)+(3)", 2).1, Stop::Malformed);
    }
}

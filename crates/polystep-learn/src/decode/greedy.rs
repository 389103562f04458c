//! Greedy decoding: the best token at every step. Sequences that end leave the batch, so late steps are small.

use std::collections::{HashMap, HashSet};

use super::beam::groups;
use super::{Branch, Hypothesis, Stepper, TopTokens};
use polystep_core::token::{BOS, EOS};
use polystep_engine::EngineError;

/// Decodes every source, in the order given.
pub fn greedy(stepper: &mut dyn Stepper, sources: &[&[u8]]) -> Result<Vec<Hypothesis>, EngineError> {
    let empty = Hypothesis { tokens: Vec::new(), logprob: 0.0, finished: false };
    let mut answers = vec![empty; sources.len()];
    for group in groups(sources, stepper, 1) {
        let batch: Vec<&[u8]> = group.iter().map(|&i| sources[i]).collect();
        stepper.begin(&batch)?;
        let mut open: Vec<Branch> =
            (0..group.len() as u32).map(|source| Branch { source, parent: source, token: BOS }).collect();
        let mut top = TopTokens::default();
        for position in 0..stepper.capacity().longest {
            stepper.step(position, &open, 1, &mut top)?;
            let mut next = Vec::with_capacity(open.len());
            for (i, hypothesis) in open.iter().enumerate() {
                let (token, logprob) = top.of(i).next().expect("k is at least 1");
                let answer = &mut answers[group[hypothesis.source as usize]];
                answer.logprob += logprob;
                if token == EOS {
                    answer.finished = true;
                } else {
                    answer.tokens.push(token);
                    next.push(Branch { source: hypothesis.source, parent: i as u32, token });
                }
            }
            open = next;
            if open.is_empty() {
                break;
            }
        }
    }
    Ok(answers)
}

/// Greedy answers by their inputs. A model always gives an input the same answer, so nothing is asked twice. This saves much: a
/// proof that the model writes alone repeats the steps of the right proof until its first error.
#[derive(Debug, Default)]
pub struct AnswerCache {
    answers: HashMap<Vec<u8>, Hypothesis>,
}

impl AnswerCache {
    /// Decodes every source, in the order given; those that were answered before are looked up.
    pub fn greedy(&mut self, stepper: &mut dyn Stepper, sources: &[&[u8]]) -> Result<Vec<Hypothesis>, EngineError> {
        let mut new = HashSet::new();
        let mut asked = sources.to_vec();
        asked.retain(|&source| !self.answers.contains_key(source) && new.insert(source));
        for (source, answer) in asked.iter().zip(greedy(stepper, &asked)?) {
            self.answers.insert(source.to_vec(), answer);
        }
        Ok(sources.iter().map(|&source| self.answers[source].clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::toy::Toy;
    use super::*;

    #[test]
    fn follows_the_best_token() {
        let sources: Vec<Vec<u8>> = (0..40).map(|i| vec![i; 1 + i as usize % 3]).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut toy = Toy::new(3, 12);
        let answers = greedy(&mut toy, &sources).unwrap();
        for (source, answer) in sources.iter().zip(&answers) {
            let (mut token, mut logprob) = (BOS, 0.0);
            for position in 0.. {
                let (best, l) = toy.next(source, position, token)[0];
                logprob += l;
                match answer.tokens.get(position) {
                    Some(&t) => assert_eq!(t, best),
                    None if answer.finished => {
                        assert_eq!(best, EOS);
                        break;
                    }
                    None => {
                        assert_eq!(position, 12);
                        logprob -= l;
                        break;
                    }
                }
                token = best;
            }
            assert!((logprob - answer.logprob).abs() < 1e-5);
        }
        assert!(answers.iter().any(|a| a.finished) && answers.iter().any(|a| !a.finished));
    }

    #[test]
    fn nothing_is_asked_twice() {
        let [a, b, c]: [&[u8]; 3] = [&[1], &[2, 3], &[4]];
        let (mut toy, mut cache) = (Toy::new(3, 12), AnswerCache::default());
        let once = greedy(&mut toy, &[a, b, c]).unwrap();
        assert_eq!(cache.greedy(&mut toy, &[a, b, a]).unwrap(), [&once[0], &once[1], &once[0]].map(Clone::clone));
        assert_eq!(toy.sources.len(), 2);
        assert_eq!(cache.greedy(&mut toy, &[b, c, a]).unwrap(), [&once[1], &once[2], &once[0]].map(Clone::clone));
        assert_eq!(toy.sources, [c]);
    }
}

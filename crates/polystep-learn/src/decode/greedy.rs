//! Greedy decoding: the best token, again and again. Sequences that end leave the batch, so late steps are small.

use super::beam::groups;
use super::{Hypothesis, Lane, Stepper, TopTokens};
use polystep_core::token::{BOS, EOS};
use polystep_engine::EngineError;

/// Decodes every source, in the order given.
pub fn greedy(stepper: &mut dyn Stepper, sources: &[&[u8]]) -> Result<Vec<Hypothesis>, EngineError> {
    let empty = Hypothesis { tokens: Vec::new(), logprob: 0.0, finished: false };
    let mut answers = vec![empty; sources.len()];
    for group in groups(sources, stepper, 1) {
        let batch: Vec<&[u8]> = group.iter().map(|&i| sources[i]).collect();
        stepper.begin(&batch)?;
        let mut lanes: Vec<Lane> =
            (0..group.len() as u32).map(|source| Lane { source, parent: source, token: BOS }).collect();
        let mut top = TopTokens::default();
        for position in 0..stepper.max_tokens() {
            stepper.step(position, &lanes, 1, &mut top)?;
            let mut next = Vec::with_capacity(lanes.len());
            for (i, lane) in lanes.iter().enumerate() {
                let (token, logprob) = top.lane(i).next().expect("k is at least 1");
                let answer = &mut answers[group[lane.source as usize]];
                answer.logprob += logprob;
                if token == EOS {
                    answer.finished = true;
                } else {
                    answer.tokens.push(token);
                    next.push(Lane { source: lane.source, parent: i as u32, token });
                }
            }
            lanes = next;
            if lanes.is_empty() {
                break;
            }
        }
    }
    Ok(answers)
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
}

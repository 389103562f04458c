//! The model by itself: its own output is its next input, and every line is judged against the start.

use polystep_record::Stop;

use super::judged::judge;
use super::open::{OpenProof, ProveError};
use super::record::{ModelProof, ModelStep, margin};
use crate::decode::{AnswerCache, Author, BEAM_WIDTH, RecursiveProof, Start, Stepper, beam_search, recursive_proofs};

/// Has a model write proofs alone, with its beams if they are wanted.
pub(super) fn alone(
    open: Vec<OpenProof>,
    stepper: &mut dyn Stepper,
    alternatives: bool,
) -> Result<Vec<ModelProof>, ProveError> {
    let Some(writing) = open.first().map(|o| *o.writing()) else { return Ok(Vec::new()) };
    let start = |o: &OpenProof| Start {
        input: o.lines.first().map_or_else(Vec::new, |line| line.input.clone()),
        steps: o.lines.len(),
    };
    let starts: Vec<Start> = open.iter().map(start).collect();
    let walked = recursive_proofs(stepper, &writing, &starts, &mut AnswerCache::default())?;
    open.into_iter().zip(walked).map(|(open, walked)| judged(open, &walked, stepper, alternatives)).collect()
}

/// What a model wrote, judged line by line.
fn judged(
    open: OpenProof,
    walked: &RecursiveProof,
    stepper: &mut dyn Stepper,
    alternatives: bool,
) -> Result<ModelProof, ProveError> {
    let OpenProof { exact, lines, writing, mut proof } = open;
    proof.alone = true;
    let Some(first) = lines.first() else { return Ok(proof) };
    let text = |tokens: &[u8]| writing.text(tokens);
    let mut inputs: Vec<&[u8]> = vec![&first.input];
    inputs.extend(walked.states.iter().map(Vec::as_slice));
    let beams = match alternatives {
        true => beam_search(stepper, &inputs[..walked.states.len()], BEAM_WIDTH)?,
        false => Vec::new(),
    };
    let value = exact.start().value(writing.style.order)?;
    let judged = judge(&writing, &exact, &value, walked);
    for (i, (state, line)) in walked.states.iter().zip(judged.lines).enumerate() {
        let output = text(&walked.outputs[i]);
        let beams = beams.get(i).map_or(&[][..], |found| &found.headline);
        proof.push(ModelStep {
            input: text(inputs[i]),
            next: (walked.outputs[i] != *state).then(|| text(state)),
            logprob: walked.logprobs[i],
            margin: margin(beams),
            verdict: line.verdict,
            sentence: line.sentence,
            beams: beams.iter().map(|h| (text(&h.tokens), h.logprob)).collect(),
            line: output.clone(),
            output,
            author: Author::Model,
            probability: Some(walked.logprobs[i].exp()),
        });
    }
    (proof.stop, proof.answer_right) = (walked.stop, Some(judged.right));
    proof.right &= walked.stop == Stop::End;
    Ok(proof)
}

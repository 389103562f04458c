//! A model's answers to the steps of a set, as prediction records: what `polystep eval` writes and `polystep-study` reads.

use super::{
    AnswerCache, BeamResult, Hypothesis, RecursiveProof, Start, Stepper, assisted_steps, beam_search, recursive_proofs,
};
use crate::feed::Questions;
use polystep_core::Setting;
use polystep_core::writing::Line;
use polystep_engine::EngineError;
use polystep_record::{AssistedRecord, Beam, Prediction};

fn sources(questions: &Questions) -> Vec<&[u8]> {
    (0..questions.len()).map(|i| questions.examples().src(i)).collect()
}

fn record(questions: &Questions, i: usize, answers: &[Hypothesis]) -> Prediction {
    let examples = questions.examples();
    let text = |tokens: &[u8]| questions.task().writing.text(tokens);
    let beam = |h: &Hypothesis| Beam::finished(text(&h.tokens), f64::from(h.logprob));
    Prediction {
        proof: questions.id(i),
        step: usize::from(examples.spans[i].step),
        kind: examples.kind(i),
        input: text(examples.src(i)),
        target: text(examples.tgt(i)),
        // An answer that was cut at the length limit does not count.
        beams: answers.iter().filter(|h| h.finished).map(beam).collect(),
    }
}

/// Greedy answers, one record per step.
pub fn greedy_answers(
    questions: &Questions,
    stepper: &mut dyn Stepper,
    cache: &mut AnswerCache,
) -> Result<Vec<Prediction>, EngineError> {
    let answers = cache.greedy(stepper, &sources(questions))?;
    Ok(answers.iter().enumerate().map(|(i, a)| record(questions, i, std::slice::from_ref(a))).collect())
}

/// Answers of a search with `beam` beams: records in the order of the headline score, and in that of the classic score.
pub fn beam_answers(
    questions: &Questions,
    stepper: &mut dyn Stepper,
    beam: usize,
) -> Result<(Vec<Prediction>, Vec<Prediction>), EngineError> {
    let results = beam_search(stepper, &sources(questions), beam)?;
    let records = |pick: fn(&BeamResult) -> &[Hypothesis]| {
        results.iter().enumerate().map(|(i, r)| record(questions, i, pick(r))).collect()
    };
    Ok((records(|r| &r.headline), records(|r| &r.lp1)))
}

/// Who writes the steps of each proof when model and checker work together.
pub fn assisted_answers(
    questions: &Questions,
    stepper: &mut dyn Stepper,
    cache: &mut AnswerCache,
) -> Result<Vec<AssistedRecord>, EngineError> {
    let examples = questions.examples();
    let line = |i: usize| {
        let [input, target] = [examples.src(i), examples.tgt(i)].map(<[u8]>::to_vec);
        Line { kind: examples.kind(i), input, target, next: None }
    };
    let lines: Vec<Line> = (0..questions.len()).map(line).collect();
    let mut records: Vec<AssistedRecord> = Vec::new();
    for (i, step) in assisted_steps(stepper, &questions.task().writing, &lines, cache)?.iter().enumerate() {
        if examples.spans[i].step == 0 {
            records.push(AssistedRecord { proof: questions.id(i), authors: Vec::new() });
        }
        if let Some(record) = records.last_mut() {
            record.authors.push(step.author);
        }
    }
    Ok(records)
}

/// The proofs that the model writes alone, beside the right ones. A setting with only one step has none.
pub fn recursive_answers(
    questions: &Questions,
    stepper: &mut dyn Stepper,
    cache: &mut AnswerCache,
) -> Result<Vec<Recursion>, EngineError> {
    let (task, examples) = (questions.task(), questions.examples());
    if matches!(task.writing.setting, Setting::Endpoint | Setting::Arithmetic) {
        return Ok(Vec::new());
    }
    let mut recursions: Vec<Recursion> = Vec::new();
    let mut starts: Vec<Start> = Vec::new();
    for i in 0..questions.len() {
        if examples.spans[i].step == 0 {
            let found = RecursiveProof::default();
            recursions.push(Recursion { proof: questions.id(i), expected: Vec::new(), found });
            starts.push(Start { input: examples.src(i).to_vec(), steps: 0 });
        }
        if let (Some(recursion), Some(start)) = (recursions.last_mut(), starts.last_mut()) {
            start.steps += 1;
            let state = task.writing.evaluated(examples.tgt(i));
            recursion.expected.push(state.unwrap_or_default());
        }
    }
    let found = recursive_proofs(stepper, &task.writing, &starts, cache)?;
    for (recursion, found) in recursions.iter_mut().zip(found) {
        recursion.found = found;
    }
    Ok(recursions)
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

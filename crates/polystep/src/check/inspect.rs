//! One record judged, for `polystep check`: a proof by the core's audit, which believes nothing but its start; a step or a
//! prediction by what its input asks for. A step from elsewhere does not say how it is written: that is seen from its looks.

use polystep_core::{Check, Explanation, Granularity, Setting, StepKind, Verdict, Writing, token};
use polystep_record::audit::{AuditError, audit_proof, audit_step, check_lengths};
use polystep_record::{Prediction, ProofRecord, StepRecord};

use crate::generate::StepExample;

/// What was found out about one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of step that was expected.
    pub kind: StepKind,
    /// How it turned out.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub sentence: String,
    /// Which step of its proof.
    pub step: usize,
    /// What was read.
    pub input: String,
    /// What was written.
    pub output: String,
}

/// What was found out about one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The id of the proof.
    pub id: String,
    /// One per step.
    pub steps: Vec<Finding>,
    /// What is wrong with a proof beside its steps.
    pub broken: Option<String>,
}

/// Judges every step of a proof, and whether they lead from its start to its end.
pub fn proof(record: &ProofRecord) -> Findings {
    let id = record.id.clone();
    match audit_proof(record) {
        Err(error) => unchecked(id, &error),
        Ok(audit) => {
            let written = audit.steps.into_iter().zip(&record.steps).enumerate();
            let steps = written.map(|(i, (check, step))| finding(i, check, step)).collect();
            Findings { id, steps, broken: audit.ending.map(|why| why.to_string()) }
        }
    }
}

/// A record that cannot be checked at all.
fn unchecked(id: String, error: &AuditError) -> Findings {
    Findings { id, broken: Some(format!("It cannot be checked: {error}.")), ..Findings::default() }
}

fn finding(step: usize, check: Check, written: &StepRecord) -> Finding {
    Finding {
        kind: check.expected.unwrap_or(written.kind),
        verdict: check.verdict,
        sentence: check.why.to_string(),
        step,
        input: written.input.clone(),
        output: written.target.clone(),
    }
}

/// Judges a step on its own: is it the step that its input asks for?
pub fn step(example: &StepExample, granularity: Option<Granularity>, setting: Option<Setting>) -> Findings {
    let StepExample { proof, step, kind, input, target, next } = example;
    if let Err(error) = check_lengths([input, target].into_iter().chain(next).map(String::as_str)) {
        return unchecked(proof.clone(), &error);
    }
    let setting = setting.or(next.is_some().then_some(Setting::Calculator));
    let writing = writing_of(*kind, input, target, granularity, setting);
    let (id, written) =
        (proof.clone(), StepRecord { kind: *kind, input: input.clone(), target: target.clone(), next: next.clone() });
    let expected = token::encode(input).map_err(|_| Explanation::NotAsked).and_then(|input| writing.expected(&input));
    match expected {
        Err(why) => Findings { id, broken: Some(why.to_string()), ..Findings::default() },
        Ok(line) => {
            let check = audit_step(&writing, &line, &written);
            Findings { id, steps: vec![finding(*step, check, &written)], broken: None }
        }
    }
}

/// Judges the best answer of a prediction against its target, and whether any beam holds it.
pub fn prediction(record: &Prediction, granularity: Option<Granularity>, setting: Option<Setting>) -> (Findings, bool) {
    let Prediction { proof, step, kind, input, target, beams } = record;
    let outputs = beams.iter().map(|beam| &beam.output);
    if let Err(error) = check_lengths([input, target].into_iter().chain(outputs).map(String::as_str)) {
        return (unchecked(proof.clone(), &error), false);
    }
    let writing = writing_of(*kind, input, target, granularity, setting);
    let judge = |output: &str| writing.judge_text(*kind, target, output).verdict;
    let best = beams.first().map(|beam| beam.output.as_str());
    let finding = Finding {
        kind: *kind,
        verdict: best.map_or(Verdict::Malformed, judge),
        sentence: writing.explain(*kind, input, target, best).to_string(),
        step: *step,
        input: input.clone(),
        output: best.unwrap_or_default().to_owned(),
    };
    let findings = Findings { id: proof.clone(), steps: vec![finding], broken: None };
    (findings, beams.iter().any(|beam| judge(&beam.output).exact()))
}

/// How a step is written, as far as it is not given, by its looks.
fn writing_of(
    kind: StepKind,
    input: &str,
    target: &str,
    granularity: Option<Granularity>,
    setting: Option<Setting>,
) -> Writing {
    let seen = Writing::by_looks(kind, input, target);
    let writing = Writing { setting: setting.unwrap_or(seen.setting), ..seen };
    match granularity {
        Some(granularity) => Writing { granularity, ..writing },
        None => writing.fitted(input, target),
    }
}

#[cfg(test)]
mod tests {
    use polystep_core::{Notation, Purpose, Sampler, Space, Task};

    use super::*;

    /// A new switch, setting or kind of step whose files `check` does not know would be called wrong.
    #[test]
    fn every_generated_file_is_right() {
        for setting in Setting::ALL {
            for notation in Notation::ALL {
                for granularity in Granularity::known() {
                    let writing = Writing { setting, granularity, notation, ..Writing::default() };
                    if writing.validate().is_ok() {
                        generated(writing);
                    }
                }
            }
        }
    }

    fn generated(writing: Writing) {
        let task = Task { writing, ..Task::new(Space::named("medium_terms").unwrap(), 2) };
        let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
        for index in 0..6 {
            let record = ProofRecord::of(&mut sampler, index);
            right(&proof(&record), &writing);
            for (i, written) in record.steps.iter().enumerate() {
                let StepRecord { kind, input, target, next } = written.clone();
                let example = StepExample { proof: record.id.clone(), step: i, kind, input, target, next };
                right(&step(&example, None, None), &writing);
            }
        }
    }

    fn right(findings: &Findings, writing: &Writing) {
        let wrong = findings.steps.iter().find(|f| f.verdict != Verdict::Exact);
        assert!(findings.broken.is_none() && wrong.is_none(), "{writing:?}: {findings:?}");
    }
}

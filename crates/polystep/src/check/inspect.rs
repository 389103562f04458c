//! One record judged, for `polystep check`: a proof by the core's audit, which believes nothing but its start; a step or a
//! prediction by what its input asks for. A step from elsewhere does not say how it is written: that is seen from its looks.

use clap::Args;
use polystep_core::{Check, Explanation, Granularity, Setting, StepKind, Verdict, Writing, token};
use polystep_record::audit::{AuditError, audit_proof, audit_step, check_lengths};
use polystep_record::{Prediction, ProofRecord, StepRecord};

use crate::generate::StepExample;
use serde::Deserialize;

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

impl Findings {
    /// Whether every step is exact and nothing else is wrong.
    pub fn right(&self) -> bool {
        self.broken.is_none() && self.steps.iter().all(|f| f.verdict == Verdict::Exact)
    }

    /// The first step that is not exact, else the last one: what the verdict on the record rests on.
    pub fn decisive(&self) -> Option<&Finding> {
        self.steps.iter().find(|f| f.verdict != Verdict::Exact).or(self.steps.last())
    }

    /// A record that is wrong as a whole.
    fn broken(id: &str, why: impl ToString) -> Findings {
        Findings { id: id.to_owned(), broken: Some(why.to_string()), ..Findings::default() }
    }

    /// A record that cannot be checked at all.
    fn unchecked(id: &str, error: &AuditError) -> Findings {
        Findings::broken(id, format!("It cannot be checked: {error}."))
    }
}

/// Judges every step of a proof, and whether they lead from its start to its end.
pub fn proof(record: &ProofRecord) -> Findings {
    let id = record.id.clone();
    match audit_proof(record) {
        Err(error) => Findings::unchecked(&id, &error),
        Ok(audit) => {
            let written = audit.steps.into_iter().zip(&record.steps).enumerate();
            let steps = written.map(|(i, (check, step))| finding(i, check, step)).collect();
            Findings { id, steps, broken: audit.ending.map(|why| why.to_string()) }
        }
    }
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

/// An input and what was written for it, with what else is known.
#[derive(Deserialize, Debug, Default)]
pub struct JudgedAnswer {
    /// Who it belongs to.
    #[serde(default, alias = "id")]
    pub proof: String,
    /// Which step of a proof.
    #[serde(default)]
    pub step: usize,
    /// What was asked for, where that is known.
    pub kind: Option<StepKind>,
    /// What was read.
    pub input: String,
    /// What was to be written, where that is known.
    pub target: Option<String>,
    /// What was written.
    pub output: String,
}

/// What is known of how steps from elsewhere are written.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct GivenWriting {
    /// The setting of predictions and step examples [default: seen from each record]
    #[arg(long)]
    setting: Option<Setting>,
    /// The granularity of predictions and step examples [default: the one whose step leads to the target]
    #[arg(long)]
    granularity: Option<Granularity>,
}

impl GivenWriting {
    /// Judges a step on its own: is it the step that its input asks for?
    pub fn step(self, example: &StepExample) -> Findings {
        let StepExample { proof, step, kind, input, target, next } = example;
        if let Err(error) = check_lengths([input, target].into_iter().chain(next).map(String::as_str)) {
            return Findings::unchecked(proof, &error);
        }
        let setting = self.setting.or(next.is_some().then_some(Setting::Calculator));
        let writing = GivenWriting { setting, ..self }.of(*kind, input, target);
        let written = StepRecord { kind: *kind, input: input.clone(), target: target.clone(), next: next.clone() };
        let expected =
            token::encode(input).map_err(|_| Explanation::NotAsked).and_then(|input| writing.expected(&input));
        match expected {
            Err(why) => Findings::broken(proof, why),
            Ok(line) => {
                let steps = vec![finding(*step, audit_step(&writing, &line, &written), &written)];
                Findings { id: proof.clone(), steps, broken: None }
            }
        }
    }

    /// Judges the best answer of a prediction, and whether any beam is exact.
    pub fn prediction(self, record: &Prediction) -> (Findings, bool) {
        let Prediction { proof, step, kind, input, target, beams } = record;
        let outputs: Vec<&str> = beams.iter().map(|beam| beam.output.as_str()).collect();
        self.answers((proof, *step), (Some(*kind), input, Some(target)), &outputs)
    }

    /// Judges an answer that may say no more than its input and output.
    pub fn answer(self, record: &JudgedAnswer) -> (Findings, bool) {
        let JudgedAnswer { proof, step, kind, input, target, output } = record;
        self.answers((proof, *step), (*kind, input, target.as_deref()), &[output])
    }

    /// Judges answers against the target, or against what the input asks for if there is no target or it cannot be right.
    fn answers(
        self,
        (proof, step): (&str, usize),
        (kind, input, target): (Option<StepKind>, &str, Option<&str>),
        outputs: &[&str],
    ) -> (Findings, bool) {
        if let Err(error) = check_lengths([input].into_iter().chain(target).chain(outputs.iter().copied())) {
            return (Findings::unchecked(proof, &error), false);
        }
        let best = outputs.first().copied();
        let looks = target.or(best).unwrap_or_default();
        // Without a kind the looks decide between steps of proofs and exercises, which have no parentheses.
        let exercise = || self.setting == Some(Setting::Arithmetic);
        let guessed = if exercise() { StepKind::Add } else { StepKind::Sumstep };
        let writing = self.of(kind.unwrap_or(guessed), input, looks);
        let expected = || token::encode(input).map_err(|_| Explanation::NotAsked).and_then(|i| writing.expected(&i));
        let readable = |target: &str| {
            let tokens = token::encode(target).ok();
            let state = || writing.state(&writing.evaluated(tokens.as_ref()?)?);
            tokens.is_some() && (writing.setting == Setting::Arithmetic || state().is_some())
        };
        let (kind, target, why_other) = match (kind, target) {
            (Some(kind), Some(target)) if readable(target) => (kind, target.to_owned(), ""),
            (_, target) => match expected() {
                Ok(line) => {
                    let why = if target.is_some() { "The record's target cannot be read. " } else { "" };
                    (line.kind, writing.text(&line.target), why)
                }
                Err(why) => return (Findings::broken(proof, why), false),
            },
        };
        let judge = |output: &str| writing.judge_text(kind, &target, output).verdict;
        let finding = Finding {
            kind,
            verdict: best.map_or(Verdict::Malformed, judge),
            sentence: format!("{why_other}{}", writing.explain(kind, input, &target, best)),
            step,
            input: input.to_owned(),
            output: best.unwrap_or_default().to_owned(),
        };
        let findings = Findings { id: proof.to_owned(), steps: vec![finding], broken: None };
        (findings, outputs.iter().any(|output| judge(output).exact()))
    }

    /// How a step is written, as far as it is not given, by its looks.
    fn of(self, kind: StepKind, input: &str, target: &str) -> Writing {
        let seen = Writing::by_looks(kind, input, target);
        let writing = Writing { setting: self.setting.unwrap_or(seen.setting), ..seen };
        match self.granularity {
            Some(granularity) => Writing { granularity, ..writing },
            None => writing.fitted(input, target),
        }
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
                        generated("medium_terms", writing);
                        generated("small_coeff/signed", writing);
                    }
                }
            }
        }
    }

    fn generated(key: &str, writing: Writing) {
        let task = Task { writing, ..Task::new(Space::of_key(key).unwrap(), 2) };
        let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
        for index in 0..6 {
            let record = ProofRecord::of(&mut sampler, index);
            right(&proof(&record), &writing);
            for (i, written) in record.steps.iter().enumerate() {
                let StepRecord { kind, input, target, next } = written.clone();
                let example = StepExample { proof: record.id.clone(), step: i, kind, input, target, next };
                right(&GivenWriting::default().step(&example), &writing);
            }
        }
    }

    fn right(findings: &Findings, writing: &Writing) {
        let wrong = findings.steps.iter().find(|f| f.verdict != Verdict::Exact);
        assert!(findings.broken.is_none() && wrong.is_none(), "{writing:?}: {findings:?}");
    }
}

//! Checking files: every step of a proof record against the proof that its start has, every prediction against its target.
//!
//! A record is believed in nothing but its start and its settings: inputs, targets, kinds and the end are all proved again.

use std::collections::BTreeMap;

use crate::check::{Check, Verdict, check_step};
use crate::judge::{Judgement, judge_text, untagged};
use crate::notation::{Notation, NotationError, Style, parse};
use crate::poly::ArithmeticError;
use crate::proof::{Line, Proof};
use crate::record::{PredictionRecord, ProofRecord, StepRecord};
use crate::task::{Setting, StepKind};
use crate::token;

/// Why a proof record cannot be checked at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuditError {
    /// Its start is not a state.
    #[error("the start cannot be read: {0}")]
    Start(#[from] NotationError),
    /// Its numbers are too large.
    #[error("{0}")]
    Arithmetic(#[from] ArithmeticError),
    /// Annotated proofs exist in infix only.
    #[error("annotated proofs are written in infix only")]
    AnnotatedPrefix,
}

/// How many steps of each kind had which verdict.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    counts: BTreeMap<(StepKind, Verdict), u64>,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, kind: StepKind, verdict: Verdict) {
        *self.counts.entry((kind, verdict)).or_default() += 1;
    }

    /// How many steps of a kind had a verdict.
    pub fn count(&self, kind: StepKind, verdict: Verdict) -> u64 {
        self.counts.get(&(kind, verdict)).copied().unwrap_or(0)
    }

    /// How many steps had a verdict.
    pub fn total(&self, verdict: Verdict) -> u64 {
        StepKind::ALL.iter().map(|&k| self.count(k, verdict)).sum()
    }

    /// The kinds that occur.
    pub fn kinds(&self) -> Vec<StepKind> {
        StepKind::ALL.into_iter().filter(|&k| Verdict::ALL.iter().any(|&v| self.count(k, v) > 0)).collect()
    }
}

impl From<Judgement> for Verdict {
    fn from(judgement: Judgement) -> Verdict {
        match judgement {
            Judgement { exact: true, .. } => Verdict::Exact,
            Judgement { symbolic: true, .. } => Verdict::SameValue,
            Judgement { malformed: true, .. } => Verdict::Malformed,
            _ => Verdict::WrongValue,
        }
    }
}

/// Checks every step of a proof record; steps that are missing at the end are reported as one more check.
pub fn audit_proof(record: &ProofRecord) -> Result<Vec<Check>, AuditError> {
    let ProofRecord { setting, granularity, notation, style, .. } = *record;
    if setting == Setting::Annotated && notation == Notation::Prefix {
        return Err(AuditError::AnnotatedPrefix);
    }
    let (expected, end) = if setting == Setting::Arithmetic {
        let line = exercise(&record.start, notation);
        let end = line.as_ref().map(|l| token::decode(&l.target, notation));
        (line.into_iter().collect(), end)
    } else {
        let proof = Proof::of(&parse(&record.start, notation, style)?, granularity, style)?;
        let end = crate::notation::print(proof.end(), notation, style);
        (proof.lines(setting, notation, style), Some(end))
    };
    let mut checks: Vec<Check> = Vec::with_capacity(record.steps.len());
    for (i, step) in record.steps.iter().enumerate() {
        checks.push(match expected.get(i) {
            Some(line) => audit_step(record, step, &StepRecord::new(line, notation))?,
            None => verdict(Verdict::SameValue, None, "The proof was already finished before this step.".to_owned()),
        });
    }
    if let Some(line) = expected.get(record.steps.len()) {
        let missing = expected.len() - record.steps.len();
        let sentence = format!("The proof stops too early: {missing} more steps lead to the endpoint.");
        checks.push(verdict(Verdict::SameValue, Some(line.kind), sentence));
    } else if end.as_deref() != Some(record.end.as_str()) {
        let sentence = format!("The record's end is not the endpoint, {}.", end.unwrap_or_default());
        checks.push(verdict(Verdict::WrongValue, None, sentence));
    }
    Ok(checks)
}

fn verdict(verdict: Verdict, expected: Option<StepKind>, sentence: String) -> Check {
    Check { verdict, expected, expected_state: None, sentence, error: None }
}

fn audit_step(record: &ProofRecord, step: &StepRecord, expected: &StepRecord) -> Result<Check, AuditError> {
    let ProofRecord { setting, granularity, notation, style, .. } = *record;
    let kind = expected.kind;
    let judged = judge_text(kind, setting, notation, style, &expected.target, &step.target);
    let plain = matches!(setting, Setting::Plain | Setting::Calculator);
    if !judged.exact {
        if plain && let Ok(before) = parse(&expected.input, notation, style) {
            let check = check_step(&before, &step.target, granularity, notation, style)?;
            if check.verdict != Verdict::Exact {
                return Ok(check);
            }
        }
        let sentence = format!("Not the expected {kind}: expected {}.", expected.target);
        return Ok(verdict(judged.into(), Some(kind), sentence));
    }
    let complaint = if step.input != expected.input {
        Some(format!("The step does not start where the one before it ended: expected {}.", expected.input))
    } else if step.kind != kind {
        Some(format!("This is a {kind}, not a {}.", step.kind))
    } else if !judged.raw_exact {
        Some(format!("The brackets should be left open as {}.", expected.target))
    } else if step.next != expected.next {
        Some("The evaluated state does not follow from the brackets.".to_owned())
    } else {
        None
    };
    Ok(match complaint {
        Some(sentence) => verdict(Verdict::SameValue, Some(kind), sentence),
        None => verdict(Verdict::Exact, Some(kind), format!("Right: this is the expected {kind}.")),
    })
}

/// `1234+5678` and its value.
fn exercise(start: &str, notation: Notation) -> Option<Line> {
    let input = token::encode(start).ok()?;
    let (sign, infix): (u8, Vec<u8>) = match notation {
        Notation::Infix => (*input.iter().find(|t| [token::PLUS, token::TIMES].contains(t))?, input.clone()),
        Notation::Prefix => {
            let numbers = input.get(1..)?.strip_prefix(&[token::INT])?;
            let sign = *input.first()?;
            (sign, numbers.iter().map(|&t| if t == token::INT { sign } else { t }).collect())
        }
    };
    let bracket = [&[token::BRACKET][..], &infix, &[token::UNBRACKET]].concat();
    let digits = crate::judge::evaluate_brackets(&bracket, Notation::Infix)?;
    let target = match notation {
        Notation::Infix => digits,
        Notation::Prefix => [&[token::INT][..], &digits].concat(),
    };
    let kind = if sign == token::PLUS { StepKind::Add } else { StepKind::Mul };
    Some(Line { kind, input, target, next: None })
}

impl PredictionRecord {
    /// The notation that the target is written in.
    pub fn notation(&self) -> Notation {
        let prefix = ["INT+", "+P", "*F"].iter().any(|t| self.target.contains(t)) || self.input.contains("INT+");
        if prefix { Notation::Prefix } else { Notation::Infix }
    }

    /// The setting, as far as the record shows it: a plain and a calculator step without brackets look alike.
    pub fn setting(&self) -> Setting {
        match self.kind {
            StepKind::Add | StepKind::Mul => Setting::Arithmetic,
            StepKind::Endpoint => Setting::Endpoint,
            _ if token::encode(&self.target).is_ok_and(|t| untagged(&t).is_some()) => Setting::Annotated,
            _ if self.target.contains('[') => Setting::Calculator,
            _ => Setting::Plain,
        }
    }

    /// Judges each beam.
    pub fn judgements(&self, setting: Setting, notation: Notation, style: Style) -> Vec<Judgement> {
        self.beams
            .iter()
            .map(|beam| judge_text(self.kind, setting, notation, style, &self.target, &beam.output))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::Sampler;
    use crate::record::Beam;
    use crate::space::Space;
    use crate::stream::Purpose;
    use crate::task::Task;

    fn records(setting: Setting, notation: Notation) -> Vec<ProofRecord> {
        let task = Task { setting, notation, ..Task::new(Space::named("medium_terms").unwrap(), 2) };
        let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
        (0..20).map(|i| sampler.record(i)).collect()
    }

    #[test]
    fn generated_records_are_right() {
        for setting in Setting::ALL {
            for notation in [Notation::Infix, Notation::Prefix] {
                if setting == Setting::Annotated && notation == Notation::Prefix {
                    continue;
                }
                for record in records(setting, notation) {
                    let checks = audit_proof(&record).unwrap();
                    assert_eq!(checks.len(), record.steps.len());
                    assert!(checks.iter().all(|c| c.verdict == Verdict::Exact), "{record:?} {checks:?}");
                }
            }
        }
    }

    #[test]
    fn a_missing_step_is_noticed() {
        let mut record = records(Setting::Plain, Notation::Infix).remove(0);
        record.steps.pop();
        let checks = audit_proof(&record).unwrap();
        assert!(checks.last().unwrap().sentence.contains("stops too early: 1 more"));
        record.steps.remove(0);
        assert!(audit_proof(&record).unwrap().iter().any(|c| c.verdict == Verdict::SameValue));
    }

    #[test]
    fn predictions_are_judged() {
        let beam = |output: &str| Beam { output: output.to_owned(), logprob: -1.0 };
        let record = PredictionRecord {
            proof: "p".to_owned(),
            step: 0,
            kind: StepKind::Mulstep,
            input: "(2)*(3)+(1)".to_owned(),
            target: "([2*3])+(1)".to_owned(),
            beams: vec![beam("([2*3])+(1)"), beam("(6)+(1)"), beam("(5)+(1)"), beam("(5+(1)")],
        };
        assert_eq!((record.setting(), record.notation()), (Setting::Calculator, Notation::Infix));
        let judged = record.judgements(record.setting(), record.notation(), Style::default());
        let verdicts: Vec<Verdict> = judged.into_iter().map(Verdict::from).collect();
        assert_eq!(verdicts, [Verdict::Exact, Verdict::Exact, Verdict::WrongValue, Verdict::Malformed]);
    }
}

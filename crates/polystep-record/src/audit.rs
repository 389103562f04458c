//! Checks proof records: every step is compared with the proof that the start of the record has.
//!
//! Only the start and the writing of a record are trusted. Its inputs, targets, kinds and end are all derived again.

use polystep_core::arithmetic::Exercise;
use polystep_core::{
    ArithmeticError, Check, Explanation, Line, NotationError, Setting, Verdict, Writing, WritingError, token,
};

use crate::proof::{ProofRecord, StepRecord};

/// Why a proof record cannot be checked at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuditError {
    /// Its start is not a state.
    #[error("the start cannot be read: {0}")]
    Start(#[from] NotationError),
    /// Its numbers are too large.
    #[error("{0}")]
    Arithmetic(#[from] ArithmeticError),
    /// No proof is written in this way.
    #[error("{0}")]
    Writing(#[from] WritingError),
    /// A state is longer than the states of a record may be.
    #[error("a state has {0} tokens; the states of a record have at most {MAX_TOKENS}")]
    Tokens(usize),
    /// The start has more products than that of a record may have.
    #[error("the start has {0} products; that of a record has at most {MAX_PRODUCTS}")]
    Products(usize),
}

/// The most tokens in a state of a record. A record may come from anywhere, so checking it must not take all of a machine. The
/// states of the paper's spaces have a few hundred tokens.
pub const MAX_TOKENS: usize = 1 << 15;

/// The most products in the start of a record. A state of a space has at most 32.
pub const MAX_PRODUCTS: usize = 1 << 12;

/// An error if a state of a record has more than [`MAX_TOKENS`].
pub fn check_lengths<'a>(states: impl IntoIterator<Item = &'a str>) -> Result<(), AuditError> {
    // A token has at least one character, so most texts need not be read.
    for text in states.into_iter().filter(|text| text.len() > MAX_TOKENS) {
        let tokens = token::encode(text).map_or(text.len(), |tokens| tokens.len());
        if tokens > MAX_TOKENS {
            return Err(AuditError::Tokens(tokens));
        }
    }
    Ok(())
}

/// The result of checking a proof record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    /// One check per step.
    pub steps: Vec<Check>,
    /// What is wrong with its end, if anything.
    pub ending: Option<Explanation>,
}

/// Checks every step of a proof record, and that they lead to its end.
pub fn audit_proof(record: &ProofRecord) -> Result<Audit, AuditError> {
    let writing = record.writing();
    writing.validate()?;
    check_lengths(
        [record.start.as_str(), &record.end].into_iter().chain(record.steps.iter().flat_map(StepRecord::texts)),
    )?;
    if writing.setting == Setting::Arithmetic {
        let exercise = token::encode(&record.start).ok().and_then(|start| Exercise::read(&start, writing.notation));
        let line = exercise.map(|exercise| exercise.line(writing.notation));
        let end = line.as_ref().map_or(String::new(), |line| writing.text(&line.target));
        return Ok(audit_lines(record, line.into_iter(), end));
    }
    let start = writing.parse(&record.start)?;
    if start.products().len() > MAX_PRODUCTS {
        return Err(AuditError::Products(start.products().len()));
    }
    let proof = writing.proof(&start)?;
    Ok(audit_lines(record, writing.lines(&proof), writing.print(proof.end())))
}

/// Checks a record against the lines of its proof. Only the lines that the record has are written, one at a time.
fn audit_lines(record: &ProofRecord, mut expected: impl ExactSizeIterator<Item = Line>, end: String) -> Audit {
    let writing = record.writing();
    let missing = expected.len().saturating_sub(record.steps.len());
    let finished = || Check { verdict: Verdict::SameValue, expected: None, why: Explanation::PastTheEnd };
    let check = |step| expected.next().map_or_else(finished, |line| audit_step(&writing, &line, step));
    let steps = record.steps.iter().map(check).collect();
    let ending = match missing {
        0 if record.end == end && !end.is_empty() => None,
        0 => Some(Explanation::WrongEnd(end)),
        n => Some(Explanation::TooShort(n)),
    };
    Audit { steps, ending }
}

/// Checks a step of a file against the line that was expected.
pub fn audit_step(writing: &Writing, line: &Line, step: &StepRecord) -> Check {
    let expected = StepRecord::new(line, writing.notation);
    let judged = writing.judge_text(line.kind, &expected.target, &step.target);
    let check = |verdict, why| Check { verdict, expected: Some(line.kind), why };
    if !judged.verdict.exact() {
        let why = writing.explain(line.kind, &expected.input, &expected.target, Some(&step.target));
        return check(judged.verdict, why);
    }
    let wrong = if step.input != expected.input {
        Explanation::Disconnected(expected.input)
    } else if step.kind != line.kind {
        Explanation::WrongKind(line.kind, step.kind)
    } else if !judged.raw_exact {
        Explanation::OtherBrackets(expected.target)
    } else if step.next != expected.next {
        Explanation::WronglyEvaluated
    } else {
        return check(Verdict::Exact, Explanation::Right(line.kind));
    };
    check(Verdict::SameValue, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_core::{Notation, Purpose, Sampler, Space, StepKind, Task};

    fn records(writing: Writing) -> Vec<ProofRecord> {
        let task = Task { writing, ..Task::new(Space::named("medium_terms").unwrap(), 2) };
        let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
        (0..20).map(|i| ProofRecord::of(&mut sampler, i)).collect()
    }

    #[test]
    fn generated_records_are_right() {
        for setting in Setting::ALL {
            for notation in Notation::ALL {
                let writing = Writing { setting, notation, ..Writing::default() };
                if writing.validate().is_err() {
                    continue;
                }
                for record in records(writing) {
                    let audit = audit_proof(&record).unwrap();
                    assert_eq!((audit.steps.len(), &audit.ending), (record.steps.len(), &None));
                    assert!(audit.steps.iter().all(|c| c.verdict == Verdict::Exact), "{record:?} {audit:?}");
                }
            }
        }
    }

    #[test]
    fn a_missing_step_is_noticed() {
        let mut record = records(Writing::default()).remove(0);
        record.steps.pop();
        assert_eq!(audit_proof(&record).unwrap().ending, Some(Explanation::TooShort(1)));
        record.steps.remove(0);
        assert!(audit_proof(&record).unwrap().steps.iter().any(|c| c.verdict == Verdict::SameValue));
    }

    #[test]
    fn what_a_file_says_beside_its_targets_is_checked() {
        let calculator = Writing { setting: Setting::Calculator, ..Writing::default() };
        let right = records(calculator).remove(0);
        let found = |change: &dyn Fn(&mut ProofRecord)| {
            let mut record = right.clone();
            change(&mut record);
            let audit = audit_proof(&record).unwrap();
            let wrong = audit.steps.into_iter().map(|c| c.why).find(|why| !matches!(why, Explanation::Right(_)));
            wrong.or(audit.ending).unwrap().to_string()
        };
        assert!(found(&|r| r.end = "1".into()).starts_with("The record's end is not the endpoint, "));
        assert!(found(&|r| r.steps[1].input = "(1)".into()).starts_with("The step does not start where"));
        assert!(found(&|r| r.steps[0].kind = StepKind::Sumstep).ends_with(", not a sumstep."));
        assert!(found(&|r| r.steps[0].next = None).starts_with("The evaluated state does not follow"));
        assert!(found(&|r| r.steps.push(r.steps[0].clone())).starts_with("The proof was already finished before"));
    }
}

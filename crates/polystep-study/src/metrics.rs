//! Adds up scored predictions to the numbers of an [`Evaluation`].

use std::collections::BTreeMap;

use polystep_core::{StepClass, StepKind};
use polystep_record::Proportion;

use crate::calibration::{Answer, THRESHOLD, calibrate, sure_at};
use crate::error::StudyError;
use crate::score::ScoredStep;
use crate::slices::slices;
use crate::wrong_steps;

pub use polystep_record::metrics::{BeamScores, Evaluation, Greedy, Metrics, Provenance, Right};

/// How many beams "any of 5" looks at.
pub const ANY: usize = 5;

/// Scores greedy outcomes; nothing if there are none.
pub fn greedy(outcomes: &[ScoredStep]) -> Result<Option<Greedy>, StudyError> {
    let proofs = proofs(outcomes)?;
    let full = proofs
        .values()
        .map(|steps| (steps.values().all(|o| o.verdict.exact()), steps.values().all(|o| o.verdict.symbolic())));
    let steps = outcomes.iter().map(|o| (o.verdict.exact(), o.verdict.symbolic()));
    let (Some(full_proof), Some(stepwise)) = (Right::of(full), Right::of(steps)) else {
        return Ok(None);
    };
    let Some(malformed) = Proportion::of(outcomes.iter().map(|o| o.verdict.malformed())) else {
        return Ok(None);
    };
    let kinds: Vec<Vec<(StepKind, bool)>> =
        proofs.values().map(|steps| steps.values().map(|o| (o.kind, o.verdict.exact())).collect()).collect();
    let mut by_kind: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for outcome in outcomes {
        by_kind.entry(&outcome.kind_name).or_default().push(outcome.verdict.exact());
    }
    let by_kind = by_kind.into_iter().filter_map(|(kind, right)| Some((kind.to_owned(), Proportion::of(right)?)));
    let mut by_class: BTreeMap<StepClass, Vec<bool>> = BTreeMap::new();
    for outcome in outcomes {
        by_class
            .entry(outcome.class.unwrap_or(StepClass::of_kind(outcome.kind)))
            .or_default()
            .push(outcome.verdict.exact());
    }
    let by_class = by_class.into_iter().filter_map(|(class, right)| Some((class, Proportion::of(right)?)));
    let sliced: Vec<_> = outcomes.iter().map(|o| (o.features, !o.verdict.exact())).collect();
    Ok(Some(Greedy {
        full_proof,
        stepwise,
        raw_exact: Proportion::of(outcomes.iter().filter_map(|o| o.raw_exact)),
        malformed,
        by_kind: by_kind.collect(),
        by_class: by_class.collect(),
        errors: wrong_steps::count(kinds.iter().map(Vec::as_slice)),
        slices: slices(&sliced),
    }))
}

/// Scores beam outcomes; the best threshold is chosen on `valid`, the outcomes of beam search on validation steps.
pub fn beam(outcomes: &[ScoredStep], valid: Option<&[ScoredStep]>) -> Option<BeamScores> {
    let answers = |outcomes: &[ScoredStep], right: fn(&ScoredStep) -> bool| -> Option<Vec<Answer>> {
        let answer =
            |o: &ScoredStep| o.confidence.map(|c| Answer { right: right(o), margin: c.margin, logprob: c.logprob });
        outcomes.iter().map(answer).collect()
    };
    let valid = valid.and_then(|valid| answers(valid, |o| o.verdict.exact()));
    let exact = answers(outcomes, |o| o.verdict.exact());
    let symbolic = answers(outcomes, |o| o.verdict.symbolic());
    Some(BeamScores {
        width: outcomes.iter().map(|o| o.beams as u64).max().unwrap_or(0),
        top1: Right::of(outcomes.iter().map(|o| (o.verdict.exact(), o.verdict.symbolic())))?,
        any5: Right::of(outcomes.iter().map(|o| (o.best.exact(), o.best.symbolic())))?,
        malformed: Proportion::of(outcomes.iter().map(|o| o.verdict.malformed()))?,
        calibration: exact.map(|answers| calibrate(&answers, valid.as_deref())),
        calibration_symbolic: symbolic.map(|answers| sure_at(THRESHOLD, &answers)),
    })
}

/// Which proofs are solved: every step exact.
pub fn solved<'a>(outcomes: impl IntoIterator<Item = &'a ScoredStep>) -> Result<BTreeMap<&'a str, bool>, StudyError> {
    let proofs = proofs(outcomes)?;
    Ok(proofs.into_iter().map(|(proof, steps)| (proof, steps.values().all(|o| o.verdict.exact()))).collect())
}

/// Outcomes by proof and step.
type Proofs<'a> = BTreeMap<&'a str, BTreeMap<usize, &'a ScoredStep>>;

/// Outcomes by proof and step. A step may stand anywhere in the file, but once, and none may be missing.
fn proofs<'a>(outcomes: impl IntoIterator<Item = &'a ScoredStep>) -> Result<Proofs<'a>, StudyError> {
    let mut proofs = Proofs::new();
    for outcome in outcomes {
        if proofs.entry(&outcome.proof).or_default().insert(outcome.step, outcome).is_some() {
            return Err(StudyError::Twice { proof: outcome.proof.clone(), step: outcome.step });
        }
    }
    for (proof, steps) in &proofs {
        if let Some((missing, (last, _))) = (0..).zip(steps).find(|(i, (step, _))| i != *step) {
            return Err(StudyError::Gap { proof: (*proof).to_owned(), last: *last, missing });
        }
    }
    Ok(proofs)
}

//! One record judged, for `polystep check`: a proof by the core's audit, which believes nothing but its start; a prediction by
//! the core's judge, against its own target, with the checker's sentence.

use polystep_core::task::Fac;
use polystep_core::{
    Granularity, PredictionRecord, ProofRecord, Setting, StepKind, StepRecord, Style, Verdict, audit_proof, check_step,
    next_step, notation,
};

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
    let mut checks = match audit_proof(record) {
        Ok(checks) => checks,
        Err(error) => {
            return Findings { id, steps: Vec::new(), broken: Some(format!("It cannot be checked: {error}.")) };
        }
    };
    // The audit adds one check when something is missing at the end.
    let broken = (checks.len() > record.steps.len()).then(|| checks.pop().map(|c| c.sentence)).flatten();
    let finding = |(step, (check, written)): (usize, (polystep_core::Check, &StepRecord))| Finding {
        kind: check.expected.unwrap_or(written.kind),
        verdict: check.verdict,
        sentence: check.sentence,
        step,
        input: written.input.clone(),
        output: written.target.clone(),
    };
    let steps = checks.into_iter().zip(&record.steps).enumerate().map(finding).collect();
    Findings { id, steps, broken }
}

/// Judges a step on its own: is it the step that its input asks for, in the granularity that fits it best?
pub fn step(example: &StepExample, granularity: Option<Granularity>, setting: Option<Setting>) -> Findings {
    let StepExample { proof, step, kind, input, target, next } = example;
    let as_prediction = PredictionRecord {
        proof: proof.clone(),
        step: *step,
        kind: *kind,
        input: input.clone(),
        target: target.clone(),
        beams: Vec::new(),
    };
    let guessed = if next.is_some() { Setting::Calculator } else { as_prediction.setting() };
    // An annotated operation step follows the markstep that wrote its input.
    let (start, marked) = match input.split_once(" $ ") {
        Some((tag, state)) => (state.replace('#', ""), tag != "MARK"),
        None => (input.clone(), false),
    };
    let line =
        |kind, input: String, target: &str| StepRecord { kind, input, target: target.into(), next: next.clone() };
    let before = marked.then(|| line(StepKind::Markstep, format!("MARK $ {start}"), input));
    let record = ProofRecord {
        id: proof.clone(),
        seed: 0,
        index: 0,
        config: String::new(),
        vars: 1,
        setting: setting.unwrap_or(guessed),
        granularity: Granularity::COARSE,
        notation: as_prediction.notation(),
        style: Style::default(),
        start,
        end: String::new(),
        steps: before.into_iter().chain([line(*kind, input.clone(), target)]).collect(),
    };
    let term = Granularity { fac: Fac::Term, ..Granularity::FINE };
    let candidates = [Granularity::COARSE, Granularity::FINE, Granularity::FINE_COUNTED, term];
    let judge = |granularity: Granularity| {
        let mut findings = self::proof(&ProofRecord { granularity, ..record.clone() });
        // The rest of the proof is not at hand: only this step is spoken of, unless its input cannot be read.
        if let Some(last) = findings.steps.pop() {
            findings = Findings { steps: vec![Finding { step: *step, ..last }], broken: None, ..findings };
        }
        findings
    };
    let right = |f: &Findings| f.steps.iter().any(|s| s.verdict == Verdict::Exact);
    match granularity {
        Some(granularity) => judge(granularity),
        None => candidates.into_iter().map(judge).find(right).unwrap_or_else(|| judge(candidates[0])),
    }
}

/// Judges the best answer of a prediction against its target, and whether any beam holds it.
pub fn prediction(
    record: &PredictionRecord,
    granularity: Option<Granularity>,
    setting: Option<Setting>,
) -> (Findings, bool) {
    let (notation, setting) = (record.notation(), setting.unwrap_or_else(|| record.setting()));
    let judged = record.judgements(setting, notation, Style::default());
    let verdict = judged.first().map_or(Verdict::Malformed, |&best| best.into());
    let output = record.beams.first().map_or("", |beam| beam.output.as_str());
    let finding = Finding {
        kind: record.kind,
        verdict,
        sentence: explain(record, output, setting, granularity, verdict),
        step: record.step,
        input: record.input.clone(),
        output: output.into(),
    };
    let findings = Findings { id: record.proof.clone(), steps: vec![finding], broken: None };
    (findings, judged.iter().any(|j| j.exact))
}

/// The checker's sentence where there is a step that it can name; else the target.
fn explain(
    record: &PredictionRecord,
    output: &str,
    setting: Setting,
    granularity: Option<Granularity>,
    verdict: Verdict,
) -> String {
    let expected = format!("Expected {}.", record.target);
    if !matches!(setting, Setting::Plain | Setting::Calculator) {
        return expected;
    }
    let (notation, style) = (record.notation(), Style::default());
    let Ok(before) = notation::parse(&record.input, notation, style) else { return expected };
    // A prediction does not say its granularity: take the one whose step leads to the target.
    let target = notation::parse(&record.target, notation, style).ok();
    let leads = |g: &Granularity| matches!(next_step(&before, *g, style), Ok(Some(step)) if target.as_ref() == Some(&step.after));
    let known = [Granularity::COARSE, Granularity::FINE, Granularity::FINE_COUNTED];
    let granularity = granularity.or_else(|| known.into_iter().find(leads)).unwrap_or_default();
    match check_step(&before, output, granularity, notation, style) {
        Ok(check) if check.verdict == verdict => check.sentence,
        // The checker reads as people do: what is left is a matter of writing.
        _ => format!("It is not written as the language writes it. {expected}"),
    }
}

//! One prediction, scored: what the core's judge says of its answers, how confident the model was, what the example is like.
//!
//! The first finished beam is the answer. A prediction without one (the input was too long, or nothing finished) is wrong and
//! malformed, never dropped.

use polystep_core::arithmetic::kind_name;
use polystep_core::{Judgement, Setting, StepClass, StepKind, Verdict, Writing, token};

use crate::calibration;
use crate::metrics::ANY;
use crate::slices::Features;
use polystep_record::{Decoding, Judgeable, Prediction, RecordError, SetFolder, StepVerdict};

/// How sure the model was.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Confidence {
    /// ln p₁ − ln p₂ of the two best answers, +∞ if there are fewer.
    pub margin: f64,
    /// ln p₁ of the answer; −∞ if there is none.
    pub logprob: f64,
}

/// A scored prediction.
#[derive(Clone, PartialEq, Debug)]
pub struct ScoredStep {
    /// The id of the proof.
    pub proof: String,
    /// Which step of it.
    pub step: usize,
    /// The kind that was expected.
    pub kind: StepKind,
    /// Its name; an exercise's carries its digits.
    pub kind_name: String,
    /// How hard the step is; nothing if its input cannot be read.
    pub class: Option<StepClass>,
    /// How the answer turned out.
    pub verdict: Verdict,
    /// Whether a calculator's brackets are the expected ones; nothing in other settings.
    pub raw_exact: Option<bool>,
    /// How the best of the first five turned out.
    pub best: Verdict,
    /// How many answers there are.
    pub beams: usize,
    /// Nothing if the prediction has no probabilities.
    pub confidence: Option<Confidence>,
    /// What the example is like.
    pub features: Features,
}

/// Judges the answers to one step.
pub fn judge(prediction: &Prediction, writing: &Writing) -> StepVerdict {
    let Prediction { proof, step, kind, target, .. } = prediction;
    let mut judged = prediction.answers().take(ANY).map(|answer| writing.judge_text(*kind, target, &answer.output));
    let Judgement { verdict, raw_exact } = judged.next().unwrap_or(Judgement::MALFORMED);
    let mut best = verdict;
    // An exact answer is right both ways; what stands behind it changes nothing, and is not judged.
    while !best.exact()
        && let Some(other) = judged.next()
    {
        best = best.min(other.verdict);
    }
    let raw_exact = (writing.setting == Setting::Calculator).then_some(raw_exact);
    StepVerdict { proof: proof.clone(), step: *step, verdict, raw_exact, best }
}

/// Scores one prediction.
pub fn score(prediction: &Prediction, writing: &Writing) -> ScoredStep {
    score_judged(prediction, &judge(prediction, writing), writing)
}

/// Scores one prediction whose answers were judged before.
pub fn score_judged(prediction: &Prediction, judged: &StepVerdict, writing: &Writing) -> ScoredStep {
    let Prediction { proof, step, kind, input, target, beams } = prediction;
    let tokens = token::encode(input).unwrap_or_default();
    ScoredStep {
        proof: proof.clone(),
        step: *step,
        kind: *kind,
        kind_name: kind_name(*kind, &tokens),
        class: writing.class(*kind, &tokens),
        verdict: judged.verdict,
        raw_exact: judged.raw_exact,
        best: judged.best,
        beams: beams.len(),
        confidence: confidence(prediction),
        features: Features::of(input, &writing.evaluated_text(target), writing.notation),
    }
}

/// The predictions of a file with their scores; none if there is no such file. Stored verdicts are used where they belong to the
/// predictions; otherwise the answers are judged.
pub fn grade(
    folder: &SetFolder,
    decoding: Decoding,
    writing: &Writing,
) -> Result<Option<Vec<(Prediction, ScoredStep)>>, RecordError> {
    let Some(Judgeable { predictions, verdicts }) = folder.read(decoding, writing)? else { return Ok(None) };
    let outcomes: Vec<ScoredStep> = match verdicts {
        Some(verdicts) => predictions.iter().zip(&verdicts).map(|(p, v)| score_judged(p, v, writing)).collect(),
        None => predictions.iter().map(|prediction| score(prediction, writing)).collect(),
    };
    Ok(Some(predictions.into_iter().zip(outcomes).collect()))
}

fn confidence(prediction: &Prediction) -> Option<Confidence> {
    let logprobs: Option<Vec<f64>> = prediction.answers().map(|beam| beam.logprob).collect();
    let logprobs = logprobs?;
    let logprob = logprobs.first().copied().unwrap_or(f64::NEG_INFINITY);
    Some(Confidence { margin: calibration::margin(logprobs), logprob })
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_record::Beam;

    fn prediction(target: &str, outputs: &[(&str, f64)]) -> Prediction {
        let beam = |(output, logprob): &(&str, f64)| Beam {
            output: (*output).into(),
            logprob: Some(*logprob),
            finished: true,
        };
        Prediction {
            proof: "p".into(),
            step: 0,
            kind: StepKind::Mulstep,
            input: "(2*x1)*(x1)+(3)".into(),
            target: target.into(),
            beams: outputs.iter().map(beam).collect(),
        }
    }

    fn plain(prediction: &Prediction) -> ScoredStep {
        score(prediction, &Writing::default())
    }

    #[test]
    fn the_first_beam_is_the_answer() {
        let outcome = plain(&prediction("(2*x1^2)+(3)", &[("(2*x1)*(x1)+(3)", -0.5), ("(2*x1^2)+(3)", -1.5)]));
        assert_eq!((outcome.verdict, outcome.raw_exact), (Verdict::SameValue, None));
        assert!(outcome.best.exact() && outcome.best.symbolic());
        assert_eq!(outcome.confidence, Some(Confidence { margin: 1.0, logprob: -0.5 }));
        assert_eq!((outcome.features.terms, outcome.features.coefficient), (3, 3));
        assert_eq!(outcome.class, Some(StepClass::MulMulti0));
    }

    #[test]
    fn a_sixth_beam_does_not_count() {
        let wrong = ("(3)+(3)", -1.0);
        let beams = [wrong, wrong, wrong, wrong, wrong, ("(2*x1^2)+(3)", -9.0)];
        let outcome = plain(&prediction("(2*x1^2)+(3)", &beams));
        assert!(!outcome.best.exact());
        assert_eq!(outcome.beams, 6);
    }

    #[test]
    fn no_answer_is_a_wrong_answer() {
        let none = plain(&prediction("(2*x1^2)+(3)", &[]));
        assert_eq!(none.verdict, Verdict::Malformed);
        assert_eq!(none.confidence.unwrap().margin, f64::INFINITY);
        let mut cut = prediction("(2*x1^2)+(3)", &[("(2*x1^2)+(3)", -1.0)]);
        cut.beams[0].finished = false;
        assert!(!plain(&cut).verdict.exact());
    }

    #[test]
    fn without_probabilities_there_is_no_confidence() {
        let mut unknown = prediction("(2*x1^2)+(3)", &[("(2*x1^2)+(3)", -1.0)]);
        unknown.beams[0].logprob = None;
        let outcome = plain(&unknown);
        assert!(outcome.verdict.exact() && outcome.confidence.is_none());
    }

    #[test]
    fn a_calculator_is_judged_twice() {
        let calculator = Writing { setting: Setting::Calculator, ..Writing::default() };
        let outcome = score(&prediction("([5*3]*x1^2)+(3)", &[("([3*5]*x1^2)+(3)", -0.1)]), &calculator);
        assert_eq!((outcome.verdict, outcome.raw_exact), (Verdict::Exact, Some(false)));
        assert_eq!(outcome.features.coefficient, 15, "of the evaluated target");
    }
}

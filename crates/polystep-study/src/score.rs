//! One prediction, scored: what the core's judge says of its answers, how confident the model was, what the example is like.
//!
//! The first finished beam is the answer. A prediction without one (the input was too long, or nothing finished) is wrong and
//! malformed, never dropped.

use polystep_core::arithmetic::kind_name;
use polystep_core::judge::{evaluate_brackets, judge_text, untagged};
use polystep_core::notation::parse_tokens;
use polystep_core::{Judgement, Notation, Setting, StepKind, Style, token};

use crate::calibration;
use crate::error::StudyError;
use crate::metrics::ANY;
use crate::predictions::Prediction;
use crate::slices::Features;

/// How predictions are to be read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Scoring {
    /// What the steps look like.
    pub setting: Setting,
    /// How states are written.
    pub notation: Notation,
    /// The order of terms, and whether ones are written.
    pub style: Style,
}

/// What is right about an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// The expected tokens (calculator: after evaluation).
    pub exact: bool,
    /// The right value.
    pub symbolic: bool,
    /// Not readable, or no answer at all.
    pub malformed: bool,
    /// The expected brackets (calculator only).
    pub raw_exact: Option<bool>,
}

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
pub struct Outcome {
    /// The id of the proof.
    pub proof: String,
    /// Which step of it.
    pub step: usize,
    /// The kind that was expected.
    pub kind: StepKind,
    /// Its name; an exercise's carries its digits.
    pub kind_name: String,
    /// The answer.
    pub verdict: Verdict,
    /// One of the first five is exact.
    pub any_exact: bool,
    /// One of the first five has the right value.
    pub any_symbolic: bool,
    /// How many answers there are.
    pub beams: usize,
    /// Nothing if the prediction has no probabilities.
    pub confidence: Option<Confidence>,
    /// What the example is like.
    pub features: Features,
}

impl Scoring {
    /// Scores one prediction.
    pub fn score(&self, prediction: &Prediction) -> Outcome {
        let answers: Vec<_> = prediction.answers().take(ANY).collect();
        let verdict = answers.first().map_or(self.no_answer(), |answer| self.verdict(prediction, &answer.output));
        let (mut any_exact, mut any_symbolic) = (verdict.exact, verdict.symbolic);
        for answer in answers.iter().skip(1) {
            // An exact answer is right both ways; what stands behind it changes nothing.
            if any_exact {
                break;
            }
            let other = self.verdict(prediction, &answer.output);
            any_exact |= other.exact;
            any_symbolic |= other.symbolic;
        }
        Outcome {
            proof: prediction.proof.clone(),
            step: prediction.step,
            kind: prediction.kind,
            kind_name: kind_name(prediction.kind, &token::encode(&prediction.input).unwrap_or_default()),
            verdict,
            any_exact,
            any_symbolic,
            beams: prediction.beams.len(),
            confidence: confidence(prediction),
            features: Features::of(&prediction.input, &self.evaluated(&prediction.target), self.notation),
        }
    }

    /// Judges one answer.
    pub fn verdict(&self, prediction: &Prediction, output: &str) -> Verdict {
        let Prediction { kind, target, .. } = prediction;
        let calculator = self.setting == Setting::Calculator;
        // The same text has the same tokens: nearly all answers of a good model, and they need not be read.
        if output == target {
            return Verdict { exact: true, symbolic: true, malformed: false, raw_exact: calculator.then_some(true) };
        }
        let Judgement { exact, raw_exact, symbolic, malformed } =
            judge_text(*kind, self.setting, self.notation, self.style, target, output);
        let raw_exact = calculator.then_some(raw_exact);
        Verdict { exact, symbolic, malformed, raw_exact }
    }

    fn no_answer(&self) -> Verdict {
        let raw_exact = (self.setting == Setting::Calculator).then_some(false);
        Verdict { malformed: true, raw_exact, ..Verdict::default() }
    }

    /// A text with its brackets evaluated; as it is where it has none, or where they cannot be read.
    pub fn evaluated(&self, text: &str) -> String {
        if self.setting != Setting::Calculator || !text.contains('[') {
            return text.to_owned();
        }
        let evaluated = token::encode(text).ok().and_then(|tokens| evaluate_brackets(&tokens, self.notation));
        evaluated.map_or_else(|| text.to_owned(), |tokens| token::decode(&tokens, self.notation))
    }

    /// The fingerprint of the value of a state, the same in every notation and setting; nothing if it cannot be read.
    pub fn value(&self, text: &str) -> Option<u64> {
        let tokens = token::encode(text).ok()?;
        let state = if self.setting == Setting::Annotated { untagged(&tokens)? } else { tokens };
        let (state, _) = parse_tokens(&state, self.notation, self.style).ok()?;
        Some(state.value(self.style.order).ok()?.fingerprint())
    }

    /// What predictions from elsewhere are, by their looks.
    pub fn guess(predictions: &[Prediction]) -> Scoring {
        let any = |found: &dyn Fn(&Prediction) -> bool| predictions.iter().any(found);
        let setting = if any(&|p| matches!(p.kind, StepKind::Add | StepKind::Mul)) {
            Setting::Arithmetic
        } else if any(&|p| p.kind == StepKind::Endpoint) {
            Setting::Endpoint
        } else if any(&|p| p.input.contains('$')) {
            Setting::Annotated
        } else if any(&|p| p.target.contains('[')) {
            Setting::Calculator
        } else {
            Setting::Plain
        };
        let notation = if any(&|p| p.input.contains("INT+")) { Notation::Prefix } else { Notation::Infix };
        Scoring { setting, notation, style: Style::default() }
    }
}

fn confidence(prediction: &Prediction) -> Option<Confidence> {
    let logprobs: Option<Vec<f64>> = prediction.answers().map(|beam| beam.logprob).collect();
    let logprobs = logprobs?;
    let logprob = logprobs.first().copied().unwrap_or(f64::NEG_INFINITY);
    Some(Confidence { margin: calibration::margin(logprobs), logprob })
}

/// Scores a stream of predictions.
pub fn score(
    predictions: impl IntoIterator<Item = Result<Prediction, StudyError>>,
    scoring: &Scoring,
) -> Result<Vec<Outcome>, StudyError> {
    predictions.into_iter().map(|prediction| Ok(scoring.score(&prediction?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predictions::Beam;

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

    #[test]
    fn the_first_beam_is_the_answer() {
        let plain = Scoring::default();
        let outcome = plain.score(&prediction("(2*x1^2)+(3)", &[("(2*x1)*(x1)+(3)", -0.5), ("(2*x1^2)+(3)", -1.5)]));
        assert_eq!(outcome.verdict, Verdict { symbolic: true, ..Verdict::default() });
        assert!(outcome.any_exact && outcome.any_symbolic);
        assert_eq!(outcome.confidence, Some(Confidence { margin: 1.0, logprob: -0.5 }));
        assert_eq!((outcome.features.terms, outcome.features.coefficient), (3, 3));
    }

    #[test]
    fn a_sixth_beam_does_not_count() {
        let wrong = ("(3)+(3)", -1.0);
        let outcome = Scoring::default()
            .score(&prediction("(2*x1^2)+(3)", &[wrong, wrong, wrong, wrong, wrong, ("(2*x1^2)+(3)", -9.0)]));
        assert!(!outcome.any_exact);
        assert_eq!(outcome.beams, 6);
    }

    #[test]
    fn no_answer_is_a_wrong_answer() {
        let none = Scoring::default().score(&prediction("(2*x1^2)+(3)", &[]));
        assert_eq!(none.verdict, Verdict { malformed: true, ..Verdict::default() });
        assert_eq!(none.confidence.unwrap().margin, f64::INFINITY);
        let mut cut = prediction("(2*x1^2)+(3)", &[("(2*x1^2)+(3)", -1.0)]);
        cut.beams[0].finished = false;
        assert!(!Scoring::default().score(&cut).verdict.exact);
    }

    #[test]
    fn without_probabilities_there_is_no_confidence() {
        let mut unknown = prediction("(2*x1^2)+(3)", &[("(2*x1^2)+(3)", -1.0)]);
        unknown.beams[0].logprob = None;
        let outcome = Scoring::default().score(&unknown);
        assert!(outcome.verdict.exact && outcome.confidence.is_none());
    }

    #[test]
    fn a_calculator_is_judged_twice() {
        let calculator = Scoring { setting: Setting::Calculator, ..Scoring::default() };
        let outcome = calculator.score(&prediction("([5*3]*x1^2)+(3)", &[("([3*5]*x1^2)+(3)", -0.1)]));
        assert_eq!((outcome.verdict.exact, outcome.verdict.raw_exact), (true, Some(false)));
        assert_eq!(outcome.features.coefficient, 15, "of the evaluated target");
        assert_eq!(Scoring::guess(&[prediction("([5*3]*x1^2)+(3)", &[])]), calculator);
        assert_eq!(Scoring::guess(&[prediction("(2*x1^2)+(3)", &[])]), Scoring::default());
    }
}

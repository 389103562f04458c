//! The list of failures: input, prediction, target, what differs, and the checker's sentence.
//!
//! People read infix more easily than prefix. Where all three texts can be read, they are shown in infix, with the prefix text
//! folded below. A text that cannot be read stays as the model wrote it.

use polystep_core::notation::{parse_open, print_open};
use polystep_core::{Notation, StepKind, Writing};
use serde::Serialize;

use super::diff::{Piece, diff};
use crate::score::ScoredStep;
use polystep_record::Prediction;

/// The most failures on a page, so that it opens quickly on a laptop.
pub const SHOWN: usize = 400;

/// One wrong step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Failure {
    /// The id of the proof.
    pub proof: String,
    /// Which step of it, from 1 as people count.
    pub step: usize,
    /// The kind that was expected.
    pub kind: &'static str,
    /// Which sort of error it is, as the filters name it.
    pub class: &'static str,
    /// The same for people.
    pub label: &'static str,
    /// The model's probability of its answer, in percent.
    pub confidence: Option<String>,
    /// What the model read.
    pub input: String,
    /// What it wrote, cut where it differs.
    pub prediction: Vec<Piece>,
    /// What it was to write, cut where it differs.
    pub target: Vec<Piece>,
    /// What is wrong.
    pub sentence: String,
    /// Input, prediction and target as the model knows them, where the above is a translation.
    pub original: Option<[String; 3]>,
}

/// The sorts of errors, as filters and people call them.
const CLASSES: [(&str, &str); 5] = [
    ("wrong", "another value"),
    ("same", "right value, not the step"),
    ("mark", "wrong mark"),
    ("malformed", "malformed"),
    ("none", "no answer"),
];

/// The label of a class.
pub fn label(class: &str) -> &'static str {
    CLASSES.iter().find(|(name, _)| *name == class).map_or("", |(_, label)| label)
}

/// The failures among graded predictions in the order of their file, at most [`SHOWN`], and how many there are.
pub fn failures(graded: &[(Prediction, ScoredStep)], writing: &Writing) -> (Vec<Failure>, usize) {
    let wrong: Vec<_> = graded.iter().filter(|(_, outcome)| !outcome.verdict.exact()).collect();
    let shown = wrong.iter().take(SHOWN).map(|(p, o)| failure(p, o, writing)).collect();
    (shown, wrong.len())
}

fn failure(prediction: &Prediction, outcome: &ScoredStep, writing: &Writing) -> Failure {
    let answer = prediction.answers().next();
    let output = answer.map(|a| a.output.as_str());
    let texts = [&prediction.input, output.unwrap_or_default(), &prediction.target];
    let infix = match writing.notation {
        Notation::Prefix => translated(texts, writing),
        Notation::Infix => None,
    };
    let original = infix.is_some().then(|| texts.map(str::to_owned));
    let [input, written, wanted] = infix.unwrap_or_else(|| texts.map(str::to_owned));
    let (ours, target) = diff(&written, &wanted);
    let class = match (answer, outcome.verdict) {
        (None, _) => "none",
        (_, v) if v.malformed() => "malformed",
        _ if prediction.kind == StepKind::Markstep => "mark",
        (_, v) if v.symbolic() => "same",
        _ => "wrong",
    };
    Failure {
        proof: prediction.proof.clone(),
        step: prediction.step + 1,
        kind: prediction.kind.name(),
        class,
        label: label(class),
        confidence: answer.and_then(|a| a.logprob).map(|l| format!("{:.1}", 100.0 * l.exp())),
        input,
        prediction: ours,
        target,
        sentence: writing.explain(prediction.kind, &prediction.input, &prediction.target, output).to_string(),
        original,
    }
}

/// The texts in infix, if all can be read and the difference survives.
fn translated(texts: [&str; 3], writing: &Writing) -> Option<[String; 3]> {
    let infix = |text: &str| {
        let (state, open) = parse_open(text, Notation::Prefix, writing.style).ok()?;
        Some(print_open(&state, &open, Notation::Infix, writing.style))
    };
    let [input, output, target] = texts.map(infix);
    let (input, output, target) = (input?, output?, target?);
    (output != target).then_some([input, output, target])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::score;
    use polystep_record::Beam;

    fn failure_of(output: &str) -> Failure {
        let prediction = Prediction {
            proof: "p".into(),
            step: 2,
            kind: StepKind::Sumstep,
            input: "+P * INT+ 2 x1 INT+ 3".into(),
            target: "+ * INT+ 2 x1 INT+ 3".into(),
            beams: vec![Beam { output: output.into(), logprob: Some(0.5f64.ln()), finished: true }],
        };
        let writing = Writing { notation: Notation::Prefix, ..Writing::default() };
        let graded = [(prediction.clone(), score(&prediction, &writing))];
        let (mut list, total) = failures(&graded, &writing);
        assert_eq!(total, 1);
        list.remove(0)
    }

    #[test]
    fn prefix_is_shown_in_infix() {
        let failure = failure_of("+ * INT+ 2 x1 INT+ 4");
        assert_eq!((failure.input.as_str(), failure.step, failure.class), ("(2*x1)+(3)", 3, "wrong"));
        assert_eq!(failure.prediction.iter().map(|p| p.text.as_str()).collect::<String>(), "2*x1+4");
        assert_eq!(failure.original.unwrap()[1], "+ * INT+ 2 x1 INT+ 4");
        assert_eq!(failure.confidence.as_deref(), Some("50.0"));
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        let failure = failure_of("+ * INT+ 2 x1");
        assert_eq!((failure.class, failure.original), ("malformed", None));
        assert_eq!(failure.input, "+P * INT+ 2 x1 INT+ 3");
    }
}

//! Assisted proofs: model and checker work together, so that the proof is always right.
//!
//! For each line of the exact proof the model is asked greedily. If its answer is not the expected step, a beam search is made
//! from the same input, and the first beam that is the expected step is taken. If there is none, the exact step is taken. The
//! next input is therefore always the expected state. All inputs are known beforehand, so the lines of many proofs can be
//! asked at once.

use super::{AnswerCache, BEAM_WIDTH, Hypothesis, Stepper, beam_search, find_in_beams};
use polystep_core::writing::Line;
use polystep_core::{Setting, Writing};
use polystep_engine::EngineError;
use polystep_record::Author;

/// One line of an assisted proof.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistedStep {
    /// Who wrote it.
    pub author: Author,
    /// What the model answered greedily.
    pub greedy: Hypothesis,
    /// The beams, best first; none if there was no need to search, or if the search ended early because the expected step was out of reach.
    pub beams: Vec<Hypothesis>,
}

impl AssistedStep {
    /// The model's answer that was taken; none if the step is the checker's.
    pub fn taken(&self) -> Option<&Hypothesis> {
        match self.author {
            Author::Model => Some(&self.greedy),
            Author::Beam(n) => self.beams.get(n - 1),
            Author::Exact => None,
        }
    }
}

/// Whether an answer is the expected step, token for token; with a calculator after its brackets are evaluated.
fn is_expected(writing: &Writing, line: &Line, answer: &Hypothesis) -> bool {
    answer.finished && writing.judge(line.kind, &line.target, &answer.tokens).verdict.exact()
}

/// Who writes each of these lines, which may belong to several proofs.
pub fn assisted_steps(
    stepper: &mut dyn Stepper,
    writing: &Writing,
    lines: &[Line],
    cache: &mut AnswerCache,
) -> Result<Vec<AssistedStep>, EngineError> {
    let inputs: Vec<&[u8]> = lines.iter().map(|line| line.input.as_slice()).collect();
    let greedy = cache.greedy(stepper, &inputs)?;
    let first = |(line, greedy): (&Line, Hypothesis)| {
        let author = if is_expected(writing, line, &greedy) { Author::Model } else { Author::Exact };
        AssistedStep { author, greedy, beams: Vec::new() }
    };
    let mut steps: Vec<AssistedStep> = lines.iter().zip(greedy).map(first).collect();
    let missed: Vec<usize> = (0..steps.len()).filter(|&i| steps[i].author == Author::Exact).collect();
    let asked: Vec<&[u8]> = missed.iter().map(|&i| inputs[i]).collect();
    let found = match writing.setting {
        // Many answers come to the expected state, so no search can end early.
        Setting::Calculator => {
            let found = beam_search(stepper, &asked, BEAM_WIDTH)?;
            found.into_iter().map(|found| found.headline).collect()
        }
        _ => {
            let wanted: Vec<&[u8]> = missed.iter().map(|&i| lines[i].target.as_slice()).collect();
            find_in_beams(stepper, &asked, &wanted, BEAM_WIDTH)?
        }
    };
    for (i, beams) in missed.into_iter().zip(found) {
        let at = beams.iter().position(|beam| is_expected(writing, &lines[i], beam));
        steps[i].author = at.map_or(Author::Exact, |n| Author::Beam(n + 1));
        steps[i].beams = beams;
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Branch, Capacity, TopTokens};
    use polystep_core::token::{EOS, encode};
    use polystep_core::{Notation, notation};

    /// Knows a few answers to each source, best first. Each is half as probable as the one before.
    struct Knows {
        answers: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
        sources: Vec<Vec<Vec<u8>>>,
        prefixes: Vec<Vec<u8>>,
    }

    impl Stepper for Knows {
        fn capacity(&self) -> Capacity {
            Capacity { hypotheses: 64, tokens: 1000, longest: 40 }
        }

        fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError> {
            let known = |s: &&[u8]| self.answers.iter().find(|a| a.0 == **s).map_or(Vec::new(), |a| a.1.clone());
            self.sources = sources.iter().map(known).collect();
            Ok(())
        }

        fn step(&mut self, position: usize, open: &[Branch], k: usize, out: &mut TopTokens) -> Result<(), EngineError> {
            let prefix = |b: &Branch| match position {
                0 => Vec::new(),
                _ => [&self.prefixes[b.parent as usize][..], &[b.token]].concat(),
            };
            let prefixes: Vec<Vec<u8>> = open.iter().map(prefix).collect();
            *out = TopTokens { k, ..TopTokens::default() };
            for (branch, prefix) in open.iter().zip(&prefixes) {
                let mut next: Vec<(u8, f32)> = Vec::new();
                for answer in self.sources[branch.source as usize].iter().filter(|a| a.starts_with(prefix)) {
                    let token = answer.get(prefix.len()).copied().unwrap_or(EOS);
                    if next.iter().all(|n| n.0 != token) {
                        next.push((token, -(next.len() as f32) * 2f32.ln()));
                    }
                }
                next.resize(k, (EOS, -99.0));
                out.tokens.extend(next.iter().map(|n| n.0));
                out.logprobs.extend(next.iter().map(|n| n.1));
            }
            self.prefixes = prefixes;
            Ok(())
        }
    }

    /// Who writes the lines of a proof when the model knows these answers.
    fn authors(setting: Setting, start: &str, answers: &[(&str, &[&str])]) -> Vec<Author> {
        let writing = Writing { setting, ..Writing::default() };
        let start = notation::parse(start, Notation::Infix, writing.style).unwrap();
        let lines: Vec<Line> = writing.lines(&writing.proof(&start).unwrap()).collect();
        let tokens = |text: &&str| encode(text).unwrap();
        let answers = answers.iter().map(|(source, all)| (tokens(source), all.iter().map(tokens).collect())).collect();
        let mut model = Knows { answers, sources: Vec::new(), prefixes: Vec::new() };
        let steps = assisted_steps(&mut model, &writing, &lines, &mut AnswerCache::default()).unwrap();
        for (step, line) in steps.iter().zip(&lines) {
            assert_eq!(step.taken().is_none(), step.author == Author::Exact);
            assert!(step.taken().is_none_or(|t| is_expected(&writing, line, t)));
        }
        steps.iter().map(|step| step.author).collect()
    }

    #[test]
    fn the_greedy_answer_then_a_beam_then_the_exact_step() {
        let start = "(x1)*(2)+(3)*(4)";
        let answers: [(&str, &[&str]); 3] = [
            ("(x1)*(2)+(3)*(4)", &["(2*x1)+(3)*(4)"]),
            ("(2*x1)+(3)*(4)", &["(2*x1)+(11)", "(2*x1)+(7)", "(2*x1)+(12)"]),
            ("(2*x1)+(12)", &["2*x1+13"]),
        ];
        assert_eq!(authors(Setting::Plain, start, &answers), [Author::Model, Author::Beam(3), Author::Exact]);
        assert_eq!(authors(Setting::Plain, start, &[]), [Author::Exact; 3]);
        assert_eq!(authors(Setting::Endpoint, start, &[(start, &["2*x1", "2*x1+12"])]), [Author::Beam(2)]);
    }

    #[test]
    fn the_same_value_in_another_form_is_not_the_expected_step() {
        let answers: [(&str, &[&str]); 1] = [("(x1)*(2)+(3)", &["2*x1+3"])];
        assert_eq!(authors(Setting::Plain, "(x1)*(2)+(3)", &answers), [Author::Exact, Author::Exact]);
    }

    #[test]
    fn a_calculator_is_compared_after_evaluation() {
        let answers: [(&str, &[&str]); 1] = [("(3)*(4)+(x1)", &["([4*3])+(x1)"])];
        assert_eq!(authors(Setting::Calculator, "(3)*(4)+(x1)", &answers)[0], Author::Model);
    }

    #[test]
    fn marks_are_part_of_an_annotated_step() {
        let first = "MARK $ (x1)*(2)+(3)";
        let right: [(&str, &[&str]); 1] = [(first, &["MUL $ (x1)*(2)+#(3)#", "MUL $ #(x1)*(2)#+(3)"])];
        assert_eq!(authors(Setting::Annotated, "(x1)*(2)+(3)", &right)[0], Author::Beam(2));
    }
}

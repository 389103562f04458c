//! A proof on its way: every line is known, and the model's answers come in one after the other.

use polystep_core::writing::Line;
use polystep_core::{ArithmeticError, Explanation, Proof, Setting, Verdict, Writing, fit};
use polystep_engine::EngineError;
use polystep_record::Stop;

use super::problem::Problem;
use super::record::{ModelProof, ModelStep, StepsBy, margin};
use crate::decode::{AssistedStep, Hypothesis};
use crate::trained::TrainedModel;

/// Why a model cannot prove an expression.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The model has learned no proofs.
    #[error("this model was trained on the arithmetic probe: it proves nothing")]
    ArithmeticProbe,
    /// The numbers or the proof are too large.
    #[error(transparent)]
    TooLarge(#[from] ArithmeticError),
    /// The start is longer than the model's input.
    #[error("the expression has {tokens} tokens and this model takes {most}")]
    TooLong {
        /// Tokens of the start.
        tokens: usize,
        /// The most that the model takes.
        most: usize,
    },
    /// The device.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A proof whose lines are answered one after the other.
pub struct OpenProof {
    pub(super) exact: Proof,
    pub(super) lines: Vec<Line>,
    pub(super) writing: Writing,
    pub(super) proof: ModelProof,
}

impl OpenProof {
    /// The proof of a problem by a model, which people know as `name` and which was chosen for a reason, `why`.
    pub fn new(trained: &TrainedModel, name: &str, why: &str, problem: &Problem) -> Result<OpenProof, ProveError> {
        let writing = trained.home().writing;
        if writing.setting == Setting::Arithmetic {
            return Err(ProveError::ArithmeticProbe);
        }
        let exact = writing.proof(&problem.start)?;
        let named = |v: usize| Some((format!("x{}", v + 1), problem.names.get(v)?.to_string()));
        let mut proof = ModelProof {
            start: writing.print(&problem.start),
            trained_on: trained.config.description(),
            outside: None,
            steps: Vec::new(),
            stop: Stop::End,
            right: true,
            model: name.to_owned(),
            chosen: why.to_owned(),
            read_as: problem.read_as.clone(),
            names: (0..8).filter_map(named).collect(),
            alone: false,
            endpoint: writing.print(exact.end()),
            steps_by: StepsBy::default(),
            answer_right: None,
        };
        let mut lines = Vec::new();
        if !exact.kinds().is_empty() {
            lines.extend(writing.lines(&exact));
            // One position is the last token's, `</s>`.
            let (tokens, most) = (lines[0].input.len(), trained.model.max_positions - 1);
            if tokens > most {
                return Err(ProveError::TooLong { tokens, most });
            }
            proof.outside = fit::outside(&problem.start, &trained.tasks)?;
        }
        Ok(OpenProof { exact, lines, writing, proof })
    }

    /// How the proof is written.
    pub fn writing(&self) -> &Writing {
        &self.writing
    }

    /// The exact proof.
    pub fn exact(&self) -> &Proof {
        &self.exact
    }

    /// All lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lines that are not answered yet.
    pub fn waiting(&self) -> &[Line] {
        &self.lines[self.proof.steps.len()..]
    }

    /// The proof as far as it is.
    pub fn so_far(&self) -> &ModelProof {
        &self.proof
    }

    /// Adds the next line, as it was answered; its beams, if they are wanted.
    ///
    /// # Panics
    /// If no line is waiting.
    pub fn push(&mut self, answered: &AssistedStep, beams: bool) -> &ModelStep {
        let line = &self.lines[self.proof.steps.len()];
        let text = |tokens: &[u8]| self.writing.text(tokens);
        let greedy = &answered.greedy;
        let (verdict, why) = verdict_on(&self.writing, line, greedy);
        let shown = answered.taken().map_or(&line.target, |taken| &taken.tokens);
        let beams: &[Hypothesis] = if beams { &answered.beams } else { &[] };
        let step = ModelStep {
            input: text(&line.input),
            output: text(&greedy.tokens),
            next: line.next.as_ref().filter(|next| *next != shown).map(|next| text(next)),
            logprob: greedy.logprob,
            margin: margin(beams),
            verdict,
            sentence: why.to_string(),
            beams: beams.iter().map(|h| (text(&h.tokens), h.logprob)).collect(),
            line: text(shown),
            author: answered.author,
            probability: answered.taken().map(|taken| taken.logprob.exp()),
        };
        self.proof.push(step)
    }

    /// The proof. It is right only if every line was answered.
    pub fn finish(mut self) -> ModelProof {
        self.proof.right &= self.proof.steps.len() == self.lines.len();
        self.proof
    }
}

/// How an answer to a line turned out, and why.
pub fn verdict_on(writing: &Writing, line: &Line, answer: &Hypothesis) -> (Verdict, Explanation) {
    if !answer.finished {
        return (Verdict::Malformed, Explanation::NoAnswer);
    }
    let written = writing.evaluated(&answer.tokens).unwrap_or_else(|| answer.tokens.clone());
    let check = writing.check_line(&line.input, &written);
    (check.verdict, check.why)
}

//! From a model to answers: greedy and beam search over any [`Stepper`], with log-probabilities kept.
//!
//! The search runs on the host and knows nothing of devices. A stepper encodes the sources once, then extends open hypotheses
//! by one token at a time. A hypothesis names its parent of the step before, so that cached keys and values are
//! looked up, never moved.

mod answers;
mod assisted;
mod attention;
mod beam;
mod engine;
mod greedy;
mod recursive;

pub use answers::{Recursion, assisted_answers, beam_answers, greedy_answers, recursive_answers};
pub use assisted::{AssistedStep, assisted_steps};
pub use attention::{AttentionMap, CrossAttention};
pub use beam::{BEAM_WIDTH, BeamResult, beam_search, find_in_beams};
pub use engine::EngineStepper;
pub use greedy::{AnswerCache, greedy};
pub use recursive::{RecursiveProof, Start, recursive_proofs};

use polystep_engine::EngineError;
pub use polystep_record::Author;

/// An open hypothesis: it is extended by one token in each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Which source it answers.
    pub source: u32,
    /// The hypothesis that it continues, by its index in the step before (ignored in the first step).
    pub parent: u32,
    /// The token it adds.
    pub token: u8,
}

/// The best next tokens of each open hypothesis, best first; ties go to the smaller token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopTokens {
    /// How many per hypothesis.
    pub k: usize,
    /// `hypotheses × k` tokens.
    pub tokens: Vec<u8>,
    /// Their log-probabilities.
    pub logprobs: Vec<f32>,
}

impl TopTokens {
    /// The best tokens of one hypothesis with their log-probabilities.
    pub fn of(&self, hypothesis: usize) -> impl Iterator<Item = (u8, f32)> + '_ {
        let at = hypothesis * self.k..(hypothesis + 1) * self.k;
        self.tokens[at.clone()].iter().copied().zip(self.logprobs[at].iter().copied())
    }
}

/// What a stepper can hold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Open hypotheses of one step.
    pub hypotheses: usize,
    /// Source tokens (`</s>` included) that one call of [`Stepper::begin`] may take.
    pub tokens: usize,
    /// The longest source and the longest output, `</s>` included. A longer source gets no answer, which is wrong.
    pub longest: usize,
}

/// A model that can be asked for next tokens.
pub trait Stepper {
    /// What it can hold at once.
    fn capacity(&self) -> Capacity;

    /// Encodes sources (without `</s>`), and forgets all earlier ones.
    fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError>;

    /// Extends every hypothesis by its token, which stands at `position` of the decoder's input (0 is `<s>`), and returns the `k`
    /// best tokens after it.
    fn step(&mut self, position: usize, open: &[Branch], k: usize, out: &mut TopTokens) -> Result<(), EngineError>;
}

/// One finished output.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Its tokens, without `</s>`.
    pub tokens: Vec<u8>,
    /// Sum of the log-probabilities of its tokens and of `</s>`.
    pub logprob: f32,
    /// False if it was cut at the length limit.
    pub finished: bool,
}

#[cfg(test)]
pub(crate) mod toy {
    //! A bigram model over a few tokens that depends on the source: small enough to search exhaustively.

    use super::*;

    pub const EOS: u8 = polystep_core::token::EOS;

    /// Tokens 4.. and `</s>`; logits from a hash of (source, position, previous token, next token).
    pub struct Toy {
        pub symbols: usize,
        pub max_tokens: usize,
        pub sources: Vec<Vec<u8>>,
    }

    impl Toy {
        pub fn new(symbols: usize, max_tokens: usize) -> Self {
            Toy { symbols, max_tokens, sources: Vec::new() }
        }

        /// Log-probabilities of every token after `token`.
        pub fn next(&self, source: &[u8], position: usize, token: u8) -> Vec<(u8, f32)> {
            let choices = std::iter::once(EOS).chain((0..self.symbols).map(|i| 4 + i as u8));
            let logits: Vec<(u8, f64)> = choices
                .map(|next| {
                    let key = [source, &[position as u8, token, next]].concat();
                    let hash = blake3::hash(&key);
                    (next, f64::from(hash.as_bytes()[0]) / 64.0)
                })
                .collect();
            let total: f64 = logits.iter().map(|l| l.1.exp()).sum();
            let mut out: Vec<_> = logits.iter().map(|&(t, l)| (t, (l - total.ln()) as f32)).collect();
            out.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            out
        }
    }

    impl Stepper for Toy {
        fn capacity(&self) -> Capacity {
            Capacity { hypotheses: 16, tokens: 40, longest: self.max_tokens }
        }

        fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError> {
            self.sources = sources.iter().map(|s| s.to_vec()).collect();
            Ok(())
        }

        fn step(&mut self, position: usize, open: &[Branch], k: usize, out: &mut TopTokens) -> Result<(), EngineError> {
            (out.k, out.tokens, out.logprobs) = (k.min(self.symbols + 1), Vec::new(), Vec::new());
            for hypothesis in open {
                for (token, logprob) in
                    self.next(&self.sources[hypothesis.source as usize], position, hypothesis.token).iter().take(out.k)
                {
                    out.tokens.push(*token);
                    out.logprobs.push(*logprob);
                }
            }
            Ok(())
        }
    }
}

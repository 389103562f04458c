//! How a proof is written down: setting, granularity, notation and style, in one bundle (§2 of the paper).
//!
//! One polynomial has many proofs on paper. A [`Writing`] picks one of them. This module writes and reads with it; the modules
//! [`judge`](crate::judge) and [`explain`](crate::explain) add the methods that say whether an answer is right, and if not, why.

mod lines;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use lines::Lines;

use crate::arithmetic::Exercise;
use crate::explain::Explanation;
use crate::expr::State;
use crate::granularity::Granularity;
use crate::named;
use crate::notation::{self, Notation, NotationError, Open, Style, parse_tokens};
use crate::poly::ArithmeticError;
use crate::proof::{Proof, StepKind};
use crate::token;

/// What the steps of a proof look like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// State to state.
    #[default]
    Plain,
    /// Coefficients are left open in brackets, for a calculator.
    Calculator,
    /// Each operation step is preceded by one that marks its operand. Infix only.
    Annotated,
    /// Start to endpoint in one shot.
    Endpoint,
    /// Sums and products of 4- and 9-digit numbers; there is no polynomial.
    Arithmetic,
}
named!(
    Setting, "setting":
    Plain "plain", Calculator "calculator", Annotated "annotated", Endpoint "endpoint", Arithmetic "arithmetic"
);

/// How a proof is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Writing {
    /// What the steps look like.
    pub setting: Setting,
    /// How large they are.
    pub granularity: Granularity,
    /// How states are written.
    pub notation: Notation,
    /// The order of terms, and whether ones are written.
    pub style: Style,
}

/// Choices that do not fit together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum WritingError {
    /// The marks of an annotation stand around text in infix.
    #[error("annotated proofs are written in infix only")]
    AnnotatedPrefix,
}

/// A step as a model sees it: tokens in, tokens out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// What it does.
    pub kind: StepKind,
    /// The source, without `</s>`.
    pub input: Vec<u8>,
    /// The target, without `</s>`.
    pub target: Vec<u8>,
    /// The evaluated state, which is the next input (calculator only).
    pub next: Option<Vec<u8>>,
}

impl Writing {
    /// Whether the choices fit together.
    pub fn validate(&self) -> Result<(), WritingError> {
        match self.setting {
            Setting::Annotated if self.notation == Notation::Prefix => Err(WritingError::AnnotatedPrefix),
            _ => Ok(()),
        }
    }

    /// A state as text.
    pub fn print(&self, state: &State) -> String {
        notation::print(state, self.notation, self.style)
    }

    /// Reads a state, as printed or as people type it.
    pub fn parse(&self, text: &str) -> Result<State, NotationError> {
        notation::parse(text, self.notation, self.style)
    }

    /// Tokens as text.
    pub fn text(&self, tokens: &[u8]) -> String {
        token::decode(tokens, self.notation)
    }

    /// The proof that starts here.
    pub fn proof(&self, start: &State) -> Result<Proof, ArithmeticError> {
        Proof::of(start, self.granularity, self.style)
    }

    /// What a model's tokens come to: a calculator's brackets are replaced by their numbers. `None` if a bracket cannot be
    /// evaluated, or stands in a plain state.
    pub fn evaluated(&self, tokens: &[u8]) -> Option<Vec<u8>> {
        match self.setting {
            Setting::Calculator => self.evaluate_brackets(tokens),
            Setting::Plain | Setting::Endpoint if tokens.contains(&token::BRACKET) => None,
            _ => Some(tokens.to_vec()),
        }
    }

    /// The state that a model's tokens denote, an annotation's tag and marks left out. `None` if they cannot be read.
    pub fn state(&self, tokens: &[u8]) -> Option<State> {
        self.denoted(&self.evaluated(tokens)?)
    }

    /// The state that tokens denote, brackets allowed.
    pub(crate) fn denoted(&self, tokens: &[u8]) -> Option<State> {
        let state = match self.setting {
            Setting::Annotated => untagged(tokens)?,
            _ => tokens.to_vec(),
        };
        Some(parse_tokens(&state, self.notation, self.style).ok()?.0)
    }

    /// The tokens with the number that it comes to in place of every bracket. `None` if a bracket cannot be read or overflows.
    fn evaluate_brackets(&self, tokens: &[u8]) -> Option<Vec<u8>> {
        if !tokens.contains(&token::BRACKET) {
            return Some(tokens.to_vec());
        }
        // What is written as the language writes it is read and written again: a term whose bracket is worth 0 vanishes.
        if let Ok((state, open)) = parse_tokens(tokens, self.notation, self.style)
            && self.tokens(&state, &open) == tokens
        {
            return Some(self.tokens(&state, &Open::new()));
        }
        // Elsewhere what stands outside the brackets is not looked at.
        let mut out: Vec<u8> = Vec::with_capacity(tokens.len());
        let mut rest = tokens;
        while let Some(open) = rest.iter().position(|&t| t == token::BRACKET) {
            let close = open + rest[open..].iter().position(|&t| t == token::UNBRACKET)?;
            out.extend_from_slice(&rest[..open]);
            // A bracket alone is a constant polynomial, so the parser computes it.
            let (state, _) = parse_tokens(&rest[open..=close], self.notation, self.style).ok()?;
            let number = self.tokens(&state, &Open::new());
            if number[0] == token::MINUS && out.last() == Some(&token::PLUS) {
                out.pop();
            }
            out.extend(number);
            rest = &rest[close + 1..];
        }
        out.extend_from_slice(rest);
        Some(out)
    }

    /// A proof as a model sees it. The lines are written one at a time.
    pub fn lines(&self, proof: &Proof) -> Lines {
        Lines::new(*self, proof)
    }

    /// The line that a model's input asks for, or why there is none.
    pub fn expected(&self, input: &[u8]) -> Result<Line, Explanation> {
        if self.setting == Setting::Arithmetic {
            let exercise = Exercise::read(input, self.notation).ok_or(Explanation::NotAsked)?;
            return Ok(exercise.line(self.notation));
        }
        let annotated = self.setting == Setting::Annotated;
        let state = if annotated { untagged(input).ok_or(Explanation::UntaggedInput)? } else { input.to_vec() };
        let (state, _) = parse_tokens(&state, self.notation, self.style).map_err(Explanation::UnreadableInput)?;
        if matches!(self.setting, Setting::Plain | Setting::Calculator) {
            return self.first_line(state).map_err(Explanation::TooLarge)?.ok_or(Explanation::Finished);
        }
        let mut lines = self.lines(&self.proof(&state).map_err(Explanation::TooLarge)?);
        if lines.len() == 0 {
            return Err(Explanation::Finished);
        }
        // A tag says which line is asked for: the one that marks this state, or the one that then rewrites it. Elsewhere it is
        // the first.
        let asked = |line: &Line| !annotated || line.input == input;
        lines.by_ref().take(2).find(asked).ok_or(Explanation::NotAsked)
    }

    /// How a step from elsewhere is written, by its looks. A plain step and a calculator's step without brackets look alike.
    pub fn by_looks(kind: StepKind, input: &str, target: &str) -> Writing {
        let setting = match kind {
            StepKind::Add | StepKind::Mul => Setting::Arithmetic,
            StepKind::Endpoint => Setting::Endpoint,
            _ if token::encode(target).is_ok_and(|t| untagged(&t).is_some()) => Setting::Annotated,
            _ if target.contains('[') => Setting::Calculator,
            _ => Setting::Plain,
        };
        let prefix = ["INT+", "INT-", "+P", "*F"].iter().any(|t| target.contains(t))
            || ["INT+", "INT-"].iter().any(|t| input.contains(t));
        let notation = if prefix { Notation::Prefix } else { Notation::Infix };
        Writing { setting, notation, ..Writing::default() }
    }

    /// The same writing in the first [known](Granularity::known) granularity in which the input asks for the target; as it is
    /// if there is none.
    pub fn fitted(self, input: &str, target: &str) -> Writing {
        let (Ok(input), Ok(target)) = (token::encode(input), token::encode(target)) else { return self };
        let fits = |writing: &Writing| {
            writing.expected(&input).is_ok_and(|l| self.judge(l.kind, &l.target, &target).verdict.exact())
        };
        let known = Granularity::known().into_iter().map(|granularity| Writing { granularity, ..self });
        known.into_iter().find(fits).unwrap_or(self)
    }
}

/// The state behind an annotation's tag, without its marks.
pub fn untagged(tokens: &[u8]) -> Option<Vec<u8>> {
    match tokens {
        [tag, token::DOLLAR, state @ ..] if token::is_tag(*tag) => {
            Some(state.iter().copied().filter(|&t| t != token::HASH).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_asks_for_its_line() {
        let expected = |setting, input: &str| {
            let writing = Writing { setting, ..Writing::default() };
            writing.expected(&token::encode(input).unwrap()).ok().map(|line| writing.text(&line.target))
        };
        assert_eq!(expected(Setting::Plain, "(2)*(x1)+(3)").as_deref(), Some("(2*x1)+(3)"));
        assert_eq!(expected(Setting::Calculator, "(2)*(3)+(3)").as_deref(), Some("([2*3])+(3)"));
        assert_eq!(expected(Setting::Endpoint, "(2)*(x1)+(3)").as_deref(), Some("2*x1+3"));
        assert_eq!(expected(Setting::Annotated, "MARK $ (2)*(x1)+(3)").as_deref(), Some("MUL $ #(2)*(x1)#+(3)"));
        assert_eq!(expected(Setting::Annotated, "MUL $ #(2)*(x1)#+(3)").as_deref(), Some("MARK $ (2*x1)+(3)"));
        assert_eq!(expected(Setting::Annotated, "MUL $ (2)*(x1)+#(3)#"), None, "no proof has this mark");
        assert_eq!(expected(Setting::Arithmetic, "1234+5678").as_deref(), Some("6912"));
        assert_eq!(expected(Setting::Plain, "2*x1+3"), None, "an endpoint");
        // Only the step that is asked for must fit.
        let large = "(2)*(x1)+(9000000000000000000)+(9000000000000000000)";
        let step = "(2*x1)+(9000000000000000000)+(9000000000000000000)";
        assert_eq!(expected(Setting::Plain, large).as_deref(), Some(step));
        assert_eq!(expected(Setting::Plain, step), None, "the sum does not fit");
    }

    #[test]
    fn brackets_are_evaluated() {
        let evaluated = |notation, text: &str| {
            let writing = Writing { setting: Setting::Calculator, notation, ..Writing::default() };
            writing.evaluated(&token::encode(text).unwrap()).map(|tokens| writing.text(&tokens))
        };
        let prefix = |text| evaluated(Notation::Prefix, text);
        assert_eq!(prefix("* [ + * INT+ 3 INT+ 4 INT+ 5 ] x1").as_deref(), Some("* INT+ 1 7 x1"));
        assert_eq!(prefix("+ * [ + INT+ 3 INT- 4 ] x1 [ + INT+ 1 INT- 1 ]").as_deref(), Some("* INT- 1 x1"));
        let infix = |text| evaluated(Notation::Infix, text);
        assert_eq!(infix("([2+-2]*x1^2+[1+-2]*x1+[3*-1])+([1+-1])").as_deref(), Some("(-x1-3)+(0)"));
        assert_eq!(infix("[2*3]+[5*-1]*x1").as_deref(), Some("6-5*x1"), "not as the language writes it");
    }
}

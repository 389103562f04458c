//! The arithmetic probe: sums and products of two 4- or 9-digit numbers, without a polynomial around them.
//!
//! Probe i is a sum or a product (i even or odd) of numbers with 4 or 9 digits (i mod 4 below 2 or not), so that every
//! set of examples holds the four kinds in equal parts. Numbers have no leading 0.

use crate::notation::Notation;
use crate::proof::Line;
use crate::stream::{Purpose, Streams};
use crate::task::StepKind;
use crate::token::{self, push_digits};

/// A source of arithmetic examples.
#[derive(Clone, Debug)]
pub struct Probe {
    streams: Streams,
}

/// One sum or product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exercise {
    /// [`StepKind::Add`] or [`StepKind::Mul`].
    pub kind: StepKind,
    /// The left number.
    pub a: u64,
    /// The right number.
    pub b: u64,
}

impl Exercise {
    /// a+b or a*b.
    pub fn value(self) -> u64 {
        // At most (10^9 − 1)^2 < 10^18.
        if self.kind == StepKind::Add { self.a + self.b } else { self.a * self.b }
    }
}

impl Probe {
    /// The exercises of a seed.
    pub fn new(seed: u64) -> Probe {
        Probe { streams: Streams::new(seed, Purpose::Arithmetic, "") }
    }

    /// Exercise `index`.
    pub fn exercise(&self, index: u64) -> Exercise {
        let mut stream = self.streams.at(index);
        let low = if index % 4 < 2 { 1_000 } else { 100_000_000 };
        let kind = if index.is_multiple_of(2) { StepKind::Add } else { StepKind::Mul };
        Exercise { kind, a: stream.between(low, 10 * low - 1), b: stream.between(low, 10 * low - 1) }
    }

    /// Exercise `index` as a model sees it.
    pub fn line(&self, index: u64, notation: Notation) -> Line {
        let exercise = self.exercise(index);
        let operator = if exercise.kind == StepKind::Add { token::PLUS } else { token::TIMES };
        let (mut input, mut target) = (Vec::new(), Vec::new());
        match notation {
            Notation::Infix => {
                push_digits(exercise.a, &mut input);
                input.push(operator);
                push_digits(exercise.b, &mut input);
            }
            Notation::Prefix => {
                input.extend([operator, token::INT]);
                push_digits(exercise.a, &mut input);
                input.push(token::INT);
                push_digits(exercise.b, &mut input);
                target.push(token::INT);
            }
        }
        push_digits(exercise.value(), &mut target);
        Line { kind: exercise.kind, input, target, next: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_four_or_nine_digits() {
        let probe = Probe::new(1);
        for i in 0..400 {
            let e = probe.exercise(i);
            let digits = if i % 4 < 2 { 4 } else { 9 };
            assert_eq!([e.a.to_string().len(), e.b.to_string().len()], [digits, digits]);
            let line = probe.line(i, Notation::Infix);
            let sign = if e.kind == StepKind::Add { '+' } else { '*' };
            assert_eq!(token::decode(&line.input, Notation::Infix), format!("{}{sign}{}", e.a, e.b));
            assert_eq!(token::decode(&line.target, Notation::Infix), e.value().to_string());
        }
    }
}

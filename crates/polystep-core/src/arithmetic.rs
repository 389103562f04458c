//! The arithmetic probe: sums and products of two 4- or 9-digit numbers, without a polynomial around them.
//!
//! A task's configuration says which exercises it has: `add4`, `mul4`, `add9` or `mul9`, and under any other key all four in
//! turn (exercise i is of kind i mod 4), so that every set of examples holds them in equal parts. Numbers have no leading 0.
//! The training stream does not name its configuration's caps or variables: there is no polynomial that they could limit.

use crate::guard::Guard;
use crate::named;
use crate::notation::Notation;
use crate::proof::StepKind;
use crate::sets::{FixedSet, SEED, SETS};
use crate::stream::{Purpose, Stream, Streams};
use crate::token::{self, push_digits};
use crate::writing::Line;

/// The key of all four kinds in turn.
pub const MIXTURE: &str = "arithmetic";

/// Every key of the probe: the mixture, then the four kinds.
pub const KEYS: [&str; 5] = [MIXTURE, "add4", "add9", "mul4", "mul9"];

/// A kind of exercise, in the order of the mixture. Its name is its key as a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Drill {
    /// Sums of 4-digit numbers.
    Add4,
    /// Products of 4-digit numbers.
    Mul4,
    /// Sums of 9-digit numbers.
    Add9,
    /// Products of 9-digit numbers.
    Mul9,
}
named!(Drill, "kind of exercise": Add4 "add4", Mul4 "mul4", Add9 "add9", Mul9 "mul9");

impl Drill {
    fn draw(self, stream: &mut Stream) -> Exercise {
        let (kind, low) = match self {
            Drill::Add4 => (StepKind::Add, 1_000),
            Drill::Mul4 => (StepKind::Mul, 1_000),
            Drill::Add9 => (StepKind::Add, 100_000_000),
            Drill::Mul9 => (StepKind::Mul, 100_000_000),
        };
        Exercise { kind, a: stream.between(low, 10 * low - 1), b: stream.between(low, 10 * low - 1) }
    }
}

/// `add4` or `mul9` for an exercise, with the digits that its input has; every other kind by its own name.
pub fn kind_name(kind: StepKind, input: &[u8]) -> String {
    if !matches!(kind, StepKind::Add | StepKind::Mul) {
        return kind.name().to_owned();
    }
    let digits = input.iter().filter(|t| (token::DIGIT..token::VAR).contains(t)).count();
    format!("{kind}{}", digits / 2)
}

/// A source of arithmetic examples.
#[derive(Clone, Debug)]
pub struct Probe {
    streams: Streams,
    /// One kind, or all in turn.
    drill: Option<Drill>,
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

    /// What the guard knows it by; no two exercises share one, since 10^9 < 2^30.
    pub fn fingerprint(self) -> u64 {
        u64::from(self.kind == StepKind::Mul) << 60 | self.a << 30 | self.b
    }

    /// Reads what a model is asked, `1234+5678`; none if it is no exercise or its result is too large.
    pub fn read(input: &[u8], notation: Notation) -> Option<Exercise> {
        let is_sign = |t: &u8| [token::PLUS, token::TIMES].contains(t);
        let (sign, a, b) = match notation {
            Notation::Infix => {
                let at = input.iter().position(is_sign)?;
                (input[at], &input[..at], &input[at + 1..])
            }
            Notation::Prefix => {
                let (&sign, numbers) = input.split_first().filter(|(sign, _)| is_sign(sign))?;
                let second = numbers.iter().rposition(|&t| t == token::INT)?;
                (sign, &numbers[..second], &numbers[second..])
            }
        };
        let kind = if sign == token::PLUS { StepKind::Add } else { StepKind::Mul };
        let (a, b) = (read_number(a, notation)?, read_number(b, notation)?);
        let fits = if kind == StepKind::Add { a.checked_add(b) } else { a.checked_mul(b) };
        fits.map(|_| Exercise { kind, a, b })
    }

    /// As a model sees it.
    pub fn line(self, notation: Notation) -> Line {
        let operator = if self.kind == StepKind::Add { token::PLUS } else { token::TIMES };
        let (mut input, mut target) = (Vec::new(), Vec::new());
        match notation {
            Notation::Infix => {
                push_digits(self.a, &mut input);
                input.push(operator);
                push_digits(self.b, &mut input);
            }
            Notation::Prefix => {
                input.extend([operator, token::INT]);
                push_digits(self.a, &mut input);
                input.push(token::INT);
                push_digits(self.b, &mut input);
                target.push(token::INT);
            }
        }
        push_digits(self.value(), &mut target);
        Line { kind: self.kind, input, target, next: None }
    }
}

/// A number in a notation; none if it is not one, has a leading 0 or does not fit.
pub(crate) fn read_number(tokens: &[u8], notation: Notation) -> Option<u64> {
    let digits = match notation {
        Notation::Infix => tokens,
        Notation::Prefix => tokens.strip_prefix(&[token::INT])?,
    };
    let digit = |t: u8| (token::DIGIT..token::VAR).contains(&t).then(|| u64::from(t - token::DIGIT));
    if digits.first().is_none_or(|&d| d == token::DIGIT) {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &t| n.checked_mul(10)?.checked_add(digit(t)?))
}

impl Probe {
    /// The exercises of a seed under a configuration's key. The fixed sets (valid, test, beam) have streams of their own.
    pub fn new(key: &str, seed: u64, purpose: Purpose) -> Probe {
        let drill = key.parse().ok();
        let streams = match (FixedSet::of(purpose), drill) {
            (Some(_), drill) => Streams::new(seed, purpose, drill.map_or(MIXTURE, Drill::name)),
            (None, drill) => Streams::new(seed, Purpose::Arithmetic, drill.map_or("", Drill::name)),
        };
        Probe { streams, drill }
    }

    /// Exercise `index`, and how many draws the guard refused before it.
    pub fn exercise(&self, index: u64, guard: Option<&Guard>) -> (Exercise, u64) {
        let mut stream = self.streams.at(index);
        let drill = self.drill.unwrap_or(Drill::ALL[(index % 4) as usize]);
        let mut refused = 0;
        loop {
            let exercise = drill.draw(&mut stream);
            if !guard.is_some_and(|g| g.contains_exercise(exercise.fingerprint())) {
                return (exercise, refused);
            }
            refused += 1;
        }
    }
}

/// The exercises of all valid, test and beam sets under every key, as the guard knows them.
pub(crate) fn guarded() -> impl Iterator<Item = u64> {
    let sets = KEYS.into_iter().flat_map(|key| SETS.map(|set| (Probe::new(key, SEED, set.purpose), set.proofs)));
    sets.flat_map(|(probe, n)| (0..n).map(move |index| probe.exercise(index, None).0.fingerprint()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn exactly_four_or_nine_digits() {
        let probe = Probe::new(MIXTURE, 1, Purpose::Train);
        for i in 0..400 {
            let (e, _) = probe.exercise(i, None);
            let digits = if i % 4 < 2 { 4 } else { 9 };
            assert_eq!([e.a.to_string().len(), e.b.to_string().len()], [digits, digits]);
            let line = e.line(Notation::Infix);
            let sign = if e.kind == StepKind::Add { '+' } else { '*' };
            assert_eq!(token::decode(&line.input, Notation::Infix), format!("{}{sign}{}", e.a, e.b));
            assert_eq!(token::decode(&line.target, Notation::Infix), e.value().to_string());
        }
    }

    #[test]
    fn the_kind_carries_its_digits_in_both_notations() {
        for drill in Drill::ALL {
            let (exercise, _) = Probe::new(drill.name(), 3, Purpose::Test).exercise(17, None);
            for notation in [Notation::Infix, Notation::Prefix] {
                let line = exercise.line(notation);
                assert_eq!(kind_name(line.kind, &line.input), drill.name());
                assert_eq!(Exercise::read(&line.input, notation), Some(exercise));
            }
        }
        assert_eq!(kind_name(StepKind::Mulstep, &token::encode("(2)*(3)").unwrap()), "mulstep");
    }

    #[test]
    fn every_key_and_purpose_has_exercises_of_its_own() {
        let first = |key, purpose| Probe::new(key, SEED, purpose).exercise(0, None).0;
        let purposes = [Purpose::Train, Purpose::Valid, Purpose::Test, Purpose::Beam];
        let all: Vec<u64> =
            KEYS.iter().flat_map(|key| purposes.map(|purpose| first(key, purpose).fingerprint())).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    /// 4-digit exercises are few enough that some of 200 000 meet an evaluation set.
    #[test]
    fn a_guarded_exercise_is_drawn_again() {
        let (guard, probe) = (Guard::standard().unwrap(), Probe::new("add4", 1, Purpose::Train));
        let mut refused = 0;
        for index in 0..200_000 {
            let (exercise, again) = probe.exercise(index, Some(&guard));
            assert!(!guard.contains_exercise(exercise.fingerprint()));
            assert_eq!(again == 0, exercise == probe.exercise(index, None).0);
            refused += again;
        }
        assert!((1..200).contains(&refused), "{refused}");
        let (test, _) = Probe::new("mul9", SEED, Purpose::Test).exercise(999, None);
        assert!(guard.contains_exercise(test.fingerprint()));
    }
}

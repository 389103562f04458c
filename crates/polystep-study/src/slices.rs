//! Where the errors are: the error rate by number of terms, by size of coefficients and by length.
//!
//! All three are read off the tokens, so infix and prefix give the same numbers for the same state (the length excepted).
//! Terms and length are those of the input; the coefficient is the largest number that the model had to write.

use polystep_core::{Notation, token};
use polystep_record::Proportion;
use polystep_record::metrics::{Slice, Slices};

/// What an example is sliced by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Terms of the input.
    pub terms: u64,
    /// The largest coefficient of the target (of its evaluated form, for a calculator).
    pub coefficient: u64,
    /// Tokens of the input.
    pub length: u64,
}

impl Features {
    /// Reads an example; text that is not even made of tokens counts as nothing.
    pub fn of(input: &str, evaluated_target: &str, notation: Notation) -> Features {
        let input = token::encode(input).unwrap_or_default();
        let target = token::encode(evaluated_target).unwrap_or_default();
        Features { terms: terms(&input, notation), coefficient: largest(&target), length: input.len() as u64 }
    }
}

/// A term more with every sign that joins two terms, factors or products.
fn terms(tokens: &[u8], notation: Notation) -> u64 {
    let tokens: Vec<u8> = tokens.iter().copied().filter(|&t| t != token::HASH).collect();
    let joins = tokens.iter().enumerate().filter(|&(i, &t)| match (notation, t) {
        (_, token::PLUS) => true,
        // Not the sign of a first term, nor one inside a bracket.
        (Notation::Infix, token::MINUS) => {
            i > 0 && ![token::OPEN, token::BRACKET, token::PLUS, token::TIMES, token::DOLLAR].contains(&tokens[i - 1])
        }
        (Notation::Prefix, token::SUM_OF | token::PRODUCT_OF) => true,
        (Notation::Infix, token::TIMES) => tokens.get(i + 1) == Some(&token::OPEN),
        _ => false,
    });
    u64::from(!tokens.is_empty()) + joins.count() as u64
}

/// The largest number that is not an exponent.
fn largest(tokens: &[u8]) -> u64 {
    let digit = |t: u8| (token::DIGIT..token::VAR).contains(&t);
    let value = |n: u64, t: &u8| n.saturating_mul(10).saturating_add(u64::from(t - token::DIGIT));
    let (mut largest, mut at) = (0, 0);
    for run in tokens.chunk_by(|a, b| digit(*a) && digit(*b)) {
        // Infix: `^2`. Prefix: `^ x1 INT+ 2`.
        let exponent = matches!(tokens[..at], [.., token::POWER] | [.., token::POWER, _, token::INT]);
        if digit(run[0]) && !exponent {
            largest = run.iter().fold(0, value).max(largest);
        }
        at += run.len();
    }
    largest
}

// Fixed edges, so that runs can be compared slice by slice; slices without examples are left out.
const TERMS: [u64; 10] = [1, 3, 5, 7, 9, 12, 16, 20, 30, 40];
const COEFFICIENT: [u64; 10] = [1, 10, 20, 40, 80, 160, 320, 1000, 3000, 10_000];
const LENGTH: [u64; 10] = [1, 20, 40, 60, 80, 110, 150, 200, 300, 400];

/// Slices examples: what they are like, and whether they are wrong.
pub fn slices(examples: &[(Features, bool)]) -> Slices {
    let by = |edges: &[u64], value: &dyn Fn(&Features) -> u64| {
        slice(edges, examples.iter().map(|(f, wrong)| (value(f), *wrong)))
    };
    Slices {
        terms: by(&TERMS, &|f| f.terms),
        coefficient: by(&COEFFICIENT, &|f| f.coefficient),
        length: by(&LENGTH, &|f| f.length),
    }
}

fn slice(edges: &[u64], values: impl Iterator<Item = (u64, bool)>) -> Vec<Slice> {
    let mut counts = vec![(0u64, 0u64); edges.len()];
    for (value, wrong) in values {
        let at = edges.partition_point(|&edge| edge <= value).saturating_sub(1);
        counts[at] = (counts[at].0 + u64::from(wrong), counts[at].1 + 1);
    }
    let slice = |(i, (wrong, of)): (usize, (u64, u64))| {
        let to = edges.get(i + 1).map(|next| next - 1);
        Some(Slice { from: edges[i], to, wrong: Proportion::new(wrong, of)? })
    };
    counts.into_iter().enumerate().filter_map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_agree_on_a_state() {
        let infix = Features::of("(2*x2^2)*(3*x2^1+40)+(5*x1^12)", "30*x1^3+6*x2^300", Notation::Infix);
        let prefix = Features::of(
            "+P *F * INT+ 2 ^ x2 INT+ 2 + * INT+ 3 ^ x2 INT+ 1 INT+ 4 0 * INT+ 5 ^ x1 INT+ 1 2",
            "+ * INT+ 3 0 ^ x1 INT+ 3 * INT+ 6 ^ x2 INT+ 3 0 0",
            Notation::Prefix,
        );
        assert_eq!((infix.terms, infix.coefficient), (4, 30));
        assert_eq!((prefix.terms, prefix.coefficient), (4, 30));
        assert_eq!((infix.length, prefix.length), (27, 28));
        let infix = Features::of("(-2*x1-3)*(-x2)+(x1-40)", "-30*x1^3-6", Notation::Infix);
        let prefix = Features::of(
            "+P *F + * INT- 2 x1 INT- 3 * INT- 1 x2 + x1 INT- 4 0",
            "+ * INT- 3 0 ^ x1 INT+ 3 INT- 6",
            Notation::Prefix,
        );
        assert_eq!((infix.terms, infix.coefficient), (5, 30));
        assert_eq!((prefix.terms, prefix.coefficient), (5, 30));
    }

    #[test]
    fn marks_and_nonsense() {
        assert_eq!(Features::of("MUL $ #(2)*(x1)#*(3)", "MARK $ (2*x1)*(3)", Notation::Infix).terms, 3);
        assert_eq!(Features::of("¿", "", Notation::Infix), Features::default());
    }

    #[test]
    fn slices_count_every_example_once() {
        let example = |terms, wrong| (Features { terms, coefficient: 5, length: 1000 }, wrong);
        let found = slices(&[example(1, false), example(2, true), example(3, true), example(0, false)]);
        let terms: Vec<_> = found.terms.iter().map(|s| (s.from, s.to, s.wrong.count, s.wrong.of)).collect();
        assert_eq!(terms, [(1, Some(2), 1, 3), (3, Some(4), 1, 1)]);
        assert_eq!((found.length.len(), found.length[0].to), (1, None));
    }
}

//! Which digits are wrong: an account of the wrong numbers in answers whose form is right.
//!
//! An answer has the right form if it differs from the target in coefficients only. Each of its coefficients was either copied
//! or computed by the step. A computed one is a sum of products, one summand for each way to reach its monomial; these are
//! the summands that a calculator would be given.
//!
//! The decision a reader would get wrong: "carry" means a carry into the digit when the summands are added. Carries inside the
//! product that makes a summand are not looked at. With summands of both signs no carry is claimed.

use polystep_core::notation::OpenTerm;
use polystep_core::{Monomial, Setting, State, StepKind, Term, Writing, next_step, token};
use polystep_record::{Prediction, Proportion};

use crate::score::ScoredStep;

/// A coefficient that a step leads to.
#[derive(Clone, PartialEq, Debug)]
struct Coefficient {
    monomial: Monomial,
    value: i64,
    /// The values of its summands; none if it was copied.
    summands: Vec<i64>,
    place: Place,
}

/// Where a coefficient stands in its polynomial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Only,
    First,
    Middle,
    Last,
}

/// A row of a table: what is counted, and how much of it is wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct DigitRow {
    /// What is counted.
    pub label: &'static str,
    /// How much of it is wrong.
    pub wrong: Proportion,
}

/// The account.
#[derive(Clone, PartialEq, Debug)]
pub struct DigitErrors {
    /// Wrong steps.
    pub steps: u64,
    /// Of these, answers that cannot be read.
    pub unreadable: u64,
    /// Answers that differ in more than coefficients: other terms, factors or products.
    pub other_form: u64,
    /// Wrong coefficients in the other answers.
    pub coefficients: u64,
    /// Answers with a single wrong coefficient.
    pub single: u64,
    /// Wrong coefficients that have more or fewer digits than the right ones.
    pub other_length: u64,
    /// Computed coefficients by their place in the polynomial.
    pub by_place: Vec<DigitRow>,
    /// Coefficients by the number of their summands.
    pub by_summands: Vec<DigitRow>,
    /// Digits of computed coefficients, by their place and whether a carry comes into them.
    pub by_digit: Vec<DigitRow>,
}

const PLACES: [&str; 4] = ["the only one", "first", "in the middle", "last"];
const SUMMANDS: [&str; 6] = ["copied", "1", "2", "3", "4", "5 or more"];
const DIGITS: [&str; 7] = [
    "units",
    "tens",
    "tens, with a carry",
    "hundreds",
    "hundreds, with a carry",
    "thousands and higher",
    "thousands and higher, with a carry",
];

/// Counts of wrong ones and of all.
#[derive(Clone, Copy, Default)]
struct Tally(u64, u64);

impl Tally {
    fn add(&mut self, wrong: bool) {
        *self = Tally(self.0 + u64::from(wrong), self.1 + 1);
    }
}

/// The account of some predictions; none if their steps compute no coefficients: marks, one shot, exercises, and a calculator's
/// brackets.
pub fn digit_errors<'a>(
    predictions: impl IntoIterator<Item = &'a (Prediction, ScoredStep)>,
    writing: &Writing,
) -> Option<DigitErrors> {
    if !matches!(writing.setting, Setting::Plain | Setting::Annotated) {
        return None;
    }
    let mut account = DigitErrors {
        steps: 0,
        unreadable: 0,
        other_form: 0,
        coefficients: 0,
        single: 0,
        other_length: 0,
        by_place: Vec::new(),
        by_summands: Vec::new(),
        by_digit: Vec::new(),
    };
    let (mut places, mut summands, mut digits) = ([Tally::default(); 4], [Tally::default(); 6], [Tally::default(); 7]);
    for (prediction, scored) in predictions {
        if !matches!(prediction.kind, StepKind::Facstep | StepKind::Mulstep | StepKind::Sumstep) {
            continue;
        }
        let Some(expected) = expected(&prediction.input, writing) else { continue };
        let right = scored.verdict.exact();
        account.steps += u64::from(!right);
        let answer = prediction.answers().next().and_then(|answer| state(&answer.output, writing));
        let Some(answer) = answer else {
            account.unreadable += u64::from(!right);
            continue;
        };
        let Some(values) = values(&answer, &expected) else {
            account.other_form += u64::from(!right);
            continue;
        };
        let mut wrong = 0;
        for (coefficient, &value) in expected.iter().zip(&values) {
            let differs = coefficient.value != value;
            wrong += u64::from(differs);
            account.other_length += u64::from(differs && length(coefficient.value) != length(value));
            summands[coefficient.summands.len().min(5)].add(differs);
            if coefficient.summands.is_empty() {
                continue;
            }
            places[coefficient.place as usize].add(differs);
            for d in 0..length(coefficient.value) {
                let carry = usize::from(carries_into(d, &coefficient.summands));
                // Nothing carries into the units.
                let row = if d == 0 { 0 } else { 2 * d.min(3) as usize - 1 + carry };
                digits[row].add(digit(coefficient.value, d) != digit(value, d));
            }
        }
        account.coefficients += wrong;
        account.single += u64::from(wrong == 1);
    }
    let rows = |labels: &[&'static str], tallies: &[Tally]| -> Vec<DigitRow> {
        let row = |(&label, tally): (&&'static str, &Tally)| {
            Some(DigitRow { label, wrong: Proportion::new(tally.0, tally.1)? })
        };
        labels.iter().zip(tallies).filter_map(row).collect()
    };
    account.by_place = rows(&PLACES, &places);
    account.by_summands = rows(&SUMMANDS, &summands);
    account.by_digit = rows(&DIGITS, &digits);
    (!account.by_place.is_empty()).then_some(account)
}

/// The state that a text denotes.
fn state(text: &str, writing: &Writing) -> Option<State> {
    writing.state(&token::encode(text).ok()?)
}

/// The coefficients of the state that the step from an input leads to.
fn expected(input: &str, writing: &Writing) -> Option<Vec<Coefficient>> {
    let step = next_step(&state(input, writing)?, writing.granularity, writing.style).ok()??;
    let mut all = Vec::new();
    for (place, terms) in polynomials(&step.after) {
        let open = step.open.get(&place);
        for (i, term) in terms.iter().enumerate() {
            let same = |open: &&OpenTerm| open.term.monomial == term.monomial;
            let summands = open.and_then(|terms| terms.iter().find(same)?.summands.as_ref());
            let values = summands.map(|all| all.iter().map(|numbers| numbers.iter().product()).collect());
            let place = match (i, terms.len()) {
                (_, 1) => Place::Only,
                (0, _) => Place::First,
                (i, n) if i + 1 == n => Place::Last,
                _ => Place::Middle,
            };
            let (monomial, value, summands) = (term.monomial, term.coeff, values.unwrap_or_default());
            all.push(Coefficient { monomial, value, summands, place });
        }
    }
    Some(all)
}

/// The coefficients of an answer that has the form of the expected state; none if it has another one.
fn values(answer: &State, expected: &[Coefficient]) -> Option<Vec<i64>> {
    let terms: Vec<Term> = polynomials(answer).into_iter().flat_map(|(_, terms)| terms).collect();
    let same = terms.len() == expected.len() && terms.iter().zip(expected).all(|(t, e)| t.monomial == e.monomial);
    same.then(|| terms.iter().map(|t| t.coeff).collect())
}

/// The factors of a state, each with its place, (product, factor); an endpoint is the only one.
fn polynomials(state: &State) -> Vec<((usize, usize), Vec<Term>)> {
    match state {
        State::Bare(poly) => vec![((0, 0), polystep_core::Factor::from(poly).0)],
        State::Sum(products) => {
            let factors = products.iter().enumerate().flat_map(|(p, product)| {
                product.0.iter().enumerate().map(move |(f, factor)| ((p, f), factor.0.clone()))
            });
            factors.collect()
        }
    }
}

/// How many digits a number has.
fn length(number: i64) -> u32 {
    number.unsigned_abs().checked_ilog10().map_or(1, |n| n + 1)
}

/// The digit of a number at 10^d.
fn digit(number: i64, d: u32) -> u64 {
    10u64.checked_pow(d).map_or(0, |power| number.unsigned_abs() / power % 10)
}

/// Whether adding the lower digits of the summands carries into the digit at 10^d.
fn carries_into(d: u32, summands: &[i64]) -> bool {
    let Some(power) = 10i64.checked_pow(d) else { return false };
    let one_sign = summands.iter().all(|&s| s >= 0) || summands.iter().all(|&s| s <= 0);
    let lower: u64 = summands.iter().map(|s| (s % power).unsigned_abs()).sum();
    one_sign && lower >= power.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use polystep_record::Beam;

    use super::*;
    use crate::score::score;

    fn graded(kind: StepKind, input: &str, output: &str) -> (Prediction, ScoredStep) {
        let writing = Writing::default();
        let target = writing.text(&writing.expected(&token::encode(input).unwrap()).unwrap().target);
        let beams = vec![Beam { output: output.into(), logprob: None, finished: true }];
        let prediction = Prediction { proof: "p".into(), step: 0, kind, input: input.into(), target, beams };
        let scored = score(&prediction, &writing);
        (prediction, scored)
    }

    fn counts(rows: &[DigitRow]) -> Vec<(&str, u64, u64)> {
        rows.iter().map(|row| (row.label, row.wrong.count, row.wrong.of)).collect()
    }

    /// (4*x+5)*(6*x+7) = 24*x^2 + (28+30)*x + 35: 8+0 carries nothing.
    #[test]
    fn a_wrong_coefficient_in_the_middle() {
        let steps = [graded(StepKind::Mulstep, "(4*x1+5)*(6*x1+7)+(2)", "(24*x1^2+68*x1+35)+(2)")];
        let account = digit_errors(&steps, &Writing::default()).unwrap();
        assert_eq!((account.steps, account.coefficients, account.single, account.other_length), (1, 1, 1, 0));
        assert_eq!(counts(&account.by_place), [("first", 0, 1), ("in the middle", 1, 1), ("last", 0, 1)]);
        assert_eq!(counts(&account.by_summands), [("copied", 0, 1), ("1", 0, 2), ("2", 1, 1)]);
        assert_eq!(counts(&account.by_digit), [("units", 0, 3), ("tens", 1, 3)]);
    }

    /// 57+48 = 105: a carry into the tens, and one into the hundreds.
    #[test]
    fn carries_and_lengths() {
        let right = graded(StepKind::Sumstep, "(57*x1)+(48*x1)", "105*x1");
        let short = graded(StepKind::Sumstep, "(57*x1)+(48*x1)", "95*x1");
        let account = digit_errors(&[right, short], &Writing::default()).unwrap();
        assert_eq!((account.steps, account.coefficients, account.other_length), (1, 1, 1));
        let digits = [("units", 0, 2), ("tens, with a carry", 1, 2), ("hundreds, with a carry", 1, 2)];
        assert_eq!(counts(&account.by_digit), digits);
        assert_eq!(counts(&account.by_place), [("the only one", 1, 2)]);
        assert!(carries_into(1, &[-7, -8]) && !carries_into(1, &[7, -8]) && !carries_into(1, &[4, 5]));
        assert!(carries_into(2, &[50, 49, 1]) && !carries_into(3, &[50, 49, 1]));
    }

    #[test]
    fn answers_of_another_form_are_set_apart() {
        let steps = [
            graded(StepKind::Mulstep, "(2)*(x1)+(3)", "(2*x1"),
            graded(StepKind::Mulstep, "(2)*(x1)+(3)", "(2*x1^2)+(3)"),
            graded(StepKind::Mulstep, "(2)*(3*x1)+(3)", "(6*x1)+(4)"),
        ];
        let account = digit_errors(&steps, &Writing::default()).unwrap();
        assert_eq!((account.steps, account.unreadable, account.other_form, account.coefficients), (3, 1, 1, 1));
        assert_eq!(counts(&account.by_summands), [("copied", 1, 1), ("1", 0, 1)], "the 4 was to be copied");
    }

    #[test]
    fn nothing_is_said_of_steps_without_numbers_of_their_own() {
        let calculator = Writing { setting: Setting::Calculator, ..Writing::default() };
        assert_eq!(digit_errors(&[graded(StepKind::Sumstep, "(2)+(3)", "5")], &calculator), None);
        assert_eq!(digit_errors(&[], &Writing::default()), None);
    }
}

//! Checking a step, for people: is it a state, is it the same polynomial, is it the expected step; and if not, which step
//! kind it broke, and how.
//!
//! The sentences name products and factors by their number from the left, as a teacher would.

use serde::{Deserialize, Serialize};

use crate::expr::{Factor, Product, State};
use crate::monomial::Monomial;
use crate::notation::{self, Notation, NotationError, Style, parse, print};
use crate::poly::{ArithmeticError, Poly};
use crate::proof::{Operand, Proof, Step, next_step};
use crate::task::{Granularity, StepKind};

/// How a proposed step turned out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Exactly the expected step.
    Exact,
    /// The same polynomial, but not the expected step.
    SameValue,
    /// Another polynomial.
    WrongValue,
    /// Not a state.
    Malformed,
}

impl Verdict {
    /// All verdicts, best first.
    pub const ALL: [Verdict; 4] = [Verdict::Exact, Verdict::SameValue, Verdict::WrongValue, Verdict::Malformed];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Exact => "exact",
            Verdict::SameValue => "same value",
            Verdict::WrongValue => "wrong value",
            Verdict::Malformed => "malformed",
        }
    }
}

/// What is to be said about a proposed step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// How it turned out.
    pub verdict: Verdict,
    /// The kind of step that was expected; none from an endpoint.
    pub expected: Option<StepKind>,
    /// The state that was expected.
    pub expected_state: Option<State>,
    /// A sentence that says what is right or wrong.
    pub sentence: String,
    /// Where the text cannot be read, if it cannot.
    pub error: Option<NotationError>,
}

/// Checks a proposed next state, as text.
pub fn check_step(
    before: &State,
    proposed: &str,
    granularity: Granularity,
    notation: Notation,
    style: Style,
) -> Result<Check, ArithmeticError> {
    let step = next_step(before, granularity, style)?;
    let expected = step.as_ref().map(|s| s.kind);
    let expected_state = step.as_ref().map(|s| s.after.clone());
    let check =
        |verdict, sentence| Check { verdict, expected, expected_state: expected_state.clone(), sentence, error: None };
    let after = match parse(proposed, notation, style) {
        Ok(after) => after,
        Err(error) => {
            let sentence = format!("It cannot be read: {error}.");
            return Ok(Check { error: Some(error), ..check(Verdict::Malformed, sentence) });
        }
    };
    let Some(step) = step else {
        let same = after.value(style.order).ok() == before.value(style.order).ok();
        let (verdict, sentence) = if same {
            (Verdict::SameValue, "The proof was already finished: there is nothing left to simplify.".to_owned())
        } else {
            (Verdict::WrongValue, "The proof was already finished, and this is another polynomial.".to_owned())
        };
        return Ok(check(verdict, sentence));
    };
    if after == step.after {
        let sentence = format!("Right: this is the expected {}.", step.kind);
        return Ok(check(Verdict::Exact, sentence));
    }
    let value = before.value(style.order)?;
    let proposed_value = match after.value(style.order) {
        Ok(proposed) => proposed,
        Err(error) => {
            return Ok(check(Verdict::WrongValue, format!("Not the same polynomial: {error}.")));
        }
    };
    if proposed_value != value {
        let sentence = explain_wrong(&step, &after, &value, &proposed_value, style);
        return Ok(check(Verdict::WrongValue, sentence));
    }
    let sentence = explain_unexpected(&step, &after, granularity, style)?;
    Ok(check(Verdict::SameValue, sentence))
}

/// "the facstep of product 2": what was to be done.
fn describe(step: &Step) -> String {
    let of = match &step.operand {
        Operand::Products(r) if step.before.products().len() == r.len() && step.kind == StepKind::Sumstep => {
            "of all products".to_owned()
        }
        Operand::Products(r) if r.len() == 1 => format!("of product {}", r.start + 1),
        Operand::Products(r) => format!("of products {} and {}", r.start + 1, r.end),
        Operand::Factors { product, factors } if factors.len() == 1 => {
            format!("of factor {} of product {}", factors.start + 1, product + 1)
        }
        Operand::Factors { product, .. } => {
            format!("of the two leftmost factors of product {}", product + 1)
        }
        Operand::Terms { product, factor, .. } => {
            format!("of the next term of factor {} of product {}", factor + 1, product + 1)
        }
    };
    format!("the {} {of}", step.kind)
}

/// The product that a step rewrites, unless it is a sum.
fn product_of(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Products(r) => (r.len() == 1).then_some(r.start),
        Operand::Factors { product, .. } | Operand::Terms { product, .. } => Some(*product),
    }
}

/// Why the value changed: the first part that differs from the expected state, if the parts can be compared.
fn explain_wrong(step: &Step, after: &State, value: &Poly, proposed: &Poly, style: Style) -> String {
    let what = describe(step);
    if let (State::Sum(wanted), State::Sum(found)) = (&step.after, after)
        && wanted.len() == found.len()
    {
        let differs = wanted.iter().zip(found).position(|(w, f)| w.value(style.order) != f.value(style.order));
        if let Some(p) = differs {
            if product_of(&step.operand).is_some_and(|only| only != p) {
                return format!(
                    "In {what}, product {} was changed too, and wrongly: it should have been copied.",
                    p + 1
                );
            }
            if let Some(sentence) = explain_factors(&wanted[p], &found[p], style) {
                return format!("In {what}, {sentence}.");
            }
            if let (Ok(w), Ok(f)) = (wanted[p].value(style.order), found[p].value(style.order)) {
                return format!(
                    "In {what}, product {} became another polynomial: {}.",
                    p + 1,
                    difference(&w, &f, style)
                );
            }
        }
    }
    format!("In {what}, the polynomial became another one: {}.", difference(value, proposed, style))
}

/// Which factor of a product is wrong, if both have as many.
fn explain_factors(wanted: &Product, found: &Product, style: Style) -> Option<String> {
    if wanted.0.len() != found.0.len() {
        return None;
    }
    let wrong = |(w, f): (&Factor, &Factor)| w.value(style.order) != f.value(style.order);
    let f = wanted.0.iter().zip(&found.0).position(wrong)?;
    let (w, p) = (wanted.0[f].value(style.order).ok()?, found.0[f].value(style.order).ok()?);
    let place = if wanted.0.len() == 1 { String::new() } else { format!("in factor {}, ", f + 1) };
    Some(format!("{place}{}", difference(&w, &p, style)))
}

/// "the coefficient of x1^2 should be 19, not 18".
fn difference(wanted: &Poly, found: &Poly, style: Style) -> String {
    let coeff = |poly: &Poly, m: Monomial| poly.terms().iter().find(|t| t.1 == m).map(|t| t.0);
    let name = |c: u64, m: Monomial| {
        let poly = Poly::collect([(c, m)], style.order).unwrap_or_default();
        print(&State::Bare(poly), Notation::Infix, style)
    };
    for &(c, m) in wanted.terms() {
        match coeff(found, m) {
            Some(f) if f == c => {}
            Some(f) if m == Monomial::ONE => return format!("the constant should be {c}, not {f}"),
            Some(f) => return format!("the coefficient of {} should be {c}, not {f}", name(1, m)),
            None => return format!("the term {} is missing", name(c, m)),
        }
    }
    match found.terms().iter().find(|t| coeff(wanted, t.1).is_none()) {
        Some(&(c, m)) => format!("the term {} should not be there", name(c, m)),
        None => "the values differ".to_owned(),
    }
}

/// Why a state with the right value is not the expected one.
fn explain_unexpected(
    step: &Step,
    after: &State,
    granularity: Granularity,
    style: Style,
) -> Result<String, ArithmeticError> {
    let what = describe(step);
    if *after == step.before {
        return Ok(format!("Nothing was done: the line is a copy, but {what} comes next."));
    }
    let ahead = Proof::of(&step.after, granularity, style)?;
    if let Some(n) = ahead.states().position(|s| s == after) {
        return Ok(format!("The same polynomial, but {} steps at once: {what} comes next, alone.", n + 1));
    }
    let (before, found) = (step.before.products(), after.products());
    if let Some(p) = product_of(&step.operand).filter(|_| before.len() == found.len()) {
        let changed: Vec<usize> = (0..before.len()).filter(|&i| before[i] != found[i]).collect();
        if !changed.contains(&p) && !changed.is_empty() {
            let list = changed.iter().map(|i| (i + 1).to_string()).collect::<Vec<_>>().join(" and ");
            return Ok(format!("The same polynomial, but product {list} was rewritten: {what} comes first."));
        }
        if changed.len() > 1 {
            return Ok(format!(
                "The same polynomial, but more than one product was rewritten: {what} comes next, alone."
            ));
        }
    }
    if canonical(after, style)? == canonical(&step.after, style)? {
        let expected = print(&step.after, Notation::Infix, style);
        return Ok(format!("The same polynomial, but not written as {what} writes it: expected {expected}."));
    }
    let expected = print(&step.after, Notation::Infix, style);
    Ok(format!("The same polynomial, but not {what}: expected {expected}."))
}

/// A state with every factor in normal form: what remains when order, ones and like terms are forgotten.
fn canonical(state: &State, style: Style) -> Result<State, ArithmeticError> {
    let State::Sum(products) = state else {
        return Ok(state.clone());
    };
    let factor = |f: &Factor| Ok(Factor::from(&f.value(style.order)?));
    let product = |p: &Product| Ok(Product(p.0.iter().map(factor).collect::<Result<_, ArithmeticError>>()?));
    match products.as_slice() {
        [Product(factors)] if factors.len() == 1 => Ok(State::Bare(factors[0].value(style.order)?)),
        _ => Ok(State::Sum(products.iter().map(product).collect::<Result<_, ArithmeticError>>()?)),
    }
}

/// Checks a chain of states: each against the one before it, as far as the one before can be read.
pub fn check_chain(
    lines: &[&str],
    granularity: Granularity,
    notation: Notation,
    style: Style,
) -> Result<Vec<Check>, notation::NotationError> {
    let mut checks = Vec::new();
    let Some((first, rest)) = lines.split_first() else {
        return Ok(checks);
    };
    let mut before = parse(first, notation, style)?;
    for line in rest {
        match check_step(&before, line, granularity, notation, style) {
            Ok(check) => checks.push(check),
            Err(error) => checks.push(Check {
                verdict: Verdict::Malformed,
                expected: None,
                expected_state: None,
                sentence: format!("It cannot be checked: {error}."),
                error: None,
            }),
        }
        before = parse(line, notation, style).unwrap_or(before);
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(before: &str, proposed: &str, granularity: &str, verdict: Verdict, sentence: &str) {
        let style = Style::default();
        let before = parse(before, Notation::Infix, style).unwrap();
        let check = check_step(&before, proposed, granularity.parse().unwrap(), Notation::Infix, style).unwrap();
        assert_eq!((check.verdict, check.sentence.as_str()), (verdict, sentence));
    }

    #[test]
    fn right_steps() {
        says(
            "(2*x)*(x^1+1)+(3)",
            "(2*x1)*(x1+1)+(3)",
            "coarse",
            Verdict::Exact,
            "Right: this is the expected facstep.",
        );
        says("(2)+(3)", "5", "coarse", Verdict::Exact, "Right: this is the expected sumstep.");
    }

    #[test]
    fn wrong_values_name_the_term() {
        let wrong = Verdict::WrongValue;
        says(
            "(3*x+4)*(x+5)+(1)",
            "(3*x^2+18*x+20)+(1)",
            "coarse",
            wrong,
            "In the mulstep of product 1, the coefficient of x1 should be 19, not 18.",
        );
        says(
            "(3*x+4)*(x+5)+(1)",
            "(3*x^2+20)+(1)",
            "coarse",
            wrong,
            "In the mulstep of product 1, the term 19*x1 is missing.",
        );
        says(
            "(3*x+4)+(x+5)",
            "4*x+8",
            "coarse",
            wrong,
            "In the sumstep of all products, the polynomial became another one: the constant should be 9, not 8.",
        );
        says(
            "(x^1)*(2)+(3)",
            "(x)*(2)+(4)",
            "coarse",
            wrong,
            "In the facstep of product 1, product 2 was changed too, and wrongly: it should have been copied.",
        );
        says(
            "(2)*(x^1+x^1)+(3)",
            "(2)*(3*x)+(3)",
            "coarse",
            wrong,
            "In the facstep of product 1, in factor 2, the coefficient of x1 should be 2, not 3.",
        );
    }

    #[test]
    fn right_values_but_not_the_step() {
        let same = Verdict::SameValue;
        let start = "(x^1)*(2)+(x^1)*(3)";
        says(
            start,
            start,
            "coarse",
            same,
            "Nothing was done: the line is a copy, but the facstep of product 1 comes next.",
        );
        says(
            start,
            "(x)*(2)+(x)*(3)",
            "coarse",
            same,
            "The same polynomial, but 2 steps at once: the facstep of product 1 comes next, alone.",
        );
        says(
            start,
            "(x^1)*(2)+(x)*(3)",
            "coarse",
            same,
            "The same polynomial, but product 2 was rewritten: the facstep of product 1 comes first.",
        );
        says(
            "(x+1)+(2)",
            "3+x",
            "coarse",
            same,
            "The same polynomial, but not written as the sumstep of all products writes it: expected x1+3.",
        );
        says("5", "5", "coarse", same, "The proof was already finished: there is nothing left to simplify.");
    }

    #[test]
    fn malformed_steps_say_where() {
        let before = parse("(x)*(2)+(3)", Notation::Infix, Style::default()).unwrap();
        let check = check_step(&before, "(2*x+(3)", Granularity::COARSE, Notation::Infix, Style::default()).unwrap();
        assert_eq!(check.verdict, Verdict::Malformed);
        assert_eq!(check.error.unwrap().span, 5..6);
    }
}

//! What is right or wrong about an answer, for people: one explanation for all five settings.
//!
//! [`Writing::check`] speaks about a proposed next state: is it a state, is it the same polynomial, is it the expected step;
//! and if not, which step it broke, and how. [`Writing::explain`] speaks about a model's answer in any setting. Both count
//! products and factors from the left, as a teacher would.

mod why;

pub use why::{Difference, Explanation, Place, StepName};

use crate::expr::{Factor, Product, State};
use crate::judge::Verdict;
use crate::monomial::Monomial;
use crate::notation::{Notation, NotationError, Style, print};
use crate::poly::{ArithmeticError, Poly};
use crate::proof::{Operand, Step, StepKind, next_step};
use crate::token;
use crate::writing::{Setting, Writing, untagged};

/// What is to be said about a proposed step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// How it turned out.
    pub verdict: Verdict,
    /// The kind of step that was expected; none from an endpoint.
    pub expected: Option<StepKind>,
    /// Why.
    pub why: Explanation,
}

impl Writing {
    /// Checks a proposed next state as a person may have typed it.
    pub fn check(&self, before: &State, proposed: &str) -> Result<Check, ArithmeticError> {
        let step = next_step(before, self.granularity, self.style)?;
        let expected = step.as_ref().map(|s| s.kind);
        let found = |verdict, why| Ok(Check { verdict, expected, why });
        let after = match self.parse(proposed) {
            Ok(after) => after,
            Err(error) => return found(Verdict::Malformed, unreadable(error, proposed)),
        };
        let order = self.style.order;
        let Some(step) = step else {
            let same = after.value(order).ok() == before.value(order).ok();
            let verdict = if same { Verdict::SameValue } else { Verdict::WrongValue };
            return found(verdict, if same { Explanation::Finished } else { Explanation::FinishedElsewhere });
        };
        if after == step.after {
            return found(Verdict::Exact, Explanation::Right(step.kind));
        }
        let value = before.value(order)?;
        match after.value(order) {
            Err(error) => found(Verdict::WrongValue, Explanation::AnswerTooLarge(error)),
            Ok(proposed) if proposed != value => {
                let place = misplaced(&step, &after, self.style)
                    .unwrap_or_else(|| Place::Whole(difference(&value, &proposed, self.style)));
                found(Verdict::WrongValue, Explanation::WrongValue(StepName::of(&step), place))
            }
            Ok(_) => found(Verdict::SameValue, self.unexpected(&step, &after)?),
        }
    }

    /// Checks what a model wrote for an input, both as tokens.
    pub fn check_line(&self, input: &[u8], output: &[u8]) -> Check {
        let line = match self.expected(input) {
            Ok(line) => line,
            Err(why) => return Check { verdict: Verdict::WrongValue, expected: None, why },
        };
        let verdict = self.judge(line.kind, &line.target, output).verdict;
        let why = match verdict.exact() {
            true => Explanation::Right(line.kind),
            false => self.explain(line.kind, &self.text(input), &self.text(&line.target), Some(&self.text(output))),
        };
        Check { verdict, expected: Some(line.kind), why }
    }

    /// Why an output, or its absence, is or is not the target of an input.
    pub fn explain(&self, kind: StepKind, input: &str, target: &str, output: Option<&str>) -> Explanation {
        let Some(output) = output else { return Explanation::NoAnswer };
        if self.judge_text(kind, target, output).verdict.exact() {
            return Explanation::Right(kind);
        }
        let why = match self.setting {
            Setting::Arithmetic => digits(target, output),
            Setting::Endpoint => self.explain_endpoint(target, output),
            Setting::Annotated => self.explain_annotated(kind, input, target, output),
            Setting::Plain if output.contains('[') => Explanation::OpenBracket,
            Setting::Plain | Setting::Calculator => self.explain_step(input, output),
        };
        // People may write more freely than models.
        if let Explanation::Right(_) = why { Explanation::Spelling(target.to_owned()) } else { why }
    }

    fn explain_step(&self, input: &str, output: &str) -> Explanation {
        match self.parse(input) {
            Err(error) => Explanation::UnreadableInput(error),
            Ok(before) => self.check(&before, output).map_or_else(Explanation::TooLarge, |check| check.why),
        }
    }

    fn explain_endpoint(&self, target: &str, output: &str) -> Explanation {
        let (wanted, found) = match (self.parse(target), self.parse(output)) {
            (Ok(wanted), Ok(found)) => (wanted, found),
            (_, Err(error)) => return unreadable(error, output),
            (Err(error), _) => return Explanation::UnreadableTarget(error),
        };
        match (wanted.value(self.style.order), found.value(self.style.order)) {
            (Ok(a), Ok(b)) if a == b && found.is_endpoint() => Explanation::TermsOutOfOrder,
            (Ok(a), Ok(b)) if a == b => Explanation::NotSimplified,
            (Ok(a), Ok(b)) => {
                let mut missing = a.terms().iter().filter(|t| !b.terms().contains(t));
                let Some(&(coeff, monomial)) = missing.next() else { return Explanation::ExtraTerms };
                let instead = b.terms().iter().find(|t| t.1 == monomial).map(|t| term(t.0, monomial, self.style));
                Explanation::wrong_endpoint(instead, &term(coeff, monomial, self.style), missing.count())
            }
            (_, Err(error)) | (Err(error), _) => Explanation::TooLarge(error),
        }
    }

    fn explain_annotated(&self, kind: StepKind, input: &str, target: &str, output: &str) -> Explanation {
        let read = |text: &str| {
            let tokens = token::encode(text).ok()?;
            Some((token::name(tokens[0]), self.text(&untagged(&tokens)?)))
        };
        let (Some((wanted, target)), Some((found, state))) = (read(target), read(output)) else {
            return Explanation::Untagged;
        };
        match (kind, read(input)) {
            (StepKind::Markstep, _) if self.parse(&state).is_err() => Explanation::MarkUnreadable,
            (StepKind::Markstep, _) if state != target => Explanation::MarkChanged,
            (StepKind::Markstep, _) if found != wanted => Explanation::WrongTag(wanted, found),
            (StepKind::Markstep, _) => Explanation::WrongMark(wanted),
            _ if state == target => Explanation::NotCleared(wanted),
            (_, Some((_, before))) => self.explain_step(&before, &state),
            (_, None) => Explanation::UntaggedInput,
        }
    }

    /// Why a state with the right value is not the expected one.
    fn unexpected(&self, step: &Step, after: &State) -> Result<Explanation, ArithmeticError> {
        let name = StepName::of(step);
        if *after == step.before {
            return Ok(Explanation::Copied(name));
        }
        if let Some(n) = self.proof(&step.after)?.place_of(after) {
            return Ok(Explanation::TooFar(name, n + 1));
        }
        let expected = print(&step.after, Notation::Infix, self.style);
        if is_permutation(step.after.products(), after.products()) {
            return Ok(Explanation::Permuted(name, expected));
        }
        let (before, found) = (step.before.products(), after.products());
        if let Some(p) = only_product(&step.operand).filter(|_| before.len() == found.len()) {
            let changed: Vec<usize> = (0..before.len()).filter(|&i| before[i] != found[i]).collect();
            if !changed.contains(&p) && !changed.is_empty() {
                return Ok(Explanation::OtherProducts(name, why::numbered(&changed)));
            }
            if changed.len() > 1 {
                return Ok(Explanation::MoreProducts(name));
            }
        }
        Ok(match normalised(after, self.style)? == normalised(&step.after, self.style)? {
            true => Explanation::NotAsWritten(name, expected),
            false => Explanation::OtherStep(name, expected),
        })
    }
}

fn unreadable(error: NotationError, text: &str) -> Explanation {
    let before = text.get(..error.span.start).map_or(0, |before| before.chars().count());
    Explanation::Unreadable(error, before + 1)
}

fn digits(target: &str, output: &str) -> Explanation {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<Vec<_>>();
    let (wanted, found) = (digits(target), digits(output));
    if wanted.len() != found.len() {
        return Explanation::DigitCount(wanted.len(), found.len(), target.to_owned());
    }
    match wanted.iter().zip(&found).filter(|(a, b)| a != b).count() {
        0 => Explanation::NotANumber(target.to_owned()),
        1 => Explanation::OneDigit(target.to_owned()),
        n => Explanation::Digits(n, wanted.len(), target.to_owned()),
    }
}

/// The product that a step rewrites, unless it is a sum.
fn only_product(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Products(r) => (r.len() == 1).then_some(r.start),
        Operand::Factors { product, .. } | Operand::Terms { product, .. } => Some(*product),
    }
}

/// The first part that differs from the expected state, if the parts can be compared.
fn misplaced(step: &Step, after: &State, style: Style) -> Option<Place> {
    let (State::Sum(wanted), State::Sum(found)) = (&step.after, after) else { return None };
    let (p, q) = unmatched(wanted, found, |product: &Product| product.value(style.order))?;
    if only_product(&step.operand).is_some_and(|only| only != p) {
        return Some(Place::Untouched(p + 1));
    }
    if let Some(place) = misplaced_factor(&wanted[p], &found[q], style) {
        return Some(place);
    }
    let (w, f) = (wanted[p].value(style.order).ok()?, found[q].value(style.order).ok()?);
    Some(Place::Product(p + 1, difference(&w, &f, style)))
}

/// Which factor of a product is wrong, if both have as many.
fn misplaced_factor(wanted: &Product, found: &Product, style: Style) -> Option<Place> {
    let (w, f) = unmatched(&wanted.0, &found.0, |factor: &Factor| factor.value(style.order))?;
    let (wanted_value, found_value) = (wanted.0[w].value(style.order).ok()?, found.0[f].value(style.order).ok()?);
    let difference = difference(&wanted_value, &found_value, style);
    Some(if wanted.0.len() == 1 { Place::OnlyFactor(difference) } else { Place::Factor(w + 1, difference) })
}

/// The first of `wanted` whose value is not among `found`, and what stands there in its place; none if there are more or
/// fewer of one than of the other, or if they agree. Parts are matched by their value: a permutation is not a difference.
fn unmatched<T>(
    wanted: &[T],
    found: &[T],
    value: impl Fn(&T) -> Result<Poly, ArithmeticError>,
) -> Option<(usize, usize)> {
    if wanted.len() != found.len() {
        return None;
    }
    let (wanted, found): (Vec<_>, Vec<_>) = (wanted.iter().map(&value).collect(), found.iter().map(&value).collect());
    let mut taken: Vec<bool> = wanted.iter().zip(&found).map(|(w, f)| w == f).collect();
    let mut missing = Vec::new();
    for w in (0..wanted.len()).filter(|&w| wanted[w] != found[w]) {
        match (0..found.len()).find(|&f| !taken[f] && found[f] == wanted[w]) {
            Some(f) => taken[f] = true,
            None => missing.push(w),
        }
    }
    Some((*missing.first()?, taken.iter().position(|taken| !taken)?))
}

/// Whether both hold the same products, in different orders.
fn is_permutation(wanted: &[Product], found: &[Product]) -> bool {
    let mut left: Vec<&Product> = wanted.iter().collect();
    let all_found = found.iter().all(|product| {
        let at = left.iter().position(|other| *other == product);
        at.map(|at| left.remove(at)).is_some()
    });
    wanted.len() > 1 && all_found && left.is_empty()
}

/// The first difference between two polynomials, which are not equal.
fn difference(wanted: &Poly, found: &Poly, style: Style) -> Difference {
    let coeff = |poly: &Poly, m: Monomial| poly.terms().iter().find(|t| t.1 == m).map(|t| t.0);
    for &(c, m) in wanted.terms() {
        match coeff(found, m) {
            Some(f) if f == c => {}
            Some(f) if m == Monomial::ONE => return Difference::Constant(c, f),
            Some(f) => return Difference::Coefficient(term(1, m, style), c, f),
            None => return Difference::Missing(term(c, m, style)),
        }
    }
    let extra = found.terms().iter().find(|t| coeff(wanted, t.1).is_none());
    let &(c, m) = extra.expect("equal polynomials are not compared");
    Difference::Extra(term(c, m, style))
}

/// A term as text.
fn term(coeff: i64, monomial: Monomial, style: Style) -> String {
    let poly = Poly::collect([(coeff, monomial)], style.order).expect("a single term cannot overflow");
    print(&State::Bare(poly), Notation::Infix, style)
}

/// A state with every factor in normal form: what remains when order, ones and like terms are forgotten.
fn normalised(state: &State, style: Style) -> Result<State, ArithmeticError> {
    let order = style.order;
    let State::Sum(products) = state else {
        return Ok(state.clone());
    };
    let factor = |f: &Factor| Ok(Factor::from(&f.value(order)?));
    let product = |p: &Product| Ok(Product(p.0.iter().map(factor).collect::<Result<_, ArithmeticError>>()?));
    match products.as_slice() {
        [Product(factors)] if factors.len() == 1 => Ok(State::Bare(factors[0].value(order)?)),
        _ => Ok(State::Sum(products.iter().map(product).collect::<Result<_, ArithmeticError>>()?)),
    }
}

#[cfg(test)]
mod tests;

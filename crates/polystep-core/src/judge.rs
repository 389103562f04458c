//! Is an output right? The two tests of the design, on tokens.
//!
//! Every state of a proof has the same value, so the paper's test, "the difference is zero", also accepts a copied input. So
//! `exact` asks for the target's very tokens, and `symbolic`, the paper's test, stands beside it.

use serde::{Deserialize, Serialize};

use crate::notation::{Notation, Style, parse_tokens};
use crate::poly::Poly;
use crate::task::{Setting, StepKind};
use crate::token;

/// What is right about an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Judgement {
    /// The tokens are the target's; in the calculator setting, after both are evaluated.
    pub exact: bool,
    /// The tokens are the target's, brackets and all.
    pub raw_exact: bool,
    /// It can be read and has the target's value; for a markstep, the same as `exact`.
    pub symbolic: bool,
    /// It cannot be read, or a bracket overflows.
    pub malformed: bool,
}

/// Judges an output's tokens against the target's, both without `</s>`.
pub fn judge(
    kind: StepKind,
    setting: Setting,
    notation: Notation,
    style: Style,
    target: &[u8],
    output: &[u8],
) -> Judgement {
    let raw_exact = target == output;
    let (exact, value) = match setting {
        Setting::Arithmetic => {
            let number = arithmetic_value(output, notation);
            return Judgement { exact: raw_exact, raw_exact, symbolic: raw_exact, malformed: number.is_none() };
        }
        Setting::Annotated => (raw_exact, untagged(output).and_then(|s| value(&s, Notation::Infix, style))),
        Setting::Calculator => {
            let evaluated = evaluate_brackets(output, notation);
            let exact = raw_exact || (evaluated.is_some() && evaluated == evaluate_brackets(target, notation));
            (exact, evaluated.and_then(|s| value(&s, notation, style)))
        }
        Setting::Plain | Setting::Endpoint => {
            // A bracket is no part of these settings' language.
            let closed = !output.contains(&token::BRACKET);
            (raw_exact, closed.then(|| value(output, notation, style)).flatten())
        }
    };
    let symbolic = match setting {
        _ if exact => true,
        Setting::Annotated if kind == StepKind::Markstep => false,
        Setting::Annotated => {
            value.is_some() && value == untagged(target).and_then(|s| self::value(&s, Notation::Infix, style))
        }
        _ => value.is_some() && value == self::value(target, notation, style),
    };
    Judgement { exact, raw_exact, symbolic, malformed: !exact && value.is_none() }
}

/// [`judge`] on text. A text that is not made of tokens is malformed.
pub fn judge_text(
    kind: StepKind,
    setting: Setting,
    notation: Notation,
    style: Style,
    target: &str,
    output: &str,
) -> Judgement {
    match (token::encode(target), token::encode(output)) {
        (Ok(target), Ok(output)) => judge(kind, setting, notation, style, &target, &output),
        _ => Judgement { malformed: true, ..Judgement::default() },
    }
}

fn value(tokens: &[u8], notation: Notation, style: Style) -> Option<Poly> {
    parse_tokens(tokens, notation, style).ok()?.0.value(style.order).ok()
}

fn arithmetic_value(tokens: &[u8], notation: Notation) -> Option<u64> {
    let digits = match notation {
        Notation::Infix => tokens,
        Notation::Prefix => tokens.strip_prefix(&[token::INT])?,
    };
    integer(digits)
}

fn integer(digits: &[u8]) -> Option<u64> {
    let digit = |t: u8| (token::DIGIT..token::VAR).contains(&t).then(|| u64::from(t - token::DIGIT));
    if digits.first().is_none_or(|&d| d == token::DIGIT) {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &t| n.checked_mul(10)?.checked_add(digit(t)?))
}

/// The state behind an annotation's tag, without its marks.
pub fn untagged(tokens: &[u8]) -> Option<Vec<u8>> {
    match tokens {
        [tag, token::DOLLAR, state @ ..] if (token::MARK..=token::END).contains(tag) => {
            Some(state.iter().copied().filter(|&t| t != token::HASH).collect())
        }
        _ => None,
    }
}

/// Replaces every bracket by the number it comes to; `None` if one cannot be read or overflows. What stands outside the
/// brackets is not looked at.
pub fn evaluate_brackets(tokens: &[u8], notation: Notation) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut rest = tokens;
    while let Some(open) = rest.iter().position(|&t| t == token::BRACKET) {
        let close = open + rest[open..].iter().position(|&t| t == token::UNBRACKET)?;
        out.extend_from_slice(&rest[..open]);
        // A bracket alone is a constant polynomial, so the parser computes it.
        let (state, _) = parse_tokens(&rest[open..=close], notation, Style::default()).ok()?;
        let value = state.value(Style::default().order).ok()?;
        if notation == Notation::Prefix {
            out.push(token::INT);
        }
        token::push_digits(value.max_coeff(), &mut out);
        rest = &rest[close + 1..];
    }
    out.extend_from_slice(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(setting: Setting, target: &str, output: &str) -> [bool; 4] {
        let j = judge_text(StepKind::Mulstep, setting, Notation::Infix, Style::default(), target, output);
        [j.exact, j.raw_exact, j.symbolic, j.malformed]
    }

    #[test]
    fn a_copied_input_is_symbolically_right_but_not_exact() {
        let target = "(2*x1^2)+(3)";
        assert_eq!(judged(Setting::Plain, target, target), [true, true, true, false]);
        assert_eq!(judged(Setting::Plain, target, "(2*x1)*(x1)+(3)"), [false, false, true, false]);
        assert_eq!(judged(Setting::Plain, target, "(2*x1^2)+(4)"), [false, false, false, false]);
        assert_eq!(judged(Setting::Plain, target, "(2*x1^2)+(3"), [false, false, false, true]);
        assert_eq!(judged(Setting::Plain, target, "([2]*x1^2)+(3)"), [false, false, false, true]);
    }

    #[test]
    fn a_calculator_evaluates_before_comparing() {
        let target = "([5*3]*x1^2)+(3)";
        assert_eq!(judged(Setting::Calculator, target, target), [true, true, true, false]);
        assert_eq!(judged(Setting::Calculator, target, "([3*5]*x1^2)+(3)"), [true, false, true, false]);
        assert_eq!(judged(Setting::Calculator, target, "(15*x1^2)+(3)"), [true, false, true, false]);
        assert_eq!(judged(Setting::Calculator, target, "([5*4]*x1^2)+(3)"), [false, false, false, false]);
        assert_eq!(judged(Setting::Calculator, target, "([5*]*x1^2)+(3)"), [false, false, false, true]);
        let huge = "([9999999999*9999999999]*x1^2)+(3)";
        assert_eq!(judged(Setting::Calculator, target, huge), [false, false, false, true]);
        let prefix = token::encode("* [ + * INT+ 3 INT+ 4 INT+ 5 ] x1").unwrap();
        assert_eq!(evaluate_brackets(&prefix, Notation::Prefix), token::encode("* INT+ 1 7 x1").ok());
    }

    #[test]
    fn annotations_drop_tag_and_marks() {
        let target = "MARK $ (2*x1^2)+(3)";
        assert_eq!(judged(Setting::Annotated, target, target), [true, true, true, false]);
        assert_eq!(judged(Setting::Annotated, target, "MUL $ #(2*x1)*(x1)#+(3)"), [false, false, true, false]);
        assert_eq!(judged(Setting::Annotated, target, "(2*x1^2)+(3)"), [false, false, false, true]);
        let mark = |output| {
            judge_text(
                StepKind::Markstep,
                Setting::Annotated,
                Notation::Infix,
                Style::default(),
                "SUM $ #(2)+(3)#",
                output,
            )
        };
        assert!(!mark("SUM $ (2)+#(3)#").symbolic);
    }

    #[test]
    fn arithmetic_is_right_or_wrong() {
        assert_eq!(judged(Setting::Arithmetic, "6912", "6912"), [true, true, true, false]);
        assert_eq!(judged(Setting::Arithmetic, "6912", "6913"), [false, false, false, false]);
        assert_eq!(judged(Setting::Arithmetic, "6912", "69*12"), [false, false, false, true]);
    }
}

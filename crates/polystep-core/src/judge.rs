//! Is an output right? The two tests of the design, on tokens.
//!
//! Every state of a proof has the same value, so the paper's test, "the difference is zero", also accepts a copied input. So
//! there are two tests: *exact* asks for the target's very tokens; *symbolic*, the paper's test, asks for the same value.

use serde::{Deserialize, Serialize};

use crate::arithmetic::read_number;
use crate::expr::State;
use crate::named;
use crate::proof::StepKind;
use crate::token;
use crate::writing::{Setting, Writing};

/// How an output turned out, best first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Exactly what was expected (calculator: after evaluation).
    Exact,
    /// The same polynomial, but not what was expected.
    SameValue,
    /// Another polynomial; or a markstep that marks something else.
    WrongValue,
    /// It cannot be read, or a bracket overflows.
    Malformed,
}
named!(Verdict, "verdict": Exact "exact", SameValue "same value", WrongValue "wrong value", Malformed "malformed");

impl Verdict {
    /// Whether it is right by the strict test.
    pub fn exact(self) -> bool {
        self == Verdict::Exact
    }

    /// Whether it is right by the paper's test. For a markstep the two tests are one.
    pub fn symbolic(self) -> bool {
        self <= Verdict::SameValue
    }

    /// Whether it cannot be read.
    pub fn malformed(self) -> bool {
        self == Verdict::Malformed
    }
}

/// What is right about an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// How it turned out.
    pub verdict: Verdict,
    /// Whether the tokens are the target's, brackets and all. Only a calculator's output can be exact without it.
    pub raw_exact: bool,
}

impl Judgement {
    /// What is said of an output that is the target itself.
    pub const RIGHT: Judgement = Judgement { verdict: Verdict::Exact, raw_exact: true };
    /// What is said where there is no output, or none that is made of tokens.
    pub const MALFORMED: Judgement = Judgement { verdict: Verdict::Malformed, raw_exact: false };
}

impl Writing {
    /// Judges an output's tokens against the target's, both without `</s>`.
    pub fn judge(&self, kind: StepKind, target: &[u8], output: &[u8]) -> Judgement {
        if target == output {
            return Judgement::RIGHT;
        }
        let wrong = |verdict| Judgement { verdict, raw_exact: false };
        if self.setting == Setting::Arithmetic {
            let number = read_number(output, self.notation);
            return wrong(if number.is_some() { Verdict::WrongValue } else { Verdict::Malformed });
        }
        if self.setting == Setting::Calculator
            && let Some(evaluated) = self.evaluated(output)
            && self.evaluated(target) == Some(evaluated)
        {
            return wrong(Verdict::Exact);
        }
        let value = |state: Option<State>| state?.value(self.style.order).ok();
        let Some(found) = value(self.state(output)) else { return Judgement::MALFORMED };
        let same = kind != StepKind::Markstep && value(self.denoted(target)) == Some(found);
        wrong(if same { Verdict::SameValue } else { Verdict::WrongValue })
    }

    /// [`judge`](Writing::judge) on text. A text that is not made of tokens is malformed.
    pub fn judge_text(&self, kind: StepKind, target: &str, output: &str) -> Judgement {
        // The same text has the same tokens. This is so for nearly all answers of a good model, and they need not be read.
        if target == output {
            return Judgement::RIGHT;
        }
        match (token::encode(target), token::encode(output)) {
            (Ok(target), Ok(output)) => self.judge(kind, &target, &output),
            _ => Judgement::MALFORMED,
        }
    }

    /// A text with its brackets evaluated; as it is where it has none, or where they cannot be read.
    pub fn evaluated_text(&self, text: &str) -> String {
        if self.setting != Setting::Calculator || !text.contains('[') {
            return text.to_owned();
        }
        let evaluated = token::encode(text).ok().and_then(|tokens| self.evaluated(&tokens));
        evaluated.map_or_else(|| text.to_owned(), |tokens| self.text(&tokens))
    }

    /// The [fingerprint](crate::Poly::fingerprint) of the value of a line, the same in every notation and setting; none if it
    /// cannot be read.
    pub fn fingerprint(&self, text: &str) -> Option<u64> {
        let state = self.denoted(&token::encode(text).ok()?)?;
        Some(state.value(self.style.order).ok()?.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(setting: Setting, target: &str, output: &str) -> (Verdict, bool) {
        let writing = Writing { setting, ..Writing::default() };
        let Judgement { verdict, raw_exact } = writing.judge_text(StepKind::Mulstep, target, output);
        (verdict, raw_exact)
    }

    #[test]
    fn a_copied_input_is_symbolically_right_but_not_exact() {
        let target = "(2*x1^2)+(3)";
        assert_eq!(judged(Setting::Plain, target, target), (Verdict::Exact, true));
        assert_eq!(judged(Setting::Plain, target, "(2*x1)*(x1)+(3)"), (Verdict::SameValue, false));
        assert_eq!(judged(Setting::Plain, target, "(2*x1^2)+(4)"), (Verdict::WrongValue, false));
        assert_eq!(judged(Setting::Plain, target, "(2*x1^2)+(3"), (Verdict::Malformed, false));
        assert_eq!(judged(Setting::Plain, target, "([2]*x1^2)+(3)"), (Verdict::Malformed, false));
    }

    #[test]
    fn a_calculator_evaluates_before_comparing() {
        let target = "([5*3]*x1^2)+(3)";
        assert_eq!(judged(Setting::Calculator, target, target), (Verdict::Exact, true));
        assert_eq!(judged(Setting::Calculator, target, "([3*5]*x1^2)+(3)"), (Verdict::Exact, false));
        assert_eq!(judged(Setting::Calculator, target, "(15*x1^2)+(3)"), (Verdict::Exact, false));
        assert_eq!(judged(Setting::Calculator, target, "([5*4]*x1^2)+(3)"), (Verdict::WrongValue, false));
        assert_eq!(judged(Setting::Calculator, target, "([5*]*x1^2)+(3)"), (Verdict::Malformed, false));
        let huge = "([9999999999*9999999999]*x1^2)+(3)";
        assert_eq!(judged(Setting::Calculator, target, huge), (Verdict::Malformed, false));
    }

    #[test]
    fn annotations_drop_tag_and_marks() {
        let target = "MARK $ (2*x1^2)+(3)";
        assert_eq!(judged(Setting::Annotated, target, target), (Verdict::Exact, true));
        assert_eq!(judged(Setting::Annotated, target, "MUL $ #(2*x1)*(x1)#+(3)"), (Verdict::SameValue, false));
        assert_eq!(judged(Setting::Annotated, target, "(2*x1^2)+(3)"), (Verdict::Malformed, false));
        let writing = Writing { setting: Setting::Annotated, ..Writing::default() };
        let marked = writing.judge_text(StepKind::Markstep, "SUM $ #(2)+(3)#", "SUM $ (2)+#(3)#");
        assert_eq!(marked.verdict, Verdict::WrongValue);
    }

    #[test]
    fn arithmetic_is_right_or_wrong() {
        assert_eq!(judged(Setting::Arithmetic, "6912", "6912"), (Verdict::Exact, true));
        assert_eq!(judged(Setting::Arithmetic, "6912", "6913"), (Verdict::WrongValue, false));
        assert_eq!(judged(Setting::Arithmetic, "6912", "69*12"), (Verdict::Malformed, false));
    }

    #[test]
    fn a_value_is_the_same_in_every_writing() {
        let value = |setting, notation: &str, text: &str| {
            let writing = Writing { setting, notation: notation.parse().unwrap(), ..Writing::default() };
            writing.fingerprint(text).unwrap()
        };
        let plain = value(Setting::Plain, "infix", "(6)*(x1)");
        assert_eq!(plain, value(Setting::Calculator, "infix", "([2*3]*x1)"));
        assert_eq!(plain, value(Setting::Annotated, "infix", "MUL $ #(6)*(x1)#"));
        assert_eq!(plain, value(Setting::Endpoint, "prefix", "* INT+ 6 x1"));
    }
}

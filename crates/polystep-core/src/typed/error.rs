//! What is wrong with an expression that a person typed, where, and what to type instead.

use std::ops::Range;

use thiserror::Error;

use super::limits::{MAX_DEPTH, MAX_FACTORS, MAX_PRODUCTS, MAX_SYMBOLS, MAX_TOKENS};
use super::names::Name;

/// An expression that cannot be read, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{problem}")]
pub struct TypedError {
    /// What is wrong.
    pub problem: TypedProblem,
    /// The bytes of the typed text that are wrong; empty at the end of the text.
    pub span: Range<usize>,
}

impl TypedError {
    pub(super) fn new(problem: TypedProblem, span: Range<usize>) -> TypedError {
        TypedError { problem, span }
    }

    /// The typed text with carets under the place, and the sentence.
    pub fn caret(&self, text: &str) -> String {
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let columns = |range: Range<usize>| text.get(range).map_or(0, |part| part.chars().count());
        let (before, width) = (columns(0..self.span.start), columns(self.span.clone()).max(1));
        format!("{line}\n{}{} {self}", " ".repeat(before), "^".repeat(width))
    }
}

/// What is wrong with an expression.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TypedProblem {
    /// Nothing was typed.
    #[error("nothing was typed: type a polynomial, for example (x+1)*(x-2)")]
    Empty,
    /// A character that has no meaning here.
    #[error("`{0}` has no meaning here: use whole numbers, letters, + - * ^ and parentheses")]
    Character(char),
    /// A LaTeX command that is not read.
    #[error("the LaTeX command `\\{0}` is not understood: use \\cdot, \\times, \\left( and \\right)")]
    Command(String),
    /// `sin(x)`
    #[error("`{0}` is a function, and a polynomial has none: if you mean a product of letters, put `*` between them")]
    Function(&'static str),
    /// `π`
    #[error("`{0}` is not a whole number: use another letter if you mean a variable")]
    Constant(char),
    /// `x/2`
    #[error("division is not possible: every coefficient is a whole number. Multiply by the denominator first")]
    Division,
    /// `0.5*x`
    #[error("a decimal point is not possible: every number is a whole number. Multiply by 10, 100, … first")]
    Decimal,
    /// `1,000`
    #[error("a comma has no meaning here: write one thousand as 1000; decimals are not possible")]
    Comma,
    /// `2e3`
    #[error("this may be a power of ten or a variable: write the whole number, or put `*` before the letter")]
    PowerOfTen,
    /// `x+1=2`
    #[error("`{0}` compares two sides: type one side only, or the left side minus the right side")]
    Relation(String),
    /// `x±1`
    #[error("`±` stands for two expressions: type one of them, with `+` or `-`")]
    PlusMinus,
    /// `1+x+…`
    #[error("dots cannot be read: type every term")]
    Dots,
    /// `x!`
    #[error("a factorial is not possible: type the number itself")]
    Factorial,
    /// `|x|`
    #[error("an absolute value is not a polynomial: use parentheses `( )` to group")]
    AbsoluteValue,
    /// `{x+1}`
    #[error("braces belong behind `^` and `_` only: use parentheses `( )` to group")]
    Brace,
    /// `$x`
    #[error("this `$` has no partner: put one at the beginning and one at the end, or none")]
    Dollar,
    /// `x^n`
    #[error("an exponent is one whole number: write x^2, x^{{12}} or x²")]
    Exponent,
    /// `x^-1`
    #[error("a negative exponent makes a fraction, not a polynomial: exponents are 0, 1, 2, …")]
    NegativeExponent,
    /// `x^2^3`
    #[error("two exponents in a row can be read in two ways: write (x^2)^3 or x^8")]
    TwoExponents,
    /// `x_n`
    #[error("an index is a whole number up to 9999, directly behind its letter: write x2, x_2 or x_{{12}}")]
    Index,
    /// `x + x1`
    #[error("`{0}` stands beside `{1}`: give both an index, or use another letter")]
    WithAndWithoutIndex(Name, Name),
    /// A ninth name.
    #[error("this is the ninth variable: an expression has at most 8")]
    TooManyNames,
    /// `007`
    #[error("a number cannot begin with 0: leave the zeros out")]
    LeadingZero,
    /// A coefficient that does not fit.
    #[error("this number does not fit: coefficients go from -2^63 to 2^63 - 1")]
    TooLarge,
    /// Numbers whose product does not fit.
    #[error("the numbers multiply to more than fits: coefficients go from -2^63 to 2^63 - 1")]
    Overflow,
    /// A degree that does not fit.
    #[error("this degree is too high: the largest is 255")]
    Degree,
    /// `x 2`
    #[error("a number cannot follow here directly: write `*{0}` to multiply, or `^{0}` for a power")]
    NumberBehind(u64),
    /// Something else should stand here.
    #[error("a number, a letter or a parenthesis is missing here, found {0}")]
    Missing(String),
    /// `()`
    #[error("these parentheses are empty: put something between them, or leave them out")]
    EmptyParentheses,
    /// A parenthesis without a partner.
    #[error("this parenthesis has no partner: add the other one, or leave this one out")]
    Unbalanced,
    /// `(x+1]`
    #[error("this parenthesis closes one of another kind: use ( with ) and [ with ]")]
    OtherKind,
    /// Too deep.
    #[error("parentheses are nested more than {MAX_DEPTH} deep here: multiply out the inner ones")]
    Depth,
    /// Too much was typed.
    #[error("this is too long: at most {MAX_SYMBOLS} symbols can be read")]
    TooLong,
    /// More products than a state may have.
    #[error("this becomes {} products, and at most {MAX_PRODUCTS} are possible: use smaller powers or fewer sums", count(*.0))]
    Products(u64),
    /// More factors than a product may have.
    #[error("this becomes a product of {} factors, and at most {MAX_FACTORS} are possible: use smaller powers", count(*.0))]
    Factors(u64),
    /// A text that a model cannot take.
    #[error("this becomes {} tokens, and at most {MAX_TOKENS} are possible: shorten it", count(*.0))]
    Tokens(u64),
}

/// A count in words that stay readable when it is astronomical.
fn count(n: u64) -> String {
    if n > 1_000_000 { "more than a million".to_owned() } else { n.to_string() }
}

//! How states are written: infix, prefix and LaTeX (§2; the prefix form as in Lample & Charton).
//!
//! Everything is printed to tokens first, and text is a spelling of tokens, so that the two can never disagree. Printing is
//! a bijection on the states of a proof. Reading is generous: what people type is wrapped into a state; what the language
//! does not have (fractions, powers of parentheses, nesting) is refused with a sentence and the place.

mod infix;
mod latex;
mod layout;
mod lex;
mod prefix;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use latex::latex;
pub use layout::Layout;
pub(crate) use lex::Lexeme;

use layout::{LayoutBuilder, Nowhere, Places};
use write::Writer;

use crate::expr::{Factor, Product, State, Term};
use crate::monomial::{Monomial, TermOrder};
use crate::named;
use crate::poly::{ArithmeticError, Poly};
use crate::token;

/// Which way a state is written as a sequence of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notation {
    /// `(2*x2^2)*(3*x2+4)`
    #[default]
    Infix,
    /// `*F * INT+ 2 ^ x2 INT+ 2 + * INT+ 3 x2 INT+ 4`
    Prefix,
}
named!(Notation, "notation": Infix "infix", Prefix "prefix");

/// The choices of writing that do not change the language.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Style {
    /// The order of terms.
    pub order: TermOrder,
    /// Whether unsimplified terms with the coefficient 1 are written `1*x1^1`. The paper's example does not.
    pub ones: bool,
}

impl Style {
    /// Whether an unsimplified term writes this coefficient, and a simplified one leaves it out. Prefix always writes −1.
    pub fn writes_one(self, coeff: i64, notation: Notation) -> bool {
        self.ones && (coeff == 1 || (coeff == -1 && notation == Notation::Infix))
    }
}

/// What a calculator is left to compute: the factors with an open coefficient, by their place (product, factor), and their
/// terms as they are written. A term whose bracket is worth 0 stands here and not in the state. For a bare polynomial product
/// and factor are 0.
pub type Open = BTreeMap<(usize, usize), Vec<OpenTerm>>;

/// A term of a factor with an open coefficient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenTerm {
    /// The term, with the value of its bracket.
    pub term: Term,
    /// What its bracket holds, if its coefficient is open.
    pub summands: Option<Summands>,
}

/// `[5*-3+4]` is `[[5, -3], [4]]`.
pub type Summands = Vec<Vec<i64>>;

/// What is wrong with an expression.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Complaint {
    /// Nothing was written.
    #[error("the expression is empty")]
    Empty,
    /// A character that the language does not have.
    #[error("`{0}` is not part of the language")]
    Character(char),
    /// A minus before a parenthesis or a bracket.
    #[error("a minus belongs to a term: it cannot stand before a parenthesis or a bracket")]
    Minus,
    /// A fraction bar or a decimal point.
    #[error("fractions are not part of the language: every coefficient is a whole number")]
    Fraction,
    /// `(x+1)^2`
    #[error("a parenthesis cannot be raised to a power: write the factor several times")]
    PowerOfParenthesis,
    /// `((x+1)*2)*x`
    #[error("parentheses cannot be nested: a factor is a plain sum of terms")]
    Nested,
    /// `)` without `(`, or the other way round.
    #[error("this parenthesis has no partner")]
    Unbalanced,
    /// `2 x` or `(x)(y)`
    #[error("a `*`, `+` or `-` is missing here")]
    MissingOperator,
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should stand here.
        expected: &'static str,
        /// What stands here.
        found: String,
    },
    /// A 0 that is not alone, or a number with a leading 0.
    #[error("0 stands only alone or as a whole factor `(0)`, and no number begins with 0")]
    Zero,
    /// A number that does not fit.
    #[error("this number does not fit: coefficients go from -2^63 to 2^63 - 1")]
    TooLarge,
    /// A degree that does not fit.
    #[error("this degree exceeds 255, the largest degree polystep computes with")]
    Degree,
    /// `x9`, or a letter that is no variable.
    #[error("`{0}` is not a variable: variables are x1 to x8 (x, y and z stand for x1, x2 and x3)")]
    Variable(String),
    /// `(2*3*x)`
    #[error("a term has one coefficient: multiply the numbers, or give each its own parentheses")]
    TwoCoefficients,
    /// `(x*x)`
    #[error("{0} stands twice in this term: write it once, with an exponent")]
    RepeatedVariable(&'static str),
    /// A bracket whose sum overflows.
    #[error("this bracket comes to a number that does not fit: coefficients go from -2^63 to 2^63 - 1")]
    BracketOverflow,
    /// Tokens left over after a complete prefix expression.
    #[error("the expression is complete before this")]
    Trailing,
}

/// An expression that cannot be read, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{complaint}")]
pub struct NotationError {
    /// What is wrong.
    pub complaint: Complaint,
    /// The bytes of the input that are wrong; empty at the end of the input.
    pub span: Range<usize>,
}

impl NotationError {
    pub(crate) fn new(complaint: Complaint, span: Range<usize>) -> NotationError {
        NotationError { complaint, span }
    }

    /// The input with a caret under the place, and the sentence.
    pub fn caret(&self, input: &str) -> String {
        let before = input.get(..self.span.start).unwrap_or(input);
        let inside = input.get(self.span.clone()).unwrap_or("");
        let column = before.chars().count();
        let width = inside.chars().count().max(1);
        format!("{input}\n{}{} {self}", " ".repeat(column), "^".repeat(width))
    }
}

/// Writes a state as text.
pub fn print(state: &State, notation: Notation, style: Style) -> String {
    print_open(state, &Open::new(), notation, style)
}

/// Writes a state whose coefficients are partly open (a calculator step's target) as text.
pub fn print_open(state: &State, open: &Open, notation: Notation, style: Style) -> String {
    let mut tokens = Vec::new();
    write_tokens(state, open, notation, style, &mut tokens);
    token::decode(&tokens, notation)
}

/// Appends a state's tokens.
pub fn write_tokens(state: &State, open: &Open, notation: Notation, style: Style, out: &mut Vec<u8>) {
    write(state, open, notation, style, out, &mut Nowhere);
}

/// A state's tokens, and where its parts stand in them.
pub fn laid_out(state: &State, notation: Notation, style: Style) -> (Vec<u8>, Layout) {
    let (mut tokens, mut places) = (Vec::new(), LayoutBuilder::default());
    write(state, &Open::new(), notation, style, &mut tokens, &mut places);
    (tokens, places.finish())
}

fn write(state: &State, open: &Open, notation: Notation, style: Style, out: &mut Vec<u8>, places: &mut impl Places) {
    Writer { notation, style, out, places }.state(state, open);
}

/// Reads a state, as printed or as people type it. Brackets are evaluated.
pub fn parse(text: &str, notation: Notation, style: Style) -> Result<State, NotationError> {
    Ok(parse_open(text, notation, style)?.0)
}

/// Reads a state and keeps what its brackets held.
pub fn parse_open(text: &str, notation: Notation, style: Style) -> Result<(State, Open), NotationError> {
    let lexemes = lex::lex(text, notation)?;
    read(&lexemes, text.len(), notation, style)
}

/// Reads a state from a model's tokens. The span of an error counts tokens.
pub fn parse_tokens(tokens: &[u8], notation: Notation, style: Style) -> Result<(State, Open), NotationError> {
    let lexemes: Vec<Lexeme> = tokens.iter().enumerate().map(|(i, &token)| Lexeme { token, span: i..i + 1 }).collect();
    read(&lexemes, tokens.len(), notation, style)
}

fn read(lexemes: &[Lexeme], end: usize, notation: Notation, style: Style) -> Result<(State, Open), NotationError> {
    if lexemes.is_empty() {
        return Err(NotationError::new(Complaint::Empty, 0..end));
    }
    let reader = Reader { lexemes, at: 0, end, notation, style };
    match notation {
        Notation::Infix => infix::read(reader),
        Notation::Prefix => prefix::read(reader),
    }
}

type ReadFactor = Vec<OpenTerm>;

/// A sum of products as it was read, taken apart into the state and its brackets.
fn sum_of(products: Vec<Vec<ReadFactor>>) -> (State, Open) {
    let mut open = Open::new();
    let mut factor = |p, f, terms: ReadFactor| {
        let factor = evaluated(terms.iter().map(|t| t.term));
        if terms.iter().any(|t| t.summands.is_some()) {
            open.insert((p, f), terms);
        }
        factor
    };
    let mut product = |p, factors: Vec<ReadFactor>| {
        Product(factors.into_iter().enumerate().map(|(f, terms)| factor(p, f, terms)).collect())
    };
    let products = products.into_iter().enumerate().map(|(p, factors)| product(p, factors)).collect();
    (State::Sum(products), open)
}

/// The factor that terms make when those whose bracket is worth 0 have vanished.
pub(crate) fn evaluated(terms: impl Iterator<Item = Term>) -> Factor {
    let left: Vec<Term> = terms.filter(|t| t.coeff != 0).collect();
    if left.is_empty() { Factor::from(&Poly::default()) } else { Factor(left) }
}

/// A polynomial without parentheses: the endpoint if it is in normal form, else it is wrapped as `(P)`.
fn bare_or_wrapped(terms: ReadFactor, order: TermOrder) -> Result<(State, Open), ArithmeticError> {
    let factor = evaluated(terms.iter().map(|t| t.term));
    let (state, open) = sum_of(vec![vec![terms]]);
    Ok(if factor.is_simplified(order) { (State::Bare(factor.value(order)?), open) } else { (state, open) })
}

/// One atom of a term.
enum Atom {
    Number(i128),
    Bracket(Summands, i64),
    Power { var: usize, exponent: u8, written: bool },
}

/// A term while its atoms come in.
#[derive(Default)]
struct TermBuilder {
    /// Whether a minus stands before it, in infix.
    negative: bool,
    coeff: Option<(i128, Option<Summands>)>,
    monomial: Monomial,
    written_ones: bool,
}

impl TermBuilder {
    /// Why this atom cannot belong to the term, if it cannot.
    fn conflict(&self, atom: &Atom) -> Option<Complaint> {
        match atom {
            Atom::Number(_) | Atom::Bracket(..) if self.coeff.is_some() => Some(Complaint::TwoCoefficients),
            Atom::Power { var, .. } if self.monomial.exponent(*var) > 0 => {
                Some(Complaint::RepeatedVariable(token::name(token::VAR + *var as u8)))
            }
            _ => None,
        }
    }

    fn push(&mut self, atom: Atom) -> Result<(), Complaint> {
        match atom {
            Atom::Bracket(..) if self.negative => return Err(Complaint::Minus),
            Atom::Number(n) => self.coeff = Some((n, None)),
            Atom::Bracket(summands, value) => self.coeff = Some((value.into(), Some(summands))),
            Atom::Power { var, exponent, written } => {
                let power = Monomial::power(var, exponent).ok_or(Complaint::Degree)?;
                self.monomial = self.monomial.checked_mul(power).ok_or(Complaint::Degree)?;
                self.written_ones |= written && exponent == 1;
            }
        }
        Ok(())
    }
}

/// The value of a bracket.
pub(crate) fn evaluate(summands: &Summands) -> Option<i64> {
    let product = |numbers: &Vec<i64>| numbers.iter().try_fold(1i64, |product, &n| product.checked_mul(n));
    let sum = summands.iter().try_fold(0i128, |sum, numbers| Some(sum + i128::from(product(numbers)?)))?;
    i64::try_from(sum).ok()
}

/// A cursor over lexemes.
struct Reader<'a> {
    lexemes: &'a [Lexeme],
    at: usize,
    end: usize,
    notation: Notation,
    style: Style,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.lexemes.get(self.at).map(|l| l.token)
    }

    fn span(&self) -> Range<usize> {
        self.lexemes.get(self.at).map_or(self.end..self.end, |l| l.span.clone())
    }

    fn eat(&mut self, token: u8) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn fail<T>(&self, complaint: Complaint) -> Result<T, NotationError> {
        Err(NotationError::new(complaint, self.span()))
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, NotationError> {
        let found = self.peek().map_or("the end".to_owned(), |t| format!("`{}`", token::name(t)));
        self.fail(Complaint::Expected { expected, found })
    }

    /// What was read since lexeme `first`.
    fn span_from(&self, first: usize) -> Range<usize> {
        self.lexemes[first].span.start..self.lexemes[self.at - 1].span.end
    }

    /// The term that the lexemes since `first` make. Zero must be alone.
    fn finish(&self, term: TermBuilder, first: usize, alone: bool) -> Result<OpenTerm, NotationError> {
        let TermBuilder { negative, coeff, monomial, written_ones } = term;
        let fail = |complaint| NotationError::new(complaint, self.span_from(first));
        let written = matches!(coeff, Some((_, None)));
        let (n, summands) = coeff.unwrap_or((1, None));
        if n == 0 && summands.is_none() && (negative || !alone || monomial != Monomial::ONE) {
            return Err(fail(Complaint::Zero));
        }
        let coeff = i64::try_from(if negative { -n } else { n }).map_err(|_| fail(Complaint::TooLarge))?;
        let one = written && self.style.writes_one(coeff, self.notation) && monomial != Monomial::ONE;
        Ok(OpenTerm { term: Term { coeff, monomial, raw: written_ones || one }, summands })
    }

    /// A number in a bracket, which the lexemes since `first` make.
    fn nonzero(&self, n: i128, first: usize) -> Result<i64, NotationError> {
        let complaint = if n == 0 { Complaint::Zero } else { Complaint::TooLarge };
        i64::try_from(n).ok().filter(|&n| n != 0).ok_or_else(|| NotationError::new(complaint, self.span_from(first)))
    }

    /// The bracket that begins at lexeme `first`, with its value.
    fn evaluated(&self, summands: Summands, first: usize) -> Result<Atom, NotationError> {
        let overflow = || NotationError::new(Complaint::BracketOverflow, self.span_from(first));
        let value = evaluate(&summands).ok_or_else(overflow)?;
        Ok(Atom::Bracket(summands, value))
    }

    /// A run of digits; only 0 itself begins with 0.
    fn number(&mut self) -> Result<u64, NotationError> {
        let start = self.at;
        let mut n: Option<u64> = Some(0);
        while let Some(digit) = self.peek().filter(|t| (token::DIGIT..token::VAR).contains(t)) {
            let digit = u64::from(digit - token::DIGIT);
            n = n.and_then(|n| n.checked_mul(10)?.checked_add(digit));
            self.at += 1;
        }
        if start == self.at {
            return self.expected("a number");
        }
        let span = self.lexemes[start].span.start..self.lexemes[self.at - 1].span.end;
        if self.lexemes[start].token == token::DIGIT && self.at > start + 1 {
            return Err(NotationError::new(Complaint::Zero, span));
        }
        n.ok_or(NotationError::new(Complaint::TooLarge, span))
    }

    /// A variable's index.
    fn variable(&mut self) -> Result<usize, NotationError> {
        match self.peek() {
            Some(t) if (token::VAR..token::PLUS).contains(&t) => {
                self.at += 1;
                Ok(usize::from(t - token::VAR))
            }
            _ => self.expected("a variable"),
        }
    }

    /// The exponent behind `^`.
    fn exponent(&self, n: u64, start: usize) -> Result<u8, NotationError> {
        let span = start..self.lexemes[self.at - 1].span.end;
        let complaint = if n == 0 { Complaint::Zero } else { Complaint::Degree };
        u8::try_from(n).ok().filter(|&e| e > 0).ok_or(NotationError::new(complaint, span))
    }
}

#[cfg(test)]
mod tests;

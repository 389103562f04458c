//! Characters to symbols: numbers, names, exponents, signs and parentheses.
//!
//! All spellings of a thing become one symbol here: `×`, `·` and `\cdot` are `*`; `x²`, `x^{2}`, `x^(2)` and `x**2` have the
//! same exponent; `x₁`, `x_1`, `x_{1}` and `x1` are the same name. Letters side by side are separate names (`xy` is x times
//! y), but the names of functions are refused: `sin` is never s times i times n.

use std::ops::Range;

use super::error::{TypedError, TypedProblem};
use super::limits::MAX_SYMBOLS;
use super::names::Name;
use super::spelling::{FUNCTIONS, digit, greek, is_blank, is_letter, plain, refusal, subscript, superscript};

/// A symbol and the bytes it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Symbol {
    pub kind: SymbolKind,
    pub span: Range<usize>,
}

/// What a symbol is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SymbolKind {
    Number(u64),
    Name(Name),
    /// `^` and its number.
    Exponent(u64),
    Plus,
    Minus,
    Times,
    /// `(`, or `[` if square.
    Open {
        square: bool,
    },
    /// `)`, or `]` if square.
    Close {
        square: bool,
    },
}

const MAX_INDEX: u64 = 9999;

/// The symbols of a text.
pub(super) fn symbols(text: &str) -> Result<Vec<Symbol>, TypedError> {
    let inside = without_dollars(text);
    let mut scanner = Scanner { text: &text[..inside.end], at: inside.start, symbols: Vec::new() };
    while let Some(c) = scanner.peek() {
        let start = scanner.at;
        scanner.step(c)?;
        if scanner.symbols.len() > MAX_SYMBOLS {
            return Err(TypedError::new(TypedProblem::TooLong, start..scanner.at));
        }
    }
    if scanner.symbols.is_empty() {
        return Err(TypedError::new(TypedProblem::Empty, 0..text.len()));
    }
    Ok(scanner.symbols)
}

/// The part between the blanks and dollar signs around it: `$…$`, `$$…$$`, `\(…\)` or `\[…\]`.
fn without_dollars(text: &str) -> Range<usize> {
    let body = text.trim_start_matches(is_blank);
    let start = text.len() - body.len();
    let body = body.trim_end_matches(is_blank);
    let inside = [("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")]
        .into_iter()
        .find(|(open, close)| body.strip_prefix(open).is_some_and(|rest| rest.ends_with(close)));
    let (open, close) = inside.unwrap_or_default();
    start + open.len()..start + body.len() - close.len()
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    symbols: Vec<Symbol>,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The next character, in its plain form.
    fn peek(&self) -> Option<char> {
        self.rest().chars().next().map(plain)
    }

    fn advance(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.advance();
        }
        found
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches(is_blank).len();
    }

    fn push(&mut self, kind: SymbolKind, start: usize) {
        self.symbols.push(Symbol { kind, span: start..self.at });
    }

    /// Fails at everything read since `start`.
    fn fail<T>(&self, problem: TypedProblem, start: usize) -> Result<T, TypedError> {
        Err(TypedError::new(problem, start..self.at))
    }

    /// Fails at the next character.
    fn fail_here<T>(&mut self, problem: TypedProblem) -> Result<T, TypedError> {
        let start = self.at;
        self.advance();
        self.fail(problem, start)
    }

    /// Reads the symbol that begins with `c`, or skips what means nothing.
    fn step(&mut self, c: char) -> Result<(), TypedError> {
        let start = self.at;
        if c == '*' && self.rest().starts_with("**") {
            self.at += 2;
            return self.exponent(start);
        }
        let kind = match c {
            '+' => SymbolKind::Plus,
            '-' => SymbolKind::Minus,
            '*' => SymbolKind::Times,
            '(' | '[' => SymbolKind::Open { square: c == '[' },
            ')' | ']' => SymbolKind::Close { square: c == ']' },
            '^' => {
                self.advance();
                return self.exponent(start);
            }
            '0'..='9' => return self.coefficient(),
            '\\' => return self.command(),
            _ if superscript(c).is_some() => {
                let exponent = self.digits(superscript)?;
                self.push(SymbolKind::Exponent(exponent), start);
                return Ok(());
            }
            _ if is_blank(c) => {
                self.advance();
                return Ok(());
            }
            _ if is_letter(c) => return self.letter(c),
            _ => return self.fail_here(refusal(c)),
        };
        self.advance();
        self.push(kind, start);
        Ok(())
    }

    /// A run of digits of one kind: plain, raised or lowered.
    fn digits(&mut self, value: fn(char) -> Option<u64>) -> Result<u64, TypedError> {
        let start = self.at;
        let mut number = Some(0u64);
        while let Some(digit) = self.peek().and_then(value) {
            number = number.and_then(|n| n.checked_mul(10)?.checked_add(digit));
            self.advance();
        }
        number.map_or_else(|| self.fail(TypedProblem::TooLarge, start), Ok)
    }

    /// A run of plain digits without leading zeros.
    fn number(&mut self) -> Result<u64, TypedError> {
        let start = self.at;
        let zero = self.peek() == Some('0');
        let number = self.digits(digit)?;
        if zero && self.text[start..self.at].chars().count() > 1 {
            return self.fail(TypedProblem::LeadingZero, start);
        }
        Ok(number)
    }

    fn coefficient(&mut self) -> Result<(), TypedError> {
        let start = self.at;
        let number = self.number()?;
        if self.rest().strip_prefix(['e', 'E']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            self.advance();
            self.digits(digit)?;
            return self.fail(TypedProblem::PowerOfTen, start);
        }
        self.push(SymbolKind::Number(number), start);
        Ok(())
    }

    /// What stands behind `^` or `**`.
    fn exponent(&mut self, start: usize) -> Result<(), TypedError> {
        self.skip_blanks();
        let close = match self.peek() {
            Some('{') => Some('}'),
            Some('(') => Some(')'),
            _ => None,
        };
        if close.is_some() {
            self.advance();
            self.skip_blanks();
        }
        match self.peek() {
            Some('0'..='9') => {}
            Some('-') => return self.fail_here(TypedProblem::NegativeExponent),
            _ => return self.fail_here(TypedProblem::Exponent),
        }
        let exponent = self.number()?;
        if let Some(close) = close {
            self.skip_blanks();
            if !self.eat(close) {
                return self.fail_here(TypedProblem::Exponent);
            }
        }
        self.push(SymbolKind::Exponent(exponent), start);
        Ok(())
    }

    /// A name, unless a function begins here.
    fn letter(&mut self, letter: char) -> Result<(), TypedError> {
        let start = self.at;
        let begins =
            |function: &&str| self.rest().get(..function.len()).is_some_and(|w| w.eq_ignore_ascii_case(function));
        if let Some(function) = FUNCTIONS.into_iter().find(|f| begins(f)) {
            self.at += function.len();
            return self.fail(TypedProblem::Function(function), start);
        }
        self.advance();
        self.name(letter, start)
    }

    /// The index behind a letter, if there is one, and the whole name.
    fn name(&mut self, letter: char, start: usize) -> Result<(), TypedError> {
        if letter == 'π' {
            return self.fail(TypedProblem::Constant(letter), start);
        }
        let underscore = self.eat('_');
        let brace = underscore && self.eat('{');
        if brace {
            self.skip_blanks();
        }
        let value = if !underscore && self.peek().and_then(subscript).is_some() { subscript } else { digit };
        let index = match self.peek().and_then(value) {
            Some(_) => Some(self.digits(value)?),
            None if underscore => return self.fail_here(TypedProblem::Index),
            None => None,
        };
        if brace {
            self.skip_blanks();
            if !self.eat('}') {
                return self.fail_here(TypedProblem::Index);
            }
        }
        if index.is_some_and(|i| i > MAX_INDEX) {
            return self.fail(TypedProblem::Index, start);
        }
        self.push(SymbolKind::Name(Name { letter, index: index.map(|i| i as u32) }), start);
        Ok(())
    }

    /// A LaTeX command.
    fn command(&mut self) -> Result<(), TypedError> {
        let start = self.at;
        self.advance();
        let letters = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        self.at += letters;
        if letters == 0 {
            self.advance();
        }
        let command = self.text[start + 1..self.at].to_owned();
        match command.as_str() {
            "cdot" | "times" | "ast" => self.push(SymbolKind::Times, start),
            "left" | "right" | "big" | "bigl" | "bigr" | "Big" | "Bigl" | "Bigr" => {
                let end = self.at;
                self.skip_blanks();
                if !matches!(self.peek(), Some('(' | ')' | '[' | ']')) {
                    return Err(TypedError::new(TypedProblem::Command(command), start..end));
                }
            }
            "," | ";" | ":" | "!" | " " | "quad" | "qquad" | "displaystyle" => {}
            "frac" | "dfrac" | "tfrac" | "div" | "over" => return self.fail(TypedProblem::Division, start),
            "pm" | "mp" => return self.fail(TypedProblem::PlusMinus, start),
            "dots" | "ldots" | "cdots" => return self.fail(TypedProblem::Dots, start),
            "pi" => return self.fail(TypedProblem::Constant('π'), start),
            "{" | "}" => return self.fail(TypedProblem::Brace, start),
            "lt" | "le" | "leq" | "gt" | "ge" | "geq" | "ne" | "neq" | "equiv" | "approx" => {
                return self.fail(TypedProblem::Relation(format!("\\{command}")), start);
            }
            _ => {
                if let Some(function) = FUNCTIONS.into_iter().find(|&f| f == command) {
                    return self.fail(TypedProblem::Function(function), start);
                }
                return match greek(&command) {
                    Some(letter) => self.name(letter, start),
                    None => self.fail(TypedProblem::Command(command), start),
                };
            }
        }
        Ok(())
    }
}

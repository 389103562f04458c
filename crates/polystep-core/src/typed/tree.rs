//! The expression as it was typed: sums of products of atoms, to any depth.
//!
//! A minus belongs to the atom behind it, and an exponent binds more tightly: `-x^2` is minus the square of x. A minus before a
//! product is the minus of its first atom, which has the same value. Exponents are plain numbers, so they are part of the
//! atom and not a tree of their own.

use std::ops::Range;

use super::error::{TypedError, TypedProblem};
use super::limits::MAX_DEPTH;
use super::names::Names;
use super::symbol::{Symbol, SymbolKind};

/// Products that are added.
pub(super) type TypedSum = Vec<TypedProduct>;

/// Atoms that are multiplied, and where they stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TypedProduct {
    pub atoms: Vec<Atom>,
    pub span: Range<usize>,
}

/// A number, a variable or something in parentheses, perhaps with a minus and an exponent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Atom {
    pub negative: bool,
    pub base: Base,
    pub exponent: Option<u64>,
    pub span: Range<usize>,
}

/// An atom without its minus and exponent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Base {
    Number(u64),
    Variable(usize),
    Parentheses(TypedSum),
    /// `[5*3+2]`: a calculator's coefficient if it holds only numbers, else the same as parentheses.
    Brackets(TypedSum),
}

/// Parses the symbols of a text.
pub(super) fn parse(text: &str, symbols: &[Symbol], names: &Names) -> Result<TypedSum, TypedError> {
    let mut parser = Parser { text, symbols, names, at: 0, depth: 0 };
    let sum = parser.sum()?;
    match parser.peek() {
        None => Ok(sum),
        Some(SymbolKind::Close { .. }) => parser.fail(TypedProblem::Unbalanced),
        Some(_) => parser.missing(),
    }
}

struct Parser<'a> {
    text: &'a str,
    symbols: &'a [Symbol],
    names: &'a Names,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<SymbolKind> {
        self.symbols.get(self.at).map(|s| s.kind)
    }

    fn span(&self) -> Range<usize> {
        let end = self.text.len();
        self.symbols.get(self.at).map_or(end..end, |s| s.span.clone())
    }

    /// The bytes from `start` to the end of the last symbol that was read.
    fn span_from(&self, start: usize) -> Range<usize> {
        start..self.symbols[self.at - 1].span.end
    }

    fn eat(&mut self, kind: SymbolKind) -> bool {
        let found = self.peek() == Some(kind);
        self.at += usize::from(found);
        found
    }

    fn fail<T>(&self, problem: TypedProblem) -> Result<T, TypedError> {
        Err(TypedError::new(problem, self.span()))
    }

    fn missing<T>(&self) -> Result<T, TypedError> {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(_) => format!("`{}`", &self.text[self.span()]),
        };
        self.fail(TypedProblem::Missing(found))
    }

    /// Any number of minus signs: whether they make a minus.
    fn minus(&mut self) -> bool {
        let mut negative = false;
        while self.eat(SymbolKind::Minus) {
            negative = !negative;
        }
        negative
    }

    fn sum(&mut self) -> Result<TypedSum, TypedError> {
        self.eat(SymbolKind::Plus);
        let mut sum = vec![self.product()?];
        while self.eat(SymbolKind::Plus) || self.peek() == Some(SymbolKind::Minus) {
            sum.push(self.product()?);
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<TypedProduct, TypedError> {
        let start = self.span().start;
        let mut atoms = vec![self.atom()?];
        loop {
            match self.peek() {
                Some(SymbolKind::Times) => self.at += 1,
                Some(SymbolKind::Name(_) | SymbolKind::Open { .. }) => {}
                Some(SymbolKind::Number(n)) => return self.fail(TypedProblem::NumberBehind(n)),
                Some(SymbolKind::Exponent(_)) => return self.fail(TypedProblem::TwoExponents),
                _ => break,
            }
            atoms.push(self.atom()?);
        }
        Ok(TypedProduct { atoms, span: self.span_from(start) })
    }

    fn atom(&mut self) -> Result<Atom, TypedError> {
        let start = self.span().start;
        let negative = self.minus();
        let base = match self.peek() {
            Some(SymbolKind::Number(n)) => {
                self.at += 1;
                Base::Number(n)
            }
            Some(SymbolKind::Name(name)) => {
                self.at += 1;
                Base::Variable(self.names.variable(name).expect("every name among the symbols has a variable"))
            }
            Some(SymbolKind::Open { square }) => self.parentheses(square)?,
            Some(SymbolKind::Close { .. }) if self.at == 0 => return self.fail(TypedProblem::Unbalanced),
            _ => return self.missing(),
        };
        let exponent = match self.peek() {
            Some(SymbolKind::Exponent(e)) => {
                self.at += 1;
                Some(e)
            }
            _ => None,
        };
        Ok(Atom { negative, base, exponent, span: self.span_from(start) })
    }

    fn parentheses(&mut self, square: bool) -> Result<Base, TypedError> {
        let open = self.span();
        if self.depth == MAX_DEPTH {
            return self.fail(TypedProblem::Depth);
        }
        self.at += 1;
        self.depth += 1;
        if let Some(SymbolKind::Close { .. }) = self.peek() {
            let span = open.start..self.span().end;
            return Err(TypedError::new(TypedProblem::EmptyParentheses, span));
        }
        let sum = self.sum()?;
        match self.peek() {
            Some(SymbolKind::Close { square: found }) if found == square => self.at += 1,
            Some(SymbolKind::Close { .. }) => return self.fail(TypedProblem::OtherKind),
            None => return Err(TypedError::new(TypedProblem::Unbalanced, open)),
            Some(_) => return self.missing(),
        }
        self.depth -= 1;
        Ok(if square { Base::Brackets(sum) } else { Base::Parentheses(sum) })
    }
}

//! Infix, with every factor of an unsimplified state in parentheses: `(2*x2^2)*(3*x2^1+4)+(5*x1^2)*(2)`.
//!
//! Reading decides late: only when the whole line has been seen is it known whether `3*x+4` is an endpoint (nothing is in
//! parentheses and it is in normal form), a start to be wrapped as `(P)`, or two products of a mixture. A minus belongs to the
//! term behind it; before a parenthesis or a bracket it is refused.

use super::{Atom, Complaint, NotationError, Open, OpenTerm, ReadFactor, Reader, TermBuilder, bare_or_wrapped, sum_of};
use crate::expr::State;
use crate::token;

pub(super) fn read(mut reader: Reader<'_>) -> Result<(State, Open), NotationError> {
    let mut products: Vec<Vec<ReadFactor>> = Vec::new();
    let mut wrapped = false;
    let mut negative = reader.eat(token::MINUS);
    loop {
        let mut factors = Vec::new();
        loop {
            let (factor, parenthesised) = reader.item(negative && factors.is_empty())?;
            wrapped |= parenthesised;
            factors.push(factor);
            if !reader.eat(token::TIMES) {
                break;
            }
        }
        products.push(factors);
        match reader.joint() {
            Some(minus) => negative = minus,
            None => break,
        }
    }
    match reader.peek() {
        None => {}
        Some(token::CLOSE | token::UNBRACKET) => return reader.fail(Complaint::Unbalanced),
        Some(token::POWER) => return reader.expected("`+`, `-` or `*`"),
        Some(t) if !(token::DIGIT..token::DOLLAR).contains(&t) => {
            return reader.expected("`+`, `-` or `*`");
        }
        Some(_) => return reader.fail(Complaint::MissingOperator),
    }
    if wrapped || products.iter().any(|p| p.len() > 1) {
        return Ok(sum_of(products));
    }
    let order = reader.style.order;
    let terms = products.into_iter().flatten().flatten().collect();
    bare_or_wrapped(terms, order).map_err(|_| NotationError::new(Complaint::TooLarge, 0..reader.end))
}

impl Reader<'_> {
    /// The sign between two terms, and whether it is a minus.
    fn joint(&mut self) -> Option<bool> {
        let minus = match self.peek()? {
            token::PLUS => false,
            token::MINUS => true,
            _ => return None,
        };
        self.at += 1;
        Some(minus)
    }

    /// A factor in parentheses, or a term that stands for one.
    fn item(&mut self, negative: bool) -> Result<(ReadFactor, bool), NotationError> {
        if self.peek() != Some(token::OPEN) {
            return Ok((vec![self.term(negative, true)?], false));
        }
        if negative {
            return self.fail(Complaint::Minus);
        }
        let open = self.span();
        self.at += 1;
        let mut terms = Vec::new();
        let mut negative = self.eat(token::MINUS);
        loop {
            if self.peek() == Some(token::OPEN) {
                return self.fail(Complaint::Nested);
            }
            terms.push(self.term(negative, false)?);
            match self.joint() {
                Some(minus) => negative = minus,
                None => break,
            }
        }
        match self.peek() {
            Some(token::CLOSE) => self.at += 1,
            None => return Err(NotationError::new(Complaint::Unbalanced, open)),
            Some(token::OPEN) => return self.fail(Complaint::MissingOperator),
            Some(_) => return self.expected("`+`, `-`, `*` or `)`"),
        }
        if self.peek() == Some(token::POWER) {
            return self.fail(Complaint::PowerOfParenthesis);
        }
        Ok((terms, true))
    }

    /// A term behind its sign. Outside parentheses an atom that cannot belong to it begins the next factor: `2*3*x` is
    /// `(2)*(3*x)`.
    fn term(&mut self, negative: bool, may_split: bool) -> Result<OpenTerm, NotationError> {
        let mut term = TermBuilder { negative, ..TermBuilder::default() };
        let first = self.at;
        loop {
            let before = self.at;
            let span = self.span();
            let atom = self.atom()?;
            if let Some(complaint) = term.conflict(&atom) {
                if !may_split {
                    return Err(NotationError::new(complaint, span));
                }
                self.at = before - 1;
                break;
            }
            term.push(atom).map_err(|c| NotationError::new(c, span))?;
            let followed_by_parenthesis = self.lexemes.get(self.at + 1).is_some_and(|l| l.token == token::OPEN);
            if self.peek() != Some(token::TIMES) || (may_split && followed_by_parenthesis) {
                break;
            }
            if followed_by_parenthesis {
                self.at += 1;
                return self.fail(Complaint::Nested);
            }
            self.at += 1;
        }
        let token = |at: Option<usize>| at.and_then(|at| self.lexemes.get(at)).map(|l| l.token);
        let around = (token(first.checked_sub(1)), self.peek());
        let alone = matches!(around, (None, None) | (Some(token::OPEN), Some(token::CLOSE)));
        self.finish(term, first, alone)
    }

    fn atom(&mut self) -> Result<Atom, NotationError> {
        match self.peek() {
            Some(t) if (token::DIGIT..token::VAR).contains(&t) => {
                let n = self.number()?;
                if self.peek() == Some(token::POWER) {
                    return self.expected("`+`, `-` or `*` after a number");
                }
                Ok(Atom::Number(n.into()))
            }
            Some(t) if (token::VAR..token::PLUS).contains(&t) => {
                let var = self.variable()?;
                if !self.eat(token::POWER) {
                    return Ok(Atom::Power { var, exponent: 1, written: false });
                }
                let start = self.span().start;
                let n = self.number()?;
                Ok(Atom::Power { var, exponent: self.exponent(n, start)?, written: true })
            }
            Some(token::BRACKET) => self.bracket(),
            Some(token::CLOSE) if self.at == 0 => self.fail(Complaint::Unbalanced),
            _ => self.expected("a number or a variable"),
        }
    }

    /// `[5*-3+2*4]`
    fn bracket(&mut self) -> Result<Atom, NotationError> {
        let start = self.at;
        self.at += 1;
        let mut summands = vec![vec![self.bracketed()?]];
        loop {
            match self.peek() {
                Some(token::TIMES) => {
                    self.at += 1;
                    let n = self.bracketed()?;
                    summands.last_mut().expect("never empty").push(n);
                }
                Some(token::PLUS) => {
                    self.at += 1;
                    summands.push(vec![self.bracketed()?]);
                }
                Some(token::UNBRACKET) => break,
                _ => return self.expected("`+`, `*` or `]`"),
            }
        }
        self.at += 1;
        self.evaluated(summands, start)
    }

    fn bracketed(&mut self) -> Result<i64, NotationError> {
        let start = self.at;
        let negative = self.eat(token::MINUS);
        let n = i128::from(self.number()?);
        self.nonzero(if negative { -n } else { n }, start)
    }
}

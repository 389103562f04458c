//! Infix, with every factor of an unsimplified state in parentheses: `(2*x2^2)*(3*x2^1+4)+(5*x1^2)*(2)`.
//!
//! Reading decides late: only when the whole line has been seen is it known whether `3*x+4` is an endpoint (nothing is in
//! parentheses and it is in normal form), a start to be wrapped as `(P)`, or two products of a mixture.

use super::{
    Atom, Complaint, NotationError, Open, Places, ReadFactor, ReadTerm, Reader, Style, Summands, TermBuilder,
    bare_or_wrapped, evaluate, sum_of,
};
use crate::expr::{State, Term};
use crate::monomial::Monomial;
use crate::token::{self, push_digits};

pub(super) fn write(state: &State, open: &Open, style: Style, out: &mut Vec<u8>, places: &mut impl Places) {
    match state {
        State::Bare(poly) => {
            write_terms(poly.terms().iter().map(|&(c, m)| Term::plain(c, m)), (0, 0), open, style, out, places);
        }
        State::Sum(products) => {
            for (p, product) in products.iter().enumerate() {
                if p > 0 {
                    out.push(token::PLUS);
                }
                let from = out.len();
                for (f, factor) in product.0.iter().enumerate() {
                    if f > 0 {
                        out.push(token::TIMES);
                    }
                    let from = out.len();
                    out.push(token::OPEN);
                    write_terms(factor.0.iter().copied(), (p, f), open, style, out, places);
                    out.push(token::CLOSE);
                    places.factor(from..out.len());
                }
                places.product(from..out.len());
            }
        }
    }
}

fn write_terms(
    terms: impl Iterator<Item = Term>,
    (p, f): (usize, usize),
    open: &Open,
    style: Style,
    out: &mut Vec<u8>,
    places: &mut impl Places,
) {
    for (t, term) in terms.enumerate() {
        if t > 0 {
            out.push(token::PLUS);
        }
        let from = out.len();
        write_term(&term, open.get(&(p, f, t)), style, out);
        places.term(from..out.len());
    }
}

fn write_term(term: &Term, summands: Option<&Summands>, style: Style, out: &mut Vec<u8>) {
    let constant = term.monomial == Monomial::ONE;
    let written = term.coeff != 1 || constant || (term.raw && style.ones);
    match summands {
        Some(summands) => write_bracket(summands, out),
        None if written => push_digits(term.coeff, out),
        None => {}
    }
    let mut times = summands.is_some() || written;
    for (var, e) in term.monomial.powers() {
        if times {
            out.push(token::TIMES);
        }
        times = true;
        out.push(token::VAR + var as u8);
        if e > 1 || term.raw {
            out.push(token::POWER);
            push_digits(u64::from(e), out);
        }
    }
}

fn write_bracket(summands: &Summands, out: &mut Vec<u8>) {
    out.push(token::BRACKET);
    for (i, numbers) in summands.iter().enumerate() {
        if i > 0 {
            out.push(token::PLUS);
        }
        for (j, &n) in numbers.iter().enumerate() {
            if j > 0 {
                out.push(token::TIMES);
            }
            push_digits(n, out);
        }
    }
    out.push(token::UNBRACKET);
}

pub(super) fn read(mut reader: Reader<'_>) -> Result<(State, Open), NotationError> {
    let mut products: Vec<Vec<ReadFactor>> = Vec::new();
    let mut wrapped = false;
    loop {
        let mut factors = Vec::new();
        loop {
            let (factor, parenthesised) = reader.item()?;
            wrapped |= parenthesised;
            factors.push(factor);
            if !reader.eat(token::TIMES) {
                break;
            }
        }
        products.push(factors);
        if !reader.eat(token::PLUS) {
            break;
        }
    }
    match reader.peek() {
        None => {}
        Some(token::CLOSE | token::UNBRACKET) => return reader.fail(Complaint::Unbalanced),
        Some(token::POWER) => return reader.expected("`+` or `*`"),
        Some(t) if !(token::DIGIT..token::DOLLAR).contains(&t) => {
            return reader.expected("`+` or `*`");
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
    /// A factor in parentheses, or a term that stands for one.
    fn item(&mut self) -> Result<(ReadFactor, bool), NotationError> {
        if self.peek() != Some(token::OPEN) {
            return Ok((vec![self.term(true)?], false));
        }
        let open = self.span();
        self.at += 1;
        let mut terms = Vec::new();
        loop {
            if self.peek() == Some(token::OPEN) {
                return self.fail(Complaint::Nested);
            }
            terms.push(self.term(false)?);
            if !self.eat(token::PLUS) {
                break;
            }
        }
        match self.peek() {
            Some(token::CLOSE) => self.at += 1,
            None => return Err(NotationError::new(Complaint::Unbalanced, open)),
            Some(token::OPEN) => return self.fail(Complaint::MissingOperator),
            Some(_) => return self.expected("`+`, `*` or `)`"),
        }
        if self.peek() == Some(token::POWER) {
            return self.fail(Complaint::PowerOfParenthesis);
        }
        Ok((terms, true))
    }

    /// A term. Outside parentheses an atom that cannot belong to it begins the next factor: `2*3*x` is `(2)*(3*x)`.
    fn term(&mut self, may_split: bool) -> Result<ReadTerm, NotationError> {
        let mut term = TermBuilder::default();
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
        Ok(term.finish(self.style))
    }

    fn atom(&mut self) -> Result<Atom, NotationError> {
        match self.peek() {
            Some(t) if (token::DIGIT..token::VAR).contains(&t) => {
                let n = self.number()?;
                if self.peek() == Some(token::POWER) {
                    return self.expected("`+` or `*` after a number");
                }
                Ok(Atom::Number(n))
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

    /// `[5*3*2+4]`
    fn bracket(&mut self) -> Result<Atom, NotationError> {
        let start = self.span().start;
        self.at += 1;
        let mut summands = vec![vec![self.number()?]];
        loop {
            match self.peek() {
                Some(token::TIMES) => {
                    self.at += 1;
                    let n = self.number()?;
                    summands.last_mut().expect("never empty").push(n);
                }
                Some(token::PLUS) => {
                    self.at += 1;
                    summands.push(vec![self.number()?]);
                }
                Some(token::UNBRACKET) => break,
                _ => return self.expected("`+`, `*` or `]`"),
            }
        }
        let span = start..self.span().end;
        self.at += 1;
        let value = evaluate(&summands).ok_or(NotationError::new(Complaint::BracketOverflow, span))?;
        Ok(Atom::Bracket(summands, value))
    }
}

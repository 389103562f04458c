//! Prefix: right-nested and binary, with one operator token per level, so that printing is a bijection.
//!
//! `+P` joins products, `*F` factors, `+` terms, `*` the parts of a term. With one `*` for both levels
//! `(3*x+4)*(2)*(x^2)` and `(3*x+4)*(2*x^2)` would be one string. A start `(P)` is the only unary use of `*F`.

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
            let single = products.len() == 1;
            for (p, product) in products.iter().enumerate() {
                if p + 1 < products.len() {
                    out.push(token::SUM_OF);
                }
                let from = out.len();
                for (f, factor) in product.0.iter().enumerate() {
                    if f + 1 < product.0.len() || (single && product.0.len() == 1) {
                        out.push(token::PRODUCT_OF);
                    }
                    let from = out.len();
                    write_terms(factor.0.iter().copied(), (p, f), open, style, out, places);
                    places.factor(from..out.len());
                }
                places.product(from..out.len());
            }
        }
    }
}

fn write_terms(
    terms: impl ExactSizeIterator<Item = Term>,
    (p, f): (usize, usize),
    open: &Open,
    style: Style,
    out: &mut Vec<u8>,
    places: &mut impl Places,
) {
    let last = terms.len().saturating_sub(1);
    for (t, term) in terms.enumerate() {
        if t < last {
            out.push(token::PLUS);
        }
        let from = out.len();
        write_term(&term, open.get(&(p, f, t)), style, out);
        places.term(from..out.len());
    }
}

fn write_integer(n: u64, out: &mut Vec<u8>) {
    out.push(token::INT);
    push_digits(n, out);
}

fn write_term(term: &Term, summands: Option<&Summands>, style: Style, out: &mut Vec<u8>) {
    let mut left = term.monomial.variables();
    let constant = term.monomial == Monomial::ONE;
    let written = term.coeff != 1 || constant || (term.raw && style.ones);
    if !constant && (written || summands.is_some()) {
        out.push(token::TIMES);
    }
    match summands {
        Some(summands) => write_bracket(summands, out),
        None if written => write_integer(term.coeff, out),
        None => {}
    }
    for (var, e) in term.monomial.powers() {
        if left > 1 {
            out.push(token::TIMES);
        }
        left -= 1;
        if e > 1 || term.raw {
            out.push(token::POWER);
            out.push(token::VAR + var as u8);
            write_integer(u64::from(e), out);
        } else {
            out.push(token::VAR + var as u8);
        }
    }
}

fn write_bracket(summands: &Summands, out: &mut Vec<u8>) {
    out.push(token::BRACKET);
    for (i, numbers) in summands.iter().enumerate() {
        if i + 1 < summands.len() {
            out.push(token::PLUS);
        }
        for (j, &n) in numbers.iter().enumerate() {
            if j + 1 < numbers.len() {
                out.push(token::TIMES);
            }
            write_integer(n, out);
        }
    }
    out.push(token::UNBRACKET);
}

pub(super) fn read(mut reader: Reader<'_>) -> Result<(State, Open), NotationError> {
    let mut products: Vec<Vec<ReadFactor>> = Vec::new();
    let mut wrapped = false;
    while reader.eat(token::SUM_OF) {
        products.push(reader.product(false)?.0);
    }
    let alone = products.is_empty();
    let (last, product_of) = reader.product(alone)?;
    wrapped |= product_of || !alone;
    products.push(last);
    if reader.peek().is_some() {
        return reader.fail(Complaint::Trailing);
    }
    if wrapped {
        return Ok(sum_of(products));
    }
    let order = reader.style.order;
    let terms = products.into_iter().flatten().flatten().collect();
    bare_or_wrapped(terms, order).map_err(|_| NotationError::new(Complaint::TooLarge, 0..reader.end))
}

impl Reader<'_> {
    /// Factors joined by `*F`, and whether there was one. Only a product that stands alone may be a single `*F P`.
    fn product(&mut self, alone: bool) -> Result<(Vec<ReadFactor>, bool), NotationError> {
        let mut factors = Vec::new();
        while self.eat(token::PRODUCT_OF) {
            factors.push(self.sum_of_terms()?);
            if alone && factors.len() == 1 && self.peek().is_none() {
                return Ok((factors, true));
            }
        }
        let product_of = !factors.is_empty();
        factors.push(self.sum_of_terms()?);
        Ok((factors, product_of))
    }

    fn sum_of_terms(&mut self) -> Result<ReadFactor, NotationError> {
        let mut terms = Vec::new();
        while self.eat(token::PLUS) {
            terms.push(self.prefix_term()?);
        }
        terms.push(self.prefix_term()?);
        Ok(terms)
    }

    fn prefix_term(&mut self) -> Result<ReadTerm, NotationError> {
        let mut term = TermBuilder::default();
        loop {
            let more = self.eat(token::TIMES);
            let span = self.span();
            let atom = self.prefix_atom()?;
            if let Some(complaint) = term.conflict(&atom) {
                return Err(NotationError::new(complaint, span));
            }
            term.push(atom).map_err(|c| NotationError::new(c, span))?;
            if !more {
                return Ok(term.finish(self.style));
            }
        }
    }

    fn prefix_atom(&mut self) -> Result<Atom, NotationError> {
        match self.peek() {
            Some(token::INT) => Ok(Atom::Number(self.prefix_integer()?)),
            Some(token::POWER) => {
                self.at += 1;
                let var = self.variable()?;
                let start = self.span().start;
                let n = self.prefix_integer()?;
                Ok(Atom::Power { var, exponent: self.exponent(n, start)?, written: true })
            }
            Some(t) if (token::VAR..token::PLUS).contains(&t) => {
                Ok(Atom::Power { var: self.variable()?, exponent: 1, written: false })
            }
            Some(token::BRACKET) => {
                let start = self.span().start;
                self.at += 1;
                let mut summands = Vec::new();
                while self.eat(token::PLUS) {
                    summands.push(self.prefix_summand()?);
                }
                summands.push(self.prefix_summand()?);
                let span = start..self.span().end;
                if !self.eat(token::UNBRACKET) {
                    return self.expected("`]`");
                }
                let value = evaluate(&summands).ok_or(NotationError::new(Complaint::BracketOverflow, span))?;
                Ok(Atom::Bracket(summands, value))
            }
            _ => self.expected("a number, a variable or `^`"),
        }
    }

    fn prefix_summand(&mut self) -> Result<Vec<u64>, NotationError> {
        let mut numbers = Vec::new();
        while self.eat(token::TIMES) {
            numbers.push(self.prefix_integer()?);
        }
        numbers.push(self.prefix_integer()?);
        Ok(numbers)
    }

    fn prefix_integer(&mut self) -> Result<u64, NotationError> {
        if !self.eat(token::INT) {
            return self.expected("`INT+`");
        }
        self.number()
    }
}

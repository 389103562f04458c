//! Prefix: right-nested and binary, with one operator token per level, so that printing is a bijection.
//!
//! `+P` joins products, `*F` factors, `+` terms, `*` the parts of a term. With one `*` for both levels
//! `(3*x+4)*(2)*(x^2)` and `(3*x+4)*(2*x^2)` would be one string. A start `(P)` is the only unary use of `*F`. There is no
//! operator `-`: −x is `* INT- 1 x1`.

use super::{Atom, Complaint, NotationError, Open, OpenTerm, ReadFactor, Reader, TermBuilder, bare_or_wrapped, sum_of};
use crate::expr::State;
use crate::token;

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
            terms.push(self.prefix_term(false)?);
        }
        terms.push(self.prefix_term(terms.is_empty())?);
        Ok(terms)
    }

    fn prefix_term(&mut self, alone: bool) -> Result<OpenTerm, NotationError> {
        let mut term = TermBuilder::default();
        let first = self.at;
        loop {
            let more = self.eat(token::TIMES);
            let span = self.span();
            let atom = self.prefix_atom()?;
            if let Some(complaint) = term.conflict(&atom) {
                return Err(NotationError::new(complaint, span));
            }
            term.push(atom).map_err(|c| NotationError::new(c, span))?;
            if !more {
                return self.finish(term, first, alone);
            }
        }
    }

    fn prefix_atom(&mut self) -> Result<Atom, NotationError> {
        match self.peek() {
            Some(token::INT | token::INT_MINUS) => Ok(Atom::Number(self.prefix_integer()?)),
            Some(token::POWER) => {
                self.at += 1;
                let var = self.variable()?;
                let start = self.span().start;
                if !self.eat(token::INT) {
                    return self.expected("`INT+`");
                }
                let n = self.number()?;
                Ok(Atom::Power { var, exponent: self.exponent(n, start)?, written: true })
            }
            Some(t) if (token::VAR..token::PLUS).contains(&t) => {
                Ok(Atom::Power { var: self.variable()?, exponent: 1, written: false })
            }
            Some(token::BRACKET) => {
                let start = self.at;
                self.at += 1;
                let mut summands = Vec::new();
                while self.eat(token::PLUS) {
                    summands.push(self.prefix_summand()?);
                }
                summands.push(self.prefix_summand()?);
                if !self.eat(token::UNBRACKET) {
                    return self.expected("`]`");
                }
                self.evaluated(summands, start)
            }
            _ => self.expected("a number, a variable or `^`"),
        }
    }

    fn prefix_summand(&mut self) -> Result<Vec<i64>, NotationError> {
        let mut numbers = Vec::new();
        loop {
            let more = self.eat(token::TIMES);
            let start = self.at;
            let n = self.prefix_integer()?;
            numbers.push(self.nonzero(n, start)?);
            if !more {
                return Ok(numbers);
            }
        }
    }

    fn prefix_integer(&mut self) -> Result<i128, NotationError> {
        let start = self.at;
        let negative = self.eat(token::INT_MINUS);
        if !negative && !self.eat(token::INT) {
            return self.expected("`INT+` or `INT-`");
        }
        let n = i128::from(self.number()?);
        if negative && n == 0 {
            return Err(NotationError::new(Complaint::Zero, self.span_from(start)));
        }
        Ok(if negative { -n } else { n })
    }
}

//! States as tokens, in both notations. They differ in where an operator stands and in how a sign is written.
//!
//! Infix writes an operator between two parts, prefix before all parts but the last. In infix a negative term begins with `-`
//! in place of the `+` before it; in prefix the sign belongs to the number, `INT-`. A bracketed coefficient is always joined
//! by `+`.

use super::{Notation, Open, OpenTerm, Places, Style, Summands};
use crate::expr::{Factor, State, Term};
use crate::monomial::Monomial;
use crate::token::{self, push_digits};

/// Where the tokens go, and how they are written.
pub(super) struct Writer<'a, P> {
    pub notation: Notation,
    pub style: Style,
    pub out: &'a mut Vec<u8>,
    pub places: &'a mut P,
}

impl<P: Places> Writer<'_, P> {
    pub fn state(&mut self, state: &State, open: &Open) {
        let products = match state {
            State::Bare(poly) => return self.factor(&Factor::from(poly), open.get(&(0, 0))),
            State::Sum(products) => products,
        };
        let alone = products.len() == 1 && products[0].0.len() == 1;
        for (p, product) in products.iter().enumerate() {
            self.joint(p, products.len(), token::PLUS, token::SUM_OF);
            let from = self.out.len();
            for (f, factor) in product.0.iter().enumerate() {
                self.joint(f, product.0.len(), token::TIMES, token::PRODUCT_OF);
                if alone && self.prefix() {
                    self.out.push(token::PRODUCT_OF);
                }
                let from = self.out.len();
                self.parenthesis(token::OPEN);
                self.factor(factor, open.get(&(p, f)));
                self.parenthesis(token::CLOSE);
                self.places.factor(from..self.out.len());
            }
            self.places.product(from..self.out.len());
        }
    }

    fn prefix(&self) -> bool {
        self.notation == Notation::Prefix
    }

    /// The operator that stands before part i of n, if one does.
    fn joint(&mut self, i: usize, n: usize, infix: u8, prefix: u8) {
        match self.notation {
            Notation::Infix if i > 0 => self.out.push(infix),
            Notation::Prefix if i + 1 < n => self.out.push(prefix),
            _ => {}
        }
    }

    fn parenthesis(&mut self, parenthesis: u8) {
        if !self.prefix() {
            self.out.push(parenthesis);
        }
    }

    fn factor(&mut self, factor: &Factor, open: Option<&Vec<OpenTerm>>) {
        match open {
            Some(terms) => self.terms(terms.iter().map(|t| (t.term, t.summands.as_ref()))),
            None => self.terms(factor.0.iter().map(|&t| (t, None))),
        }
    }

    fn terms<'t>(&mut self, terms: impl ExactSizeIterator<Item = (Term, Option<&'t Summands>)>) {
        let n = terms.len();
        for (t, (term, summands)) in terms.enumerate() {
            let minus = !self.prefix() && summands.is_none() && term.coeff < 0;
            if !minus {
                self.joint(t, n, token::PLUS, token::PLUS);
            }
            let from = self.out.len();
            if minus {
                self.out.push(token::MINUS);
            }
            self.term(term, summands);
            self.places.term(from..self.out.len());
        }
    }

    /// A term; in infix without its sign.
    fn term(&mut self, term: Term, summands: Option<&Summands>) {
        let one = term.coeff == 1 || (term.coeff == -1 && !self.prefix());
        let number = !one || term.monomial == Monomial::ONE || (term.raw && self.style.ones);
        let first = usize::from(number || summands.is_some());
        let n = first + term.monomial.variables() as usize;
        if first == 1 {
            self.joint(0, n, token::TIMES, token::TIMES);
        }
        match summands {
            Some(summands) => self.bracket(summands),
            None if number && self.prefix() => self.integer(term.coeff),
            None if number => push_digits(term.coeff.unsigned_abs(), self.out),
            None => {}
        }
        for (i, (var, e)) in term.monomial.powers().enumerate() {
            self.joint(first + i, n, token::TIMES, token::TIMES);
            let (var, written) = (token::VAR + var as u8, e > 1 || term.raw);
            match self.notation {
                _ if !written => self.out.push(var),
                Notation::Infix => self.out.extend([var, token::POWER]),
                Notation::Prefix => self.out.extend([token::POWER, var, token::INT]),
            }
            if written {
                push_digits(u64::from(e), self.out);
            }
        }
    }

    fn bracket(&mut self, summands: &Summands) {
        self.out.push(token::BRACKET);
        for (i, numbers) in summands.iter().enumerate() {
            self.joint(i, summands.len(), token::PLUS, token::PLUS);
            for (j, &n) in numbers.iter().enumerate() {
                self.joint(j, numbers.len(), token::TIMES, token::TIMES);
                self.integer(n);
            }
        }
        self.out.push(token::UNBRACKET);
    }

    fn integer(&mut self, n: i64) {
        match (self.notation, n < 0) {
            (Notation::Prefix, false) => self.out.push(token::INT),
            (Notation::Prefix, true) => self.out.push(token::INT_MINUS),
            (Notation::Infix, true) => self.out.push(token::MINUS),
            (Notation::Infix, false) => {}
        }
        push_digits(n.unsigned_abs(), self.out);
    }
}

//! The expression as it was typed, rewritten to a sum of products of factors.
//!
//! The rules:
//! - Numbers and powers of variables that stand side by side make one term. A second number or a repeated variable begins the
//!   next factor: `2*3*x` is `(2)*(3*x1)`, so that the proof shows the multiplication.
//! - Parentheses around a sum of terms are a factor. Inside such a sum a product of numbers and variables is one term:
//!   `(x*x+1)` is `(x1^2+1)`.
//! - Parentheses around any other sum are distributed over: `(2*(x+1)+3)*y` is `(2)*(x1+1)*(x2)+(3)*(x2)`.
//! - A power repeats its factor. The power 0 is the factor 1.
//! - A minus goes into the term behind it. Before parentheses or a power of a number it becomes the factor `(-1)`.
//! - Zero is a whole factor, never a coefficient or one of several terms.

use std::ops::Range;

use super::error::{TypedError, TypedProblem};
use super::limits::{Count, MAX_TOKENS};
use super::tree::{Atom, Base, TypedProduct, TypedSum};
use crate::expr::{Factor, Product, State, Term};
use crate::monomial::Monomial;
use crate::notation::{Notation, Open, Style, write_tokens};

/// Rewrites an expression, if the result is within the limits.
pub(super) fn rewrite(sum: &TypedSum, style: Style) -> Result<State, TypedError> {
    let products = sum.iter().map(|p| items(p, style)).collect::<Result<Vec<_>, _>>()?;
    let span = sum[0].span.start..sum[sum.len() - 1].span.end;
    if let Some(terms) = bare_terms(&products) {
        let state = bare_or_wrapped(Factor(terms), style);
        let tokens = count_tokens(&state, style);
        if tokens > MAX_TOKENS {
            return Err(TypedError::new(TypedProblem::Tokens(tokens), span));
        }
        return Ok(state);
    }
    count_sum(&products, style, &span)?;
    Ok(State::Sum(expand_sum(&products)))
}

/// A polynomial that was typed without parentheses: bare if it is in normal form, else `(P)`.
fn bare_or_wrapped(factor: Factor, style: Style) -> State {
    match factor.value(style.order) {
        Ok(poly) if factor.is_simplified(style.order) => State::Bare(poly),
        _ => State::Sum(vec![Product(vec![factor])]),
    }
}

/// How many tokens a state has in the strict infix language.
fn count_tokens(state: &State, style: Style) -> u64 {
    let mut tokens = Vec::new();
    write_tokens(state, &Open::new(), Notation::Infix, style, &mut tokens);
    tokens.len() as u64
}

/// One or several factors of a product.
struct Item {
    content: Content,
    power: u64,
    /// Whether it is a term without parentheses, as it was typed.
    bare: bool,
    span: Range<usize>,
}

enum Content {
    /// A sum of terms: one factor.
    Factor(Vec<Term>),
    /// A sum of products, which is distributed over.
    Sum(Vec<Vec<Item>>),
}

/// The terms of a sum that has no parentheses at all and no zero beside other terms.
fn bare_terms(products: &[Vec<Item>]) -> Option<Vec<Term>> {
    let term = |items: &Vec<Item>| match items.as_slice() {
        [Item { content: Content::Factor(terms), bare: true, .. }] => Some(terms[0]),
        _ => None,
    };
    let terms: Vec<Term> = products.iter().map(term).collect::<Option<_>>()?;
    (terms.len() == 1 || terms.iter().all(|t| t.coeff != 0)).then_some(terms)
}

/// A product as items: atoms side by side are gathered into terms.
fn items(product: &TypedProduct, style: Style) -> Result<Vec<Item>, TypedError> {
    let mut items = Vec::new();
    let mut open: Option<OpenTerm> = None;
    for atom in &product.atoms {
        match role(atom)? {
            Role::Part(part) => {
                if let Some(full) = open.take_if(|term| !term.takes(part)) {
                    items.push(full.close(style)?);
                }
                open.get_or_insert_with(|| OpenTerm::new(atom.span.start)).push(part, atom)?;
            }
            Role::Repeated(base) => {
                if let Some(term) = open.take() {
                    items.push(term.close(style)?);
                }
                if atom.negative {
                    items.push(Item::number(-1, atom.span.clone()));
                }
                items.push(repeated(base, atom, style)?);
            }
        }
    }
    if let Some(term) = open.take() {
        items.push(term.close(style)?);
    }
    Ok(items)
}

/// What an atom is in its product.
enum Role<'a> {
    /// Part of a term.
    Part(Part),
    /// One factor or several equal ones.
    Repeated(Repeated<'a>),
}

#[derive(Clone, Copy)]
enum Part {
    Number(i128),
    /// A variable, its exponent, and whether the exponent was written.
    Power(usize, u8, bool),
}

enum Repeated<'a> {
    Number(u64),
    Sum(&'a TypedSum),
}

fn role(atom: &Atom) -> Result<Role<'_>, TypedError> {
    let fail = |problem| TypedError::new(problem, atom.span.clone());
    Ok(match (&atom.base, atom.exponent) {
        (Base::Number(n), None) => Role::Part(Part::Number((*n).into())),
        (Base::Number(n), Some(_)) => Role::Repeated(Repeated::Number(*n)),
        (Base::Variable(v), e) => {
            let exponent = u8::try_from(e.unwrap_or(1)).map_err(|_| fail(TypedProblem::Degree))?;
            Role::Part(Part::Power(*v, exponent, e.is_some()))
        }
        (Base::Parentheses(sum), _) => Role::Repeated(Repeated::Sum(sum)),
        (Base::Brackets(sum), e) => match arithmetic(sum).filter(|_| e.is_none()) {
            Some(value) => Role::Part(Part::Number(value.map_err(fail)?.into())),
            None => Role::Repeated(Repeated::Sum(sum)),
        },
    })
}

/// The value of a sum of products of plain numbers, which a calculator's bracket holds. `None` if it is another sum.
fn arithmetic(sum: &TypedSum) -> Option<Result<i64, TypedProblem>> {
    let mut value = Some(0i64);
    for product in sum {
        let mut term = Some(1i64);
        for atom in &product.atoms {
            let Atom { negative, base: Base::Number(n), exponent: None, .. } = atom else { return None };
            let sign = if *negative { -1 } else { 1 };
            term = term.and_then(|t| t.checked_mul(i64::try_from(*n).ok()?)?.checked_mul(sign));
        }
        value = value.zip(term).and_then(|(v, t)| v.checked_add(t));
    }
    Some(value.ok_or(TypedProblem::Overflow))
}

/// A term while its parts come in.
struct OpenTerm {
    negative: bool,
    number: Option<i128>,
    monomial: Monomial,
    written_ones: bool,
    span: Range<usize>,
}

impl OpenTerm {
    fn new(start: usize) -> OpenTerm {
        OpenTerm { negative: false, number: None, monomial: Monomial::ONE, written_ones: false, span: start..start }
    }

    /// Whether the part can belong to this term. Zero takes no other part, and no other part takes zero.
    fn takes(&self, part: Part) -> bool {
        match part {
            _ if self.number == Some(0) => false,
            Part::Number(0) => false,
            Part::Number(_) => self.number.is_none(),
            Part::Power(variable, exponent, _) => exponent == 0 || self.monomial.exponent(variable) == 0,
        }
    }

    fn push(&mut self, part: Part, atom: &Atom) -> Result<(), TypedError> {
        self.negative ^= atom.negative;
        self.span.end = atom.span.end;
        match part {
            Part::Number(n) => self.number = Some(n),
            Part::Power(variable, exponent, written) => {
                let product = Monomial::power(variable, exponent).and_then(|p| self.monomial.checked_mul(p));
                let degree = || TypedError::new(TypedProblem::Degree, atom.span.clone());
                self.monomial = product.ok_or_else(degree)?;
                self.written_ones |= written && exponent == 1;
            }
        }
        Ok(())
    }

    fn close(self, style: Style) -> Result<Item, TypedError> {
        let number = self.number.unwrap_or(1);
        let coeff = i64::try_from(if self.negative { -number } else { number })
            .map_err(|_| TypedError::new(TypedProblem::TooLarge, self.span.clone()))?;
        let one = self.number.is_some() && style.writes_one(coeff, Notation::Infix);
        let written_one = one && self.monomial != Monomial::ONE;
        let term = Term { coeff, monomial: self.monomial, raw: self.written_ones || written_one };
        Ok(Item { content: Content::Factor(vec![term]), power: 1, bare: true, span: self.span })
    }
}

/// An atom that is no part of a term: something in parentheses, or a power of a number.
fn repeated(base: Repeated, atom: &Atom, style: Style) -> Result<Item, TypedError> {
    let power = atom.exponent.unwrap_or(1);
    let span = atom.span.clone();
    if power == 0 {
        return Ok(Item::number(1, span));
    }
    let content = match base {
        Repeated::Sum(sum) => content(sum, style)?,
        Repeated::Number(n) => {
            let n = i64::try_from(n).map_err(|_| TypedError::new(TypedProblem::TooLarge, span.clone()))?;
            Content::Factor(vec![Term::plain(n, Monomial::ONE)])
        }
    };
    Ok(Item { content, power, bare: false, span })
}

/// What parentheses hold: one factor if all summands are terms, else a sum to distribute over.
fn content(sum: &TypedSum, style: Style) -> Result<Content, TypedError> {
    let products = sum.iter().map(|p| items(p, style)).collect::<Result<Vec<_>, _>>()?;
    if let Some(terms) = bare_terms(&products) {
        return Ok(Content::Factor(terms));
    }
    if products.len() > 1 {
        let terms = products.iter().map(|items| one_term(items)).collect::<Result<Option<Vec<_>>, _>>()?;
        if let Some(terms) = terms.filter(|terms| terms.iter().all(|t| t.coeff != 0)) {
            return Ok(Content::Factor(terms));
        }
    }
    Ok(Content::Sum(products))
}

/// A product of numbers and variables as one term; `None` if there is a sum in it.
fn one_term(items: &[Item]) -> Result<Option<Term>, TypedError> {
    let mut product: Option<Term> = None;
    for item in items {
        let inside = match &item.content {
            Content::Factor(terms) if terms.len() == 1 => Some(terms[0]),
            Content::Sum(products) if products.len() == 1 => one_term(&products[0])?,
            _ => None,
        };
        let Some(term) = inside else { return Ok(None) };
        let fail = |problem| TypedError::new(problem, item.span.clone());
        let term = if item.power == 1 { term } else { power(term, item.power).map_err(fail)? };
        product = Some(product.map_or(Ok(term), |p| times(p, term)).map_err(fail)?);
    }
    Ok(product)
}

/// The product, with every first power written plainly.
fn times(a: Term, b: Term) -> Result<Term, TypedProblem> {
    let coeff = a.coeff.checked_mul(b.coeff).ok_or(TypedProblem::Overflow)?;
    Ok(Term::plain(coeff, a.monomial.checked_mul(b.monomial).ok_or(TypedProblem::Degree)?))
}

/// The power, with every first power written plainly.
fn power(term: Term, exponent: u64) -> Result<Term, TypedProblem> {
    let coeff = match term.coeff {
        0 | 1 => term.coeff,
        -1 if exponent.is_multiple_of(2) => 1,
        -1 => -1,
        c => u32::try_from(exponent).ok().and_then(|e| c.checked_pow(e)).ok_or(TypedProblem::Overflow)?,
    };
    let mut monomial = Monomial::ONE;
    for (variable, e) in term.monomial.powers() {
        let raised = u64::from(e).checked_mul(exponent).and_then(|e| u8::try_from(e).ok());
        let power = raised.and_then(|e| Monomial::power(variable, e)).ok_or(TypedProblem::Degree)?;
        monomial = monomial.checked_mul(power).ok_or(TypedProblem::Degree)?;
    }
    Ok(Term::plain(coeff, monomial))
}

fn count_sum(products: &[Vec<Item>], style: Style, span: &Range<usize>) -> Result<Count, TypedError> {
    let mut sum = Count::ZERO;
    for items in products {
        let mut product = Count::ONE;
        for item in items {
            let inside = match &item.content {
                Content::Factor(terms) => Count::factor(count_tokens(&State::Sum(vec![product_of(terms)]), style)),
                Content::Sum(products) => count_sum(products, style, &item.span)?,
            };
            product = product.times(inside.power(item.power).within_limits(&item.span)?);
        }
        let from_first_to_last = items[0].span.start..items[items.len() - 1].span.end;
        sum = sum.plus(product.within_limits(&from_first_to_last)?);
    }
    sum.within_limits(span)
}

/// The product of one factor.
fn product_of(terms: &[Term]) -> Product {
    Product(vec![Factor(terms.to_vec())])
}

fn expand_sum(products: &[Vec<Item>]) -> Vec<Product> {
    products.iter().flat_map(|items| expand(items)).collect()
}

/// The products that a product of items is distributed to, the first item's choices slowest.
fn expand(items: &[Item]) -> Vec<Product> {
    let mut all = vec![Product::default()];
    for item in items {
        let inside = match &item.content {
            Content::Factor(terms) => vec![product_of(terms)],
            Content::Sum(products) => expand_sum(products),
        };
        for _ in 0..item.power {
            let with = |left: &Product| {
                inside.iter().map(|right| Product([&left.0[..], &right.0].concat())).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
    }
    all
}

impl Item {
    fn number(n: i64, span: Range<usize>) -> Item {
        Item { content: Content::Factor(vec![Term::plain(n, Monomial::ONE)]), power: 1, bare: false, span }
    }
}

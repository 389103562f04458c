//! A walk through a proof: one state, which each step rewrites in place.
//!
//! A step is looked for where the one before left off. Facsteps and mulsteps go from left to right, so what lies before that
//! place is done. A step is computed before anything is rewritten: where numbers are too large, the state stays as it was.

use std::ops::Range;

use super::{Operand, StepKind};
use crate::expr::{Factor, Product, State, Term};
use crate::granularity::{Fac, Granularity, Mul, Sum};
use crate::monomial::{Monomial, TermOrder};
use crate::notation::{Open, OpenTerm, Style, Summands, evaluate, evaluated};
use crate::poly::{ArithmeticError, Poly};

/// The most combinations of terms that a mulstep leaves open: beyond them the brackets would be longer than any model reads.
pub const MAX_COMBINATIONS: usize = 1 << 12;

/// The most terms of a state that a mulstep may lead to. No state of a space that can be sampled has more.
pub const MAX_STATE_TERMS: usize = 1 << 16;

/// What a step of a walk did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewrite {
    /// What kind of step it was.
    pub kind: StepKind,
    /// What it rewrote in the state before.
    pub operand: Operand,
    /// The coefficients of the state after it that a calculator would be left to compute, if the walk was asked for them.
    pub open: Open,
}

/// The states of a proof, one at a time.
#[derive(Clone, Debug)]
pub struct Walk {
    state: State,
    granularity: Granularity,
    order: TermOrder,
    /// Whether open coefficients are asked for.
    with_open: bool,
    /// All factors before this one (product, factor) are simplified.
    simplified: (usize, usize),
    /// All products before this one have a single factor.
    multiplied: usize,
    /// How many terms the state has.
    terms: usize,
}

impl Walk {
    pub(crate) fn new(state: State, granularity: Granularity, style: Style, with_open: bool) -> Walk {
        let terms = state.products().iter().flat_map(|p| &p.0).map(|f| f.0.len()).sum();
        Walk { state, granularity, order: style.order, with_open, simplified: (0, 0), multiplied: 0, terms }
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn into_state(self) -> State {
        self.state
    }

    /// Takes the next step; none at the endpoint.
    ///
    /// # Panics
    /// Never: only a [proof](super::Proof) gives out walks, and it has taken all its steps before.
    pub fn advance(&mut self) -> Option<Rewrite> {
        self.try_advance().expect("the proof has been found before")
    }

    /// Takes the next step; none at the endpoint.
    pub(crate) fn try_advance(&mut self) -> Result<Option<Rewrite>, ArithmeticError> {
        let Walk { granularity, order, .. } = *self;
        let State::Sum(products) = &mut self.state else { return Ok(None) };
        let mut rewrite = Rewrite { kind: StepKind::Facstep, operand: Operand::Products(0..0), open: Open::new() };
        let open = self.with_open.then_some(&mut rewrite.open);
        if let Some(at) = unfinished(products, self.simplified, order) {
            self.simplified = at;
            rewrite.operand = facstep(products, at, granularity.fac, order, open)?;
        } else {
            self.simplified = (products.len(), 0);
            let next = (self.multiplied..products.len()).find(|&p| products[p].0.len() > 1);
            self.multiplied = next.unwrap_or(products.len());
            if let Some(p) = next {
                rewrite.kind = StepKind::Mulstep;
                rewrite.operand = mulstep(products, p, granularity.mul, order, open, &mut self.terms)?;
            } else {
                rewrite.kind = StepKind::Sumstep;
                rewrite.operand = sumstep(products, granularity.sum, order, open)?;
            }
        }
        if let [Product(factors)] = &products[..]
            && let [factor] = &factors[..]
            && factor.is_simplified(order)
        {
            // A sum's brackets already stand at (0, 0), which is where a bare polynomial has them.
            self.state = State::Bare(factor.value(order)?);
            rewrite.open.retain(|&place, _| place == (0, 0));
        }
        Ok(Some(rewrite))
    }
}

/// The first factor from `from` on that a facstep would change.
fn unfinished(products: &[Product], from: (usize, usize), order: TermOrder) -> Option<(usize, usize)> {
    // A single factor on its own is still to be written without its parentheses, even if it is in normal form.
    if let [Product(factors)] = products
        && factors.len() == 1
    {
        return Some((0, 0));
    }
    let mut first = from.1;
    for (p, product) in products.iter().enumerate().skip(from.0) {
        if let Some(f) = (first..product.0.len()).find(|&f| !product.0[f].is_simplified(order)) {
            return Some((p, f));
        }
        first = 0;
    }
    None
}

fn facstep(
    products: &mut [Product],
    (p, f): (usize, usize),
    fac: Fac,
    order: TermOrder,
    mut open: Option<&mut Open>,
) -> Result<Operand, ArithmeticError> {
    Ok(match fac {
        Fac::Product => {
            let mut collected = Vec::with_capacity(products[p].0.len());
            for (f, factor) in products[p].0.iter().enumerate() {
                collected.push(collect(factor, order, (p, f), open.as_deref_mut())?);
            }
            products[p].0 = collected;
            Operand::Products(p..p + 1)
        }
        Fac::Factor => {
            products[p].0[f] = collect(&products[p].0[f], order, (p, f), open)?;
            Operand::Factors { product: p, factors: f..f + 1 }
        }
        Fac::Term => {
            let (factor, terms) = collect_term(&products[p].0[f], order, (p, f), open)?;
            products[p].0[f] = factor;
            Operand::Terms { product: p, factor: f, terms }
        }
    })
}

/// A factor with its like terms collected; the sums that this takes are left open.
fn collect(
    factor: &Factor,
    order: TermOrder,
    at: (usize, usize),
    open: Option<&mut Open>,
) -> Result<Factor, ArithmeticError> {
    let collected = factor.value(order)?;
    leave_open(|| summands(&factor.0), order, at, open);
    Ok(Factor::from(&collected))
}

/// A factor with the first term that is not yet as in its normal form put right, and the terms that this rewrites.
fn collect_term(
    factor: &Factor,
    order: TermOrder,
    (p, f): (usize, usize),
    open: Option<&mut Open>,
) -> Result<(Factor, Range<usize>), ArithmeticError> {
    let mut monomials: Vec<Monomial> = factor.0.iter().map(|t| t.monomial).collect();
    monomials.sort_by(|&a, &b| order.compare(a, b));
    monomials.dedup();
    for (k, monomial) in monomials.into_iter().enumerate() {
        let group: Vec<usize> = (0..factor.0.len()).filter(|&i| factor.0[i].monomial == monomial).collect();
        if group[..] == [k] && !factor.0[k].raw {
            continue;
        }
        // All terms before the k-th are as they should be, so the group begins there or later.
        let like = Factor(group.iter().map(|&i| factor.0[i]).collect());
        let sum = like.value(order)?.terms().first().map_or(0, |t| t.0);
        let numbers = like.0.iter().map(|t| vec![t.coeff]).collect();
        let next = OpenTerm { term: Term::plain(sum, monomial), summands: (group.len() > 1).then_some(numbers) };
        let plain = |&term: &Term| OpenTerm { term, summands: None };
        let mut terms: Vec<OpenTerm> = factor.0[..k].iter().map(plain).collect();
        terms.push(next);
        terms.extend(factor.0[k..].iter().filter(|t| t.monomial != monomial).map(plain));
        let rewritten = evaluated(terms.iter().map(|t| t.term));
        if let Some(open) = open
            && group.len() > 1
        {
            open.insert((p, f), terms);
        }
        return Ok((rewritten, k..group[group.len() - 1] + 1));
    }
    // Every term stands as it should; only a lone factor in normal form gets here, to lose its parentheses.
    Ok((factor.clone(), 0..factor.0.len()))
}

fn mulstep(
    products: &mut [Product],
    p: usize,
    mul: Mul,
    order: TermOrder,
    open: Option<&mut Open>,
    terms: &mut usize,
) -> Result<Operand, ArithmeticError> {
    let factors = &mut products[p].0;
    let (taken, operand) = match mul {
        Mul::Pair => (2, Operand::Factors { product: p, factors: 0..2 }),
        Mul::Product => (factors.len(), Operand::Products(p..p + 1)),
    };
    let result = factors[..taken].iter().try_fold(Poly::one(), |value, f| value.mul(&f.value(order)?, order))?;
    let product = Factor::from(&result);
    let left: usize = factors[..taken].iter().map(|f| f.0.len()).sum();
    let more = product.0.len() > left;
    *terms = *terms - left + product.0.len();
    if more && *terms > MAX_STATE_TERMS {
        return Err(ArithmeticError::State);
    }
    let count = factors[..taken].iter().try_fold(1usize, |n, f| n.checked_mul(f.0.len()));
    if count.is_some_and(|n| n <= MAX_COMBINATIONS) {
        leave_open(|| combinations(&factors[..taken]).into_iter(), order, (p, 0), open);
    }
    factors.splice(..taken, [product]);
    Ok(operand)
}

/// Every choice of one term per factor, in lexicographic order: the coefficients without ones, and the monomial. Zero has no
/// terms.
fn combinations(factors: &[Factor]) -> Vec<(Vec<i64>, Monomial)> {
    let mut all = vec![(Vec::new(), Monomial::ONE)];
    for factor in factors {
        let mut longer = Vec::with_capacity(all.len() * factor.0.len());
        for (numbers, monomial) in &all {
            for term in factor.0.iter().filter(|t| t.coeff != 0) {
                let mut numbers: Vec<i64> = numbers.clone();
                if term.coeff != 1 {
                    numbers.push(term.coeff);
                }
                // The degree was checked when the product was expanded.
                let product = monomial.checked_mul(term.monomial).unwrap_or(Monomial::ONE);
                longer.push((numbers, product));
            }
        }
        all = longer;
    }
    for (numbers, _) in &mut all {
        if numbers.is_empty() {
            numbers.push(1);
        }
    }
    all
}

fn sumstep(
    products: &mut Vec<Product>,
    sum: Sum,
    order: TermOrder,
    open: Option<&mut Open>,
) -> Result<Operand, ArithmeticError> {
    let taken = match sum {
        Sum::Pair => products.len().min(2),
        Sum::All => products.len(),
    };
    let terms = || products[..taken].iter().flat_map(|p| &p.0).flat_map(|f| &f.0);
    let result = Poly::collect(terms().map(|t| (t.coeff, t.monomial)), order)?;
    leave_open(|| summands(terms()), order, (0, 0), open);
    products.splice(..taken, [Product(vec![Factor::from(&result)])]);
    Ok(Operand::Products(0..taken))
}

/// Terms as summands of one number each. Zero has no terms.
fn summands<'a>(terms: impl IntoIterator<Item = &'a Term>) -> impl Iterator<Item = (Vec<i64>, Monomial)> {
    terms.into_iter().filter(|t| t.coeff != 0).map(|term| (vec![term.coeff], term.monomial))
}

/// Leaves the coefficients of the factor at a place open as the summands that they come from. A coefficient that is a single
/// number already is not left open; nor is any where a number of a bracket would not fit.
fn leave_open<I: Iterator<Item = (Vec<i64>, Monomial)>>(
    summands: impl FnOnce() -> I,
    order: TermOrder,
    place: (usize, usize),
    open: Option<&mut Open>,
) {
    let Some(open) = open else { return };
    let mut sorted: Vec<(Vec<i64>, Monomial)> = summands().collect();
    sorted.sort_by(|a, b| order.compare(a.1, b.1));
    let term = |alike: &[(Vec<i64>, Monomial)]| {
        let summands: Summands = alike.iter().map(|(numbers, _)| numbers.clone()).collect();
        let term = Term::plain(evaluate(&summands)?, alike[0].1);
        let several = summands.len() > 1 || summands[0].len() > 1;
        Some(OpenTerm { term, summands: several.then_some(summands) })
    };
    let terms: Option<Vec<OpenTerm>> = sorted.chunk_by(|a, b| a.1 == b.1).map(term).collect();
    if let Some(terms) = terms.filter(|terms| terms.iter().any(|t| t.summands.is_some())) {
        open.insert(place, terms);
    }
}

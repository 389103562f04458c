//! Proofs: the sequence of facsteps, mulsteps and sumsteps that leads a state to its normal form (§2, P₀ … P₅).
//!
//! For each state exactly one step applies, so a proof is that step, repeated: all facsteps from left to right, then all
//! mulsteps, then sumsteps. A step that would change nothing is not one. The decision a reader would get wrong: with a
//! single product there is no sumstep; its last mulstep (or, with a single factor, its facstep) writes the bare endpoint.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::expr::{Factor, Product, State, Term};
use crate::granularity::{Fac, Granularity, Mul, Sum};
use crate::monomial::{Monomial, TermOrder};
use crate::named;
use crate::notation::{Layout, Notation, Open, Style, Summands, write_tokens};
use crate::poly::{ArithmeticError, Poly};
use crate::token;

/// What a step does; the paper's names.
///
/// The order of the variants is the order of the steps in a proof (the derived `Ord`): a proof never goes back from one
/// kind to an earlier one. Tables list the kinds in this order, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum StepKind {
    /// Terms are collected within a factor.
    Facstep,
    /// Factors are multiplied out.
    Mulstep,
    /// Products are added.
    Sumstep,
    /// The operand of the next step is marked (annotated proofs).
    Markstep,
    /// Everything at once.
    Endpoint,
    /// The arithmetic probe's a+b.
    Add,
    /// The arithmetic probe's a*b.
    Mul,
}
named!(
    StepKind, "kind of step":
    Facstep "facstep", Mulstep "mulstep", Sumstep "sumstep", Markstep "markstep", Endpoint "endpoint", Add "add",
    Mul "mul"
);

impl StepKind {
    /// The tag of an annotated operation step. Only the steps of a proof have one: an operation that [`next_step`] returns
    /// needs a tag of its own.
    pub fn tag(self) -> Option<u8> {
        match self {
            StepKind::Facstep => Some(token::FAC),
            StepKind::Mulstep => Some(token::MUL),
            StepKind::Sumstep => Some(token::SUM),
            StepKind::Markstep | StepKind::Endpoint | StepKind::Add | StepKind::Mul => None,
        }
    }
}

/// The most combinations of terms that a mulstep leaves open: beyond them the brackets would be longer than any model reads.
pub const MAX_COMBINATIONS: usize = 1 << 12;

/// What a step rewrites: the whole unit, even where a part of it does not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    /// These products.
    Products(Range<usize>),
    /// These factors of a product.
    Factors {
        /// The product.
        product: usize,
        /// Its factors.
        factors: Range<usize>,
    },
    /// These terms of a factor.
    Terms {
        /// The product.
        product: usize,
        /// The factor in it.
        factor: usize,
        /// The terms in that.
        terms: Range<usize>,
    },
}

impl Operand {
    /// The operand's range in a layout of the state.
    pub fn range(&self, layout: &Layout) -> Range<usize> {
        let hull = |ranges: &[Range<usize>], r: &Range<usize>| ranges[r.start].start..ranges[r.end - 1].end;
        match self {
            Operand::Products(r) => hull(&layout.products, r),
            Operand::Factors { product, factors } => hull(&layout.factors[*product], factors),
            Operand::Terms { product, factor, terms } => hull(&layout.terms[*product][*factor], terms),
        }
    }
}

/// One step of a proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// The state it starts from.
    pub before: State,
    /// The state it leads to.
    pub after: State,
    /// What it rewrites in `before`.
    pub operand: Operand,
    /// The coefficients of `after` that a calculator would be left to compute; none where a product has more than
    /// [`MAX_COMBINATIONS`].
    pub open: Open,
}

impl Step {
    /// Where the operand stands in the printed `before`, in bytes.
    pub fn span(&self, notation: Notation, style: Style) -> Range<usize> {
        let mut tokens = Vec::new();
        let layout = write_tokens(&self.before, &Open::new(), notation, style, &mut tokens);
        let range = self.operand.range(&layout);
        let spans = token::decoded_spans(&tokens, notation);
        spans[range.start].start..spans[range.end - 1].end
    }
}

/// A state and all the steps that simplify it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// Where it starts.
    pub start: State,
    /// The steps, each starting where the one before ended.
    pub steps: Vec<Step>,
}

impl Proof {
    /// The proof that starts here.
    ///
    /// ```
    /// use polystep_core::{Granularity, Notation, Proof, Style, notation};
    /// let start = notation::parse("(2*x)*(x^1+1)", Notation::Infix, Style::default())?;
    /// let proof = Proof::of(&start, Granularity::COARSE, Style::default())?;
    /// let lines: Vec<String> =
    ///     proof.states().map(|s| notation::print(s, Notation::Infix, Style::default())).collect();
    /// assert_eq!(lines, ["(2*x1)*(x1^1+1)", "(2*x1)*(x1+1)", "2*x1^2+2*x1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(start: &State, granularity: Granularity, style: Style) -> Result<Proof, ArithmeticError> {
        let mut steps: Vec<Step> = Vec::new();
        let mut state = start.clone();
        while let Some(step) = next_step(&state, granularity, style)? {
            state = step.after.clone();
            steps.push(step);
        }
        Ok(Proof { start: start.clone(), steps })
    }

    /// All states, from the start to the endpoint.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        std::iter::once(&self.start).chain(self.steps.iter().map(|s| &s.after))
    }

    /// Where it ends.
    pub fn end(&self) -> &State {
        self.steps.last().map_or(&self.start, |s| &s.after)
    }
}

/// The one step that applies to a state; none if it is the endpoint.
pub fn next_step(state: &State, granularity: Granularity, style: Style) -> Result<Option<Step>, ArithmeticError> {
    let State::Sum(products) = state else {
        return Ok(None);
    };
    let order = style.order;
    let (kind, operand, mut after, mut open) = if let Some(found) = facstep(products, granularity.fac, order)? {
        found
    } else if let Some(found) = mulstep(products, granularity.mul, order)? {
        found
    } else {
        sumstep(products, granularity.sum, order)?
    };
    let alone = match &after[..] {
        [Product(factors)] => matches!(&factors[..], [factor] if factor.is_simplified(order)),
        _ => false,
    };
    let after = if alone {
        // A sum's brackets already stand at (0, 0, term), which is where a bare polynomial has them.
        State::Bare(after.remove(0).value(order)?)
    } else {
        State::Sum(after)
    };
    if matches!(after, State::Bare(_)) {
        open.retain(|&(p, f, _), _| (p, f) == (0, 0));
    }
    Ok(Some(Step { kind, before: state.clone(), after, operand, open }))
}

type Rewrite = (StepKind, Operand, Vec<Product>, Open);

fn facstep(products: &[Product], fac: Fac, order: TermOrder) -> Result<Option<Rewrite>, ArithmeticError> {
    // A single factor on its own is still to be written without its parentheses, even if it is in normal form.
    let alone = products.len() == 1 && products[0].0.len() == 1;
    let unfinished = |p: usize, f: usize| alone || !products[p].0[f].is_simplified(order);
    let found = products
        .iter()
        .enumerate()
        .flat_map(|(p, product)| (0..product.0.len()).map(move |f| (p, f)))
        .find(|&(p, f)| unfinished(p, f));
    let Some((p, f)) = found else { return Ok(None) };
    let mut after = products.to_vec();
    let mut open = Open::new();
    let operand = match fac {
        Fac::Product => {
            for (f, factor) in after[p].0.iter_mut().enumerate() {
                *factor = collect(factor, order, (p, f), &mut open)?;
            }
            Operand::Products(p..p + 1)
        }
        Fac::Factor => {
            after[p].0[f] = collect(&products[p].0[f], order, (p, f), &mut open)?;
            Operand::Factors { product: p, factors: f..f + 1 }
        }
        Fac::Term => {
            let (factor, terms) = collect_term(&products[p].0[f], order, (p, f), &mut open)?;
            after[p].0[f] = factor;
            Operand::Terms { product: p, factor: f, terms }
        }
    };
    Ok(Some((StepKind::Facstep, operand, after, open)))
}

/// A factor with its like terms collected; the sums that this takes are left open.
fn collect(
    factor: &Factor,
    order: TermOrder,
    (p, f): (usize, usize),
    open: &mut Open,
) -> Result<Factor, ArithmeticError> {
    let collected = factor.value(order)?;
    for (t, &(_, monomial)) in collected.terms().iter().enumerate() {
        let alike = factor.0.iter().filter(|term| term.monomial == monomial);
        leave_open(alike.map(|term| vec![term.coeff]).collect(), (p, f, t), open);
    }
    Ok(Factor::from(&collected))
}

/// A factor with the first term that is not yet as in its normal form put right, and the terms that this rewrites.
fn collect_term(
    factor: &Factor,
    order: TermOrder,
    (p, f): (usize, usize),
    open: &mut Open,
) -> Result<(Factor, Range<usize>), ArithmeticError> {
    let goal = Factor::from(&factor.value(order)?);
    let k = factor.0.iter().zip(&goal.0).take_while(|(a, b)| a == b).count();
    let Some(&next) = goal.0.get(k) else {
        // Every goal term stands already; only a lone factor in normal form gets here, to lose its parentheses.
        return Ok((goal, 0..factor.0.len()));
    };
    let alike = |i: &usize| factor.0[*i].monomial == next.monomial;
    let group: Vec<usize> = (k..factor.0.len()).filter(alike).collect();
    let summands: Vec<Vec<u64>> = group.iter().map(|&i| vec![factor.0[i].coeff]).collect();
    leave_open(summands, (p, f, k), open);
    let mut terms: Vec<Term> = factor.0[..k].to_vec();
    terms.push(next);
    terms.extend((k..factor.0.len()).filter(|i| !alike(i)).map(|i| factor.0[i]));
    Ok((Factor(terms), k..group.last().map_or(k + 1, |&i| i + 1)))
}

fn mulstep(products: &[Product], mul: Mul, order: TermOrder) -> Result<Option<Rewrite>, ArithmeticError> {
    let Some(p) = products.iter().position(|product| product.0.len() > 1) else {
        return Ok(None);
    };
    let factors = &products[p].0;
    let taken = match mul {
        Mul::Pair => 2,
        Mul::Product => factors.len(),
    };
    let result = Product(factors[..taken].to_vec()).value(order)?;
    let mut open = Open::new();
    let count = factors[..taken].iter().try_fold(1usize, |n, f| n.checked_mul(f.0.len()));
    let few = count.is_some_and(|n| n <= MAX_COMBINATIONS);
    let expansion = if few { combinations(&factors[..taken]) } else { Vec::new() };
    for (t, &(_, monomial)) in result.terms().iter().enumerate() {
        let summands = expansion.iter().filter(|(_, m)| *m == monomial).map(|(s, _)| s.clone());
        leave_open(summands.collect(), (p, 0, t), &mut open);
    }
    let mut after = products.to_vec();
    after[p].0.splice(..taken, [Factor::from(&result)]);
    let operand = match mul {
        Mul::Pair => Operand::Factors { product: p, factors: 0..2 },
        Mul::Product => Operand::Products(p..p + 1),
    };
    Ok(Some((StepKind::Mulstep, operand, after, open)))
}

/// Every choice of one term per factor, in lexicographic order: the coefficients without ones, and the monomial.
fn combinations(factors: &[Factor]) -> Vec<(Vec<u64>, Monomial)> {
    let mut all = vec![(Vec::new(), Monomial::ONE)];
    for factor in factors {
        let mut longer = Vec::with_capacity(all.len() * factor.0.len());
        for (numbers, monomial) in &all {
            for term in &factor.0 {
                let mut numbers: Vec<u64> = numbers.clone();
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

fn sumstep(products: &[Product], sum: Sum, order: TermOrder) -> Result<Rewrite, ArithmeticError> {
    let taken = match sum {
        Sum::Pair => products.len().min(2),
        Sum::All => products.len(),
    };
    let addends = &products[..taken];
    let terms = addends.iter().flat_map(|p| &p.0).flat_map(|f| &f.0);
    let result = Poly::collect(terms.clone().map(|t| (t.coeff, t.monomial)), order)?;
    let mut open = Open::new();
    for (t, &(_, monomial)) in result.terms().iter().enumerate() {
        let alike = terms.clone().filter(|term| term.monomial == monomial);
        leave_open(alike.map(|term| vec![term.coeff]).collect(), (0, 0, t), &mut open);
    }
    let mut after = vec![Product(vec![Factor::from(&result)])];
    after.extend_from_slice(&products[taken..]);
    Ok((StepKind::Sumstep, Operand::Products(0..taken), after, open))
}

/// A coefficient is left open unless it is a single number already.
fn leave_open(summands: Summands, at: (usize, usize, usize), open: &mut Open) {
    if summands.len() > 1 || summands.first().is_some_and(|numbers| numbers.len() > 1) {
        open.insert(at, summands);
    }
}

#[cfg(test)]
mod tests;

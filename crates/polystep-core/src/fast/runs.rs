//! Spelling: factors, products and sums as runs of tokens, with or without open coefficients.

use super::spelling::Spelling;
use super::tokens::{Run, TokenBuffer};
use super::{StepWriter, operator_before};
use crate::sample::{Basis, Cell, Draft, FactorSpan};
use crate::token;

impl StepWriter {
    /// Spells all factors of a product as one run.
    pub(super) fn spell_product(&mut self, draft: &Draft, factors: &[FactorSpan], raw: bool) -> Run {
        let at = self.runs.len();
        for (i, &f) in factors.iter().enumerate() {
            self.between_factors(i, factors.len());
            let cells = if raw { draft.raw(f) } else { draft.simple(f) };
            self.spelling.factor(cells, raw, &mut self.runs);
        }
        self.runs.since(at)
    }

    /// Spells all factors of a product as one run, collected, with their sums left open.
    pub(super) fn spell_open_factors(&mut self, draft: &Draft, factors: &[FactorSpan]) -> Run {
        let at = self.runs.len();
        for (i, &f) in factors.iter().enumerate() {
            self.between_factors(i, factors.len());
            self.spell_open_factor(draft, f);
        }
        self.runs.since(at)
    }

    fn between_factors(&mut self, i: usize, n: usize) {
        self.runs.reserve(2);
        if operator_before(i, n, self.prefix()) {
            self.runs.push(if self.prefix() { token::PRODUCT_OF } else { token::TIMES });
        }
    }

    pub(super) fn spell_simple(&mut self, cells: &[Cell]) -> Run {
        let at = self.runs.len();
        self.spelling.factor(cells, false, &mut self.runs);
        self.runs.since(at)
    }

    /// A factor whose first terms are done; perhaps one open group; the rest as drawn. Also returns where the group or the
    /// rest begins and ends, without the closing parenthesis.
    pub(super) fn spell_mixture(&mut self, done: &[Cell], rest: &[Cell], open: Option<&[Cell]>) -> (Run, usize, usize) {
        let n = done.len() + usize::from(open.is_some()) + rest.len();
        let (spelling, runs) = (&self.spelling, &mut self.runs);
        runs.reserve((n + 1 + open.map_or(0, <[Cell]>::len)) * (spelling.longest + 1));
        let at = runs.len();
        spelling.parenthesis(token::OPEN, runs);
        for (i, &cell) in done.iter().enumerate() {
            spelling.joined((i, n), cell, false, runs);
        }
        let mut lo = None;
        if let Some(group) = open {
            lo = Some(open_group(spelling, (done.len(), n), group, runs) - at);
        }
        for (i, &cell) in rest.iter().enumerate() {
            let begins = spelling.joined((n - rest.len() + i, n), cell, spelling.is_raw(cell), runs);
            lo = lo.or(Some(begins - at));
        }
        if n == 0 {
            spelling.integer(0, runs);
        }
        let hi = runs.len() - at;
        spelling.parenthesis(token::CLOSE, runs);
        (runs.since(at), lo.unwrap_or(hi), hi)
    }

    /// A collected factor with its sums left open.
    pub(super) fn spell_open_factor(&mut self, draft: &Draft, f: FactorSpan) -> Run {
        let (spelling, runs) = (&self.spelling, &mut self.runs);
        let at = runs.len();
        open_groups(spelling, draft.raw(f), runs);
        runs.since(at)
    }

    /// A product with its coefficients left open: the choices of one term per factor in lexicographic order.
    pub(super) fn spell_open_product(&mut self, basis: &Basis, factors: &[&[Cell]]) -> Run {
        let mut combinations = std::mem::take(&mut self.scratch.combinations);
        combinations.clear();
        let total: usize = factors.iter().map(|f| f.len()).product();
        for number in 0..total {
            let rank = choice(factors, number).fold(basis.one(), |rank, c| basis.product(rank, c.rank));
            combinations.push((rank, number as u32));
        }
        combinations.sort_unstable();
        let prefix = self.prefix();
        let (spelling, runs) = (&self.spelling, &mut self.runs);
        runs.reserve((total + 1) * (spelling.longest + 24 * factors.len() + 4));
        let at = runs.len();
        spelling.parenthesis(token::OPEN, runs);
        let n = combinations.chunk_by(|a, b| a.0 == b.0).count();
        if n == 0 {
            spelling.integer(0, runs);
        }
        for (i, group) in combinations.chunk_by(|a, b| a.0 == b.0).enumerate() {
            let rank = group[0].0;
            let numbers = |number: u32| choice(factors, number as usize).map(|c| c.coeff).filter(|&c| c != 1);
            if group.len() == 1 && numbers(group[0].1).nth(1).is_none() {
                let coeff = numbers(group[0].1).next().unwrap_or(1);
                spelling.joined((i, n), Cell { coeff, rank }, false, runs);
                continue;
            }
            spelling.between_terms(i, n, runs);
            spelling.open_times(rank, true, runs);
            runs.push(token::BRACKET);
            for (j, &(_, number)) in group.iter().enumerate() {
                spelling.between_terms(j, group.len(), runs);
                let count = numbers(number).count();
                for (k, coeff) in numbers(number).enumerate() {
                    if operator_before(k, count, prefix) {
                        runs.push(token::TIMES);
                    }
                    spelling.integer(coeff, runs);
                }
                if count == 0 {
                    spelling.integer(1, runs);
                }
            }
            runs.push(token::UNBRACKET);
            spelling.open_times(rank, false, runs);
            spelling.monomial(rank, false, runs);
        }
        spelling.parenthesis(token::CLOSE, runs);
        self.scratch.combinations = combinations;
        self.runs.since(at)
    }

    /// A sum with its coefficients left open.
    pub(super) fn spell_open_sum(&mut self, addends: &[&[Cell]]) -> Run {
        let mut terms = addends.concat();
        terms.sort_by_key(|cell| cell.rank);
        let at = self.runs.len();
        open_groups(&self.spelling, &terms, &mut self.runs);
        self.runs.since(at)
    }
}

/// A sum of terms in term order, its coefficients left open. Out of line: only a calculator's steps need it.
#[inline(never)]
fn open_groups(spelling: &Spelling, terms: &[Cell], runs: &mut TokenBuffer) {
    let groups = || terms.chunk_by(|a, b| a.rank == b.rank);
    runs.reserve((2 * terms.len() + 2) * (spelling.longest + 1));
    spelling.parenthesis(token::OPEN, runs);
    let n = groups().count();
    for (i, group) in groups().enumerate() {
        open_group(spelling, (i, n), group, runs);
    }
    if n == 0 {
        spelling.integer(0, runs);
    }
    spelling.parenthesis(token::CLOSE, runs);
}

/// Like terms, the i-th of n, with their sum left open, or a single term as it is. Returns where it begins.
fn open_group(spelling: &Spelling, (i, n): (usize, usize), group: &[Cell], runs: &mut TokenBuffer) -> usize {
    let rank = group[0].rank;
    if let [cell] = group {
        return spelling.joined((i, n), *cell, false, runs);
    }
    spelling.between_terms(i, n, runs);
    let at = runs.len();
    spelling.open_times(rank, true, runs);
    runs.push(token::BRACKET);
    for (i, cell) in group.iter().enumerate() {
        spelling.between_terms(i, group.len(), runs);
        spelling.integer(cell.coeff, runs);
    }
    runs.push(token::UNBRACKET);
    spelling.open_times(rank, false, runs);
    spelling.monomial(rank, false, runs);
    at
}

/// The terms of choice `number`, one per factor; the last factor's term changes fastest.
fn choice<'a>(factors: &'a [&[Cell]], number: usize) -> impl Iterator<Item = Cell> + 'a {
    let mut block: usize = factors.iter().map(|f| f.len()).product();
    factors.iter().map(move |f| {
        block /= f.len();
        f[number / block % f.len()]
    })
}

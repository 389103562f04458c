//! The steps of a proof in their order: which runs each of them replaces.

use super::states::Mark;
use super::{Scratch, StepWriter};
use crate::class::StepClass;
use crate::granularity::{Fac, Mul, Sum};
use crate::proof::StepKind;
use crate::sample::{Basis, Cell, Draft, FactorSpan, ProductSpan};

impl StepWriter {
    pub(super) fn facsteps(&mut self, draft: &Draft) {
        let alone = draft.products.len() == 1 && draft.factors.len() == 1 && !self.inside;
        for (p, &product) in draft.products.iter().enumerate() {
            let factors = draft.factors(product);
            if self.writing.granularity.fac == Fac::Product {
                if alone || factors.iter().any(|&f| self.changes(draft, f)) {
                    self.facstep_product(draft, p, factors, alone);
                }
                continue;
            }
            for (i, &f) in factors.iter().enumerate() {
                if alone || self.changes(draft, f) {
                    match self.writing.granularity.fac {
                        Fac::Term => self.facsteps_by_term(draft, p, i, f, alone),
                        Fac::Factor | Fac::Product => self.facstep_factor(draft, p, i, f, alone),
                    }
                }
            }
        }
    }

    /// Whether a facstep changes a factor.
    #[inline]
    fn changes(&self, draft: &Draft, f: FactorSpan) -> bool {
        f.raw.1 - f.raw.0 != f.simple.1 - f.simple.0 || draft.raw(f).iter().any(|&c| self.spelling.is_raw(c))
    }

    fn facstep_product(&mut self, draft: &Draft, p: usize, factors: &[FactorSpan], alone: bool) {
        self.begin((StepKind::Facstep, StepClass::Facstep), Mark::Products(p, p + 1));
        let (first, _) = self.current.products[p];
        if self.fused {
            let open = |writer: &mut Self| writer.spell_open_factors(draft, factors);
            let plain = |writer: &mut Self| writer.spell_product(draft, factors, false);
            return self.rewrite(first, alone, open, plain);
        }
        if self.opens() {
            for (i, &f) in factors.iter().enumerate() {
                self.current.runs[first + i] = self.spell_open_factor(draft, f);
            }
            self.target(first, alone);
        }
        for (i, &f) in factors.iter().enumerate() {
            self.current.runs[first + i] = self.spell_simple(draft.simple(f));
        }
        self.next(first, alone);
    }

    fn facstep_factor(&mut self, draft: &Draft, p: usize, i: usize, f: FactorSpan, alone: bool) {
        self.begin((StepKind::Facstep, StepClass::Facstep), Mark::Factors(p, i, i + 1));
        let at = self.current.products[p].0 + i;
        let open = |writer: &mut Self| writer.spell_open_factor(draft, f);
        self.rewrite(at, alone, open, |writer| writer.spell_simple(draft.simple(f)));
    }

    /// One facstep for each term of the collected factor that is not yet written as it should be.
    fn facsteps_by_term(&mut self, draft: &Draft, p: usize, i: usize, f: FactorSpan, alone: bool) {
        let (raw, simple) = (draft.raw(f), draft.simple(f));
        let at = self.current.products[p].0 + i;
        let differs = |writer: &Self, group: &[Cell]| group.len() > 1 || writer.spelling.is_raw(group[0]);
        let groups = || raw.chunk_by(|a, b| a.rank == b.rank);
        let mut pending = groups().filter(|group| differs(self, group)).count();
        if pending == 0 {
            // Only a lone factor in normal form: it loses its parentheses.
            let run = self.current.runs[at];
            self.begin((StepKind::Facstep, StepClass::Facstep), Mark::Within(p, i, 1, run.len.saturating_sub(1)));
            return self.rewrite(at, true, |_| run, |_| run);
        }
        let (mut from, mut done) = (0, 0);
        for group in groups() {
            let end = from + group.len();
            // Terms that cancel leave nothing behind.
            let stays = usize::from(simple.get(done).is_some_and(|c| c.rank == group[0].rank));
            if differs(self, group) {
                pending -= 1;
                let (_, lo, _) = self.spell_mixture(&simple[..done], &raw[from..], None);
                let (_, _, hi) = self.spell_mixture(&simple[..done], group, None);
                self.begin((StepKind::Facstep, StepClass::Facstep), Mark::Within(p, i, lo, hi));
                let open = |writer: &mut Self| writer.spell_mixture(&simple[..done], &raw[end..], Some(group)).0;
                let plain = |writer: &mut Self| writer.spell_mixture(&simple[..done + stays], &raw[end..], None).0;
                self.rewrite(at, alone && pending == 0, open, plain);
            }
            from = end;
            done += stays;
        }
    }

    pub(super) fn mulsteps(&mut self, basis: &Basis, draft: &Draft) {
        let alone = draft.products.len() == 1 && !self.inside;
        for (p, &product) in draft.products.iter().enumerate() {
            let factors = draft.factors(product);
            if factors.len() == 1 {
                continue;
            }
            match self.writing.granularity.mul {
                Mul::Product => self.mulstep_product(basis, draft, p, product, alone),
                Mul::Pair => self.mulsteps_by_pair(basis, draft, p, factors, alone),
            }
        }
    }

    fn mulstep_product(&mut self, basis: &Basis, draft: &Draft, p: usize, product: ProductSpan, alone: bool) {
        let class = self.product_class(basis, draft, product);
        self.begin((StepKind::Mulstep, class), Mark::Products(p, p + 1));
        let (first, _) = self.current.products[p];
        self.current.products[p].1 = 1;
        let open = |writer: &mut Self| {
            let factors: Vec<&[Cell]> = draft.factors(product).iter().map(|&f| draft.simple(f)).collect();
            writer.spell_open_product(basis, &factors)
        };
        self.rewrite(first, alone, open, |writer| writer.spell_simple(draft.expanded(product)));
    }

    /// The class of the step that multiplies all factors of a product, as [`StepClass::of_factors`] says.
    fn product_class(&mut self, basis: &Basis, draft: &Draft, product: ProductSpan) -> StepClass {
        let factors = draft.factors(product);
        let several = || factors.iter().map(|&f| draft.simple(f)).filter(|cells| cells.len() != 1);
        let multi = several().filter(|cells| !cells.is_empty()).count();
        let Scratch { counts: [counts, ones], sum, .. } = &mut self.scratch;
        StepClass::of_product(factors.len(), multi, || {
            // The product of the factors with every coefficient 1: its coefficients count summands. A single term moves the
            // counts and changes none.
            counts.clear();
            counts.push(Cell { coeff: 1, rank: basis.one() });
            several().fold(1, |_, factor| {
                ones.clear();
                ones.extend(factor.iter().map(|cell| Cell { coeff: 1, ..*cell }));
                basis.multiply(counts, ones, sum);
                counts.clear();
                sum.drain(counts) as usize
            })
        })
    }

    fn mulsteps_by_pair(&mut self, basis: &Basis, draft: &Draft, p: usize, factors: &[FactorSpan], alone: bool) {
        let mut left = std::mem::take(&mut self.scratch.left);
        left.clear();
        left.extend_from_slice(draft.simple(factors[0]));
        for (i, &f) in factors.iter().enumerate().skip(1) {
            let right = draft.simple(f);
            let multi = usize::from(left.len() > 1) + usize::from(right.len() > 1);
            let class = StepClass::of_product(2, multi, || 0);
            self.begin((StepKind::Mulstep, class), Mark::Factors(p, 0, 2));
            let product = &mut self.current.products[p];
            *product = (product.0 + 1, product.1 - 1);
            let (at, last) = (product.0, alone && i + 1 == factors.len());
            if self.opens() {
                self.current.runs[at] = self.spell_open_product(basis, &[&left, right]);
                self.target(at, last);
            }
            basis.multiply(&left, right, &mut self.scratch.sum);
            left.clear();
            self.scratch.sum.drain_signed(&mut left);
            self.current.runs[at] = self.spell_simple(&left);
            self.next(at, last);
        }
        self.scratch.left = left;
    }

    pub(super) fn sumsteps(&mut self, draft: &Draft) {
        let n = draft.products.len();
        if n == 1 {
            return;
        }
        if self.writing.granularity.sum == Sum::All {
            self.begin((StepKind::Sumstep, StepClass::Sumstep), Mark::Products(0, n));
            let open = |writer: &mut Self| {
                let addends: Vec<&[Cell]> = draft.products.iter().map(|&p| draft.expanded(p)).collect();
                writer.spell_open_sum(&addends)
            };
            return self.rewrite(0, true, open, |writer| writer.spell_simple(&draft.total));
        }
        let mut left = std::mem::take(&mut self.scratch.left);
        left.clear();
        left.extend_from_slice(draft.expanded(draft.products[0]));
        for (p, &product) in draft.products.iter().enumerate().skip(1) {
            self.begin((StepKind::Sumstep, StepClass::Sumstep), Mark::Products(p - 1, p + 1));
            let right = draft.expanded(product);
            for c in left.iter().chain(right) {
                self.scratch.sum.add(c.rank, c.coeff);
            }
            let mut total = Vec::new();
            self.scratch.sum.drain_signed(&mut total);
            self.current.first_product = p;
            let at = self.current.products[p].0;
            let open = |writer: &mut Self| writer.spell_open_sum(&[&left, right]);
            self.rewrite(at, p + 1 == n, open, |writer| writer.spell_simple(&total));
            left = total;
        }
        self.scratch.left = left;
    }
}

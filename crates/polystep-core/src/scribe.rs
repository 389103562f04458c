//! The steps of a drawn polynomial written straight to tokens: the hot path of training.
//!
//! It says what [`Writing::lines`] says, but never builds a state: each factor, product and sum is
//! spelled once, as a run of tokens, and a state is a sequence of runs. Where a step's input is the target of the step
//! before, it is written once and the two examples overlap. A test holds the two ways against each other.

mod emit;
mod spell;

use crate::basis::{Accumulator, Basis, Cell};
use crate::examples::{ExampleSpan, Examples};
use crate::granularity::{Fac, Granularity, Mul, Sum};
use crate::ink::{Letters, Page, Seg};
use crate::notation::Notation;
use crate::proof::StepKind;
use crate::sample::{Draft, FactorSpan, ProductSpan};
use crate::token;
use crate::writing::{Setting, Writing};

/// What is marked in an annotated state.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Products(usize, usize),
    Factors(usize, usize, usize),
    /// Tokens from … to … of a factor.
    Within(usize, usize, usize, usize),
}

#[derive(Debug)]
pub(crate) struct Scribe {
    setting: Setting,
    granularity: Granularity,
    prefix: bool,
    /// Whether a product is one run, because no step ever touches a single factor.
    fused: bool,
    letters: Letters,
    /// Every run, spelled once.
    runs: Page,
    /// The states.
    page: Page,
    /// The current state: the runs of each product.
    products: Vec<(usize, usize)>,
    current: Vec<Seg>,
    first_product: usize,
    spans: Vec<ExampleSpan>,
    previous: Seg,
    index: u32,
    left: Vec<Cell>,
    sum: Accumulator,
    combinations: Vec<(u16, u32)>,
}

impl Scribe {
    pub fn new(basis: &Basis, writing: &Writing) -> Scribe {
        let Writing { setting, granularity, notation, style } = *writing;
        let fused = granularity.fac == Fac::Product && granularity.mul == Mul::Product;
        Scribe {
            setting,
            granularity,
            prefix: notation == Notation::Prefix,
            fused: fused || setting == Setting::Endpoint,
            letters: Letters::new(basis, notation, style),
            runs: Page::default(),
            page: Page::default(),
            products: Vec::new(),
            current: Vec::new(),
            first_product: 0,
            spans: Vec::new(),
            previous: Seg::default(),
            index: 0,
            left: Vec::new(),
            sum: Accumulator::new(basis),
            combinations: Vec::new(),
        }
    }

    /// Appends the steps of the drawn polynomial.
    pub fn write(&mut self, basis: &Basis, draft: &Draft, index: u64, out: &mut Examples) {
        self.runs.clear();
        self.page.clear();
        self.spans.clear();
        self.current.clear();
        self.products.clear();
        self.first_product = 0;
        self.index = index as u32;
        self.start(draft);
        if self.setting == Setting::Endpoint {
            let end = self.spell_simple(&draft.total);
            let target = self.emit_bare(end);
            self.example(StepKind::Endpoint, self.previous, target);
        } else {
            self.facsteps(draft);
            self.mulsteps(basis, draft);
            self.sumsteps(draft);
            if self.setting == Setting::Annotated {
                let end = self.page.since(self.previous.start);
                self.page.reserve(end.len);
                let target = self.page.len();
                self.page.push(token::END);
                for i in end.start + 1..end.end() {
                    let token = self.page.written()[i];
                    self.page.push(token);
                }
                let target = self.page.since(target);
                self.example(StepKind::Markstep, end, target);
            }
        }
        let base = out.tokens.len() as u32;
        out.tokens.extend_from_slice(self.page.written());
        out.spans.extend(self.spans.iter().map(|s| ExampleSpan { start: s.start + base, ..*s }));
    }

    fn calculator(&self) -> bool {
        self.setting == Setting::Calculator
    }

    /// Writes the start and makes it the current state.
    fn start(&mut self, draft: &Draft) {
        for &p in &draft.products {
            let first = self.current.len();
            let factors = draft.factors(p);
            if self.fused {
                let seg = self.spell_product(draft, factors, true);
                self.current.push(seg);
            } else {
                for &f in factors {
                    let at = self.runs.len();
                    self.letters.factor(draft.raw(f), true, &mut self.runs);
                    self.current.push(self.runs.since(at));
                }
            }
            self.products.push((first, self.current.len() - first));
        }
        self.previous = self.emit_state();
    }

    /// Whether a facstep changes a factor.
    #[inline]
    fn changes(&self, draft: &Draft, f: FactorSpan) -> bool {
        f.raw.1 - f.raw.0 != f.simple.1 - f.simple.0 || draft.raw(f).iter().any(|&c| self.letters.is_raw(c))
    }

    fn facsteps(&mut self, draft: &Draft) {
        let alone = draft.products.len() == 1 && draft.factors.len() == 1;
        for (p, &product) in draft.products.iter().enumerate() {
            let factors = draft.factors(product);
            if self.granularity.fac == Fac::Product {
                if alone || factors.iter().any(|&f| self.changes(draft, f)) {
                    self.facstep_product(draft, p, factors, alone);
                }
                continue;
            }
            for (i, &f) in factors.iter().enumerate() {
                if !alone && !self.changes(draft, f) {
                    continue;
                }
                match self.granularity.fac {
                    Fac::Term => self.facsteps_by_term(draft, p, i, f, alone),
                    _ => self.facstep_factor(draft, p, i, f, alone),
                }
            }
        }
    }

    fn facstep_product(&mut self, draft: &Draft, p: usize, factors: &[FactorSpan], alone: bool) {
        self.mark(StepKind::Facstep, Mark::Products(p, p + 1));
        let (first, _) = self.products[p];
        if self.calculator() {
            if self.fused {
                let at = self.runs.len();
                for (i, &f) in factors.iter().enumerate() {
                    self.runs.reserve(2);
                    self.between_factors(i, factors.len());
                    self.spell_open_factor(draft, f);
                }
                self.current[first] = self.runs.since(at);
            } else {
                for (i, &f) in factors.iter().enumerate() {
                    self.current[first + i] = self.spell_open_factor(draft, f);
                }
            }
            self.emit_target(StepKind::Facstep, alone.then(|| self.current[first]));
        }
        if self.fused {
            self.current[first] = self.spell_product(draft, factors, false);
        } else {
            for (i, &f) in factors.iter().enumerate() {
                self.current[first + i] = self.spell_simple(draft.simple(f));
            }
        }
        self.emit_next(StepKind::Facstep, alone.then(|| self.current[first]));
    }

    fn facstep_factor(&mut self, draft: &Draft, p: usize, i: usize, f: FactorSpan, alone: bool) {
        self.mark(StepKind::Facstep, Mark::Factors(p, i, i + 1));
        let at = self.products[p].0 + i;
        if self.calculator() {
            self.current[at] = self.spell_open_factor(draft, f);
            self.emit_target(StepKind::Facstep, alone.then(|| self.current[at]));
        }
        self.current[at] = self.spell_simple(draft.simple(f));
        self.emit_next(StepKind::Facstep, alone.then(|| self.current[at]));
    }

    /// One facstep for each term of the collected factor that is not yet written as it should be.
    fn facsteps_by_term(&mut self, draft: &Draft, p: usize, i: usize, f: FactorSpan, alone: bool) {
        let (raw, simple) = (draft.raw(f), draft.simple(f));
        let at = self.products[p].0 + i;
        let group = |from: usize, rank: u16| from + raw[from..].iter().take_while(|c| c.rank == rank).count();
        let mut ends = 0;
        let mut pending = 0;
        for &cell in simple {
            let end = group(ends, cell.rank);
            pending += usize::from(end - ends > 1 || self.letters.is_raw(raw[ends]));
            ends = end;
        }
        if pending == 0 {
            // Only a lone factor in normal form: it loses its parentheses.
            let seg = self.current[at];
            self.mark(StepKind::Facstep, Mark::Within(p, i, 1, seg.len.saturating_sub(1)));
            if self.calculator() {
                self.emit_target(StepKind::Facstep, Some(seg));
            }
            self.emit_next(StepKind::Facstep, Some(seg));
            return;
        }
        let mut from = 0;
        for (k, &cell) in simple.iter().enumerate() {
            let end = group(from, cell.rank);
            if end - from > 1 || self.letters.is_raw(raw[from]) {
                pending -= 1;
                let last = alone && pending == 0;
                let (_, lo, _) = self.spell_mixture(&simple[..k], &raw[from..], None);
                let (_, _, hi) = self.spell_mixture(&simple[..k], &raw[from..end], None);
                self.mark(StepKind::Facstep, Mark::Within(p, i, lo, hi));
                if self.calculator() {
                    let (open, ..) = self.spell_mixture(&simple[..k], &raw[end..], Some(&raw[from..end]));
                    self.current[at] = open;
                    self.emit_target(StepKind::Facstep, last.then_some(open));
                }
                let (seg, ..) = self.spell_mixture(&simple[..=k], &raw[end..], None);
                self.current[at] = seg;
                self.emit_next(StepKind::Facstep, last.then_some(seg));
            }
            from = end;
        }
    }

    fn mulsteps(&mut self, basis: &Basis, draft: &Draft) {
        let alone = draft.products.len() == 1;
        for (p, &product) in draft.products.iter().enumerate() {
            let factors = draft.factors(product);
            if factors.len() == 1 {
                continue;
            }
            match self.granularity.mul {
                Mul::Product => self.mulstep_product(basis, draft, p, product, alone),
                Mul::Pair => self.mulsteps_by_pair(basis, draft, p, factors, alone),
            }
        }
    }

    fn mulstep_product(&mut self, basis: &Basis, draft: &Draft, p: usize, product: ProductSpan, alone: bool) {
        self.mark(StepKind::Mulstep, Mark::Products(p, p + 1));
        let (first, _) = self.products[p];
        self.products[p].1 = 1;
        if self.calculator() {
            let factors: Vec<&[Cell]> = draft.factors(product).iter().map(|&f| draft.simple(f)).collect();
            self.current[first] = self.spell_open_product(basis, &factors);
            self.emit_target(StepKind::Mulstep, alone.then(|| self.current[first]));
        }
        self.current[first] = self.spell_simple(draft.expanded(product));
        self.emit_next(StepKind::Mulstep, alone.then(|| self.current[first]));
    }

    fn mulsteps_by_pair(&mut self, basis: &Basis, draft: &Draft, p: usize, factors: &[FactorSpan], alone: bool) {
        let mut left = std::mem::take(&mut self.left);
        left.clear();
        left.extend_from_slice(draft.simple(factors[0]));
        for (i, &f) in factors.iter().enumerate().skip(1) {
            self.mark(StepKind::Mulstep, Mark::Factors(p, 0, 2));
            let right = draft.simple(f);
            let last = alone && i + 1 == factors.len();
            self.products[p].0 += 1;
            self.products[p].1 -= 1;
            let first = self.products[p].0;
            if self.calculator() {
                self.current[first] = self.spell_open_product(basis, &[&left, right]);
                self.emit_target(StepKind::Mulstep, last.then(|| self.current[first]));
            }
            basis.multiply(&left, right, &mut self.sum);
            left.clear();
            self.sum.drain(&mut left);
            self.current[first] = self.spell_simple(&left);
            self.emit_next(StepKind::Mulstep, last.then(|| self.current[first]));
        }
        self.left = left;
    }

    fn sumsteps(&mut self, draft: &Draft) {
        let n = draft.products.len();
        if n == 1 {
            return;
        }
        if self.granularity.sum == Sum::All {
            self.mark(StepKind::Sumstep, Mark::Products(0, n));
            if self.calculator() {
                let addends: Vec<&[Cell]> = draft.products.iter().map(|&p| draft.expanded(p)).collect();
                let open = self.spell_open_sum(&draft.total, &addends);
                self.emit_target(StepKind::Sumstep, Some(open));
            }
            let end = self.spell_simple(&draft.total);
            self.emit_next(StepKind::Sumstep, Some(end));
            return;
        }
        let mut left = std::mem::take(&mut self.left);
        left.clear();
        left.extend_from_slice(draft.expanded(draft.products[0]));
        for (p, &product) in draft.products.iter().enumerate().skip(1) {
            self.mark(StepKind::Sumstep, Mark::Products(p - 1, p + 1));
            let right = draft.expanded(product);
            for c in left.iter().chain(right) {
                self.sum.add(c.rank, c.coeff);
            }
            let mut total = Vec::new();
            self.sum.drain(&mut total);
            self.first_product = p;
            let first = self.products[p].0;
            let last = p + 1 == n;
            if self.calculator() {
                self.current[first] = self.spell_open_sum(&total, &[&left, right]);
                self.emit_target(StepKind::Sumstep, last.then(|| self.current[first]));
            }
            self.current[first] = self.spell_simple(&total);
            self.emit_next(StepKind::Sumstep, last.then(|| self.current[first]));
            left = total;
        }
        self.left = left;
    }
}

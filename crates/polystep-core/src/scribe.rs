//! The steps of a drawn polynomial written straight to tokens: the hot path of training.
//!
//! It says what [`Proof::lines`](crate::proof::Proof::lines) says, but never builds a state: each factor, product and sum is
//! spelled once, as a run of tokens, and a state is a sequence of runs. Where a step's input is the target of the step
//! before, it is written once and the two examples overlap. A test holds the two ways against each other.

use crate::basis::{Accumulator, Basis, Cell};
use crate::examples::{ExampleSpan, Examples};
use crate::ink::{Letters, Page, Seg};
use crate::notation::{Notation, Style};
use crate::sample::{Draft, FactorSpan, ProductSpan};
use crate::task::{Fac, Granularity, Mul, Setting, StepKind, Sum};
use crate::token;

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
    pub fn new(basis: &Basis, setting: Setting, granularity: Granularity, notation: Notation, style: Style) -> Scribe {
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

    /// Spells all factors of a product as one run.
    fn spell_product(&mut self, draft: &Draft, factors: &[FactorSpan], raw: bool) -> Seg {
        let at = self.runs.len();
        for (i, &f) in factors.iter().enumerate() {
            self.runs.reserve(2);
            self.between_factors(i, factors.len());
            let cells = if raw { draft.raw(f) } else { draft.simple(f) };
            self.letters.factor(cells, raw, &mut self.runs);
        }
        self.runs.since(at)
    }

    fn between_factors(&mut self, i: usize, n: usize) {
        if self.prefix {
            if i + 1 < n {
                self.runs.push(token::PRODUCT_OF);
            }
        } else if i > 0 {
            self.runs.push(token::TIMES);
        }
    }

    fn spell_simple(&mut self, cells: &[Cell]) -> Seg {
        let at = self.runs.len();
        self.letters.factor(cells, false, &mut self.runs);
        self.runs.since(at)
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

    /// A factor whose first terms are done; perhaps one open group; the rest as drawn. Also returns where the group or the
    /// rest begins and ends, without the closing parenthesis.
    fn spell_mixture(&mut self, done: &[Cell], rest: &[Cell], open: Option<&[Cell]>) -> (Seg, usize, usize) {
        let n = done.len() + usize::from(open.is_some()) + rest.len();
        let (letters, runs) = (&self.letters, &mut self.runs);
        runs.reserve((n + 1 + open.map_or(0, <[Cell]>::len)) * (letters.longest + 1));
        let at = runs.len();
        letters.parenthesis(token::OPEN, runs);
        for (i, &cell) in done.iter().enumerate() {
            letters.between_terms(i, n, runs);
            letters.term(cell, false, runs);
        }
        let mut lo = None;
        if let Some(group) = open {
            letters.between_terms(done.len(), n, runs);
            lo = Some(runs.len() - at);
            open_group(letters, group, runs);
        }
        for (i, &cell) in rest.iter().enumerate() {
            letters.between_terms(n - rest.len() + i, n, runs);
            lo = lo.or(Some(runs.len() - at));
            letters.term(cell, letters.is_raw(cell), runs);
        }
        let hi = runs.len() - at;
        letters.parenthesis(token::CLOSE, runs);
        (runs.since(at), lo.unwrap_or(hi), hi)
    }

    /// A collected factor with its sums left open.
    fn spell_open_factor(&mut self, draft: &Draft, f: FactorSpan) -> Seg {
        let (letters, runs) = (&self.letters, &mut self.runs);
        let (raw, n) = (draft.raw(f), (f.simple.1 - f.simple.0) as usize);
        runs.reserve((2 * raw.len() + 2) * (letters.longest + 1));
        let at = runs.len();
        letters.parenthesis(token::OPEN, runs);
        for (i, group) in raw.chunk_by(|a, b| a.rank == b.rank).enumerate() {
            letters.between_terms(i, n, runs);
            open_group(letters, group, runs);
        }
        letters.parenthesis(token::CLOSE, runs);
        runs.since(at)
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
            for a in &left {
                for b in right {
                    self.sum.add(basis.product(a.rank, b.rank), a.coeff * b.coeff);
                }
            }
            left.clear();
            self.sum.drain(&mut left);
            self.current[first] = self.spell_simple(&left);
            self.emit_next(StepKind::Mulstep, last.then(|| self.current[first]));
        }
        self.left = left;
    }

    /// A product with its coefficients left open: the choices of one term per factor in lexicographic order.
    fn spell_open_product(&mut self, basis: &Basis, factors: &[&[Cell]]) -> Seg {
        let mut combinations = std::mem::take(&mut self.combinations);
        combinations.clear();
        let total: usize = factors.iter().map(|f| f.len()).product();
        for number in 0..total {
            let rank = choice(factors, number).fold(basis.one(), |rank, c| basis.product(rank, c.rank));
            combinations.push((rank, number as u32));
        }
        combinations.sort_unstable();
        let (letters, runs) = (&self.letters, &mut self.runs);
        runs.reserve((total + 1) * (letters.longest + 24 * factors.len() + 4));
        let at = runs.len();
        letters.parenthesis(token::OPEN, runs);
        let n = combinations.chunk_by(|a, b| a.0 == b.0).count();
        for (i, group) in combinations.chunk_by(|a, b| a.0 == b.0).enumerate() {
            letters.between_terms(i, n, runs);
            let rank = group[0].0;
            let numbers = |number: u32| choice(factors, number as usize).map(|c| c.coeff).filter(|&c| c != 1);
            if group.len() == 1 && numbers(group[0].1).nth(1).is_none() {
                let coeff = numbers(group[0].1).next().unwrap_or(1);
                letters.term(Cell { coeff, rank }, false, runs);
                continue;
            }
            letters.open_times(rank, true, runs);
            runs.push(token::BRACKET);
            for (j, &(_, number)) in group.iter().enumerate() {
                letters.between_terms(j, group.len(), runs);
                let count = numbers(number).count();
                for (k, coeff) in numbers(number).enumerate() {
                    if if self.prefix { k + 1 < count } else { k > 0 } {
                        runs.push(token::TIMES);
                    }
                    letters.integer(coeff, runs);
                }
                if count == 0 {
                    letters.integer(1, runs);
                }
            }
            runs.push(token::UNBRACKET);
            letters.open_times(rank, false, runs);
            letters.monomial(rank, false, runs);
        }
        letters.parenthesis(token::CLOSE, runs);
        self.combinations = combinations;
        self.runs.since(at)
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

    /// A sum with its coefficients left open.
    fn spell_open_sum(&mut self, total: &[Cell], addends: &[&[Cell]]) -> Seg {
        let (letters, runs) = (&self.letters, &mut self.runs);
        runs.reserve((total.len() + 1) * (letters.longest + 24 * addends.len() + 4));
        let at = runs.len();
        letters.parenthesis(token::OPEN, runs);
        let mut group: Vec<Cell> = Vec::with_capacity(addends.len());
        for (i, cell) in total.iter().enumerate() {
            letters.between_terms(i, total.len(), runs);
            group.clear();
            group.extend(addends.iter().flat_map(|a| a.iter()).filter(|c| c.rank == cell.rank));
            open_group(letters, &group, runs);
        }
        letters.parenthesis(token::CLOSE, runs);
        runs.since(at)
    }

    /// Annotated: writes the state with its operand marked, from `MARK $ S`.
    #[inline]
    fn mark(&mut self, kind: StepKind, mark: Mark) {
        if self.setting == Setting::Annotated {
            let at = self.page.len();
            self.page.reserve(self.runs.len() + 4 * self.current.len() + 8);
            self.page.push(kind.tag());
            self.page.push(token::DOLLAR);
            self.emit_marked(mark);
            let target = self.page.since(at);
            self.example(StepKind::Markstep, self.previous, target);
            self.previous = target;
        }
    }

    /// Calculator: writes the target with open coefficients.
    fn emit_target(&mut self, kind: StepKind, bare: Option<Seg>) {
        let target = match bare {
            Some(seg) => self.emit_bare(seg),
            None => self.emit_state(),
        };
        self.example(kind, self.previous, target);
    }

    /// Writes the state that the step leads to; the next step starts from it.
    #[inline]
    fn emit_next(&mut self, kind: StepKind, bare: Option<Seg>) {
        let state = match bare {
            Some(seg) => self.emit_bare(seg),
            None => self.emit_state(),
        };
        if !self.calculator() {
            self.example(kind, self.previous, state);
        }
        self.previous = state;
    }

    #[inline]
    fn example(&mut self, kind: StepKind, src: Seg, tgt: Seg) {
        debug_assert_eq!(src.end(), tgt.start);
        self.spans.push(ExampleSpan {
            start: src.start as u32,
            src_len: src.len as u16,
            tgt_len: tgt.len as u16,
            kind,
            proof: self.index,
            step: self.spans.len() as u16,
        });
    }

    /// Writes the current state.
    #[inline]
    fn emit_state(&mut self) -> Seg {
        let at = self.page.len();
        self.page.reserve(self.runs.len() + 4 * self.current.len() + 8);
        if self.setting == Setting::Annotated {
            self.page.push(token::MARK);
            self.page.push(token::DOLLAR);
        }
        let n = self.products.len();
        let alone = n == 1 && self.products[0].1 == 1;
        for p in self.first_product..n {
            let (first, count) = self.products[p];
            if self.prefix {
                if p + 1 < n {
                    self.page.push(token::SUM_OF);
                }
            } else if p > self.first_product {
                self.page.push(token::PLUS);
            }
            for f in 0..count {
                if self.prefix {
                    // A fused product of several factors holds its own operators.
                    if f + 1 < count || (alone && self.is_single(first)) {
                        self.page.push(token::PRODUCT_OF);
                    }
                } else if f > 0 {
                    self.page.push(token::TIMES);
                }
                self.page.copy(&self.runs, self.current[first + f]);
            }
        }
        self.page.since(at)
    }

    /// Whether a run is one factor, not a fused product.
    fn is_single(&self, run: usize) -> bool {
        let seg = self.current[run];
        !self.fused || self.runs.written()[seg.start] != token::PRODUCT_OF
    }

    /// Writes a polynomial without parentheses.
    #[inline]
    fn emit_bare(&mut self, seg: Seg) -> Seg {
        let at = self.page.len();
        self.page.reserve(seg.len + 2);
        if self.setting == Setting::Annotated {
            self.page.push(token::MARK);
            self.page.push(token::DOLLAR);
        }
        self.page.copy(&self.runs, self.letters.bare(seg));
        self.page.since(at)
    }

    /// Writes the current state (infix) with `#` around the operand.
    fn emit_marked(&mut self, mark: Mark) {
        for p in self.first_product..self.products.len() {
            let (first, count) = self.products[p];
            if p > self.first_product {
                self.page.push(token::PLUS);
            }
            let opens = |at: bool, page: &mut Page| {
                if at {
                    page.push(token::HASH);
                }
            };
            opens(matches!(mark, Mark::Products(lo, _) if p == lo), &mut self.page);
            for f in 0..count {
                if f > 0 {
                    self.page.push(token::TIMES);
                }
                let seg = self.current[first + f];
                opens(matches!(mark, Mark::Factors(q, lo, _) if (p, f) == (q, lo)), &mut self.page);
                match mark {
                    Mark::Within(q, g, lo, hi) if (p, f) == (q, g) => {
                        self.page.copy(&self.runs, Seg { start: seg.start, len: lo });
                        self.page.push(token::HASH);
                        self.page.copy(&self.runs, Seg { start: seg.start + lo, len: hi - lo });
                        self.page.push(token::HASH);
                        self.page.copy(&self.runs, Seg { start: seg.start + hi, len: seg.len - hi });
                    }
                    _ => self.page.copy(&self.runs, seg),
                }
                opens(matches!(mark, Mark::Factors(q, _, hi) if (p, f + 1) == (q, hi)), &mut self.page);
            }
            opens(matches!(mark, Mark::Products(_, hi) if p + 1 == hi), &mut self.page);
        }
    }
}

/// Like terms with their sum left open, or a single term as it is.
fn open_group(letters: &Letters, group: &[Cell], runs: &mut Page) {
    let rank = group[0].rank;
    if let [cell] = group {
        letters.term(*cell, false, runs);
        return;
    }
    letters.open_times(rank, true, runs);
    runs.push(token::BRACKET);
    for (i, cell) in group.iter().enumerate() {
        letters.between_terms(i, group.len(), runs);
        letters.integer(cell.coeff, runs);
    }
    runs.push(token::UNBRACKET);
    letters.open_times(rank, false, runs);
    letters.monomial(rank, false, runs);
}

/// The terms of choice `number`, one per factor; the last factor's term changes fastest.
fn choice<'a>(factors: &'a [&[Cell]], number: usize) -> impl Iterator<Item = Cell> + 'a {
    let mut block: usize = factors.iter().map(|f| f.len()).product();
    factors.iter().map(move |f| {
        block /= f.len();
        f[number / block % f.len()]
    })
}

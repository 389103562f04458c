//! Putting runs together: states, marked states, and the examples between them.

use super::tokens::Run;
use super::{StepWriter, operator_before};
use crate::examples::ExampleSpan;
use crate::proof::StepKind;
use crate::token;
use crate::writing::Setting;

/// The state that the next step starts from.
#[derive(Debug, Default)]
pub(super) struct CurrentState {
    /// Of each product: its first run, and how many it has.
    pub products: Vec<(usize, usize)>,
    /// The runs of all products: one per factor, or one per fused product.
    pub runs: Vec<Run>,
    /// Products before this one have been added into it.
    pub first_product: usize,
    /// Where the state was last written.
    pub written: Run,
}

impl CurrentState {
    pub fn clear(&mut self) {
        self.products.clear();
        self.runs.clear();
        self.first_product = 0;
    }
}

/// What is marked in an annotated state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    /// Products from … to ….
    Products(usize, usize),
    /// Of a product, factors from … to ….
    Factors(usize, usize, usize),
    /// Of a product's factor, tokens from … to ….
    Within(usize, usize, usize, usize),
}

impl StepWriter {
    /// Annotated: writes the state with its operand marked. The step starts from there.
    #[inline]
    pub(super) fn mark(&mut self, kind: StepKind, mark: Mark) {
        if self.writing.setting == Setting::Annotated {
            let tag = kind.tag().expect("every step of a proof has a tag");
            let marked = self.write_tagged(tag, Some(mark));
            self.example(StepKind::Markstep, self.current.written, marked);
            self.current.written = marked;
        }
    }

    /// Replaces a run of the state and writes the step: a calculator's target first, then the state that it leads to. `bare`
    /// says that this run is the endpoint.
    #[inline]
    pub(super) fn rewrite(
        &mut self,
        kind: StepKind,
        at: usize,
        bare: bool,
        open: impl FnOnce(&mut Self) -> Run,
        plain: impl FnOnce(&mut Self) -> Run,
    ) {
        if self.calculator() {
            self.current.runs[at] = open(self);
            self.target(kind, at, bare);
        }
        self.current.runs[at] = plain(self);
        self.next(kind, at, bare);
    }

    /// Calculator: writes the target with open coefficients.
    pub(super) fn target(&mut self, kind: StepKind, at: usize, bare: bool) {
        let target = if bare { self.write_bare(self.current.runs[at]) } else { self.write_state() };
        self.example(kind, self.current.written, target);
    }

    /// Writes the state that the step leads to; the next step starts from it.
    #[inline]
    pub(super) fn next(&mut self, kind: StepKind, at: usize, bare: bool) {
        let state = if bare { self.write_bare(self.current.runs[at]) } else { self.write_state() };
        if !self.calculator() {
            self.example(kind, self.current.written, state);
        }
        self.current.written = state;
    }

    #[inline]
    pub(super) fn example(&mut self, kind: StepKind, src: Run, tgt: Run) {
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
    pub(super) fn write_state(&mut self) -> Run {
        self.write_tagged(token::MARK, None)
    }

    /// Writes the current state, in annotated proofs behind a tag and with `#` around what is marked.
    #[inline(always)]
    fn write_tagged(&mut self, tag: u8, mark: Option<Mark>) -> Run {
        let at = self.states.len();
        self.states.reserve(self.runs.len() + 4 * self.current.runs.len() + 8);
        self.push_tag(tag);
        let (prefix, n) = (self.prefix(), self.current.products.len());
        let alone = n == 1 && self.current.products[0].1 == 1;
        let lowest = self.current.first_product;
        for p in lowest..n {
            let (first, count) = self.current.products[p];
            if operator_before(p - lowest, n - lowest, prefix) {
                self.states.push(if prefix { token::SUM_OF } else { token::PLUS });
            }
            self.hash(matches!(mark, Some(Mark::Products(lo, _)) if p == lo));
            for f in 0..count {
                let run = self.current.runs[first + f];
                // In prefix, a fused product of several factors holds its own operators; a single factor alone has one.
                if operator_before(f, count, prefix) || (prefix && alone && self.is_single(run)) {
                    self.states.push(if prefix { token::PRODUCT_OF } else { token::TIMES });
                }
                self.hash(matches!(mark, Some(Mark::Factors(q, lo, _)) if (p, f) == (q, lo)));
                match mark {
                    Some(Mark::Within(q, g, lo, hi)) if (p, f) == (q, g) => {
                        self.states.copy(&self.runs, Run { start: run.start, len: lo });
                        self.states.push(token::HASH);
                        self.states.copy(&self.runs, Run { start: run.start + lo, len: hi - lo });
                        self.states.push(token::HASH);
                        self.states.copy(&self.runs, Run { start: run.start + hi, len: run.len - hi });
                    }
                    _ => self.states.copy(&self.runs, run),
                }
                self.hash(matches!(mark, Some(Mark::Factors(q, _, hi)) if (p, f + 1) == (q, hi)));
            }
            self.hash(matches!(mark, Some(Mark::Products(_, hi)) if p + 1 == hi));
        }
        self.states.since(at)
    }

    /// Writes a polynomial without parentheses.
    #[inline]
    pub(super) fn write_bare(&mut self, run: Run) -> Run {
        let at = self.states.len();
        self.states.reserve(run.len + 2);
        self.push_tag(token::MARK);
        self.states.copy(&self.runs, self.spelling.bare(run));
        self.states.since(at)
    }

    #[inline]
    fn push_tag(&mut self, tag: u8) {
        if self.writing.setting == Setting::Annotated {
            self.states.push(tag);
            self.states.push(token::DOLLAR);
        }
    }

    #[inline(always)]
    fn hash(&mut self, here: bool) {
        if here {
            self.states.push(token::HASH);
        }
    }

    /// Whether a run is one factor, not a fused product.
    fn is_single(&self, run: Run) -> bool {
        !self.fused || self.runs.written()[run.start] != token::PRODUCT_OF
    }
}

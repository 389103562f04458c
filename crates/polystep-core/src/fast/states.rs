//! Putting runs together: states, marked states, and the examples between them.

use super::tokens::Run;
use super::{StepWriter, operator_before};
use crate::class::StepClass;
use crate::examples::ExampleSpan;
use crate::proof::StepKind;
use crate::token;
use crate::writing::Setting;

/// The state that the next step starts from.
#[derive(Debug)]
pub(super) struct CurrentState {
    /// Of each product: its first run, and how many it has.
    pub products: Vec<(usize, usize)>,
    /// The runs of all products: one per factor, or one per fused product.
    pub runs: Vec<Run>,
    /// Products before this one have been added into it.
    pub first_product: usize,
    /// Where the state is written, if it is.
    pub written: Option<Run>,
    /// What the current step is.
    step: (StepKind, StepClass),
    /// The run that is the endpoint, once it is spelled.
    pub end: Run,
}

impl Default for CurrentState {
    fn default() -> Self {
        CurrentState {
            products: Vec::new(),
            runs: Vec::new(),
            first_product: 0,
            written: None,
            step: (StepKind::Facstep, StepClass::Facstep),
            end: Run::default(),
        }
    }
}

impl CurrentState {
    pub fn clear(&mut self) {
        self.products.clear();
        self.runs.clear();
        self.first_product = 0;
        self.written = None;
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
    /// Begins a step: decides whether it is kept, and writes the state that it starts from if that is needed. Annotated: this is
    /// the state with its operand marked, and the step that marks it comes first.
    #[inline]
    pub(super) fn begin(&mut self, step: (StepKind, StepClass), mark: Mark) {
        self.current.step = step;
        if self.writing.setting == Setting::Annotated {
            let marks = self.keeps(StepClass::Markstep);
            let before = marks.then(|| self.written());
            self.kept = self.keeps(step.1);
            let tag = step.0.tag().expect("every step of a proof has a tag");
            let marked = (marks || self.kept).then(|| self.write_tagged(tag, Some(mark)));
            if let (Some(before), Some(marked)) = (before, marked) {
                self.example((StepKind::Markstep, StepClass::Markstep), before, marked);
            }
            self.current.written = marked;
            self.step += 1;
            return;
        }
        self.kept = self.keeps(step.1);
        if self.kept {
            self.written();
        }
    }

    /// Whether the next step, of this class, is kept.
    #[inline]
    pub(super) fn keeps(&mut self, class: StepClass) -> bool {
        self.thinning.as_mut().is_none_or(|thinning| thinning.keeps(class))
    }

    /// Whether the current step's coefficients are to be written as sums.
    #[inline]
    pub(super) fn opens(&self) -> bool {
        self.kept && self.calculator()
    }

    /// The current state, written now if it is not yet.
    #[inline]
    pub(super) fn written(&mut self) -> Run {
        let written = self.current.written.unwrap_or_else(|| self.write_state());
        self.current.written = Some(written);
        written
    }

    /// Replaces a run of the state and writes the step: a calculator's target first, then the state that it leads to. `bare`
    /// says that this run is the endpoint.
    #[inline]
    pub(super) fn rewrite(
        &mut self,
        at: usize,
        bare: bool,
        open: impl FnOnce(&mut Self) -> Run,
        plain: impl FnOnce(&mut Self) -> Run,
    ) {
        if self.opens() {
            self.current.runs[at] = open(self);
            self.target(at, bare);
        }
        if bare && !self.kept && self.writing.setting != Setting::Annotated {
            return; // nothing follows
        }
        self.current.runs[at] = plain(self);
        self.next(at, bare);
    }

    /// Calculator: writes the target with open coefficients.
    pub(super) fn target(&mut self, at: usize, bare: bool) {
        let src = self.written();
        let target = if bare { self.write_bare(self.current.runs[at]) } else { self.write_state() };
        self.example(self.current.step, src, target);
    }

    /// Ends a step. If it is kept, the state that it leads to is written; the next step starts from it.
    #[inline]
    pub(super) fn next(&mut self, at: usize, bare: bool) {
        if bare {
            self.current.end = self.current.runs[at];
        }
        let src = self.current.written.take();
        if self.kept {
            let state = if bare { self.write_bare(self.current.end) } else { self.write_state() };
            if let (Some(src), false) = (src, self.calculator()) {
                self.example(self.current.step, src, state);
            }
            self.current.written = Some(state);
        }
        self.step += 1;
    }

    #[inline]
    pub(super) fn example(&mut self, (kind, class): (StepKind, StepClass), src: Run, tgt: Run) {
        debug_assert_eq!(src.end(), tgt.start);
        self.spans.push(ExampleSpan {
            start: src.start as u32,
            src_len: src.len as u16,
            tgt_len: tgt.len as u16,
            kind,
            class,
            proof: self.index,
            step: self.step,
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
        let alone = n == 1 && self.current.products[0].1 == 1 && !self.inside;
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

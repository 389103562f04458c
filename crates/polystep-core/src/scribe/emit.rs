//! Putting runs together: states, marked states, targets and the examples between them.

use super::{Mark, Scribe};
use crate::examples::ExampleSpan;
use crate::ink::{Page, Seg};
use crate::proof::StepKind;
use crate::token;
use crate::writing::Setting;

impl Scribe {
    /// Annotated: writes the state with its operand marked, from `MARK $ S`.
    #[inline]
    pub(super) fn mark(&mut self, kind: StepKind, mark: Mark) {
        if self.setting == Setting::Annotated {
            let at = self.page.len();
            self.page.reserve(self.runs.len() + 4 * self.current.len() + 8);
            self.page.push(kind.tag().expect("only the steps of a proof are marked"));
            self.page.push(token::DOLLAR);
            self.emit_marked(mark);
            let target = self.page.since(at);
            self.example(StepKind::Markstep, self.previous, target);
            self.previous = target;
        }
    }

    /// Calculator: writes the target with open coefficients.
    pub(super) fn emit_target(&mut self, kind: StepKind, bare: Option<Seg>) {
        let target = match bare {
            Some(seg) => self.emit_bare(seg),
            None => self.emit_state(),
        };
        self.example(kind, self.previous, target);
    }

    /// Writes the state that the step leads to; the next step starts from it.
    #[inline]
    pub(super) fn emit_next(&mut self, kind: StepKind, bare: Option<Seg>) {
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
    pub(super) fn example(&mut self, kind: StepKind, src: Seg, tgt: Seg) {
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
    pub(super) fn emit_state(&mut self) -> Seg {
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
    pub(super) fn is_single(&self, run: usize) -> bool {
        let seg = self.current[run];
        !self.fused || self.runs.written()[seg.start] != token::PRODUCT_OF
    }

    /// Writes a polynomial without parentheses.
    #[inline]
    pub(super) fn emit_bare(&mut self, seg: Seg) -> Seg {
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
    pub(super) fn emit_marked(&mut self, mark: Mark) {
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

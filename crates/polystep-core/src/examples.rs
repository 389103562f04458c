//! Step examples as tokens, flat in memory: what training reads.
//!
//! The tokens of an example are its source and then its target, without `<s>` and `</s>`. Examples may overlap: where a
//! step's input is the target of the step before, it is stored once.

use crate::class::StepClass;
use crate::proof::StepKind;

/// Where an example lies in [`Examples::tokens`], and which it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExampleSpan {
    /// Its first token.
    pub start: u32,
    /// How many tokens the source has.
    pub src_len: u16,
    /// How many tokens the target has.
    pub tgt_len: u16,
    /// What the step does.
    pub kind: StepKind,
    /// How hard it is.
    pub class: StepClass,
    /// The index of its proof in the stream (its low 32 bits).
    pub proof: u32,
    /// Which step of the proof it is.
    pub step: u16,
}

/// Many examples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Examples {
    /// All tokens.
    pub tokens: Vec<u8>,
    /// One span per example.
    pub spans: Vec<ExampleSpan>,
}

impl Examples {
    /// Forgets the examples and keeps the memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.spans.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The source of example i.
    pub fn src(&self, i: usize) -> &[u8] {
        let s = &self.spans[i];
        &self.tokens[s.start as usize..][..usize::from(s.src_len)]
    }

    /// The target of example i.
    pub fn tgt(&self, i: usize) -> &[u8] {
        let s = &self.spans[i];
        &self.tokens[s.start as usize + usize::from(s.src_len)..][..usize::from(s.tgt_len)]
    }

    /// What example i does.
    pub fn kind(&self, i: usize) -> StepKind {
        self.spans[i].kind
    }

    pub(crate) fn push(
        &mut self,
        (kind, class): (StepKind, StepClass),
        proof: u64,
        step: usize,
        src: &[u8],
        tgt: &[u8],
    ) {
        self.spans.push(ExampleSpan {
            start: self.tokens.len() as u32,
            src_len: src.len() as u16,
            tgt_len: tgt.len() as u16,
            kind,
            class,
            proof: proof as u32,
            step: step as u16,
        });
        self.tokens.extend_from_slice(src);
        self.tokens.extend_from_slice(tgt);
    }
}

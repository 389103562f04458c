//! Step examples as tokens, flat in memory: what training reads.
//!
//! The tokens of an example are its source and then its target, without `<s>` and `</s>`.

use crate::arithmetic::Probe;
use crate::guard::Guard;
use crate::proof::{Line, Proof};
use crate::sample::Polynomials;
use crate::space::SpaceError;
use crate::stream::Purpose;
use crate::task::{Setting, StepKind, Task};

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

    pub(crate) fn push(&mut self, kind: StepKind, proof: u64, step: usize, src: &[u8], tgt: &[u8]) {
        self.spans.push(ExampleSpan {
            start: self.tokens.len() as u32,
            src_len: src.len() as u16,
            tgt_len: tgt.len() as u16,
            kind,
            proof: proof as u32,
            step: step as u16,
        });
        self.tokens.extend_from_slice(src);
        self.tokens.extend_from_slice(tgt);
    }
}

/// Draws proofs of a task and writes their steps as tokens. Built once per (task, seed, purpose).
#[derive(Debug)]
pub struct Sampler {
    task: Task,
    seed: u64,
    purpose: Purpose,
    polynomials: Polynomials,
    probe: Probe,
    rejected: u64,
    drawn: u64,
}

impl Sampler {
    /// Fails if the task's choices do not fit together or its space cannot be sampled.
    pub fn new(task: &Task, seed: u64, purpose: Purpose) -> Result<Sampler, SpaceError> {
        task.validate()?;
        Ok(Sampler {
            polynomials: Polynomials::new(&task.space, task.vars, task.style, seed, purpose)?,
            probe: Probe::new(seed),
            task: task.clone(),
            seed,
            purpose,
            rejected: 0,
            drawn: 0,
        })
    }

    /// Draws polynomial `index`; with a guard, draws again from the same stream while its endpoint is guarded.
    pub fn draw(&mut self, index: u64, guard: Option<&Guard>) {
        self.polynomials.draw(index);
        self.drawn += 1;
        while guard.is_some_and(|g| g.contains(self.polynomials.endpoint_fingerprint())) {
            self.rejected += 1;
            self.drawn += 1;
            self.polynomials.redraw();
        }
    }

    /// Appends all step examples of proof `index`.
    pub fn write_examples(&mut self, index: u64, guard: Option<&Guard>, out: &mut Examples) {
        if self.task.setting == Setting::Arithmetic {
            let line = self.exercise_line(index);
            out.push(line.kind, index, 0, &line.input, &line.target);
            return;
        }
        self.draw(index, guard);
        self.write_reference(index, out);
    }

    /// The slow and obvious way to write the drawn polynomial's steps, by way of [`Proof`].
    pub(crate) fn write_reference(&self, index: u64, out: &mut Examples) {
        let Task { setting, granularity, notation, style, .. } = self.task;
        let proof = Proof::of(&self.polynomials.state(), granularity, style)
            .expect("the caps keep every sampled coefficient below 2^64");
        for (i, line) in proof.lines(setting, notation, style).iter().enumerate() {
            out.push(line.kind, index, i, &line.input, &line.target);
        }
    }

    /// The structured proof of polynomial `index`.
    pub fn proof(&mut self, index: u64, guard: Option<&Guard>) -> Proof {
        self.draw(index, guard);
        Proof::of(&self.polynomials.state(), self.task.granularity, self.task.style)
            .expect("the caps keep every sampled coefficient below 2^64")
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The seed of its stream.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The purpose of its stream.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    pub(crate) fn exercise_line(&self, index: u64) -> Line {
        self.probe.line(index, self.task.notation)
    }

    /// How many polynomials the guard refused.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// How many polynomials were drawn, refused ones included.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }
}

//! How far decoding is. It takes minutes on a CPU, so it must not be silent, and it must stop when a signal arrives.

use polystep_engine::EngineError;
use polystep_learn::decode::{Branch, Capacity, Stepper, TopTokens};

use crate::interrupt;
use crate::progress::WorkProgress;

/// A stepper that reports how many sources it has answered.
pub struct ReportingStepper<'a> {
    stepper: &'a mut dyn Stepper,
    progress: WorkProgress,
    /// Sources that it is answering now.
    begun: u64,
}

impl<'a> ReportingStepper<'a> {
    /// Reports how `stepper` answers about `total` sources; `what` they are is a plural noun.
    pub fn new(stepper: &'a mut dyn Stepper, what: impl Into<String>, total: usize) -> Self {
        ReportingStepper { stepper, progress: WorkProgress::new(what, total as u64), begun: 0 }
    }
}

impl Stepper for ReportingStepper<'_> {
    fn capacity(&self) -> Capacity {
        self.stepper.capacity()
    }

    fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError> {
        self.progress.add(self.begun);
        self.begun = sources.len() as u64;
        self.stepper.begin(sources)
    }

    fn step(&mut self, position: usize, open: &[Branch], k: usize, out: &mut TopTokens) -> Result<(), EngineError> {
        if interrupt::check().is_err() {
            return Err(EngineError::Device { what: "decoding".into(), message: "interrupted".into() });
        }
        self.stepper.step(position, open, k, out)
    }
}

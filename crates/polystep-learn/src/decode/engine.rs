//! A trained model as a [`Stepper`], on any device: two programs that share the encoder's keys and values.

use super::{Branch, Capacity, Stepper, TopTokens};
use crate::model::{DecodingPrograms, ModelConfig, ParamLayout, decoding_programs};
use polystep_core::token::EOS;
use polystep_engine::{Batch, EngineError, Executor, Limits, Program, Scalars};

/// How many best tokens a step reports for each hypothesis: as many as a beam of five needs.
const K: usize = 6;

const ENCODE: usize = 0;
const STEP: usize = 1;

/// A model on a device, ready to decode.
pub struct EngineStepper<'a> {
    executor: Box<dyn Executor + 'a>,
    positions: usize,
    batch: Batch,
}

impl<'a> EngineStepper<'a> {
    /// Makes the programs, calls `make` to build an executor for them, and gives it the parameters. `hypotheses` is how many
    /// hypotheses are extended at once.
    pub fn new(
        config: &ModelConfig,
        layout: &ParamLayout,
        params: &[f32],
        hypotheses: usize,
        make: impl FnOnce(Vec<Program>, Limits) -> Result<Box<dyn Executor + 'a>, EngineError>,
    ) -> Result<Self, EngineError> {
        let positions = config.max_positions;
        let DecodingPrograms { encode, step } = decoding_programs(config, layout, positions, K);
        // Sources have about 50 tokens. A group of longer sources has fewer of them. A CPU, which extends few at a time, need not
        // hold more; a GPU is faster the more it holds.
        let src_tokens = (hypotheses * if hypotheses < 1024 { 48 } else { 96 }).max(config.max_positions);
        let limits = Limits { sequences: hypotheses, src_tokens, tgt_tokens: hypotheses };
        let mut executor = make(vec![encode, step], limits)?;
        executor.set_params(params)?;
        Ok(EngineStepper { executor, positions, batch: Batch::default() })
    }

    /// For people.
    pub fn device(&self) -> String {
        self.executor.device()
    }

    fn run(&mut self, program: usize) -> Result<(), EngineError> {
        self.executor.run(program, &self.batch, &Scalars { step: 1, ..Scalars::default() })
    }
}

impl Stepper for EngineStepper<'_> {
    fn capacity(&self) -> Capacity {
        let limits = self.executor.limits();
        Capacity { hypotheses: limits.sequences, tokens: limits.src_tokens, longest: self.positions }
    }

    fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError> {
        self.batch.clear();
        for source in sources {
            let ids = source.iter().copied().chain([EOS]).map(i32::from);
            self.batch.src.push(ids);
        }
        self.run(ENCODE)
    }

    fn step(&mut self, position: usize, open: &[Branch], k: usize, out: &mut TopTokens) -> Result<(), EngineError> {
        if k > K {
            return Err(EngineError::Limit { what: "best tokens per hypothesis", got: k, limit: K });
        }
        let batch = &mut self.batch;
        batch.clear();
        for hypothesis in open {
            batch.tgt.ids.push(i32::from(hypothesis.token));
            batch.tgt.pos.push(position as i32);
            batch.tgt.cu.push(batch.tgt.ids.len() as i32);
            batch.hypotheses.parents.push(hypothesis.parent as i32);
            batch.hypotheses.sources.push(hypothesis.source as i32);
        }
        batch.hypotheses.position = position;
        self.run(STEP)?;
        self.executor.results()?;
        self.executor.top(&mut out.tokens, &mut out.logprobs)?;
        if k < K {
            keep_first(&mut out.tokens, K, k);
            keep_first(&mut out.logprobs, K, k);
        }
        out.k = k;
        Ok(())
    }
}

/// The first `keep` values of each row of `width` values.
fn keep_first<T: Copy>(rows: &mut Vec<T>, width: usize, keep: usize) {
    let rows_now = rows.len() / width;
    for row in 0..rows_now {
        rows.copy_within(row * width..row * width + keep, row * keep);
    }
    rows.truncate(rows_now * keep);
}

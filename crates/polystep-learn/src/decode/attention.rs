//! Where the model looks while it writes: the cross-attention of its last decoder layer, averaged over the heads.
//!
//! Decoding itself keeps no probabilities. They are read out of a forward pass over the finished output, in which every token
//! sees the same keys as when it was written. The pass keeps queries, keys and log-sum-exp; a probability is
//! exp(q·k/√dim − lse).

use polystep_core::token::{BOS, EOS};
use polystep_engine::cpu::Cpu;
use polystep_engine::{Attention, Batch, EngineError, Executor, Inspect, Limits, Scalars};

use crate::model::{ModelConfig, ParamLayout, attention_program};

/// How much each token of an output attended to each token of the source.
#[derive(Clone, PartialEq, Debug)]
pub struct AttentionMap {
    /// Tokens of the source, its `</s>` included.
    pub source: usize,
    /// A row for each token of the output and one for its `</s>`; each adds up to 1.
    pub weights: Vec<f32>,
}

impl AttentionMap {
    /// The row of one token of the output.
    pub fn row(&self, token: usize) -> &[f32] {
        &self.weights[token * self.source..(token + 1) * self.source]
    }
}

/// A model whose attention can be read, on the CPU.
pub struct CrossAttention {
    cpu: Cpu,
    op: Attention,
    positions: usize,
}

impl CrossAttention {
    /// A model with these parameters; 0 threads means one per core.
    pub fn new(
        config: &ModelConfig,
        layout: &ParamLayout,
        params: &[f32],
        threads: usize,
    ) -> Result<CrossAttention, EngineError> {
        let (program, op) = attention_program(config, layout);
        let positions = config.max_positions;
        let limits = Limits { sequences: 1, src_tokens: positions, tgt_tokens: positions };
        let mut cpu = Cpu::new(vec![program], limits, threads)?;
        cpu.set_params(params)?;
        Ok(CrossAttention { cpu, op, positions })
    }

    /// The attention from an output to its source, both without `</s>`; none if one of them is too long for the model.
    pub fn of(&mut self, source: &[u8], output: &[u8]) -> Result<Option<AttentionMap>, EngineError> {
        if source.len().max(output.len()) >= self.positions {
            return Ok(None);
        }
        let mut batch = Batch::default();
        batch.src.push(source.iter().copied().chain([EOS]).map(i32::from));
        // The token at a place is written from the one before it.
        batch.tgt.push([BOS].iter().chain(output).copied().map(i32::from));
        self.cpu.run(0, &batch, &Scalars { step: 1, ..Scalars::default() })?;
        self.cpu.results()?;
        let Attention { q, k, heads, lse, .. } = self.op;
        let width = |slot| self.cpu.programs()[0].info(slot).cols;
        let (q_cols, k_cols) = (width(q.slot), width(k.slot));
        let (queries, keys, lse) = (self.cpu.read(0, q.slot)?, self.cpu.read(0, k.slot)?, self.cpu.read(0, lse)?);
        let (rows, source) = (output.len() + 1, source.len() + 1);
        let scale = 1.0 / (heads.dim as f32).sqrt();
        let mut weights = vec![0.0; rows * source];
        for (row, weights) in weights.chunks_mut(source).enumerate() {
            for head in 0..heads.count {
                let at = q.col + row * q_cols + head * heads.dim;
                let query = &queries[at..at + heads.dim];
                for (key, weight) in weights.iter_mut().enumerate() {
                    let at = k.col + key * k_cols + head * heads.dim;
                    let score: f32 = query.iter().zip(&keys[at..at + heads.dim]).map(|(a, b)| a * b).sum();
                    *weight += (score * scale - lse[row * heads.count + head]).exp() / heads.count as f32;
                }
            }
        }
        Ok(Some(AttentionMap { source, weights }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RunConfig;
    use crate::model::initial_params;

    fn model(toml: &str) -> (ModelConfig, ParamLayout, Vec<f32>) {
        let text = format!("[data]\nconfig = \"small_coeff\"\n[model]\nd = 64\nlayers = 2\nmax_positions = 40\n{toml}");
        let config = RunConfig::from_toml(&text, &[]).unwrap().model;
        let layout = ParamLayout::new(&config);
        let params = initial_params(&config, &layout, 7);
        (config, layout, params)
    }

    /// The probabilities add up to 1, and with them the values give what the layer itself computed.
    #[test]
    fn the_probabilities_are_those_of_the_layer() {
        for (norm, heads) in [("pre", 1), ("post", 1), ("pre", 4)] {
            let (config, layout, mut params) = model(&format!("norm = \"{norm}\"\nheads = {heads}\n"));
            // Larger weights, so that attention is far from uniform.
            params.iter_mut().for_each(|p| *p *= 3.0);
            let mut attention = CrossAttention::new(&config, &layout, &params, 1).unwrap();
            let (source, output) = ([10, 11, 12, 13, 14], [20, 21, 22]);
            let map = attention.of(&source, &output).unwrap().unwrap();
            assert_eq!((map.source, map.weights.len()), (6, 4 * 6));
            for row in 0..4 {
                let total: f32 = map.row(row).iter().sum();
                assert!((total - 1.0).abs() < 1e-5, "{norm}: {total}");
            }
            assert!(map.weights.iter().any(|&w| w > 0.3), "{:?}", map.weights);
            // The mean over the heads says what one head did only if there is one.
            if heads > 1 {
                continue;
            }
            let Attention { v, out, .. } = attention.op;
            let cols = attention.cpu.programs()[0].info(v.slot).cols;
            let (values, outs) = (attention.cpu.read(0, v.slot).unwrap(), attention.cpu.read(0, out).unwrap());
            for row in 0..4 {
                for column in 0..config.d {
                    let mixed: f32 = (0..6).map(|key| map.row(row)[key] * values[v.col + key * cols + column]).sum();
                    let found = outs[row * config.d + column];
                    assert!((mixed - found).abs() < 1e-4 * (1.0 + found.abs()), "{norm}: {mixed} is not {found}");
                }
            }
        }
    }

    #[test]
    fn what_is_too_long_has_no_attention() {
        let (config, layout, params) = model("");
        let mut attention = CrossAttention::new(&config, &layout, &params, 1).unwrap();
        assert!(attention.of(&[10; 40], &[10]).unwrap().is_none());
        assert!(attention.of(&[10; 39], &[10; 39]).unwrap().is_some());
    }
}

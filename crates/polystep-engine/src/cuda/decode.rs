//! The ops of a decoder step as launches. A program that has them also gets one launch that brings the lineage up to date,
//! before its first attention.

use super::compile::Unit;
use super::driver::{Args, Shape};
use super::record::{Recorder, Work};
use super::schedule::{Lane, Res};
use crate::{EngineError, Op};

/// Of the executor's own buffers, the table of lineages.
const LINEAGE: Res = Res::Shared(3);

impl Recorder<'_> {
    pub(super) fn cached_attention(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::CachedAttention { qkv, cache, heads, head_dim, out } = op else { return Ok(()) };
        self.check_heads(*head_dim, &[(*qkv).into()])?;
        let unit = Unit::new("decode.cu", &[("HD", *head_dim)]);
        let lanes = self.machine.limits.sequences;
        let first = self.info().ops[..self.op].iter().all(|op| !matches!(op, Op::CachedAttention { .. }));
        let (even, odd) = self.machine.lineage();
        if first {
            let args =
                Args::default().ptr(self.input(self.layout.parents)).ptr(even).ptr(odd).ptr(self.input(0)).int(lanes);
            let kernel = self.machine.kernel(unit.clone(), "lineage")?;
            let shape = Shape { grid: (self.rows[1].div_ceil(256), 32, 1), block: (256, 1), shared: 0 };
            self.submit("lineage", Lane::Main, &[], &[LINEAGE], Work::Kernel(kernel, shape, args))?;
        }
        let args = Args::default()
            .ptr(self.at(*qkv))
            .ptr(self.at(*cache))
            .ptr(self.at(*out))
            .ptr(even)
            .ptr(odd)
            .ptr(self.input(0))
            .int(lanes)
            .int(*heads);
        let kernel = self.machine.kernel(unit, "cached_attention")?;
        let work = Work::Kernel(kernel, self.per_lane(*heads), args);
        let reads = [Res::Slot(qkv.0), LINEAGE];
        self.submit("cached_attention", Lane::Main, &reads, &[Res::Slot(cache.0), Res::Slot(out.0)], work)
    }

    pub(super) fn lane_attention(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::LaneAttention { q, k, v, heads, head_dim, out } = op else { return Ok(()) };
        self.check_heads(*head_dim, &[(*q).into(), *k, *v])?;
        let args = Args::default()
            .ptr(self.at(*q))
            .ptr(self.view(*k))
            .ptr(self.view(*v))
            .int(self.cols(k.slot))
            .int(self.cols(v.slot))
            .ptr(self.at(*out))
            .ptr(self.input(self.layout.cu[0]))
            .ptr(self.input(self.layout.sources))
            .ptr(self.input(0))
            .int(*heads);
        let kernel = self.machine.kernel(Unit::new("decode.cu", &[("HD", *head_dim)]), "lane_attention")?;
        let work = Work::Kernel(kernel, self.per_lane(*heads), args);
        let reads = [q, &k.slot, &v.slot].map(|slot| Res::Slot(slot.0));
        self.submit("lane_attention", Lane::Main, &reads, &[Res::Slot(out.0)], work)
    }

    pub(super) fn top_tokens(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::TopTokens { logits, k } = op else { return Ok(()) };
        let (tokens, logprobs) = self.machine.top();
        let args = Args::default().ptr(self.at(*logits)).ptr(tokens).ptr(logprobs).ptr(self.input(0)).int(*k);
        let kernel = self.machine.kernel(Unit::new("top.cu", &[("V", self.cols(*logits))]), "top_tokens")?;
        let work = Work::Kernel(kernel, Shape::flat(self.rows[1].div_ceil(4), 128), args);
        self.submit("top_tokens", Lane::Main, &[Res::Slot(logits.0)], &[Res::Shared(4)], work)
    }

    fn per_lane(&self, heads: usize) -> Shape {
        Shape { grid: (self.rows[1], heads.div_ceil(4), 1), block: (128, 1), shared: 0 }
    }
}

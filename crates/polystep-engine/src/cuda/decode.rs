//! The ops of a decoder step as launches. A program with such ops gets one more launch before its first attention. It updates the
//! lineage: which hypothesis of each earlier step a hypothesis descends from.

use super::compile::Unit;
use super::driver::{Args, Grid};
use super::lower::slots;
use super::record::Recorder;
use super::schedule::{Path, Resource};
use crate::{BestTokens, CachedAttention, Heads, Op, Result, SourceAttention};

impl Recorder<'_> {
    pub(super) fn cached_attention(&mut self, it: &CachedAttention) -> Result {
        self.check_heads(it.heads, &[it.qkv.into()])?;
        let unit = Unit::new("decode.cu", &[("HD", it.heads.dim)]);
        let most = self.machine.limits.sequences;
        let first = self.info().ops[..self.op].iter().all(|op| !matches!(op, Op::CachedAttention(_)));
        let lineages = self.machine.lineages();
        if first {
            let parents = self.input(self.block.parents);
            let args = Args::default().ptr(parents).ptrs(lineages).ptr(self.head()).int(most);
            let grid = Grid { blocks: (self.rows[1].div_ceil(256), 32, 1), threads: (256, 1), shared: 0 };
            let work = self.kernel(&unit, "lineage", grid, args)?;
            self.submit(Path::Critical, &[], &[Resource::Lineages], work)?;
        }
        let args = Args::default()
            .ptrs([it.qkv, it.cache, it.out].map(|slot| self.at(slot)))
            .ptrs(lineages)
            .ptr(self.head())
            .ints([most, it.heads.count]);
        let work = self.kernel(&unit, "cached_attention", self.per_hypothesis(it.heads), args)?;
        let reads = [Resource::Slot(it.qkv.0), Resource::Lineages];
        self.submit(Path::Critical, &reads, &slots([it.cache, it.out]), work)
    }

    pub(super) fn source_attention(&mut self, it: &SourceAttention) -> Result {
        self.check_heads(it.heads, &[it.q.into(), it.k, it.v])?;
        let args = Args::default()
            .ptrs([self.at(it.q), self.view(it.k), self.view(it.v)])
            .ints([self.cols(it.k.slot), self.cols(it.v.slot)])
            .ptrs([self.at(it.out), self.input(self.block.cu[0]), self.input(self.block.sources), self.head()])
            .int(it.heads.count);
        let unit = Unit::new("decode.cu", &[("HD", it.heads.dim)]);
        let work = self.kernel(&unit, "source_attention", self.per_hypothesis(it.heads), args)?;
        self.submit(Path::Critical, &slots([it.q, it.k.slot, it.v.slot]), &slots([it.out]), work)
    }

    pub(super) fn best_tokens(&mut self, it: &BestTokens) -> Result {
        let (tokens, logprobs) = (self.machine.top_tokens.at, self.machine.top_logprobs.at);
        let args = Args::default().ptrs([self.at(it.logits), tokens, logprobs, self.head()]).int(it.k);
        let unit = Unit::new("top.cu", &[("V", self.cols(it.logits))]);
        let work = self.kernel(&unit, "top_tokens", Grid::flat(self.rows[1].div_ceil(4), 128), args)?;
        self.submit(Path::Critical, &slots([it.logits]), &[Resource::BestTokens], work)
    }

    fn per_hypothesis(&self, heads: Heads) -> Grid {
        Grid { blocks: (self.rows[1], heads.count.div_ceil(4), 1), threads: (128, 1), shared: 0 }
    }
}

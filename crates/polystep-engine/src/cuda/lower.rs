//! Lowers each op to launches. The arguments of a launch are in the order of the kernel's signature.
//!
//! A bias gradient is the column sums of `dy`. The kernel that writes `dy` has its columns in registers, so it also leaves their
//! sums. A separate pass computes the sums only if no kernel has left them. Weight gradients run beside the critical path
//! ([`Path::Side`]).

use super::compile::{Unit, loss_unit, pack_width};
use super::driver::{Args, Grid};
use super::gemm::{Gemm, Operands};
use super::machine::{SQUARES, token_columns};
use super::product::Next;
use super::record::{Call, Columns, Recorder, Sums, Work};
use super::schedule::{Partial, Path, Resource};
use crate::{Activate, ActivateBack, Activation, Adam, AddNorm, AddNormBack, CrossEntropy, Dropout, Dtype, Embed};
use crate::{EmbedBack, EngineError, Linear, LinearBack, NormOrder, Op, Param, Result, Slot, View, philox};

/// `struct Drop` of philox.cuh.
fn drop_words(dropout: Option<Dropout>) -> [u64; 4] {
    dropout.map_or([0; 4], |d| {
        let scale = 1.0 / (1.0 - d.p);
        [u64::from(d.site) | u64::from(philox::threshold(d.p)) << 32, u64::from(scale.to_bits()), 0, 0]
    })
}

/// Slots as resources. Absent slots are left out.
pub(super) fn slots<const N: usize>(of: [impl Into<Option<Slot>>; N]) -> Vec<Resource> {
    of.into_iter().filter_map(Into::into).map(|s| Resource::Slot(s.0)).collect()
}

/// The last argument of kernels with an activation.
pub(super) fn gelu(kind: Activation) -> i32 {
    i32::from(kind == Activation::Gelu)
}

fn four(what: &str, cols: usize) -> Result {
    if cols.is_multiple_of(4) {
        return Ok(());
    }
    Err(EngineError::Compile(format!("{what} of {cols} columns: a width must be a multiple of 4 on CUDA")))
}

impl Recorder<'_> {
    pub(super) fn lower(&mut self, op: &Op) -> Result {
        match op {
            Op::Embed(it) => self.embed(it),
            Op::EmbedBack(it) => self.embed_back(it),
            Op::AddNorm(it) => self.add_norm(it),
            Op::AddNormBack(it) => self.add_norm_back(it),
            Op::Linear(it) => self.linear(it),
            Op::LinearBack(it) => self.linear_back(it),
            Op::Activate(it) => self.activate(it),
            Op::ActivateBack(it) => self.activate_back(it),
            Op::Attention(it) => self.attention(it),
            Op::AttentionBack(it) => self.attention_back(it),
            Op::CrossEntropy(it) => self.cross_entropy(it),
            Op::CachedAttention(it) => self.cached_attention(it),
            Op::SourceAttention(it) => self.source_attention(it),
            Op::BestTokens(it) => self.best_tokens(it),
            Op::Adam(it) => self.adam(it),
        }
    }

    /// Ids, positions, tables and the norm's scale.
    fn embed_args(&self, it: &Embed) -> Args {
        let s = it.side as usize;
        Args::default()
            .ptrs([self.input(self.block.ids[s]), self.input(self.block.pos[s])])
            .ptrs([it.token, it.position, it.norm.gamma].map(|param| self.param(param)))
    }

    fn embed(&mut self, it: &Embed) -> Result {
        let (token, rows) = (it.token, self.rows[it.side as usize]);
        four("an embedding", token.cols)?;
        let args = self
            .embed_args(it)
            .ptrs([self.param(it.norm.beta), self.at(it.stat), self.at(it.out), self.at_if(it.out_act), self.head()])
            .int(rows)
            .float(it.scale)
            .raw(drop_words(it.dropout));
        let unit = Unit::new("embed.cu", &[("D", token.cols), ("V", token.rows)]);
        let work = self.kernel(&unit, "embed", Grid::flat(rows.div_ceil(4), 128), args)?;
        self.submit(Path::Critical, &[], &slots([Some(it.stat), Some(it.out), it.out_act]), work)
    }

    fn embed_back(&mut self, back: &EmbedBack) -> Result {
        let (it, g) = (&back.of, back.g);
        let (s, d, v) = (it.side as usize, it.token.cols, it.token.rows);
        four("an embedding", d)?;
        self.flush(Path::Side)?; // what there is so far, beside the kernels below
        let unit = Unit::new("embed.cu", &[("D", d), ("V", v)]);
        let (blocks, room) = self.blocks(g, 8, 3 * self.machine.device.info.processors);
        let most = self.machine.most_rows(self.info().info(g).rows);
        let rows_out = self.partial(Partial::Rows, most * d)?;
        let norm_sums = self.partial(Partial::Norm, room * 2 * d)?;
        let [res_rows, res_norm, res_token] =
            [Partial::Rows, Partial::Norm, Partial::Tokens].map(|which| Resource::Partial(self.op, which));
        let args = self
            .embed_args(it)
            .ptrs([self.at(it.stat), self.at(g), self.at_if(back.dy), rows_out, norm_sums, self.head()])
            .int(s)
            .float(it.scale)
            .raw(drop_words(it.dropout));
        let work = self.kernel(&unit, "embed_back", Grid::flat(blocks, 256), args)?;
        self.submit(Path::Side, &slots([Some(it.stat), Some(g), back.dy]), &[res_rows, res_norm], work)?;
        let sums = Sums { from: norm_sums, count: blocks, stride: 2 * d, res: res_norm };
        self.reduce_into(sums, it.norm.gamma)?;
        self.reduce_into(sums.column(d), it.norm.beta)?;

        let (chunks, room) = self.blocks(g, 32, 96);
        let width = token_columns(v, self.machine.device.shared_limit);
        let tables = self.partial(Partial::Tokens, room * v * d)?;
        let ids = self.input(self.block.ids[s]);
        let args = Args::default().ptrs([ids, rows_out, tables, self.head()]).int(s).float(it.scale);
        let grid = Grid { blocks: (chunks, d.div_ceil(width), 1), threads: (width, 1), shared: v * width * 4 };
        let work = self.kernel(&unit, "embed_back_token", grid, args)?;
        self.submit(Path::Side, &[res_rows], &[res_token], work)?;
        let sums = Sums { from: tables, count: chunks, stride: v * d, res: res_token };
        self.reduce(sums, it.token, true, Resource::Grad(it.token.offset))?;

        let position = it.position;
        let args = Args::default().ptrs([self.input(self.block.cu[s]), rows_out, self.grad(position), self.head()]);
        let grid = Grid { blocks: (position.rows, 1, 1), threads: (64, 4), shared: 0 };
        let work = self.kernel(&unit, "embed_back_position", grid, args)?;
        self.submit(Path::Side, &[res_rows], &[Resource::Grad(position.offset)], work)
    }

    fn add_norm(&mut self, it: &AddNorm) -> Result {
        let d = it.norm.gamma.len();
        four("a layer norm", d)?;
        let rows = self.rows_of(it.x);
        let args = Args::default()
            .ptrs([self.at(it.x), self.at_if(it.f), self.param(it.norm.gamma), self.param(it.norm.beta)])
            .ptrs([self.at(it.s), self.at(it.stat), self.at(it.y), self.at_if(it.y_stream), self.head()])
            .int(rows)
            .raw(drop_words(it.dropout));
        let writes = slots([it.f.map(|_| it.s), Some(it.stat), Some(it.y), it.y_stream]);
        for slot in [it.s, it.y] {
            self.overwritten(slot);
        }
        let unit = Unit::new("norm.cu", &[("D", d)]);
        let work = self.kernel(&unit, "addnorm", Grid::flat(rows.div_ceil(4), 128), args)?;
        self.submit(Path::Critical, &slots([Some(it.x), it.f]), &writes, work)
    }

    fn add_norm_back(&mut self, back: &AddNormBack) -> Result {
        let (it, g) = (&back.of, back.g);
        let d = it.norm.gamma.len();
        four("a layer norm", d)?;
        let (blocks, room) = self.blocks(g, 8, 3 * self.machine.device.info.processors);
        let from = self.partial(Partial::Norm, room * 3 * d)?;
        let res = Resource::Partial(self.op, Partial::Norm);
        let args = Args::default()
            .ptrs([self.at(it.s), self.at(it.stat), self.param(it.norm.gamma), self.at(g), self.at(back.dy)])
            .ptrs([self.at_if(back.df), from, self.head()])
            .ints([self.side_of(g), self.rows_of(g) as i32])
            .ints([back.order == NormOrder::Post, back.first].map(i32::from))
            .raw(drop_words(it.dropout));
        let mut writes = slots([Some(g), back.df]);
        writes.push(res);
        let unit = Unit::new("norm.cu", &[("D", d)]);
        let work = self.kernel(&unit, "addnorm_back", Grid::flat(blocks, 256), args)?;
        self.submit(Path::Critical, &slots([it.s, it.stat, back.dy, g]), &writes, work)?;
        let sums = Sums { from, count: blocks, stride: 3 * d, res };
        self.reduce_into(sums, it.norm.gamma)?;
        self.reduce_into(sums.column(d), it.norm.beta)?;
        if let Some(df) = back.df {
            self.overwritten(df);
            self.summed(df, Columns { col: 0, width: d, sums: sums.column(2 * d) });
        }
        Ok(())
    }

    fn linear(&mut self, it: &Linear) -> Result {
        let &Linear { x, w, b, y } = it;
        if self.product(Next::Nothing, x, w, b, y)? {
            return Ok(());
        }
        let gemm = Gemm {
            a_transposed: true,
            wide: self.info().info(y.slot).dtype == Dtype::F32,
            bias: b.is_some(),
            ..Gemm::new((w.rows, self.rows_of(x.slot), w.cols), [w.cols, self.cols(x.slot), self.cols(y.slot)])
        };
        let at = Operands { a: self.copy(w), b: self.view(x), d: self.view(y), bias: b.map_or(0, |b| self.copy(b)) };
        self.overwritten(y.slot);
        let label = format!("linear {}x{}x{}", gemm.n, gemm.m, gemm.k);
        let work = Work { label, call: Call::Gemm(gemm, at) };
        self.submit(Path::Critical, &slots([x.slot]), &slots([y.slot]), work)
    }

    fn linear_back(&mut self, back: &LinearBack) -> Result {
        let LinearBack { of: Linear { x, w, b, .. }, dy, dx } = *back;
        if self.is_wide(dy, w, b)? {
            if let Some(dx) = dx {
                self.wide_input_gradient(w, dy, dx)?;
            }
            return self.wide_weight_gradient(x, w, dy);
        }
        self.bias_gradient(dy, b)?;
        // dx comes first, because the next op waits for it; unless it overwrites what the weight gradient reads.
        let in_place = dx.is_some_and(|dx| dx.slot == x.slot || dx.slot == dy.slot);
        if in_place {
            self.weight_gradient(x, w, dy)?;
        }
        if let Some(dx) = dx {
            self.input_gradient(w, dy, dx)?;
        }
        if in_place { Ok(()) } else { self.weight_gradient(x, w, dy) }
    }

    /// The gradient of a bias: from the sums that the producer of `dy` left, or by a separate pass.
    pub(super) fn bias_gradient(&mut self, dy: View, b: Option<Param>) -> Result {
        match b {
            Some(b) if !self.bias_from_columns(dy, b)? => {
                let sums = self.column_pass(dy, b.len(), None)?;
                self.reduce_into(sums, b)
            }
            _ => Ok(()),
        }
    }

    fn input_gradient(&mut self, w: Param, dy: View, dx: View) -> Result {
        if self.product(Next::Input, dy, w, None, dx)? {
            return Ok(());
        }
        let (rows, lds) = (self.rows_of(dy.slot), [w.cols, self.cols(dy.slot), self.cols(dx.slot)]);
        let gemm = Gemm::new((w.cols, rows, w.rows), lds);
        let at = Operands { a: self.copy(w), b: self.view(dy), d: self.view(dx), bias: 0 };
        self.overwritten(dx.slot);
        let work = Work { label: format!("dx {}x{}x{}", rows, w.cols, w.rows), call: Call::Gemm(gemm, at) };
        self.submit(Path::Critical, &slots([dy.slot]), &slots([dx.slot]), work)
    }

    pub(super) fn weight_gradient(&mut self, x: View, w: Param, dy: View) -> Result {
        if self.weight_product(x, w, dy)? {
            return Ok(());
        }
        let (rows, lds) = (self.rows_of(dy.slot), [self.cols(x.slot), self.cols(dy.slot), w.cols]);
        let beside = self.machine.device.info.processors / 2;
        let gemm = Gemm { b_transposed: true, wide: true, beside, ..Gemm::new((w.cols, w.rows, rows), lds) };
        let at = Operands { a: self.view(x), b: self.view(dy), d: self.grad(w), bias: 0 };
        let work = Work { label: format!("dw {}x{}x{}", w.rows, w.cols, rows), call: Call::Gemm(gemm, at) };
        self.submit(Path::Side, &slots([x.slot, dy.slot]), &[Resource::Grad(w.offset)], work)
    }

    /// The column sums of `columns` columns of `d`, first multiplied by the slope of an activation if there is one.
    fn column_pass(&mut self, d: View, columns: usize, of: Option<&Activate>) -> Result<Sums> {
        let (slot, cols) = (d.slot, self.cols(d.slot));
        let width = pack_width(cols).min(pack_width(d.col)).min(pack_width(columns));
        let packs = columns / width;
        let tx = packs.clamp(1, 256);
        let ty = 256 / tx;
        let (count, room) = self.blocks(slot, ty * 3, 4 * self.machine.device.info.processors);
        let from = self.partial(Partial::Columns, room * columns)?;
        let args = Args::default()
            .ptrs([of.map_or(0, |of| self.at(of.x)), self.view(d), from, self.head()])
            .ints([self.side_of(slot), self.rows_of(slot) as i32])
            .ints([packs, cols / width])
            .int(of.map_or(2, |of| gelu(of.kind)));
        let grid = Grid { blocks: (count, 1, 1), threads: (tx, ty), shared: tx * ty * width * 4 };
        let unit = Unit::new("activate.cu", &[("VEC", width)]);
        let mut work = self.kernel(&unit, "activate_back", grid, args)?;
        let res = Resource::Partial(self.op, Partial::Columns);
        let (mut path, mut writes) = (Path::Critical, vec![res]);
        match of {
            Some(_) => writes.extend(slots([slot])),
            None => (path, work.label) = (Path::Side, "column_sums".into()),
        }
        self.submit(path, &slots([Some(slot), of.map(|of| of.x)]), &writes, work)?;
        Ok(Sums { from, count, stride: columns, res })
    }

    fn activate(&mut self, it: &Activate) -> Result {
        let width = pack_width(self.cols(it.x));
        let packs = self.rows_of(it.x) * self.cols(it.x) / width;
        let args = Args::default().ptrs([self.at(it.x), self.at(it.y)]).int(packs).int(gelu(it.kind));
        self.overwritten(it.y);
        let unit = Unit::new("activate.cu", &[("VEC", width)]);
        let work = self.kernel(&unit, "activate", Grid::flat(packs.div_ceil(256), 256), args)?;
        self.submit(Path::Critical, &slots([it.x]), &slots([it.y]), work)
    }

    fn activate_back(&mut self, back: &ActivateBack) -> Result {
        let (d, width) = (back.d, self.cols(back.d));
        self.overwritten(d);
        let sums = self.column_pass(d.into(), width, Some(&back.of))?;
        self.summed(d, Columns { col: 0, width, sums });
        Ok(())
    }

    fn cross_entropy(&mut self, it: &CrossEntropy) -> Result {
        let (logits, rows) = (it.logits, self.rows[1]);
        let unit = loss_unit(self.cols(logits), self.info().info(logits).dtype);
        let losses = [self.machine.row_loss.at, self.machine.row_right.at];
        let args = Args::default()
            .ptrs([self.at(logits), self.input(self.block.labels)])
            .ptrs(losses)
            .ptr(self.head())
            .int(rows)
            .int(i32::from(it.backward));
        let mut writes = vec![Resource::RowLosses];
        if it.backward {
            writes.extend(slots([logits]));
            self.overwritten(logits);
        }
        let work = self.kernel(&unit, "loss_rows", Grid::flat(rows.div_ceil(4), 128), args)?;
        self.submit(Path::Critical, &slots([logits]), &writes, work)?;
        let (right, ring) = (self.machine.right.at, self.machine.ring.at);
        let args = Args::default().ptrs(losses).ptrs([self.input(self.block.cu[1]), right, ring, self.head()]);
        let work = self.kernel(&unit, "loss_sum", Grid::flat(1, 1024), args)?;
        self.submit(Path::Side, &[Resource::RowLosses], &[Resource::StepResult], work)
    }

    fn adam(&mut self, it: &Adam) -> Result {
        self.flush(Path::Critical)?;
        self.join()?;
        let unit = Unit::new("optimiser.cu", &[]);
        let groups = self.machine.flat / 4;
        let (grads, squares) = (self.machine.grads.at, self.machine.squares.at);
        let args = Args::default().ptrs([grads, squares]).int(groups);
        let work = self.kernel(&unit, "square", Grid::flat(SQUARES, 256), args)?;
        self.submit(Path::Critical, &[], &[Resource::Squares], work)?;
        let machine = &self.machine;
        let args = Args::default()
            .ptrs([grads, machine.params.at, machine.first.at, machine.second.at, machine.copy.at])
            .ptrs([if it.averages() { machine.average.at } else { 0 }, squares])
            .int(SQUARES)
            .ptrs([self.head(), machine.ring.at])
            .int(groups);
        let args = [it.beta1, it.beta2, it.weight_decay, it.clip].into_iter().fold(args, Args::float);
        let blocks = groups.div_ceil(256).clamp(1, 8 * machine.device.info.processors);
        let work = self.kernel(&unit, "adam", Grid::flat(blocks, 256), args)?;
        self.submit(Path::Critical, &[Resource::Squares], &[Resource::StepResult], work)
    }
}

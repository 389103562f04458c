//! Each op as launches. The arguments of every launch stand in the order of the kernel's signature.
//!
//! Bias gradients: the kernel that writes `dy` has its columns in registers and leaves their sums beside it; only where no
//! such sums exist does a pass of its own add them up. Weight gradients leave the critical path (Lane::Side).

use super::compile::{Unit, pack_width};
use super::driver::{Args, Shape};
use super::gemm::{Gemm, Operands};
use super::machine::{SQUARES, token_columns};
use super::product::Next;
use super::record::{Columns, Recorder, Work};
use super::schedule::{Lane, Res};
use crate::{Activation, Dropout, Dtype, EngineError, NormOrder, Op, Param, Slot, View, philox};

/// `struct Drop` of philox.cuh.
fn drop_words(dropout: Option<Dropout>) -> [u64; 4] {
    dropout.map_or([0; 4], |d| {
        let scale = 1.0 / (1.0 - d.p);
        [u64::from(d.site) | u64::from(philox::threshold(d.p)) << 32, u64::from(scale.to_bits()), 0, 0]
    })
}

/// An optional slot's resource.
pub(super) fn slots<const N: usize>(of: [Option<Slot>; N]) -> Vec<Res> {
    of.into_iter().flatten().map(|s| Res::Slot(s.0)).collect()
}

fn four(what: &str, cols: usize) -> Result<(), EngineError> {
    if cols.is_multiple_of(4) {
        return Ok(());
    }
    Err(EngineError::Compile(format!("{what} of {cols} columns: a width must be a multiple of 4 on CUDA")))
}

impl Recorder<'_> {
    pub(super) fn lower(&mut self, op: &Op) -> Result<(), EngineError> {
        match op {
            Op::Embed { .. } => self.embed(op),
            Op::EmbedBack { .. } => self.embed_back(op),
            Op::AddNorm { .. } => self.add_norm(op),
            Op::AddNormBack { .. } => self.add_norm_back(op),
            Op::Linear { x, w, b, y } => self.linear(*x, *w, *b, *y),
            Op::LinearBack { x, w, b, dy, dx } => self.linear_back(*x, *w, *b, *dy, *dx),
            Op::Activate { kind, x, y } => self.activate(*kind, *x, *y),
            Op::ActivateBack { kind, x, d } => self.activate_back(*kind, *x, *d),
            Op::Attention { .. } => self.attention(op),
            Op::AttentionBack { .. } => self.attention_back(op),
            Op::CrossEntropy { logits, backward } => self.cross_entropy(*logits, *backward),
            Op::CachedAttention { .. } => self.cached_attention(op),
            Op::LaneAttention { .. } => self.lane_attention(op),
            Op::TopTokens { .. } => self.top_tokens(op),
            Op::Adam { .. } => self.adam(op),
        }
    }

    fn embed(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::Embed { side, token, position, norm, scale, dropout, stat, out, out_act } = op else { return Ok(()) };
        four("an embedding", token.cols)?;
        let s = *side as usize;
        let args = Args::default()
            .ptr(self.input(self.layout.ids[s]))
            .ptr(self.input(self.layout.pos[s]))
            .ptr(self.param(*token))
            .ptr(self.param(*position))
            .ptr(self.param(norm.gamma))
            .ptr(self.param(norm.beta))
            .ptr(self.at(*stat))
            .ptr(self.at(*out))
            .ptr(out_act.map_or(0, |slot| self.at(slot)))
            .ptr(self.input(0))
            .int(self.rows[s])
            .float(*scale)
            .raw(drop_words(*dropout));
        let kernel = self.machine.kernel(Unit::new("embed.cu", &[("D", token.cols), ("V", token.rows)]), "embed")?;
        let shape = Shape::flat(self.rows[s].div_ceil(4), 128);
        let writes = slots([Some(*stat), Some(*out), *out_act]);
        self.submit("embed", Lane::Main, &[], &writes, Work::Kernel(kernel, shape, args))
    }

    fn embed_back(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::EmbedBack { side, token, position, norm, scale, dropout, stat, g, dy } = op else { return Ok(()) };
        let (s, d, v) = (*side as usize, token.cols, token.rows);
        four("an embedding", d)?;
        self.flush(Lane::Side)?; // what there is so far, beside the kernels below
        let unit = Unit::new("embed.cu", &[("D", d), ("V", v)]);
        let (blocks, room) = self.blocks(*g, 8, 3 * self.machine.device.info.processors);
        let most = self.machine.most_rows(self.info().info(*g).rows);
        let rows_out = self.partial(0, most * d)?;
        let norm_sums = self.partial(1, room * 2 * d)?;
        let (res_rows, res_norm, res_token) =
            (Res::Partial(self.op, 0), Res::Partial(self.op, 1), Res::Partial(self.op, 2));
        let ids = self.input(self.layout.ids[s]);
        let args = Args::default()
            .ptr(ids)
            .ptr(self.input(self.layout.pos[s]))
            .ptr(self.param(*token))
            .ptr(self.param(*position))
            .ptr(self.param(norm.gamma))
            .ptr(self.at(*stat))
            .ptr(self.at(*g))
            .ptr(dy.map_or(0, |slot| self.at(slot)))
            .ptr(rows_out)
            .ptr(norm_sums)
            .ptr(self.input(0))
            .int(s)
            .float(*scale)
            .raw(drop_words(*dropout));
        let kernel = self.machine.kernel(unit.clone(), "embed_back")?;
        let reads = slots([Some(*stat), Some(*g), *dy]);
        let work = Work::Kernel(kernel, Shape::flat(blocks, 256), args);
        self.submit("embed_back", Lane::Side, &reads, &[res_rows, res_norm], work)?;
        self.reduce(norm_sums, blocks, 2 * d, norm.gamma, false, res_norm, Res::Grad(norm.gamma.offset))?;
        let second = norm_sums + 4 * d as u64;
        self.reduce(second, blocks, 2 * d, norm.beta, false, res_norm, Res::Grad(norm.beta.offset))?;

        let (chunks, room) = self.blocks(*g, 32, 96);
        let width = token_columns(v, self.machine.device.shared_limit);
        let tables = self.partial(2, room * v * d)?;
        let kernel = self.machine.kernel(unit.clone(), "embed_back_token")?;
        let args = Args::default().ptr(ids).ptr(rows_out).ptr(tables).ptr(self.input(0)).int(s).float(*scale);
        let shape = Shape { grid: (chunks, d.div_ceil(width), 1), block: (width, 1), shared: v * width * 4 };
        self.submit("embed_back_token", Lane::Side, &[res_rows], &[res_token], Work::Kernel(kernel, shape, args))?;
        self.reduce(tables, chunks, v * d, *token, true, res_token, Res::Grad(token.offset))?;

        let kernel = self.machine.kernel(unit, "embed_back_position")?;
        let args = Args::default()
            .ptr(self.input(self.layout.cu[s]))
            .ptr(rows_out)
            .ptr(self.grad(*position))
            .ptr(self.input(0));
        let shape = Shape { grid: (position.rows, 1, 1), block: (64, 4), shared: 0 };
        let work = Work::Kernel(kernel, shape, args);
        self.submit("embed_back_position", Lane::Side, &[res_rows], &[Res::Grad(position.offset)], work)
    }

    fn add_norm(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::AddNorm { x, f, dropout, norm, s, stat, y, y_stream } = op else { return Ok(()) };
        let d = norm.gamma.len();
        four("a layer norm", d)?;
        let rows = self.rows_of(*x);
        let args = Args::default()
            .ptr(self.at(*x))
            .ptr(f.map_or(0, |slot| self.at(slot)))
            .ptr(self.param(norm.gamma))
            .ptr(self.param(norm.beta))
            .ptr(self.at(*s))
            .ptr(self.at(*stat))
            .ptr(self.at(*y))
            .ptr(y_stream.map_or(0, |slot| self.at(slot)))
            .ptr(self.input(0))
            .int(rows)
            .raw(drop_words(*dropout));
        let kernel = self.machine.kernel(Unit::new("norm.cu", &[("D", d)]), "addnorm")?;
        let writes = slots([f.map(|_| *s), Some(*stat), Some(*y), *y_stream]);
        for slot in [*s, *y] {
            self.overwritten(slot);
        }
        let work = Work::Kernel(kernel, Shape::flat(rows.div_ceil(4), 128), args);
        self.submit("addnorm", Lane::Main, &slots([Some(*x), *f]), &writes, work)
    }

    fn add_norm_back(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::AddNormBack { order, first, s, stat, norm, dropout, g, dy, df } = op else { return Ok(()) };
        let d = norm.gamma.len();
        four("a layer norm", d)?;
        let rows = self.rows_of(*g);
        let (blocks, room) = self.blocks(*g, 8, 3 * self.machine.device.info.processors);
        let sums = self.partial(0, room * 3 * d)?;
        let res = Res::Partial(self.op, 0);
        let args = Args::default()
            .ptr(self.at(*s))
            .ptr(self.at(*stat))
            .ptr(self.param(norm.gamma))
            .ptr(self.at(*g))
            .ptr(self.at(*dy))
            .ptr(df.map_or(0, |slot| self.at(slot)))
            .ptr(sums)
            .ptr(self.input(0))
            .int(self.side_of(*g))
            .int(rows)
            .int(i32::from(*order == NormOrder::Post))
            .int(i32::from(*first))
            .raw(drop_words(*dropout));
        let kernel = self.machine.kernel(Unit::new("norm.cu", &[("D", d)]), "addnorm_back")?;
        let reads = slots([Some(*s), Some(*stat), Some(*dy), Some(*g)]);
        let mut writes = slots([Some(*g), *df]);
        writes.push(res);
        self.submit("addnorm_back", Lane::Main, &reads, &writes, Work::Kernel(kernel, Shape::flat(blocks, 256), args))?;
        self.reduce(sums, blocks, 3 * d, norm.gamma, false, res, Res::Grad(norm.gamma.offset))?;
        self.reduce(sums + 4 * d as u64, blocks, 3 * d, norm.beta, false, res, Res::Grad(norm.beta.offset))?;
        if let Some(df) = df {
            self.overwritten(*df);
            let from = sums + 8 * d as u64;
            self.summed(*df, Columns { col: 0, width: d, from, count: blocks, stride: 3 * d, res });
        }
        Ok(())
    }

    fn linear(&mut self, x: View, w: Param, b: Option<Param>, y: View) -> Result<(), EngineError> {
        let rows = self.rows_of(x.slot);
        if self.small(rows) && self.product(Next::Nothing, x, w, b, y, None, 0)? {
            return Ok(());
        }
        let gemm = Gemm {
            m: w.rows,
            n: rows,
            k: w.cols,
            a_transposed: true,
            b_transposed: false,
            lda: w.cols,
            ldb: self.cols(x.slot),
            ldd: self.cols(y.slot),
            wide: self.info().info(y.slot).dtype == Dtype::F32,
            bias: b.is_some(),
            beside: 0,
        };
        let at = Operands { a: self.copy(w), b: self.view(x), d: self.view(y), bias: b.map_or(0, |b| self.copy(b)) };
        self.overwritten(y.slot);
        let label = format!("linear {}x{}x{}", rows, w.rows, w.cols);
        self.submit(&label, Lane::Main, &slots([Some(x.slot)]), &slots([Some(y.slot)]), Work::Gemm(gemm, at))
    }

    fn linear_back(
        &mut self,
        x: View,
        w: Param,
        b: Option<Param>,
        dy: View,
        dx: Option<View>,
    ) -> Result<(), EngineError> {
        self.bias_gradient(dy, b)?;
        // dx comes first, it is what the next op waits for; unless it overwrites what the weight gradient reads.
        let in_place = dx.is_some_and(|dx| dx.slot == x.slot || dx.slot == dy.slot);
        if in_place {
            self.weight_gradient(x, w, dy)?;
        }
        if let Some(dx) = dx {
            self.input_gradient(w, dy, dx)?;
        }
        if in_place { Ok(()) } else { self.weight_gradient(x, w, dy) }
    }

    /// The gradient of a bias: from the sums that the producer of `dy` left, or by a pass of its own.
    pub(super) fn bias_gradient(&mut self, dy: View, b: Option<Param>) -> Result<(), EngineError> {
        match b {
            Some(b) if !self.bias_from_columns(dy, b)? => self.column_sums(dy, b),
            _ => Ok(()),
        }
    }

    fn input_gradient(&mut self, w: Param, dy: View, dx: View) -> Result<(), EngineError> {
        let rows = self.rows_of(dy.slot);
        if self.small(rows) && self.product(Next::Input, dy, w, None, dx, None, 0)? {
            return Ok(());
        }
        let gemm = Gemm {
            m: w.cols,
            n: rows,
            k: w.rows,
            a_transposed: false,
            b_transposed: false,
            lda: w.cols,
            ldb: self.cols(dy.slot),
            ldd: self.cols(dx.slot),
            wide: false,
            bias: false,
            beside: 0,
        };
        let at = Operands { a: self.copy(w), b: self.view(dy), d: self.view(dx), bias: 0 };
        self.overwritten(dx.slot);
        let label = format!("dx {}x{}x{}", rows, w.cols, w.rows);
        self.submit(&label, Lane::Main, &slots([Some(dy.slot)]), &slots([Some(dx.slot)]), Work::Gemm(gemm, at))
    }

    pub(super) fn weight_gradient(&mut self, x: View, w: Param, dy: View) -> Result<(), EngineError> {
        let rows = self.rows_of(dy.slot);
        if self.small(rows) && self.weight_product(x, w, dy)? {
            return Ok(());
        }
        let gemm = Gemm {
            m: w.cols,
            n: w.rows,
            k: rows,
            a_transposed: false,
            b_transposed: true,
            lda: self.cols(x.slot),
            ldb: self.cols(dy.slot),
            ldd: w.cols,
            wide: true,
            bias: false,
            beside: self.machine.device.info.processors / 2,
        };
        let at = Operands { a: self.view(x), b: self.view(dy), d: self.grad(w), bias: 0 };
        let label = format!("dw {}x{}x{}", w.rows, w.cols, rows);
        let reads = slots([Some(x.slot), Some(dy.slot)]);
        self.submit(&label, Lane::Side, &reads, &[Res::Grad(w.offset)], Work::Gemm(gemm, at))
    }

    /// The gradient of a bias by a pass of its own.
    fn column_sums(&mut self, dy: View, b: Param) -> Result<(), EngineError> {
        let cols = self.cols(dy.slot);
        let width = pack_width(cols).min(pack_width(dy.col)).min(pack_width(b.len()));
        let (sums, blocks) = self.sum_pass(
            "column_sums",
            Lane::Side,
            None,
            self.view(dy),
            dy.slot,
            b.len() / width,
            cols / width,
            width,
            2,
        )?;
        let res = Res::Partial(self.op, 3);
        self.reduce(sums, blocks, b.len(), b, false, res, Res::Grad(b.offset))
    }

    /// activate_back: the gradient of an activation and the column sums of the result (or, of kind 2, the sums alone).
    fn sum_pass(
        &mut self,
        label: &str,
        lane: Lane,
        x: Option<Slot>,
        d: u64,
        slot: Slot,
        packs: usize,
        ld: usize,
        width: usize,
        kind: i32,
    ) -> Result<(u64, usize), EngineError> {
        let tx = packs.clamp(1, 256);
        let ty = 256 / tx;
        let (blocks, room) = self.blocks(slot, ty * 3, 4 * self.machine.device.info.processors);
        let sums = self.partial(3, room * packs * width)?;
        let rows = self.rows_of(slot);
        let args = Args::default()
            .ptr(x.map_or(0, |x| self.at(x)))
            .ptr(d)
            .ptr(sums)
            .ptr(self.input(0))
            .int(self.side_of(slot))
            .int(rows)
            .int(packs)
            .int(ld)
            .int(kind);
        let kernel = self.machine.kernel(Unit::new("activate.cu", &[("VEC", width)]), "activate_back")?;
        let shape = Shape { grid: (blocks, 1, 1), block: (tx, ty), shared: tx * ty * width * 4 };
        let res = Res::Partial(self.op, 3);
        let mut writes = vec![res];
        if kind < 2 {
            writes.push(Res::Slot(slot.0));
        }
        self.submit(label, lane, &slots([Some(slot), x]), &writes, Work::Kernel(kernel, shape, args))?;
        Ok((sums, blocks))
    }

    fn activate(&mut self, kind: Activation, x: Slot, y: Slot) -> Result<(), EngineError> {
        let cols = self.cols(x);
        let width = pack_width(cols);
        let packs = self.rows_of(x) * cols / width;
        let gelu = i32::from(kind == Activation::Gelu);
        let args = Args::default().ptr(self.at(x)).ptr(self.at(y)).int(packs).int(gelu);
        let kernel = self.machine.kernel(Unit::new("activate.cu", &[("VEC", width)]), "activate")?;
        self.overwritten(y);
        let work = Work::Kernel(kernel, Shape::flat(packs.div_ceil(256), 256), args);
        self.submit("activate", Lane::Main, &slots([Some(x)]), &slots([Some(y)]), work)
    }

    fn activate_back(&mut self, kind: Activation, x: Slot, d: Slot) -> Result<(), EngineError> {
        let cols = self.cols(d);
        let width = pack_width(cols);
        let packs = cols / width;
        let gelu = i32::from(kind == Activation::Gelu);
        self.overwritten(d);
        let (from, count) =
            self.sum_pass("activate_back", Lane::Main, Some(x), self.at(d), d, packs, packs, width, gelu)?;
        let res = Res::Partial(self.op, 3);
        self.summed(d, Columns { col: 0, width: cols, from, count, stride: cols, res });
        Ok(())
    }

    fn cross_entropy(&mut self, logits: Slot, backward: bool) -> Result<(), EngineError> {
        let v = self.cols(logits);
        let rows = self.rows[1];
        let unit = Unit::new("loss.cu", &[("V", v)]);
        let args = Args::default()
            .ptr(self.at(logits))
            .ptr(self.input(self.layout.labels))
            .ptr(self.machine.row_loss.at)
            .ptr(self.machine.row_right.at)
            .ptr(self.input(0))
            .int(rows)
            .int(i32::from(backward));
        let kernel = self.machine.kernel(unit.clone(), "loss_rows")?;
        let mut writes = vec![Res::Shared(0)];
        if backward {
            writes.push(Res::Slot(logits.0));
            self.overwritten(logits);
        }
        let work = Work::Kernel(kernel, Shape::flat(rows.div_ceil(4), 128), args);
        self.submit("loss_rows", Lane::Main, &slots([Some(logits)]), &writes, work)?;
        let args = Args::default()
            .ptr(self.machine.row_loss.at)
            .ptr(self.machine.row_right.at)
            .ptr(self.input(self.layout.cu[1]))
            .ptr(self.machine.right.at)
            .ptr(self.machine.ring.at)
            .ptr(self.input(0));
        let kernel = self.machine.kernel(unit, "loss_sum")?;
        let work = Work::Kernel(kernel, Shape::flat(1, 1024), args);
        self.submit("loss_sum", Lane::Side, &[Res::Shared(0)], &[Res::Shared(1)], work)
    }

    fn adam(&mut self, op: &Op) -> Result<(), EngineError> {
        let Op::Adam { beta1, beta2, eps, weight_decay, clip } = op else { return Ok(()) };
        self.flush(Lane::Main)?;
        self.join()?;
        let unit = Unit::new("optimiser.cu", &[]);
        let groups = self.machine.flat / 4;
        let squares = self.machine.squares.at;
        let args = Args::default().ptr(self.machine.grads.at).ptr(squares).int(groups);
        let kernel = self.machine.kernel(unit.clone(), "square")?;
        let work = Work::Kernel(kernel, Shape::flat(SQUARES, 256), args);
        self.submit("square", Lane::Main, &[], &[Res::Shared(2)], work)?;
        let args = Args::default()
            .ptr(self.machine.grads.at)
            .ptr(self.machine.params.at)
            .ptr(self.machine.first.at)
            .ptr(self.machine.second.at)
            .ptr(self.machine.copy.at)
            .ptr(squares)
            .int(SQUARES)
            .ptr(self.input(0))
            .ptr(self.machine.ring.at)
            .int(groups)
            .float(*beta1)
            .float(*beta2)
            .float(*eps)
            .float(*weight_decay)
            .float(*clip);
        let blocks = groups.div_ceil(256).clamp(1, 8 * self.machine.device.info.processors);
        let kernel = self.machine.kernel(unit, "adam")?;
        let work = Work::Kernel(kernel, Shape::flat(blocks, 256), args);
        self.submit("adam", Lane::Main, &[Res::Shared(2)], &[Res::Shared(1)], work)
    }
}

//! The Transformer as a [`Program`]: forward, and for training its gradient and the optimiser, op by op.
//!
//! Pre- and post-norm share one loop. A sub-layer reads `y` and gives `f`; then one op adds it to the residual stream and
//! norms the sum. In pre-norm that norm belongs to the *next* sub-layer (and a first norm opens the stack), in post-norm to
//! this one. Gradients of activations live in a few scratch slots per side, used in turn by even and odd sub-layers, so
//! that weight gradients may still read one while the chain already writes the other.

use super::layout::{LinearParams, StackParams, SubParams};
use super::{ModelConfig, ParamLayout};
use polystep_engine::{Dim, Dropout, Dtype, NormOrder, Op, Program, Side, Slot, View};

/// Adam's constants. The learning rate is not here: it changes from step to step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimiser {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub eps: f32,
    /// Decoupled weight decay.
    pub weight_decay: f32,
    /// Largest global gradient norm; 0 for none.
    pub clip: f32,
}

/// A training program and the slots people look at.
pub struct TrainingProgram {
    /// Forward, backward, and the optimiser if asked for.
    pub program: Program,
    /// The logits; overwritten by their gradient in a training program.
    pub logits: Slot,
}

/// What the backward pass needs of one sub-layer.
struct SubRecord {
    params: SubParams,
    /// What the sub-layer read.
    y: Slot,
    saved: Saved,
    /// The norm op that followed it.
    add: AddRecord,
}

enum Saved {
    SelfAttention { qkv: Slot, out: Slot, lse: Slot },
    CrossAttention { q: Slot, out: Slot, lse: Slot },
    FeedForward { h: Slot, a: Slot },
}

struct AddRecord {
    s: Slot,
    stat: Slot,
    norm: polystep_engine::Norm,
    dropout: Option<Dropout>,
}

struct StackRecord {
    embed_stat: Slot,
    embed_dropout: Option<Dropout>,
    /// Pre-norm's opening norm.
    opening: Option<AddRecord>,
    subs: Vec<SubRecord>,
    /// The stack's output.
    y: Slot,
}

/// Scratch for gradients of one side.
struct Scratch {
    g: Slot,
    dy: Slot,
    sets: [ScratchSet; 2],
}

struct ScratchSet {
    df: Slot,
    dh: Slot,
    dqkv: Slot,
    /// Cross-attention's queries, which stand alone.
    dq: Slot,
    dout: Slot,
}

/// How the decoder meets its input.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// All target tokens at once, under a causal mask.
    Whole,
    /// One token per lane, with a cache of so many positions.
    Step { positions: usize },
}

struct Builder<'a> {
    config: &'a ModelConfig,
    layout: &'a ParamLayout,
    p: Program,
    sites: u32,
    mode: Mode,
}

/// The two programs of decoding: `encode` reads the sources and leaves the keys and values of all cross-attentions; `step`
/// extends every lane by one token and finds the best next ones. They share slots.
pub struct DecodingPrograms {
    /// Runs once per group of sources.
    pub encode: Program,
    /// Runs once per position.
    pub step: Program,
}

/// Programs for decoding with the `k` best tokens per lane and at most `positions` tokens of output.
pub fn decoding_programs(config: &ModelConfig, layout: &ParamLayout, positions: usize, k: usize) -> DecodingPrograms {
    let mut b = Builder::new(config, layout, false);
    let encoder = b.stack("encoder", Side::Src, &layout.encoder, None);
    let kv = b.cross_kv(&encoder);
    let encode = b.p.clone();
    b.p.ops.clear();
    b.mode = Mode::Step { positions };
    let decoder = b.stack("decoder", Side::Tgt, &layout.decoder, Some(kv));
    // In fp32: the margin between the two best answers is read off these.
    let logits = b.f32("logits".into(), Side::Tgt, config.vocabulary());
    b.p.push(Op::Linear { x: decoder.y.into(), w: layout.token, b: None, y: logits.into() });
    b.p.push(Op::TopTokens { logits, k });
    DecodingPrograms { encode, step: b.p }
}

/// Forward and cross-entropy, no gradient: validation by teacher forcing.
pub fn evaluation_program(config: &ModelConfig, layout: &ParamLayout) -> TrainingProgram {
    let mut b = Builder::new(config, layout, false);
    let (_, _, logits, _) = b.forward();
    b.p.push(Op::CrossEntropy { logits, backward: false });
    TrainingProgram { program: b.p, logits }
}

/// Forward, loss and backward; then the optimiser, unless only gradients are wanted.
pub fn training_program(config: &ModelConfig, layout: &ParamLayout, optimiser: Option<Optimiser>) -> TrainingProgram {
    let mut b = Builder::new(config, layout, true);
    let (encoder, decoder, logits, kv) = b.forward();
    b.p.push(Op::CrossEntropy { logits, backward: true });
    b.backward(&encoder, &decoder, logits, kv);
    if let Some(Optimiser { beta1, beta2, eps, weight_decay, clip }) = optimiser {
        b.p.push(Op::Adam { beta1, beta2, eps, weight_decay, clip });
    }
    TrainingProgram { program: b.p, logits }
}

impl<'a> Builder<'a> {
    fn new(config: &'a ModelConfig, layout: &'a ParamLayout, training: bool) -> Self {
        let p = Program { params: layout.len(), ..Program::default() };
        // An evaluation never drops anything: sites stay unused there.
        let sites = if training && config.dropout as f32 > 0.0 { 1 } else { 0 };
        Builder { config, layout, p, sites, mode: Mode::Whole }
    }

    fn act(&mut self, name: String, side: Side, cols: usize) -> Slot {
        self.p.slot(name, Dim::Tokens(side), cols, Dtype::Act)
    }

    fn f32(&mut self, name: String, side: Side, cols: usize) -> Slot {
        self.p.slot(name, Dim::Tokens(side), cols, Dtype::F32)
    }

    fn dropout(&mut self) -> Option<Dropout> {
        (self.sites > 0).then(|| {
            self.sites += 1;
            Dropout { p: self.config.dropout as f32, site: self.sites - 1 }
        })
    }

    fn linear(&mut self, x: impl Into<View>, params: LinearParams, y: impl Into<View>) {
        self.p.push(Op::Linear { x: x.into(), w: params.w, b: Some(params.b), y: y.into() });
    }

    fn scale(&self) -> f32 {
        if self.config.scale_embedding { (self.config.d as f32).sqrt() } else { 1.0 }
    }

    fn forward(&mut self) -> (StackRecord, StackRecord, Slot, Slot) {
        let layout = self.layout;
        let encoder = self.stack("encoder", Side::Src, &layout.encoder, None);
        let kv = self.cross_kv(&encoder);
        let decoder = self.stack("decoder", Side::Tgt, &layout.decoder, Some(kv));
        let logits = self.act("logits".into(), Side::Tgt, self.config.vocabulary());
        self.p.push(Op::Linear { x: decoder.y.into(), w: layout.token, b: None, y: logits.into() });
        (encoder, decoder, logits, kv)
    }

    /// Keys and values of every cross-attention, by one product.
    fn cross_kv(&mut self, encoder: &StackRecord) -> Slot {
        let kv = self.act("cross.kv".into(), Side::Src, self.layout.cross_kv.w.rows);
        self.linear(encoder.y, self.layout.cross_kv, kv);
        kv
    }

    fn stack(&mut self, name: &str, side: Side, params: &StackParams, kv: Option<Slot>) -> StackRecord {
        let d = self.config.d;
        let post = self.config.norm == NormOrder::Post;
        let embed_stat = self.f32(format!("{name}.embed.stat"), side, 2);
        let embed_dropout = self.dropout();
        let mut x = self.f32(format!("{name}.embed"), side, d);
        let out_act = post.then(|| self.act(format!("{name}.embed.y"), side, d));
        self.p.push(Op::Embed {
            side,
            token: self.layout.token,
            position: params.position,
            norm: params.embedding_norm,
            scale: self.scale(),
            dropout: embed_dropout,
            stat: embed_stat,
            out: x,
            out_act,
        });
        let mut norms = params.norms.iter();
        let (opening, mut y) = match out_act {
            Some(y) => (None, y),
            None => {
                let norm = *norms.next().expect("a stack has a norm");
                let stat = self.f32(format!("{name}.open.stat"), side, 2);
                let y = self.act(format!("{name}.open.y"), side, d);
                self.p.push(Op::AddNorm { x, f: None, dropout: None, norm, s: x, stat, y, y_stream: None });
                (Some(AddRecord { s: x, stat, norm, dropout: None }), y)
            }
        };
        let mut subs = Vec::new();
        for (i, (&sub, &norm)) in params.subs.iter().zip(norms).enumerate() {
            let at = format!("{name}.{i}");
            let (f, saved) = self.sub_layer(&at, side, sub, y, kv);
            let dropout = self.dropout();
            let s = self.f32(format!("{at}.s"), side, d);
            let stat = self.f32(format!("{at}.stat"), side, 2);
            let y_next = self.act(format!("{at}.y"), side, d);
            let last = i + 1 == params.subs.len();
            let y_stream = (post && !last).then(|| self.f32(format!("{at}.y_stream"), side, d));
            self.p.push(Op::AddNorm { x, f: Some(f), dropout, norm, s, stat, y: y_next, y_stream });
            subs.push(SubRecord { params: sub, y, saved, add: AddRecord { s, stat, norm, dropout } });
            x = y_stream.unwrap_or(s);
            y = y_next;
        }
        StackRecord { embed_stat, embed_dropout, opening, subs, y }
    }

    /// One sub-layer from `y` to `f`, before dropout and residual.
    fn sub_layer(&mut self, at: &str, side: Side, params: SubParams, y: Slot, kv: Option<Slot>) -> (Slot, Saved) {
        let (d, heads, head_dim) = (self.config.d, self.config.heads, self.config.head_dim());
        let f = self.act(format!("{at}.f"), side, d);
        let saved = match params {
            SubParams::SelfAttention { qkv: w, out: w_out } => {
                let qkv = self.act(format!("{at}.qkv"), side, 3 * d);
                let out = self.act(format!("{at}.attention"), side, d);
                let lse = self.f32(format!("{at}.lse"), side, heads);
                self.linear(y, w, qkv);
                if let (Side::Tgt, Mode::Step { positions }) = (side, self.mode) {
                    let cache = self.p.slot(format!("{at}.cache"), Dim::Cache(positions), 2 * d, Dtype::Act);
                    self.p.push(Op::CachedAttention { qkv, cache, heads, head_dim, out });
                } else {
                    let [q, k, v] = [0, d, 2 * d].map(|col| View { slot: qkv, col });
                    let causal = side == Side::Tgt;
                    self.p.push(Op::Attention {
                        q,
                        k,
                        v,
                        queries: side,
                        keys: side,
                        causal,
                        heads,
                        head_dim,
                        out,
                        lse,
                    });
                }
                self.linear(out, w_out, f);
                Saved::SelfAttention { qkv, out, lse }
            }
            SubParams::CrossAttention { layer, q: w_q, out: w_out } => {
                let kv = kv.expect("only the decoder has cross-attention");
                let q = self.act(format!("{at}.q"), side, d);
                let out = self.act(format!("{at}.attention"), side, d);
                let lse = self.f32(format!("{at}.lse"), side, heads);
                self.linear(y, w_q, q);
                let [k, v] = cross_views(kv, layer, d);
                self.p.push(match self.mode {
                    Mode::Step { .. } => Op::LaneAttention { q, k, v, heads, head_dim, out },
                    Mode::Whole => {
                        let (q, keys, causal) = (q.into(), Side::Src, false);
                        Op::Attention { q, k, v, queries: side, keys, causal, heads, head_dim, out, lse }
                    }
                });
                self.linear(out, w_out, f);
                Saved::CrossAttention { q, out, lse }
            }
            SubParams::FeedForward { fc1, fc2 } => {
                let h = self.act(format!("{at}.h"), side, self.config.ffn);
                let a = self.act(format!("{at}.a"), side, self.config.ffn);
                self.linear(y, fc1, h);
                self.p.push(Op::Activate { kind: self.config.activation, x: h, y: a });
                self.linear(a, fc2, f);
                Saved::FeedForward { h, a }
            }
        };
        (f, saved)
    }

    fn scratch(&mut self, name: &str, side: Side) -> Scratch {
        let d = self.config.d;
        let g = self.f32(format!("{name}.g"), side, d);
        let dy = self.act(format!("{name}.dy"), side, d);
        let sets = [0, 1].map(|i| ScratchSet {
            df: self.act(format!("{name}.df{i}"), side, d),
            dh: self.act(format!("{name}.dh{i}"), side, self.config.ffn),
            dqkv: self.act(format!("{name}.dqkv{i}"), side, 3 * d),
            dq: self.act(format!("{name}.dq{i}"), side, d),
            dout: self.act(format!("{name}.dout{i}"), side, d),
        });
        Scratch { g, dy, sets }
    }

    fn backward(&mut self, encoder: &StackRecord, decoder: &StackRecord, logits: Slot, kv: Slot) {
        let layout = self.layout;
        let tgt = self.scratch("decoder", Side::Tgt);
        let src = self.scratch("encoder", Side::Src);
        let dkv = self.act("cross.dkv".into(), Side::Src, layout.cross_kv.w.rows);
        // The first to write the token table's gradient; both embeddings add to it.
        self.linear_back(decoder.y, layout.token, None, logits, Some(tgt.dy));
        self.stack_back(Side::Tgt, &layout.decoder, decoder, &tgt, Some((kv, dkv)));
        let LinearParams { w, b } = layout.cross_kv;
        self.linear_back(encoder.y, w, Some(b), dkv, Some(src.dy));
        self.stack_back(Side::Src, &layout.encoder, encoder, &src, None);
    }

    fn linear_back(
        &mut self,
        x: Slot,
        w: polystep_engine::Param,
        b: Option<polystep_engine::Param>,
        dy: Slot,
        dx: Option<Slot>,
    ) {
        self.p.push(Op::LinearBack { x: x.into(), w, b, dy: dy.into(), dx: dx.map(View::from) });
    }

    fn add_norm_back(&mut self, add: &AddRecord, first: bool, scratch: &Scratch, df: Option<Slot>) {
        self.p.push(Op::AddNormBack {
            order: self.config.norm,
            first,
            s: add.s,
            stat: add.stat,
            norm: add.norm,
            dropout: add.dropout,
            g: scratch.g,
            dy: scratch.dy,
            df,
        });
    }

    /// Comes with the gradient of the stack's output in `scratch.dy`.
    fn stack_back(
        &mut self,
        side: Side,
        params: &StackParams,
        record: &StackRecord,
        scratch: &Scratch,
        cross: Option<(Slot, Slot)>,
    ) {
        for (i, sub) in record.subs.iter().enumerate().rev() {
            let set = &scratch.sets[i % 2];
            self.add_norm_back(&sub.add, i + 1 == record.subs.len(), scratch, Some(set.df));
            self.sub_layer_back(side, sub, scratch.dy, set, cross);
        }
        let mut dy = Some(scratch.dy);
        if let Some(opening) = &record.opening {
            self.add_norm_back(opening, false, scratch, None);
            dy = None;
        }
        self.p.push(Op::EmbedBack {
            side,
            token: self.layout.token,
            position: params.position,
            norm: params.embedding_norm,
            scale: self.scale(),
            dropout: record.embed_dropout,
            stat: record.embed_stat,
            g: scratch.g,
            dy,
        });
    }

    /// From `set.df` to the gradient of what the sub-layer read, in `dy`.
    fn sub_layer_back(&mut self, side: Side, sub: &SubRecord, dy: Slot, set: &ScratchSet, cross: Option<(Slot, Slot)>) {
        let (d, heads, head_dim) = (self.config.d, self.config.heads, self.config.head_dim());
        match (sub.params, &sub.saved) {
            (SubParams::SelfAttention { qkv: w, out: w_out }, &Saved::SelfAttention { qkv, out, lse }) => {
                self.linear_back(out, w_out.w, Some(w_out.b), set.df, Some(set.dout));
                let [q, k, v] = [0, d, 2 * d].map(|col| View { slot: qkv, col });
                let [dq, dk, dv] = [0, d, 2 * d].map(|col| View { slot: set.dqkv, col });
                self.p.push(Op::AttentionBack {
                    q,
                    k,
                    v,
                    queries: side,
                    keys: side,
                    causal: side == Side::Tgt,
                    heads,
                    head_dim,
                    out,
                    lse,
                    dout: set.dout,
                    dq,
                    dk,
                    dv,
                });
                self.linear_back(sub.y, w.w, Some(w.b), set.dqkv, Some(dy));
            }
            (SubParams::CrossAttention { layer, q: w_q, out: w_out }, &Saved::CrossAttention { q, out, lse }) => {
                let (kv, dkv) = cross.expect("only the decoder has cross-attention");
                self.linear_back(out, w_out.w, Some(w_out.b), set.df, Some(set.dout));
                let [k, v] = cross_views(kv, layer, d);
                let [dk, dv] = cross_views(dkv, layer, d);
                self.p.push(Op::AttentionBack {
                    q: q.into(),
                    k,
                    v,
                    queries: side,
                    keys: Side::Src,
                    causal: false,
                    heads,
                    head_dim,
                    out,
                    lse,
                    dout: set.dout,
                    dq: set.dq.into(),
                    dk,
                    dv,
                });
                self.linear_back(sub.y, w_q.w, Some(w_q.b), set.dq, Some(dy));
            }
            (SubParams::FeedForward { fc1, fc2 }, &Saved::FeedForward { h, a }) => {
                self.linear_back(a, fc2.w, Some(fc2.b), set.df, Some(set.dh));
                self.p.push(Op::ActivateBack { kind: self.config.activation, x: h, d: set.dh });
                self.linear_back(sub.y, fc1.w, Some(fc1.b), set.dh, Some(dy));
            }
            _ => unreachable!("a sub-layer's record is made from its parameters"),
        }
    }
}

/// Keys and values of one decoder layer in the columns they share with all others.
fn cross_views(slot: Slot, layer: usize, d: usize) -> [View; 2] {
    [2 * layer * d, (2 * layer + 1) * d].map(|col| View { slot, col })
}

//! The Transformer as a [`Program`], op by op: the forward pass, and for training its gradient and the optimiser.
//!
//! Pre-norm and post-norm share one loop. A sub-layer reads `y` and writes `f`. Then one op adds `f` to the residual stream and
//! norms the sum. In post-norm that norm belongs to the same sub-layer. In pre-norm it belongs to the *next* one, and a first
//! norm opens the stack.
//!
//! Each side has a few scratch slots for the gradients of activations. Even and odd sub-layers use them in turn. So a weight
//! gradient may still read one slot while the next sub-layer already writes the other.

use super::layout::{LinearParams, StackParams, SubParams};
use super::{ModelConfig, ParamLayout};
use polystep_engine::{Activate, ActivateBack, Adam, AddNorm, AddNormBack, Attention, AttentionBack, BestTokens};
use polystep_engine::{
    CachedAttention, CrossEntropy, Dim, Dropout, Dtype, Embed, EmbedBack, Heads, Linear, LinearBack,
};
use polystep_engine::{NormOrder, Program, Side, Slot, SourceAttention, View};

/// A training program, and the slots that tests look at.
pub struct TrainingProgram {
    /// Forward, backward, and the optimiser if asked for.
    pub program: Program,
    /// The logits; overwritten by their gradient in a training program.
    pub logits: Slot,
}

impl TrainingProgram {
    /// The same with logits, and their gradient, in fp32 on every device. bf16 has 8 bits: between 16 and 32 its numbers are 0.125
    /// apart.
    pub fn with_fp32_logits(mut self) -> Self {
        self.program.slots[self.logits.0 as usize].dtype = Dtype::F32;
        self
    }
}

/// The ops of one sub-layer, forward.
enum SubLayer {
    /// From `y` to queries (and, of a self-attention, keys and values), attention, and out.
    Attention { project: Linear, attention: Attention, out: Linear, cross: Option<usize> },
    /// Up, activation, down.
    FeedForward { up: Linear, activate: Activate, down: Linear },
}

/// The ops of one stack, forward.
struct Stack {
    embed: Embed,
    /// Pre-norm's opening norm.
    opening: Option<AddNorm>,
    /// Each sub-layer and the norm behind it.
    subs: Vec<(SubLayer, AddNorm)>,
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
    /// The queries of cross-attention, which have no keys and values beside them.
    dq: Slot,
    dout: Slot,
}

/// How the decoder gets its input.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// All target tokens at once, under a causal mask.
    Whole,
    /// One token per hypothesis, with a cache of this many positions.
    Step { positions: usize },
}

struct Builder<'a> {
    config: &'a ModelConfig,
    layout: &'a ParamLayout,
    p: Program,
    sites: u32,
    mode: Mode,
    /// Whether layers use the slots of the layer before the last again, which is enough where no gradient follows.
    reuses: bool,
}

/// The two programs of decoding: `encode` reads the sources and leaves the keys and values of all cross-attentions; `step`
/// extends every hypothesis by one token and finds the best next ones. They share slots.
pub struct DecodingPrograms {
    /// Runs once per group of sources.
    pub encode: Program,
    /// Runs once per position.
    pub step: Program,
}

/// Programs for decoding with the `k` best tokens per hypothesis and at most `positions` tokens of output.
pub fn decoding_programs(config: &ModelConfig, layout: &ParamLayout, positions: usize, k: usize) -> DecodingPrograms {
    let mut b = Builder { reuses: true, ..Builder::new(config, layout, false) };
    let encoder = b.stack("encoder", Side::Src, &layout.encoder, None);
    let kv = b.cross_kv(&encoder).y.slot;
    let encode = b.p.clone();
    b.p.ops.clear();
    b.mode = Mode::Step { positions };
    let decoder = b.stack("decoder", Side::Tgt, &layout.decoder, Some(kv));
    // In fp32, because the margin between the two best answers is computed from these.
    let logits = b.f32("logits".into(), Side::Tgt, config.vocabulary());
    b.p.push(Linear { x: decoder.y.into(), w: layout.token, b: None, y: logits.into() });
    b.p.push(BestTokens { logits, k });
    DecodingPrograms { encode, step: b.p }
}

/// Forward and cross-entropy, no gradient: validation by teacher forcing.
pub fn evaluation_program(config: &ModelConfig, layout: &ParamLayout) -> TrainingProgram {
    let mut b = Builder::new(config, layout, false);
    let logits = b.forward().logits;
    b.p.push(CrossEntropy { logits, backward: false });
    TrainingProgram { program: b.p, logits }
}

/// The forward pass of the target under teacher forcing, and the last decoder layer's cross-attention in it.
pub fn attention_program(config: &ModelConfig, layout: &ParamLayout) -> (Program, Attention) {
    let mut b = Builder::new(config, layout, false);
    let forward = b.forward();
    let cross = forward.decoder.subs.iter().rev().find_map(|(sub, _)| match sub {
        SubLayer::Attention { attention, cross: Some(_), .. } => Some(*attention),
        _ => None,
    });
    (b.p, cross.expect("a decoder layer has cross-attention"))
}

/// Forward, loss and backward; then the optimiser, unless only gradients are wanted.
pub fn training_program(config: &ModelConfig, layout: &ParamLayout, optimiser: Option<Adam>) -> TrainingProgram {
    let mut b = Builder::new(config, layout, true);
    let forward = b.forward();
    let logits = forward.logits;
    b.p.push(CrossEntropy { logits, backward: true });
    b.backward(&forward);
    if let Some(adam) = optimiser {
        b.p.push(adam);
    }
    TrainingProgram { program: b.p, logits }
}

/// The whole forward pass.
struct Forward {
    encoder: Stack,
    decoder: Stack,
    /// Keys and values of every cross-attention.
    cross_kv: Linear,
    /// The last product.
    output: Linear,
    logits: Slot,
}

impl<'a> Builder<'a> {
    fn new(config: &'a ModelConfig, layout: &'a ParamLayout, training: bool) -> Self {
        let p = Program { params: layout.len(), ..Program::default() };
        // An evaluation never drops anything: sites stay unused there.
        let sites = if training && config.dropout as f32 > 0.0 { 1 } else { 0 };
        Builder { config, layout, p, sites, mode: Mode::Whole, reuses: false }
    }

    fn act(&mut self, name: String, side: Side, cols: usize) -> Slot {
        self.slot(name, side, cols, Dtype::Act)
    }

    fn f32(&mut self, name: String, side: Side, cols: usize) -> Slot {
        self.slot(name, side, cols, Dtype::F32)
    }

    fn slot(&mut self, name: String, side: Side, cols: usize, dtype: Dtype) -> Slot {
        let known = self.p.slots.iter().position(|slot| self.reuses && slot.name == name);
        known.map_or_else(|| self.p.slot(name, Dim::Tokens(side), cols, dtype), |at| Slot(at as u32))
    }

    fn dropout(&mut self) -> Option<Dropout> {
        (self.sites > 0).then(|| {
            self.sites += 1;
            Dropout { p: self.config.dropout as f32, site: self.sites - 1 }
        })
    }

    fn linear(&mut self, x: impl Into<View>, params: LinearParams, y: impl Into<View>) -> Linear {
        let op = Linear { x: x.into(), w: params.w, b: Some(params.b), y: y.into() };
        self.p.push(op);
        op
    }

    fn forward(&mut self) -> Forward {
        let layout = self.layout;
        let encoder = self.stack("encoder", Side::Src, &layout.encoder, None);
        let cross_kv = self.cross_kv(&encoder);
        let decoder = self.stack("decoder", Side::Tgt, &layout.decoder, Some(cross_kv.y.slot));
        let logits = self.act("logits".into(), Side::Tgt, self.config.vocabulary());
        let output = Linear { x: decoder.y.into(), w: layout.token, b: None, y: logits.into() };
        self.p.push(output);
        Forward { encoder, decoder, cross_kv, output, logits }
    }

    /// Keys and values of every cross-attention, by one product.
    fn cross_kv(&mut self, encoder: &Stack) -> Linear {
        let kv = self.act("cross.kv".into(), Side::Src, self.layout.cross_kv.w.rows);
        self.linear(encoder.y, self.layout.cross_kv, kv)
    }

    fn stack(&mut self, name: &str, side: Side, params: &StackParams, kv: Option<Slot>) -> Stack {
        let d = self.config.d;
        let post = self.config.norm == NormOrder::Post;
        let stat = self.f32(format!("{name}.embed.stat"), side, 2);
        let dropout = self.dropout();
        // Before the first sub-layer the slots of the second are free.
        let own = |slot: &str, spare: &str| format!("{name}.{}", if self.reuses { spare } else { slot });
        let (embed, open) = (own("embed", "1.s"), own("open.y", "1.y"));
        let mut x = self.f32(embed, side, d);
        let out_act = post.then(|| self.act(format!("{name}.embed.y"), side, d));
        let scale = if self.config.scale_embedding { (d as f32).sqrt() } else { 1.0 };
        let (token, position, norm) = (self.layout.token, params.position, params.embedding_norm);
        let embed = Embed { side, token, position, norm, scale, dropout, stat, out: x, out_act };
        self.p.push(embed);
        let mut norms = params.norms.iter();
        let (opening, mut y) = match out_act {
            Some(y) => (None, y),
            None => {
                let norm = *norms.next().expect("a stack has a norm");
                let stat = self.f32(format!("{name}.open.stat"), side, 2);
                let y = self.act(open, side, d);
                let opening = AddNorm { x, f: None, dropout: None, norm, s: x, stat, y, y_stream: None };
                self.p.push(opening);
                (Some(opening), y)
            }
        };
        let mut subs = Vec::new();
        for (i, (&sub, &norm)) in params.subs.iter().zip(norms).enumerate() {
            // A sub-layer reads what the one before it left, and nothing older.
            let at = format!("{name}.{}", if self.reuses { i % 2 } else { i });
            let (f, sub) = self.sub_layer(&at, side, sub, y, kv);
            let dropout = self.dropout();
            let s = self.f32(format!("{at}.s"), side, d);
            let stat = self.f32(format!("{at}.stat"), side, 2);
            y = self.act(format!("{at}.y"), side, d);
            let last = i + 1 == params.subs.len();
            let y_stream = (post && !last).then(|| self.f32(format!("{at}.y_stream"), side, d));
            let add = AddNorm { x, f: Some(f), dropout, norm, s, stat, y, y_stream };
            self.p.push(add);
            subs.push((sub, add));
            x = y_stream.unwrap_or(s);
        }
        Stack { embed, opening, subs, y }
    }

    /// One sub-layer from `y` to `f`, before dropout and residual.
    fn sub_layer(&mut self, at: &str, side: Side, params: SubParams, y: Slot, kv: Option<Slot>) -> (Slot, SubLayer) {
        let d = self.config.d;
        let f = self.act(format!("{at}.f"), side, d);
        let (name, width, w, w_out, cross) = match params {
            SubParams::SelfAttention { qkv, out } => ("qkv", 3 * d, qkv, out, None),
            SubParams::CrossAttention { layer, q, out } => ("q", d, q, out, Some(layer)),
            SubParams::FeedForward { fc1, fc2 } => {
                let h = self.act(format!("{at}.h"), side, self.config.ffn);
                let a = self.act(format!("{at}.a"), side, self.config.ffn);
                let up = self.linear(y, fc1, h);
                let activate = Activate { kind: self.config.activation, x: h, y: a };
                self.p.push(activate);
                return (f, SubLayer::FeedForward { up, activate, down: self.linear(a, fc2, f) });
            }
        };
        let heads = Heads { count: self.config.heads, dim: self.config.head_dim() };
        let own = self.act(format!("{at}.{name}"), side, width);
        let out = self.act(format!("{at}.attention"), side, d);
        let lse = self.f32(format!("{at}.lse"), side, heads.count);
        let project = self.linear(y, w, own);
        let ([k, v], keys) = match cross {
            None => ([d, 2 * d].map(|col| View { slot: own, col }), side),
            Some(layer) => (cross_views(kv.expect("only the decoder has cross-attention"), layer, d), Side::Src),
        };
        let causal = cross.is_none() && side == Side::Tgt;
        let attention = Attention { q: own.into(), k, v, queries: side, keys, causal, heads, out, lse };
        match (self.mode, side, cross) {
            (Mode::Step { positions }, Side::Tgt, None) => {
                // Every layer has its own.
                let name = format!("cache.{}", self.p.slots.len());
                let cache = self.p.slot(name, Dim::Cache(positions), 2 * d, Dtype::Act);
                self.p.push(CachedAttention { qkv: own, cache, heads, out });
            }
            (Mode::Step { .. }, _, Some(_)) => self.p.push(SourceAttention { q: own, k, v, heads, out }),
            _ => self.p.push(attention),
        }
        (f, SubLayer::Attention { project, attention, out: self.linear(out, w_out, f), cross })
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

    fn backward(&mut self, forward: &Forward) {
        let tgt = self.scratch("decoder", Side::Tgt);
        let src = self.scratch("encoder", Side::Src);
        let dkv = self.act("cross.dkv".into(), Side::Src, self.layout.cross_kv.w.rows);
        // The first to write the token table's gradient; both embeddings add to it.
        self.linear_back(forward.output, forward.logits, tgt.dy);
        self.stack_back(&forward.decoder, &tgt, Some(dkv));
        self.linear_back(forward.cross_kv, dkv, src.dy);
        self.stack_back(&forward.encoder, &src, None);
    }

    fn linear_back(&mut self, of: Linear, dy: Slot, dx: Slot) {
        self.p.push(LinearBack { of, dy: dy.into(), dx: Some(dx.into()) });
    }

    fn add_norm_back(&mut self, of: AddNorm, first: bool, scratch: &Scratch, df: Option<Slot>) {
        let (g, dy) = (scratch.g, scratch.dy);
        self.p.push(AddNormBack { of, order: self.config.norm, first, g, dy, df });
    }

    /// At the start, `scratch.dy` holds the gradient of the stack's output.
    fn stack_back(&mut self, stack: &Stack, scratch: &Scratch, dkv: Option<Slot>) {
        for (i, (sub, add)) in stack.subs.iter().enumerate().rev() {
            let set = &scratch.sets[i % 2];
            self.add_norm_back(*add, i + 1 == stack.subs.len(), scratch, Some(set.df));
            self.sub_layer_back(sub, scratch.dy, set, dkv);
        }
        let mut dy = Some(scratch.dy);
        if let Some(opening) = stack.opening {
            self.add_norm_back(opening, false, scratch, None);
            dy = None;
        }
        self.p.push(EmbedBack { of: stack.embed, g: scratch.g, dy });
    }

    /// From `set.df` to the gradient of what the sub-layer read, in `dy`.
    fn sub_layer_back(&mut self, sub: &SubLayer, dy: Slot, set: &ScratchSet, dkv: Option<Slot>) {
        let d = self.config.d;
        match *sub {
            SubLayer::Attention { project, attention, out, cross } => {
                let (own, [dk, dv]) = match cross {
                    None => (set.dqkv, [d, 2 * d].map(|col| View { slot: set.dqkv, col })),
                    Some(layer) => (set.dq, cross_views(dkv.expect("only the decoder has cross-attention"), layer, d)),
                };
                self.linear_back(out, set.df, set.dout);
                self.p.push(AttentionBack { of: attention, dout: set.dout, dq: own.into(), dk, dv });
                self.linear_back(project, own, dy);
            }
            SubLayer::FeedForward { up, activate, down } => {
                self.linear_back(down, set.df, set.dh);
                self.p.push(ActivateBack { of: activate, d: set.dh });
                self.linear_back(up, set.dh, dy);
            }
        }
    }
}

/// Keys and values of one decoder layer in the columns they share with all others.
fn cross_views(slot: Slot, layer: usize, d: usize) -> [View; 2] {
    [2 * layer * d, (2 * layer + 1) * d].map(|col| View { slot, col })
}

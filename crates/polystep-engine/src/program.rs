//! A model as data: slots (activations), params (ranges of one flat buffer) and the ops between them.
//!
//! The decision a reader would get wrong: backward ops *overwrite* what they write, with one exception that says
//! so (the token table in [`Op::EmbedBack`], which is the output's too); nothing is ever zeroed between steps.
//! Rows past the batch's real tokens (a CUDA graph has fixed shapes) hold finite values in forward slots and exact
//! zeros in every gradient slot, so that weight gradients may sum over all rows of the capacity.

/// Which of the two packed token rows of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The encoder's input.
    Src,
    /// The decoder's input.
    Tgt,
}

/// The number of rows of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// One row per source or target token of the batch; changes from batch to batch.
    Tokens(Side),
    /// A decoder's cache: so many positions, each with one row per lane ([`crate::Limits::sequences`]).
    Cache(usize),
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// Operands of matrix products: bf16 on CUDA, fp32 on the CPU.
    Act,
    /// The residual stream, its gradient, softmax and norm statistics: fp32 everywhere.
    F32,
}

/// An activation of the program; an index into [`Program::slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

/// Shape and type of a slot. Rows are contiguous, `cols` wide.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// What it is, for error messages and tests.
    pub name: String,
    /// Rows.
    pub rows: Dim,
    /// Columns.
    pub cols: usize,
    /// Element type.
    pub dtype: Dtype,
}

/// Some columns of a slot: `slot[:, col..]`, as wide as the op says. The row stride is the slot's `cols`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The slot.
    pub slot: Slot,
    /// First column.
    pub col: usize,
}

impl From<Slot> for View {
    fn from(slot: Slot) -> Self {
        View { slot, col: 0 }
    }
}

/// A matrix (or a vector, with one row) inside the flat parameter buffer, row-major. A linear layer's weight is
/// `[out, in]`: y = x·Wᵀ + b.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// First element in the flat buffer; a multiple of 64.
    pub offset: usize,
    /// Rows (outputs of a linear layer).
    pub rows: usize,
    /// Columns (inputs of a linear layer).
    pub cols: usize,
}

impl Param {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Scale and shift of a layer norm (eps 1e-5, biased variance).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Norm {
    /// Scale.
    pub gamma: Param,
    /// Shift.
    pub beta: Param,
}

/// Inverted dropout: an element is kept with probability 1 − p and divided by it. The mask is a function of
/// (seed of the step, `site`, row, column) alone, so the backward op draws it again. See [`crate::philox`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// Probability of dropping; never 0 (then the op has `None`).
    pub p: f32,
    /// A number of its own for each place of the model.
    pub site: u32,
}

/// Where the residual stream runs past the norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormOrder {
    /// mBART: x ← x + f(LN(x)). The stream is the sum.
    Pre,
    /// BART: x ← LN(x + f(x)). The stream is the normed sum.
    Post,
}

/// The feed-forward activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// max(0, x)
    Relu,
    /// x/2·(1 + erf(x/√2)), the exact form.
    Gelu,
}

/// One operation. Every op runs over the real rows of its batch.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the fields are the letters of each op's formula
pub enum Op {
    /// `out = drop(LN(token[id]·scale + position[pos + 2]))`, ids and positions of `side` from the batch.
    Embed {
        side: Side,
        token: Param,
        position: Param,
        norm: Norm,
        scale: f32,
        dropout: Option<Dropout>,
        /// `[tokens, 2]` F32: mean and 1/std of each row.
        stat: Slot,
        /// F32: the start of the residual stream.
        out: Slot,
        /// The same in Act, where a linear layer reads it (post-norm).
        out_act: Option<Slot>,
    },
    /// Gradient of [`Op::Embed`]. The gradient of `out` is `g` (F32) plus, if given, `dy` (Act).
    /// *Adds* to the gradient of `token`; overwrites those of `position` (all rows) and `norm`.
    EmbedBack {
        side: Side,
        token: Param,
        position: Param,
        norm: Norm,
        scale: f32,
        dropout: Option<Dropout>,
        stat: Slot,
        g: Slot,
        dy: Option<Slot>,
    },
    /// `s = x + drop(f)`, `y = LN(s)`. Without `f`, s = x and is not written again.
    AddNorm {
        /// F32.
        x: Slot,
        /// Act.
        f: Option<Slot>,
        dropout: Option<Dropout>,
        norm: Norm,
        /// F32; ignored without `f` (then it equals `x`).
        s: Slot,
        /// `[tokens, 2]` F32: mean and 1/std.
        stat: Slot,
        /// Act.
        y: Slot,
        /// F32 copy of `y`: the residual stream of a post-norm model.
        y_stream: Option<Slot>,
    },
    /// Gradient of [`Op::AddNorm`]. `g` (F32) holds the gradient of the stream that leaves the op (of `s` for pre-norm,
    /// of `y` for post-norm; nothing yet if `first`) and receives that of `x`. `dy` is the gradient of `y` (Act).
    /// Pre: g ← g + LN'(dy). Post: g ← LN'(g + dy). Then `df = drop(g)` in Act. Overwrites the gradients of `norm`.
    AddNormBack {
        order: NormOrder,
        first: bool,
        s: Slot,
        stat: Slot,
        norm: Norm,
        dropout: Option<Dropout>,
        g: Slot,
        dy: Slot,
        df: Option<Slot>,
    },
    /// `y = x·Wᵀ + b`; x is `w.cols` wide, y `w.rows` wide; both Act (the logits of a decoding program: y in F32).
    Linear { x: View, w: Param, b: Option<Param>, y: View },
    /// Gradient of [`Op::Linear`]: `dx = dy·W` (if asked), grad(w) = dyᵀ·x, grad(b) = Σ rows of dy.
    LinearBack { x: View, w: Param, b: Option<Param>, dy: View, dx: Option<View> },
    /// `y = act(x)`; both Act.
    Activate { kind: Activation, x: Slot, y: Slot },
    /// `d ← d·act'(x)`, in place: `d` comes as the gradient of y and leaves as that of x.
    ActivateBack { kind: Activation, x: Slot, d: Slot },
    /// Softmax attention of each sequence's queries over its own keys, per head; all operands `heads·head_dim` wide, the
    /// scores scaled by 1/√head_dim. Head h has columns `h·head_dim ..`.
    Attention {
        q: View,
        k: View,
        v: View,
        queries: Side,
        keys: Side,
        causal: bool,
        heads: usize,
        head_dim: usize,
        /// Act, `[query tokens, heads·head_dim]`.
        out: Slot,
        /// `[query tokens, heads]` F32: log-sum-exp of the scaled scores.
        lse: Slot,
    },
    /// Gradient of [`Op::Attention`].
    AttentionBack {
        q: View,
        k: View,
        v: View,
        queries: Side,
        keys: Side,
        causal: bool,
        heads: usize,
        head_dim: usize,
        out: Slot,
        lse: Slot,
        dout: Slot,
        dq: View,
        dk: View,
        dv: View,
    },
    /// Softmax cross-entropy of `logits` (Act, target tokens × vocabulary) with the batch's labels, mean over its target
    /// tokens. Reports loss, right tokens and right sequences (every arg-max, first index on ties, equals its label).
    /// With `backward`, logits are overwritten by their gradient.
    CrossEntropy { logits: Slot, backward: bool },
    /// Decoding: one token per lane (target sequences of length 1; lane l is target row l). The key and value of each lane's
    /// token, columns `d..2d` and `2d..3d` of `qkv` (d = heads·head_dim), enter the cache at row `position·lanes + l` (lanes =
    /// [`crate::Limits::sequences`], position from [`crate::Lanes`]); then the lane's query attends to its own token and to
    /// those of its line of ancestors.
    CachedAttention {
        /// Act, `[target tokens, 3·d]`.
        qkv: Slot,
        /// Act, `[Cache(positions), 2·d]`: keys, then values. Never moved: [`crate::Lanes::parents`] says who continues whom.
        cache: Slot,
        heads: usize,
        head_dim: usize,
        /// Act, `[target tokens, d]`.
        out: Slot,
    },
    /// Decoding: lane l's query attends to all keys of source sequence `Lanes::sources[l]` of the last run whose batch had
    /// source tokens.
    LaneAttention { q: Slot, k: View, v: View, heads: usize, head_dim: usize, out: Slot },
    /// The `k` largest log-softmax values of each row of `logits` (F32), best first, the smaller token on ties; read by
    /// [`crate::Executor::top`].
    TopTokens { logits: Slot, k: usize },
    /// Global gradient norm, clipping to `clip` (none if 0), then Adam over the whole flat buffer with the step's learning
    /// rate and number from [`crate::Scalars`]; decoupled weight decay. CUDA also refreshes the bf16 copy of the weights.
    Adam { beta1: f32, beta2: f32, eps: f32, weight_decay: f32, clip: f32 },
}

/// Slots and ops, in the order in which they run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Every activation.
    pub slots: Vec<SlotInfo>,
    /// The operations.
    pub ops: Vec<Op>,
    /// Length of the flat parameter buffer.
    pub params: usize,
}

impl Program {
    /// A new slot.
    pub fn slot(&mut self, name: impl Into<String>, rows: Dim, cols: usize, dtype: Dtype) -> Slot {
        self.slots.push(SlotInfo { name: name.into(), rows, cols, dtype });
        Slot(self.slots.len() as u32 - 1)
    }

    /// Appends an op.
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// The description of a slot.
    pub fn info(&self, slot: Slot) -> &SlotInfo {
        &self.slots[slot.0 as usize]
    }

    /// Floating-point operations of the matrix products of one run (attention counted over the given lengths), the
    /// usual measure for "share of peak".
    pub fn flops(&self, src_lens: &[usize], tgt_lens: &[usize]) -> f64 {
        let tokens = |side| -> f64 {
            match side {
                Side::Src => src_lens.iter().sum::<usize>() as f64,
                Side::Tgt => tgt_lens.iter().sum::<usize>() as f64,
            }
        };
        let rows = |dim| match dim {
            Dim::Tokens(side) => tokens(side),
            Dim::Cache(_) => 0.0,
        };
        let lens = |side| match side {
            Side::Src => src_lens,
            Side::Tgt => tgt_lens,
        };
        let pairs = |q, k, causal: bool| -> f64 {
            let all: f64 = lens(q).iter().zip(lens(k)).map(|(&a, &b)| (a * b) as f64).sum();
            if causal { all / 2.0 } else { all }
        };
        self.ops
            .iter()
            .map(|op| match op {
                Op::Linear { x, w, .. } => 2.0 * rows(self.info(x.slot).rows) * w.len() as f64,
                Op::LinearBack { x, w, dx, .. } => {
                    let products = if dx.is_some() { 4.0 } else { 2.0 };
                    products * rows(self.info(x.slot).rows) * w.len() as f64
                }
                Op::Attention { queries, keys, causal, heads, head_dim, .. } => {
                    4.0 * pairs(*queries, *keys, *causal) * (heads * head_dim) as f64
                }
                Op::AttentionBack { queries, keys, causal, heads, head_dim, .. } => {
                    10.0 * pairs(*queries, *keys, *causal) * (heads * head_dim) as f64
                }
                _ => 0.0,
            })
            .sum()
    }
}

//! A model as data: slots (activations), params (ranges of one flat buffer) and the ops between them.
//!
//! The decision a reader would get wrong: backward ops *overwrite* what they write, with one exception that says
//! so (the token table in [`EmbedBack`], which is the output's too); nothing is ever zeroed between steps.
//! Rows past the batch's real tokens (a CUDA graph has fixed shapes) hold finite values in forward slots and exact
//! zeros in every gradient slot, so that weight gradients may sum over all rows of the capacity.

use crate::Adam;

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
    /// A decoder's cache: so many positions, each with one row per hypothesis ([`crate::Limits::sequences`]).
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
    /// Its elements in the flat buffer.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }

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

/// Declares [`Op`]: one variant for each payload struct, both of the same name.
macro_rules! ops {
    ($($name:ident),* $(,)?) => {
        /// One operation. Every op runs over the real rows of its batch.
        #[derive(Clone, Copy, Debug)]
        pub enum Op {
            $(#[doc = concat!("See the struct [`", stringify!($name), "`].")] $name($name)),*
        }

        impl Op {
            /// What the op is called in timings.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Op::$name(_) => stringify!($name)),*
                }
            }
        }

        $(impl From<$name> for Op {
            fn from(op: $name) -> Op {
                Op::$name(op)
            }
        })*
    };
}

ops![
    Embed,
    EmbedBack,
    AddNorm,
    AddNormBack,
    Linear,
    LinearBack,
    Activate,
    ActivateBack,
    Attention,
    AttentionBack,
    CrossEntropy,
    CachedAttention,
    SourceAttention,
    BestTokens,
    Adam,
];

/// `out = drop(LN(token[id]·scale + position[pos + 2]))`, ids and positions of `side` from the batch.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // here and below: the fields are the letters of the op's formula
pub struct Embed {
    pub side: Side,
    pub token: Param,
    pub position: Param,
    pub norm: Norm,
    pub scale: f32,
    pub dropout: Option<Dropout>,
    /// `[tokens, 2]` F32: mean and 1/std of each row.
    pub stat: Slot,
    /// F32: the start of the residual stream.
    pub out: Slot,
    /// The same in Act, where a linear layer reads it (post-norm).
    pub out_act: Option<Slot>,
}

/// Gradient of [`Embed`]. The gradient of `out` is `g` (F32) plus, if given, `dy` (Act).
/// *Adds* to the gradient of `token`; overwrites those of `position` (all rows) and `norm`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct EmbedBack {
    pub of: Embed,
    pub g: Slot,
    pub dy: Option<Slot>,
}

/// `s = x + drop(f)`, `y = LN(s)`. Without `f`, s = x and is not written again.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct AddNorm {
    /// F32.
    pub x: Slot,
    /// Act.
    pub f: Option<Slot>,
    pub dropout: Option<Dropout>,
    pub norm: Norm,
    /// F32; ignored without `f` (then it equals `x`).
    pub s: Slot,
    /// `[tokens, 2]` F32: mean and 1/std.
    pub stat: Slot,
    /// Act.
    pub y: Slot,
    /// F32 copy of `y`: the residual stream of a post-norm model.
    pub y_stream: Option<Slot>,
}

/// Gradient of [`AddNorm`]. `g` (F32) holds the gradient of the stream that leaves the op (of `s` for pre-norm,
/// of `y` for post-norm; nothing yet if `first`) and receives that of `x`. `dy` is the gradient of `y` (Act).
/// Pre: g ← g + LN'(dy). Post: g ← LN'(g + dy). Then `df = drop(g)` in Act. Overwrites the gradients of `norm`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct AddNormBack {
    pub of: AddNorm,
    pub order: NormOrder,
    pub first: bool,
    pub g: Slot,
    pub dy: Slot,
    pub df: Option<Slot>,
}

/// `y = x·Wᵀ + b`; x is `w.cols` wide, y `w.rows` wide; both Act (logits: y may be F32).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Linear {
    pub x: View,
    pub w: Param,
    pub b: Option<Param>,
    pub y: View,
}

/// Gradient of [`Linear`]: `dx = dy·W` (if asked), grad(w) = dyᵀ·x, grad(b) = Σ rows of dy. Does not read `y`. Where `dy` is F32
/// it is not rounded before the products; such a layer has no bias, and at most 64 outputs on CUDA.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct LinearBack {
    pub of: Linear,
    pub dy: View,
    pub dx: Option<View>,
}

/// `y = act(x)`; both Act.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Activate {
    pub kind: Activation,
    pub x: Slot,
    pub y: Slot,
}

/// `d ← d·act'(x)`, in place: `d` comes as the gradient of y and leaves as that of x. Does not read `y`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct ActivateBack {
    pub of: Activate,
    pub d: Slot,
}

/// How many heads an attention has, and their width. Head h has columns `h·dim ..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Heads {
    pub count: usize,
    pub dim: usize,
}

impl Heads {
    /// Columns of all heads together.
    pub fn width(&self) -> usize {
        self.count * self.dim
    }
}

/// Softmax attention of each sequence's queries over its own keys, per head; all operands are as wide as all heads, the
/// scores scaled by 1/√dim.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Attention {
    pub q: View,
    pub k: View,
    pub v: View,
    pub queries: Side,
    pub keys: Side,
    pub causal: bool,
    pub heads: Heads,
    /// Act, as wide as all heads.
    pub out: Slot,
    /// `[query tokens, heads]` F32: log-sum-exp of the scaled scores.
    pub lse: Slot,
}

/// Gradient of [`Attention`].
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct AttentionBack {
    pub of: Attention,
    pub dout: Slot,
    pub dq: View,
    pub dk: View,
    pub dv: View,
}

/// Softmax cross-entropy of `logits` (target tokens × vocabulary; Act, or F32 for more digits) with the batch's labels, mean over its target
/// tokens. Reports loss, right tokens and right sequences (every arg-max, first index on ties, equals its label).
/// With `backward`, logits are overwritten by their gradient.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct CrossEntropy {
    pub logits: Slot,
    pub backward: bool,
}

/// Decoding: one token per hypothesis (target sequences of length 1; hypothesis h is target row h). Key and value of
/// its token, columns `d..2d` and `2d..3d` of `qkv` (d = width of all heads), enter the cache at row
/// `position·n + h` (n = [`crate::Limits::sequences`], position from [`crate::Hypotheses`]). Then its query attends to its
/// own token and to those of its line of ancestors.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct CachedAttention {
    /// Act, `[target tokens, 3·d]`.
    pub qkv: Slot,
    /// Act, `[Cache(positions), 2·d]`: keys, then values. Never moved: [`crate::Hypotheses::parents`] says who continues
    /// whom.
    pub cache: Slot,
    pub heads: Heads,
    /// Act, `[target tokens, d]`.
    pub out: Slot,
}

/// Decoding: the query of hypothesis h attends to all keys of source sequence `Hypotheses::sources[h]` of the last run
/// whose batch had source tokens.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct SourceAttention {
    pub q: Slot,
    pub k: View,
    pub v: View,
    pub heads: Heads,
    pub out: Slot,
}

/// The `k` largest log-softmax values of each row of `logits` (F32), best first, the smaller token on ties; read by
/// [`crate::Executor::top`].
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct BestTokens {
    pub logits: Slot,
    pub k: usize,
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
    pub fn push(&mut self, op: impl Into<Op>) {
        self.ops.push(op.into());
    }

    /// The description of a slot.
    pub fn info(&self, slot: Slot) -> &SlotInfo {
        &self.slots[slot.0 as usize]
    }

    /// The optimiser, if it trains.
    pub fn adam(&self) -> Option<&Adam> {
        self.ops.iter().find_map(|op| if let Op::Adam(adam) = op { Some(adam) } else { None })
    }

    /// Floating-point operations of the matrix products of one run (attention counted over the given lengths), the
    /// usual measure for "share of peak".
    pub fn flops(&self, src_lens: &[usize], tgt_lens: &[usize]) -> f64 {
        let lens = |side| match side {
            Side::Src => src_lens,
            Side::Tgt => tgt_lens,
        };
        let rows = |view: View| match self.info(view.slot).rows {
            Dim::Tokens(side) => lens(side).iter().sum::<usize>() as f64,
            Dim::Cache(_) => 0.0,
        };
        let attention = |it: &Attention| -> f64 {
            let pairs: f64 = lens(it.queries).iter().zip(lens(it.keys)).map(|(&a, &b)| (a * b) as f64).sum();
            (if it.causal { pairs / 2.0 } else { pairs }) * it.heads.width() as f64
        };
        let flops = |op: &Op| match op {
            Op::Linear(Linear { x, w, .. }) => 2.0 * rows(*x) * w.len() as f64,
            Op::LinearBack(LinearBack { of: Linear { x, w, .. }, dx, .. }) => {
                (if dx.is_some() { 4.0 } else { 2.0 }) * rows(*x) * w.len() as f64
            }
            Op::Attention(it) => 4.0 * attention(it),
            Op::AttentionBack(it) => 10.0 * attention(&it.of),
            _ => 0.0,
        };
        self.ops.iter().map(flops).sum()
    }
}

//! One function per op; [`cases`] calls each with the shapes that matter: small and ragged for finite differences, and
//! the sizes of Transformer-S and -L for the kernels' tiles.

use super::{Build, Case, Functional, Lengths, Output};
use crate::{Activate, ActivateBack, Activation, Adam, AddNorm, AddNormBack, Attention, AttentionBack, CrossEntropy};
use crate::{Dropout, Dtype, Embed, EmbedBack, Heads, Linear, LinearBack, Norm, NormOrder, Side, Slot, View};
use Dtype::{Act, F32};

const SMALL: Lengths = (&[3, 1, 5], &[4, 2, 3]);
const LARGE: Lengths = (&[96, 33, 1, 64, 17, 130], &[80, 31, 2, 65, 16, 97]);
const LONG: Lengths = (&[512, 7], &[450, 400]);

/// Every op, forward and backward, in every variant that the model uses.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (size, at) in [("small", SMALL), ("large", LARGE)] {
        let d = if size == "small" { 32 } else { 256 };
        for side in [Side::Src, Side::Tgt] {
            all.push(embed(format!("embed {side:?}, {size}"), at, d, side, 1.0, None, false));
        }
        all.push(embed(format!("embed, dropout, scaled, {size}"), at, d, Side::Tgt, 4.0, Some(0.25), true));
        all.push(embed(format!("embed, post-norm, {size}"), at, d, Side::Src, 1.0, None, true));
        for order in [NormOrder::Pre, NormOrder::Post] {
            for first in [false, true] {
                for dropout in [None, Some(0.25)] {
                    let name = format!("norm {order:?}, first {first}, dropout {dropout:?}, {size}");
                    all.push(add_norm(name, at, d, order, first, dropout, true));
                }
            }
            all.push(add_norm(format!("norm {order:?} of the stream, {size}"), at, d, order, false, None, false));
            all.push(add_norm(format!("norm {order:?} of the stream, first, {size}"), at, d, order, true, None, false));
        }
        all.push(linear(format!("linear, {size}"), at, (d, d), 0, true, true));
        all.push(linear(format!("linear, up, {size}"), at, (d, 4 * d), 0, true, true));
        all.push(linear(format!("linear, down, {size}"), at, (4 * d, d), 0, true, true));
        all.push(linear(format!("linear, views, {size}"), at, (d, 2 * d), d, true, true));
        all.push(linear(format!("linear, no bias, {size}"), at, (d, 64), 0, false, true));
        all.push(linear(format!("linear, no input gradient, {size}"), at, (d, d), 0, true, false));
        for kind in [Activation::Relu, Activation::Gelu] {
            all.push(activate(format!("activation {kind:?}, {size}"), at, 2 * d, kind));
        }
        all.push(feed_forward(format!("feed-forward Gelu, {size}"), at, d, Activation::Gelu));
        if size == "large" {
            // Small cases are differentiated numerically, and h may cross ReLU's kink.
            all.push(feed_forward("feed-forward Relu, large".into(), at, d, Activation::Relu));
        }
        let heads: &[(usize, usize)] =
            if size == "small" { &[(2, 16)] } else { &[(4, 16), (4, 32), (4, 64), (2, 128)] };
        for &(count, dim) in heads {
            for kind in KINDS {
                let name = format!("attention {}, {count} heads of {dim}, {size}", kind.0);
                all.push(attention(name, at, Heads { count, dim }, kind));
            }
        }
        for vocab in [64, 40] {
            all.push(cross_entropy(format!("cross-entropy, {vocab} tokens, {size}"), at, vocab, true));
        }
        all.push(cross_entropy(format!("cross-entropy, forward, {size}"), at, 64, false));
        for with_dx in [true, false] {
            all.push(logits(format!("logits in fp32, input gradient {with_dx}, {size}"), at, d, with_dx));
        }
    }
    all.push(embed("embed, 512 wide".into(), LARGE, 512, Side::Src, 1.0, None, true));
    all.push(add_norm("norm Pre, 512 wide".into(), LARGE, 512, NormOrder::Pre, false, Some(0.1), true));
    all.push(add_norm("norm Post, 64 wide".into(), LARGE, 64, NormOrder::Post, false, Some(0.1), true));
    for kind in KINDS {
        all.push(attention(format!("attention {}, long", kind.0), LONG, Heads { count: 2, dim: 64 }, kind));
    }
    let plain = Adam { beta1: 0.9, beta2: 0.98, weight_decay: 0.0, clip: 0.0, ema: 0.0 };
    all.push(adam("Adam, plain".into(), plain, 1, 1e-8));
    all.push(adam("Adam, clipped".into(), Adam { clip: 1.0, ..plain }, 7, 1e-8));
    all.push(adam("Adam, not clipped, decay".into(), Adam { weight_decay: 0.1, clip: 1000.0, ..plain }, 1000, 1e-8));
    all.push(adam("Adam, large eps".into(), plain, 7, 0.5));
    all.push(adam("Adam, average of the weights, warm-up".into(), Adam { ema: 0.9995, ..plain }, 3, 1e-8));
    all.push(adam("Adam, average of the weights".into(), Adam { ema: 0.5, ..plain }, 1000, 1e-8));
    all
}

/// Rows of the batches of [`large_cases`]: around them a GPU changes its kernels. The CPU takes too long over so many for
/// its own tests, so they are for comparing a GPU with it.
pub const LARGE_ROWS: [usize; 5] = [2048, 3072, 4096, 6144, 6272];

/// Ops with the sizes of Transformer-S on so many rows, a multiple of 128.
pub fn large_cases(rows: usize) -> Vec<Case> {
    let (src, tgt) = ([96, 32].repeat(rows / 128), vec![64; rows / 64]);
    let (at, d) = ((&src[..], &tgt[..]), 256);
    let mut all = vec![
        embed(format!("embed, {rows} rows"), at, d, Side::Src, 1.0, Some(0.1), false),
        add_norm(format!("norm, {rows} rows"), at, d, NormOrder::Pre, false, Some(0.1), true),
        linear(format!("linear, {rows} rows"), at, (d, d), 0, true, true),
        linear(format!("linear, views, {rows} rows"), at, (d, 2 * d), d, true, true),
        cross_entropy(format!("cross-entropy, {rows} rows"), at, 64, true),
        logits(format!("logits in fp32, {rows} rows"), at, d, true),
        logits(format!("logits in fp32, no input gradient, {rows} rows"), at, d, false),
    ];
    for kind in [Activation::Relu, Activation::Gelu] {
        all.push(feed_forward(format!("feed-forward {kind:?}, {rows} rows"), at, d, kind));
    }
    for kind in KINDS {
        all.push(attention(format!("attention {}, {rows} rows", kind.0), at, Heads { count: 4, dim: 64 }, kind));
    }
    all
}

fn drop(p: Option<f32>) -> Option<Dropout> {
    p.map(|p| Dropout { p, site: 5 })
}

fn norm(b: &mut Build, d: usize) -> Norm {
    let (gamma, beta) = (b.param(1, d, 1.5), b.param(1, d, 0.5));
    b.by_param("gamma", gamma, false);
    b.by_param("beta", beta, false);
    Norm { gamma, beta }
}

fn embed(name: String, at: Lengths, d: usize, side: Side, scale: f32, p: Option<f32>, post: bool) -> Case {
    let mut b = Build::new(name, at, 12);
    let (token, position) = (b.param(12, d, 1.0), b.param(140, d, 1.0));
    b.by_param("token", token, true);
    b.by_param("position", position, false);
    let (norm, dropout) = (norm(&mut b, d), drop(p));
    let stat = b.out("stat", side, 2, F32);
    let out = b.out("out", side, d, F32);
    let g = b.input("g", side, d, F32);
    b.pair(out, g);
    let (mut out_act, mut dy) = (None, None);
    if post {
        let (y, c) = (b.out("out_act", side, d, Act), b.input("dy", side, d, Act));
        b.pair(y, c);
        (out_act, dy) = (Some(y), Some(c));
    }
    let of = Embed { side, token, position, norm, scale, dropout, stat, out, out_act };
    b.push(of);
    b.push(EmbedBack { of, g, dy });
    b.finish()
}

fn add_norm(name: String, at: Lengths, d: usize, order: NormOrder, first: bool, p: Option<f32>, with_f: bool) -> Case {
    let side = Side::Src;
    let mut b = Build::new(name, at, 12);
    let (norm, dropout) = (norm(&mut b, d), drop(p));
    let x = b.input("x", side, d, F32);
    let f = with_f.then(|| b.input("f", side, d, Act));
    let s = if with_f { b.out("s", side, d, F32) } else { x };
    let stat = b.out("stat", side, 2, F32);
    let y = b.out("y", side, d, Act);
    let y_stream = (order == NormOrder::Post).then(|| b.out("y_stream", side, d, F32));
    let g = b.inout("g", side, d, F32);
    let dy = b.input("dy", side, d, Act);
    let df = with_f.then(|| b.out("df", side, d, Act));
    b.pair(y, dy);
    if !first {
        b.pair(y_stream.unwrap_or(s), g);
    }
    b.by_slot(x, g);
    if let (Some(f), Some(df)) = (f, df) {
        b.by_slot(f, df);
    }
    let of = AddNorm { x, f, dropout, norm, s, stat, y, y_stream };
    b.push(of);
    b.push(AddNormBack { of, order, first, g, dy, df });
    b.finish()
}

/// `pad` columns stand before and after x and y in their slots.
fn linear(name: String, at: Lengths, (cols, rows): (usize, usize), pad: usize, bias: bool, with_dx: bool) -> Case {
    let side = Side::Tgt;
    let mut b = Build::new(name, at, 12);
    let w = b.param(rows, cols, 1.0 / (cols as f32).sqrt());
    b.by_param("w", w, false);
    let bias = bias.then(|| b.param(1, rows, 0.5));
    if let Some(bias) = bias {
        b.by_param("b", bias, false);
    }
    let view = |slot: Slot| View { slot, col: pad };
    let x = b.input("x", side, cols + 2 * pad, Act);
    // Inputs too, so that the columns beside the view are known (and stay as they are).
    let y = b.inout("y", side, rows + 2 * pad, Act);
    let dy = b.input("dy", side, rows + 2 * pad, Act);
    let dx = with_dx.then(|| b.inout("dx", side, cols + 2 * pad, Act));
    b.pair(y, dy);
    if let Some(dx) = dx.filter(|_| pad == 0) {
        b.by_slot(x, dx);
    }
    let of = Linear { x: view(x), w, b: bias, y: view(y) };
    b.push(of);
    b.push(LinearBack { of, dy: view(dy), dx: dx.map(view) });
    b.finish()
}

fn activate(name: String, at: Lengths, cols: usize, kind: Activation) -> Case {
    let side = Side::Src;
    let mut b = Build::new(name, at, 12);
    let x = b.input("x", side, cols, Act);
    let y = b.out("y", side, cols, Act);
    let d = b.inout("d", side, cols, Act);
    b.pair(y, d);
    b.by_slot(x, d);
    let of = Activate { kind, x, y };
    b.push(of);
    b.push(ActivateBack { of, d });
    b.finish()
}

/// The whole block: devices may fuse the activation with its neighbours.
fn feed_forward(name: String, at: Lengths, d: usize, kind: Activation) -> Case {
    let side = Side::Src;
    let mut b = Build::new(name, at, 12);
    let amplitude = |n: usize| 1.0 / (n as f32).sqrt();
    let (w1, b1) = (b.param(2 * d, d, amplitude(d)), b.param(1, 2 * d, 0.5));
    let (w2, b2) = (b.param(d, 2 * d, amplitude(2 * d)), b.param(1, d, 0.5));
    for (name, param) in [("w1", w1), ("b1", b1), ("w2", w2), ("b2", b2)] {
        b.by_param(name, param, false);
    }
    let x = b.input("x", side, d, Act);
    let h = b.out("h", side, 2 * d, Act);
    let a = b.out("a", side, 2 * d, Act);
    let f = b.out("f", side, d, Act);
    let df = b.input("df", side, d, Act);
    let dh = b.out("dh", side, 2 * d, Act);
    let dx = b.out("dx", side, d, Act);
    b.pair(f, df);
    b.by_slot(x, dx);
    let first = Linear { x: x.into(), w: w1, b: Some(b1), y: h.into() };
    let middle = Activate { kind, x: h, y: a };
    let last = Linear { x: a.into(), w: w2, b: Some(b2), y: f.into() };
    b.push(first);
    b.push(middle);
    b.push(last);
    b.push(LinearBack { of: last, dy: df.into(), dx: Some(dh.into()) });
    b.push(ActivateBack { of: middle, d: dh });
    b.push(LinearBack { of: first, dy: dh.into(), dx: Some(dx.into()) });
    b.finish()
}

/// The kinds of attention: name, whose queries, whose keys, whether under a causal mask.
type Kind = (&'static str, Side, Side, bool);

const KINDS: [Kind; 3] = [
    ("self", Side::Src, Side::Src, false),
    ("causal", Side::Tgt, Side::Tgt, true),
    ("cross", Side::Tgt, Side::Src, false),
];

fn attention(name: String, at: Lengths, heads: Heads, (_, queries, keys, causal): Kind) -> Case {
    let mut b = Build::new(name, at, 12);
    let d = heads.width();
    // q alone, k and v side by side with one slot between them and the edge: views with different strides.
    let q = b.input("q", queries, d, Act);
    let kv = b.input("kv", keys, 3 * d, Act);
    let out = b.out("out", queries, d, Act);
    let lse = b.out("lse", queries, heads.count, F32);
    let dout = b.input("dout", queries, d, Act);
    let dq = b.out("dq", queries, d, Act);
    let dkv = b.out("dkv", keys, 3 * d, Act);
    let unused = vec![0.0; b.case.batch.side(keys).tokens() * 3 * d];
    b.case.inputs.push((dkv, unused));
    let view = |slot, col| View { slot, col };
    b.pair(out, dout);
    b.by_slot(q, dq);
    b.by_slot(kv, dkv);
    let of = Attention { q: q.into(), k: view(kv, d), v: view(kv, 2 * d), queries, keys, causal, heads, out, lse };
    b.push(of);
    b.push(AttentionBack { of, dout, dq: dq.into(), dk: view(dkv, d), dv: view(dkv, 2 * d) });
    b.finish()
}

fn cross_entropy(name: String, at: Lengths, vocab: usize, backward: bool) -> Case {
    let mut b = Build::new(name, at, vocab);
    let logits = b.inout("logits", Side::Tgt, vocab, Act);
    // The second sequence is right everywhere; its first token by a tie that the first index wins, and the first token of
    // the first sequence loses such a tie.
    let (from, to) = (b.case.batch.tgt.cu[1] as usize, b.case.batch.tgt.cu[2] as usize);
    let labels = &mut b.case.batch.labels;
    let values = &mut b.case.inputs.last_mut().expect("the logits were just added").1;
    for (t, &label) in labels.iter().enumerate().take(to).skip(from) {
        values[t * vocab + label as usize] = 3.0;
    }
    (labels[from], labels[0]) = (2, 5);
    for (t, at) in [(from, [2, 7]), (0, [4, 5])] {
        values[t * vocab..(t + 1) * vocab].fill(0.25);
        at.iter().for_each(|&v| values[t * vocab + v] = 2.0);
    }
    b.case.outputs.extend([Output::Result, Output::Right]);
    if backward {
        b.case.functional = Functional::Loss;
        b.by_slot(logits, logits);
    }
    b.push(CrossEntropy { logits, backward });
    b.finish()
}

/// The output layer, the loss and their gradients, in fp32. The input gradient is bf16 on CUDA; the rest is not.
fn logits(name: String, at: Lengths, d: usize, with_dx: bool) -> Case {
    let mut b = Build::new(name, at, 64);
    let w = b.param(64, d, 1.0 / (d as f32).sqrt());
    b.by_param("w", w, false);
    let x = b.input("x", Side::Tgt, d, Act);
    let logits = b.out("logits", Side::Tgt, 64, F32);
    let dx = with_dx.then(|| b.out("dx", Side::Tgt, d, Act));
    b.case.outputs.push(Output::Result);
    b.case.functional = Functional::Loss;
    b.case.tight = !with_dx;
    if let Some(dx) = dx {
        b.by_slot(x, dx);
    }
    let of = Linear { x: x.into(), w, b: None, y: logits.into() };
    b.push(of);
    b.push(CrossEntropy { logits, backward: true });
    b.push(LinearBack { of, dy: logits.into(), dx: dx.map(Into::into) });
    b.finish()
}

fn adam(name: String, op: Adam, step: u64, eps: f32) -> Case {
    let mut b = Build::new(name, (&[1], &[1]), 12);
    b.param(200, 33, 1.0);
    (b.case.scalars.step, b.case.scalars.eps) = (step, eps);
    b.case.outputs.extend([Output::Trained, Output::Result]);
    if op.averages() {
        b.case.outputs.push(Output::Averaged);
    }
    b.push(op);
    b.finish()
}

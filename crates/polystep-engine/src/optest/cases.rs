//! One function per op; [`cases`] calls each with the shapes that matter: small and ragged for finite differences, and
//! the sizes of Transformer-S and -L for the kernels' tiles.

use super::{Build, Case, Functional, Output};
use crate::{Activation, Dropout, Dtype, Norm, NormOrder, Op, Side, Slot, View};
use Dtype::{Act, F32};

/// (source lengths, target lengths)
type Lengths = (&'static [usize], &'static [usize]);

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
        for &(heads, head_dim) in heads {
            use Side::{Src, Tgt};
            for (what, q, k, causal) in
                [("self", Src, Src, false), ("causal", Tgt, Tgt, true), ("cross", Tgt, Src, false)]
            {
                let name = format!("attention {what}, {heads} heads of {head_dim}, {size}");
                all.push(attention(name, at, heads, head_dim, q, k, causal));
            }
        }
        for vocab in [64, 40] {
            all.push(cross_entropy(format!("cross-entropy, {vocab} tokens, {size}"), at, vocab, true));
        }
        all.push(cross_entropy(format!("cross-entropy, forward, {size}"), at, 64, false));
    }
    all.push(embed("embed, 512 wide".into(), LARGE, 512, Side::Src, 1.0, None, true));
    all.push(add_norm("norm Pre, 512 wide".into(), LARGE, 512, NormOrder::Pre, false, Some(0.1), true));
    all.push(add_norm("norm Post, 64 wide".into(), LARGE, 64, NormOrder::Post, false, Some(0.1), true));
    all.push(attention("attention self, long".into(), LONG, 2, 64, Side::Src, Side::Src, false));
    all.push(attention("attention causal, long".into(), LONG, 2, 64, Side::Tgt, Side::Tgt, true));
    all.push(attention("attention cross, long".into(), LONG, 2, 64, Side::Tgt, Side::Src, false));
    all.push(adam("Adam, plain".into(), 0.0, 0.0, 1));
    all.push(adam("Adam, clipped".into(), 0.0, 1.0, 7));
    all.push(adam("Adam, not clipped, decay".into(), 0.1, 1000.0, 1000));
    all
}

fn seed_of(name: &str) -> u64 {
    name.bytes().fold(17, |h: u64, b| h.wrapping_mul(1_000_003) ^ u64::from(b))
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
    let mut b = Build::new(&*name, seed_of(&name), at.0, at.1, 12);
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
    b.push(Op::Embed { side, token, position, norm, scale, dropout, stat, out, out_act });
    b.push(Op::EmbedBack { side, token, position, norm, scale, dropout, stat, g, dy });
    b.finish()
}

fn add_norm(name: String, at: Lengths, d: usize, order: NormOrder, first: bool, p: Option<f32>, with_f: bool) -> Case {
    let side = Side::Src;
    let mut b = Build::new(&*name, seed_of(&name), at.0, at.1, 12);
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
    b.push(Op::AddNorm { x, f, dropout, norm, s, stat, y, y_stream });
    b.push(Op::AddNormBack { order, first, s, stat, norm, dropout, g, dy, df });
    b.finish()
}

/// `pad` columns stand before and after x and y in their slots.
fn linear(name: String, at: Lengths, (cols, rows): (usize, usize), pad: usize, bias: bool, with_dx: bool) -> Case {
    let side = Side::Tgt;
    let mut b = Build::new(&*name, seed_of(&name), at.0, at.1, 12);
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
    b.push(Op::Linear { x: view(x), w, b: bias, y: view(y) });
    b.push(Op::LinearBack { x: view(x), w, b: bias, dy: view(dy), dx: dx.map(view) });
    b.finish()
}

fn activate(name: String, at: Lengths, cols: usize, kind: Activation) -> Case {
    let side = Side::Src;
    let mut b = Build::new(&*name, seed_of(&name), at.0, at.1, 12);
    let x = b.input("x", side, cols, Act);
    let y = b.out("y", side, cols, Act);
    let d = b.inout("d", side, cols, Act);
    b.pair(y, d);
    b.by_slot(x, d);
    b.push(Op::Activate { kind, x, y });
    b.push(Op::ActivateBack { kind, x, d });
    b.finish()
}

/// The whole block: devices may fuse the activation with its neighbours.
fn feed_forward(name: String, at: Lengths, d: usize, kind: Activation) -> Case {
    let side = Side::Src;
    let mut b = Build::new(&*name, seed_of(&name), at.0, at.1, 12);
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
    let (x, y, w) = (View::from(x), View::from(h), w1);
    b.push(Op::Linear { x, w, b: Some(b1), y });
    b.push(Op::Activate { kind, x: h, y: a });
    b.push(Op::Linear { x: a.into(), w: w2, b: Some(b2), y: f.into() });
    let back = Some(View::from(dh));
    b.push(Op::LinearBack { x: a.into(), w: w2, b: Some(b2), dy: df.into(), dx: back });
    b.push(Op::ActivateBack { kind, x: h, d: dh });
    let back = Some(View::from(dx));
    b.push(Op::LinearBack { x, w, b: Some(b1), dy: dh.into(), dx: back });
    b.finish()
}

fn attention(
    name: String,
    at: Lengths,
    heads: usize,
    head_dim: usize,
    queries: Side,
    keys: Side,
    causal: bool,
) -> Case {
    let mut b = Build::new(&*name, seed_of(&name), at.0, at.1, 12);
    let d = heads * head_dim;
    // q alone, k and v side by side with one slot between them and the edge: views with different strides.
    let q = b.input("q", queries, d, Act);
    let kv = b.input("kv", keys, 3 * d, Act);
    let out = b.out("out", queries, d, Act);
    let lse = b.out("lse", queries, heads, F32);
    let dout = b.input("dout", queries, d, Act);
    let dq = b.out("dq", queries, d, Act);
    let dkv = b.out("dkv", keys, 3 * d, Act);
    let unused = vec![0.0; b.tokens_of(keys) * 3 * d];
    b.case.inputs.push((dkv, unused));
    let view = |slot, col| View { slot, col };
    let (k, v, dk, dv) = (view(kv, d), view(kv, 2 * d), view(dkv, d), view(dkv, 2 * d));
    b.pair(out, dout);
    b.by_slot(q, dq);
    b.by_slot(kv, dkv);
    b.push(Op::Attention { q: q.into(), k, v, queries, keys, causal, heads, head_dim, out, lse });
    b.push(Op::AttentionBack {
        q: q.into(),
        k,
        v,
        queries,
        keys,
        causal,
        heads,
        head_dim,
        out,
        lse,
        dout,
        dq: dq.into(),
        dk,
        dv,
    });
    b.finish()
}

fn cross_entropy(name: String, at: Lengths, vocab: usize, backward: bool) -> Case {
    let mut b = Build::new(&*name, seed_of(&name), at.0, at.1, vocab);
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
    b.push(Op::CrossEntropy { logits, backward });
    b.finish()
}

fn adam(name: String, weight_decay: f32, clip: f32, step: u64) -> Case {
    let mut b = Build::new(&*name, seed_of(&name), &[1], &[1], 12);
    b.param(200, 33, 1.0);
    b.case.scalars.step = step;
    b.case.outputs.extend([Output::State, Output::Result]);
    b.push(Op::Adam { beta1: 0.9, beta2: 0.98, eps: 1e-8, weight_decay, clip });
    b.finish()
}

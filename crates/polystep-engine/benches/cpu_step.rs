//! One training step of Transformer-S on the CPU, the shapes of PyTorch's baseline: `cargo bench -p polystep-engine --bench
//! cpu_step -- [batch src tgt threads steps]`. Prints the best and the median step and where the time goes.

use polystep_engine::cpu::Cpu;
use polystep_engine::philox::philox;
use polystep_engine::*;
use std::time::Instant;

const D: usize = 256;
const FFN: usize = 1024;
const HEADS: usize = 4;
const LAYERS: usize = 4;
const VOCAB: usize = 64;

/// Pre-norm, GELU; the backward pass is in the order of the forward pass reversed.
#[derive(Default)]
struct Model {
    p: Program,
    back: Vec<Op>,
}

impl Model {
    fn param(&mut self, rows: usize, cols: usize) -> Param {
        let offset = self.p.params;
        self.p.params = (offset + rows * cols).next_multiple_of(64);
        Param { offset, rows, cols }
    }

    fn slot(&mut self, side: Side, cols: usize) -> Slot {
        let name = format!("slot {}", self.p.slots.len());
        self.p.slot(name, Dim::Tokens(side), cols, Dtype::Act)
    }

    fn norm(&mut self) -> Norm {
        Norm { gamma: self.param(1, D), beta: self.param(1, D) }
    }

    /// y = x·Wᵀ + b; returns y and the slot of its gradient.
    fn linear(&mut self, side: Side, x: Slot, out: usize, dx: Slot) -> (Slot, Slot) {
        let inp = self.p.info(x).cols;
        let (w, b) = (self.param(out, inp), Some(self.param(1, out)));
        let (y, dy) = (self.slot(side, out), self.slot(side, out));
        let of = Linear { x: x.into(), w, b, y: y.into() };
        self.p.push(of);
        self.back.push(LinearBack { of, dy: dy.into(), dx: Some(dx.into()) }.into());
        (y, dy)
    }

    fn add_norm(&mut self, side: Side, x: Slot, f: Option<(Slot, Slot)>, g: Slot, first: bool) -> (Slot, Slot, Slot) {
        let s = if f.is_some() { self.slot(side, D) } else { x };
        let (stat, y, dy, norm) = (self.slot(side, 2), self.slot(side, D), self.slot(side, D), self.norm());
        let (f, df) = (f.map(|f| f.0), f.map(|f| f.1));
        let of = AddNorm { x, f, dropout: None, norm, s, stat, y, y_stream: None };
        self.p.push(of);
        self.back.push(AddNormBack { of, order: NormOrder::Pre, first, g, dy, df }.into());
        (s, y, dy)
    }

    fn attention(&mut self, side: Side, y: Slot, dy: Slot, memory: Option<(Slot, Slot, usize)>) -> (Slot, Slot) {
        let width = if memory.is_some() { D } else { 3 * D };
        let (own, down) = self.linear(side, y, width, dy);
        let view = |slot, i: usize| View { slot, col: i * D };
        let (keys, k, v, dk, dv) = match memory {
            Some((kv, dkv, l)) => {
                (Side::Src, view(kv, 2 * l), view(kv, 2 * l + 1), view(dkv, 2 * l), view(dkv, 2 * l + 1))
            }
            None => (side, view(own, 1), view(own, 2), view(down, 1), view(down, 2)),
        };
        let (out, dout, lse) = (self.slot(side, D), self.slot(side, D), self.slot(side, HEADS));
        let (q, dq, heads) = (view(own, 0), view(down, 0), Heads { count: HEADS, dim: D / HEADS });
        let causal = memory.is_none() && side == Side::Tgt;
        let of = Attention { q, k, v, queries: side, keys, causal, heads, out, lse };
        self.p.push(of);
        self.back.push(AttentionBack { of, dout, dq, dk, dv }.into());
        self.linear(side, out, D, dout)
    }

    fn stack(&mut self, side: Side, token: Param, memory: Option<(Slot, Slot)>) -> (Slot, Slot) {
        let (position, norm) = (self.param(514, D), self.norm());
        let (stat, mut x, g) = (self.slot(side, 2), self.slot(side, D), self.slot(side, D));
        let (scale, dropout) = (1.0, None);
        let of = Embed { side, token, position, norm, scale, dropout, stat, out: x, out_act: None };
        self.p.push(of);
        self.back.push(EmbedBack { of, g, dy: None }.into());
        let (_, mut y, mut dy) = self.add_norm(side, x, None, g, false);
        for layer in 0..LAYERS {
            let f = self.attention(side, y, dy, None);
            (x, y, dy) = self.add_norm(side, x, Some(f), g, false);
            if let Some((kv, dkv)) = memory {
                let f = self.attention(side, y, dy, Some((kv, dkv, layer)));
                (x, y, dy) = self.add_norm(side, x, Some(f), g, false);
            }
            let (h, dh) = self.linear(side, y, FFN, dy);
            let a = self.slot(side, FFN);
            let of = Activate { kind: Activation::Gelu, x: h, y: a };
            self.p.push(of);
            self.back.push(ActivateBack { of, d: dh }.into());
            let f = self.linear(side, a, D, dh);
            (x, y, dy) = self.add_norm(side, x, Some(f), g, layer + 1 == LAYERS);
        }
        (y, dy)
    }
}

fn transformer() -> Program {
    let mut m = Model::default();
    let token = m.param(VOCAB, D);
    let (y, dy) = m.stack(Side::Src, token, None);
    let memory = m.linear(Side::Src, y, LAYERS * 2 * D, dy);
    let (y, dy) = m.stack(Side::Tgt, token, Some(memory));
    let logits = m.slot(Side::Tgt, VOCAB);
    let of = Linear { x: y.into(), w: token, b: None, y: logits.into() };
    m.p.push(of);
    m.p.push(CrossEntropy { logits, backward: true });
    m.p.push(LinearBack { of, dy: logits.into(), dx: Some(dy.into()) });
    m.p.ops.extend(m.back.into_iter().rev());
    m.p.push(Adam { beta1: 0.9, beta2: 0.98, weight_decay: 0.0, clip: 1.0, ema: 0.0 });
    m.p
}

fn main() {
    let args: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let arg = |i: usize, default| args.get(i).copied().unwrap_or(default);
    let (batch, src, tgt, threads, steps) = (arg(0, 32), arg(1, 96), arg(2, 80), arg(3, 2), arg(4, 9));
    let program = transformer();
    let limits = Limits { sequences: batch, src_tokens: batch * src, tgt_tokens: batch * tgt };
    let mut cpu = Cpu::new(vec![program.clone()], limits, threads).expect("the program is sound");
    let words = (0..program.params as u32).map(|i| philox([i, 0, 0, 0], 7)[0]);
    let params: Vec<f32> = words.map(|w| (w as f32 / u32::MAX as f32 - 0.5) * 0.07).collect();
    cpu.set_params(&params).expect("as many as the program has");
    let mut data = Batch::default();
    data.clear();
    let mut id = 0u32;
    let mut ids = |n: usize| -> Vec<i32> {
        id += 1;
        (0..n as u32).map(|i| (3 + philox([i, id, 1, 0], 3)[0] % 57) as i32).collect()
    };
    for _ in 0..batch {
        data.src.push(ids(src));
        data.tgt.push(ids(tgt));
    }
    data.labels = ids(data.tgt.tokens());
    let mut times = Vec::new();
    for step in 1..=steps as u64 + 2 {
        if step == 3 {
            cpu.times();
        }
        let start = Instant::now();
        cpu.run(0, &data, &Scalars { lr: 1e-4, eps: 1e-8, step, seed: step }).expect("within the limits");
        if step > 2 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let flops = program.flops(&vec![src; batch], &vec![tgt; batch]);
    let (best, loss) = (times[0], cpu.results().expect("it ran").last().expect("it ran").loss);
    println!(
        "batch {batch}, {src}/{tgt} tokens, {threads} threads: best {best:.1} ms/step, median {:.1}, {:.0} GFLOP/s, loss {loss:.4}",
        times[times.len() / 2],
        flops / best / 1e6
    );
    for (kind, time) in cpu.times() {
        println!("  {kind:16} {:8.2} ms", time.as_secs_f64() * 1e3 / steps as f64);
    }
}

//! The CPU's ops against the plainest possible code in f64: what the formulas say, element by element.

use polystep_engine::cpu::Cpu;
use polystep_engine::optest::{self, Case};
use polystep_engine::{Activate, Activation, Adam, Attention, Linear, LinearBack, Op};

fn outputs(case: &Case) -> Vec<(String, Vec<f32>)> {
    let mut cpu = Cpu::new(vec![case.program.clone()], case.limits, 2).unwrap();
    optest::run(case, &mut cpu).unwrap()
}

fn named<'a>(outputs: &'a [(String, Vec<f32>)], name: &str) -> &'a [f32] {
    &outputs.iter().find(|(n, _)| n == name).unwrap().1
}

fn close(what: &str, got: &[f32], want: impl IntoIterator<Item = f64>) {
    let want: Vec<f64> = want.into_iter().collect();
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        assert!((f64::from(*g) - w).abs() <= 2e-5 * (1.0 + w.abs()), "{what}[{i}]: {g}, not {w}");
    }
}

fn cases_of(pick: impl Fn(&Op) -> bool) -> Vec<Case> {
    let found: Vec<_> = optest::cases().into_iter().filter(|c| c.program.ops.iter().any(&pick)).collect();
    assert!(!found.is_empty());
    found
}

#[test]
fn adam_is_pytorchs() {
    for case in cases_of(|op| matches!(op, Op::Adam(_))) {
        let Op::Adam(it @ Adam { beta1, beta2, weight_decay, clip, .. }) = case.program.ops[0] else { unreachable!() };
        let [b1, b2, eps, decay, clip] = [beta1, beta2, case.scalars.eps, weight_decay, clip].map(f64::from);
        let (lr, t) = (f64::from(case.scalars.lr), case.scalars.step as f64);
        let norm = case.grads.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        let factor = if clip > 0.0 { (clip / (norm + 1e-6)).min(1.0) } else { 1.0 };
        let stepped = |i: usize| {
            let g = f64::from(case.grads[i]) * factor;
            let m = b1 * f64::from(case.moments.0[i]) + (1.0 - b1) * g;
            let v = b2 * f64::from(case.moments.1[i]) + (1.0 - b2) * g * g;
            let (mh, vh) = (m / (1.0 - b1.powf(t)), v / (1.0 - b2.powf(t)));
            let p = f64::from(case.params[i]) * (1.0 - lr * decay);
            (p - lr * mh / (vh.sqrt() + eps), m, v)
        };
        let out = outputs(&case);
        let n = 0..case.params.len();
        close("parameters", named(&out, "parameters"), n.clone().map(|i| stepped(i).0));
        close("first", named(&out, "first moments"), n.clone().map(|i| stepped(i).1));
        close("second", named(&out, "second moments"), n.map(|i| stepped(i).2));
        close("norm", named(&out, "gradient norm"), [norm]);
        if it.averages() {
            let share = (9.0 / (10.0 + t)).max(1.0 - f64::from(it.ema));
            let average = |i: usize| f64::from(case.moments.0[i]) * (1.0 - share) + stepped(i).0 * share;
            close("average", named(&out, "average of the weights"), (0..case.params.len()).map(average));
            assert_eq!(named(&out, "average of the weights"), named(&out, "exchanged parameters"));
        }
    }
}

#[test]
fn cross_entropy_reports() {
    for case in cases_of(|op| matches!(op, Op::CrossEntropy(_))).into_iter().filter(|c| c.program.ops.len() == 1) {
        let (slot, logits) = &case.inputs[0];
        let vocab = case.program.info(*slot).cols;
        let labels = &case.batch.labels;
        let (mut loss, mut right) = (0.0, Vec::new());
        for (row, &label) in logits.chunks(vocab).zip(labels) {
            let total: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
            loss += total.ln() - f64::from(row[label as usize]);
            let best = (0..vocab).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            right.push(best == label as usize);
        }
        let sequences: Vec<bool> =
            case.batch.tgt.cu.windows(2).map(|w| right[w[0] as usize..w[1] as usize].iter().all(|r| *r)).collect();
        assert!(sequences[1] && !sequences[0], "the case has a right and a wrong sequence, both with ties");
        let out = outputs(&case);
        let count = |of: &[bool]| of.iter().filter(|r| **r).count() as f64;
        close("loss", named(&out, "loss"), [loss / labels.len() as f64]);
        close("counts", named(&out, "right tokens and sequences"), [count(&right), count(&sequences)]);
        close("right", named(&out, "right"), sequences.iter().map(|r| f64::from(u8::from(*r))));
    }
}

#[test]
fn attention_is_softmax_of_scores() {
    for case in cases_of(|op| matches!(op, Op::Attention(_))) {
        let Op::Attention(Attention { queries, causal, heads, q, k, v, keys, .. }) = case.program.ops[0] else {
            unreachable!()
        };
        let (heads, head_dim) = (heads.count, heads.dim);
        let side = |s| case.batch.side(s);
        let (d, out) = (heads * head_dim, outputs(&case));
        let (mut want, mut lse) = (vec![0.0; side(queries).tokens() * d], vec![0.0; side(queries).tokens() * heads]);
        let value = |view: polystep_engine::View, row: usize, col: usize| {
            f64::from(case.input(view.slot)[row * case.program.info(view.slot).cols + view.col + col])
        };
        for (qs, ks) in side(queries).cu.windows(2).zip(side(keys).cu.windows(2)) {
            for i in qs[0]..qs[1] {
                let last = if causal { ks[0] + i - qs[0] + 1 } else { ks[1] };
                for h in 0..heads {
                    let dot = |j: i32| -> f64 {
                        let at = |c| value(q, i as usize, h * head_dim + c) * value(k, j as usize, h * head_dim + c);
                        (0..head_dim).map(at).sum::<f64>() / (head_dim as f64).sqrt()
                    };
                    let e: Vec<f64> = (ks[0]..last).map(|j| dot(j).exp()).collect();
                    let total: f64 = e.iter().sum();
                    lse[i as usize * heads + h] = total.ln();
                    for c in 0..head_dim {
                        let weighted = (ks[0]..last).zip(&e).map(|(j, e)| e * value(v, j as usize, h * head_dim + c));
                        want[i as usize * d + h * head_dim + c] = weighted.sum::<f64>() / total;
                    }
                }
            }
        }
        close(&case.name, named(&out, "out"), want);
        close(&case.name, named(&out, "lse"), lse);
    }
}

#[test]
fn linear_and_its_gradients() {
    for case in cases_of(|op| matches!(op, Op::Linear(_))).into_iter().filter(|c| c.program.ops.len() == 2) {
        let Op::LinearBack(LinearBack { of: Linear { x, w, b, .. }, dy, dx }) = case.program.ops[1] else {
            unreachable!()
        };
        let out = outputs(&case);
        let value = |view: polystep_engine::View, row: usize, col: usize| {
            f64::from(case.input(view.slot)[row * case.program.info(view.slot).cols + view.col + col])
        };
        let rows = case.batch.tgt.tokens();
        let weight = |o: usize, i: usize| f64::from(case.params[w.offset + o * w.cols + i]);
        let outer = case.program.info(dy.slot).cols;
        for r in (0..rows).step_by(7) {
            let bias = |o: usize| b.map_or(0.0, |b| f64::from(case.params[b.offset + o]));
            let y = (0..w.rows).map(|o| bias(o) + (0..w.cols).map(|i| value(x, r, i) * weight(o, i)).sum::<f64>());
            close(&case.name, &named(&out, "y")[r * outer + dy.col..][..w.rows], y);
            if let Some(dx) = dx {
                let inner = case.program.info(dx.slot).cols;
                let want = (0..w.cols).map(|i| (0..w.rows).map(|o| value(dy, r, o) * weight(o, i)).sum::<f64>());
                close(&case.name, &named(&out, "dx")[r * inner + dx.col..][..w.cols], want);
            }
        }
        for o in (0..w.rows).step_by(11) {
            let want = (0..w.cols).map(|i| (0..rows).map(|r| value(dy, r, o) * value(x, r, i)).sum::<f64>());
            close(&case.name, &named(&out, "gradient of w")[o * w.cols..][..w.cols], want);
        }
        if b.is_some() {
            let want = (0..w.rows).map(|o| (0..rows).map(|r| value(dy, r, o)).sum::<f64>());
            close(&case.name, named(&out, "gradient of b"), want);
        }
        // Columns beside a view stay as they were.
        for (name, view, width) in [("y", Some(dy), w.rows), ("dx", dx, w.cols)] {
            let Some(view) = view else { continue };
            let (_, before) = case.inputs.iter().find(|(s, _)| case.program.info(*s).name == name).unwrap();
            let cols = case.program.info(view.slot).cols;
            let beside = |i: usize| !(view.col..view.col + width).contains(&(i % cols));
            let same = named(&out, name).iter().zip(before).enumerate().all(|(i, (a, b))| !beside(i) || a == b);
            assert!(same, "{}: {name} was written beside its view", case.name);
        }
    }
}

#[test]
fn activations() {
    for case in cases_of(|op| matches!(op, Op::Activate(_))).into_iter().filter(|c| c.program.ops.len() == 2) {
        let Op::Activate(Activate { kind, x, .. }) = case.program.ops[0] else { unreachable!() };
        let gelu = |x: f64| {
            // Φ by Simpson's rule from 0.
            let n = 200;
            let bell = |u: f64| (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let step = x / f64::from(n);
            let weight = |i| {
                if i == 0 || i == n {
                    1.0
                } else if i % 2 == 1 {
                    4.0
                } else {
                    2.0
                }
            };
            x * (0.5 + (0..=n).map(|i| weight(i) * bell(f64::from(i) * step)).sum::<f64>() * step / 3.0)
        };
        let want = case.input(x).iter().map(|x| match kind {
            Activation::Relu => f64::from(x.max(0.0)),
            Activation::Gelu => gelu(f64::from(*x)),
        });
        close(&case.name, named(&outputs(&case), "y"), want);
    }
}

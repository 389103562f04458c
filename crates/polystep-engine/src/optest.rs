//! Single ops on random input, the same on every device: finite differences check them on the CPU, `polystep doctor`
//! compares the CPU with CUDA.
//!
//! Every number that is put in is exactly representable in bf16, so devices differ by their arithmetic only. The gradient
//! that a backward op starts from *is* the random functional: L = Σ ⟨cotangent, output⟩ (or the loss).

use crate::philox::philox;
use crate::{Batch, Dim, Dtype, Inspect, Limits, Op, Packed, Param, Program, Result, Scalars, Side, Slot};

mod cases;
pub use cases::{LARGE_ROWS, cases, large_cases};

/// Something that a run leaves behind and that two devices must agree on.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The real rows of a slot.
    Slot(Slot),
    /// The flat parameters and Adam's moments.
    Trained,
    /// The average of the weights; and, exchanged with it, the parameters.
    Averaged,
    /// Loss, gradient norm, right tokens and right sequences.
    Result,
    /// Which sequences were right.
    Right,
}

/// Something that L is differentiated by, with the place where the program leaves the derivative.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrt {
    /// The values of `input`; the derivative is found in `grad`.
    Slot {
        /// One of [`Case::inputs`].
        input: Slot,
        /// A slot of the same shape.
        grad: Slot,
    },
    /// A parameter; if `added`, the derivative was added to what [`Case::grads`] held.
    Param {
        /// What it is.
        name: &'static str,
        /// Where it is.
        param: Param,
        /// Whether the op adds.
        added: bool,
    },
}

/// What backward ops are checked against.
#[derive(Clone, Debug, PartialEq)]
pub enum Functional {
    /// Σ ⟨value, output⟩ over (output, slot whose input is the cotangent). Without pairs there is nothing to differentiate.
    Pairs(Vec<(Slot, Slot)>),
    /// The reported loss.
    Loss,
}

/// One op, a forward and backward pair, or a block that devices fuse, with everything that a run needs.
#[derive(Clone, Debug)]
pub struct Case {
    /// Unique, for people.
    pub name: String,
    /// A few ops.
    pub program: Program,
    /// Ragged on both sides.
    pub batch: Batch,
    /// A little more than the batch.
    pub limits: Limits,
    /// Learning rate, step, seed.
    pub scalars: Scalars,
    /// The flat parameters.
    pub params: Vec<f32>,
    /// What the gradient holds before the run.
    pub grads: Vec<f32>,
    /// Adam's moments before the run.
    pub moments: (Vec<f32>, Vec<f32>),
    /// Slots written before the run.
    pub inputs: Vec<(Slot, Vec<f32>)>,
    /// What to read after it.
    pub outputs: Vec<Output>,
    /// L.
    pub functional: Functional,
    /// What L is differentiated by.
    pub wrt: Vec<Wrt>,
    /// Small enough for finite differences of every element.
    pub small: bool,
    /// Whether nothing of it is rounded to bf16 on the way: devices agree to four digits.
    pub tight: bool,
}

impl Case {
    /// The values that a slot is given before the run.
    pub fn input(&self, slot: Slot) -> &[f32] {
        let found = self.inputs.iter().find(|(s, _)| *s == slot);
        &found.expect("every functional and derivative names an input").1
    }
}

/// What a run left behind, by name.
pub type Outputs = Vec<(String, Vec<f32>)>;

/// Makes an executor for a case and runs it.
pub fn run_on<E: Inspect>(case: &Case, make: impl FnOnce(Vec<Program>, Limits) -> Result<E>) -> Result<Outputs> {
    run(case, &mut make(vec![case.program.clone()], case.limits)?)
}

/// Runs a case as program 0 of an executor; returns its outputs by name.
pub fn run(case: &Case, executor: &mut impl Inspect) -> Result<Outputs> {
    executor.set_params(&case.params)?;
    executor.set_moments(&case.moments.0, &case.moments.1)?;
    executor.set_grads(&case.grads)?;
    if let Some(average) = executor.average()? {
        // Something that is neither the parameters nor zero.
        executor.set_average(&case.moments.0[..average.len()])?;
    }
    for (slot, values) in &case.inputs {
        executor.write(0, *slot, values)?;
    }
    executor.results()?;
    executor.run(0, &case.batch, &case.scalars)?;
    let mut named = Vec::new();
    for output in &case.outputs {
        match output {
            Output::Slot(slot) => named.push((case.program.info(*slot).name.clone(), executor.read(0, *slot)?)),
            Output::Trained => {
                let (first, second) = executor.moments()?;
                named.push(("parameters".into(), executor.params()?));
                named.push(("first moments".into(), first));
                named.push(("second moments".into(), second));
            }
            Output::Averaged => {
                named.push(("average of the weights".into(), executor.average()?.unwrap_or_default()));
                executor.exchange()?;
                named.push(("exchanged parameters".into(), executor.params()?));
                executor.exchange()?;
            }
            Output::Result => {
                let r = executor.results()?.last().copied().unwrap_or_default();
                let right = vec![r.right_tokens as f32, r.right_sequences as f32];
                let results = [("loss", vec![r.loss]), ("gradient norm", vec![r.grad_norm])];
                let results = results.into_iter().chain([("right tokens and sequences", right)]);
                named.extend(results.map(|(name, values)| (name.to_owned(), values)));
            }
            Output::Right => {
                let right = executor.right()?;
                named.push(("right".into(), right.into_iter().map(|r| f32::from(u8::from(r))).collect()));
            }
        }
    }
    for wrt in &case.wrt {
        if let Wrt::Param { name, param, .. } = wrt {
            named.push((format!("gradient of {name}"), executor.grads()?[param.range()].to_vec()));
        }
    }
    Ok(named)
}

/// max |a − b| over max |a|: bf16 keeps it near 0.01. Infinite if lengths differ or a number is not finite.
pub fn distance(want: &[f32], got: &[f32]) -> f32 {
    if want.len() != got.len() || want.iter().chain(got).any(|x| !x.is_finite()) {
        return f32::INFINITY;
    }
    let scale = want.iter().fold(1e-6f32, |m, x| m.max(x.abs()));
    want.iter().zip(got).fold(0f32, |m, (a, b)| m.max((a - b).abs())) / scale
}

/// The nearest bf16, as f32.
pub(crate) fn bf16(x: f32) -> f32 {
    half::bf16::from_f32(x).to_f32()
}

/// Lengths of the source and of the target sequences.
type Lengths<'a> = (&'a [usize], &'a [usize]);

/// Builds a [`Case`] piece by piece.
struct Build {
    case: Case,
    drawn: u32,
}

impl Build {
    fn new(name: String, (src, tgt): Lengths, vocab: usize) -> Build {
        let seed = name.bytes().fold(17, |h: u64, b| h.wrapping_mul(1_000_003) ^ u64::from(b));
        let mut build = Build {
            case: Case {
                name,
                program: Program::default(),
                batch: Batch::default(),
                limits: Limits {
                    sequences: src.len() + 1,
                    src_tokens: src.iter().sum::<usize>() + 3,
                    tgt_tokens: tgt.iter().sum::<usize>() + 5,
                },
                scalars: Scalars { lr: 1e-3, eps: 1e-8, step: 3, seed: seed ^ 0x5DEE_CE66_D123 },
                params: Vec::new(),
                grads: Vec::new(),
                moments: (Vec::new(), Vec::new()),
                inputs: Vec::new(),
                outputs: Vec::new(),
                functional: Functional::Pairs(Vec::new()),
                wrt: Vec::new(),
                small: src.iter().chain(tgt).all(|&n| n < 16),
                tight: false,
            },
            drawn: seed as u32,
        };
        build.case.batch.src = build.tokens(src, vocab);
        build.case.batch.tgt = build.tokens(tgt, vocab);
        build.case.batch.labels = build.tokens(tgt, vocab).ids;
        build
    }

    fn word(&mut self) -> u32 {
        self.drawn = self.drawn.wrapping_add(1);
        philox([self.drawn, 1, 2, 3], 0x00C0_FFEE)[0]
    }

    fn tokens(&mut self, lengths: &[usize], vocab: usize) -> Packed {
        let mut packed = Packed::default();
        packed.clear();
        for &n in lengths {
            let ids: Vec<i32> = (0..n).map(|_| (self.word() as usize % vocab) as i32).collect();
            packed.push(ids);
        }
        packed
    }

    /// n numbers between −amplitude and amplitude, none of them close to 0 (a kink of ReLU).
    fn numbers(&mut self, n: usize, amplitude: f32) -> Vec<f32> {
        (0..n)
            .map(|_| {
                let w = self.word();
                let size = 0.1 + 0.9 * (w >> 8) as f32 / (1u32 << 24) as f32;
                bf16(if w & 1 == 0 { size } else { -size } * amplitude)
            })
            .collect()
    }

    fn slot(&mut self, name: &str, side: Side, cols: usize, dtype: Dtype) -> Slot {
        self.case.program.slot(name, Dim::Tokens(side), cols, dtype)
    }

    /// A slot that is read after the run.
    fn out(&mut self, name: &str, side: Side, cols: usize, dtype: Dtype) -> Slot {
        let slot = self.slot(name, side, cols, dtype);
        self.case.outputs.push(Output::Slot(slot));
        slot
    }

    /// A slot with random numbers in it.
    fn input(&mut self, name: &str, side: Side, cols: usize, dtype: Dtype) -> Slot {
        let slot = self.slot(name, side, cols, dtype);
        let values = self.numbers(self.case.batch.side(side).tokens() * cols, 1.5);
        self.case.inputs.push((slot, values));
        slot
    }

    /// Random numbers in, others out (gradients that are changed in place).
    fn inout(&mut self, name: &str, side: Side, cols: usize, dtype: Dtype) -> Slot {
        let slot = self.input(name, side, cols, dtype);
        self.case.outputs.push(Output::Slot(slot));
        slot
    }

    fn param(&mut self, rows: usize, cols: usize, amplitude: f32) -> Param {
        let offset = self.case.params.len();
        let len = (rows * cols).next_multiple_of(64);
        let values = self.numbers(len, amplitude);
        self.case.params.extend(values);
        Param { offset, rows, cols }
    }

    /// L is differentiated by this parameter.
    fn by_param(&mut self, name: &'static str, param: Param, added: bool) {
        self.case.wrt.push(Wrt::Param { name, param, added });
    }

    /// L is differentiated by the values of this slot.
    fn by_slot(&mut self, input: Slot, grad: Slot) {
        self.case.wrt.push(Wrt::Slot { input, grad });
    }

    fn pair(&mut self, output: Slot, cotangent: Slot) {
        if let Functional::Pairs(pairs) = &mut self.case.functional {
            pairs.push((output, cotangent));
        }
    }

    fn push(&mut self, op: impl Into<Op>) {
        self.case.program.push(op);
    }

    fn finish(mut self) -> Case {
        let n = self.case.params.len().max(64);
        self.case.params.resize(n, 0.5);
        self.case.program.params = n;
        self.case.grads = self.numbers(n, 0.25);
        self.case.moments.0 = self.numbers(n, 0.01);
        self.case.moments.1 = self.numbers(n, 0.01).into_iter().map(f32::abs).collect();
        self.case
    }
}

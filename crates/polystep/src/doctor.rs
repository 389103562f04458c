//! `polystep doctor`: which devices and libraries were found, whether they compute correctly, and what to do if not.
//!
//! CUDA is compared with the CPU, op by op on the same random input (which bf16 holds exactly) and in a short training. It is also
//! compared with itself, since two runs of one seed must agree bit for bit. Without a GPU only the CPU is checked.

use clap::Args as ClapArgs;
use polystep_engine::cpu::Cpu;
use polystep_engine::cuda::{Cuda, Info};
use polystep_engine::optest;
use polystep_engine::{Executor, Limits, Scalars, StepResult};
use polystep_learn::config::RunConfig;
use polystep_learn::feed::{BatchQueue, Counts, Feed, Position};
use polystep_learn::model::initial_params;
use polystep_learn::train::{RunSetup, Spent, TRAINING, eps, is_late, learning_rate};
use serde::Serialize;

use crate::args::ThreadArgs;
use crate::device::Device;
use crate::failure::Result;
use crate::say;
use crate::table::{counted, table};

/// Largest ‖a − b‖ / ‖b‖ of an op's output: bf16 has 8 bits, so single roundings are 0.2 to 0.4 %, and sums of them less
/// than a few.
const OP_TOLERANCE: f64 = 0.02;
/// The same of an op that rounds nothing to bf16.
const TIGHT_TOLERANCE: f64 = 1e-4;
/// Largest relative difference of a loss in the short training.
const LOSS_TOLERANCE: f64 = 0.02;
/// Steps of the short training, and of the two that must agree.
const SHORT: u64 = 20;
const TWICE: u64 = 200;

/// Flags of `polystep doctor`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    #[command(flatten)]
    threads: ThreadArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One check.
#[derive(Serialize, Debug)]
struct Check {
    name: String,
    ok: bool,
    /// What was seen; if it is wrong, also what to do.
    said: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
}

/// Losses of one step on both devices.
#[derive(Serialize, Debug)]
struct Losses {
    step: usize,
    cpu: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<f32>,
}

/// What `--json` prints.
#[derive(Serialize, Debug)]
struct Report {
    ok: bool,
    commit: &'static str,
    cuda: Option<String>,
    checks: Vec<Check>,
    losses: Vec<Losses>,
}

/// Looks, checks, and fails with exit 1 if anything is wrong.
pub fn run(args: Args) -> Result<()> {
    args.threads.start()?;
    let threads = args.threads.count();
    let mut doctor = Doctor { threads, checks: Vec::new(), losses: Vec::new(), quiet: args.json };
    let info = doctor.look()?;
    doctor.ops(info.is_some())?;
    doctor.trainings(info.is_some())?;
    let wrong = doctor.checks.iter().filter(|c| !c.ok).count();
    let (ok, commit, cuda) = (wrong == 0, polystep_learn::COMMIT, info.map(|i| i.device));
    let report = Report { ok, commit, cuda, checks: doctor.checks, losses: doctor.losses };
    if args.json {
        say!("{}", serde_json::to_string(&report)?)?;
    } else {
        if report.cuda.is_some() {
            print_losses(&report.losses)?;
        }
        let total = report.checks.len();
        say!("{} of {total} checks passed", total - wrong)?;
    }
    match wrong {
        0 => Ok(()),
        n => Err(anyhow::anyhow!("{} failed", counted(n, "check")).into()),
    }
}

/// A GPU in one line.
fn described(info: &Info) -> String {
    let ((major, minor), memory) = (info.capability, info.memory_mib / 1024);
    let multiprocessors = counted(info.processors, "multiprocessor");
    format!(
        "{}, compute capability {major}.{minor}, {multiprocessors}, {memory} GiB, driver for {}",
        info.device, info.driver
    )
}

/// The device with CUDA, or without it.
fn on(cuda: bool) -> Device {
    if cuda { Device::Cuda(None) } else { Device::Cpu }
}

struct Doctor {
    threads: usize,
    checks: Vec<Check>,
    losses: Vec<Losses>,
    quiet: bool,
}

impl Doctor {
    fn note(&mut self, name: impl Into<String>, ok: bool, said: impl Into<String>, error: Option<f64>) -> Result<()> {
        let check = Check { name: name.into(), ok, said: said.into(), error };
        if !self.quiet {
            say!("{} {}: {}", if ok { "ok   " } else { "WRONG" }, check.name, check.said)?;
        }
        self.checks.push(check);
        Ok(())
    }

    /// Devices and libraries.
    fn look(&mut self) -> Result<Option<Info>> {
        let threads = self.threads;
        self.note("CPU", true, format!("fp32 on {}", counted(threads, "thread")), None)?;
        match Cuda::available() {
            Ok(info) => {
                for gpu in 0..Cuda::count()? {
                    let said = Cuda::info(gpu).map(|info| described(&info));
                    let name = format!("CUDA, cuda:{gpu}");
                    self.note(name, said.is_ok(), said.unwrap_or_else(|why| why.to_string()), None)?;
                }
                for library in &info.libraries {
                    self.note("library", true, format!("{} in {}", library.name, library.place), None)?;
                }
                Ok(Some(info))
            }
            // No GPU is no fault: training on the CPU works.
            Err(why) => {
                let said = format!("not here, so the CPU is checked alone, one thread against {threads} ({why})");
                self.note("CUDA", true, said, None)?;
                Ok(None)
            }
        }
    }

    /// Every op: CUDA against the CPU, or the CPU on one thread against several.
    fn ops(&mut self, cuda: bool) -> Result<()> {
        // Large batches only where a GPU is compared: there it changes its kernels.
        let (quiet, mut agree) = (self.quiet, 0);
        let large: &[usize] = if cuda { &optest::LARGE_ROWS } else { &[] };
        for case in optest::cases().into_iter().chain(large.iter().flat_map(|&rows| optest::large_cases(rows))) {
            let cpu = |threads| optest::run_on(&case, |p, l| Cpu::new(p, l, threads));
            let want = cpu(self.threads);
            let got = if cuda { optest::run_on(&case, Cuda::new) } else { cpu(1) };
            let (want, got) = match (want, got) {
                (Ok(want), Ok(got)) => (want, got),
                (Err(error), _) | (_, Err(error)) => {
                    self.note(&case.name, false, error.to_string(), None)?;
                    continue;
                }
            };
            let errors = want.iter().zip(&got).map(|((name, a), (_, b))| (relative(b, a), name.as_str()));
            let (error, name) = errors.fold((0.0, ""), |worst, next| if next.0 >= worst.0 { next } else { worst });
            let said = format!("{} outputs, relative error {error:.1e} ({name})", want.len());
            let tolerance = if case.tight { TIGHT_TOLERANCE } else { OP_TOLERANCE };
            let ok = error <= if cuda { tolerance } else { 0.0 };
            // Without a GPU they all agree, which one sentence says better than a wall of zeros.
            self.quiet = quiet || (!cuda && ok);
            self.note(&case.name, ok, said, Some(error))?;
            self.quiet = quiet;
            agree += usize::from(ok);
        }
        if !cuda && !quiet {
            say!("ok    ops: {agree} kinds of operations give the same bits on one thread and on {}", self.threads)?;
        }
        Ok(())
    }

    /// Short trainings on both devices, and one of 200 steps twice: with the defaults, and with every other setting of the
    /// optimiser and of the depths.
    fn trainings(&mut self, cuda: bool) -> Result<()> {
        for (with, settings) in [("", &[][..]), (" with every lever", &LEVERS[..])] {
            let set: Vec<_> = settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
            self.training(cuda, with, &RunSetup::new(RunConfig::from_toml(TRAINING_CONFIG, &set)?)?)?;
        }
        Ok(())
    }

    fn training(&mut self, cuda: bool, with: &str, setup: &RunSetup) -> Result<()> {
        let short = |cuda| -> Result<Vec<f32>> {
            let mut device = on(cuda).executor(setup.programs(), setup.limits, self.threads)?;
            Ok(train(device.as_mut(), setup, SHORT)?.0.iter().map(|result| result.loss).collect())
        };
        let on_cpu = short(false)?;
        let on_cuda = if cuda { Some(short(true)?) } else { None };
        let (first, last) = (on_cpu[0], on_cpu[on_cpu.len() - 1]);
        let said = format!("the loss falls from {first:.3} to {last:.3} in {SHORT} steps");
        self.note(format!("training on the CPU{with}"), last < first, said, None)?;
        if let Some(on_cuda) = &on_cuda {
            let pairs = on_cpu.iter().zip(on_cuda);
            let error = pairs.map(|(a, b)| f64::from((a - b).abs() / a.abs())).fold(0.0, f64::max);
            let said = format!("losses of {SHORT} steps within {:.2} % of the CPU's", 100.0 * error);
            self.note(format!("training on CUDA{with}"), error <= LOSS_TOLERANCE, said, Some(error))?;
        }
        let losses = |(i, &cpu)| Losses { step: i + 1, cpu, cuda: on_cuda.as_ref().map(|losses| losses[i]) };
        if with.is_empty() {
            self.losses = on_cpu.iter().enumerate().map(losses).collect();
        }
        self.twice(setup, with, cuda)
    }

    fn twice(&mut self, setup: &RunSetup, with: &str, cuda: bool) -> Result<()> {
        let steps = if cuda { TWICE } else { SHORT };
        let bits = || -> Result<Vec<u32>> {
            let mut device = on(cuda).executor(setup.programs(), setup.limits, self.threads)?;
            let (results, params) = train(device.as_mut(), setup, steps)?;
            let losses = results.iter().flat_map(|r| [r.loss.to_bits(), r.grad_norm.to_bits()]);
            let average = device.average()?.unwrap_or_default();
            let params: Vec<f32> = params.into_iter().chain(average).collect();
            Ok(losses.chain(params.iter().map(|p| p.to_bits())).collect())
        };
        let same = bits()? == bits()?;
        let name = format!("{} twice{with}", if cuda { "CUDA" } else { "CPU" });
        let said = if same {
            format!("{steps} steps of one seed agree bit for bit, weights included")
        } else {
            format!("{steps} steps of one seed differ: please report this with the output of `polystep doctor --json`")
        };
        self.note(name, same, said, None)
    }
}

/// Small enough for a CPU, real enough to meet every op: dropout, ragged batches, both norms of a stack.
const TRAINING_CONFIG: &str = "
[data]
config = \"small_coeff\"
[model]
d = 128
layers = 2
heads = 4
ffn = 256
dropout = 0.1
[train]
batch = 16
warmup = 10
steps = 200
";

/// What a run may set beside the defaults, all at once. The late part begins in the middle of the short training.
const LEVERS: [(&str, &str); 4] = [
    ("model.decoder_layers", "3"),
    ("train.logits", "fp32"),
    ("train.ema", "0.9"),
    ("train.late", "{ from = 0.05, batch = 24, eps = 1e-12 }"),
];

/// Some steps from the first weights on; results and the weights after them.
fn train(executor: &mut dyn Executor, setup: &RunSetup, steps: u64) -> Result<(Vec<StepResult>, Vec<f32>)> {
    let first = initial_params(&setup.model, &setup.layout, setup.seed());
    executor.set_params(&first)?;
    let zeros = vec![0.0; setup.layout.len()];
    executor.set_moments(&zeros, &zeros)?;
    if executor.average()?.is_some() {
        executor.set_average(&first)?;
    }
    let batches = |late: bool, position| {
        let limits = Limits { sequences: setup.config.train.batches()[usize::from(late)], ..setup.limits };
        BatchQueue::start(setup.source.as_ref(), limits, position, Counts::default(), 1)
    };
    let (mut feed, mut late, mut examples) = (batches(false, Position::default())?, false, 0);
    for step in 0..steps {
        let (train, spent) = (&setup.config.train, Spent { steps: step, examples, seconds: 0.0 });
        let (lr, eps) = (learning_rate(train, spent) as f32, eps(train, spent) as f32);
        if !late && is_late(train, spent) {
            (feed, late) = (batches(true, feed.position())?, true);
        }
        let batch = feed.next()?;
        examples += batch.src.sequences() as u64;
        executor.run(TRAINING, batch, &Scalars { lr, eps, step: step + 1, seed: step })?;
    }
    Ok((executor.results()?, executor.params()?))
}

/// ‖a − b‖ / ‖b‖; infinite where lengths differ or something is not finite.
fn relative(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() || a.iter().chain(b).any(|x| !x.is_finite()) {
        return f64::INFINITY;
    }
    let square = |x: f64| x * x;
    let difference: f64 = a.iter().zip(b).map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
    let size: f64 = b.iter().map(|b| square(f64::from(*b))).sum();
    if difference == 0.0 { 0.0 } else { (difference / size).sqrt() }
}

fn print_losses(losses: &[Losses]) -> Result<()> {
    let rows = losses.iter().step_by(4).map(|l| {
        let cuda = l.cuda.map_or("-".into(), |x| format!("{x:.5}"));
        [l.step.to_string(), format!("{:.5}", l.cpu), cuda]
    });
    say!("{}", table(0, ["step", "loss, CPU", "loss, CUDA"], rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_errors() {
        assert_eq!(relative(&[3.0, 4.0], &[3.0, 4.0]), 0.0);
        assert!((relative(&[3.0, 4.5], &[3.0, 4.0]) - 0.1).abs() < 1e-12);
        assert_eq!(relative(&[1.0], &[1.0, 2.0]), f64::INFINITY);
        assert_eq!(relative(&[f32::NAN], &[1.0]), f64::INFINITY);
    }
}

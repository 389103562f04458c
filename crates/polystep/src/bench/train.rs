//! `polystep bench train`: how fast the device trains. Fixed shapes are for comparing with other frameworks; real data, made
//! while training as in a run, is what a user gets.
//!
//! Each figure is the median of some rounds after a warm-up. A round ends when the device has finished its last step.

use std::time::Instant;

use clap::Args as ClapArgs;
use polystep_engine::{Batch, Executor, Limits, Program, Scalars};
use polystep_learn::config::RunConfig;
use polystep_learn::feed::{BatchQueue, Counts, Feed, Position};
use polystep_learn::model::{ModelConfig, ParamLayout, initial_params, training_program};
use polystep_learn::train::{RunSetup, TRAINING};
use serde::Serialize;

use super::Head;
use crate::args::ThreadArgs;
use crate::device::{Device, data_threads, peak};
use crate::failure::{Result, bad_input};
use crate::run_config::assignments;
use crate::table::{counted, table};
use crate::{interrupt, say};

const EXAMPLES: &str = "\
Examples:
  polystep bench train --device cuda --json
  polystep bench train --device cpu --threads 2 --batches 32 --rounds 3
  polystep bench train --only real --config no_backtrack --batches 256";

/// Flags of `polystep bench train`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    device: Device,
    /// Batch sizes, in examples
    #[arg(long, value_delimiter = ',', default_values_t = [32, 256, 512])]
    batches: Vec<usize>,
    /// Source tokens of an example of fixed shape
    #[arg(long, default_value_t = 96)]
    src: usize,
    /// Target tokens of an example of fixed shape
    #[arg(long, default_value_t = 80)]
    tgt: usize,
    /// Measure only one kind: fixed, real, or feed (the data of `real` without a device)
    #[arg(long, value_parser = ["fixed", "real", "feed"])]
    only: Option<String>,
    /// The model and the recipe, and for real data the task
    #[arg(long, default_value = "fast")]
    recipe: String,
    /// Size of the model: S or L
    #[arg(long, default_value = "S")]
    size: String,
    /// Configuration of real data
    #[arg(long, default_value = "large_coeff")]
    config: String,
    /// Variables of real data
    #[arg(long, default_value_t = 1)]
    vars: usize,
    /// Any key of a run's TOML, as in model.dropout=0.1; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Seconds per round
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,
    /// Seconds of warm-up before the first round
    #[arg(long, default_value_t = 4.0, value_name = "S")]
    warmup: f64,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One line of the result.
#[derive(Serialize, Debug)]
struct Line {
    kind: &'static str,
    batch: usize,
    /// Mean tokens of a batch.
    src_tokens: f64,
    tgt_tokens: f64,
    /// Mean over the batches of the longest example: what a padded batch would be padded to.
    longest_src: f64,
    longest_tgt: f64,
    steps: u64,
    ms_per_step: f64,
    examples_per_s: f64,
    tokens_per_s: f64,
    tflops: f64,
    /// Share of what the device is sold with, where we know it.
    peak_share: Option<f64>,
    /// Milliseconds per step of each round.
    rounds: Vec<f64>,
}

/// What `--json` prints.
#[derive(Serialize, Debug)]
struct Report {
    #[serde(flatten)]
    head: Head,
    recipe: String,
    size: String,
    config: String,
    vars: usize,
    parameters: usize,
    threads: usize,
    peak_tflops: Option<f64>,
    lines: Vec<Line>,
}

/// Measures.
pub fn run(args: Args) -> Result<()> {
    interrupt::listen()?;
    args.threads.start()?;
    let only = args.only.as_deref();
    let device = if only == Some("feed") { Device::Cpu } else { args.device.resolve() };
    let (mut lines, mut parameters, mut name) = (Vec::new(), 0, String::new());
    for &batch in &args.batches {
        for kind in ["fixed", "real", "feed"] {
            if only.map_or(kind != "feed", |only| only == kind) {
                let measured = args.measure(kind, args.run_config(batch)?, device)?;
                lines.push(measured.line);
                (name, parameters) = (measured.device, measured.parameters);
            }
        }
    }
    let peak_tflops = peak(&name).map(|peak| peak / 1e12);
    for line in &mut lines {
        line.peak_share = peak_tflops.map(|peak| line.tflops / peak);
    }
    let report = Report {
        head: Head::new("train", name),
        recipe: args.recipe,
        size: args.size,
        config: args.config,
        vars: args.vars,
        parameters,
        threads: args.threads.count(),
        peak_tflops,
        lines,
    };
    if args.json { say!("{}", serde_json::to_string(&report)?) } else { print(&report) }
}

/// A line of the result, and what it was measured on.
struct Measured {
    line: Line,
    device: String,
    parameters: usize,
}

impl Args {
    fn run_config(&self, batch: usize) -> Result<RunConfig> {
        let mut overrides = vec![
            ("train.recipe".to_string(), format!("{:?}", self.recipe)),
            ("model.size".into(), format!("{:?}", self.size)),
            ("data.config".into(), format!("{:?}", self.config)),
            ("data.vars".into(), self.vars.to_string()),
            ("train.batch".into(), batch.to_string()),
        ];
        overrides.extend(assignments(&self.set)?);
        Ok(RunConfig::from_toml("", &overrides)?)
    }

    /// One kind of batches: of a fixed shape, or real ones, with a device or without.
    fn measure(&self, kind: &'static str, config: RunConfig, device: Device) -> Result<Measured> {
        let sequences = config.train.batch;
        if kind == "fixed" {
            let model = config.model.clone();
            if self.src.max(self.tgt) > model.max_positions || self.src.min(self.tgt) < 1 {
                return Err(bad_input(format!("--src and --tgt must be between 1 and {}", model.max_positions)));
            }
            let layout = ParamLayout::new(&model);
            let program = training_program(&model, &layout, Some(config.optimiser())).program;
            let limits = Limits { sequences, src_tokens: sequences * self.src, tgt_tokens: sequences * self.tgt };
            let executor = self.executor(device, program, limits, &model, &layout)?;
            let batch = fixed_batch(sequences, self.src, self.tgt);
            return self.rounds(kind, Some(executor), layout.parameters(), sequences, &mut || Ok(batch.clone()));
        }
        let setup = RunSetup::new(config)?;
        let with_device = kind == "real";
        let executor = match with_device {
            true => {
                Some(self.executor(device, setup.programs().remove(0), setup.limits, &setup.model, &setup.layout)?)
            }
            false => None,
        };
        let threads = self.threads.count();
        let threads = if with_device { data_threads(device, threads) } else { threads };
        let (position, counts) = (Position::default(), Counts::default());
        let mut feed = BatchQueue::start(setup.source.as_ref(), setup.limits, position, counts, threads)?;
        let parameters = if with_device { setup.layout.parameters() } else { 0 };
        self.rounds(kind, executor, parameters, sequences, &mut || Ok(feed.next()?.clone()))
    }

    fn executor(
        &self,
        device: Device,
        program: Program,
        limits: Limits,
        model: &ModelConfig,
        layout: &ParamLayout,
    ) -> Result<Box<dyn Executor>> {
        let mut executor = device.executor(vec![program], limits, self.threads.count())?;
        executor.set_params(&initial_params(model, layout, 1))?;
        let zeros = vec![0.0; layout.len()];
        executor.set_moments(&zeros, &zeros)?;
        Ok(executor)
    }

    /// A warm-up and the rounds; the median counts.
    fn rounds(
        &self,
        kind: &'static str,
        executor: Option<Box<dyn Executor>>,
        parameters: usize,
        batch: usize,
        next: &mut dyn FnMut() -> Result<Batch>,
    ) -> Result<Measured> {
        let device = match &executor {
            Some(executor) => executor.device(),
            None => format!("no device, {}", counted(self.threads.count(), "thread")),
        };
        let mut clock = Clock { executor, step: 0, flops_per_token: 0.0, total: Totals::default() };
        clock.round(next, self.warmup)?;
        clock.total = Totals::default();
        let mut rounds = Vec::new();
        for _ in 0..self.rounds.max(1) {
            rounds.push(clock.round(next, self.seconds)?);
        }
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let ms_per_step = sorted[sorted.len() / 2];
        let Totals { steps, sequences, src, tgt, longest_src, longest_tgt, flops } = clock.total;
        let (mean, per_second) = (|sum: usize| sum as f64 / steps as f64, 1e3 / ms_per_step);
        let line = Line {
            kind,
            batch,
            src_tokens: mean(src),
            tgt_tokens: mean(tgt),
            longest_src: mean(longest_src),
            longest_tgt: mean(longest_tgt),
            steps,
            ms_per_step,
            examples_per_s: mean(sequences) * per_second,
            tokens_per_s: mean(src + tgt) * per_second,
            tflops: flops / steps as f64 * per_second / 1e12,
            peak_share: None,
            rounds,
        };
        Ok(Measured { line, device, parameters })
    }
}

/// What some steps did.
#[derive(Default)]
struct Totals {
    steps: u64,
    sequences: usize,
    src: usize,
    tgt: usize,
    longest_src: usize,
    longest_tgt: usize,
    flops: f64,
}

struct Clock {
    /// None where batches are only made.
    executor: Option<Box<dyn Executor>>,
    step: u64,
    /// Of the last batch that was looked at; batches of a run are alike.
    flops_per_token: f64,
    total: Totals,
}

impl Clock {
    /// Trains for about so many seconds, at least one step. Returns milliseconds per step.
    fn round(&mut self, next: &mut dyn FnMut() -> Result<Batch>, seconds: f64) -> Result<f64> {
        let (began, first) = (Instant::now(), self.total.steps);
        while self.total.steps == first || began.elapsed().as_secs_f64() < seconds && interrupt::check().is_ok() {
            let batch = next()?;
            self.step += 1;
            let (src, tgt) = (batch.src.tokens(), batch.tgt.tokens());
            if let Some(executor) = &mut self.executor {
                // A rate so small that random labels do no harm however long the bench runs.
                executor.run(TRAINING, &batch, &Scalars { lr: 1e-6, step: self.step, seed: self.step })?;
                if self.step % 64 == 1 {
                    let lengths = |p: &polystep_engine::Packed| p.lengths().collect::<Vec<_>>();
                    let flops = executor.programs()[TRAINING].flops(&lengths(&batch.src), &lengths(&batch.tgt));
                    self.flops_per_token = flops / (src + tgt) as f64;
                }
            }
            self.total.steps += 1;
            self.total.sequences += batch.src.sequences();
            self.total.src += src;
            self.total.tgt += tgt;
            self.total.longest_src += batch.src.longest();
            self.total.longest_tgt += batch.tgt.longest();
            self.total.flops += self.flops_per_token * (src + tgt) as f64;
        }
        let results = self.executor.as_mut().map_or(Ok(Vec::new()), |executor| executor.results())?;
        let ms = 1e3 * began.elapsed().as_secs_f64() / (self.total.steps - first) as f64;
        interrupt::check()?;
        match results.iter().find(|r| !r.loss.is_finite()) {
            Some(r) => Err(anyhow::anyhow!("a loss of {} while measuring: run `polystep doctor`", r.loss).into()),
            None => Ok(ms),
        }
    }
}

/// Examples of one length with ids all over the vocabulary.
fn fixed_batch(sequences: usize, src: usize, tgt: usize) -> Batch {
    let mut batch = Batch::default();
    batch.clear();
    let id = |i: usize, j: usize, k: usize| ((i * 31 + j * 7 + k * 13) % 36 + 3) as i32;
    for i in 0..sequences {
        batch.src.push((0..src).map(|j| id(i, j, 0)));
        batch.tgt.push((0..tgt).map(|j| id(i, j, 1)));
        batch.labels.extend((0..tgt).map(|j| id(i, j, 2)));
    }
    batch
}

fn print(report: &Report) -> Result<()> {
    let Report { head, recipe, size, config, vars, parameters, .. } = report;
    let device = &head.device;
    say!("{device}; Transformer-{size}, {recipe}, {:.2}M parameters", *parameters as f64 / 1e6)?;
    say!("real data: {config}, {}, coarse, infix, made while training", counted(*vars, "variable"))?;
    let rows = report.lines.iter().map(|l| {
        [
            l.kind.to_string(),
            l.batch.to_string(),
            format!("{:.0}/{:.0}", l.src_tokens / l.batch as f64, l.tgt_tokens / l.batch as f64),
            format!("{:.3}", l.ms_per_step),
            format!("{:.0}", l.examples_per_s),
            format!("{:.0}", l.tokens_per_s),
            format!("{:.2}", l.tflops),
            l.peak_share.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)),
        ]
    });
    let header = ["data", "batch", "tokens", "ms/step", "examples/s", "tokens/s", "TFLOP/s", "of peak"];
    say!("{}", table(1, header, rows))
}

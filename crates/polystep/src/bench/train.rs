//! `polystep bench train`: how fast the device trains. Fixed shapes are for comparing with other frameworks; real data, made
//! while training as in a run, is what a user gets.
//!
//! Each figure is the median of some rounds after a warm-up. A round ends when the device has finished its last step.

use std::time::Instant;

use clap::Args as ClapArgs;
use polystep_engine::{Batch, Executor, Limits, Packed, Scalars};
use polystep_learn::config::RunConfig;
use polystep_learn::feed::{BatchQueue, Counts, Feed, Position};
use polystep_learn::model::{ParamLayout, initial_params, training_program};
use polystep_learn::train::{RunSetup, TRAINING};
use serde::Serialize;

use super::Head;
use crate::args::ThreadArgs;
use crate::device::{self, Device, data_threads, peak};
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
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
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

/// One line of the result. While it is measured, its means and rates are sums over the steps.
#[derive(Serialize, Default, Debug)]
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
                let mut work = args.work(kind, args.run_config(batch)?, device)?;
                name = match &work.executor {
                    Some(executor) => executor.device(),
                    None => format!("no device, {}", counted(args.threads.count(), "thread")),
                };
                parameters = work.parameters;
                lines.push(args.measure(&mut work, Line { kind, batch, ..Line::default() })?);
            }
        }
    }
    let peak_tflops = peak(&name).map(|peak| peak / 1e12);
    for line in &mut lines {
        line.peak_share = peak_tflops.map(|peak| line.tflops / peak);
    }
    let threads = args.threads.count();
    let Args { recipe, size, config, vars, .. } = args;
    let head = Head::new("train", name);
    let report = Report { head, recipe, size, config, vars, parameters, threads, peak_tflops, lines };
    if args.json { say!("{}", serde_json::to_string(&report)?) } else { print(&report) }
}

/// What a line measures: batches, and the device that trains on them.
struct Work {
    next: Box<dyn FnMut() -> Result<Batch>>,
    /// None where batches are only made.
    executor: Option<Box<dyn Executor>>,
    parameters: usize,
    step: u64,
    /// Of the last batch that was looked at; batches of a run are alike.
    flops_per_token: f64,
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
    fn work(&self, kind: &str, config: RunConfig, device: Device) -> Result<Work> {
        let (sequences, model) = (config.train.batch, config.model.clone());
        let layout = ParamLayout::new(&model);
        let program = training_program(&model, &layout, Some(config.optimiser())).program;
        let threads = self.threads.count();
        let (next, limits): (Box<dyn FnMut() -> Result<Batch>>, _) = if kind == "fixed" {
            if self.src.max(self.tgt) > model.max_positions || self.src.min(self.tgt) < 1 {
                return Err(bad_input(format!("--src and --tgt must be between 1 and {}", model.max_positions)));
            }
            let batch = fixed_batch(sequences, self.src, self.tgt);
            let limits = Limits { sequences, src_tokens: sequences * self.src, tgt_tokens: sequences * self.tgt };
            (Box::new(move || Ok(batch.clone())), limits)
        } else {
            let setup = RunSetup::new(config)?;
            let threads = if kind == "feed" { threads } else { data_threads(device, threads) };
            let (position, counts) = (Position::default(), Counts::default());
            let mut feed = BatchQueue::start(setup.source.as_ref(), setup.limits, position, counts, threads)?;
            (Box::new(move || Ok(feed.next()?.clone())), setup.limits)
        };
        let mut work = Work { next, executor: None, parameters: 0, step: 0, flops_per_token: 0.0 };
        if kind != "feed" {
            let mut executor = device.executor(vec![program], limits, threads)?;
            executor.set_params(&initial_params(&model, &layout, 1))?;
            let zeros = vec![0.0; layout.len()];
            executor.set_moments(&zeros, &zeros)?;
            (work.executor, work.parameters) = (Some(executor), layout.parameters());
        }
        Ok(work)
    }

    /// A warm-up and the rounds; the median counts.
    fn measure(&self, work: &mut Work, mut line: Line) -> Result<Line> {
        work.round(&mut Line::default(), self.warmup)?;
        for _ in 0..self.rounds.max(1) {
            let ms = work.round(&mut line, self.seconds)?;
            line.rounds.push(ms);
        }
        let mut sorted = line.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        line.ms_per_step = sorted[sorted.len() / 2];
        let (steps, per_second) = (line.steps as f64, 1e3 / line.ms_per_step);
        for sum in [&mut line.src_tokens, &mut line.tgt_tokens, &mut line.longest_src, &mut line.longest_tgt] {
            *sum /= steps;
        }
        line.examples_per_s *= per_second / steps;
        line.tokens_per_s *= per_second / steps;
        line.tflops *= per_second / steps / 1e12;
        Ok(line)
    }
}

impl Work {
    /// Trains for about so many seconds, at least one step. Returns milliseconds per step.
    fn round(&mut self, sums: &mut Line, seconds: f64) -> Result<f64> {
        let (began, first) = (Instant::now(), self.step);
        while self.step == first || began.elapsed().as_secs_f64() < seconds && interrupt::check().is_ok() {
            let batch = (self.next)()?;
            self.step += 1;
            let (src, tgt) = (batch.src.tokens() as f64, batch.tgt.tokens() as f64);
            if let Some(executor) = &mut self.executor {
                // A rate so small that random labels do no harm however long the bench runs.
                executor.run(TRAINING, &batch, &Scalars { lr: 1e-6, eps: 1e-8, step: self.step, seed: self.step })?;
                if self.step % 64 == 1 {
                    let lengths = |p: &Packed| p.lengths().collect::<Vec<_>>();
                    let flops = executor.programs()[TRAINING].flops(&lengths(&batch.src), &lengths(&batch.tgt));
                    self.flops_per_token = flops / (src + tgt);
                }
            }
            sums.steps += 1;
            sums.examples_per_s += batch.src.sequences() as f64;
            sums.src_tokens += src;
            sums.tgt_tokens += tgt;
            sums.tokens_per_s += src + tgt;
            sums.longest_src += batch.src.longest() as f64;
            sums.longest_tgt += batch.tgt.longest() as f64;
            sums.tflops += self.flops_per_token * (src + tgt);
        }
        let results = self.executor.as_mut().map_or(Ok(Vec::new()), |executor| executor.results())?;
        let ms = 1e3 * began.elapsed().as_secs_f64() / (self.step - first) as f64;
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

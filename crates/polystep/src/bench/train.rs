//! `polystep bench train`: how fast the device trains. Fixed shapes are for comparing with other frameworks; real data, made
//! while training as in a run, is what a user gets.
//!
//! Each figure is the median of some rounds after a warm-up. A round ends when the device has finished its last step.

use std::time::Instant;

use clap::Args as ClapArgs;
use polystep_engine::{Batch, Executor, Limits, Scalars};
use polystep_learn::config::RunConfig;
use polystep_learn::feed::{BatchQueue, Counts, Feed, Position};
use polystep_learn::model::{ModelConfig, ParamLayout, initial_params, training_program};
use polystep_learn::train::{RunSetup, TRAINING};
use serde::Serialize;

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
#[derive(Serialize, Clone, Debug, Default)]
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
    bench: &'static str,
    device: String,
    commit: &'static str,
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
    let device = if args.only.as_deref() == Some("feed") { Device::Cpu } else { args.device.resolve() };
    let mut report = Report {
        bench: "train",
        device: String::new(),
        commit: polystep_learn::COMMIT,
        recipe: args.recipe.clone(),
        size: args.size.clone(),
        config: args.config.clone(),
        vars: args.vars,
        parameters: 0,
        threads: args.threads.count(),
        peak_tflops: None,
        lines: Vec::new(),
    };
    for &batch in &args.batches {
        let config = args.run_config(batch)?;
        let only = args.only.as_deref();
        let (device_name, parameters) = (&mut report.device, &mut report.parameters);
        if matches!(only, None | Some("fixed")) {
            report.lines.push(args.fixed(&config, device, batch, device_name, parameters)?);
        }
        match only {
            None | Some("real") => report.lines.push(args.real(config, device, device_name, parameters)?),
            Some("feed") => {
                *device_name = format!("no device, {}", counted(args.threads.count(), "thread"));
                report.lines.push(args.feed(config)?);
            }
            _ => {}
        }
    }
    report.peak_tflops = peak(&report.device).map(|peak| peak / 1e12);
    for line in &mut report.lines {
        line.peak_share = report.peak_tflops.map(|peak| line.tflops / peak);
    }
    if args.json { say!("{}", serde_json::to_string(&report)?) } else { print(&report) }
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
        RunConfig::from_toml("", &overrides).map_err(bad_input)
    }

    fn fixed(
        &self,
        config: &RunConfig,
        device: Device,
        sequences: usize,
        name: &mut String,
        parameters: &mut usize,
    ) -> Result<Line> {
        let model = config.model();
        if self.src.max(self.tgt) > model.max_positions || self.src.min(self.tgt) < 1 {
            return Err(bad_input(format!("--src and --tgt must be between 1 and {}", model.max_positions)));
        }
        let layout = ParamLayout::new(&model);
        let program = training_program(&model, &layout, Some(config.optimiser())).program;
        let limits = Limits { sequences, src_tokens: sequences * self.src, tgt_tokens: sequences * self.tgt };
        let mut executor = device.executor(vec![program], limits, self.threads.count())?;
        start(executor.as_mut(), &model, &layout)?;
        (*name, *parameters) = (executor.device(), layout.parameters());
        let batch = fixed_batch(sequences, self.src, self.tgt);
        self.measure("fixed", executor.as_mut(), sequences, &mut || Ok(batch.clone()))
    }

    fn real(&self, config: RunConfig, device: Device, name: &mut String, parameters: &mut usize) -> Result<Line> {
        let setup = RunSetup::new(config)?;
        let mut programs = setup.programs();
        programs.truncate(1);
        let mut executor = device.executor(programs, setup.limits, self.threads.count())?;
        start(executor.as_mut(), &setup.model, &setup.layout)?;
        (*name, *parameters) = (executor.device(), setup.layout.parameters());
        let threads = data_threads(device, self.threads.count());
        let mut feed =
            BatchQueue::start(setup.source.as_ref(), setup.limits, Position::default(), Counts::default(), threads)?;
        let batch = setup.config.train.batch;
        self.measure("real", executor.as_mut(), batch, &mut || Ok(feed.next()?.clone()))
    }

    /// Batches alone, made by `--threads` threads.
    fn feed(&self, config: RunConfig) -> Result<Line> {
        let setup = RunSetup::new(config)?;
        let start = (Position::default(), Counts::default());
        let mut feed = BatchQueue::start(setup.source.as_ref(), setup.limits, start.0, start.1, self.threads.count())?;
        // A short warm-up, then long enough for blocks to come and go.
        let mut line = Line { kind: "feed", batch: setup.config.train.batch, ..Line::default() };
        let (mut examples, mut tokens) = (0, 0);
        let mut began = None;
        let limit = self.seconds * self.rounds as f64;
        loop {
            let batch = feed.next()?;
            let Some(began) = began else {
                began = Some(Instant::now());
                continue;
            };
            let seconds = Instant::elapsed(&began).as_secs_f64();
            line.steps += 1;
            examples += batch.src.sequences();
            tokens += batch.src.tokens() + batch.tgt.tokens();
            line.src_tokens += batch.src.tokens() as f64;
            line.tgt_tokens += batch.tgt.tokens() as f64;
            if seconds >= limit || interrupt::check().is_err() {
                line.ms_per_step = 1e3 * seconds / line.steps as f64;
                line.examples_per_s = examples as f64 / seconds;
                line.tokens_per_s = tokens as f64 / seconds;
                line.src_tokens /= line.steps as f64;
                line.tgt_tokens /= line.steps as f64;
                interrupt::check()?;
                return Ok(line);
            }
        }
    }

    fn measure(
        &self,
        kind: &'static str,
        executor: &mut dyn Executor,
        batch: usize,
        next: &mut dyn FnMut() -> Result<Batch>,
    ) -> Result<Line> {
        let mut clock = Clock { step: 0, flops_per_token: 0.0 };
        clock.round(executor, next, self.warmup)?;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds.max(1) {
            rounds.push(clock.round(executor, next, self.seconds)?);
        }
        let mut ms: Vec<f64> = rounds.iter().map(|r| 1e3 * r.seconds / r.steps as f64).collect();
        let in_order = ms.clone();
        ms.sort_by(f64::total_cmp);
        let ms_per_step = ms[ms.len() / 2];
        let total = rounds.iter().fold(Round::default(), Round::plus);
        let steps = total.steps as f64;
        let per_second = 1e3 / ms_per_step / steps;
        let tflops = total.flops * per_second / 1e12;
        Ok(Line {
            kind,
            batch,
            src_tokens: total.src / steps,
            tgt_tokens: total.tgt / steps,
            longest_src: total.longest_src / steps,
            longest_tgt: total.longest_tgt / steps,
            steps: total.steps,
            ms_per_step,
            examples_per_s: total.sequences * per_second,
            tokens_per_s: (total.src + total.tgt) * per_second,
            tflops,
            peak_share: None,
            rounds: in_order,
        })
    }
}

struct Clock {
    step: u64,
    /// Of the last batch that was looked at; batches of a run are alike.
    flops_per_token: f64,
}

/// What some steps did, and how long they took.
#[derive(Clone, Copy, Default)]
struct Round {
    steps: u64,
    seconds: f64,
    sequences: f64,
    src: f64,
    tgt: f64,
    longest_src: f64,
    longest_tgt: f64,
    flops: f64,
}

impl Round {
    fn plus(self, other: &Round) -> Round {
        Round {
            steps: self.steps + other.steps,
            seconds: self.seconds + other.seconds,
            sequences: self.sequences + other.sequences,
            src: self.src + other.src,
            tgt: self.tgt + other.tgt,
            longest_src: self.longest_src + other.longest_src,
            longest_tgt: self.longest_tgt + other.longest_tgt,
            flops: self.flops + other.flops,
        }
    }
}

impl Clock {
    /// Trains for about so many seconds, at least one step.
    fn round(
        &mut self,
        executor: &mut dyn Executor,
        next: &mut dyn FnMut() -> Result<Batch>,
        seconds: f64,
    ) -> Result<Round> {
        let mut round = Round::default();
        let began = Instant::now();
        loop {
            let batch = next()?;
            self.step += 1;
            // A rate so small that random labels do no harm however long the bench runs.
            executor.run(TRAINING, &batch, &Scalars { lr: 1e-6, step: self.step, seed: self.step })?;
            let (src, tgt) = (batch.src.tokens() as f64, batch.tgt.tokens() as f64);
            if self.step % 64 == 1 {
                let lengths = |p: &polystep_engine::Packed| p.lengths().collect::<Vec<_>>();
                let flops = executor.programs()[TRAINING].flops(&lengths(&batch.src), &lengths(&batch.tgt));
                self.flops_per_token = flops / (src + tgt);
            }
            round.steps += 1;
            round.sequences += batch.src.sequences() as f64;
            round.src += src;
            round.tgt += tgt;
            round.longest_src += batch.src.longest() as f64;
            round.longest_tgt += batch.tgt.longest() as f64;
            round.flops += self.flops_per_token * (src + tgt);
            if began.elapsed().as_secs_f64() >= seconds || interrupt::check().is_err() {
                break;
            }
        }
        let results = executor.results()?;
        round.seconds = began.elapsed().as_secs_f64();
        interrupt::check()?;
        match results.iter().find(|r| !r.loss.is_finite()) {
            Some(r) => Err(anyhow::anyhow!("a loss of {} while measuring: run `polystep doctor`", r.loss).into()),
            None => Ok(round),
        }
    }
}

fn start(executor: &mut dyn Executor, model: &ModelConfig, layout: &ParamLayout) -> Result<()> {
    executor.set_params(&initial_params(model, layout, 1))?;
    let zeros = vec![0.0; layout.len()];
    Ok(executor.set_moments(&zeros, &zeros)?)
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
    let Report { device, recipe, size, config, vars, parameters, .. } = report;
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

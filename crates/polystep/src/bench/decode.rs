//! `polystep bench decode`: how fast the device decodes. Every output is forced to one length, so random weights do the same
//! work as trained ones, and other programs that can be forced in the same way can be compared.
//!
//! Each figure is the best of some rounds after a warm-up: a shared machine only ever adds time. The CPU time that the process
//! used says what a round would take on a machine that nobody else uses.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args as ClapArgs;
use polystep_core::token::{DIGIT, EOS};
use polystep_engine::EngineError;
use polystep_learn::config::RunConfig;
use polystep_learn::decode::{Branch, Capacity, EngineStepper, Stepper, TopTokens, beam_search, greedy};
use polystep_learn::model::{ModelConfig, ParamLayout, initial_params};
use polystep_learn::trained::TrainedModel;
use serde::Serialize;

use super::Head;
use crate::args::ThreadArgs;
use crate::device::{self, Device};
use crate::failure::{Result, bad_input};
use crate::say;
use crate::table::table;
use crate::trained_model;

const EXAMPLES: &str = "\
Examples:
  polystep bench decode --device cpu --threads 2 --json
  polystep bench decode --device cpu --model runs/large --batches 32 --beams 1,5
  polystep bench decode --device cuda --batches 256,4096 --lanes 8192";

/// Flags of `polystep bench decode`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
    device: Device,
    /// A run whose model decodes; without it, a Transformer-S with random weights
    #[arg(long, value_name = "RUN")]
    model: Option<PathBuf>,
    /// Batch sizes, in sources
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32, 256])]
    batches: Vec<usize>,
    /// Beams; 1 is greedy
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5])]
    beams: Vec<usize>,
    #[arg(
        long,
        default_value_t = 44,
        help = "Source tokens, </s> included: exact for a batch of one, a mean for larger batches"
    )]
    src: usize,
    /// Tokens of every output
    #[arg(long, default_value_t = 38)]
    tgt: usize,
    /// Number of hypotheses extended at once
    #[arg(long, default_value_t = 160)]
    lanes: usize,
    /// Rounds; the best counts
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Seconds per round, at least
    #[arg(long, default_value_t = 0.5, value_name = "S")]
    seconds: f64,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One line of the result.
#[derive(Serialize, Clone, Debug)]
struct Line {
    beam: usize,
    batch: usize,
    /// Of the best round, for the whole batch.
    ms: f64,
    sequences_per_s: f64,
    tokens_per_s: f64,
    /// CPU time of all threads, for the whole batch, of the round with the least; none where it cannot be told.
    cpu_ms: Option<f64>,
    /// Milliseconds of each round.
    rounds: Vec<f64>,
}

/// What `--json` prints.
#[derive(Serialize, Debug)]
struct Report {
    #[serde(flatten)]
    head: Head,
    model: String,
    parameters: usize,
    src: usize,
    tgt: usize,
    lanes: usize,
    lines: Vec<Line>,
}

/// A stepper whose outputs all have one length: no `</s>` before, nothing else at the end.
struct Forced<'a> {
    inner: EngineStepper<'a>,
    length: usize,
}

impl Stepper for Forced<'_> {
    fn capacity(&self) -> Capacity {
        self.inner.capacity()
    }

    fn begin(&mut self, sources: &[&[u8]]) -> std::result::Result<(), EngineError> {
        self.inner.begin(sources)
    }

    fn step(
        &mut self,
        position: usize,
        open: &[Branch],
        k: usize,
        out: &mut TopTokens,
    ) -> std::result::Result<(), EngineError> {
        self.inner.step(position, open, k, out)?;
        if position + 1 < self.length {
            out.tokens.iter_mut().filter(|t| **t == EOS).for_each(|t| *t = DIGIT);
            return Ok(());
        }
        for (tokens, logprobs) in out.tokens.chunks_mut(k).zip(out.logprobs.chunks_mut(k)) {
            tokens.fill(DIGIT);
            tokens[0] = EOS;
            logprobs[1..].fill(f32::NEG_INFINITY);
        }
        Ok(())
    }
}

/// Measures.
pub fn run(args: Args) -> Result<()> {
    let device = args.device.resolve();
    if args.beams.iter().any(|&b| !(1..=5).contains(&b)) {
        return Err(bad_input("--beams: between 1 and 5"));
    }
    let (name, model, layout, params) = match &args.model {
        Some(run) => {
            let TrainedModel { model, layout, params, .. } = trained_model::open(run)?;
            (run.display().to_string(), model, layout, params)
        }
        None => {
            let model = RunConfig::from_toml("", &[]).map_err(bad_input)?.model;
            let layout = ParamLayout::new(&model);
            let params = initial_params(&model, &layout, 1);
            ("random weights".into(), model, layout, params)
        }
    };
    args.check(&model)?;
    let stepper = EngineStepper::new(&model, &layout, &params, args.lanes, |programs, limits| {
        device.executor(programs, limits, args.threads.count())
    })?;
    let device = stepper.device();
    let mut stepper = Forced { inner: stepper, length: args.tgt };
    let mut lines = Vec::new();
    for &beam in &args.beams {
        for &batch in &args.batches {
            lines.push(args.measure(&mut stepper, beam, batch)?);
        }
    }
    let report = Report {
        head: Head::new("decode", device),
        model: name,
        parameters: layout.parameters(),
        src: args.src,
        tgt: args.tgt,
        lanes: args.lanes,
        lines,
    };
    if args.json { say!("{}", serde_json::to_string(&report)?) } else { print(&report) }
}

impl Args {
    fn check(&self, model: &ModelConfig) -> Result<()> {
        let longest = model.max_positions;
        if self.tgt < 2 || self.tgt > longest || self.src < 2 || self.src > longest / 2 {
            return Err(bad_input(format!(
                "--tgt must be between 2 and {longest}, --src between 2 and {}",
                longest / 2
            )));
        }
        if self.lanes < self.beams.iter().copied().max().unwrap_or(1) || self.batches.contains(&0) {
            return Err(bad_input("--lanes must hold the beams of a source, and a batch at least one source"));
        }
        Ok(())
    }

    fn measure(&self, stepper: &mut Forced, beam: usize, batch: usize) -> Result<Line> {
        let sources = sources(batch, self.src);
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let length = self.tgt;
        let mut once = || -> Result<()> {
            let right = if beam == 1 {
                greedy(stepper, &sources)?.iter().all(|h| h.finished && h.tokens.len() + 1 == length)
            } else {
                let found = beam_search(stepper, &sources, beam)?;
                found.iter().all(|b| b.headline.len() == beam && b.headline[0].tokens.len() + 1 == length)
            };
            assert!(right, "the forced length was not kept");
            Ok(())
        };
        once()?;
        let (mut rounds, mut cpu) = (Vec::new(), None);
        for _ in 0..self.rounds.max(1) {
            let (begin, cpu_begin, mut loops) = (Instant::now(), cpu_seconds(), 0);
            while loops == 0 || begin.elapsed().as_secs_f64() < self.seconds {
                once()?;
                loops += 1;
            }
            rounds.push(begin.elapsed().as_secs_f64() * 1e3 / f64::from(loops));
            if let (Some(from), Some(to)) = (cpu_begin, cpu_seconds()) {
                let used = (to - from) * 1e3 / f64::from(loops);
                cpu = Some(cpu.map_or(used, |least: f64| least.min(used)));
            }
        }
        let ms = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let sequences_per_s = batch as f64 / ms * 1e3;
        let tokens_per_s = sequences_per_s * length as f64;
        Ok(Line { beam, batch, ms, sequences_per_s, tokens_per_s, cpu_ms: cpu, rounds })
    }
}

/// Random sources without `</s>`: one of exactly `mean` tokens with it, or many of about so many.
fn sources(batch: usize, mean: usize) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    // The sum of four dice has a quarter of the mean as its spread, as lengths of real steps have.
    let side = (mean * 43 / 100).max(1);
    (0..batch)
        .map(|_| {
            let dice: usize = (0..4).map(|_| random(side + 1)).sum();
            let len = if batch == 1 { mean } else { (mean + dice).saturating_sub(2 * side).clamp(2, 2 * mean) };
            (1..len).map(|_| DIGIT + random(10) as u8).collect()
        })
        .collect()
}

/// CPU time of this process so far; Linux only.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name in parentheses: utime and stime are the 12th and 13th fields, in ticks of 10 ms.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

fn print(report: &Report) -> Result<()> {
    let Report { head: Head { device, .. }, model, parameters, src, tgt, lines, .. } = report;
    let millions = *parameters as f64 / 1e6;
    say!("{model}, {millions:.2}M parameters, {device}; {src} source and {tgt} target tokens, best round")?;
    let rows = lines.iter().map(|l| {
        let cpu = l.cpu_ms.map_or("-".into(), |ms| format!("{ms:.1}"));
        let worst = l.rounds.iter().copied().fold(0.0, f64::max);
        [
            if l.beam == 1 { "greedy".into() } else { format!("beam {}", l.beam) },
            l.batch.to_string(),
            format!("{:.2}", l.ms),
            cpu,
            format!("{:.1}", l.sequences_per_s),
            format!("{:.0}", l.tokens_per_s),
            format!("{:.2}", worst / l.ms),
        ]
    });
    say!("{}", table(1, ["search", "batch", "ms", "CPU ms", "sequences/s", "tokens/s", "worst/best"], rows))
}

//! `polystep bench`: how fast the library is on this machine. `generate` samples, proves and tokenises step examples into
//! memory, as training does, and counts them; nothing is written, so the figure is the library's and not the disk's.

mod decode;
mod train;

use clap::{Args as ClapArgs, Subcommand};
use polystep_core::Task;
use polystep_core::bench::{self, Throughput};
use serde::Serialize;

use crate::args::{SpaceArgs, ThreadArgs, WritingArgs};
use crate::failure::Result;
use crate::say;
use crate::table::{counted, table};

/// Flags of `polystep bench`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Step examples sampled, proved and tokenised per second, on one thread and on all
    Generate(GenerateArgs),
    /// Training steps per second, on fixed shapes and on real data
    Train(train::Args),
    /// Sequences decoded per second, greedy and with beams
    Decode(decode::Args),
}

const EXAMPLES: &str = "\
Examples:
  polystep bench generate --config large_coeff
  polystep bench generate --config medium_terms --vars 2 --setting calculator --json";

#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
struct GenerateArgs {
    #[command(flatten)]
    space: SpaceArgs,
    /// How many variables
    #[arg(long, default_value_t = 1)]
    vars: usize,
    #[command(flatten)]
    writing: WritingArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Proofs per measurement
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    proofs: u64,
    /// Measurements per number of threads; the best is reported
    #[arg(long, default_value_t = 3, value_name = "N")]
    repeat: u32,
    /// The seed of the data
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One measurement.
#[derive(Serialize, Clone, Copy, Debug)]
struct Run {
    threads: usize,
    seconds: f64,
    proofs: u64,
    steps: u64,
    tokens: u64,
    steps_per_s: f64,
}

impl Run {
    fn new(threads: usize, run: Throughput) -> Self {
        let Throughput { proofs, steps, tokens, elapsed } = run;
        let (seconds, steps_per_s) = (elapsed.as_secs_f64(), run.steps_per_second());
        Run { threads, seconds, proofs, steps, tokens, steps_per_s }
    }
}

/// What `--json` prints.
#[derive(Serialize, Debug)]
struct Report {
    bench: &'static str,
    config: String,
    vars: usize,
    setting: String,
    granularity: String,
    notation: String,
    seed: u64,
    runs: Vec<Run>,
}

/// Runs the bench that was asked for.
pub fn run(args: Args) -> Result<()> {
    match args.what {
        What::Generate(args) => generate(args),
        What::Train(args) => train::run(args),
        What::Decode(args) => decode::run(args),
    }
}

fn generate(args: GenerateArgs) -> Result<()> {
    let writing = &args.writing;
    let task = Task { space: args.space.space()?, vars: args.vars, writing: writing.writing() };
    let mut counts = vec![1, args.threads.count()];
    counts.dedup();
    let mut runs: Vec<Run> = Vec::new();
    for threads in counts {
        let mut best: Option<Run> = None;
        for _ in 0..args.repeat.max(1) {
            let run = bench::generate(&task, args.seed, args.proofs, threads)?;
            let run = Run::new(threads, run);
            if best.is_none_or(|b| run.steps_per_s > b.steps_per_s) {
                best = Some(run);
            }
        }
        runs.extend(best);
    }
    let report = Report {
        bench: "generate",
        config: task.space.key.clone(),
        vars: task.vars,
        setting: task.writing.setting.to_string(),
        granularity: task.writing.granularity.to_string(),
        notation: task.writing.notation.to_string(),
        seed: args.seed,
        runs,
    };
    if args.json { say!("{}", serde_json::to_string(&report)?) } else { print(&report) }
}

fn print(report: &Report) -> Result<()> {
    let Report { config, vars, setting, granularity, notation, runs, .. } = report;
    say!(
        "{config}, {}, {setting}, {granularity}, {notation}: sampled, proved and tokenised in memory",
        counted(*vars, "variable")
    )?;
    let rows = runs.iter().map(|run| {
        let rate = |n: u64| format!("{:.0}", n as f64 / run.seconds);
        let speed_up = format!("{:.2}", run.steps_per_s / runs[0].steps_per_s);
        [run.threads.to_string(), rate(run.steps), rate(run.proofs), rate(run.tokens), speed_up]
    });
    say!("{}", table(0, ["threads", "steps/s", "proofs/s", "tokens/s", "speed-up"], rows))
}

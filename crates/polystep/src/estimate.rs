//! `polystep estimate`: how large a problem space is, by the paper's collision estimate, with the paper's number beside ours.

use std::sync::Mutex;

use clap::Args as ClapArgs;
use polystep_core::collision::{Overlap, SpaceSize, estimate};
use serde::Serialize;

use crate::args::{SpaceArgs, ThreadArgs, spaces};
use crate::failure::{Failure, Result};
use crate::paper::{SizeEstimate, size_estimate};
use crate::progress::Progress;
use crate::say;
use crate::table::table;

const EXAMPLES: &str = "\
Examples:
  polystep estimate --config large_coeff
  polystep estimate --config all --vars 1,2                  (the paper's table, 24 numbers)
  polystep estimate --config small_coeff --retry polynomial --json

Two sets are drawn; if all members were equally likely, a space of X members would make them
share |S1|*|S2|/X. The estimate is |S1|*|S2| / |S1 and S2| over distinct members: a lower bound,
since members are not equally likely. It grows with the size of the draws, so compare with the
paper only at its own size, 5 million.";

/// Flags of `polystep estimate`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    space: SpaceArgs,
    /// How many variables; several numbers with commas
    #[arg(long, default_value = "1", value_delimiter = ',')]
    vars: Vec<usize>,
    /// Polynomials per draw, up to a billion (32 bytes of memory each); the paper's tables use 5 million
    #[arg(long, value_name = "N", default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    draws: u64,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Print one JSON object per space
    #[arg(long)]
    json: bool,
}

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    config: &'a str,
    vars: usize,
    retry: String,
    draws: u64,
    seed: u64,
    equations: Option<f64>,
    endpoints: Option<f64>,
    paper_equations: Option<f64>,
    paper_endpoints: Option<f64>,
    distinct_equations: [u64; 2],
    shared_equations: u64,
    distinct_endpoints: [u64; 2],
    shared_endpoints: u64,
}

/// Estimates what the flags ask for.
pub fn run(args: Args) -> Result<()> {
    args.threads.start()?;
    let spaces = spaces(&args.space)?;
    let mut rows = Vec::new();
    for &vars in &args.vars {
        for space in &spaces {
            let size = {
                let progress = Mutex::new(Progress::new("polynomials", 2 * args.draws));
                let step = |n| {
                    if let Ok(mut progress) = progress.lock() {
                        progress.add(n);
                    }
                };
                estimate(space, vars, args.seed, args.draws, &step)?
            };
            let paper = size_estimate(&space.key, vars);
            if args.json {
                let line = json(&space.key, vars, format!("{:?}", space.retry).to_lowercase(), args.seed, size, paper)?;
                say!("{line}")?;
            } else {
                rows.push(row(&space.key, vars, size, paper));
            }
        }
    }
    if !args.json {
        let header = ["config", "vars", "equations", "paper", "endpoints", "paper"];
        say!("Problem-space size in millions, from two draws of {} (seed {})", args.draws, args.seed)?;
        say!("{}", table(1, header, rows))?;
    }
    Ok(())
}

/// A row of the table: ours and the paper's, in millions.
pub fn row(key: &str, vars: usize, size: SpaceSize, paper: Option<SizeEstimate>) -> [String; 6] {
    let ours = |overlap: Overlap| overlap.estimate().map_or("> draws²".into(), millions);
    let theirs = |pick: fn(SizeEstimate) -> f64| paper.map_or("-".into(), |p| millions(pick(p)));
    [
        key.into(),
        vars.to_string(),
        ours(size.equations),
        theirs(|p| p.equations),
        ours(size.endpoints),
        theirs(|p| p.endpoints),
    ]
}

/// Three significant digits, in millions, as the paper prints them.
fn millions(x: f64) -> String {
    let m = x / 1e6;
    let digits = if m >= 99.95 {
        0
    } else if m >= 9.995 {
        1
    } else {
        2
    };
    format!("{m:.digits$}")
}

fn json(
    config: &str,
    vars: usize,
    retry: String,
    seed: u64,
    size: SpaceSize,
    paper: Option<SizeEstimate>,
) -> Result<String> {
    let line = Line {
        config,
        vars,
        retry,
        draws: size.draws,
        seed,
        equations: size.equations.estimate(),
        endpoints: size.endpoints.estimate(),
        paper_equations: paper.map(|p| p.equations),
        paper_endpoints: paper.map(|p| p.endpoints),
        distinct_equations: [size.equations.first, size.equations.second],
        shared_equations: size.equations.shared,
        distinct_endpoints: [size.endpoints.first, size.endpoints.second],
        shared_endpoints: size.endpoints.shared,
    };
    serde_json::to_string(&line).map_err(|e| Failure::Runtime(e.into()))
}

//! `polystep estimate`: how large a problem space is, by the paper's collision estimate, with the paper's number beside ours; and how
//! much of it training must not see.

mod refused;

use std::sync::{Mutex, PoisonError};

use clap::Args as ClapArgs;
use polystep_core::Space;
use polystep_core::collision::{SpaceSize, estimate};
use polystep_record::TestSet;
use polystep_record::paper::size_estimate;
use serde::Serialize;

use crate::args::{SpaceArgs, ThreadArgs, spaces};
use crate::failure::Result;
use crate::progress::WorkProgress;
use crate::say;
use crate::table::table;

const EXAMPLES: &str = "\
Examples:
  polystep estimate --config large_coeff
  polystep estimate --config all --vars 1,2                  (the paper's table, 24 numbers)
  polystep estimate --config small_coeff --retry polynomial --json
  polystep estimate --config all --vars 1,2 --refused        (what each data.guard refuses)

Two sets S1 and S2 are drawn. If all members were equally likely, they would share |S1|*|S2|/X
members of a space of size X. The estimate is |S1|*|S2| / |S1 and S2| over distinct members. It
is a lower bound, since members are not equally likely. It grows with the size of the draws, so
compare with the paper only at its own size, 5 million.";

/// Polynomials per draw in the paper.
const PAPER_DRAWS: u64 = 5_000_000;

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
    #[arg(long, value_name = "N", default_value_t = PAPER_DRAWS, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    draws: u64,
    /// Measure something else: the share of training polynomials that each guard (data.guard = own, all, long) refuses
    #[arg(long)]
    refused: bool,
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
    paper_draws: u64,
    distinct_equations: [u64; 2],
    shared_equations: u64,
    distinct_endpoints: [u64; 2],
    shared_endpoints: u64,
}

impl<'a> Line<'a> {
    fn new(space: &'a Space, vars: usize, seed: u64, size: SpaceSize, paper: Option<[f64; 2]>) -> Line<'a> {
        let SpaceSize { draws, equations, endpoints } = size;
        Line {
            config: &space.key,
            vars,
            retry: space.retry.to_string(),
            draws,
            seed,
            equations: equations.estimate(),
            endpoints: endpoints.estimate(),
            paper_equations: paper.map(|[equations, _]| equations),
            paper_endpoints: paper.map(|[_, endpoints]| endpoints),
            paper_draws: PAPER_DRAWS,
            distinct_equations: [equations.first, equations.second],
            shared_equations: equations.shared,
            distinct_endpoints: [endpoints.first, endpoints.second],
            shared_endpoints: endpoints.shared,
        }
    }

    /// A row of the table: ours and the paper's, in millions.
    fn row(&self) -> [String; 6] {
        let ours = |estimate: Option<f64>| estimate.map_or("> draws²".into(), millions);
        let paper = |estimate: Option<f64>| estimate.map_or("-".into(), millions);
        [
            self.config.into(),
            self.vars.to_string(),
            ours(self.equations),
            paper(self.paper_equations),
            ours(self.endpoints),
            paper(self.paper_endpoints),
        ]
    }
}

/// Estimates what the flags ask for.
pub fn run(args: Args) -> Result<()> {
    args.threads.start()?;
    let spaces = spaces(&args.space)?;
    if args.refused {
        return refused::print(&spaces, &args.vars, args.draws, args.seed, args.json);
    }
    let mut rows = Vec::new();
    for &vars in &args.vars {
        for space in &spaces {
            let progress = Mutex::new(WorkProgress::new("polynomials", 2 * args.draws));
            let step = |n| progress.lock().unwrap_or_else(PoisonError::into_inner).add(n);
            let size = estimate(space, vars, args.seed, args.draws, &step)?;
            drop(progress);
            let line = Line::new(space, vars, args.seed, size, size_estimate(&TestSet::new(&space.key, vars as u32)));
            match args.json {
                true => say!("{}", serde_json::to_string(&line)?)?,
                false => rows.push(line.row()),
            }
        }
    }
    if !args.json {
        let header = ["config", "vars", "equations", "paper", "endpoints", "paper"];
        say!("Problem-space size in millions, from two draws of {} (seed {})", args.draws, args.seed)?;
        say!("{}", table(1, header, rows))?;
        if args.draws != PAPER_DRAWS {
            let draws = args.draws;
            say!(
                "The paper drew {PAPER_DRAWS}. An estimate grows with the draws, so those of {draws} are not comparable with it."
            )?;
        }
    }
    Ok(())
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

//! `polystep quickstart`: the whole pipeline so far in under a minute, with real output: a sampled polynomial, its proof, the
//! check of a right and of a wrong proof, and the size of the space it came from. Each part names the command that does it alone.

use std::sync::Mutex;
use std::time::Instant;

use clap::Args as ClapArgs;
use polystep_core::collision::estimate;
use polystep_core::{Granularity, Notation, Purpose, Sampler, Setting, Space, StepKind, Task, TermOrder, Verdict};

use crate::args::{Named, ThreadArgs, WritingArgs, space_error};
use crate::estimate::row;
use crate::failure::{Result, bad_input};
use crate::paper::size_estimate;
use crate::progress::Progress;
use crate::table::table;
use crate::{inspect, prove, say};

/// The space that is shown.
const CONFIG: &str = "medium_coeff";
/// Its number of variables.
const VARS: usize = 1;
/// Proofs that are generated and checked.
const PROOFS: u64 = 10_000;

/// Flags of `polystep quickstart`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// The seed of everything
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Polynomials per draw of the size estimate; the paper's 5 million unless you are in a hurry
    #[arg(long, value_name = "N", default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    draws: u64,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Shows the pipeline.
pub fn run(args: Args) -> Result<()> {
    let began = Instant::now();
    let space = Space::named(CONFIG).map_err(|e| space_error(e, None))?;
    let task = Task::new(space.clone(), VARS);
    let mut sampler = Sampler::new(&task, args.seed, Purpose::Train).map_err(|e| space_error(e, None))?;

    say!("1. Sample a polynomial and prove it, step by step (polystep generate, polystep prove)\n")?;
    let shown = telling(&mut sampler);
    say!("{}", prove::for_people(&sampler.proof(shown, None), &writing()))?;

    say!("2. Check {PROOFS} proofs; then one with a wrong number in it (polystep check)\n")?;
    let mut steps = 0;
    for index in 0..PROOFS {
        let findings = inspect::proof(&sampler.record(index, None));
        let wrong = findings.steps.iter().find(|f| f.verdict != Verdict::Exact);
        if let Some(sentence) = wrong.map(|f| f.sentence.clone()).or(findings.broken) {
            return Err(bad_input(format!("proof {index} of seed {} is wrong: {sentence}", args.seed)));
        }
        steps += findings.steps.len();
    }
    say!("{PROOFS} proofs, {steps} steps: every step keeps the value and is the one that was expected")?;
    say!("{}\n", spoiled(&mut sampler, shown))?;

    say!("3. How many such polynomials are there? Two draws of {} (polystep estimate)\n", args.draws)?;
    let size = {
        let progress = Mutex::new(Progress::new("polynomials", 2 * args.draws));
        let tell = |n| progress.lock().map(|mut p| p.add(n)).unwrap_or_default();
        let pool = args.threads.pool()?;
        pool.install(|| estimate(&space, VARS, args.seed, args.draws, &tell)).map_err(|e| space_error(e, None))?
    };
    let header = ["millions of", "vars", "equations", "paper", "endpoints", "paper"];
    say!("{}", table(1, header, [row(CONFIG, VARS, size, size_estimate(CONFIG, VARS))]))?;
    say!("\n{:.1} s in all. Next: polystep --help, docs/fidelity.md", began.elapsed().as_secs_f64())
}

/// The first proof that has a step of every kind.
fn telling(sampler: &mut Sampler) -> u64 {
    let kinds = [StepKind::Facstep, StepKind::Mulstep, StepKind::Sumstep];
    let mut tells = |&index: &u64| {
        let proof = sampler.proof(index, None);
        kinds.iter().all(|&kind| proof.steps.iter().any(|step| step.kind == kind))
    };
    (0..PROOFS).find(|index| tells(index)).unwrap_or(0)
}

/// How the shown proof is written: every default.
fn writing() -> WritingArgs {
    WritingArgs {
        setting: Setting::Plain,
        granularity: Granularity::COARSE,
        notation: Notation::Infix,
        order: Named(TermOrder::Paper),
        ones: false,
    }
}

/// What the checker says when the last step of a proof comes to a wrong number.
fn spoiled(sampler: &mut Sampler, index: u64) -> String {
    let mut record = sampler.record(index, None);
    let Some(last) = record.steps.last_mut() else {
        return String::new();
    };
    // The first coefficient becomes one larger; a 1 is not written.
    let rest = last.target.trim_start_matches(|c: char| c.is_ascii_digit());
    let first: u64 = last.target[..last.target.len() - rest.len()].parse().unwrap_or(1);
    let times = if rest.starts_with('x') { "*" } else { "" };
    last.target = format!("{}{times}{rest}", first + 1);
    let findings = inspect::proof(&record);
    let wrong = findings.steps.iter().find(|f| f.verdict != Verdict::Exact);
    wrong.map_or(String::new(), |f| format!("{}\n{}: {}", f.output, f.verdict.name(), f.sentence))
}

//! `polystep report`: one self-contained page about one run, or several side by side.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use polystep_record::RunFolder;
use polystep_study::{StoredRun, report};

use crate::failure::Result;
use crate::{interrupt, output, say};

const EXAMPLES: &str = "\
Examples:
  polystep report runs/fast
  polystep report runs/infix runs/prefix --out compare.html
  polystep report runs/seed1 runs/seed2 runs/seed3 --out seeds.html
  polystep report runs/ood-small runs/ood-large --out ood.html     (after polystep eval ... --on)";

/// Flags of `polystep report`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folders of runs; several are compared
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The page to write. The tables are written beside it as .md and .tex. With several runs or test sets the matrix is
    /// written as .csv [default: RUN/report.html]
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// Writes the page.
pub fn run(args: Args) -> Result<()> {
    let out = match (&args.out, &args.runs[..]) {
        (Some(out), _) => out.clone(),
        (None, [run]) => RunFolder::new(run).report(),
        (None, _) => RunFolder::new("").report(),
    };
    output::check_name(&out)?;
    interrupt::listen()?;
    let runs = args.runs.iter().map(|run| StoredRun::open(run)).collect::<std::result::Result<Vec<_>, _>>()?;
    for note in runs.iter().flat_map(|run| &run.notes) {
        output::note(format_args!("note: {note}"));
    }
    interrupt::check()?;
    let files = report::write(&runs, &out)?;
    for file in files {
        say!("{}", file.display())?;
    }
    Ok(())
}

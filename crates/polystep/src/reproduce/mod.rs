//! `polystep reproduce`: the paper's tables, measured here, with the paper's numbers beside ours.
//!
//! The work has five stages:
//! 1. A `row_filter` picks the rows of a `selection`.
//! 2. Each row needs runs. Their `table_plan` sets them up as `job`s.
//! 3. The `job_runner` makes the missing runs, each in a `child` process. Their `pace` says how long this will take.
//! 4. The `results_folder` stores their records and makes the ledgers.
//! 5. `show` prints the tables.
//!
//! Finished work is never repeated, and a command that was stopped continues where it stopped. Only `--eval-only` measures
//! finished models again (`retest`).

mod child;
mod import;
mod job;
mod job_runner;
mod pace;
mod results_folder;
mod retest;
mod row_filter;
mod search;
mod selection;
mod show;
mod sizes;
mod table_plan;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use polystep_study::tables::{PaperTable, Recipe, TableView};

use crate::args::{ThreadArgs, deadline, positive_minutes};
use crate::device::{self, Device};
use crate::failure::{Result, bad_input};
use crate::output::note;
use crate::table::counted;
use crate::{bundled, interrupt, say};
use job::Folders;
use job_runner::JobRunner;
use pace::Pace;
use results_folder::ResultsFolder;
use row_filter::RowFilter;
use selection::Selection;
use table_plan::TablePlans;

const EXAMPLES: &str = "\
Examples:
  polystep reproduce --list
  polystep reproduce --table var1coarsefull --rows config=large_coeff --minutes 8 --jobs 2
  polystep reproduce --table OODcoeff --dry-run
  polystep reproduce --all --minutes 60
  polystep reproduce --table var1combo --recipe paper --seeds 3
  polystep reproduce --table var1coarse --eval-only
  polystep reproduce --all --show --markdown
  polystep reproduce --all --show --plots docs/plots

Weights and checkpoints go to runs/NAME, the record of a finished run to results/runs/NAME,
the ledger of a table to results/TABLE.csv (recipe paper: results/paper/TABLE.csv).
Give the same command again to continue where it stopped. See docs/reproduce.md.";

/// A message names at most this many runs. It counts the others.
const NAMED: usize = 6;

/// Flags of `polystep reproduce`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A table of the paper, by the name of its CSV; several with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    table: Vec<String>,
    /// Every table
    #[arg(long, conflicts_with = "table")]
    all: bool,
    /// Only some rows: numbers (1,4-6) or keys (config=large_coeff,notation=prefix)
    #[arg(long, value_name = "ROWS", conflicts_with = "all")]
    rows: Option<String>,
    /// Show the tables with their cost and state, and do nothing; all of them, unless --table names some
    #[arg(long, conflicts_with_all = ["rows", "dry_run", "eval_only", "json", "markdown"])]
    list: bool,
    /// Show the runs that would be made, in order, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Train nothing. Test the models on this machine, including the bundled ones, and compare them with their records
    #[arg(long)]
    eval_only: bool,
    /// Compute nothing: make the tables and ledgers from the records
    #[arg(long, conflicts_with_all = ["eval_only", "list", "dry_run"])]
    show: bool,
    /// Search the hyper-parameters of tuned rows (reproduce/search.toml) instead of taking the paper's
    #[arg(long, conflicts_with_all = ["eval_only", "show"])]
    search: bool,
    /// fast: the best we can do in the budget; paper: the paper's own, with its number of examples
    #[arg(long, default_value_t = Recipe::Fast)]
    recipe: Recipe,
    /// Repeat every run from the seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Stop within M minutes, at the end of a run or at a checkpoint
    #[arg(long, value_name = "M", value_parser = positive_minutes)]
    minutes: Option<f64>,
    /// Number of runs at a time. They share the device
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
    device: Device,
    /// Import runs made elsewhere into the records: a run folder, or a folder of run folders
    #[arg(long, value_name = "FOLDER")]
    import: Vec<PathBuf>,
    /// A plan to use in place of the table's own, reproduce/TABLE.toml
    #[arg(long, value_name = "FILE.toml")]
    plan: Option<PathBuf>,
    /// Print the tables as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the tables as Markdown
    #[arg(long)]
    markdown: bool,
    /// Draw what was measured into SVG files of a folder: numbers, learning curves, curricula
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["list", "dry_run"])]
    plots: Option<PathBuf>,
    /// The folder of weights and checkpoints
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// The folder of records and ledgers
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Reproduces.
pub fn run(args: Args) -> Result<()> {
    let deadline = deadline(args.minutes);
    interrupt::listen()?;
    let plans = TablePlans::read(args.plan.as_deref())?;
    let folders = Folders { runs: args.runs.clone(), results: args.results.clone(), models: bundled::folder() };
    let mut results = ResultsFolder::open(&folders)?;
    args.import.iter().try_for_each(|folder| import::import(folder, &plans, &mut results))?;
    let pace = Pace::of(args.device, args.threads.count(), args.jobs, &plans, &results.records);
    if args.list {
        args.table.iter().try_for_each(|name| plans.named(name).map(drop))?;
        return show::list(&args.table, &plans, &folders, &results, &pace, args.recipe, args.seeds);
    }
    let selection = args.selection(&plans)?;
    if selection.tables.is_empty() {
        return Ok(());
    }
    let jobs = selection.jobs(&plans);
    // A bad plan is refused now, not after hours of training.
    jobs.iter().try_for_each(|job| plans.config(&job.experiment).map(drop))?;
    if args.dry_run {
        return show::dry_run(&plans, &folders, &results, &pace, &jobs);
    }
    let runner = JobRunner {
        plans: &plans,
        folders: &folders,
        pace: &pace,
        device: args.device,
        threads: args.threads.threads.map(Into::into),
        jobs: args.jobs.into(),
        deadline,
        train: !args.eval_only,
        search: args.search,
    };
    let open = if args.show { Vec::new() } else { folders.open_jobs(jobs, &results.records)? };
    let fresh: Vec<String> = open.iter().map(|job| job.name.clone()).collect();
    let summary = runner.work(open, &mut results)?;
    if !args.eval_only && !args.show {
        sizes::make_missing(&selection, &plans, &results, &args.threads, deadline)?;
    }
    results.update_ledgers(selection.tables.iter().map(|(table, _)| *table), args.recipe)?;
    let views = selection.views(&results)?;
    args.print(&views)?;
    if let Some(folder) = &args.plots {
        selection.draw(folder, &views, &results, args.all)?;
    }
    let answers = if args.eval_only { runner.retest(&selection, &fresh, &results.records)? } else { Vec::new() };
    args.tell_left(&summary.left);
    match summary.failed.as_slice() {
        [] => retest::report(&answers, pace.device(), args.json),
        failed => {
            let runs = counted(failed.len(), "run");
            Err(anyhow::anyhow!("{runs} failed: {}", failed.join(", ")).into())
        }
    }
}

impl Args {
    /// The tables and rows that the flags ask for; none if runs are only imported.
    fn selection<'p>(&self, plans: &'p TablePlans) -> Result<Selection<'p>> {
        if self.table.is_empty() && !self.all && self.import.is_empty() {
            return Err(bad_input("which table? give --table NAME or --all; --list shows them"));
        }
        let filter = self.rows.as_deref().map(RowFilter::parse).transpose()?.unwrap_or_default();
        let chosen: Vec<&PaperTable> = match self.all {
            true => plans.iter().map(|(table, _)| table).collect(),
            false => self.table.iter().map(|name| plans.named(name).map(|(t, _)| t)).collect::<Result<_>>()?,
        };
        let tables = chosen.into_iter().map(|table| Ok((table, filter.of(table)?))).collect::<Result<_>>()?;
        Ok(Selection { tables, recipe: self.recipe, seeds: self.seeds })
    }

    fn print(&self, views: &[TableView]) -> Result<()> {
        if self.json {
            return say!("{}", serde_json::to_string_pretty(views)?);
        }
        for (i, view) in views.iter().enumerate() {
            if self.markdown {
                say!("### {} (recipe {})\n\nOurs / the paper's.\n\n{}", view.table, view.recipe, view.markdown())?;
                continue;
            }
            if i > 0 {
                say!("")?;
            }
            show::print(view)?;
        }
        Ok(())
    }

    /// Says which runs were not made.
    fn tell_left(&self, left: &[String]) {
        if left.is_empty() {
            return;
        }
        let why = if self.eval_only {
            "with neither record nor weights here"
        } else {
            "still to be made, by the same command"
        };
        let (some, rest) = left.split_at(left.len().min(NAMED));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        note(format_args!("{} {why}: {}{more}", counted(left.len(), "run"), some.join(", ")));
    }
}

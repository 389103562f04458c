//! `polystep reproduce`: the paper's tables, made here, the paper's numbers beside ours.
//!
//! In the order of the work: `select` the rows, look up their runs in `plan`s, see what there is of each (`runs`), make the rest
//! (`work`, at the pace of `pace`), enter it into the `results`, and `show` the tables. Nothing that is done is done again, and a
//! command that was stopped goes on where it stopped; only `--eval-only` tests `again` what has been tested.

mod import;
mod job;
mod job_runner;
mod pace;
mod results_folder;
mod retest;
mod row_filter;
mod search;
mod show;
mod sizes;
mod table_plan;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use polystep_study::plots::{self, Figure};
use polystep_study::tables::{Kind, Need, Recipe, Row, Table, View};

use crate::args::{ThreadArgs, deadline, positive_minutes};
use crate::device::Device;
use crate::failure::{Failure, Result, bad_input};
use crate::output::note;
use crate::table::counted;
use crate::{bundled, interrupt, say};
use job::{Folders, Job, Remaining};
use job_runner::JobRunner;
use pace::Pace;
use results_folder::{ResultsFolder, write_whole};
use row_filter::RowFilter;
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
The same command again goes on where the last one stopped; docs/reproduce.md tells more.";

/// Runs that a sentence names before it only counts them.
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
    /// Train nothing: test the models that are here, those in the box too, and compare with their records
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
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Stop within so many minutes, at the end of a run or at a checkpoint
    #[arg(long, value_name = "M", value_parser = positive_minutes)]
    minutes: Option<f64>,
    /// Runs at a time; they share the device
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    device: Device,
    /// Take runs that were made elsewhere into the records: a run's folder, or a folder of such
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
    for folder in &args.import {
        import::import(folder, &plans, &mut results)?;
    }
    let pace = Pace::of(args.device, args.threads.count(), args.jobs, &plans, &results.records);
    if args.list {
        args.table.iter().try_for_each(|name| plans.named(name).map(drop))?;
        return show::list(&args.table, &plans, &folders, &results, &pace, args.recipe, args.seeds);
    }
    let tables = args.tables(&plans)?;
    if tables.is_empty() {
        return Ok(());
    }
    let jobs = jobs(&plans, &tables, args.recipe, args.seeds);
    // Before the first run, not in the middle of the night.
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
    let mut open = Vec::new();
    for job in jobs {
        if !args.show && folders.state(&job, &results.records)? != Remaining::Done {
            open.push(job);
        }
    }
    let fresh: Vec<String> = open.iter().map(|job| job.name.clone()).collect();
    let summary = runner.work(open, &mut results)?;
    let train = !args.eval_only && !args.show;
    for (table, rows) in tables.iter().filter(|(table, _)| table.kind() == Kind::Sizes && train) {
        let draws = plans.named(table.name)?.1.draws()?;
        sizes::make(&results, table, rows, draws, &args.threads, deadline)?;
    }
    results.update_ledgers(tables.iter().map(|(table, _)| *table), args.recipe)?;
    let views = args.views(&tables, &results)?;
    args.print(&views)?;
    if let Some(folder) = &args.plots {
        args.draw(folder, &tables, &views, &results)?;
    }
    let mut answers = Vec::new();
    if args.eval_only {
        let needs: Vec<Need> = needs(&tables, args.recipe, args.seeds).map(|(_, need)| need).collect();
        let mut tests = retest::tests(&needs, &folders, &results.records)?;
        tests.retain(|test| !fresh.contains(&test.name));
        if tests.is_empty() {
            note("no model of these rows is here to be tested again");
        }
        answers = runner.retest(&tests, &results.records)?;
    }
    if !summary.left.is_empty() {
        let why = if args.eval_only {
            "with neither record nor weights here"
        } else {
            "still to be made, by the same command"
        };
        let (some, rest) = summary.left.split_at(summary.left.len().min(NAMED));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        note(format_args!("{} {why}: {}{more}", counted(summary.left.len(), "run"), some.join(", ")));
    }
    match summary.failed.as_slice() {
        [] => retest::report(&answers, pace.device(), args.json),
        failed => {
            let runs = counted(failed.len(), "run");
            Err(Failure::Runtime(anyhow::anyhow!("{runs} failed: {}", failed.join(", "))))
        }
    }
}

impl Args {
    /// The tables and rows that are meant.
    fn tables<'p>(&self, plans: &'p TablePlans) -> Result<Vec<(&'p Table, Vec<&'p Row>)>> {
        if self.table.is_empty() && !self.all {
            return match self.import.is_empty() {
                true => Err(bad_input("which table? give --table NAME or --all; --list shows them")),
                false => Ok(Vec::new()),
            };
        }
        let rows = match &self.rows {
            Some(text) => RowFilter::parse(text)?,
            None => RowFilter::default(),
        };
        let chosen: Vec<&Table> = match self.all {
            true => plans.iter().map(|(table, _)| table).collect(),
            false => self.table.iter().map(|name| plans.named(name).map(|(t, _)| t)).collect::<Result<_>>()?,
        };
        chosen.into_iter().map(|table| Ok((table, rows.of(table)?))).collect()
    }

    fn views(&self, tables: &[(&Table, Vec<&Row>)], results: &ResultsFolder) -> Result<Vec<View>> {
        let view = |(table, rows): &(&Table, Vec<&Row>)| match table.kind() {
            Kind::Sizes => sizes::view(results, table, rows),
            _ => Ok(View::of(table, rows, self.recipe, self.seeds, &results.records)),
        };
        tables.iter().map(view).collect()
    }

    /// `--plots`.
    fn draw(
        &self,
        folder: &Path,
        tables: &[(&Table, Vec<&Row>)],
        views: &[View],
        results: &ResultsFolder,
    ) -> Result<()> {
        let tables = tables.iter().zip(views).map(|((table, _), view)| (*table, view));
        let mut figures: Vec<Figure> = plots::of_tables(tables, self.seeds, &results.records);
        // The probe is no table of its own.
        figures.extend(plots::arithmetic(&results.records).filter(|_| self.all));
        for (name, chart) in &figures {
            write_whole(&folder.join(format!("{name}.svg")), &chart.file())?;
        }
        note(format_args!("{} in {}", counted(figures.len(), "figure"), folder.display()));
        Ok(())
    }

    fn print(&self, views: &[View]) -> Result<()> {
        if self.json {
            let text = serde_json::to_string_pretty(views)?;
            return say!("{text}");
        }
        for (i, view) in views.iter().enumerate() {
            match self.markdown {
                true => {
                    say!("### {} (recipe {})\n\nOurs / the paper's.\n\n{}", view.table, view.recipe, view.markdown())?
                }
                false if i > 0 => say!("")?,
                false => {}
            }
            if !self.markdown {
                show::print(view)?;
            }
        }
        Ok(())
    }
}

/// What some rows need, seed by seed.
fn needs(tables: &[(&Table, Vec<&Row>)], recipe: Recipe, seeds: u64) -> impl Iterator<Item = (u64, Need)> {
    let rows = tables.iter().flat_map(|(_, rows)| rows.iter().copied());
    (1..=seeds).flat_map(move |seed| rows.clone().flat_map(move |row| row.needs(recipe, seed)).map(move |n| (seed, n)))
}

/// The runs that some rows need, each once, in the order of their owners' tables: step-wise models first, then one-shot ones; a
/// later seed after all of an earlier one.
fn jobs(plans: &TablePlans, tables: &[(&Table, Vec<&Row>)], recipe: Recipe, seeds: u64) -> Vec<Job> {
    let mut wanted = Vec::new();
    for (seed, need) in needs(tables, recipe, seeds) {
        let owner = plans.owner(&need.experiment).map(|(place, _)| place);
        wanted.push((seed, owner, need.endpoint, need.experiment));
    }
    wanted.sort_by_key(|(seed, owner, endpoint, _)| (*seed, *owner, *endpoint));
    let mut jobs: Vec<Job> = Vec::new();
    for (.., experiment) in wanted {
        let name = experiment.name();
        if jobs.iter().all(|job| job.name != name) {
            jobs.push(Job::new(experiment, plans));
        }
    }
    jobs
}

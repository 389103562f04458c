//! `polystep reproduce`: the paper's tables, measured here, with the paper's numbers beside ours.
//!
//! The work has five stages:
//! 1. A `row_filter` picks the rows of a `selection`.
//! 2. Each row needs runs. Their `table_plan` sets them up as `job`s.
//! 3. The `job_queue` claims a run that nobody is at, and the `job_runner` makes it in child processes. Their `pace` says how long
//!    this will take.
//! 4. The `results_folder` stores their records and makes the ledgers.
//! 5. `show` prints the tables.
//!
//! Finished work is never repeated, and a command that was stopped continues where it stopped. Only `--eval-only` measures
//! finished models again (`retest`).

mod campaign;
mod import;
mod job;
mod job_queue;
mod job_runner;
mod own_table;
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
use std::time::Instant;

use clap::Args as ClapArgs;
use polystep_record::folder::lease_of;
use polystep_record::{CampaignFolder, LeaseWatch};
use polystep_study::tables::{PaperTable, Recipe, TableView};

use crate::args::{ThreadArgs, deadline, positive_minutes};
use crate::device::Device;
use crate::failure::{Result, bad_input};
use crate::mps::Mps;
use crate::output::note;
use crate::slots::SlotArgs;
use crate::slurm::{self, SlurmArgs, TaskArray};
use crate::table::counted;
use crate::{bundled, interrupt, say};
use campaign::Campaign;
use job::{Folders, Job};
use job_queue::Summary;
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
  polystep reproduce --all --gpus 0-7 --jobs 2
  polystep reproduce --all --slurm --partition gpu --gpus-per-task 1 --time 4:00:00 --dry-run
  polystep reproduce --table var1combo --recipe paper --seeds 3
  polystep reproduce --table var1coarse --eval-only
  polystep reproduce --all --show --markdown
  polystep reproduce --all --show --plots docs/plots
  polystep reproduce --plan mine.toml --page mine.html     (a table of your own: docs/spaces.md)
  polystep reproduce --campaign reproduce/campaign.toml --jobs 2 --mps --minutes 28

Weights and checkpoints go to runs/NAME, the record of a finished run to results/runs/NAME,
the ledger of a table to results/TABLE.csv (recipe paper: results/paper/TABLE.csv).
Give the same command again to continue where it stopped. Several commands may share the folders, on
several machines too: each takes runs that no other is at. See docs/reproduce.md, docs/cluster.md.

Exit codes: 0, nothing failed; what is still to be made, because the time is up or because another
process is at it, is named. 1, a run failed. 130, stopped by a signal, everything saved.";

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
    /// Show the tables with their cost and state, which process makes which run, and what failed; all tables, unless --table
    /// names some
    #[arg(long, conflicts_with_all = ["rows", "dry_run", "eval_only", "json", "markdown"])]
    list: bool,
    /// Show the runs that would be made, in order, and do nothing; with --slurm, show the script
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
    /// Let several runs share a GPU by NVIDIA's MPS: the service that runs is used, or one is started for this command
    #[arg(long, conflicts_with_all = ["slurm", "list", "show"])]
    mps: bool,
    #[command(flatten)]
    slots: SlotArgs,
    /// Import runs made elsewhere into the records: a run folder, or a folder of run folders
    #[arg(long, value_name = "FOLDER")]
    import: Vec<PathBuf>,
    /// A plan to use in place of the table's own, reproduce/TABLE.toml; or a table of your own: runs and test sets (docs/spaces.md)
    #[arg(long, value_name = "FILE.toml")]
    plan: Option<PathBuf>,
    /// Stages of tables, rows, recipes and seeds, made in their order (docs/reproduce.md)
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["table", "all", "rows", "plan", "eval_only", "show", "slurm", "json", "markdown", "plots", "page"])]
    campaign: Option<PathBuf>,
    /// Print the tables as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the tables as Markdown
    #[arg(long)]
    markdown: bool,
    /// Draw what was measured into SVG files of a folder: numbers, learning curves, curricula
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["list", "dry_run"])]
    plots: Option<PathBuf>,
    /// Write a page about the runs of the tables, as polystep report does
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["list", "dry_run"])]
    page: Option<PathBuf>,
    /// The folder of weights and checkpoints
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// The folder of records and ledgers
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    slurm: SlurmArgs,
}

/// Reproduces.
pub fn run(args: Args) -> Result<()> {
    let deadline = deadline(args.minutes);
    interrupt::listen()?;
    let campaign = args.campaign.as_deref().map(Campaign::read).transpose()?;
    let files = campaign.as_ref().map_or(args.plan.as_slice(), Campaign::plans);
    let plans = TablePlans::read(files)?;
    let folders = Folders { runs: args.runs.clone(), results: args.results.clone(), models: bundled::folder() };
    let mut results = ResultsFolder::open(&folders, plans.own().map(|(table, _)| table.clone()))?;
    args.import.iter().try_for_each(|folder| import::import(folder, &plans, &mut results))?;
    // What Slurm's tasks will find is not what this machine has.
    let slots = if args.slurm.asked() { vec![args.slots.device] } else { args.slots.slots()? };
    let pace = Pace::of(&slots, args.threads.count(), &plans, &results.records);
    if args.list {
        args.table.iter().try_for_each(|name| plans.named(name).map(drop))?;
        return show::list(&args.table, &plans, &folders, &results, &pace, args.recipe, args.seeds);
    }
    if let Some(campaign) = &campaign {
        return args.run_campaign(campaign, &plans, &folders, &mut results, deadline);
    }
    let selection = args.selection(&plans)?;
    if selection.tables.is_empty() {
        return Ok(());
    }
    let jobs = selection.jobs(&plans);
    // A bad plan is refused now, not after hours of training.
    jobs.iter().try_for_each(|job| plans.config(&job.experiment).map(drop))?;
    if args.slurm.asked() {
        return args.submit(jobs, &plans, &folders, &mut results);
    }
    if args.dry_run {
        return show::dry_run(&plans, &folders, &results, &pace, &jobs);
    }
    let mps = args.start_mps()?;
    let runner = args.runner(&plans, &folders, &pace, slots, deadline, mps.as_ref());
    if !args.slurm.task {
        LeaseWatch::clear(folders.claims_on_done(&jobs, &results.records))?;
    }
    let open = if args.show { Vec::new() } else { folders.open_jobs(jobs, &results.records)? };
    let fresh: Vec<String> = open.iter().map(|job| job.name.clone()).collect();
    let summary = runner.work(open, &mut results);
    // Also after an interrupt: the ledgers of the last runs may be missing.
    match args.show {
        true => results.update_ledgers(selection.tables.iter().map(|(table, _)| *table), args.recipe)?,
        false => results.update_all_ledgers(args.recipe)?,
    }
    let summary = summary?;
    if !args.eval_only && !args.show {
        sizes::make_missing(&selection, &plans, &results, &args.threads, deadline)?;
    }
    let views = selection.views(&results)?;
    args.print(&views)?;
    if let Some(folder) = &args.plots {
        selection.draw(folder, &views, &results, args.all)?;
    }
    if let Some(page) = &args.page {
        selection.write_page(page, &results)?;
    }
    let answers = if args.eval_only { runner.retest(&selection, &fresh, &results.records)? } else { Vec::new() };
    args.tell_left(&summary);
    summary.into_result()?;
    retest::report(&answers, pace.device(), args.json)
}

impl Args {
    /// The tables and rows that the flags ask for; none if runs are only imported.
    fn selection<'p>(&self, plans: &'p TablePlans) -> Result<Selection<'p>> {
        let own: Vec<String> = plans.own().map(|(table, _)| table.name.to_owned()).collect();
        let asked = if self.table.is_empty() { &own } else { &self.table };
        if asked.is_empty() && !self.all && self.import.is_empty() {
            return Err(bad_input("which table? give --table NAME or --all; --list shows them"));
        }
        let filter = self.rows.as_deref().map(RowFilter::parse).transpose()?.unwrap_or_default();
        let chosen: Vec<&PaperTable> = match self.all {
            true => plans.iter().map(|(table, _)| table).collect(),
            false => asked.iter().map(|name| plans.named(name).map(|(t, _)| t)).collect::<Result<_>>()?,
        };
        let tables = chosen.into_iter().map(|table| Ok((table, filter.of(table)?))).collect::<Result<_>>()?;
        Ok(Selection { tables, recipe: self.recipe, seeds: self.seeds })
    }

    /// What the runs are made with.
    fn runner<'a>(
        &self,
        plans: &'a TablePlans,
        folders: &'a Folders,
        pace: &'a Pace,
        slots: Vec<Device>,
        deadline: Option<Instant>,
        mps: Option<&Mps>,
    ) -> JobRunner<'a> {
        JobRunner {
            plans,
            folders,
            pace,
            slots,
            threads: self.threads.threads.map(Into::into),
            environment: mps.map_or_else(Vec::new, Mps::environment),
            deadline,
            train: !self.eval_only,
            search: self.search,
            task: self.slurm.task,
        }
    }

    /// `--mps`: the service, for as long as the runs are made.
    fn start_mps(&self) -> Result<Option<Mps>> {
        if self.mps && self.slots.device == Device::Cpu {
            return Err(bad_input("--mps shares a GPU: leave it out with --device cpu"));
        }
        self.mps.then(Mps::start).transpose()
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
    fn tell_left(&self, summary: &Summary) {
        let left = match self.eval_only {
            true => "with neither record nor weights here",
            false => "still to be made, by the same command",
        };
        let others: Vec<String> =
            summary.others.iter().map(|(name, holder)| format!("{name} ({})", holder.described())).collect();
        for (names, why) in [
            (&summary.left, left),
            (&others, "being made by other processes"),
            (&summary.failed_elsewhere, "failed in other processes; the same command tries again"),
        ] {
            let (some, rest) = names.split_at(names.len().min(NAMED));
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            if !some.is_empty() {
                note(format_args!("{} {why}: {}{more}", counted(names.len(), "run"), some.join(", ")));
            }
        }
    }

    /// `--slurm`: submits the jobs that are not done and that nobody is at.
    fn submit(&self, jobs: Vec<Job>, plans: &TablePlans, folders: &Folders, results: &mut ResultsFolder) -> Result<()> {
        if self.eval_only || self.show {
            return Err(bad_input("--slurm trains and tests; --eval-only and --show are for one machine"));
        }
        if !self.dry_run {
            // What tasks that were killed have left: leases, and records that no ledger has.
            let claims = folders.claims_on_done(&jobs, &results.records);
            LeaseWatch::clear(claims.into_iter().chain([lease_of(&folders.results)]))?;
            results.update_all_ledgers(self.recipe)?;
        }
        let open = folders.open_jobs(jobs, &results.records)?;
        let campaigns: Vec<CampaignFolder> = open.iter().map(|job| folders.campaign(&job.name)).collect();
        let left = slurm::unclaimed(campaigns, CampaignFolder::claim, self.dry_run)?;
        if !self.dry_run {
            left.iter().try_for_each(CampaignFolder::forget_failure)?;
        }
        let array = TaskArray {
            name: "reproduce",
            unit: "run",
            left: left.len(),
            jobs: self.slots.jobs.into(),
            out: &folders.runs,
            args: self.words(),
            watch: format!("polystep reproduce --list {}", self.places().join(" ")),
        };
        self.slurm.submit(plans.slurm(), &array, self.dry_run)
    }

    /// The flags that say where runs and results are, and what is meant.
    fn places(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        if !self.table.is_empty() {
            flag("table", self.table.join(","));
        }
        if let Some(plan) = &self.plan {
            flag("plan", plan.display().to_string());
        }
        flag("recipe", self.recipe.to_string());
        flag("seeds", self.seeds.to_string());
        flag("runs", self.runs.display().to_string());
        flag("results", self.results.display().to_string());
        words
    }

    /// The flags of this command, as a task of an array repeats them.
    fn words(&self) -> Vec<String> {
        let Args { all, rows, search, minutes, slots, threads, .. } = self;
        let SlotArgs { device, gpus, jobs } = slots;
        let mut words = self.places();
        words.extend(
            [(*all, "--all"), (*search, "--search")].into_iter().filter(|(on, _)| *on).map(|(_, w)| w.to_owned()),
        );
        let threads = threads.threads.map(|n| n.to_string());
        for (name, value) in [
            ("--rows", rows.clone()),
            ("--minutes", minutes.map(|m| m.to_string())),
            ("--gpus", gpus.as_ref().map(ToString::to_string)),
            ("--device", Some(device.to_string())),
            ("--jobs", Some(jobs.to_string())),
            ("--threads", threads),
        ] {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        words
    }
}

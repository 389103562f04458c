//! What `reproduce` prints: the list of tables, the runs that it would make, and the tables themselves.

use polystep_record::{LeaseHolder, RunFailure, utc};
use polystep_study::columns::{Quantity, Unit};
use polystep_study::grid::Grid;
use polystep_study::number::{CountFormat, interval, number};
use polystep_study::side_by_side::Cell;
use polystep_study::tables::{Kind, PaperRow, PaperTable, Recipe, TableView};

use super::job::{Folders, Job, Remaining};
use super::pace::{Pace, clock};
use super::results_folder::ResultsFolder;
use super::selection::Selection;
use super::sizes;
use super::table_plan::TablePlans;
use crate::failure::Result;
use crate::{say, table};

/// `--list`: the named tables, or all, with their cost and state.
pub fn list(
    names: &[String],
    plans: &TablePlans,
    folders: &Folders,
    results: &ResultsFolder,
    pace: &Pace,
    recipe: Recipe,
    seeds: u64,
) -> Result<()> {
    let (mut lines, mut meant) = (Vec::new(), std::collections::BTreeSet::new());
    let is_meant = |table: &PaperTable| names.is_empty() || names.iter().any(|name| name == table.name);
    for (table, plan) in plans.iter().filter(|(table, _)| is_meant(table)) {
        let rows: Vec<&PaperRow> = table.rows.iter().collect();
        let (done, needed, left) = if table.kind() == Kind::Sizes {
            let done = sizes::done(results, table, &rows)?;
            let seconds = plan.cost.map_or(0.0, |cost| cost.seconds_per_run);
            (done, rows.len(), seconds * (rows.len() - done) as f64)
        } else {
            let jobs = Selection { tables: vec![(table, rows.clone())], recipe, seeds }.jobs(plans);
            let (mut done, mut left) = (0, 0.0);
            for job in &jobs {
                let remaining = folders.remaining(job, &results.records)?;
                done += usize::from(remaining == Remaining::Done);
                meant.insert(job.name.clone());
                left += pace.left(plans, &job.experiment, remaining);
            }
            (done, jobs.len(), pace.together(left))
        };
        let (view, headline, unit) = match table.kind() {
            Kind::Sizes => (sizes::view(results, table, &rows)?, Quantity::EquationSize, Unit::Count),
            _ => (TableView::of(table, &rows, recipe, seeds, &results.records), Quantity::FullProof, Unit::Percent),
        };
        let shown = |value: f64| number(value, unit, CountFormat::Millions);
        let range = |[lo, hi]: [f64; 2]| format!("{} to {}", shown(lo), shown(hi));
        lines.push([
            table.name.to_owned(),
            rows.len().to_string(),
            format!("{done} of {needed}"),
            clock(left),
            plan.expected.as_ref().map_or(String::new(), |expected| range(expected.paper)),
            view.range(headline).map_or(String::new(), range),
            results.path(table, recipe).display().to_string(),
        ]);
    }
    say!("{}", table::table(1, ["table", "rows", "runs done", "left", "paper", "ours", "ledger"], lines))?;
    say!("Recipe {recipe}; full proofs in percent, lowest to highest.")?;
    say!("Tables share runs. Each table's time left assumes that only this table is made, {}.", pace.describe())?;
    let campaigns = || meant.iter().map(|name| (name, folders.campaign(name)));
    let at_work =
        campaigns().filter_map(|(name, campaign)| Some((name.clone(), LeaseHolder::read(&campaign.claim())?)));
    at_work_and_failed(at_work, campaigns().map(|(name, campaign)| Ok((name.clone(), campaign.failure()?))))
}

/// Prints who is at what, and what failed.
pub fn at_work_and_failed(
    at_work: impl Iterator<Item = (String, LeaseHolder)>,
    failed: impl Iterator<Item = Result<(String, Option<RunFailure>)>>,
) -> Result<()> {
    let who = |h: &LeaseHolder| {
        let job = h.job.clone().unwrap_or_else(|| "-".into());
        [utc(h.since), h.host.clone(), h.process.number().to_string(), job]
    };
    let rows: Vec<[String; 5]> = at_work
        .map(|(name, holder)| {
            let [since, host, process, job] = who(&holder);
            [name, since, host, process, job]
        })
        .collect();
    if !rows.is_empty() {
        say!("\nAt work:\n{}", table::table(5, ["run", "since", "host", "process", "job"], rows))?;
    }
    let mut rows = Vec::new();
    for failed in failed {
        if let (name, Some(RunFailure { why, log, holder })) = failed? {
            let [_, host, _, job] = who(&holder);
            rows.push([name, host, job, log.display().to_string(), why]);
        }
    }
    if !rows.is_empty() {
        say!("\nFailed:\n{}", table::table(5, ["run", "host", "job", "log", "why"], rows))?;
    }
    Ok(())
}

/// `--dry-run`: the runs that would be made, in order.
pub fn dry_run(
    plans: &TablePlans,
    folders: &Folders,
    results: &ResultsFolder,
    pace: &Pace,
    jobs: &[Job],
) -> Result<()> {
    let mut total = 0.0;
    for job in jobs {
        let remaining = folders.remaining(job, &results.records)?;
        let left = pace.left(plans, &job.experiment, remaining);
        total += left;
        let what = match remaining {
            Remaining::Done => continue,
            Remaining::Evaluate => "evaluate",
            Remaining::Resume => "resume  ",
            Remaining::Train => "train   ",
        };
        say!("{what}  {:>8}  {}", clock(left), job.name)?;
    }
    say!("{} in all, {}", clock(pace.together(total)), pace.describe())
}

/// Prints a table: in each cell our number stands above the paper's.
pub fn print(view: &TableView) -> Result<()> {
    let (common, _) = view.common_keys();
    let recipe = format!("recipe {}", view.recipe);
    let common = common.into_iter().map(|(_, word)| word);
    let title: Vec<&str> = std::iter::once(view.table).chain(common).chain([recipe.as_str()]).collect();
    let done = view.rows.iter().filter(|row| !row.seeds.is_empty()).count();
    let printed = view.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.paper.is_some());
    let order = if printed { "; ours above, the paper's below" } else { "" };
    say!("{}: {done} of {} rows{order}", title.join(" · "), view.rows.len())?;
    let mut grid = view.side_by_side().grid(|cell| Some(cell_text(cell)));
    // A heading of several words has two lines.
    let headings = grid.header.iter().map(|heading| heading.replacen(' ', "\n", 1));
    grid.header = std::iter::once(String::new()).chain(headings).collect();
    for (line, row) in grid.rows.iter_mut().zip(&view.rows) {
        line.insert(0, row.number.to_string());
    }
    say!("{}", table::grid(&Grid { words: 1 + grid.words, ..grid }))?;
    let seeds = view.rows.iter().map(|row| row.seeds.len()).max().unwrap_or(0);
    if seeds > 1 {
        say!("The mean of up to {seeds} seeds, with their range.")?;
    }
    for note in &view.notes {
        say!("{note}")?;
    }
    let lower = view.lower();
    if !lower.is_empty() {
        say!("▼ lower than the paper's:")?;
    }
    lower.iter().try_for_each(|sentence| say!("  {sentence}"))
}

/// A cell, line by line: our number, with its interval in columns of full proofs; the paper's number; our validation score when
/// training had seen as many examples as the paper's.
fn cell_text(cell: &Cell) -> String {
    let mark = if cell.is_lower() { "▼" } else { "" };
    let mut text = cell.ours_text(CountFormat::Millions).map_or("—".into(), |ours| format!("{mark}{ours}"));
    if let Some(range) = cell.interval.filter(|_| cell.column.is_headline()) {
        text += &format!(" ({})", interval(range));
    }
    text += &cell.paper_text(CountFormat::Millions).map_or(String::new(), |paper| format!("\n{paper}"));
    text + &cell.at_paper_examples.map_or(String::new(), |milestone| format!("\n{}", milestone.text()))
}

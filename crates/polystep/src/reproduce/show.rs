//! What `reproduce` prints: the list of tables, the runs it would make, and the tables themselves.

use polystep_study::columns::Unit;
use polystep_study::tables::{Kind, Recipe, Row, Table, View, ViewCell, number, words};

use super::job::{Folders, Job, Remaining};
use super::pace::{Pace, clock};
use super::results_folder::ResultsFolder;
use super::sizes;
use super::table_plan::TablePlans;
use crate::failure::Result;
use crate::say;
use crate::table::grid;

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
    let mut lines = Vec::new();
    let is_meant = |table: &Table| names.is_empty() || names.iter().any(|name| name == table.name);
    for (table, plan) in plans.iter().filter(|(table, _)| is_meant(table)) {
        let rows: Vec<&Row> = table.rows.iter().collect();
        let (done, needed, left) = if table.kind() == Kind::Sizes {
            let done = sizes::done(results, table, &rows)?;
            let seconds = plan.cost.map_or(0.0, |cost| cost.seconds_per_run);
            (done, rows.len(), seconds * (rows.len() - done) as f64)
        } else {
            let jobs = super::jobs(plans, &[(table, rows.clone())], recipe, seeds);
            let (mut done, mut left) = (0, 0.0);
            for job in &jobs {
                let state = folders.state(job, &results.records)?;
                done += usize::from(state == Remaining::Done);
                left += pace.left(plans, &job.experiment, state);
            }
            (done, jobs.len(), pace.together(left))
        };
        let (view, headline, unit) = match table.kind() {
            Kind::Sizes => (sizes::view(results, table, &rows)?, "equation_size_estimate", Unit::Count),
            _ => (View::of(table, &rows, recipe, seeds, &results.records), "full_proof_acc", Unit::Percent),
        };
        let range = |[lo, hi]: [f64; 2]| format!("{} to {}", number(lo, unit), number(hi, unit));
        lines.push(vec![
            table.name.to_owned(),
            rows.len().to_string(),
            format!("{done} of {needed}"),
            clock(left),
            range(plan.expected.paper),
            view.range(headline).map_or(String::new(), range),
            results.path(table, recipe).display().to_string(),
        ]);
    }
    let header = ["table", "rows", "runs done", "left", "paper", "ours", "ledger"].map(str::to_owned);
    say!("{}", grid(1, header.into(), lines))?;
    say!(
        "Recipe {recipe}; full proofs in percent, lowest to highest. Tables share runs: the time left of each is counted"
    )?;
    say!("as if it were made alone, {}.", pace.describe())
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
        let state = folders.state(job, &results.records)?;
        let left = pace.left(plans, &job.experiment, state);
        total += left;
        let what = match state {
            Remaining::Done => continue,
            Remaining::Evaluate => "evaluate",
            Remaining::Resume => "resume  ",
            Remaining::Train => "train   ",
        };
        say!("{what}  {:>8}  {}", clock(left), job.name)?;
    }
    say!("{} in all, {}", clock(pace.together(total)), pace.describe())
}

/// A table on a terminal: ours above the paper's.
pub fn print(view: &View) -> Result<()> {
    let (common, names) = view.common_keys();
    let recipe = format!("recipe {}", view.recipe);
    let common = common.into_iter().map(|(_, word)| word);
    let title: Vec<&str> = std::iter::once(view.table).chain(common).chain([recipe.as_str()]).collect();
    let done = view.rows.iter().filter(|row| !row.seeds.is_empty()).count();
    say!("{}: {done} of {} rows; ours above, the paper's below", title.join(" · "), view.rows.len())?;
    let columns = view.columns.iter().map(|column| heading(&words(*column)));
    let header: Vec<String> =
        std::iter::once(String::new()).chain(names.iter().map(|n| (*n).into())).chain(columns).collect();
    let rows = view.rows.iter().map(|row| {
        let mut line = vec![row.number.to_string()];
        line.extend(names.iter().map(|name| row.key(name).to_owned()));
        line.extend(view.columns.iter().zip(&row.cells).map(|(column, cell)| {
            let headline = matches!(column.name, "full_proof_acc" | "endpoint_acc");
            let way = cell.on_the_way.map_or(String::new(), |way| format!("\n{way}"));
            format!("{}\n{}{way}", ours(cell, column.unit, headline), cell.paper_text(column.unit))
        }));
        line
    });
    say!("{}", grid(1 + names.len(), header, rows))?;
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
    for sentence in lower {
        say!("  {sentence}")?;
    }
    Ok(())
}

/// A heading in two lines where it has two words.
fn heading(words: &str) -> String {
    words.replacen(' ', "\n", 1)
}

fn ours(cell: &ViewCell, unit: Unit, interval: bool) -> String {
    let Some(value) = cell.ours else { return "—".into() };
    let mark = if cell.lower { "▼" } else { "" };
    match cell.interval.filter(|_| interval) {
        Some((lo, hi)) => format!("{mark}{} ({lo:.1}–{hi:.1})", number(value, unit)),
        None => format!("{mark}{}", number(value, unit)),
    }
}

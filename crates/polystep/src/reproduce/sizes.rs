//! The table of the sizes of spaces (`colide`). Nothing is trained for it: each row is one estimate. There are no run records
//! either, so the table's ledger is the only place that keeps the estimates.

use std::time::Instant;

use polystep_core::Space;
use polystep_core::collision::estimate;
use polystep_record::paper::KeyColumn;
use polystep_study::ledger::Ledger;
use polystep_study::tables::{Kind, PaperRow, PaperTable, Recipe, TableView};

use super::results_folder::ResultsFolder;
use super::selection::Selection;
use super::table_plan::TablePlans;
use crate::args::ThreadArgs;
use crate::failure::Result;
use crate::interrupt;
use crate::output::note;
use crate::table::counted;

/// The seed of both draws.
const SEED: u64 = 1;

/// How many of the rows are in the ledger.
pub fn done(results: &ResultsFolder, table: &PaperTable, rows: &[&PaperRow]) -> Result<usize> {
    let ledger = results.ledger(table, Recipe::Fast)?;
    Ok(rows.iter().filter(|row| ledger.as_ref().is_some_and(|l| l.line_of(row).is_some())).count())
}

/// Estimates the rows of the selection that the ledgers of sizes lack, and writes the ledger after each row. Begins no row after
/// the deadline.
pub fn make_missing(
    selection: &Selection,
    plans: &TablePlans,
    results: &ResultsFolder,
    threads: &ThreadArgs,
    deadline: Option<Instant>,
) -> Result<()> {
    for (table, rows) in selection.tables.iter().filter(|(table, _)| table.kind() == Kind::Sizes) {
        threads.start()?;
        let draws = plans.named(table.name)?.1.draws()?;
        let read =
            || -> Result<Ledger> { Ok(results.ledger(table, Recipe::Fast)?.unwrap_or_else(|| Ledger::empty(table))) };
        for row in rows {
            interrupt::check()?;
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let ledger = read()?;
            if late || ledger.line_of(row).is_some() {
                continue;
            }
            let claim = results.claim_row(table, row.number)?;
            // Another process may have just written it.
            if claim.is_none() || read()?.line_of(row).is_some() {
                continue;
            }
            let [config, vars] = [KeyColumn::Config, KeyColumn::Vars].map(|key| row.key(key).unwrap_or_default());
            let space = Space::named(config)?;
            let vars: usize = vars.parse().unwrap_or(1);
            let began = Instant::now();
            let size = estimate(&space, vars, SEED, draws, &|_| {})?;
            let number = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.0}"));
            let fields = ledger.header.iter().map(|name| match name.as_str() {
                "equation_size_estimate" => number(size.equations.estimate()),
                "endpoint_size_estimate" => number(size.endpoints.estimate()),
                "draws" => draws.to_string(),
                "seed" => SEED.to_string(),
                "seconds" => format!("{:.0}", began.elapsed().as_secs_f64()),
                "device" => format!("CPU, {} threads", threads.count()),
                "commit" => polystep_learn::COMMIT.to_owned(),
                key => row.text(key).unwrap_or_default().to_owned(),
            });
            let fields = fields.collect();
            let _held = results.hold()?;
            let mut ledger = read()?;
            ledger.lines.push(fields);
            let place = |l: &Vec<String>| {
                let keys = table.keys().count();
                table.rows.iter().position(|row| row.keys().map(|(_, v)| v).eq(l[..keys].iter().map(String::as_str)))
            };
            ledger.lines.sort_by_key(place);
            results.write(table, Recipe::Fast, &ledger)?;
            let variables = counted(vars, "variable");
            note(format_args!("{}: {config}, {variables}, in {:.0} s", table.name, began.elapsed().as_secs_f64()));
        }
    }
    Ok(())
}

/// The table, ready to be shown.
pub fn view(results: &ResultsFolder, table: &PaperTable, rows: &[&PaperRow]) -> Result<TableView> {
    let ledger = results.ledger(table, Recipe::Fast)?;
    Ok(TableView::of_sizes(table, rows, ledger.as_ref()))
}

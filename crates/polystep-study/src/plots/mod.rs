//! Which charts there are: those of a run, and those of the paper's tables as SVG files, each under a table's or a run's name.
//!
//! They show what logs, ledgers and records hold and compute nothing of their own. What was not measured is not drawn, and a
//! table of which nothing was measured has no figure. Tables of errors have none, because their accuracies are in other tables.

pub(crate) mod curriculum;
mod curves;
mod dots;
mod heat;
pub(crate) mod run;

use std::collections::BTreeSet;

use polystep_core::arithmetic::Drill;

use crate::chart::Chart;
use crate::columns::{COLUMNS, Quantity};
use crate::records::RunRecords;
use crate::side_by_side::Cell;
use crate::tables::{Kind, PaperTable, RAW, TableView, ViewRow};
use curriculum::Curriculum;
use curves::{CurveOfRun, PaperPoint};
use dots::DotRow;
use heat::HeatMap;
use polystep_record::paper::{KeyColumn, lookup};

/// A figure and the name of its file, without the ending.
pub type Figure = (String, Chart);

/// The figures of tables. Tables share runs: curves that an earlier table shows already are not drawn again.
pub fn of_tables<'a>(
    tables: impl IntoIterator<Item = (&'a PaperTable, &'a TableView)>,
    seeds: u64,
    records: &RunRecords,
) -> Vec<Figure> {
    let mut drawn = BTreeSet::new();
    tables.into_iter().flat_map(|(table, view)| of_table(table, view, seeds, records, &mut drawn)).collect()
}

/// The figures of a table: its numbers, the learning curves of its runs over the first seeds, and how its curricula went.
fn of_table(
    table: &PaperTable,
    view: &TableView,
    seeds: u64,
    records: &RunRecords,
    drawn: &mut BTreeSet<String>,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    match table.kind() {
        Kind::Sizes => {}
        Kind::Ood => figures.extend(matrix(view).map(|chart| (table.name.to_owned(), chart))),
        Kind::Accuracy if !table.header.contains(&"train_examples") => {}
        Kind::Accuracy => {
            figures.extend(numbers(view).map(|chart| (table.name.to_owned(), chart)));
            for (endpoint, name) in [(false, "curves"), (true, "endpoint-curves")] {
                let runs = curves::runs(table, view, seeds, endpoint, records);
                if runs.iter().all(|run| drawn.contains(&run.name)) {
                    continue;
                }
                let what = if endpoint { "one-shot models" } else { "step-wise models" };
                let title = format!("How {what} learn");
                let chart = curves::chart(title, &in_table(view, common(view, endpoint)), &runs);
                figures.extend(chart.map(|chart| (format!("{}-{name}", table.name), chart)));
                figures.extend(runs.iter().flat_map(curricula));
                drawn.extend(runs.into_iter().map(|run| run.name));
            }
        }
    }
    figures
}

/// The four kinds of exercises of the arithmetic probe, one run for each.
pub fn arithmetic(records: &RunRecords) -> Option<Figure> {
    let run = |drill: Drill| {
        let name = format!("arithmetic-{}", drill.name());
        let record = records.get(&name)?;
        let column = COLUMNS.into_iter().find(|c| c.quantity == Quantity::Exercises(drill))?;
        let printed = lookup(&record.metrics.keys);
        let value = |column: &str| printed.iter().find(|p| p.column == column);
        let paper = value("train_examples")
            .zip(value(column.name))
            .map(|(examples, right)| PaperPoint { at: (examples.value, right.value), text: right.text });
        Some(CurveOfRun { name, seed: 1, words: vec![(KeyColumn::Config, column.heading.to_owned())], record, paper })
    };
    let runs: Vec<CurveOfRun> = Drill::ALL.into_iter().filter_map(run).collect();
    let title = "How sums and products are learned".to_owned();
    Some(("arithmetic".to_owned(), curves::chart(title, "A model for each kind of exercise", &runs)?))
}

/// What the models of all rows, step-wise or one-shot, have in common, and the recipe.
fn common(view: &TableView, endpoint: bool) -> String {
    let recipe = format!("recipe {}", view.recipe);
    let (words, _) = view.common_keys();
    let words = words.into_iter().filter(|(key, _)| curves::belongs(*key, endpoint)).map(|(_, word)| word);
    words.chain([recipe.as_str()]).collect::<Vec<_>>().join(" · ")
}

/// What the models have in common, and the table of the paper that they are of.
fn in_table(view: &TableView, common: String) -> String {
    format!("Table {}, {common}", view.table)
}

fn full_proof(row: &ViewRow) -> Option<&Cell> {
    row.cells.iter().find(|cell| cell.column.quantity == Quantity::FullProof)
}

/// Full proofs, ours against the paper's, of the rows that were measured.
fn numbers(view: &TableView) -> Option<Chart> {
    let (_, names) = view.common_keys();
    let dot_row = |row: &ViewRow| {
        let cell = full_proof(row)?;
        let paper = cell.paper.as_ref()?.value;
        let words: Vec<&str> = names.iter().map(|name| row.key(*name)).filter(|word| !word.is_empty()).collect();
        let validated = cell.at_paper_examples.map(|milestone| milestone.full_proof);
        let (group, label) = (words.first().copied().unwrap_or_default(), words.join(" "));
        Some(DotRow { group, label, ours: cell.ours?, interval: cell.interval, paper, validated })
    };
    let rows: Vec<DotRow> = view.rows.iter().filter_map(dot_row).collect();
    let measured = format!("{} of {} rows measured", rows.len(), view.rows.len());
    let interval = match view.rows.iter().any(|row| row.seeds.len() > 1) {
        true => "the range of its seeds",
        false => "its 95 % interval",
    };
    let what = "full proofs that are right, in percent, ours / the paper's";
    let raw = if view.notes.iter().any(|note| note == RAW) { format!(" {RAW}") } else { String::new() };
    let place = in_table(view, common(view, false));
    let words = format!("{place}: {what}; ours with {interval}. {measured}.{raw}");
    (!rows.is_empty()).then(|| dots::chart("Full proofs, ours and the paper's", words, "full proofs, %", &rows))
}

/// Full proofs by where a model was trained and where it was tested.
fn matrix(view: &TableView) -> Option<Chart> {
    let keys = |row: &ViewRow| {
        [KeyColumn::TrainConfig, KeyColumn::TrainVars, KeyColumn::TestConfig, KeyColumn::TestVars]
            .map(|key| row.key(key))
    };
    let elsewhere = view.rows.iter().map(keys).any(|[trained, _, tested, _]| trained != tested);
    let place = |row: &ViewRow| match (row.key(KeyColumn::Run), keys(row)) {
        ("", [trained, _, tested, _]) if elsewhere => (trained.to_owned(), tested.to_owned()),
        ("", [trained, vars, _, test_vars]) => (trained.to_owned(), format!("{vars} → {test_vars}")),
        // Runs of one's own table have names.
        (run, [.., tested, test_vars]) => (run.to_owned(), format!("{tested}:{test_vars}")),
    };
    let (mut rows, mut columns): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (row, column) in view.rows.iter().map(place) {
        for (labels, label) in [(&mut rows, row), (&mut columns, column)] {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    let grid = |value: &dyn Fn(&ViewRow) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
        let at = |r: &String, c: &String| value(view.rows.iter().find(|row| place(row) == (r.clone(), c.clone()))?);
        rows.iter().map(|r| columns.iter().map(|c| at(r, c)).collect()).collect()
    };
    let ours = grid(&|row| full_proof(row)?.ours);
    let paper = grid(&|row| Some(full_proof(row)?.paper.as_ref()?.value));
    let across = if elsewhere { "columns: tested" } else { "columns: variables in training → in the test" };
    let what = format!("full proofs that are right, in percent. Rows: trained; {across}.");
    let words = format!("{}: {what}", in_table(view, common(view, false)));
    let measured = ours.iter().flatten().any(Option::is_some);
    let title = if elsewhere { "Tested on other spaces" } else { "Tested with another number of variables" };
    measured.then(|| heat::chart(title, words, &HeatMap { rows, columns, paper, ours }))
}

/// How the tasks of a run's curriculum were learned, and what it was trained on.
fn curricula(run: &CurveOfRun) -> Vec<Figure> {
    let Some(Curriculum { charts: [exams, shares, _], .. }) = Curriculum::of(&run.record.log) else {
        return Vec::new();
    };
    let named = |chart: Chart, name: &str| {
        let description = format!("Run {}. {}", run.name, chart.description);
        (format!("{}-{name}", run.name), Chart { description, ..chart })
    };
    vec![named(exams, "exams"), named(shares, "shares")]
}

//! The ledger, `results/TABLE.csv`: our numbers under the paper's keys and column names, one line per row and seed.
//!
//! A line is a function of the records alone, so a ledger can always be made again from them. An existing file is still read
//! first. If it is damaged, or if another tool wrote it, the command names it and leaves it as it is.

use std::collections::BTreeSet;
use std::path::Path;

use crate::columns::{Column, Quantity, Unit};
use crate::csv;
use crate::metrics::{Evaluation, Metrics};
use crate::number::{CountFormat, number};
use crate::records::{RunRecord, RunRecords};
use crate::side_by_side::Cell;
use crate::tables::{Kind, Need, PaperRow, PaperTable, Recipe, size_of_config};
use polystep_record::RecordError;
use polystep_record::folder::read_text;
use polystep_record::paper::KeyColumn;

/// A row of a table with our numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct FilledRow<'a> {
    /// The paper's row.
    pub row: &'a PaperRow,
    /// The recipe of our models.
    pub recipe: Recipe,
    /// The seed of our models.
    pub seed: u64,
    /// Our numbers beside the paper's, in the table's order.
    pub cells: Vec<Cell>,
    record: &'a RunRecord,
    evaluation: Option<&'a Evaluation>,
}

impl<'a> FilledRow<'a> {
    /// Fills a row from the records; `None` if its main model is missing. A missing one-shot model leaves its columns empty.
    pub fn of(
        table: &PaperTable,
        row: &'a PaperRow,
        recipe: Recipe,
        seed: u64,
        records: &'a RunRecords,
    ) -> Option<FilledRow<'a>> {
        let needs = row.needs(recipe, seed);
        let find = |need: &Need| {
            let record = records.get(&need.experiment.name())?;
            Some((record, record.evaluation(&need.set)))
        };
        let main = needs.iter().find(|n| !n.endpoint)?;
        let (record, evaluation) = find(main)?;
        // Training has tested the model on its own space. So much is known of a model that was never evaluated.
        let at_home = (&main.set.config, main.set.vars) == (&main.experiment.keys.config, main.experiment.keys.vars);
        if evaluation.is_none() && !at_home {
            return None;
        }
        let endpoint = needs.iter().find(|n| n.endpoint).and_then(find);
        let cell = |column: Column| {
            let source = if column.is_one_shot() { endpoint } else { Some((record, evaluation)) };
            let ours = source.map(|(record, evaluation)| match evaluation {
                Some(evaluation) => Cell::measured(column, &record.metrics, evaluation),
                None => tested(column, &record.metrics),
            });
            let count = examples_column(column).and_then(|count| row.value(count));
            Cell {
                paper: row.printed(table, column),
                at_paper_examples: source.zip(count).and_then(|((record, _), count)| record.at(count)),
                ..ours.unwrap_or_else(|| Cell::printed(column, None))
            }
        };
        let cells = table.columns().map(cell).collect();
        Some(FilledRow { row, recipe, seed, cells, record, evaluation })
    }
}

/// The column with the paper's count of examples, for a column of full proofs.
fn examples_column(column: Column) -> Option<&'static str> {
    match column.quantity {
        Quantity::FullProof => Some("train_examples"),
        Quantity::EndpointAccuracy => Some("endpoint_train_examples"),
        _ => None,
    }
}

/// What training's own test says in a column. Where every earlier token is right, teacher forcing and greedy decoding agree.
fn tested(column: Column, metrics: &Metrics) -> Cell {
    let cell = Cell::printed(column, None);
    let share = match column.quantity {
        Quantity::Examples | Quantity::EndpointExamples => {
            return Cell { ours: metrics.run.examples.map(|n| n as f64), ..cell };
        }
        Quantity::FullProof | Quantity::EndpointAccuracy => metrics.test().map(|test| test.full_proof),
        Quantity::Stepwise => metrics.test().map(|test| test.stepwise),
        _ => None,
    };
    Cell { ours: share.map(|p| p.percent), interval: share.map(|p| (p.lo, p.hi)), of: share.map(|p| p.of), ..cell }
}

/// Hyper-parameters that a table may list, and where a configuration has them.
const HYPER: [(&str, &str, &str); 3] =
    [("emb", "model", "d"), ("dropout", "model", "dropout"), ("batch", "train", "batch")];

/// Percent of validation proofs: after how many examples a run first had as many right.
const MILESTONES: [u32; 3] = [90, 95, 99];

/// A field of a line, under the name of its column.
struct Field {
    name: String,
    /// Whether its column holds words. The other columns hold numbers or nothing.
    words: bool,
    /// Empty if it was not measured.
    text: String,
}

fn words(name: &str, text: Option<String>) -> Field {
    Field { name: name.to_owned(), words: true, text: text.unwrap_or_default() }
}

fn numbers(name: &str, text: Option<String>) -> Field {
    Field { words: false, ..words(name, text) }
}

fn percents(name: &str, value: Option<f64>) -> Field {
    numbers(name, value.map(|v| number(v, Unit::Percent, CountFormat::Full)))
}

/// The line of a filled row, in the order of the columns. Without a row all its texts are empty.
fn line(table: &PaperTable, filled: Option<&FilledRow<'_>>) -> Vec<Field> {
    let has = |name: &str| table.header.contains(&name);
    let record = filled.map(|filled| filled.record);
    let run = record.map(|record| &record.metrics.run);
    let mut all = Vec::new();
    for key in table.keys() {
        let text = filled.and_then(|filled| filled.row.key(key)).map(str::to_owned);
        let count = matches!(key, KeyColumn::Vars | KeyColumn::TrainVars | KeyColumn::TestVars);
        all.push(Field { words: !count, ..words(key.name(), text) });
    }
    if table.kind() == Kind::Sizes {
        // The estimates of sizes are made elsewhere. Their ledger is their only record.
        all.extend(table.columns().map(|column| column.name).chain(["draws"]).map(|name| numbers(name, None)));
    } else {
        let config = record.map(|record| &record.config);
        all.push(words("recipe", filled.map(|filled| filled.recipe.to_string())));
        all.push(words("size", config.map(size_of_config)));
        for (name, part, key) in HYPER.into_iter().filter(|(name, ..)| has(name)) {
            all.push(numbers(name, config.and_then(|config| Some(config.get(part)?.get(key)?.to_string()))));
        }
        let cell = |i: usize| filled.map(|filled| &filled.cells[i]);
        for (i, column) in table.columns().enumerate() {
            let (cell, name) = (cell(i), column.name);
            let (lo, hi) = cell.and_then(|cell| cell.interval).unzip();
            all.push(match column.unit {
                Unit::Count => numbers(name, cell.and_then(|cell| cell.ours_text(CountFormat::Full))),
                _ => percents(name, cell.and_then(|cell| cell.ours)),
            });
            if column.has_symbolic() {
                all.push(percents(&format!("{name}_symbolic"), cell.and_then(|cell| cell.symbolic)));
            }
            if column.has_interval() {
                all.extend([percents(&format!("{name}_lo"), lo), percents(&format!("{name}_hi"), hi)]);
            }
        }
        let evaluation = filled.and_then(|filled| filled.evaluation);
        let recursive = evaluation.and_then(|e| Some(e.recursive.as_ref()?.recursive_exact.percent));
        all.push(percents("recursive_exact", recursive));
        all.push(percents("recursive_recovered", evaluation.and_then(|e| e.recursive.as_ref()?.recovered())));
        all.push(percents("malformed", evaluation.and_then(|e| Some(e.greedy.as_ref()?.malformed.percent))));
        if !has("train_examples") {
            all.push(numbers("train_examples", run.and_then(|run| Some(run.examples?.to_string()))));
        }
        let full_proofs = [
            (Quantity::FullProof, "valid_at_paper_examples"),
            (Quantity::EndpointAccuracy, "endpoint_valid_at_paper_examples"),
        ];
        for (quantity, name) in full_proofs {
            let found = table.columns().enumerate().find(|(_, column)| column.quantity == quantity);
            if let Some((i, _)) = found.filter(|(_, column)| examples_column(*column).is_some_and(has)) {
                all.push(percents(name, cell(i).and_then(|cell| Some(cell.at_paper_examples?.full_proof))));
            }
        }
    }
    if table.kind() != Kind::Sizes {
        for percent in MILESTONES {
            let reached = record.and_then(|record| record.examples_until(percent));
            all.push(numbers(&format!("examples_to_{percent}"), reached.map(|n| n.to_string())));
        }
        let ratio = record.and_then(RunRecord::space_per_polynomial);
        all.push(numbers("space_per_polynomial", ratio.map(|ratio| format!("{ratio:.1}"))));
    }
    all.push(numbers("seed", filled.map(|filled| filled.seed.to_string())));
    all.push(numbers("seconds", run.and_then(|run| Some(format!("{:.0}", run.seconds?)))));
    all.push(words("device", run.and_then(|run| run.device.clone())));
    all.push(words("commit", run.and_then(|run| run.commit.clone())));
    all
}

/// A ledger: lines under a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    /// Names of the columns.
    pub header: Vec<String>,
    /// The lines, each as long as the header.
    pub lines: Vec<Vec<String>>,
}

impl Ledger {
    /// The line of a row of sizes, if it has one: the fields under their names.
    pub fn line_of<'a>(&'a self, row: &PaperRow) -> Option<impl Fn(&str) -> Option<&'a str>> {
        let place = |name: &str| self.header.iter().position(|h| h == name);
        let has = |line: &[String], key: KeyColumn, value| {
            place(key.name()).and_then(|at| line.get(at)).is_some_and(|text| text == value)
        };
        let line = self.lines.iter().find(|line| row.keys().all(|(key, value)| has(line, key, value)))?;
        Some(move |name: &str| line.get(place(name)?).map(String::as_str))
    }

    /// An empty ledger of a table.
    pub fn empty(table: &PaperTable) -> Ledger {
        Ledger { header: line(table, None).into_iter().map(|field| field.name).collect(), lines: Vec::new() }
    }

    /// The ledger of a table that the records give: rows in the paper's order, then by seed.
    pub fn of(table: &PaperTable, recipe: Recipe, records: &RunRecords) -> Ledger {
        let rows = table.rows.iter().flat_map(|row| seeds(row, recipe, records).into_iter().map(move |s| (row, s)));
        let filled = rows.filter_map(|(row, seed)| FilledRow::of(table, row, recipe, seed, records));
        let lines = filled.map(|filled| line(table, Some(&filled)).into_iter().map(|field| field.text).collect());
        Ledger { lines: lines.collect(), ..Ledger::empty(table) }
    }

    /// Reads the ledger of a table; `None` if there is no such file.
    pub fn read(path: &Path, table: &PaperTable) -> Result<Option<Ledger>, RecordError> {
        let Some(text) = read_text(path)? else { return Ok(None) };
        let wrong = |line: usize, why: String| {
            let why = format!("{why}; repair it, or remove the file to have it made anew");
            RecordError::Line { path: path.to_path_buf(), line, why }
        };
        let (mut ledger, columns) = (Ledger::empty(table), line(table, None));
        let mut lines = csv::read(&text).into_iter();
        if lines.next().is_none_or(|(_, names)| names.as_ref() != Some(&ledger.header)) {
            return Err(wrong(1, format!("this is not the header of a {} ledger", table.name)));
        }
        for (at, line) in lines {
            let line = line.ok_or_else(|| wrong(at, "a quotation mark is not closed".into()))?;
            if line.len() != columns.len() {
                return Err(wrong(at, format!("{} fields where the header has {}", line.len(), columns.len())));
            }
            for (column, text) in columns.iter().zip(&line) {
                if !column.words && !text.is_empty() && text.parse::<f64>().is_err() {
                    return Err(wrong(at, format!("{} is `{text}`, which is no number", column.name)));
                }
            }
            let keys = &line[..table.keys().count()];
            if !table.rows.iter().any(|row| row.keys().map(|(_, text)| text).eq(keys.iter().map(String::as_str))) {
                return Err(wrong(at, format!("{} has no row {}", table.name, keys.join(","))));
            }
            ledger.lines.push(line);
        }
        Ok(Some(ledger))
    }

    /// The whole file.
    pub fn text(&self) -> String {
        csv::write(std::iter::once(&self.header).chain(&self.lines))
    }

    /// Which of its lines, numbered as in the file, another ledger has no line for.
    pub fn unknown_to(&self, other: &Ledger) -> Vec<usize> {
        let key = |ledger: &Ledger, line: &[String]| -> Vec<String> {
            let wanted = |name: &str| name == "seed" || KeyColumn::named(name).is_some();
            ledger.header.iter().zip(line).filter(|(name, _)| wanted(name)).map(|(_, text)| text.clone()).collect()
        };
        let known: BTreeSet<_> = other.lines.iter().map(|line| key(other, line)).collect();
        let lines = self.lines.iter().enumerate();
        lines.filter(|(_, line)| !known.contains(&key(self, line))).map(|(i, _)| i + 2).collect()
    }
}

/// The seeds from which a row's main model has a record, ascending.
pub fn seeds(row: &PaperRow, recipe: Recipe, records: &RunRecords) -> Vec<u64> {
    let Some(main) = row.needs(recipe, 1).into_iter().find(|n| !n.endpoint) else { return Vec::new() };
    let first = main.experiment.name();
    let seed = |name: &str| match name.strip_prefix(&first)? {
        "" => Some(1),
        rest => rest.strip_prefix("-seed")?.parse().ok(),
    };
    let mut seeds: Vec<u64> = records.iter().filter_map(|(name, _)| seed(name)).collect();
    seeds.sort_unstable();
    seeds
}

//! The ledger, `results/TABLE.csv`: our numbers under the paper's keys and column names, one line per row and seed.
//!
//! A line is a function of the records alone, so a ledger can always be made again from them. An existing file is still read
//! first. If it is damaged, or if another tool wrote it, the command names it and leaves it as it is.

use std::fs;
use std::io;
use std::path::Path;

use crate::columns::{Column, Unit, has_interval, has_symbolic, value};
use crate::csv;
use crate::metrics::{Evaluation, Metrics};
use crate::number::{Counts, number};
use crate::records::{Record, Records};
use crate::side_by_side::Cell;
use crate::tables::{Kind, Need, Recipe, Row, Table, size_of_config};
use polystep_record::paper::KEYS;
use polystep_record::{Proportion, RecordError};

/// A row of a table with our numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct FilledRow<'a> {
    /// The paper's row.
    pub row: &'a Row,
    /// The recipe of our models.
    pub recipe: Recipe,
    /// The seed of our models.
    pub seed: u64,
    /// Our numbers beside the paper's, in the table's order.
    pub cells: Vec<Cell>,
    record: &'a Record,
    evaluation: Option<&'a Evaluation>,
}

impl<'a> FilledRow<'a> {
    /// Fills a row from the records; `None` if its main model is missing. A missing one-shot model leaves its columns empty.
    pub fn of(table: &Table, row: &'a Row, recipe: Recipe, seed: u64, records: &'a Records) -> Option<FilledRow<'a>> {
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
            let source = if column.name.starts_with("endpoint_") { endpoint } else { Some((record, evaluation)) };
            let (ours, symbolic) = match source {
                Some((record, Some(evaluation))) => value(&record.metrics, evaluation, column.name),
                Some((record, None)) => (tested(&record.metrics, column.name), None),
                None => (None, None),
            };
            let count = at_paper_examples(column.name).and_then(|(count, _)| row.value(count));
            Cell {
                ours: ours.map(|v| v.0),
                interval: ours.and_then(|v| v.1),
                symbolic,
                at_paper_examples: source.zip(count).and_then(|((record, _), count)| record.at(count)),
                ..row.cell(table, column)
            }
        };
        let cells = table.columns().map(cell).collect();
        Some(FilledRow { row, recipe, seed, cells, record, evaluation })
    }
}

/// For a column of full proofs: the column with the paper's count of examples, and the ledger's column of our validation at that
/// count.
fn at_paper_examples(column: &str) -> Option<(&'static str, &'static str)> {
    match column {
        "full_proof_acc" => Some(("train_examples", "valid_at_paper_examples")),
        "endpoint_acc" => Some(("endpoint_train_examples", "endpoint_valid_at_paper_examples")),
        _ => None,
    }
}

/// What training's own test says in a column. Where every earlier token is right, teacher forcing and greedy decoding agree.
fn tested(metrics: &Metrics, column: &str) -> Option<(f64, Option<(f64, f64)>)> {
    let part = match column {
        "train_examples" | "endpoint_train_examples" => return Some((metrics.run.examples? as f64, None)),
        "full_proof_acc" | "endpoint_acc" => "full_proof",
        "stepwise_acc" => "stepwise",
        _ => return None,
    };
    let share = metrics.other.get("test")?.get(part)?;
    let p = Proportion::new(share.get("right")?.as_u64()?, share.get("total")?.as_u64()?)?;
    Some((p.percent, Some((p.lo, p.hi))))
}

/// A column of a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LedgerColumn {
    /// A key of the paper's table.
    Key(&'static str),
    /// The recipe of our model.
    Recipe,
    /// The size of our model.
    Size,
    /// A hyper-parameter: its name, and the table and key of a configuration.
    Hyper(&'static str, &'static str, &'static str),
    /// Our number in the paper's column at this place.
    Ours(usize, Column),
    /// The same by the symbolic test.
    Symbolic(usize, Column),
    /// The lower end of its interval.
    Low(usize, Column),
    /// The upper end of its interval.
    High(usize, Column),
    /// Recursive proofs that are exact.
    RecursiveExact,
    /// Outputs that cannot be read.
    Malformed,
    /// Training examples, where the paper's table does not have them.
    Examples,
    /// Our validation at the paper's count of examples, for the paper's column at this place.
    AtPaperExamples(usize, &'static str),
    /// Draws of an estimate of sizes.
    Draws,
    /// The seed.
    Seed,
    /// How long the work took.
    Seconds,
    /// Where it was done.
    Device,
    /// By which version.
    Commit,
}

use LedgerColumn::{
    AtPaperExamples, Commit, Device, Draws, Examples, High, Hyper, Key, Low, Malformed, Ours, RecursiveExact, Seconds,
    Seed, Size, Symbolic,
};

/// Hyper-parameters that a table may list, and where a configuration has them.
const HYPER: [LedgerColumn; 3] =
    [Hyper("emb", "model", "d"), Hyper("dropout", "model", "dropout"), Hyper("batch", "train", "batch")];

impl LedgerColumn {
    /// The columns of a table's ledger.
    pub fn of(table: &Table) -> Vec<LedgerColumn> {
        let numbers: Vec<Column> = table.columns().collect();
        let mut all: Vec<LedgerColumn> = table.keys().map(Key).collect();
        if table.kind() == Kind::Sizes {
            all.extend(numbers.into_iter().enumerate().map(|(i, column)| Ours(i, column)));
            all.push(Draws);
        } else {
            all.extend([LedgerColumn::Recipe, Size]);
            all.extend(HYPER.into_iter().filter(|hyper| table.header.contains(&hyper.name().as_str())));
            for (i, column) in numbers.iter().copied().enumerate() {
                all.push(Ours(i, column));
                all.extend(has_symbolic(column).then_some(Symbolic(i, column)));
                all.extend(has_interval(column).then_some([Low(i, column), High(i, column)]).into_iter().flatten());
            }
            all.extend([RecursiveExact, Malformed]);
            all.extend((!table.header.contains(&"train_examples")).then_some(Examples));
            for full_proofs in ["full_proof_acc", "endpoint_acc"] {
                let place = numbers.iter().position(|column| column.name == full_proofs);
                let names = at_paper_examples(full_proofs).filter(|(count, _)| table.header.contains(count));
                all.extend(place.zip(names).map(|(i, (_, name))| AtPaperExamples(i, name)));
            }
        }
        all.extend([Seed, Seconds, Device, Commit]);
        all
    }

    /// Its name in the header.
    pub fn name(self) -> String {
        match self {
            Key(name) | Hyper(name, ..) | AtPaperExamples(_, name) => name.to_owned(),
            Ours(_, column) => column.name.to_owned(),
            Symbolic(_, column) => format!("{}_symbolic", column.name),
            Low(_, column) => format!("{}_lo", column.name),
            High(_, column) => format!("{}_hi", column.name),
            LedgerColumn::Recipe => "recipe".to_owned(),
            Size => "size".to_owned(),
            RecursiveExact => "recursive_exact".to_owned(),
            Malformed => "malformed".to_owned(),
            Examples => "train_examples".to_owned(),
            Draws => "draws".to_owned(),
            Seed => "seed".to_owned(),
            Seconds => "seconds".to_owned(),
            Device => "device".to_owned(),
            Commit => "commit".to_owned(),
        }
    }

    /// Whether it holds words. The other columns hold numbers or nothing.
    fn holds_words(self) -> bool {
        matches!(self, Key(name) if !name.ends_with("vars"))
            || matches!(self, LedgerColumn::Recipe | Size | Device | Commit)
    }

    /// Its field in the line of a filled row.
    fn field(self, filled: &FilledRow<'_>) -> String {
        let run = &filled.record.metrics.run;
        let evaluation = filled.evaluation;
        let cell = |i: usize| &filled.cells[i];
        let percent = |value: Option<f64>| value.map(|v| number(v, Unit::Percent, Counts::Full));
        let field = match self {
            Key(name) => filled.row.text(name).map(str::to_owned),
            LedgerColumn::Recipe => Some(filled.recipe.to_string()),
            Size => Some(size_of_config(&filled.record.config)),
            Hyper(_, part, key) => filled.record.config.get(part).and_then(|t| t.get(key)).map(|v| v.to_string()),
            Ours(i, column) if column.unit == Unit::Count => cell(i).ours_text(Counts::Full),
            Ours(i, _) => percent(cell(i).ours),
            Symbolic(i, _) => percent(cell(i).symbolic),
            Low(i, _) => percent(cell(i).interval.map(|i| i.0)),
            High(i, _) => percent(cell(i).interval.map(|i| i.1)),
            RecursiveExact => percent(evaluation.and_then(|e| Some(e.recursive.as_ref()?.recursive_exact.percent))),
            Malformed => percent(evaluation.and_then(|e| Some(e.greedy.as_ref()?.malformed.percent))),
            Examples => run.examples.map(|n| n.to_string()),
            AtPaperExamples(i, _) => percent(cell(i).at_paper_examples.map(|milestone| milestone.full_proof)),
            Draws => None,
            Seed => Some(filled.seed.to_string()),
            Seconds => run.seconds.map(|s| format!("{s:.0}")),
            Device => run.device.clone(),
            Commit => run.commit.clone(),
        };
        field.unwrap_or_default()
    }
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
    /// An empty ledger of a table.
    pub fn empty(table: &Table) -> Ledger {
        Ledger { header: LedgerColumn::of(table).into_iter().map(LedgerColumn::name).collect(), lines: Vec::new() }
    }

    /// The ledger of a table that the records give: rows in the paper's order, then by seed.
    pub fn of(table: &Table, recipe: Recipe, records: &Records) -> Ledger {
        let columns = LedgerColumn::of(table);
        let rows = table.rows.iter().flat_map(|row| seeds(row, recipe, records).into_iter().map(move |s| (row, s)));
        let filled = rows.filter_map(|(row, seed)| FilledRow::of(table, row, recipe, seed, records));
        let lines = filled.map(|filled| columns.iter().map(|column| column.field(&filled)).collect()).collect();
        Ledger { lines, ..Ledger::empty(table) }
    }

    /// Reads the ledger of a table; `None` if there is no such file.
    pub fn read(path: &Path, table: &Table) -> Result<Option<Ledger>, RecordError> {
        let text = match fs::read_to_string(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(RecordError::file("read", path))?,
        };
        let wrong = |line: usize, why: String| {
            let why = format!("{why}; repair it, or remove the file to have it made anew");
            RecordError::Line { path: path.to_path_buf(), line, why }
        };
        let (mut ledger, columns) = (Ledger::empty(table), LedgerColumn::of(table));
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
                if !column.holds_words() && !text.is_empty() && text.parse::<f64>().is_err() {
                    return Err(wrong(at, format!("{} is `{text}`, which is no number", column.name())));
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
            let wanted = |name: &str| name == "seed" || KEYS.contains(&name);
            ledger.header.iter().zip(line).filter(|(name, _)| wanted(name)).map(|(_, text)| text.clone()).collect()
        };
        let known: Vec<_> = other.lines.iter().map(|line| key(other, line)).collect();
        let lines = self.lines.iter().enumerate();
        lines.filter(|(_, line)| !known.contains(&key(self, line))).map(|(i, _)| i + 2).collect()
    }
}

/// The seeds from which a row's main model has a record, ascending.
pub fn seeds(row: &Row, recipe: Recipe, records: &Records) -> Vec<u64> {
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

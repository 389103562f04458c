//! The ledger, `results/TABLE.csv`: our numbers under the paper's keys and column names, one line per row and seed.
//!
//! A line is a function of the records alone, so a ledger can always be made anew from them. What stands in the file already is
//! still read first: a file that is damaged, or that somebody else's tool wrote, is named and left as it is.

use std::fs;
use std::io;
use std::path::Path;

use crate::columns::{Cell, Column, Unit, has_interval, has_symbolic, value};
use crate::metrics::{Evaluation, Metrics};
use crate::records::{Milestone, Record, Records};
use crate::tables::{Kind, Need, Recipe, Row, Table, size_of_config};
use polystep_record::paper::Printed;
use polystep_record::{Proportion, RecordError};

/// Hyper-parameters that a table may list, and where a configuration has them.
const HYPER: [(&str, &str, &str); 3] =
    [("emb", "model", "d"), ("dropout", "model", "dropout"), ("batch", "train", "batch")];

/// Columns of full proofs, the count of examples beside each, and the column of the validation at the paper's count.
const AT_PAPER_EXAMPLES: [(&str, &str, &str); 2] = [
    ("full_proof_acc", "train_examples", "valid_at_paper_examples"),
    ("endpoint_acc", "endpoint_train_examples", "endpoint_valid_at_paper_examples"),
];

/// Columns that hold words; the others hold numbers or nothing.
const WORDS: [&str; 11] = [
    "config",
    "setting",
    "granularity",
    "notation",
    "curriculum",
    "train_config",
    "test_config",
    "recipe",
    "size",
    "device",
    "commit",
];

/// A row of a table with our numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Filled<'a> {
    /// The paper's row.
    pub row: &'a Row,
    /// The seed of our models.
    pub seed: u64,
    /// Our numbers beside the paper's, in the table's order.
    pub cells: Vec<Cell>,
    record: &'a Record,
    evaluation: Option<&'a Evaluation>,
    endpoint: Option<&'a Record>,
}

impl<'a> Filled<'a> {
    /// Fills a row from the records; none if its main model is not there. A missing one-shot model leaves its columns empty.
    pub fn of(table: &Table, row: &'a Row, recipe: Recipe, seed: u64, records: &'a Records) -> Option<Filled<'a>> {
        let needs = row.needs(recipe, seed);
        let find = |need: &Need| {
            let record = records.get(&need.experiment.name())?;
            Some((record, record.evaluation(&need.set)))
        };
        let main = needs.iter().find(|n| !n.endpoint)?;
        let (record, evaluation) = find(main)?;
        // Training has tested the model at home, so that much is known of a model that was never evaluated.
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
            let paper = row.text(column.name).and_then(|text| {
                Some(Printed { table: table.name, column: column.name.into(), text, value: text.parse().ok()? })
            });
            Cell { column, ours: ours.map(|v| v.0), interval: ours.and_then(|v| v.1), symbolic, paper }
        };
        let cells = table.columns().map(cell).collect();
        Some(Filled { row, seed, cells, record, evaluation, endpoint: endpoint.map(|(record, _)| record) })
    }

    /// Where the model of a column of full proofs stood when it had seen as many examples as the paper's.
    pub fn at_paper_examples(&self, column: &str) -> Option<Milestone> {
        let (_, count, _) = AT_PAPER_EXAMPLES.into_iter().find(|(name, ..)| *name == column)?;
        let record = if column.starts_with("endpoint_") { self.endpoint? } else { self.record };
        record.at(self.row.value(count)?)
    }

    /// Its line of the ledger, under the names of [`header`].
    fn line(&self, table: &Table, recipe: Recipe) -> Vec<String> {
        let run = &self.record.metrics.run;
        let number = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.2}"));
        let optional = |text: Option<String>| text.unwrap_or_default();
        let mut line: Vec<String> = self.row.keys().map(|(_, text)| text.to_owned()).collect();
        line.extend([recipe.to_string(), size_of_config(&self.record.config)]);
        for (_, part, key) in HYPER.into_iter().filter(|(name, ..)| table.header.contains(name)) {
            line.push(optional(self.record.config.get(part).and_then(|t| t.get(key)).map(|v| v.to_string())));
        }
        for cell in &self.cells {
            line.push(match cell.column.unit {
                Unit::Count => optional(cell.ours.map(|v| format!("{v:.0}"))),
                _ => number(cell.ours),
            });
            if has_symbolic(cell.column) {
                line.push(number(cell.symbolic));
            }
            if has_interval(cell.column) {
                line.push(number(cell.interval.map(|i| i.0)));
                line.push(number(cell.interval.map(|i| i.1)));
            }
        }
        line.push(number(self.evaluation.and_then(|e| Some(e.recursive.as_ref()?.recursive_exact.percent))));
        line.push(number(self.evaluation.and_then(|e| Some(e.greedy.as_ref()?.malformed.percent))));
        if !table.header.contains(&"train_examples") {
            line.push(optional(run.examples.map(|n| n.to_string())));
        }
        for (column, ..) in at_paper_examples(table) {
            line.push(number(self.at_paper_examples(column).map(|milestone| milestone.full_proof)));
        }
        line.push(self.seed.to_string());
        line.push(optional(run.seconds.map(|s| format!("{s:.0}"))));
        line.extend([run.device.clone(), run.commit.clone()].map(optional));
        line
    }
}

/// What training's own test says in a column: with every earlier token right, teacher forcing and greedy decoding agree.
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

/// Names of the ledger's columns.
pub fn header(table: &Table) -> Vec<String> {
    let mut names: Vec<String> = table.keys().map(str::to_owned).collect();
    if table.kind() == Kind::Sizes {
        names.extend(table.columns().map(|column| column.name.to_owned()));
        names.extend(["draws", "seed", "seconds", "device", "commit"].map(str::to_owned));
        return names;
    }
    names.extend(["recipe", "size"].map(str::to_owned));
    names.extend(HYPER.into_iter().filter(|(name, ..)| table.header.contains(name)).map(|(name, ..)| name.to_owned()));
    for column in table.columns() {
        names.push(column.name.to_owned());
        if has_symbolic(column) {
            names.push(format!("{}_symbolic", column.name));
        }
        if has_interval(column) {
            names.extend([format!("{}_lo", column.name), format!("{}_hi", column.name)]);
        }
    }
    names.extend(["recursive_exact", "malformed"].map(str::to_owned));
    if !table.header.contains(&"train_examples") {
        names.push("train_examples".to_owned());
    }
    names.extend(at_paper_examples(table).map(|(.., name)| name.to_owned()));
    names.extend(["seed", "seconds", "device", "commit"].map(str::to_owned));
    names
}

/// Those that a table has counts for.
fn at_paper_examples(table: &Table) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    AT_PAPER_EXAMPLES.into_iter().filter(|(_, count, _)| table.header.contains(count))
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
    /// The ledger of a table that the records give, rows in the paper's order, then by seed.
    pub fn of(table: &Table, recipe: Recipe, records: &Records) -> Ledger {
        let mut lines = Vec::new();
        for row in &table.rows {
            for seed in seeds(row, recipe, records) {
                lines.extend(Filled::of(table, row, recipe, seed, records).map(|filled| filled.line(table, recipe)));
            }
        }
        Ledger { header: header(table), lines }
    }

    /// Reads the ledger of a table; none if there is none.
    pub fn read(path: &Path, table: &Table) -> Result<Option<Ledger>, RecordError> {
        let text = match fs::read_to_string(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(RecordError::file("read", path))?,
        };
        let header = header(table);
        let wrong = |line: usize, why: String| {
            let why = format!("{why}; repair it, or remove the file to have it made anew");
            RecordError::Line { path: path.to_path_buf(), line, why }
        };
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, fields(line)));
        if lines.next().is_none_or(|(_, names)| names.as_ref() != Some(&header)) {
            return Err(wrong(1, format!("this is not the header of a {} ledger", table.name)));
        }
        let mut ledger = Ledger { header, lines: Vec::new() };
        for (number, line) in lines {
            let line = line.ok_or_else(|| wrong(number, "a quotation mark is not closed".into()))?;
            if line.len() != ledger.header.len() {
                return Err(wrong(
                    number,
                    format!("{} fields where the header has {}", line.len(), ledger.header.len()),
                ));
            }
            for (name, text) in ledger.header.iter().zip(&line) {
                if !WORDS.contains(&name.as_str()) && !text.is_empty() && text.parse::<f64>().is_err() {
                    return Err(wrong(number, format!("{name} is `{text}`, which is no number")));
                }
            }
            let keys = table.keys().count();
            if !table
                .rows
                .iter()
                .any(|row| row.keys().map(|(_, text)| text).eq(line[..keys].iter().map(String::as_str)))
            {
                return Err(wrong(number, format!("{} has no row {}", table.name, line[..keys].join(","))));
            }
            ledger.lines.push(line);
        }
        Ok(Some(ledger))
    }

    /// The whole file.
    pub fn text(&self) -> String {
        let line = |fields: &Vec<String>| fields.iter().map(|f| quoted(f)).collect::<Vec<_>>().join(",") + "\n";
        line(&self.header) + &self.lines.iter().map(line).collect::<String>()
    }

    /// Which of its lines, numbered as in the file, another ledger has no line for.
    pub fn unknown_to(&self, other: &Ledger) -> Vec<usize> {
        let key = |ledger: &Ledger, line: &[String]| -> Vec<String> {
            let wanted = |name: &str| name == "seed" || polystep_record::paper::KEYS.contains(&name);
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

fn quoted(field: &str) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

/// The fields of a line; none if a quotation mark is not closed.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut inside) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let field = fields.last_mut()?;
        match letter {
            '"' if inside && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => inside = !inside,
            ',' if !inside => fields.push(String::new()),
            letter => field.push(letter),
        }
    }
    (!inside).then_some(fields)
}

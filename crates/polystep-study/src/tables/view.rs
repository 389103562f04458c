//! A table for people: for every row our numbers above the paper's, and which of ours are lower.
//!
//! A column of full proofs also shows where our run stood at the paper's count of examples: on validation, for nothing is tested
//! on the way. With several seeds ours is their mean, and the interval their range; with one seed it is Wilson's. Only columns where more is
//! better can be lower: a share of errors, or a number of examples, is neither good nor bad.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{Recipe, Row, Table};
use crate::columns::{Cell, Column, Unit};
use crate::ledger::{Filled, seeds};
use crate::records::{Milestone, Records};

/// What is to be known about a calculator's numbers on the way.
pub const RAW: &str = "A calculator's validation is raw: its brackets as they stand, before evaluation.";

/// A table with our numbers beside the paper's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct View {
    /// The table's name.
    pub table: &'static str,
    /// The recipe of our numbers.
    pub recipe: Recipe,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<ViewRow>,
    /// What is to be known about its numbers, a sentence each.
    pub notes: Vec<String>,
}

/// A row of a [`View`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ViewRow {
    /// Its number in the paper's table, from 1.
    pub number: usize,
    /// Its keys.
    #[serde(serialize_with = "as_map")]
    pub keys: Vec<(&'static str, &'static str)>,
    /// The seeds of our models; none if there are no models yet.
    pub seeds: Vec<u64>,
    /// Its numbers, column by column.
    pub cells: Vec<ViewCell>,
}

/// A number of ours and the paper's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ViewCell {
    /// The column's name.
    pub column: &'static str,
    /// Ours; the mean of several seeds.
    pub ours: Option<f64>,
    /// Wilson's 95 % interval; of several seeds the range.
    pub interval: Option<(f64, f64)>,
    /// As the paper prints it.
    pub paper: Option<&'static str>,
    /// Whether ours is lower than the paper's where more is better.
    pub lower: bool,
    /// Where our run stood on its way.
    #[serde(flatten)]
    pub on_the_way: Option<OnTheWay>,
}

/// Where our run stood when it had seen as many examples as the paper's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct OnTheWay {
    /// The paper's count of examples.
    pub paper_examples: f64,
    /// Full proofs on validation, in percent; the mean of several seeds.
    pub valid_at_paper_examples: f64,
}

impl View {
    /// The rows of a table with what the records know, over the first seeds, `1..=most`.
    pub fn of(table: &Table, rows: &[&Row], recipe: Recipe, most: u64, records: &Records) -> View {
        let mut milestones = Vec::new();
        let mut row = |row: &&Row| {
            let known = seeds(row, recipe, records).into_iter().filter(|seed| *seed <= most);
            let filled: Vec<Filled> = known.filter_map(|seed| Filled::of(table, row, recipe, seed, records)).collect();
            let cell = |(i, column): (usize, Column)| {
                let cells: Vec<&Cell> = filled.iter().map(|f| &f.cells[i]).collect();
                let passed: Vec<Milestone> = filled.iter().filter_map(|f| f.at_paper_examples(column.name)).collect();
                milestones.extend(&passed);
                ViewCell { on_the_way: OnTheWay::of(&passed), ..ViewCell::of(column, row, &cells) }
            };
            ViewRow {
                number: row.number,
                keys: row.keys().collect(),
                seeds: filled.iter().map(|f| f.seed).collect(),
                cells: table.columns().enumerate().map(cell).collect(),
            }
        };
        let rows = rows.iter().map(&mut row).collect();
        View { table: table.name, recipe, columns: table.columns().collect(), rows, notes: notes(&milestones) }
    }

    /// The keys that are the same on all rows, with what they say, and the names of the others; a key that is empty everywhere is
    /// neither.
    pub fn common_keys(&self) -> (Vec<(&'static str, &'static str)>, Vec<&'static str>) {
        let Some(first) = self.rows.first() else { return (Vec::new(), Vec::new()) };
        let same = |key: &(&str, &str)| self.rows.iter().all(|row| row.keys.contains(key));
        // One row has all its keys in common with itself: then they are its name.
        let (common, other): (Vec<_>, Vec<_>) = first.keys.iter().partition(|key| self.rows.len() > 1 && same(key));
        let said = |(key, value): (&'static str, &'static str)| match (key, value) {
            ("vars", "1") => (key, "1 variable"),
            ("vars", "2") => (key, "2 variables"),
            ("train_vars", "1") => (key, "trained with 1 variable"),
            ("test_vars", "1") => (key, "tested with 1 variable"),
            _ => (key, value),
        };
        let words = common.into_iter().map(said).filter(|(_, word)| !word.is_empty()).collect();
        let says = |key: &&str| self.rows.iter().any(|row| !row.key(key).is_empty());
        (words, other.into_iter().map(|(key, _)| key).filter(says).collect())
    }

    /// Our lowest and highest number in a column.
    pub fn range(&self, column: &str) -> Option<[f64; 2]> {
        let cells = self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.column == column);
        let ours = cells.filter_map(|cell| cell.ours);
        ours.fold(None, |range, v| match range {
            None => Some([v, v]),
            Some([lo, hi]) => Some([v.min(lo), v.max(hi)]),
        })
    }

    /// The numbers that are lower than the paper's, a sentence for each row that has some.
    pub fn lower(&self) -> Vec<String> {
        let (_, names) = self.common_keys();
        let sentence = |row: &ViewRow| {
            let cells = self.columns.iter().zip(&row.cells).filter(|(_, cell)| cell.lower);
            let parts: Vec<String> = cells
                .map(|(column, cell)| {
                    let ours = cell.ours.map_or(String::new(), |v| number(v, column.unit));
                    format!("{} {ours} (paper {})", words(*column), cell.paper.unwrap_or_default())
                })
                .collect();
            let keys: Vec<&str> = names.iter().map(|name| row.key(name)).filter(|key| !key.is_empty()).collect();
            (!parts.is_empty()).then(|| format!("{} {}: {}", row.number, keys.join(" "), parts.join(", ")))
        };
        self.rows.iter().filter_map(sentence).collect()
    }

    /// A Markdown table, ours and the paper's in one cell.
    pub fn markdown(&self) -> String {
        let (_, names) = self.common_keys();
        let columns = self.columns.iter().map(|c| words(*c));
        let header: Vec<String> = names.iter().map(|n| (*n).to_owned()).chain(columns).collect();
        let mut text = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
        for row in &self.rows {
            let keys = names.iter().map(|name| row.key(name).to_owned());
            let cells = self.columns.iter().zip(&row.cells).map(|(column, cell)| {
                let ours = cell.ours.map_or("—".into(), |v| number(v, column.unit));
                let mark = if cell.lower { " ▼" } else { "" };
                let paper = cell.paper_text(column.unit);
                let way = cell.on_the_way.map_or(String::new(), |way| format!("; {way}"));
                format!("{ours}{mark} / {paper}{way}")
            });
            text += &format!("| {} |\n", keys.chain(cells).collect::<Vec<_>>().join(" | "));
        }
        if !self.notes.is_empty() {
            text += &format!("\n{}\n", self.notes.join("\n"));
        }
        text
    }
}

impl ViewRow {
    /// The value of a key.
    pub fn key(&self, name: &str) -> &'static str {
        self.keys.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }
}

impl ViewCell {
    fn of(column: Column, row: &Row, cells: &[&Cell]) -> ViewCell {
        let ours: Vec<f64> = cells.iter().filter_map(|c| c.ours).collect();
        let mean = (!ours.is_empty()).then(|| ours.iter().sum::<f64>() / ours.len() as f64);
        let interval = match cells {
            [one] => one.interval,
            _ => mean.map(|_| ours.iter().fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)))),
        };
        ViewCell::new(column, row, mean, interval)
    }

    /// Ours in a column of a row, beside the paper's.
    pub fn new(column: Column, row: &Row, ours: Option<f64>, interval: Option<(f64, f64)>) -> ViewCell {
        let paper = row.text(column.name).filter(|text| text.parse::<f64>().is_ok());
        let more_is_better = column.unit != Unit::Count && !column.name.starts_with("err_");
        // As ours is shown: 99.976 beside 99.98 is no lower, for the paper's is rounded too.
        let shown = ours.and_then(|v| number(v, column.unit).parse::<f64>().ok());
        let lower = match (shown, row.value(column.name)) {
            (Some(shown), Some(paper)) => more_is_better && shown < paper,
            _ => false,
        };
        ViewCell { column: column.name, ours, interval, paper, lower, on_the_way: None }
    }

    /// The paper's number, as it prints it; counts are shortened.
    pub fn paper_text(&self, unit: Unit) -> String {
        match (self.paper, unit) {
            (Some(text), Unit::Count) => text.parse().map_or(text.to_owned(), |v| number(v, unit)),
            (Some(text), _) => text.to_owned(),
            (None, _) => String::new(),
        }
    }
}

impl OnTheWay {
    fn of(passed: &[Milestone]) -> Option<OnTheWay> {
        let paper_examples = passed.first()?.examples;
        let sum: f64 = passed.iter().map(|milestone| milestone.full_proof).sum();
        Some(OnTheWay { paper_examples, valid_at_paper_examples: sum / passed.len() as f64 })
    }
}

impl fmt::Display for OnTheWay {
    /// `94.10 at 3.6M`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let valid = number(self.valid_at_paper_examples, Unit::Percent);
        write!(f, "{valid} at {}", number(self.paper_examples, Unit::Count))
    }
}

/// What is to be known about numbers on the way.
fn notes(milestones: &[Milestone]) -> Vec<String> {
    let mut notes = Vec::new();
    if !milestones.is_empty() {
        notes.push(
            "X at N: full proofs, in percent, at our run's last validation not after N examples, the paper's count, rounded up to a whole batch."
                .into(),
        );
    }
    if milestones.iter().any(|milestone| milestone.midway) {
        notes.push("There a run stands in the middle of its cosine schedule, its learning rate still high.".into());
    }
    if milestones.iter().any(|milestone| milestone.raw) {
        notes.push(RAW.into());
    }
    notes
}

fn as_map<S: Serializer>(pairs: &[(&str, &str)], s: S) -> Result<S::Ok, S::Error> {
    s.collect_map(pairs.iter().copied())
}

/// `full proof`, `first error: mul`: a column in a sentence.
pub fn words(column: Column) -> String {
    match column.name {
        "f1" => "F1".into(),
        "precision" | "recall" => column.name.into(),
        _ if column.name.starts_with("err_") => format!("{}: {}", column.group.to_lowercase(), column.heading),
        "endpoint_train_examples" => "endpoint examples".into(),
        "train_examples" => "examples".into(),
        "endpoint_acc" => "endpoint".into(),
        _ => column.heading.to_lowercase(),
    }
}

/// A number as a table shows it.
pub fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => format!("{value:.2}"),
        Unit::Fraction => format!("{value:.3}"),
        Unit::Count => match value {
            v if v >= 99.5e6 => format!("{:.0}M", v / 1e6),
            v if v >= 1e5 => format!("{:.1}M", v / 1e6),
            v => format!("{v:.0}"),
        },
    }
}

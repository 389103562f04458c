//! A table of the paper for people: in every row our numbers and the paper's, and which of ours are lower.
//!
//! With several seeds our number is their mean and the interval their range. With one seed the interval is Wilson's. A column of
//! full proofs also shows our run's validation at the paper's count of examples, because models are only tested at the end.

use polystep_record::paper::KeyColumn;
use serde::{Serialize, Serializer};

use super::{PaperRow, PaperTable, Recipe};
use crate::columns::{Column, Quantity, Unit};
use crate::grid::Grid;
use crate::ledger::{FilledRow, Ledger, seeds};
use crate::number::{CountFormat, number};
use crate::records::{Milestone, RunRecords};
use crate::side_by_side::{Cell, Heading, SideBySide, SideRow};

/// What a reader must know about a calculator's validation.
pub const RAW: &str = "A calculator's validation is raw: its brackets as they stand, before evaluation.";

/// A table with our numbers beside the paper's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TableView {
    /// The table's name.
    pub table: &'static str,
    /// The recipe of our numbers.
    pub recipe: Recipe,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<ViewRow>,
    /// What a reader must know about the numbers, a sentence each.
    pub notes: Vec<String>,
}

/// A row of a [`TableView`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ViewRow {
    /// Its number in the paper's table, from 1.
    pub number: usize,
    /// Its keys.
    #[serde(serialize_with = "as_map")]
    pub keys: Vec<(KeyColumn, &'static str)>,
    /// The seeds of our models; none if there are no models yet.
    pub seeds: Vec<u64>,
    /// Its numbers, column by column.
    #[serde(serialize_with = "as_documented")]
    pub cells: Vec<Cell>,
}

impl TableView {
    /// The rows of a table with what the records know, over the first seeds, `1..=most`.
    pub fn of(table: &PaperTable, rows: &[&PaperRow], recipe: Recipe, most: u64, records: &RunRecords) -> TableView {
        let row = |row: &&PaperRow| {
            let known = seeds(row, recipe, records).into_iter().filter(|seed| *seed <= most);
            let filled: Vec<_> = known.filter_map(|seed| FilledRow::of(table, row, recipe, seed, records)).collect();
            let cell = |(i, column)| {
                mean(Cell::printed(column, row.printed(table, column)), filled.iter().map(|f| &f.cells[i]).collect())
            };
            ViewRow {
                number: row.number,
                keys: row.keys().collect(),
                seeds: filled.iter().map(|f| f.seed).collect(),
                cells: table.columns().enumerate().map(cell).collect(),
            }
        };
        TableView::new(table, recipe, rows.iter().map(row).collect())
    }

    /// The rows of the table of sizes. Nothing is trained for it, so its ledger alone keeps our numbers.
    pub fn of_sizes(table: &PaperTable, rows: &[&PaperRow], ledger: Option<&Ledger>) -> TableView {
        let row = |row: &&PaperRow| {
            let line = ledger.and_then(|ledger| ledger.line_of(row));
            let ours = |name: &str| line.as_ref().and_then(|field| field(name)?.parse().ok());
            let cell = |c: Column| Cell { ours: ours(c.name), ..Cell::printed(c, row.printed(table, c)) };
            ViewRow {
                number: row.number,
                keys: row.keys().collect(),
                seeds: line.as_ref().and_then(|field| field("seed")?.parse().ok()).into_iter().collect(),
                cells: table.columns().map(cell).collect(),
            }
        };
        TableView::new(table, Recipe::Fast, rows.iter().map(row).collect())
    }

    /// A view of these rows.
    pub fn new(table: &PaperTable, recipe: Recipe, rows: Vec<ViewRow>) -> TableView {
        let milestones = || rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.at_paper_examples);
        let notes = [
            (
                milestones().any(|_| true),
                "X at N: the share of full proofs in our run's last validation up to N examples, in percent. N is the count of the paper's model, rounded up to a whole batch.",
            ),
            (
                milestones().any(|m| m.midway),
                "Our run was in the middle of its cosine schedule then. Its learning rate was still high, so X understates the final model.",
            ),
            (milestones().any(|m| m.raw), RAW),
        ];
        let notes = notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note.to_owned());
        let notes = counts(&rows).into_iter().chain(notes).collect();
        TableView { table: table.name, recipe, columns: table.columns().collect(), rows, notes }
    }

    /// The keys that are the same on all rows, with their values in words, and the other keys. A key that is empty
    /// everywhere is in neither list.
    pub fn common_keys(&self) -> (Vec<(KeyColumn, &'static str)>, Vec<KeyColumn>) {
        let Some(first) = self.rows.first() else { return (Vec::new(), Vec::new()) };
        let same = |key: &(KeyColumn, &str)| self.rows.iter().all(|row| row.keys.contains(key));
        // A single row has all its keys in common with itself. Then they are its name.
        let (common, other): (Vec<_>, Vec<_>) = first.keys.iter().partition(|key| self.rows.len() > 1 && same(key));
        let said = |(key, value): (KeyColumn, &'static str)| match (key, value) {
            (KeyColumn::Vars, "1") => (key, "1 variable"),
            (KeyColumn::Vars, "2") => (key, "2 variables"),
            (KeyColumn::TrainVars, "1") => (key, "trained with 1 variable"),
            (KeyColumn::TestVars, "1") => (key, "tested with 1 variable"),
            _ => (key, value),
        };
        let words = common.into_iter().map(said).filter(|(_, word)| !word.is_empty()).collect();
        let says = |key: &KeyColumn| self.rows.iter().any(|row| !row.key(*key).is_empty());
        (words, other.into_iter().map(|(key, _)| key).filter(says).collect())
    }

    /// Our lowest and highest number in a column.
    pub fn range(&self, quantity: Quantity) -> Option<[f64; 2]> {
        let cells = self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.column.quantity == quantity);
        let ours: Vec<f64> = cells.filter_map(|cell| cell.ours).collect();
        Some([ours.iter().copied().reduce(f64::min)?, ours.iter().copied().reduce(f64::max)?])
    }

    /// The numbers that are lower than the paper's, a sentence for each row that has some.
    pub fn lower(&self) -> Vec<String> {
        let (_, names) = self.common_keys();
        let sentence = |row: &ViewRow| {
            let part = |cell: &Cell| {
                let [ours, paper] = [cell.ours_text(CountFormat::Full), cell.paper_text(CountFormat::Full)];
                format!("{} {} (paper {})", words(cell.column), ours.unwrap_or_default(), paper.unwrap_or_default())
            };
            let parts: Vec<String> = row.cells.iter().filter(|cell| cell.is_lower()).map(part).collect();
            let keys: Vec<&str> = names.iter().map(|name| row.key(*name)).filter(|key| !key.is_empty()).collect();
            (!parts.is_empty()).then(|| format!("{} {}: {}", row.number, keys.join(" "), parts.join(", ")))
        };
        self.rows.iter().filter_map(sentence).collect()
    }

    /// The keys that differ, and our numbers beside the paper's.
    pub fn side_by_side(&self) -> SideBySide {
        let (_, names) = self.common_keys();
        let row = |row: &ViewRow| SideRow {
            keys: names.iter().map(|name| row.key(*name).to_owned()).collect(),
            cells: row.cells.iter().cloned().map(Some).collect(),
        };
        let headings = self.columns.iter().map(|column| Heading { group: column.group, name: words(*column) });
        SideBySide {
            keys: names.iter().map(KeyColumn::to_string).collect(),
            headings: headings.collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// A Markdown table, ours and the paper's in one cell, and the notes.
    pub fn markdown(&self) -> String {
        let grid = self.side_by_side().grid(|cell| {
            let ours = cell.ours_text(CountFormat::Millions).unwrap_or_else(|| "—".to_owned());
            let mark = if cell.is_lower() { " ▼" } else { "" };
            let paper = cell.paper_text(CountFormat::Millions).unwrap_or_default();
            let way = cell.at_paper_examples.map_or(String::new(), |way| format!("; {}", way.text()));
            Some(format!("{ours}{mark} / {paper}{way}"))
        });
        let table = Grid { words: grid.header.len(), ..grid }.markdown();
        if self.notes.is_empty() { table } else { format!("{table}\n{}\n", self.notes.join("\n")) }
    }
}

impl ViewRow {
    /// The value of a key.
    pub fn key(&self, wanted: KeyColumn) -> &'static str {
        self.keys.iter().find(|(key, _)| *key == wanted).map_or("", |(_, value)| value)
    }
}

/// How many the percentages of each column are of, as a sentence; none if nothing was measured.
fn counts(rows: &[ViewRow]) -> Option<String> {
    let mut columns: Vec<(Column, u64, u64)> = Vec::new();
    for (column, n) in rows.iter().flat_map(|row| &row.cells).filter_map(|cell| Some((cell.column, cell.of?))) {
        match columns.iter_mut().find(|(known, ..)| *known == column) {
            Some((_, least, most)) => (*least, *most) = (n.min(*least), n.max(*most)),
            None => columns.push((column, n, n)),
        }
    }
    let part = |(column, least, most): &(Column, u64, u64)| match least == most {
        true => format!("{} {least}", words(*column)),
        false => format!("{} {least} to {most}", words(*column)),
    };
    let parts: Vec<String> = columns.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("How many each of our percentages is of: {}.", parts.join(", ")))
}

/// The mean of our numbers over seeds, beside the paper's number.
fn mean(printed: Cell, seeds: Vec<&Cell>) -> Cell {
    let average = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let ours: Vec<f64> = seeds.iter().filter_map(|c| c.ours).collect();
    let range = ours.iter().copied().reduce(f64::min).zip(ours.iter().copied().reduce(f64::max));
    let passed: Vec<Milestone> = seeds.iter().filter_map(|c| c.at_paper_examples).collect();
    let valid = average(&passed.iter().map(|milestone| milestone.full_proof).collect::<Vec<_>>());
    Cell {
        ours: average(&ours),
        of: seeds.iter().find_map(|c| c.of),
        interval: if let [one] = seeds[..] { one.interval } else { range },
        at_paper_examples: valid.map(|full_proof| Milestone {
            full_proof,
            raw: passed.iter().any(|milestone| milestone.raw),
            midway: passed.iter().any(|milestone| milestone.midway),
            ..passed[0]
        }),
        ..printed
    }
}

impl Milestone {
    /// `94.10 at 3.6M`
    pub fn text(&self) -> String {
        let valid = number(self.full_proof, Unit::Percent, CountFormat::Full);
        format!("{valid} at {}", number(self.examples, Unit::Count, CountFormat::Millions))
    }
}

fn as_map<S: Serializer>(keys: &[(KeyColumn, &str)], s: S) -> Result<S::Ok, S::Error> {
    s.collect_map(keys.iter().map(|(key, value)| (key.name(), value)))
}

/// The cells as docs/reproduce.md documents them.
fn as_documented<S: Serializer>(cells: &[Cell], s: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Documented {
        column: &'static str,
        ours: Option<f64>,
        interval: Option<(f64, f64)>,
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<u64>,
        paper: Option<&'static str>,
        lower: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        paper_examples: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        valid_at_paper_examples: Option<f64>,
    }
    s.collect_seq(cells.iter().map(|cell| Documented {
        column: cell.column.name,
        ours: cell.ours,
        interval: cell.interval,
        of: cell.of,
        paper: cell.paper.as_ref().map(|paper| paper.text),
        lower: cell.is_lower(),
        paper_examples: cell.at_paper_examples.map(|milestone| milestone.examples),
        valid_at_paper_examples: cell.at_paper_examples.map(|milestone| milestone.full_proof),
    }))
}

/// `full proof`, `first error: mul`: a column in a sentence.
pub fn words(column: Column) -> String {
    match column.quantity {
        Quantity::F1 => "F1".into(),
        Quantity::Precision | Quantity::Recall => column.name.into(),
        Quantity::EndpointExamples => "endpoint examples".into(),
        Quantity::Examples => "examples".into(),
        Quantity::EndpointAccuracy => "endpoint".into(),
        _ if column.is_error() => format!("{}: {}", column.group.to_lowercase(), column.heading),
        _ => column.heading.to_lowercase(),
    }
}

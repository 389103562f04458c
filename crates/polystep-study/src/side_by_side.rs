//! Our numbers beside the paper's: the one model behind every table of results.
//!
//! A [`Cell`] holds both numbers of a column. A [`SideBySide`] has a cell for each of its rows and columns. It is shown either
//! with one line per row ([`SideBySide::grid`]) or in [layers](Layer): our line, and below it the paper's. Both give texts in
//! rows and columns, and a [`Grid`] turns these into Markdown, LaTeX, CSV or a terminal's table.

use std::iter::once;

use serde::Serialize;

use crate::columns::{COLUMNS, Column, Unit};
use crate::grid::{Grid, groups};
use crate::metrics::{Evaluation, Metrics};
use crate::number::{CountFormat, interval, number};
use crate::records::Milestone;
use polystep_record::paper::{Printed, lookup, lookup_ood};
use polystep_record::{Keys, PaperSetting};

/// Our number in a column, and the paper's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// The column.
    pub column: Column,
    /// Our number: exact matches.
    pub ours: Option<f64>,
    /// The interval of our number.
    pub interval: Option<(f64, f64)>,
    /// How many our percentage is of.
    pub of: Option<u64>,
    /// Our number by the paper's own test, `symbolic`, where that has another meaning.
    pub symbolic: Option<f64>,
    /// The paper's number.
    pub paper: Option<Printed>,
    /// Where the exact and the symbolic number are in `metrics.json`, as JSON pointers.
    #[serde(skip)]
    pub pointers: [Option<String>; 2],
    /// Our run's validation when it had seen as many examples as the paper's model.
    #[serde(skip)]
    pub at_paper_examples: Option<Milestone>,
}

impl Cell {
    /// A cell with the paper's number only.
    pub fn printed(column: Column, paper: Option<Printed>) -> Cell {
        Cell {
            column,
            ours: None,
            interval: None,
            of: None,
            symbolic: None,
            paper,
            pointers: [None, None],
            at_paper_examples: None,
        }
    }

    /// Our number minus the paper's; `None` where the paper only gives a bound.
    pub fn difference(&self) -> Option<f64> {
        let paper = self.paper.as_ref().filter(|p| !p.text.starts_with('<'))?;
        Some(self.ours? - paper.value)
    }

    /// Whether our number is lower than the paper's, in a column where more is better. Numbers are compared as they are shown:
    /// 99.976 is not lower than the paper's 99.98, which is rounded too.
    pub fn is_lower(&self) -> bool {
        let shown = || self.ours_text(CountFormat::Full)?.parse::<f64>().ok();
        let paper = || self.paper.as_ref()?.text.parse::<f64>().ok();
        self.column.more_is_better() && shown().zip(paper()).is_some_and(|(shown, paper)| shown < paper)
    }

    /// Our number as text.
    pub fn ours_text(&self, counts: CountFormat) -> Option<String> {
        self.ours.map(|value| number(value, self.column.unit, counts))
    }

    /// The paper's number as it prints it. Counts are shortened.
    pub fn paper_text(&self, counts: CountFormat) -> Option<String> {
        let paper = self.paper.as_ref()?;
        Some(match self.column.unit {
            Unit::Count => number(paper.value, Unit::Count, counts),
            _ => paper.text.to_owned(),
        })
    }
}

/// Our numbers of one evaluation, for the columns that it or the paper has.
pub fn cells(metrics: &Metrics, evaluation: &Evaluation) -> Vec<Cell> {
    let keys = &metrics.keys;
    // The paper's sentence on arithmetic holds for each kind of exercise, whatever else the model has learned.
    let exercises =
        keys.is(PaperSetting::Arithmetic).then(|| Keys { config: evaluation.config.clone(), ..keys.clone() });
    let printed = match exercises.or_else(|| keys.at_home(&evaluation.config, evaluation.vars)) {
        Some(row) => lookup(&row),
        None => lookup_ood(keys, &evaluation.config, evaluation.vars),
    };
    let cell = |column: Column| Cell {
        paper: printed.iter().find(|p| p.column == column.name).cloned(),
        ..Cell::measured(column, metrics, evaluation)
    };
    COLUMNS.into_iter().map(cell).filter(|cell| cell.ours.is_some() || cell.paper.is_some()).collect()
}

/// The cells of a run's evaluation, with pointers that begin with the run's place in a list of runs:
/// `0/evaluations/0/greedy/stepwise/exact/percent`.
pub fn cells_of_run(run: usize, metrics: &Metrics, at: usize) -> Vec<Cell> {
    let placed = |mut cell: Cell| {
        for pointer in cell.pointers.iter_mut().flatten() {
            pointer.insert_str(0, &format!("{run}/evaluations/{at}"));
        }
        cell
    };
    metrics.evaluations.get(at).map_or_else(Vec::new, |e| cells(metrics, e).into_iter().map(placed).collect())
}

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heading {
    /// What it has in common with its neighbours.
    pub group: &'static str,
    /// Its own name.
    pub name: String,
}

/// A row of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct SideRow {
    /// What the row is about.
    pub keys: Vec<String>,
    /// A cell for each column.
    pub cells: Vec<Option<Cell>>,
}

/// A table of our numbers beside the paper's.
#[derive(Clone, PartialEq, Debug)]
pub struct SideBySide {
    /// Names of the keys.
    pub keys: Vec<String>,
    /// Its columns.
    pub headings: Vec<Heading>,
    /// Its rows.
    pub rows: Vec<SideRow>,
}

impl SideBySide {
    /// A table in the paper's columns, from the names and cells of runs. It has the columns that some run wants.
    pub fn of_runs(runs: Vec<(String, Vec<Cell>)>, wanted: impl Fn(&Cell) -> bool) -> SideBySide {
        let has = |c: &Column| runs.iter().flat_map(|(_, cells)| cells).any(|cell| cell.column == *c && wanted(cell));
        let columns: Vec<Column> = COLUMNS.into_iter().filter(has).collect();
        let row = |(name, cells): (String, Vec<Cell>)| {
            let find = |c: &Column| cells.iter().find(|cell| cell.column == *c).cloned();
            SideRow { keys: vec![name], cells: columns.iter().map(find).collect() }
        };
        let headings = columns.iter().map(|c| Heading { group: c.group, name: c.heading.to_owned() }).collect();
        SideBySide { keys: vec!["run".to_owned()], headings, rows: runs.into_iter().map(row).collect() }
    }

    /// The table with one line per row and one text per cell; a dash where there is no text.
    pub fn grid(&self, text: impl Fn(&Cell) -> Option<String>) -> Grid {
        let cell = |cell: &Option<Cell>| cell.as_ref().and_then(&text).unwrap_or_else(|| "–".to_owned());
        let line = |row: &SideRow| row.keys.iter().cloned().chain(row.cells.iter().map(cell)).collect();
        Grid {
            header: self.keys.iter().cloned().chain(self.headings.iter().map(|h| h.name.clone())).collect(),
            rows: self.rows.iter().map(line).collect(),
            words: self.keys.len(),
        }
    }

    /// The table with a line for each layer of each row. A layer without a number in a row is left out there. `absent` is our
    /// text where neither we nor the paper have a number.
    pub fn layered(&self, layers: &[Layer], absent: &str) -> LayeredTable {
        let lines = |row: &SideRow| {
            let line = |layer: &Layer| {
                let (class, label, blank) = match layer {
                    Layer::Ours | Layer::OursMarked => ("ours", row.keys.join(" "), absent),
                    Layer::Of => ("of", "n".into(), ""),
                    Layer::Symbolic => ("symbolic", "ours, symbolic".into(), ""),
                    Layer::Paper => ("paper", "paper".into(), ""),
                    Layer::Difference => ("difference", "difference".into(), ""),
                };
                let text = |cell: &Option<Cell>| cell.as_ref().and_then(|cell| layer.number(cell));
                let cells = row.cells.iter().map(|cell| text(cell).unwrap_or_else(|| Number::text(blank))).collect();
                LayerRow { label, class, cells }
            };
            let present = layers.iter().filter(|layer| row.cells.iter().flatten().any(|cell| layer.is_in(cell)));
            present.map(line).collect::<Vec<_>>()
        };
        LayeredTable {
            groups: groups(self.headings.iter().map(|h| h.group)),
            headings: self.headings.iter().map(|h| h.name.clone()).collect(),
            rows: self.rows.iter().flat_map(lines).collect(),
        }
    }
}

/// What a line of a table shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// Our numbers, with their intervals.
    Ours,
    /// The same, red where they are lower than the paper's.
    OursMarked,
    /// How many our percentages are of.
    Of,
    /// Our numbers by the symbolic test.
    Symbolic,
    /// The paper's numbers.
    Paper,
    /// Our numbers minus the paper's, coloured where the paper's number lies outside our interval.
    Difference,
}

impl Layer {
    /// Whether a row with this cell has the layer.
    fn is_in(self, cell: &Cell) -> bool {
        match self {
            Layer::Ours | Layer::OursMarked => true,
            Layer::Of => cell.of.is_some(),
            Layer::Symbolic => cell.symbolic.is_some(),
            Layer::Paper | Layer::Difference => cell.paper.is_some(),
        }
    }

    /// A number of this layer; `None` if the cell has none.
    pub fn number(self, cell: &Cell) -> Option<Number> {
        let [exact, symbolic] = cell.pointers.clone();
        match self {
            Layer::Ours | Layer::OursMarked => Some(Number {
                metric: exact.filter(|_| cell.ours.is_some()),
                small: cell.interval.map(interval),
                of: cell.of,
                sign: (self == Layer::OursMarked && cell.is_lower()).then_some("down"),
                ..Number::text(cell.ours_text(CountFormat::Short).unwrap_or_else(|| "–".to_owned()))
            }),
            Layer::Of => cell.of.map(|n| Number::text(n.to_string())),
            Layer::Symbolic => {
                let text = number(cell.symbolic?, cell.column.unit, CountFormat::Short);
                Some(Number { metric: symbolic, ..Number::text(text) })
            }
            Layer::Paper => cell.paper_text(CountFormat::Short).map(Number::text),
            Layer::Difference if cell.column.unit == Unit::Count => None,
            Layer::Difference => {
                let (difference, paper) = (cell.difference()?, cell.paper.as_ref()?.value);
                let outside = cell.interval.is_some_and(|(lo, hi)| paper < lo || paper > hi);
                let text = number(difference.abs(), cell.column.unit, CountFormat::Short);
                let (prefix, sign) = if difference.is_sign_negative() { ("−", "down") } else { ("+", "up") };
                Some(Number { sign: outside.then_some(sign), ..Number::text(format!("{prefix}{text}")) })
            }
        }
    }
}

/// A number on a page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Number {
    /// The number as it is shown.
    pub text: String,
    /// Where it is in the `metrics.json` of which run, if it is there: `RUN/POINTER`.
    pub metric: Option<String>,
    /// A text in small type under it.
    pub small: Option<String>,
    /// How many it is of, if it is a percentage.
    pub of: Option<u64>,
    /// `up` or `down` for a number in colour.
    pub sign: Option<&'static str>,
}

impl Number {
    /// A text that is in no document.
    pub fn text(text: impl Into<String>) -> Number {
        Number { text: text.into(), metric: None, small: None, of: None, sign: None }
    }
}

/// A line of a [`LayeredTable`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LayerRow {
    /// What it holds.
    pub label: String,
    /// `ours`, `of`, `symbolic`, `paper` or `difference`.
    pub class: &'static str,
    /// A number for each column.
    pub cells: Vec<Number>,
}

/// A table with our line above the paper's, ready for a page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LayeredTable {
    /// Names of neighbouring columns, with their number.
    pub groups: Vec<(&'static str, usize)>,
    /// Headings.
    pub headings: Vec<String>,
    /// Lines.
    pub rows: Vec<LayerRow>,
}

impl LayeredTable {
    /// The texts alone; a dash where there is no text.
    pub fn grid(&self) -> Grid {
        let cell = |n: &Number| if n.text.is_empty() { "–".to_owned() } else { n.text.clone() };
        let line = |row: &LayerRow| once(row.label.clone()).chain(row.cells.iter().map(cell)).collect();
        let header = once("run".to_owned()).chain(self.headings.iter().cloned()).collect();
        Grid { header, rows: self.rows.iter().map(line).collect(), words: 1 }
    }
}

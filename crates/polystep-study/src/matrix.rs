//! Trained × tested: every run on every test set it was evaluated on, with the paper's number beside ours. The paper has three
//! such tables, of models tested on other spaces than their own.
//!
//! A row is a run and not a space, so that two runs on one space can be compared. A set that a run was not tested on is an
//! empty cell, never a zero.

use polystep_core::named;
use serde::Serialize;

use crate::columns::{Column, Quantity, Unit};
use crate::grid::Grid;
use crate::metrics::{Evaluation, Metrics};
use crate::number::{CountFormat, number};
use crate::side_by_side::{Cell, Heading, SideBySide, SideRow, cells_of_run};
use polystep_record::paper::KeyColumn;
use polystep_record::{Keys, TestSet, key_text};

/// What a matrix shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Proofs with every step right; a one-shot model's only number.
    FullProof,
    /// Steps that are right.
    Stepwise,
}

named!(Measure, "measure": FullProof "Full proof", Stepwise "Stepwise");

impl Measure {
    /// Whether a column shows it, on a set of this name. A one-shot model has columns of its own for its only number.
    fn is(self, column: Column, tested: &str) -> bool {
        match (self, column.quantity) {
            (Measure::FullProof, Quantity::Exercises(drill)) => drill.name() == tested,
            (Measure::FullProof, _) => column.is_headline(),
            (Measure::Stepwise, quantity) => quantity == Quantity::Stepwise,
        }
    }
}

/// `small_coeff, 2 var`
fn title(set: &TestSet) -> String {
    format!("{}, {} var", set.config, set.vars)
}

/// A run on a test set.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MatrixEntry {
    /// Its place among the run's evaluations.
    pub evaluation: usize,
    /// Full proofs.
    pub full_proof: Option<Cell>,
    /// Steps.
    pub stepwise: Option<Cell>,
}

impl MatrixEntry {
    /// One of its numbers.
    pub fn cell(&self, measure: Measure) -> Option<&Cell> {
        match measure {
            Measure::FullProof => self.full_proof.as_ref(),
            Measure::Stepwise => self.stepwise.as_ref(),
        }
    }
}

/// A run: what it was trained on, and its result on each test set.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MatrixRow {
    /// Its place in the list of runs.
    pub run: usize,
    /// Its name.
    pub name: String,
    /// What it was trained on.
    pub trained: Keys,
    /// An entry for each test set.
    pub entries: Vec<Option<MatrixEntry>>,
}

impl MatrixRow {
    /// `ood-small: small_coeff, 1 var`
    pub fn title(&self) -> String {
        let Keys { config, vars, also, .. } = &self.trained;
        let more = if also.is_empty() { String::new() } else { format!(" and {} more", also.len()) };
        format!("{}: {config}, {vars} var{more}", self.name)
    }
}

/// The matrix.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Matrix {
    /// Its columns, in the order in which the runs first name them.
    pub tested: Vec<TestSet>,
    /// Its rows.
    pub rows: Vec<MatrixRow>,
}

impl Matrix {
    /// The matrix of runs by name; `None` unless there are several numbers to compare.
    pub fn of(runs: &[(&str, Option<&Metrics>)]) -> Option<Matrix> {
        let mut tested: Vec<TestSet> = Vec::new();
        for evaluation in runs.iter().filter_map(|(_, metrics)| *metrics).flat_map(|m| &m.evaluations) {
            let set = evaluation.set();
            if has_one_number(evaluation) && !tested.contains(&set) {
                tested.push(set);
            }
        }
        let row = |(run, (name, metrics)): (usize, &(&str, Option<&Metrics>))| {
            let metrics = (*metrics)?;
            let entries: Vec<_> = tested.iter().map(|set| entry(run, metrics, set)).collect();
            let row = MatrixRow { run, name: (*name).to_owned(), trained: metrics.keys.clone(), entries };
            row.entries.iter().any(Option::is_some).then_some(row)
        };
        let rows: Vec<MatrixRow> = runs.iter().enumerate().filter_map(row).collect();
        (rows.len().max(tested.len()) > 1).then_some(Matrix { tested, rows })
    }

    /// The measures that some run has.
    pub fn measures(&self) -> Vec<Measure> {
        let entries = || self.rows.iter().flat_map(|r| &r.entries).flatten();
        Measure::ALL.into_iter().filter(|m| entries().any(|e| e.cell(*m).is_some())).collect()
    }

    /// A table with a row for each test set, and a column for each of these measures and each run.
    pub fn table(&self, measures: &[Measure]) -> SideBySide {
        let headings = measures
            .iter()
            .flat_map(|measure| self.rows.iter().map(|row| Heading { group: measure.name(), name: row.title() }));
        let row = |(i, set): (usize, &TestSet)| {
            let cells = measures.iter().flat_map(|measure| {
                self.rows.iter().map(move |row| row.entries[i].as_ref().and_then(|entry| entry.cell(*measure).cloned()))
            });
            SideRow { keys: vec![title(set)], cells: cells.collect() }
        };
        let keys = vec!["tested on".to_owned()];
        SideBySide { keys, headings: headings.collect(), rows: self.tested.iter().enumerate().map(row).collect() }
    }

    /// One measure as texts: our number, an arrow where it is lower than the paper's, the paper's in parentheses, and n. The
    /// rows are the runs, or the test sets if there are more of them.
    pub fn grid(&self, measure: Measure) -> Grid {
        let grid = self.table(&[measure]).grid(|cell| {
            let arrow = if cell.is_lower() { " ↓" } else { "" };
            let paper = cell.paper.as_ref().map_or(String::new(), |p| format!(" ({})", p.text));
            let n = cell.of.map_or(String::new(), |n| format!(", n {n}"));
            Some(format!("{}{arrow}{paper}{n}", cell.ours_text(CountFormat::Full)?))
        });
        if self.tested.len() > self.rows.len() { grid } else { grid.turned("trained on") }
    }

    /// One CSV row per entry, under the key columns of the paper's tables.
    pub fn csv(&self) -> String {
        use KeyColumn::{Granularity, Notation, Run, Setting, TestConfig, TestVars, TrainConfig, TrainVars};
        let keys = [TrainVars, TestVars, TrainConfig, TestConfig, Setting, Granularity, Notation, Run];
        const NUMBERS: [&str; 5] = ["", "_symbolic", "_lo", "_hi", "_paper"];
        let names = ["full_proof_acc", "stepwise_acc"].into_iter();
        let header = names.flat_map(|name| NUMBERS.map(|suffix| format!("{name}{suffix}")));
        let header = keys.map(|key| key.to_string()).into_iter().chain(header).collect();
        let line = |row: &MatrixRow, set: &TestSet, entry: &MatrixEntry| {
            let Keys { vars, config, setting, granularity, notation, .. } = &row.trained;
            let counts = [vars.to_string(), set.vars.to_string()];
            let written = [key_text(setting), key_text(granularity), key_text(notation)];
            let names = [config, &set.config].map(String::clone).into_iter().chain(written).chain([row.name.clone()]);
            let numbers = Measure::ALL.into_iter().flat_map(|measure| numbers(entry.cell(measure)));
            counts.into_iter().chain(names).chain(numbers).collect()
        };
        let entries = self.rows.iter().flat_map(|row| {
            let entries = self.tested.iter().zip(&row.entries);
            entries.filter_map(move |(set, entry)| Some(line(row, set, entry.as_ref()?)))
        });
        Grid { header, rows: entries.collect(), words: 0 }.csv()
    }
}

/// A cell's numbers in the CSV: ours, symbolic, the interval, the paper's.
fn numbers(cell: Option<&Cell>) -> [String; 5] {
    let text = |value: Option<f64>| value.map_or(String::new(), |v| number(v, Unit::Percent, CountFormat::Full));
    let Some(cell) = cell else { return Default::default() };
    let paper = cell.paper.as_ref().map_or("", |paper| paper.text);
    let (lo, hi) = cell.interval.unzip();
    [text(cell.ours), text(cell.symbolic), text(lo), text(hi), paper.to_owned()]
}

/// The mixture of exercises has a number for each kind, but none for all kinds together.
fn has_one_number(evaluation: &Evaluation) -> bool {
    evaluation.greedy.is_some() && evaluation.config != polystep_core::arithmetic::MIXTURE
}

fn entry(run: usize, metrics: &Metrics, set: &TestSet) -> Option<MatrixEntry> {
    let at = metrics.evaluations.iter().position(|e| e.set() == *set && has_one_number(e))?;
    let cells = cells_of_run(run, metrics, at);
    let find = |measure: Measure| cells.iter().find(|c| c.ours.is_some() && measure.is(c.column, &set.config)).cloned();
    Some(MatrixEntry { evaluation: at, full_proof: find(Measure::FullProof), stepwise: find(Measure::Stepwise) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Greedy, Right};
    use polystep_record::Proportion;
    use polystep_record::metrics::Errors;
    use polystep_record::metrics::Slices;

    fn evaluation(config: &str, right: u64) -> Evaluation {
        let share = |n| Proportion::new(n, 1000).unwrap();
        let both = |n| Right { exact: share(n), symbolic: share(n + 1) };
        let greedy = Greedy {
            full_proof: both(right),
            stepwise: both(990),
            raw_exact: None,
            malformed: share(0),
            by_kind: [("add4".to_owned(), share(right))].into(),
            by_class: Default::default(),
            errors: Errors::default(),
            slices: Slices::default(),
        };
        Evaluation { config: config.into(), vars: 1, greedy: Some(greedy), ..Evaluation::default() }
    }

    fn metrics(config: &str, setting: &str, evaluations: Vec<Evaluation>) -> Metrics {
        let (granularity, notation) = ("coarse".parse().ok(), "prefix".parse().ok());
        let setting = setting.parse().ok();
        let keys = Keys { vars: 1, config: config.into(), setting, granularity, notation, ..Keys::default() };
        Metrics { keys, evaluations, ..Metrics::default() }
    }

    /// The corner of the paper's table on coefficients: 95.3 and 33.4 trained on small, 96.6 and 93.6 on medium.
    fn two() -> (Metrics, Metrics) {
        let small = vec![evaluation("small_coeff", 980), evaluation("medium_coeff", 300)];
        let medium = vec![evaluation("medium_coeff", 970)];
        (metrics("small_coeff", "plain", small), metrics("medium_coeff", "plain", medium))
    }

    #[test]
    fn ours_stand_beside_the_papers() {
        let (small, medium) = two();
        let matrix = Matrix::of(&[("a", Some(&small)), ("unfinished", None), ("b", Some(&medium))]).unwrap();
        let sets: Vec<String> = matrix.tested.iter().map(title).collect();
        assert_eq!(sets, ["small_coeff, 1 var", "medium_coeff, 1 var"]);
        assert_eq!(matrix.rows.iter().map(|r| (r.run, r.title())).collect::<Vec<_>>()[1].0, 2);
        let cell = |row: usize, column: usize| {
            let cell = matrix.rows[row].entries[column].as_ref()?.full_proof.as_ref()?;
            Some((cell.ours?, cell.paper.as_ref()?.text, cell.is_lower()))
        };
        assert_eq!(cell(0, 0), Some((98.0, "95.3", false)));
        assert_eq!(cell(0, 1), Some((30.0, "33.4", true)));
        assert_eq!((cell(1, 0), cell(1, 1)), (None, Some((97.0, "93.6", false))));
    }

    #[test]
    fn the_grid_marks_what_is_lower() {
        let (small, medium) = two();
        let grid = Matrix::of(&[("a", Some(&small)), ("b", Some(&medium))]).unwrap().grid(Measure::FullProof);
        assert_eq!(grid.header, ["trained on", "small_coeff, 1 var", "medium_coeff, 1 var"]);
        assert_eq!(grid.rows[0], ["a: small_coeff, 1 var", "98.00 (95.3), n 1000", "30.00 ↓ (33.4), n 1000"]);
        assert_eq!(grid.rows[1], ["b: medium_coeff, 1 var", "–", "97.00 (93.6), n 1000"]);

        let mut matrix = Matrix::of(&[("a", Some(&small))]).unwrap();
        let cell = matrix.rows[0].entries[1].as_mut().unwrap().full_proof.as_mut().unwrap();
        cell.ours = Some(33.396);
        assert!(!cell.is_lower(), "33.40 is not below 33.4");
        cell.ours = Some(33.394);
        assert!(cell.is_lower());
    }

    #[test]
    fn the_csv_joins_with_the_papers() {
        let (small, medium) = two();
        let csv = Matrix::of(&[("a", Some(&small)), ("b, again", Some(&medium))]).unwrap().csv();
        let lines: Vec<&str> = csv.lines().collect();
        let keys = "train_vars,test_vars,train_config,test_config,setting,granularity,notation";
        assert!(lines[0].starts_with(keys) && polystep_record::paper::csv("OODcoeff").unwrap().starts_with(keys));
        let begin = "1,1,small_coeff,medium_coeff,plain,coarse,prefix,a,30.00,30.10,";
        assert!(lines[2].starts_with(begin) && lines[2].ends_with(",69.05"), "{}", lines[2]);
        assert!(lines[3].contains(",prefix,\"b, again\",97.00,"), "{}", lines[3]);
        assert_eq!(lines.len(), 4);
    }

    /// A name may hold anything, and a spreadsheet runs `=…`.
    #[test]
    fn names_in_the_csv_are_quoted_and_no_formula() {
        let (mut small, medium) = two();
        small.keys.config = "=HYPERLINK(\"http://x\")".into();
        let csv = Matrix::of(&[("=1+1", Some(&small)), ("b", Some(&medium))]).unwrap().csv();
        let line = csv.lines().nth(1).unwrap();
        let begin = "1,1,\"'=HYPERLINK(\"\"http://x\"\")\",small_coeff,plain,coarse,prefix,'=1+1,98.00,";
        assert!(line.starts_with(begin), "{line}");
    }

    #[test]
    fn one_number_is_no_matrix() {
        let (small, medium) = two();
        assert!(Matrix::of(&[("b", Some(&medium))]).is_none());
        assert!(Matrix::of(&[("a", Some(&small))]).is_some(), "two test sets");
        assert!(Matrix::of(&[("b", Some(&medium)), ("c", Some(&medium))]).is_some(), "two runs");
        assert!(Matrix::of(&[]).is_none());
    }

    #[test]
    fn one_shot_models_have_one_number() {
        let endpoint = metrics("small_coeff", "endpoint", vec![evaluation("small_coeff", 970), evaluation("x", 1)]);
        let matrix = Matrix::of(&[("e", Some(&endpoint))]).unwrap();
        assert_eq!(matrix.measures(), [Measure::FullProof]);
        let probe = metrics("add4", "arithmetic", vec![evaluation("add4", 990), evaluation("arithmetic", 500)]);
        let matrix = Matrix::of(&[("p", Some(&probe)), ("q", Some(&probe))]).unwrap();
        assert_eq!(matrix.tested.len(), 1, "the mixture has no number of its own");
        let cell = matrix.rows[0].entries[0].as_ref().unwrap().full_proof.clone().unwrap();
        assert_eq!((cell.column.name, cell.ours, cell.paper.unwrap().text), ("add4_acc", Some(99.0), "99"));
    }
}

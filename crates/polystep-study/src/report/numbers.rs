//! The numbers of a run's section: big ones, the table in the paper's columns, facts, errors by kind.
//!
//! Each carries its JSON pointer, with the run's place before it: `0/evaluations/0/greedy/stepwise/exact/percent`.

use serde::Serialize;

use super::{number, printed};
use crate::columns::{COLUMNS, Cell, Column, Unit, cells, pointer};
use crate::metrics::{Evaluation, Metrics};
use polystep_record::Proportion;
use polystep_record::Stop;

/// A number that stands in `metrics.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Number {
    /// As it is shown.
    pub text: String,
    /// `RUN/POINTER`, if it stands there.
    pub metric: Option<String>,
    /// In small type under it.
    pub small: Option<String>,
    /// `up` or `down` for a difference that the interval does not cover.
    pub sign: Option<&'static str>,
}

impl Number {
    /// A text that is in no document.
    pub fn text(text: impl Into<String>) -> Number {
        Number { text: text.into(), metric: None, small: None, sign: None }
    }

    /// A proportion at a pointer.
    pub fn proportion(p: &Proportion, metric: String) -> Number {
        let small = format!("{:.1}–{:.1}", p.lo, p.hi);
        Number { text: number(p.percent, Unit::Percent), metric: Some(metric), small: Some(small), sign: None }
    }
}

/// A big number at the top.
#[derive(Serialize)]
pub struct Figure {
    label: String,
    number: Number,
    paper: Option<String>,
}

/// A row of the table in the paper's columns.
#[derive(Serialize)]
pub struct TableRow {
    /// What it holds.
    pub label: String,
    /// `ours`, `symbolic`, `paper` or `difference`.
    pub class: &'static str,
    /// One for each column.
    pub cells: Vec<Number>,
}

/// A table in the paper's columns.
#[derive(Serialize)]
pub struct Table {
    /// Names of neighbouring columns, with how many.
    pub groups: Vec<(&'static str, usize)>,
    /// Headings.
    pub headings: Vec<String>,
    /// Rows.
    pub rows: Vec<TableRow>,
}

/// A fact: a label, its number, and what it means.
#[derive(Serialize)]
pub struct Fact {
    label: String,
    number: Number,
    note: String,
}

/// A row of the error table.
#[derive(Serialize)]
pub struct KindRow {
    kind: &'static str,
    rate: Number,
    counts: String,
    first: Option<Number>,
    first_width: f64,
    first_paper: Option<String>,
    total: Option<Number>,
    total_width: f64,
    total_paper: Option<String>,
}

/// An evaluation, and where it stands: of which run, at which place.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The run.
    pub run: usize,
    /// The place in its evaluations.
    pub at: usize,
    /// The evaluation.
    pub evaluation: &'a Evaluation,
}

impl Place<'_> {
    fn pointer(&self, rest: &str) -> String {
        format!("{}/evaluations/{}{rest}", self.run, self.at)
    }
}

/// `small_coeff, 2 variables`
pub fn set_name(evaluation: &Evaluation) -> String {
    let s = if evaluation.vars == 1 { "" } else { "s" };
    format!("{}, {} variable{s}", evaluation.config, evaluation.vars)
}

fn ours(place: Place<'_>, cell: &Cell) -> Number {
    let Some(value) = cell.ours else {
        return Number::text("–");
    };
    let metric = pointer(place.evaluation, cell.column.name).map(|p| place.pointer(&p));
    let small = cell.interval.map(|(lo, hi)| format!("{lo:.1}–{hi:.1}"));
    Number { text: number(value, cell.column.unit), metric, small, sign: None }
}

/// The numbers at the top.
pub fn figures(metrics: &Metrics, place: Place<'_>) -> Vec<Figure> {
    let names = [
        ("endpoint_acc", "Endpoint right"),
        ("full_proof_acc", "Full proofs right"),
        ("stepwise_acc", "Steps right"),
        ("add4_acc", "4-digit sums right"),
        ("add9_acc", "9-digit sums right"),
        ("mul4_acc", "4-digit products right"),
        ("mul9_acc", "9-digit products right"),
        ("top1_acc_beam5", "Steps right, beam 5"),
    ];
    let cells = cells(metrics, place.evaluation);
    let figure = |(name, label): (&str, &str)| {
        let cell = cells.iter().find(|c| c.column.name == name && c.ours.is_some())?;
        Some(Figure { label: label.to_owned(), number: ours(place, cell), paper: printed(cell) })
    };
    let mut figures: Vec<Figure> = names.into_iter().filter_map(figure).collect();
    if let Some(recursive) = &place.evaluation.recursive {
        let metric = place.pointer("/recursive/recursive_exact/percent");
        let number = Number::proportion(&recursive.recursive_exact, metric);
        figures.insert(figures.len().min(1), Figure { label: "Proofs right, alone".to_owned(), number, paper: None });
    }
    figures
}

/// The columns up to the errors, which have a table of their own.
fn main_columns(rows: &[Vec<Cell>]) -> Vec<Column> {
    let has = |c: &Column| rows.iter().flatten().any(|cell| cell.column == *c);
    COLUMNS.into_iter().filter(|c| !c.name.starts_with("err_") && has(c)).collect()
}

/// Neighbouring columns of one group.
pub fn groups(columns: &[Column]) -> Vec<(&'static str, usize)> {
    let mut groups: Vec<(&'static str, usize)> = Vec::new();
    for column in columns {
        match groups.last_mut() {
            Some((name, count)) if *name == column.group => *count += 1,
            _ => groups.push((column.group, 1)),
        }
    }
    groups
}

/// The columns' headings.
pub fn headings(columns: &[Column]) -> Vec<String> {
    columns.iter().map(|c| c.heading.to_owned()).collect()
}

/// Every test set, ours and the paper's.
pub fn table(run: usize, metrics: &Metrics) -> Table {
    let all: Vec<Vec<Cell>> = metrics.evaluations.iter().map(|e| cells(metrics, e)).collect();
    let columns = main_columns(&all);
    let several = all.len() > 1;
    let mut rows = Vec::new();
    for (at, (evaluation, cells)) in metrics.evaluations.iter().zip(&all).enumerate() {
        rows.extend(set_rows(Place { run, at, evaluation }, cells, &columns, several));
    }
    Table { groups: groups(&columns), headings: headings(&columns), rows }
}

fn set_rows(place: Place<'_>, cells: &[Cell], columns: &[Column], several: bool) -> Vec<TableRow> {
    let find = |c: &Column| cells.iter().find(|cell| cell.column == *c);
    let each = |text: &dyn Fn(&Cell) -> Option<Number>| -> Vec<Number> {
        columns.iter().map(|c| find(c).and_then(text).unwrap_or_else(|| Number::text(""))).collect()
    };
    let label = if several { set_name(place.evaluation) } else { "ours, exact".to_owned() };
    let mut rows = vec![TableRow { label, class: "ours", cells: each(&|c| Some(ours(place, c))) }];
    if cells.iter().any(|c| c.symbolic.is_some()) {
        let text = |c: &Cell| {
            let metric = pointer(place.evaluation, c.column.name).map(|p| place.pointer(&symbolic(&p)));
            Some(Number { metric, ..Number::text(number(c.symbolic?, c.column.unit)) })
        };
        rows.push(TableRow { label: "ours, symbolic".to_owned(), class: "symbolic", cells: each(&text) });
    }
    if cells.iter().any(|c| c.paper.is_some()) {
        rows.push(TableRow {
            label: "paper".to_owned(),
            class: "paper",
            cells: each(&|c| printed(c).map(Number::text)),
        });
        rows.push(TableRow { label: "difference".to_owned(), class: "difference", cells: each(&difference) });
    }
    rows
}

/// Where the symbolic counterpart of an exact number stands.
fn symbolic(pointer: &str) -> String {
    pointer.replace("/exact/", "/symbolic/").replace("/calibration/", "/calibration_symbolic/")
}

/// Ours minus the paper's; coloured only where the paper's number lies outside our interval.
fn difference(cell: &Cell) -> Option<Number> {
    if cell.column.unit == Unit::Count {
        return None;
    }
    let difference = cell.difference()?;
    let paper = cell.paper.as_ref()?.value;
    let outside = cell.interval.is_some_and(|(lo, hi)| paper < lo || paper > hi);
    let sign = outside.then_some(if difference > 0.0 { "up" } else { "down" });
    let text = match cell.column.unit {
        Unit::Fraction => format!("{difference:+.3}"),
        _ => format!("{difference:+.2}"),
    };
    Some(Number { text: text.replace('-', "−"), metric: None, small: None, sign })
}

/// What the paper does not report.
pub fn facts(place: Place<'_>) -> Vec<Fact> {
    let evaluation = place.evaluation;
    let mut facts = Vec::new();
    let mut push = |label: &str, number: Option<Number>, note: &str| {
        facts.extend(number.map(|number| Fact { label: label.to_owned(), number, note: note.to_owned() }));
    };
    let share =
        |p: Option<&Proportion>, at: &str| p.map(|p| Number::proportion(p, place.pointer(&format!("{at}/percent"))));
    let plain = |v: Option<f64>, at: &str, digits: usize| {
        v.map(|v| Number { metric: Some(place.pointer(at)), ..Number::text(format!("{v:.digits$}")) })
    };
    let recursive = evaluation.recursive.as_ref();
    push(
        "recursive, exact",
        share(recursive.map(|r| &r.recursive_exact), "/recursive/recursive_exact"),
        "its own output fed back: every state is the expected one",
    );
    push(
        "recursive, endpoint",
        share(recursive.map(|r| &r.recursive_end), "/recursive/recursive_end"),
        "its own output fed back: the endpoint is right",
    );
    let greedy = evaluation.greedy.as_ref();
    push("malformed", share(greedy.map(|g| &g.malformed), "/greedy/malformed"), "greedy outputs that cannot be read");
    push(
        "brackets exact",
        share(greedy.and_then(|g| g.raw_exact.as_ref()), "/greedy/raw_exact"),
        "calculator steps right before evaluation",
    );
    let lp1 = evaluation.beam_lp1.as_ref();
    push(
        "top-1, length-normalised",
        share(lp1.map(|b| &b.top1.exact), "/beam_lp1/top1/exact"),
        "the classic beam scoring",
    );
    push(
        "any of 5, length-normalised",
        share(lp1.map(|b| &b.any5.exact), "/beam_lp1/any5/exact"),
        "the classic beam scoring",
    );
    let calibration = evaluation.beam.as_ref().and_then(|b| b.calibration.as_ref());
    push(
        "AUROC",
        plain(calibration.and_then(|c| c.auroc), "/beam/calibration/auroc", 4),
        "margin as a score, right answers positive",
    );
    push(
        "AUPRC",
        plain(calibration.and_then(|c| c.auprc), "/beam/calibration/auprc", 4),
        "average precision of the margin",
    );
    let best = calibration.and_then(|c| c.best);
    push(
        "best threshold",
        plain(best.map(|b| b.test.threshold), "/beam/calibration/best/test/threshold", 2),
        "highest F1 on validation; the paper uses 5",
    );
    push(
        "F1 at the best threshold",
        plain(best.and_then(|b| b.test.f1), "/beam/calibration/best/test/f1", 4),
        "on test",
    );
    push(
        "calibration error",
        plain(calibration.and_then(|c| c.expected_error), "/beam/calibration/expected_error", 2),
        "percentage points between confidence and truth",
    );
    facts
}

/// Errors by kind of step.
pub fn errors(metrics: &Metrics, place: Place<'_>) -> Vec<KindRow> {
    let Some(greedy) = &place.evaluation.greedy else {
        return Vec::new();
    };
    let cells = cells(metrics, place.evaluation);
    let row = |(i, k): (usize, &polystep_record::metrics::KindErrors)| {
        let short_name = k.kind.name().trim_end_matches("step");
        let of_paper = |which: &str| {
            let name = format!("err_{which}_{short_name}");
            cells.iter().find(|c| c.column.name == name).and_then(printed)
        };
        let base = place.pointer(&format!("/greedy/errors/kinds/{i}"));
        let share = |p: &Option<Proportion>, which: &str| {
            p.as_ref().map(|p| Number::proportion(p, format!("{base}/{which}/percent")))
        };
        KindRow {
            kind: k.kind.name(),
            rate: Number::proportion(&k.rate, format!("{base}/rate/percent")),
            counts: format!("{} of {}", k.rate.count, k.rate.of),
            first: share(&k.first, "first"),
            first_width: k.first.map_or(0.0, |p| p.percent),
            first_paper: of_paper("first"),
            total: share(&k.total, "total"),
            total_width: k.total.map_or(0.0, |p| p.percent),
            total_paper: of_paper("total"),
        }
    };
    greedy.errors.kinds.iter().enumerate().map(row).collect()
}

/// How recursive proofs stopped.
pub fn stops(place: Place<'_>) -> Vec<(String, Number)> {
    let Some(recursive) = &place.evaluation.recursive else {
        return Vec::new();
    };
    let base = place.pointer("/recursive/stops");
    let one = |(i, s): (usize, &polystep_record::metrics::Stopped)| {
        (Stop::name(s.stop).to_owned(), Number::proportion(&s.proofs, format!("{base}/{i}/proofs/percent")))
    };
    recursive.stops.iter().enumerate().map(one).collect()
}

//! What the templates see of a run: texts that are ready to be written, nothing that has to be computed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::chart::short;
use super::compare::Comparison;
use super::curves::{self, Chart};
use super::failures::{Failure, failures};
use super::number;
use crate::columns::{COLUMNS, Cell, Column, Unit, cells, pointer};
use crate::compare::{Solved, grade};
use crate::interval::Proportion;
use crate::metrics::{Evaluation, Metrics};
use crate::predictions::{self, Prediction};
use crate::recursive::Stop;
use crate::run::{BEAM, GREEDY, RunFolder, set_folder};
use crate::score::Outcome;

/// The page.
#[derive(Serialize)]
pub struct Page {
    /// In the window's title.
    pub title: String,
    /// Side by side, if there are several.
    pub comparison: Option<Comparison>,
    /// One section each.
    pub runs: Vec<RunView>,
}

impl Page {
    /// Reads what is needed of the predictions and prepares everything.
    pub fn of(runs: &[RunFolder]) -> Page {
        let graded: Vec<Graded> = runs.iter().map(Graded::of).collect();
        let title = match runs {
            [run] => run.name.clone(),
            runs => format!("{} runs", runs.len()),
        };
        let comparison = (runs.len() > 1).then(|| Comparison::of(runs, &graded));
        let runs = runs.iter().zip(&graded).enumerate().map(|(i, (run, graded))| RunView::of(i, run, graded)).collect();
        Page { title, comparison, runs }
    }
}

/// The predictions of a run on the set it was first evaluated on.
pub struct Graded {
    /// Greedy if there are any, else the beam's.
    pub predictions: Vec<(Prediction, Outcome)>,
    /// Which file they come from.
    pub file: String,
    /// Why there are none.
    pub missing: Option<String>,
    /// Which proofs are solved; nothing without greedy predictions of whole proofs.
    pub solved: Option<Solved>,
}

impl Graded {
    fn of(run: &RunFolder) -> Graded {
        let mut graded = Graded { predictions: Vec::new(), file: String::new(), missing: None, solved: None };
        let keys = run.keys();
        let first = run.metrics.as_ref().and_then(|m| m.evaluations.first());
        let (config, vars) = first.map_or((keys.config.as_str(), keys.vars), |e| (e.config.as_str(), e.vars));
        let folder = set_folder(&run.path, config, vars);
        let Some(name) = [GREEDY, BEAM].into_iter().find(|name| folder.join(name).exists()) else {
            let place = folder.strip_prefix(&run.path).unwrap_or(&folder).display();
            graded.missing = Some(format!("There are no predictions in {place}, so failures cannot be listed."));
            return graded;
        };
        let path = folder.join(name);
        graded.file = path.strip_prefix(&run.path).unwrap_or(&path).display().to_string();
        match predictions::open(&path).and_then(|p| grade(p, &run.scoring())) {
            Ok(all) => graded.predictions = all,
            Err(error) => graded.missing = Some(format!("{error}.")),
        }
        if name == GREEDY && graded.missing.is_none() {
            graded.solved = Solved::of(&graded.predictions).ok();
        }
        graded
    }
}

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
    pub headings: Vec<&'static str>,
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

/// One run.
#[derive(Serialize)]
pub struct RunView {
    index: usize,
    name: String,
    title: String,
    notes: Vec<String>,
    provenance: Vec<(String, String)>,
    evaluated: bool,
    sets: Vec<String>,
    figures: Vec<Figure>,
    table: Option<Table>,
    facts: Vec<Fact>,
    learning: Vec<Chart>,
    errors: Vec<KindRow>,
    wrong: Option<(u64, u64)>,
    calibration: Vec<Chart>,
    slices: Vec<Chart>,
    stops: Vec<(String, Number)>,
    failures: Vec<Failure>,
    failures_total: usize,
    failures_missing: Option<String>,
    failures_file: String,
    failure_kinds: Vec<(String, usize)>,
    failure_classes: Vec<(String, usize)>,
    config: Vec<(String, Vec<(String, String)>)>,
}

impl RunView {
    fn of(index: usize, run: &RunFolder, graded: &Graded) -> RunView {
        let metrics = run.metrics.as_ref();
        let home = metrics.and_then(|m| m.evaluations.first());
        let (list, failures_total) = failures(&graded.predictions, &run.scoring(), run.granularity());
        let greedy = home.and_then(|e| e.greedy.as_ref());
        let calibration = home.and_then(|e| e.beam.as_ref()).and_then(|b| b.calibration.as_ref());
        let slices = greedy.map(|g| &g.slices);
        let chart = |title: &str, x: &str, of: Option<&Vec<crate::slices::Slice>>| curves::slices(title, x, of?);
        RunView {
            index,
            name: run.name.clone(),
            title: run.keys().title(),
            notes: run.notes.clone(),
            provenance: provenance(metrics),
            evaluated: home.is_some(),
            sets: metrics.map_or_else(Vec::new, |m| m.evaluations.iter().map(set_name).collect()),
            figures: metrics.zip(home).map_or_else(Vec::new, |(m, e)| figures(index, m, e)),
            table: metrics.filter(|m| !m.evaluations.is_empty()).map(|m| table(index, m)),
            facts: home.map_or_else(Vec::new, |e| facts(index, e)),
            learning: curves::learning(&run.log),
            errors: metrics.zip(home).map_or_else(Vec::new, |(m, e)| errors(index, m, e)),
            wrong: greedy.map(|g| (g.errors.wrong_proofs, g.errors.wrong_steps)),
            calibration: calibration.map_or_else(Vec::new, curves::calibration),
            slices: [
                chart("By number of terms", "terms of the input", slices.map(|s| &s.terms)),
                chart("By size of coefficients", "largest coefficient to be written", slices.map(|s| &s.coefficient)),
                chart("By length", "tokens of the input", slices.map(|s| &s.length)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            stops: home.map_or_else(Vec::new, |e| stops(index, e)),
            failure_kinds: counted(list.iter().map(|f| f.kind)),
            failure_classes: counted(list.iter().map(|f| f.class)),
            failures: list,
            failures_total,
            failures_missing: graded.missing.clone(),
            failures_file: graded.file.clone(),
            config: run.config.as_ref().map_or_else(Vec::new, config),
        }
    }
}

fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().map(|(name, n)| (name.to_owned(), n)).collect()
}

fn set_name(evaluation: &Evaluation) -> String {
    let s = if evaluation.vars == 1 { "" } else { "s" };
    format!("{}, {} variable{s}", evaluation.config, evaluation.vars)
}

fn provenance(metrics: Option<&Metrics>) -> Vec<(String, String)> {
    let Some(run) = metrics.map(|m| &m.run) else { return Vec::new() };
    let time = |s: f64| match s {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    };
    let facts = [
        ("recipe", run.recipe.clone()),
        ("training examples", run.examples.map(|n| short(n as f64))),
        ("training time", run.seconds.map(time)),
        ("parameters", run.parameters.map(|n| short(n as f64))),
        ("seed", run.seed.map(|s| s.to_string())),
        ("device", run.device.clone()),
        ("commit", run.commit.as_ref().map(|c| c.chars().take(10).collect())),
        ("polystep", run.version.clone()),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The pointer of a column's number in the document of run `index`.
fn metric(index: usize, at: usize, evaluation: &Evaluation, column: &str) -> Option<String> {
    pointer(evaluation, column).map(|p| format!("{index}/evaluations/{at}{p}"))
}

fn ours(index: usize, at: usize, evaluation: &Evaluation, cell: &Cell) -> Number {
    let Some(value) = cell.ours else { return Number::text("–") };
    let counts = || format!("{index}/examples");
    let metric = metric(index, at, evaluation, cell.column.name).or_else(|| (cell.column.unit == Unit::Count).then(counts));
    let small = cell.interval.map(|(lo, hi)| format!("{lo:.1}–{hi:.1}"));
    Number { text: number(value, cell.column.unit), metric, small, sign: None }
}

fn paper(cell: &Cell) -> Option<String> {
    let printed = cell.paper.as_ref()?;
    Some(if cell.column.unit == Unit::Count { short(printed.value) } else { printed.text.to_owned() })
}

fn figures(index: usize, metrics: &Metrics, evaluation: &Evaluation) -> Vec<Figure> {
    let names = [
        ("endpoint_acc", "Endpoint right"),
        ("full_proof_acc", "Full proofs right"),
        ("stepwise_acc", "Steps right"),
        ("top1_acc_beam5", "Steps right, beam 5"),
    ];
    let cells = cells(metrics, evaluation);
    let figure = |(name, label): (&str, &str)| {
        let cell = cells.iter().find(|c| c.column.name == name && c.ours.is_some())?;
        Some(Figure { label: label.to_owned(), number: ours(index, 0, evaluation, cell), paper: paper(cell) })
    };
    let mut figures: Vec<Figure> = names.into_iter().filter_map(figure).collect();
    if let Some(recursive) = &evaluation.recursive {
        let place = format!("{index}/evaluations/0/recursive/recursive_exact/percent");
        let number = Number::proportion(&recursive.recursive_exact, place);
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

fn table(index: usize, metrics: &Metrics) -> Table {
    let all: Vec<Vec<Cell>> = metrics.evaluations.iter().map(|e| cells(metrics, e)).collect();
    let columns = main_columns(&all);
    let several = all.len() > 1;
    let mut rows = Vec::new();
    for (at, (evaluation, cells)) in metrics.evaluations.iter().zip(&all).enumerate() {
        rows.extend(set_rows(index, at, evaluation, cells, &columns, several));
    }
    Table { groups: groups(&columns), headings: columns.iter().map(|c| c.heading).collect(), rows }
}

fn set_rows(index: usize, at: usize, evaluation: &Evaluation, cells: &[Cell], columns: &[Column], several: bool) -> Vec<TableRow> {
    let find = |c: &Column| cells.iter().find(|cell| cell.column == *c);
    let each = |text: &dyn Fn(&Cell) -> Option<Number>| -> Vec<Number> {
        columns.iter().map(|c| find(c).and_then(text).unwrap_or_else(|| Number::text(""))).collect()
    };
    let label = if several { set_name(evaluation) } else { "ours, exact".to_owned() };
    let mut rows = vec![TableRow { label, class: "ours", cells: each(&|c| Some(ours(index, at, evaluation, c))) }];
    if cells.iter().any(|c| c.symbolic.is_some()) {
        let text = |c: &Cell| Some(Number::text(number(c.symbolic?, c.column.unit)));
        rows.push(TableRow { label: "ours, symbolic".to_owned(), class: "symbolic", cells: each(&text) });
    }
    if cells.iter().any(|c| c.paper.is_some()) {
        rows.push(TableRow { label: "paper".to_owned(), class: "paper", cells: each(&|c| paper(c).map(Number::text)) });
        rows.push(TableRow { label: "difference".to_owned(), class: "difference", cells: each(&difference) });
    }
    rows
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

fn facts(index: usize, evaluation: &Evaluation) -> Vec<Fact> {
    let mut facts = Vec::new();
    let base = format!("{index}/evaluations/0");
    let mut push = |label: &str, number: Option<Number>, note: &str| {
        facts.extend(number.map(|number| Fact { label: label.to_owned(), number, note: note.to_owned() }));
    };
    let share = |p: Option<&Proportion>, place: &str| p.map(|p| Number::proportion(p, format!("{base}{place}/percent")));
    let plain = |v: Option<f64>, place: &str, digits: usize| {
        v.map(|v| Number { metric: Some(format!("{base}{place}")), ..Number::text(format!("{v:.digits$}")) })
    };
    let recursive = evaluation.recursive.as_ref();
    push("recursive, exact", share(recursive.map(|r| &r.recursive_exact), "/recursive/recursive_exact"), "its own output fed back: every state is the expected one");
    push("recursive, endpoint", share(recursive.map(|r| &r.recursive_end), "/recursive/recursive_end"), "its own output fed back: the endpoint is right");
    let greedy = evaluation.greedy.as_ref();
    push("malformed", share(greedy.map(|g| &g.malformed), "/greedy/malformed"), "greedy outputs that cannot be read");
    push("brackets exact", share(greedy.and_then(|g| g.raw_exact.as_ref()), "/greedy/raw_exact"), "calculator steps right before evaluation");
    let lp1 = evaluation.beam_lp1.as_ref();
    push("top-1, length-normalised", share(lp1.map(|b| &b.top1.exact), "/beam_lp1/top1/exact"), "the classic beam scoring");
    push("any of 5, length-normalised", share(lp1.map(|b| &b.any5.exact), "/beam_lp1/any5/exact"), "the classic beam scoring");
    let calibration = evaluation.beam.as_ref().and_then(|b| b.calibration.as_ref());
    push("AUROC", plain(calibration.and_then(|c| c.auroc), "/beam/calibration/auroc", 4), "margin as a score, right answers positive");
    push("AUPRC", plain(calibration.and_then(|c| c.auprc), "/beam/calibration/auprc", 4), "average precision of the margin");
    let best = calibration.and_then(|c| c.best);
    push("best threshold", plain(best.map(|b| b.test.threshold), "/beam/calibration/best/test/threshold", 2), "highest F1 on validation; the paper uses 5");
    push("F1 at the best threshold", plain(best.and_then(|b| b.test.f1), "/beam/calibration/best/test/f1", 4), "on test");
    push("calibration error", plain(calibration.and_then(|c| c.expected_error), "/beam/calibration/expected_error", 2), "percentage points between confidence and truth");
    facts
}

fn errors(index: usize, metrics: &Metrics, evaluation: &Evaluation) -> Vec<KindRow> {
    let Some(greedy) = &evaluation.greedy else { return Vec::new() };
    let cells = cells(metrics, evaluation);
    let row = |(i, k): (usize, &crate::errors::KindErrors)| {
        let short_name = k.kind.name().trim_end_matches("step");
        let printed = |which: &str| {
            let name = format!("err_{which}_{short_name}");
            cells.iter().find(|c| c.column.name == name).and_then(paper)
        };
        let base = format!("{index}/evaluations/0/greedy/errors/kinds/{i}");
        let share = |p: &Option<Proportion>, which: &str| p.as_ref().map(|p| Number::proportion(p, format!("{base}/{which}/percent")));
        KindRow {
            kind: k.kind.name(),
            rate: Number::proportion(&k.rate, format!("{base}/rate/percent")),
            counts: format!("{} of {}", k.rate.count, k.rate.of),
            first: share(&k.first, "first"),
            first_width: k.first.map_or(0.0, |p| p.percent),
            first_paper: printed("first"),
            total: share(&k.total, "total"),
            total_width: k.total.map_or(0.0, |p| p.percent),
            total_paper: printed("total"),
        }
    };
    greedy.errors.kinds.iter().enumerate().map(row).collect()
}

fn stops(index: usize, evaluation: &Evaluation) -> Vec<(String, Number)> {
    let Some(recursive) = &evaluation.recursive else { return Vec::new() };
    let base = format!("{index}/evaluations/0/recursive/stops");
    let one = |(i, s): (usize, &crate::recursive::Stopped)| {
        (Stop::name(s.stop).to_owned(), Number::proportion(&s.proofs, format!("{base}/{i}/proofs/percent")))
    };
    recursive.stops.iter().enumerate().map(one).collect()
}

/// The tables of a configuration, as text.
fn config(config: &toml::Table) -> Vec<(String, Vec<(String, String)>)> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    let pairs = |table: &toml::Table| table.iter().map(|(k, v)| (k.clone(), text(v))).collect::<Vec<_>>();
    let table = |(name, value): (&String, &toml::Value)| match value {
        toml::Value::Table(inner) => (name.clone(), pairs(inner)),
        other => (String::new(), vec![(name.clone(), text(other))]),
    };
    config.iter().map(table).collect()
}

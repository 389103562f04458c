//! What the templates see of a run: texts that are ready to be written, nothing that has to be computed.

use std::collections::BTreeMap;
use std::path::Path;

use polystep_core::Setting;
use serde::Serialize;

use super::compare::Comparison;
use super::curriculum::CurriculumView;
use super::curves;
use super::failures::{Failure, failures, label};
use super::matrix;
use super::numbers::{Fact, Figure, KindRow, Number, Place, Table, errors, facts, figures, set_name, stops, table};
use crate::chart::{Chart, short};
use crate::compare::{Solved, grade};
use crate::metrics::Metrics;
use crate::run::StoredRun;
use crate::score::Outcome;
use polystep_record::{Decoding, JsonLines, Prediction, TestSet};

/// The page.
#[derive(Serialize)]
pub struct Page {
    /// In the window's title.
    pub title: String,
    /// Side by side, if there are several.
    pub comparison: Option<Comparison>,
    /// Trained × tested, if there are several numbers.
    pub matrix: Option<Table>,
    /// One section each.
    pub runs: Vec<RunView>,
}

impl Page {
    /// Reads what is needed of the predictions and prepares everything.
    pub fn of(runs: &[StoredRun]) -> Page {
        let graded: Vec<Graded> = runs.iter().map(Graded::of).collect();
        let title = match runs {
            [run] => run.name.clone(),
            runs => format!("{} runs", runs.len()),
        };
        let matrix = matrix::of(runs).map(|m| matrix::table(&m, runs));
        let comparison = (runs.len() > 1).then(|| Comparison::of(runs, &graded));
        let runs = runs.iter().zip(&graded).enumerate().map(|(i, (run, graded))| RunView::of(i, run, graded)).collect();
        Page { title, comparison, matrix, runs }
    }
}

/// The predictions of a run on its own space, or on the first set it was tested on.
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
    fn of(run: &StoredRun) -> Graded {
        let mut graded = Graded { predictions: Vec::new(), file: String::new(), missing: None, solved: None };
        let keys = &run.keys;
        let first = run.metrics.as_ref().and_then(|m| m.home()).map(|h| h.1);
        let (config, vars) = first.map_or((keys.config.as_str(), keys.vars), |e| (e.config.as_str(), e.vars));
        let folder = run.folder.set(&TestSet::new(config, vars));
        let inside = |path: &Path| path.strip_prefix(run.folder.path()).unwrap_or(path).display().to_string();
        let found = [Decoding::Greedy, Decoding::Beam].into_iter().find(|way| folder.answers(*way).exists());
        let Some(decoding) = found else {
            let place = inside(folder.path());
            graded.missing = Some(format!("There are no predictions in {place}, so failures cannot be listed."));
            return graded;
        };
        let path = folder.answers(decoding);
        graded.file = inside(&path);
        let writing = run.writing;
        match JsonLines::open(&path).and_then(|p| grade(p, &writing)) {
            Ok(all) => graded.predictions = all,
            Err(error) => graded.missing = Some(format!("{error}.")),
        }
        if decoding == Decoding::Greedy && graded.missing.is_none() {
            graded.solved = Solved::of(&graded.predictions, &writing).ok();
        }
        graded
    }
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
    one_shot: bool,
    tested: Option<String>,
    sets: Vec<String>,
    figures: Vec<Figure>,
    table: Option<Table>,
    facts: Vec<Fact>,
    learning: Vec<Chart>,
    curriculum: Option<CurriculumView>,
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
    failure_classes: Vec<(String, &'static str, usize)>,
    config: Vec<(String, Vec<(String, String)>)>,
}

impl RunView {
    fn of(index: usize, run: &StoredRun, graded: &Graded) -> RunView {
        let metrics = run.metrics.as_ref();
        let place = metrics.and_then(|m| m.home()).map(|(at, evaluation)| Place { run: index, at, evaluation });
        let home = place.map(|p| p.evaluation);
        let (list, failures_total) = failures(&graded.predictions, &run.writing);
        let greedy = home.and_then(|e| e.greedy.as_ref());
        let calibration = home.and_then(|e| e.beam.as_ref()).and_then(|b| b.calibration.as_ref());
        let slices = greedy.map(|g| &g.slices);
        let chart =
            |title: &str, x: &str, of: Option<&Vec<polystep_record::metrics::Slice>>| curves::slices(title, x, of?);
        RunView {
            index,
            name: run.name.clone(),
            title: run.keys.title(),
            notes: run.notes.clone(),
            provenance: provenance(metrics),
            evaluated: home.is_some(),
            one_shot: matches!(run.writing.setting, Setting::Endpoint | Setting::Arithmetic),
            tested: metrics.and_then(tested),
            sets: metrics.map_or_else(Vec::new, |m| m.evaluations.iter().map(set_name).collect()),
            figures: metrics.zip(place).map_or_else(Vec::new, |(m, p)| figures(m, p)),
            table: metrics.filter(|m| !m.evaluations.is_empty()).map(|m| table(index, m)),
            facts: place.map_or_else(Vec::new, facts),
            learning: curves::learning(&run.log),
            curriculum: CurriculumView::of(&run.log),
            errors: metrics.zip(place).map_or_else(Vec::new, |(m, p)| errors(m, p)),
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
            stops: place.map_or_else(Vec::new, stops),
            failure_kinds: counted(list.iter().map(|f| f.kind)),
            failure_classes: counted(list.iter().map(|f| f.class))
                .into_iter()
                .map(|(c, n)| (c.clone(), label(&c), n))
                .collect(),
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

fn provenance(metrics: Option<&Metrics>) -> Vec<(String, String)> {
    let Some(run) = metrics.map(|m| &m.run) else {
        return Vec::new();
    };
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

/// What training measured at its end, where nothing else was.
fn tested(metrics: &Metrics) -> Option<String> {
    let share = |key: &str| metrics.other.get("test")?.get(key)?.get("share")?.as_f64();
    let (full, steps) = (100.0 * share("full_proof")?, 100.0 * share("stepwise")?);
    let raw = metrics.other.get("test").and_then(|test| test.get("raw")?.as_bool()).unwrap_or(false);
    let exact = if raw { "exact in its raw brackets" } else { "exact" };
    Some(format!(
        "Tested once when its training ended, teacher-forced and {exact}: {full:.2} % of proofs, {steps:.2} % of steps."
    ))
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

//! What the templates see of a run: texts that are ready to be written.

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::context;
use minijinja::value::{Serde, Value};
use polystep_core::{Setting, Writing};

use super::failures::{failures, label};
use super::numbers::{self, Measured, set_name};
use crate::compare::Solved;
use crate::digits::{DigitErrors, DigitRow, digit_errors};
use crate::metrics::Metrics;
use crate::number::short;
use crate::plots::curriculum::Curriculum;
use crate::plots::run as charts;
use crate::run::StoredRun;
use crate::score::{ScoredStep, grade};
use polystep_record::{ClassLine, Decoding, LogLine, Prediction, TestSet};

/// The predictions of a run on its own space, or on the first set it was tested on, with their outcomes.
#[derive(Default)]
pub struct GradedRun {
    /// The greedy ones if there are any, else those of the beam search.
    pub predictions: Vec<(Prediction, ScoredStep)>,
    /// The file they come from.
    pub file: String,
    /// Why there are none.
    pub missing: Option<String>,
    /// Which proofs are solved; `None` without greedy predictions of whole proofs.
    pub solved: Option<Solved>,
}

impl GradedRun {
    /// Reads and scores the predictions.
    pub fn of(run: &StoredRun) -> GradedRun {
        let keys = &run.keys;
        let first = run.metrics.as_ref().and_then(|m| m.home()).map(|h| h.1);
        let (config, vars) = first.map_or((keys.config.as_str(), keys.vars), |e| (e.config.as_str(), e.vars));
        let folder = run.folder.set(&TestSet::new(config, vars));
        let inside = |path: &Path| path.strip_prefix(run.folder.path()).unwrap_or(path).display().to_string();
        let found = [Decoding::Greedy, Decoding::Beam].into_iter().find(|way| folder.answers(*way).exists());
        let Some(decoding) = found else {
            let place = inside(folder.path());
            let missing = Some(format!("There are no predictions in {place}, so failures cannot be listed."));
            return GradedRun { missing, ..GradedRun::default() };
        };
        let (file, writing) = (inside(&folder.answers(decoding)), run.writing);
        match grade(&folder, decoding, &writing) {
            Ok(graded) => {
                let predictions = graded.unwrap_or_default();
                let solved = Solved::of(&predictions, &writing).ok().filter(|_| decoding == Decoding::Greedy);
                GradedRun { predictions, file, missing: None, solved }
            }
            Err(error) => GradedRun { file, missing: Some(format!("{error}.")), ..GradedRun::default() },
        }
    }
}

/// The section of the run at a place in the list of runs.
pub fn section(index: usize, run: &StoredRun, graded: &GradedRun) -> Value {
    let metrics = run.metrics.as_ref();
    let home = metrics.and_then(|m| Some(Measured::new(index, m.home()?.0, m)));
    let home = home.as_ref();
    let (list, failures_total) = failures(&graded.predictions, &run.writing);
    let greedy = home.and_then(|m| m.evaluation().greedy.as_ref());
    let calibration = home.and_then(|m| m.evaluation().beam.as_ref()?.calibration.as_ref());
    let slices = greedy.into_iter().flat_map(|g| {
        [
            charts::slices("By number of terms", "terms of the input", &g.slices.terms),
            charts::slices("By size of coefficients", "largest coefficient to be written", &g.slices.coefficient),
            charts::slices("By length", "tokens of the input", &g.slices.length),
        ]
    });
    let slices = slices.flatten();
    let classes = counted(list.iter().map(|f| f.class)).into_iter().map(|(class, n)| (class, label(class), n));
    context! {
        index,
        name => &run.name,
        title => run.keys.title(),
        notes => Serde(&run.notes),
        provenance => Serde(metrics.map(provenance)),
        evaluated => home.is_some(),
        one_shot => matches!(run.writing.setting, Setting::Endpoint | Setting::Arithmetic),
        tested => metrics.and_then(tested),
        sets => metrics.map_or_else(Vec::new, |m| m.evaluations.iter().map(set_name).collect()),
        home => home.map(|m| set_name(m.evaluation())),
        figures => home.map(numbers::figures),
        table => Serde(metrics.filter(|m| !m.evaluations.is_empty()).map(|m| numbers::table(index, m))),
        facts => home.map(numbers::facts),
        learning => Serde(charts::learning(&run.log, run.valid_proofs())),
        curriculum => Serde(Curriculum::of(&run.log)),
        mix => Serde(mix(&run.log)),
        errors => home.map(numbers::errors),
        classes => home.map(numbers::classes),
        digits => digits(graded, &run.writing),
        wrong => Serde(greedy.map(|g| (g.errors.wrong_proofs, g.errors.wrong_steps))),
        calibration => Serde(calibration.map(charts::calibration)),
        slices => Serde(slices.collect::<Vec<_>>()),
        stops => Serde(home.map(numbers::stops)),
        assisted => Serde(home.map(numbers::assisted)),
        failure_kinds => Serde(counted(list.iter().map(|f| f.kind))),
        failure_classes => Serde(classes.collect::<Vec<_>>()),
        failures => Serde(&list),
        failures_total,
        failures_missing => graded.missing.clone(),
        failures_file => &graded.file,
        config => Serde(run.config.as_ref().map(config)),
    }
}

fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// What was trained on, by class, at the end of the log; nothing if the run did not count classes.
fn mix(log: &[LogLine]) -> Option<Vec<[String; 5]>> {
    let line = log.iter().rev().find_map(|line| if let LogLine::Mix(line) = line { Some(line) } else { None })?;
    let row = |class: &ClassLine| {
        let exam = class.accuracy.map_or("–".into(), |accuracy| format!("{:.1}", 100.0 * accuracy));
        let (share, weight) = (format!("{:.2}", 100.0 * class.share), format!("{:.3}", class.weight));
        [class.class.to_string(), short(class.examples as f64), share, weight, exam]
    };
    Some(line.classes.iter().map(row).collect())
}

/// The account of wrong digits, where any step is wrong.
fn digits(graded: &GradedRun, writing: &Writing) -> Option<Value> {
    let account = digit_errors(&graded.predictions, writing).filter(|account| account.steps > 0)?;
    let rows = |rows: &[DigitRow]| -> Vec<(&'static str, String, String)> {
        rows.iter()
            .map(|r| (r.label, format!("{} of {}", r.wrong.count, r.wrong.of), format!("{:.2}", r.wrong.percent)))
            .collect()
    };
    let DigitErrors { steps, unreadable, other_form, coefficients, single, other_length, .. } = account;
    let tables = [
        ("coefficient by its summands", rows(&account.by_summands)),
        ("computed coefficient by its place", rows(&account.by_place)),
        ("digit of a computed coefficient", rows(&account.by_digit)),
    ];
    Some(context! { steps, unreadable, other_form, coefficients, single, other_length, tables => Serde(tables) })
}

fn provenance(metrics: &Metrics) -> Vec<(&'static str, String)> {
    let run = &metrics.run;
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
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// What training measured at its end. It is shown where nothing else was measured.
fn tested(metrics: &Metrics) -> Option<String> {
    let test = metrics.test()?;
    let [full, steps] = [test.full_proof, test.stepwise].map(|p| format!("{:.2} % of {}", p.percent, p.of));
    let exact = if test.raw { "exact in their raw brackets" } else { "exact" };
    Some(format!(
        "When its training ended, the model was tested once, teacher-forced: {full} proofs and {steps} steps are {exact}."
    ))
}

/// The tables of a configuration, as text.
fn config(config: &toml::Table) -> Vec<(String, Vec<(String, String)>)> {
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs = |table: &toml::Table| table.iter().map(|(k, v)| (k.clone(), text(v))).collect();
    let table = |(name, value): (&String, &toml::Value)| match value {
        toml::Value::Table(inner) => (name.clone(), pairs(inner)),
        other => (String::new(), vec![(name.clone(), text(other))]),
    };
    config.iter().map(table).collect()
}

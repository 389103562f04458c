//! The paper's columns, filled with our numbers, the paper's beside them.
//!
//! One list decides names, order and headings for the report, the Markdown and LaTeX tables and the ledger.

use polystep_core::StepKind;
use polystep_core::arithmetic::Drill;
use serde::Serialize;

use crate::metrics::{Evaluation, Metrics};
use polystep_record::{PaperSetting, Proportion};

/// How a column's numbers are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 97.25
    Percent,
    /// 0.98
    Fraction,
    /// 7.1M
    Count,
}

/// A column of the paper's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Column {
    /// The name in the CSVs and in the ledger.
    pub name: &'static str,
    /// What several columns have in common.
    pub group: &'static str,
    /// The heading.
    pub heading: &'static str,
    /// How it is written.
    pub unit: Unit,
}

const fn column(name: &'static str, group: &'static str, heading: &'static str, unit: Unit) -> Column {
    Column { name, group, heading, unit }
}

/// Every column, in the paper's order.
pub const COLUMNS: [Column; 25] = [
    column("equation_size_estimate", "Size", "Equations", Unit::Count),
    column("endpoint_size_estimate", "Size", "Endpoints", Unit::Count),
    column("endpoint_train_examples", "Endpoint", "#EE", Unit::Count),
    column("endpoint_acc", "Endpoint", "Accuracy", Unit::Percent),
    column("train_examples", "Training", "#Train", Unit::Count),
    column("full_proof_acc", "Greedy", "Full proof", Unit::Percent),
    column("stepwise_acc", "Greedy", "Stepwise", Unit::Percent),
    column("top1_acc_beam5", "Beam 5", "Top-1", Unit::Percent),
    column("beam5_acc", "Beam 5", "Any of 5", Unit::Percent),
    column("sure_rate", "Calibration", "Sure rate", Unit::Percent),
    column("precision", "Calibration", "P", Unit::Percent),
    column("recall", "Calibration", "R", Unit::Percent),
    column("f1", "Calibration", "F1", Unit::Fraction),
    column("err_first_fac", "First error", "fac", Unit::Percent),
    column("err_first_mul", "First error", "mul", Unit::Percent),
    column("err_first_sum", "First error", "sum", Unit::Percent),
    column("err_first_mark", "First error", "mark", Unit::Percent),
    column("err_total_fac", "All errors", "fac", Unit::Percent),
    column("err_total_mul", "All errors", "mul", Unit::Percent),
    column("err_total_sum", "All errors", "sum", Unit::Percent),
    column("err_total_mark", "All errors", "mark", Unit::Percent),
    column("add4_acc", ARITHMETIC, "4-digit sums", Unit::Percent),
    column("add9_acc", ARITHMETIC, "9-digit sums", Unit::Percent),
    column("mul4_acc", ARITHMETIC, "4-digit products", Unit::Percent),
    column("mul9_acc", ARITHMETIC, "9-digit products", Unit::Percent),
];

/// The group of the probe's columns, which no other experiment has.
const ARITHMETIC: &str = "Arithmetic";

impl Column {
    /// Whether a higher number is better. A share of errors or a number of examples is neither good nor bad.
    pub fn more_is_better(self) -> bool {
        self.unit != Unit::Count && !self.name.starts_with("err_")
    }
}

/// Where a column's number stands in an evaluation of `metrics.json`, as a JSON pointer; counts stand at the top.
pub fn pointer(evaluation: &Evaluation, column: &str) -> Option<String> {
    let kind = |kind: StepKind| evaluation.greedy.as_ref()?.errors.kinds.iter().position(|k| k.kind == kind);
    if let Some(rest) = column.strip_prefix("err_") {
        let (which, name) = rest.split_once('_')?;
        let kind = kind(match name {
            "fac" => StepKind::Facstep,
            "mul" => StepKind::Mulstep,
            "sum" => StepKind::Sumstep,
            _ => StepKind::Markstep,
        })?;
        return Some(format!("/greedy/errors/kinds/{kind}/{which}/percent"));
    }
    if let Some(kind) = exercises(column) {
        return Some(format!("/greedy/by_kind/{kind}/percent"));
    }
    let place = match column {
        "endpoint_acc" | "full_proof_acc" => "/greedy/full_proof/exact/percent",
        "stepwise_acc" => "/greedy/stepwise/exact/percent",
        "top1_acc_beam5" => "/beam/top1/exact/percent",
        "beam5_acc" => "/beam/any5/exact/percent",
        "sure_rate" => "/beam/calibration/sure_rate/percent",
        "precision" => "/beam/calibration/precision/percent",
        "recall" => "/beam/calibration/recall/percent",
        "f1" => "/beam/calibration/f1",
        _ => return None,
    };
    Some(place.to_owned())
}

/// Where the symbolic number of a column stands, if it has one.
pub fn symbolic_pointer(column: &str) -> Option<String> {
    let place = match column {
        "endpoint_acc" | "full_proof_acc" => "/greedy/full_proof/symbolic/percent",
        "stepwise_acc" => "/greedy/stepwise/symbolic/percent",
        "top1_acc_beam5" => "/beam/top1/symbolic/percent",
        "beam5_acc" => "/beam/any5/symbolic/percent",
        "precision" => "/beam/calibration_symbolic/precision/percent",
        "recall" => "/beam/calibration_symbolic/recall/percent",
        "f1" => "/beam/calibration_symbolic/f1",
        _ => return None,
    };
    Some(place.to_owned())
}

/// The probe's kind of exercise that a column is about.
fn exercises(column: &str) -> Option<&'static str> {
    let kind = column.strip_suffix("_acc")?;
    Drill::named(kind).map(Drill::key)
}

pub(crate) type Value = (f64, Option<(f64, f64)>);

/// Ours with its interval, and ours by the symbolic test.
pub(crate) fn value(metrics: &Metrics, evaluation: &Evaluation, column: &str) -> (Option<Value>, Option<f64>) {
    let proportion = |p: Option<Proportion>| p.map(|p| (p.percent, Some((p.lo, p.hi))));
    let plain = |v: Option<f64>| (v.map(|v| (v, None)), None);
    let endpoint = metrics.keys.is(PaperSetting::Endpoint);
    let proofs = !endpoint && !metrics.keys.is(PaperSetting::Arithmetic);
    let examples = metrics.run.examples.map(|n| n as f64);
    let greedy = evaluation.greedy.as_ref();
    let beam = evaluation.beam.as_ref();
    let sure = beam.and_then(|b| b.calibration.as_ref()).map(|c| c.sure);
    let sure_symbolic = beam.and_then(|b| b.calibration_symbolic);
    let errors = |kind: StepKind, first: bool| {
        let kind = greedy.and_then(|g| g.errors.of_kind(kind));
        (proportion(kind.and_then(|k| if first { k.first } else { k.total })), None)
    };
    let right = |r: Option<crate::metrics::Right>| (proportion(r.map(|r| r.exact)), r.map(|r| r.symbolic.percent));
    match column {
        "endpoint_train_examples" => plain(examples.filter(|_| endpoint)),
        "train_examples" => plain(examples.filter(|_| !endpoint)),
        "endpoint_acc" => right(greedy.filter(|_| endpoint).map(|g| g.full_proof)),
        "full_proof_acc" => right(greedy.filter(|_| proofs).map(|g| g.full_proof)),
        "stepwise_acc" => right(greedy.filter(|_| proofs).map(|g| g.stepwise)),
        "top1_acc_beam5" => right(beam.map(|b| b.top1)),
        "beam5_acc" => right(beam.map(|b| b.any5)),
        "sure_rate" => (proportion(sure.and_then(|s| s.sure_rate)), None),
        "precision" => {
            (proportion(sure.and_then(|s| s.precision)), sure_symbolic.and_then(|s| Some(s.precision?.percent)))
        }
        "recall" => (proportion(sure.and_then(|s| s.recall)), sure_symbolic.and_then(|s| Some(s.recall?.percent))),
        "f1" => (sure.and_then(|s| s.f1).map(|v| (v, None)), sure_symbolic.and_then(|s| s.f1)),
        "err_first_fac" => errors(StepKind::Facstep, true),
        "err_first_mul" => errors(StepKind::Mulstep, true),
        "err_first_sum" => errors(StepKind::Sumstep, true),
        "err_first_mark" => errors(StepKind::Markstep, true),
        "err_total_fac" => errors(StepKind::Facstep, false),
        "err_total_mul" => errors(StepKind::Mulstep, false),
        "err_total_sum" => errors(StepKind::Sumstep, false),
        "err_total_mark" => errors(StepKind::Markstep, false),
        column => {
            let kind = exercises(column).and_then(|kind| greedy?.by_kind.get(kind));
            (proportion(kind.copied()), None)
        }
    }
}

/// Whether a column's number has an interval.
pub(crate) fn has_interval(column: Column) -> bool {
    column.unit == Unit::Percent
}

/// Whether `symbolic` means something else than `exact` in a column.
pub(crate) fn has_symbolic(column: Column) -> bool {
    let shares = column.name.starts_with("err_") || column.name == "sure_rate" || column.group == ARITHMETIC;
    column.unit != Unit::Count && !shares
}

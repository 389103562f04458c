//! The numbers of a run's section: the large ones at the top, the table in the paper's columns, further facts, errors by kind.
//!
//! A number is looked up in `metrics.json` by its JSON pointer, so what the page shows and the pointer beside it cannot differ.

use minijinja::context;
use minijinja::value::{Serde, Value as Context};
use polystep_core::arithmetic::Drill;
use polystep_core::{StepClass, StepKind};
use serde::Deserialize;
use serde_json::Value;

use crate::columns::{Quantity, Unit, errors_of_kind};
use crate::metrics::{Evaluation, Metrics};
use crate::number::{CountFormat, counted, interval, number};
use crate::side_by_side::{Layer, LayeredTable, Number, SideBySide, cells_of_run};
use polystep_record::Proportion;

/// An evaluation as it is in `metrics.json`, and where: of which run, at which place.
pub struct Measured<'a> {
    run: usize,
    at: usize,
    metrics: &'a Metrics,
    document: Value,
}

impl<'a> Measured<'a> {
    /// The evaluation at a place.
    pub fn new(run: usize, at: usize, metrics: &'a Metrics) -> Measured<'a> {
        let document = serde_json::to_value(metrics.evaluations.get(at)).unwrap_or_default();
        Measured { run, at, metrics, document }
    }

    /// The evaluation itself.
    pub fn evaluation(&self) -> &'a Evaluation {
        &self.metrics.evaluations[self.at]
    }

    /// The number at a pointer: a proportion with its interval, or a plain number with so many digits.
    fn number(&self, pointer: &str, digits: usize) -> Option<Number> {
        let place = format!("{}/evaluations/{}{pointer}", self.run, self.at);
        match self.document.pointer(pointer)? {
            Value::Number(value) => {
                let text = format!("{:.digits$}", value.as_f64()?);
                Some(Number { metric: Some(place), ..Number::text(text) })
            }
            value => {
                let share = Proportion::deserialize(value).ok()?;
                let text = number(share.percent, Unit::Percent, CountFormat::Short);
                let (small, of) = (Some(interval((share.lo, share.hi))), Some(share.of));
                Some(Number { metric: Some(place + "/percent"), small, of, ..Number::text(text) })
            }
        }
    }

    fn share(&self, pointer: &str) -> Option<Number> {
        self.number(pointer, 2)
    }
}

/// Recursive proofs with every state as expected: a large number, and a fact.
const RECURSIVE_EXACT: &str = "/recursive/recursive_exact";

/// The columns that are large numbers, and what they are called there.
const FIGURES: [(Quantity, &str); 8] = [
    (Quantity::EndpointAccuracy, "Endpoint right"),
    (Quantity::FullProof, "Full proofs right"),
    (Quantity::Stepwise, "Steps right"),
    (Quantity::Exercises(Drill::Add4), "4-digit sums right"),
    (Quantity::Exercises(Drill::Add9), "9-digit sums right"),
    (Quantity::Exercises(Drill::Mul4), "4-digit products right"),
    (Quantity::Exercises(Drill::Mul9), "9-digit products right"),
    (Quantity::Top1, "Steps right, beam 5"),
];

/// The large numbers at the top.
pub fn figures(measured: &Measured<'_>) -> Vec<Context> {
    let cells = cells_of_run(measured.run, measured.metrics, measured.at);
    let figure = |(quantity, label)| {
        let cell = cells.iter().find(|c| c.column.quantity == quantity && c.ours.is_some())?;
        let number = Serde(Layer::Ours.number(cell)?);
        Some(context! { label, number, paper => cell.paper_text(CountFormat::Short) })
    };
    let mut figures: Vec<Context> = FIGURES.into_iter().filter_map(figure).collect();
    if let Some(number) = measured.share(RECURSIVE_EXACT) {
        let figure = context! { label => "Recursive proofs right", number => Serde(number) };
        figures.insert(figures.len().min(1), figure);
    }
    figures
}

/// `small_coeff, 2 variables`
pub fn set_name(evaluation: &Evaluation) -> String {
    format!("{}, {}", evaluation.config, counted(evaluation.vars as usize, "variable"))
}

/// Every test set of a run, ours and the paper's.
pub fn table(run: usize, metrics: &Metrics) -> LayeredTable {
    let label = |evaluation: &Evaluation| match metrics.evaluations.len() {
        1 => "ours, exact".to_owned(),
        _ => set_name(evaluation),
    };
    let sets = metrics.evaluations.iter().enumerate();
    let rows = sets.map(|(at, evaluation)| (label(evaluation), cells_of_run(run, metrics, at))).collect();
    let layers = [Layer::Ours, Layer::Of, Layer::Symbolic, Layer::Paper, Layer::Difference];
    SideBySide::of_runs(rows, |cell| !cell.column.is_error()).layered(&layers, "")
}

/// What the paper does not report: a label, the pointer, the digits of a plain number, and what it means.
const FACTS: [(&str, &str, usize, &str); 11] = [
    (
        "recursive, exact",
        RECURSIVE_EXACT,
        2,
        "the model continues from its own output; every state is the expected one",
    ),
    (
        "recursive, endpoint",
        "/recursive/recursive_end",
        2,
        "the model continues from its own output; the endpoint is right",
    ),
    ("malformed", "/greedy/malformed", 2, "greedy outputs that cannot be read"),
    ("brackets exact", "/greedy/raw_exact", 2, "calculator steps that are right before their brackets are evaluated"),
    ("top-1, length-normalised", "/beam_lp1/top1/exact", 2, "beam scores divided by length"),
    ("any of 5, length-normalised", "/beam_lp1/any5/exact", 2, "beam scores divided by length"),
    ("AUROC", "/beam/calibration/auroc", 4, "how well the margin separates right from wrong answers"),
    ("AUPRC", "/beam/calibration/auprc", 4, "average precision of the margin"),
    (
        "best threshold",
        "/beam/calibration/best/test/threshold",
        2,
        "the threshold with the highest F1 on validation; the paper uses 5",
    ),
    ("F1 at the best threshold", "/beam/calibration/best/test/f1", 4, "on the test set"),
    (
        "calibration error",
        "/beam/calibration/expected_error",
        2,
        "mean distance between confidence and truth, in percentage points",
    ),
];

/// What the paper does not report.
pub fn facts(measured: &Measured<'_>) -> Vec<Context> {
    let fact = |(label, pointer, digits, note)| {
        let number = Serde(measured.number(pointer, digits)?);
        Some(context! { label, number, note })
    };
    FACTS.into_iter().filter_map(fact).collect()
}

/// Errors by kind of step. The share of a kind in the errors is our number, the width of its bar, and the paper's number.
pub fn errors(measured: &Measured<'_>) -> Vec<Context> {
    let cells = cells_of_run(measured.run, measured.metrics, measured.at);
    let row = |(i, errors): (usize, &polystep_record::metrics::KindErrors)| {
        // Not every kind has a column: an endpoint or an exercise has none.
        let share = |quantity: Quantity, which: &str, width: Option<Proportion>| {
            let cell = cells.iter().find(|c| c.column.quantity == quantity);
            context! {
                number => Serde(measured.share(&format!("{}/{which}", errors_of_kind(i)))),
                width => width.map_or(0.0, |share| share.percent),
                paper => cell.and_then(|c| c.paper_text(CountFormat::Short)),
            }
        };
        context! {
            kind => errors.kind.name(),
            rate => Serde(measured.share(&format!("{}/rate", errors_of_kind(i)))),
            counts => format!("{} of {}", errors.rate.count, errors.rate.of),
            first => share(Quantity::FirstError(errors.kind), "first", errors.first),
            total => share(Quantity::AllErrors(errors.kind), "total", errors.total),
        }
    };
    let greedy = measured.evaluation().greedy.as_ref();
    greedy.map_or_else(Vec::new, |greedy| greedy.errors.kinds.iter().enumerate().map(row).collect())
}

/// Steps by class, hardest kinds told apart: how many, and how many are wrong. Nothing if only kinds can be told apart.
pub fn classes(measured: &Measured<'_>) -> Vec<Context> {
    let Some(greedy) = &measured.evaluation().greedy else { return Vec::new() };
    let row = |(class, right): (&StepClass, &Proportion)| {
        let number = Serde(measured.share(&format!("/greedy/by_class/{class}")));
        context! { class => class.name(), wrong => right.of - right.count, of => right.of, number }
    };
    let mulsteps = |class: &StepClass| StepClass::of_kind(StepKind::Mulstep) <= *class && *class < StepClass::Sumstep;
    let told_apart = greedy.by_class.keys().any(mulsteps);
    if told_apart { greedy.by_class.iter().map(row).collect() } else { Vec::new() }
}

/// Proofs that model and checker complete without an exact step, by the beams that the checker looks at.
pub fn assisted(measured: &Measured<'_>) -> Vec<(u64, Number)> {
    let completed = measured.evaluation().assisted.iter().flat_map(|assisted| &assisted.completed).enumerate();
    let share = |i: usize| measured.share(&format!("/assisted/completed/{i}/proofs"));
    completed.filter_map(|(i, completed)| Some((completed.beams, share(i)?))).collect()
}

/// How recursive proofs stopped.
pub fn stops(measured: &Measured<'_>) -> Vec<(&'static str, Number)> {
    let stops = measured.evaluation().recursive.iter().flat_map(|recursive| &recursive.stops).enumerate();
    let share = |i: usize| measured.share(&format!("/recursive/stops/{i}/proofs"));
    stops.filter_map(|(i, stopped)| Some((stopped.stop.name(), share(i)?))).collect()
}

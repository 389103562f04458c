//! The paper's columns, and where `metrics.json` has our number for each.
//!
//! One list decides names, order and headings for the report, the Markdown and LaTeX tables and the ledger.

use polystep_core::StepKind;
use polystep_core::arithmetic::Drill;
use polystep_record::metrics::Sure;
use polystep_record::{PaperSetting, Proportion};
use serde::Serialize;

use crate::metrics::{Evaluation, Metrics, Right};
use crate::side_by_side::Cell;

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

/// What a column of the paper's tables shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// How many unsimplified polynomials a space has.
    EquationSize,
    /// How many endpoints a space has.
    EndpointSize,
    /// Training examples of the one-shot model.
    EndpointExamples,
    /// Endpoints that the one-shot model has right.
    EndpointAccuracy,
    /// Training examples.
    Examples,
    /// Full proofs that are right.
    FullProof,
    /// Steps that are right.
    Stepwise,
    /// Steps whose first beam is right.
    Top1,
    /// Steps with a right one among the first five beams.
    AnyOf5,
    /// Answers that are sure.
    SureRate,
    /// Sure answers that are right.
    Precision,
    /// Right answers that are sure.
    Recall,
    /// The harmonic mean of precision and recall.
    F1,
    /// Wrong proofs whose first wrong step is of this kind.
    FirstError(StepKind),
    /// Wrong steps that are of this kind.
    AllErrors(StepKind),
    /// Exercises of this kind that are right.
    Exercises(Drill),
}

use Quantity::{
    AllErrors, AnyOf5, EndpointAccuracy, EndpointExamples, EndpointSize, EquationSize, Examples, Exercises, F1,
    FirstError, FullProof, Precision, Recall, Stepwise, SureRate, Top1,
};

/// A column of the paper's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Column {
    /// What it shows.
    #[serde(skip)]
    pub quantity: Quantity,
    /// The name in the CSVs and in the ledger.
    pub name: &'static str,
    /// What several columns have in common.
    pub group: &'static str,
    /// The heading.
    pub heading: &'static str,
    /// How its numbers are written.
    pub unit: Unit,
}

const fn column(
    quantity: Quantity,
    name: &'static str,
    group: &'static str,
    heading: &'static str,
    unit: Unit,
) -> Column {
    Column { quantity, name, group, heading, unit }
}

/// Every column, in the paper's order.
pub const COLUMNS: [Column; 25] = [
    column(EquationSize, "equation_size_estimate", "Size", "Equations", Unit::Count),
    column(EndpointSize, "endpoint_size_estimate", "Size", "Endpoints", Unit::Count),
    column(EndpointExamples, "endpoint_train_examples", "Endpoint", "#EE", Unit::Count),
    column(EndpointAccuracy, "endpoint_acc", "Endpoint", "Accuracy", Unit::Percent),
    column(Examples, "train_examples", "Training", "#Train", Unit::Count),
    column(FullProof, "full_proof_acc", "Greedy", "Full proof", Unit::Percent),
    column(Stepwise, "stepwise_acc", "Greedy", "Stepwise", Unit::Percent),
    column(Top1, "top1_acc_beam5", "Beam 5", "Top-1", Unit::Percent),
    column(AnyOf5, "beam5_acc", "Beam 5", "Any of 5", Unit::Percent),
    column(SureRate, "sure_rate", "Calibration", "Sure rate", Unit::Percent),
    column(Precision, "precision", "Calibration", "P", Unit::Percent),
    column(Recall, "recall", "Calibration", "R", Unit::Percent),
    column(F1, "f1", "Calibration", "F1", Unit::Fraction),
    column(FirstError(StepKind::Facstep), "err_first_fac", "First error", "fac", Unit::Percent),
    column(FirstError(StepKind::Mulstep), "err_first_mul", "First error", "mul", Unit::Percent),
    column(FirstError(StepKind::Sumstep), "err_first_sum", "First error", "sum", Unit::Percent),
    column(FirstError(StepKind::Markstep), "err_first_mark", "First error", "mark", Unit::Percent),
    column(AllErrors(StepKind::Facstep), "err_total_fac", "All errors", "fac", Unit::Percent),
    column(AllErrors(StepKind::Mulstep), "err_total_mul", "All errors", "mul", Unit::Percent),
    column(AllErrors(StepKind::Sumstep), "err_total_sum", "All errors", "sum", Unit::Percent),
    column(AllErrors(StepKind::Markstep), "err_total_mark", "All errors", "mark", Unit::Percent),
    column(Exercises(Drill::Add4), "add4_acc", "Arithmetic", "4-digit sums", Unit::Percent),
    column(Exercises(Drill::Add9), "add9_acc", "Arithmetic", "9-digit sums", Unit::Percent),
    column(Exercises(Drill::Mul4), "mul4_acc", "Arithmetic", "4-digit products", Unit::Percent),
    column(Exercises(Drill::Mul9), "mul9_acc", "Arithmetic", "9-digit products", Unit::Percent),
];

impl Column {
    /// The column of this name.
    pub fn named(name: &str) -> Option<Column> {
        COLUMNS.into_iter().find(|column| column.name == name)
    }

    /// Whether it counts errors. Tables of errors are shown apart from the others.
    pub fn is_error(self) -> bool {
        matches!(self.quantity, FirstError(_) | AllErrors(_))
    }

    /// Whether it is about the one-shot model, which the paper lists on the rows of the step-wise one.
    pub fn is_one_shot(self) -> bool {
        matches!(self.quantity, EndpointExamples | EndpointAccuracy)
    }

    /// Whether it shows full proofs, or what a one-shot model has instead of them.
    pub fn is_headline(self) -> bool {
        matches!(self.quantity, FullProof | EndpointAccuracy)
    }

    /// Whether a higher number is better. A share of errors or a number of examples is neither good nor bad.
    pub fn more_is_better(self) -> bool {
        self.unit != Unit::Count && !self.is_error()
    }

    /// Whether its number has an interval.
    pub fn has_interval(self) -> bool {
        self.unit == Unit::Percent
    }

    /// Whether `symbolic` has another meaning than `exact`.
    pub fn has_symbolic(self) -> bool {
        self.more_is_better() && !matches!(self.quantity, SureRate | Exercises(_))
    }
}

/// Where `metrics.json` has the errors of a kind of step, by the kind's place in the list.
pub fn errors_of_kind(place: usize) -> String {
    format!("/greedy/errors/kinds/{place}")
}

/// A part of an evaluation and its JSON pointer, which is made of the names of the fields.
macro_rules! part {
    ($evaluation:ident.$way:ident.$field:ident) => {{
        let part = $evaluation.$way.as_ref().map(|way| way.$field);
        (part, concat!("/", stringify!($way), "/", stringify!($field)))
    }};
}

/// A part of the sure answers' numbers, and the name of its field.
macro_rules! sure_part {
    ($field:ident) => {
        (|sure: Sure| sure.$field, stringify!($field))
    };
}

impl Cell {
    /// Our number of an evaluation in a column, and its pointers in `metrics.json`. Counts have none.
    pub fn measured(column: Column, metrics: &Metrics, evaluation: &Evaluation) -> Cell {
        let one_shot = metrics.keys.is(PaperSetting::Endpoint);
        let proofs = !one_shot && !metrics.keys.is(PaperSetting::Arithmetic);
        let greedy = evaluation.greedy.as_ref();
        let beam = evaluation.beam.as_ref();
        let cell = Cell::printed(column, None);
        let count = |wanted: bool| {
            let examples = metrics.run.examples.filter(|_| wanted);
            Cell { ours: examples.map(|n| n as f64), ..cell.clone() }
        };
        let share = |share: Option<Proportion>, place: &str| Cell {
            ours: share.map(|p| p.percent),
            interval: share.map(|p| (p.lo, p.hi)),
            of: share.map(|p| p.of),
            pointers: [Some(format!("{place}/percent")), None],
            ..cell.clone()
        };
        let right = |(right, place): (Option<Right>, &str)| Cell {
            symbolic: right.map(|r| r.symbolic.percent),
            pointers: ["exact", "symbolic"].map(|way| Some(format!("{place}/{way}/percent"))),
            ..share(right.map(|r| r.exact), place)
        };
        let [exact, symbolic] = [
            beam.and_then(|b| b.calibration.as_ref()).map(|calibration| calibration.sure),
            beam.and_then(|b| b.calibration_symbolic),
        ];
        let calibrations =
            |name: &str| ["calibration", "calibration_symbolic"].map(|way| Some(format!("/beam/{way}/{name}")));
        let sure = |(part, name): (fn(Sure) -> Option<Proportion>, &str)| Cell {
            symbolic: symbolic.and_then(part).map(|p| p.percent),
            pointers: calibrations(&format!("{name}/percent")),
            ..share(exact.and_then(part), "")
        };
        match column.quantity {
            EquationSize | EndpointSize => cell,
            EndpointExamples => count(one_shot),
            Examples => count(!one_shot),
            EndpointAccuracy if one_shot => right(part!(evaluation.greedy.full_proof)),
            FullProof if proofs => right(part!(evaluation.greedy.full_proof)),
            Stepwise if proofs => right(part!(evaluation.greedy.stepwise)),
            EndpointAccuracy | FullProof | Stepwise => cell,
            Top1 => right(part!(evaluation.beam.top1)),
            AnyOf5 => right(part!(evaluation.beam.any5)),
            // Which answers are sure depends on no test, so this one is the same by both.
            SureRate => Cell { symbolic: None, ..sure(sure_part!(sure_rate)) },
            Precision => sure(sure_part!(precision)),
            Recall => sure(sure_part!(recall)),
            F1 => {
                let (part, name) = sure_part!(f1);
                let [ours, symbolic] = [exact, symbolic].map(|sure| sure.and_then(part));
                Cell { ours, symbolic, pointers: calibrations(name), ..cell }
            }
            FirstError(kind) | AllErrors(kind) => {
                let kinds = greedy.map_or(&[][..], |g| &g.errors.kinds);
                let found = kinds.iter().enumerate().find(|(_, errors)| errors.kind == kind);
                let first = matches!(column.quantity, FirstError(_));
                let which = if first { "first" } else { "total" };
                let place = found.map_or(0, |(i, _)| i);
                let errors = found.and_then(|(_, errors)| if first { errors.first } else { errors.total });
                share(errors, &format!("{}/{which}", errors_of_kind(place)))
            }
            Exercises(drill) => {
                let kind = drill.name();
                share(greedy.and_then(|g| g.by_kind.get(kind).copied()), &format!("/greedy/by_kind/{kind}"))
            }
        }
    }
}

//! The matrix trained × tested on the page and as Markdown and LaTeX.

use std::fmt::Write;

use super::numbers::{Number, Table, TableRow};
use super::tables::tex;
use super::{number, printed};
use crate::columns::{Cell, Unit, pointer};
use crate::matrix::{Matrix, Measure, is_lower};
use crate::run::StoredRun;

/// The runs' matrix, if they have one.
pub fn of(runs: &[StoredRun]) -> Option<Matrix> {
    Matrix::of(&runs.iter().map(|run| (run.name.as_str(), run.metrics.as_ref())).collect::<Vec<_>>())
}

/// The section: ours, and under it the paper's.
pub fn table(matrix: &Matrix, runs: &[StoredRun]) -> Table {
    let measures = matrix.measures();
    let sets: Vec<String> = matrix.tested.iter().map(|set| set.title()).collect();
    let mut rows = Vec::new();
    for row in &matrix.rows {
        let each = |text: &dyn Fn(usize, &Cell) -> Option<Number>| -> Vec<Number> {
            let cell = |measure: Measure| {
                row.entries.iter().map(move |entry| {
                    let entry = entry.as_ref();
                    entry.and_then(|e| text(e.evaluation, e.cell(measure)?)).unwrap_or_else(|| Number::text(""))
                })
            };
            measures.iter().flat_map(|m| cell(*m)).collect()
        };
        let ours = |at: usize, cell: &Cell| {
            let evaluation = runs.get(row.run)?.metrics.as_ref()?.evaluations.get(at)?;
            let metric = pointer(evaluation, cell.column.name).map(|p| format!("{}/evaluations/{at}{p}", row.run));
            let small = cell.interval.map(|(lo, hi)| format!("{lo:.1}–{hi:.1}"));
            let sign = is_lower(cell).then_some("down");
            Some(Number { text: number(cell.ours?, Unit::Percent), metric, small, sign })
        };
        rows.push(TableRow { label: row.title(), class: "ours", cells: each(&ours) });
        let paper = each(&|_, cell| printed(cell).map(Number::text));
        if paper.iter().any(|n| !n.text.is_empty()) {
            rows.push(TableRow { label: "paper".to_owned(), class: "paper", cells: paper });
        }
    }
    let groups = measures.iter().map(|m| (m.heading(), sets.len())).collect();
    Table { groups, headings: sets.iter().cycle().take(sets.len() * measures.len()).cloned().collect(), rows }
}

/// As Markdown; empty if there is no matrix.
pub fn markdown(runs: &[StoredRun]) -> String {
    let Some(matrix) = of(runs) else { return String::new() };
    let mut out = String::new();
    for measure in matrix.measures() {
        let heading = measure.heading().to_lowercase();
        let _ = writeln!(out, "\nTrained × tested, {heading}, in percent (the paper's); ↓ where ours is lower:\n");
        for (i, row) in matrix.grid(measure).iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|text| text.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
            if i == 0 {
                let _ = writeln!(out, "|---|{}", "---:|".repeat(row.len() - 1));
            }
        }
    }
    out
}

/// As LaTeX, for `booktabs`; empty if there is no matrix.
pub fn latex(runs: &[StoredRun]) -> String {
    let Some(matrix) = of(runs) else { return String::new() };
    let mut out = String::new();
    for measure in matrix.measures() {
        let (heading, columns) = (measure.heading().to_lowercase(), "r".repeat(matrix.tested.len()));
        let _ = writeln!(out, "\n% Trained, tested: {heading}\n\\begin{{tabular}}{{l{columns}}}\n\\toprule");
        for (i, row) in matrix.grid(measure).iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|text| tex(text)).collect();
            let rule = if i == 0 { "\n\\midrule" } else { "" };
            let _ = writeln!(out, "{} \\\\{rule}", cells.join(" & "));
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n");
    }
    out
}

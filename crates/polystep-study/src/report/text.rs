//! The tables of a report for other documents, as Markdown and as LaTeX. Markdown also has a table for each curriculum.

use super::matrix;
use crate::grid::{Grid, markdown as escaped};
use crate::matrix::{Matrix, Measure};
use crate::metrics::Evaluation;
use crate::plots::curriculum::Curriculum;
use crate::run::StoredRun;
use crate::side_by_side::{Layer, LayeredTable, SideBySide, cells};

/// A row per run and test set in the paper's columns; `None` if nothing was evaluated.
fn results(runs: &[StoredRun]) -> Option<LayeredTable> {
    let metrics = runs.iter().filter_map(|run| Some((run, run.metrics.as_ref()?)));
    let rows: Vec<_> = metrics
        .flat_map(|(run, metrics)| metrics.evaluations.iter().map(move |e| (row_name(run, e), cells(metrics, e))))
        .collect();
    let table = SideBySide::of_runs(rows, |_| true);
    (!table.rows.is_empty()).then(|| table.layered(&[Layer::Ours, Layer::Of, Layer::Paper], ""))
}

/// The run, and the test set unless it is the run's own space.
fn row_name(run: &StoredRun, evaluation: &Evaluation) -> String {
    if evaluation.set() == run.keys.home() {
        run.name.clone()
    } else {
        format!("{} on {}, {} var", run.name, evaluation.config, evaluation.vars)
    }
}

/// The matrix trained × tested, a grid for each measure.
fn matrices(runs: &[StoredRun]) -> Vec<(String, Grid)> {
    let of = |matrix: &Matrix, measure: Measure| (measure.name().to_lowercase(), matrix.grid(measure));
    matrix(runs).map_or_else(Vec::new, |m| m.measures().into_iter().map(|measure| of(&m, measure)).collect())
}

/// The results as a Markdown table, then a table for each curriculum and for each measure of the matrix.
pub fn markdown(runs: &[StoredRun]) -> String {
    let mut out = match results(runs) {
        None => "Nothing was evaluated yet.\n".to_owned(),
        Some(table) => {
            let mut grid = table.grid();
            let groups = table.groups.iter().flat_map(|(name, count)| std::iter::repeat_n(*name, *count));
            for (heading, group) in grid.header[1..].iter_mut().zip(groups) {
                *heading = format!("{group} {heading}");
            }
            let note = "Exact match in percent (F1 as a fraction). The rows \"n\" say how many each percentage is of. The rows \
                        \"paper\" are as the paper prints them.";
            format!("{}\n{note}\n", grid.markdown())
        }
    };
    for run in runs {
        if let Some(curriculum) = Curriculum::of(&run.log) {
            let (name, words) = (escaped(&run.name), escaped(&curriculum.words));
            out += &format!("\nCurriculum of {name}. {words}\n\n{}", curriculum.grid().markdown());
        }
    }
    for (heading, grid) in matrices(runs) {
        let caption = format!("Trained × tested, {heading}, in percent (the paper's), of n; ↓ where ours is lower:");
        out += &format!("\n{caption}\n\n{}", grid.markdown());
    }
    out
}

/// The results as a LaTeX table for `booktabs`, then a table for each measure of the matrix.
pub fn latex(runs: &[StoredRun]) -> String {
    let mut out = match results(runs) {
        None => "% Nothing was evaluated yet.\n".to_owned(),
        Some(table) => "% \\usepackage{booktabs}\n".to_owned() + &table.grid().latex(&table.groups),
    };
    for (heading, grid) in matrices(runs) {
        out += &format!("\n% Trained, tested: {heading}\n{}", grid.latex(&[]));
    }
    out
}

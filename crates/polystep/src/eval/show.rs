//! What was measured, as tables on the terminal: the paper's columns, and the matrix trained x tested.

use polystep_record::{PaperSetting, Proportion};
use polystep_study::columns::{Cell, Unit, cells};
use polystep_study::{Evaluation, Matrix, Metrics};

use crate::failure::Result;
use crate::{say, table};

/// A matrix wider than this is turned, if that makes it narrower.
const WIDE: usize = 120;

/// TrainedModel x tested, full proofs and steps.
pub fn print_matrix(matrix: &Matrix) -> Result<()> {
    for measure in matrix.measures() {
        let rows = matrix.grid(measure);
        say!(
            "\ntrained x tested, {} in percent (the paper's); ↓ where ours is lower",
            measure.heading().to_lowercase()
        )?;
        let (upright, turned) = (in_columns(rows.clone()), in_columns(turned(rows)));
        let width = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        say!("{}", if width(&upright) > WIDE && width(&turned) < width(&upright) { turned } else { upright })?;
    }
    Ok(())
}

/// A grid whose first row is its head.
fn in_columns(grid: Vec<Vec<String>>) -> String {
    let mut rows = grid.into_iter();
    table::grid(1, rows.next().unwrap_or_default(), rows)
}

/// Test sets down, runs across.
fn turned(grid: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let columns = grid.first().map_or(0, Vec::len);
    let mut turned: Vec<Vec<String>> = (0..columns).map(|i| grid.iter().map(|row| row[i].clone()).collect()).collect();
    if let Some(corner) = turned.first_mut().and_then(|head| head.first_mut()) {
        *corner = "tested on".into();
    }
    turned
}

/// Whether a column has our number or the paper's.
pub fn is_known(cell: &Cell) -> bool {
    cell.ours.is_some() || cell.paper.is_some()
}

/// Whether a column has our number.
pub fn is_measured(cell: &Cell) -> bool {
    cell.ours.is_some()
}

/// A line for each column that is to be shown.
fn rows(metrics: &Metrics, evaluation: &Evaluation, shown: impl Fn(&Cell) -> bool) -> Vec<[String; 5]> {
    let number = |value: f64, unit: Unit| match unit {
        Unit::Fraction => format!("{value:.3}"),
        Unit::Count => format!("{value:.0}"),
        Unit::Percent => format!("{value:.2}"),
    };
    let row = |cell: Cell| {
        let unit = cell.column.unit;
        let interval = cell.interval.map_or(String::new(), |(lo, hi)| format!("{lo:.1} to {hi:.1}"));
        [
            format!("{}: {}", cell.column.group, cell.column.heading),
            cell.ours.map_or("-".into(), |v| number(v, unit)),
            interval,
            cell.symbolic.map_or(String::new(), |v| number(v, unit)),
            cell.paper.as_ref().map_or(String::new(), |p| p.text.to_string()),
        ]
    };
    cells(metrics, evaluation).into_iter().filter(shown).map(row).collect()
}

/// The paper's columns that are to be shown, ours beside the paper's.
pub fn print(metrics: &Metrics, evaluation: &Evaluation, shown: impl Fn(&Cell) -> bool) -> Result<()> {
    let title = metrics.keys.title();
    let set = match evaluation {
        Evaluation { config, vars: 0, .. } => config.clone(),
        Evaluation { config, .. } if metrics.keys.is(PaperSetting::Arithmetic) => {
            format!("{title}, tested on {config}")
        }
        Evaluation { config, vars, .. } => {
            format!("{title}, tested on {config} with {}", table::counted(*vars as usize, "variable"))
        }
    };
    say!("{set}")?;
    let rows = rows(metrics, evaluation, shown);
    say!("{}", table::table(1, ["", "ours", "95 %", "symbolic", "paper"], rows))?;
    let percent = |p: &Proportion| format!("{:.2} % ({:.1} to {:.1})", p.percent, p.lo, p.hi);
    if let Some(recursive) = &evaluation.recursive {
        say!("recursive proofs, every state right  {}", percent(&recursive.recursive_exact))?;
        say!("recursive proofs, right endpoint     {}", percent(&recursive.recursive_end))?;
    }
    if let Some(greedy) = &evaluation.greedy {
        if let Some(raw) = &greedy.raw_exact {
            say!("brackets right before evaluation     {}", percent(raw))?;
        }
        say!("malformed outputs                    {}", percent(&greedy.malformed))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::read_metrics;

    /// One run on many sets is a table of many lines, not of one that no terminal holds.
    #[test]
    fn a_wide_matrix_is_turned() {
        let grid =
            |text: &str| text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect::<Vec<_>>();
        let wide: Vec<Vec<String>> = grid("trained a b c\nrun 1 2 3");
        let tall: Vec<Vec<String>> = grid("tested run\na 1\nb 2\nc 3");
        assert_eq!(turned(wide)[1..], tall[1..]);
        assert_eq!(turned(grid("trained a\nrun 1"))[0], ["tested on", "run"]);
    }

    /// Without beam search the paper's columns of it are empty on our side: shown, or left out.
    #[test]
    fn columns_without_our_number_can_be_left_out() {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/runs/large_coeff-1-coarse-infix");
        let mut metrics = read_metrics(&run).unwrap_or_else(|e| panic!("{e:?}"));
        metrics.evaluations[0].beam = None;
        let lines = |shown: fn(&Cell) -> bool| rows(&metrics, &metrics.evaluations[0], shown);
        let beam = |lines: &[[String; 5]]| lines.iter().filter(|line| line[0].starts_with("Beam 5")).count();
        let (known, measured) = (lines(is_known), lines(is_measured));
        assert_eq!((beam(&known), beam(&measured)), (2, 0));
        let full = |line: &[String; 5]| line[0] == "Greedy: Full proof" && line[1] == "97.80" && line[4] == "82.1";
        assert!(measured.iter().any(full) && measured.iter().all(|line| line[1] != "-"), "{measured:?}");
    }
}

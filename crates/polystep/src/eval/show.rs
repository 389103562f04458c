//! Results of `eval` on the terminal: the paper's columns, and the matrix trained x tested.

use polystep_core::StepClass;
use polystep_record::metrics::Greedy;
use polystep_record::{PaperSetting, Proportion};
use polystep_study::grid::Grid;
use polystep_study::number::{CountFormat, counted, number};
use polystep_study::side_by_side::{Cell, cells};
use polystep_study::{Evaluation, Matrix, Metrics};

use crate::failure::Result;
use crate::{say, table};

/// Trained x tested, full proofs and steps.
pub fn print_matrix(matrix: &Matrix) -> Result<()> {
    for measure in matrix.measures() {
        let grid = matrix.grid(measure);
        let what = measure.name().to_lowercase();
        say!("\ntrained x tested, {what} in percent (the paper's), of n; ↓ where ours is lower")?;
        say!("{}", table::grid(&grid))?;
    }
    Ok(())
}

/// Whether a column has our number or the paper's.
pub fn is_known(cell: &Cell) -> bool {
    cell.ours.is_some() || cell.paper.is_some()
}

/// Whether a column has our number.
pub fn is_measured(cell: &Cell) -> bool {
    cell.ours.is_some()
}

/// A row for each column of the paper that is to be shown.
fn rows(metrics: &Metrics, evaluation: &Evaluation, shown: impl Fn(&Cell) -> bool) -> Vec<Vec<String>> {
    let row = |cell: Cell| {
        vec![
            format!("{}: {}", cell.column.group, cell.column.heading),
            cell.ours_text(CountFormat::Full).unwrap_or_else(|| "-".into()),
            cell.interval.map_or(String::new(), |(lo, hi)| format!("{lo:.1} to {hi:.1}")),
            cell.of.map_or(String::new(), |n| n.to_string()),
            cell.symbolic.map_or(String::new(), |value| number(value, cell.column.unit, CountFormat::Full)),
            cell.paper.map_or(String::new(), |paper| paper.text.to_owned()),
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
            format!("{title}, tested on {config} with {}", counted(*vars as usize, "variable"))
        }
    };
    say!("{set}{}", if evaluation.long { " (long test set)" } else { "" })?;
    let header = ["", "ours", "95 %", "n", "symbolic", "paper"].map(str::to_owned).to_vec();
    say!("{}", table::grid(&Grid { header, rows: rows(metrics, evaluation, shown), words: 1 }))?;
    let percent = |p: &Proportion| format!("{:.2} % of {} ({:.1} to {:.1})", p.percent, p.of, p.lo, p.hi);
    if let Some(recursive) = &evaluation.recursive {
        say!("recursive proofs, every state right  {}", percent(&recursive.recursive_exact))?;
        say!("recursive proofs, right endpoint     {}", percent(&recursive.recursive_end))?;
    }
    if let Some(greedy) = &evaluation.greedy {
        if let Some(raw) = &greedy.raw_exact {
            say!("brackets right before evaluation     {}", percent(raw))?;
        }
        say!("malformed outputs                    {}", percent(&greedy.malformed))?;
        print_classes(greedy)?;
    }
    if let Some(assisted) = &evaluation.assisted {
        let [model, beams, exact] = [assisted.steps.model, assisted.steps.beams, assisted.steps.exact].map(|p| p.count);
        let n = assisted.completed.first().map_or(0, |c| c.proofs.of);
        say!("model and checker together: proofs of {n} without an exact step, in percent, by beams used")?;
        let header: Vec<String> = assisted.completed.iter().map(|c| c.beams.to_string()).collect();
        let row = |text: fn(&Proportion) -> String| assisted.completed.iter().map(|c| text(&c.proofs)).collect();
        let rows = vec![row(|p| format!("{:.2}", p.percent)), row(|p| format!("{:.1} to {:.1}", p.lo, p.hi))];
        say!("{}", table::grid(&Grid { header, rows, words: 0 }))?;
        say!("their {} steps: {model} by the model, {beams} by beams, {exact} exact", model + beams + exact)?;
    }
    Ok(())
}

/// Steps by class, where there are any with a step wrong.
fn print_classes(greedy: &Greedy) -> Result<()> {
    let wrong = |(_, right): &(&StepClass, &Proportion)| right.count < right.of;
    if !greedy.by_class.iter().any(|class| wrong(&class)) {
        return Ok(());
    }
    let row = |(class, right): (&StepClass, &Proportion)| {
        let (wrong, interval) = (right.of - right.count, format!("{:.1} to {:.1}", right.lo, right.hi));
        vec![class.to_string(), format!("{:.2}", right.percent), interval, right.of.to_string(), wrong.to_string()]
    };
    say!("steps by class, exact, in percent")?;
    let header = ["", "right", "95 %", "n", "wrong"].map(str::to_owned).to_vec();
    say!("{}", table::grid(&Grid { header, rows: greedy.by_class.iter().map(row).collect(), words: 1 }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::read_metrics;

    /// Without beam search the paper's columns of it are empty on our side: shown, or left out.
    #[test]
    fn columns_without_our_number_can_be_left_out() {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/runs/large_coeff-1-coarse-infix");
        let mut metrics = read_metrics(&run).unwrap_or_else(|e| panic!("{e:?}"));
        metrics.evaluations[0].beam = None;
        let lines = |shown: fn(&Cell) -> bool| rows(&metrics, &metrics.evaluations[0], shown);
        let beam = |lines: &[Vec<String>]| lines.iter().filter(|line| line[0].starts_with("Beam 5")).count();
        let (known, measured) = (lines(is_known), lines(is_measured));
        assert_eq!((beam(&known), beam(&measured)), (2, 0));
        let full = |line: &Vec<String>| {
            line[0] == "Greedy: Full proof" && line[1] == "97.80" && line[3] == "1000" && line[5] == "82.1"
        };
        assert!(measured.iter().any(full) && measured.iter().all(|line| line[1] != "-"), "{measured:?}");
    }
}

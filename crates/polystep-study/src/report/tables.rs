//! The table in the paper's columns, as Markdown and as LaTeX; in Markdown, curricula under it.

use std::fmt::Write;

use super::curriculum::CurriculumView;
use super::{number, printed};
use crate::columns::{COLUMNS, Cell, Column, cells};
use crate::metrics::Evaluation;
use crate::run::StoredRun;

/// One line of the table.
struct Row {
    name: String,
    cells: Vec<Cell>,
}

/// A row per run and test set.
fn rows(runs: &[StoredRun]) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in runs {
        let Some(metrics) = &run.metrics else {
            continue;
        };
        for evaluation in &metrics.evaluations {
            rows.push(Row { name: row_name(run, evaluation), cells: cells(metrics, evaluation) });
        }
    }
    rows
}

/// The run, and the set where it is not its own.
fn row_name(run: &StoredRun, evaluation: &Evaluation) -> String {
    let keys = &run.keys;
    if evaluation.config == keys.config && evaluation.vars == keys.vars {
        run.name.clone()
    } else {
        format!("{} on {}, {} var", run.name, evaluation.config, evaluation.vars)
    }
}

/// The columns that some row has.
fn columns(rows: &[Row]) -> Vec<Column> {
    let has = |c: &Column| rows.iter().any(|r| r.cells.iter().any(|cell| cell.column == *c));
    COLUMNS.into_iter().filter(|c| has(c)).collect()
}

fn cell(row: &Row, column: Column) -> Option<&Cell> {
    row.cells.iter().find(|c| c.column == column)
}

/// Ours and the paper's, line under line; empty if nothing was evaluated.
fn lines(row: &Row, columns: &[Column], missing: &str) -> Vec<Vec<String>> {
    let ours = |c: &Column| {
        cell(row, *c).and_then(|cell| Some(number(cell.ours?, c.unit))).unwrap_or_else(|| missing.to_owned())
    };
    let paper = |c: &Column| cell(row, *c).and_then(printed).unwrap_or_else(|| missing.to_owned());
    let mut lines = vec![std::iter::once(row.name.clone()).chain(columns.iter().map(ours)).collect()];
    if row.cells.iter().any(|c| c.paper.is_some()) {
        lines.push(std::iter::once("paper".to_owned()).chain(columns.iter().map(paper)).collect());
    }
    lines
}

/// A Markdown table, and one more for each run with a curriculum.
pub fn markdown(runs: &[StoredRun]) -> String {
    let mut out = results(runs);
    for run in runs {
        if let Some(curriculum) = CurriculumView::of(&run.log) {
            out += &curriculum.markdown(&run.name);
        }
    }
    out
}

fn results(runs: &[StoredRun]) -> String {
    let rows = rows(runs);
    let columns = columns(&rows);
    if rows.is_empty() {
        return "Nothing was evaluated yet.\n".to_owned();
    }
    let heading = |c: &Column| format!("{} {}", c.group, c.heading);
    let mut out = format!("| run | {} |\n", columns.iter().map(heading).collect::<Vec<_>>().join(" | "));
    let _ = writeln!(out, "|---|{}", "---:|".repeat(columns.len()));
    for row in &rows {
        for line in lines(row, &columns, "–") {
            let cells: Vec<String> = line.iter().map(|text| text.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    out.push_str("\nExact match in percent (F1 as a fraction); \"paper\": as printed there.\n");
    out
}

/// A LaTeX table, for `booktabs`.
pub fn latex(runs: &[StoredRun]) -> String {
    let rows = rows(runs);
    let columns = columns(&rows);
    if rows.is_empty() {
        return "% Nothing was evaluated yet.\n".to_owned();
    }
    let mut out =
        format!("% \\usepackage{{booktabs}}\n\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(columns.len()));
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for column in &columns {
        match groups.last_mut() {
            Some((name, count)) if *name == column.group => *count += 1,
            _ => groups.push((column.group, 1)),
        }
    }
    for (name, count) in groups {
        let _ = write!(out, " & \\multicolumn{{{count}}}{{c}}{{{}}}", tex(name));
    }
    let headings: Vec<String> = columns.iter().map(|c| tex(c.heading)).collect();
    let _ = writeln!(out, " \\\\\nrun & {} \\\\\n\\midrule", headings.join(" & "));
    for row in &rows {
        for line in lines(row, &columns, "--") {
            let cells: Vec<String> = line.iter().map(|text| tex(text)).collect();
            let _ = writeln!(out, "{} \\\\", cells.join(" & "));
        }
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n");
    out
}

pub fn tex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '#' | '%' | '&' | '_' | '$' | '{' | '}' => out.extend(['\\', c]),
            '<' | '>' => drop(write!(out, "${c}$")),
            '↓' => out.push_str("$\\downarrow$"),
            '–' => out.push_str("--"),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' | '^' => drop(write!(out, "\\{c}{{}}")),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latex_escapes_what_it_must() {
        assert_eq!(tex("#EE 5% small_coeff a^b <1"), "\\#EE 5\\% small\\_coeff a\\^{}b $<$1");
        assert_eq!(tex("31.00 ↓ (33.4) –"), "31.00 $\\downarrow$ (33.4) --");
    }
}

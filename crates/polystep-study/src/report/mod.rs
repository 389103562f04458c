//! The report: one HTML page that needs nothing but itself, and the same table as Markdown and LaTeX.
//!
//! The page shows the numbers of `metrics.json` and computes none of its own: every number that stands there carries its JSON
//! pointer (`data-metric`), and a test reads the page back. Predictions are only opened for the list of failures and for
//! comparing runs proof by proof. What a run does not have, its section says.

mod compare;
pub(crate) mod curriculum;
pub(crate) mod curves;
pub mod diff;
mod failures;
mod matrix;
mod numbers;
mod page;
mod tables;

use std::path::{Path, PathBuf};

use minijinja::value::Serde;
use minijinja::{Environment, context};

pub use failures::SHOWN;
pub use tables::{latex, markdown};

use crate::chart::{PALETTE, STYLE, short};
use crate::columns::{Cell, Unit};
use crate::error::StudyError;
use crate::run::StoredRun;
use polystep_record::write_whole;

/// Writes the page to `out`, and beside it the tables with the endings `.md` and `.tex`, and the matrix trained × tested,
/// where there is one, with the ending `.csv`. Returns the files, the page first.
pub fn write(runs: &[StoredRun], out: &Path) -> Result<Vec<PathBuf>, StudyError> {
    let mut files = vec![
        ("html", html(runs)?),
        ("md", markdown(runs) + &matrix::markdown(runs)),
        ("tex", latex(runs) + &matrix::latex(runs)),
    ];
    files.extend(matrix::of(runs).map(|matrix| ("csv", matrix.csv())));
    files
        .into_iter()
        .map(|(ending, text)| {
            let path = if ending == "html" { out.to_path_buf() } else { out.with_extension(ending) };
            write_whole(&path, text)?;
            Ok(path)
        })
        .collect()
}

/// The page.
pub fn html(runs: &[StoredRun]) -> Result<String, StudyError> {
    let page = page::Page::of(runs);
    let mut environment = Environment::new();
    environment.add_template("report.html", include_str!("templates/report.html"))?;
    environment.add_template("macros.html", include_str!("templates/macros.html"))?;
    environment.add_template("run.html", include_str!("templates/run.html"))?;
    environment.add_template("compare.html", include_str!("templates/compare.html"))?;
    environment.add_template("matrix.html", include_str!("templates/matrix.html"))?;
    let style = format!("{PALETTE}{}{STYLE}", include_str!("templates/style.css"));
    let script = include_str!("templates/script.js");
    let version = env!("CARGO_PKG_VERSION");
    let (markdown, latex) = (markdown(runs) + &matrix::markdown(runs), latex(runs) + &matrix::latex(runs));
    let context = context! { page => Serde(&page), style, script, version, markdown, latex };
    Ok(environment.get_template("report.html")?.render(context)?)
}

/// A number as the tables write it.
pub fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => format!("{value:.2}"),
        Unit::Fraction => format!("{value:.3}"),
        Unit::Count => short(value),
    }
}

/// The paper's number as printed; counts are shortened.
fn printed(cell: &Cell) -> Option<String> {
    let paper = cell.paper.as_ref()?;
    Some(if cell.column.unit == Unit::Count { short(paper.value) } else { paper.text.to_owned() })
}

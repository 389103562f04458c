//! The report: one HTML page that needs no other file, and its tables as Markdown, LaTeX and CSV.
//!
//! The page shows the numbers of `metrics.json` and computes none of its own. Every number carries its JSON pointer
//! (`data-metric`), and a test reads the page back. Predictions are only opened for the list of failures and for comparing runs
//! proof by proof. If a run lacks something, its section says so.

mod compare;
pub mod diff;
mod failures;
mod numbers;
mod run;
mod text;

use std::path::{Path, PathBuf};

use minijinja::value::Serde;
use minijinja::{Environment, context};

pub use failures::SHOWN;
pub use text::{latex, markdown};

use crate::chart::{PALETTE, STYLE};
use crate::error::StudyError;
use crate::matrix::Matrix;
use crate::run::StoredRun;
use crate::side_by_side::Layer;
use polystep_record::write_whole;
use run::GradedRun;

/// Writes the page to `out`. Beside it, with the endings `.md` and `.tex`, are its tables, and with the ending `.csv` the matrix
/// trained × tested, if there is one. Returns the files, the page first.
pub fn write(runs: &[StoredRun], out: &Path) -> Result<Vec<PathBuf>, StudyError> {
    let mut files = vec![
        (out.to_path_buf(), html(runs)?),
        (out.with_extension("md"), markdown(runs)),
        (out.with_extension("tex"), latex(runs)),
    ];
    files.extend(matrix(runs).map(|matrix| (out.with_extension("csv"), matrix.csv())));
    let written = |(path, text): (PathBuf, String)| Ok(write_whole(&path, text).map(|()| path)?);
    files.into_iter().map(written).collect()
}

/// The matrix of runs, if they have one.
fn matrix(runs: &[StoredRun]) -> Option<Matrix> {
    Matrix::of(&runs.iter().map(|run| (run.name.as_str(), run.metrics.as_ref())).collect::<Vec<_>>())
}

/// A template and its name.
macro_rules! templates {
    ($($name:literal),+) => { [$(($name, include_str!(concat!("templates/", $name)))),+] };
}

/// The page.
pub fn html(runs: &[StoredRun]) -> Result<String, StudyError> {
    let graded: Vec<GradedRun> = runs.iter().map(GradedRun::of).collect();
    let title = match runs {
        [run] => run.name.clone(),
        runs => format!("{} runs", runs.len()),
    };
    let matrix =
        matrix(runs).map(|m| m.table(&m.measures()).layered(&[Layer::OursMarked, Layer::Of, Layer::Paper], ""));
    let comparison = (runs.len() > 1).then(|| compare::section(runs, &graded));
    let sections = runs.iter().zip(&graded).enumerate().map(|(i, (run, graded))| run::section(i, run, graded));
    let mut environment = Environment::new();
    for (name, text) in templates!["report.html", "macros.html", "run.html", "compare.html", "matrix.html"] {
        environment.add_template(name, text)?;
    }
    Ok(environment.get_template("report.html")?.render(context! {
        page => context! { title, comparison, matrix => Serde(matrix), runs => sections.collect::<Vec<_>>() },
        style => format!("{PALETTE}{}{STYLE}", include_str!("templates/style.css")),
        script => include_str!("templates/script.js"),
        version => env!("CARGO_PKG_VERSION"),
        markdown => markdown(runs),
        latex => latex(runs),
    })?)
}

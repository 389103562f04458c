//! Tables of models that are trained on one space and tested on another. They only need greedy decoding. The rows on the diagonal
//! are the models of the accuracy tables, tested on their own space.

use super::{AskedSet, Experiment, Need, PaperRow, Recipe};

/// The one model of a row.
pub fn need(row: &PaperRow, recipe: Recipe, seed: u64) -> Need {
    let vars = row.text("test_vars").and_then(|vars| vars.parse().ok()).unwrap_or(0);
    let set = AskedSet { config: row.text("test_config").unwrap_or_default().to_owned(), vars, beam: false };
    Need { experiment: Experiment::new(row.trained_on(), recipe, seed), set, endpoint: false }
}

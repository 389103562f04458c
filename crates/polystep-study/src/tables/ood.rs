//! Tables of models tested elsewhere: trained on one space, tested on another. Only greedy decoding is asked there; the rows on
//! the diagonal are the models of the accuracy tables, tested at home.

use super::{AskedSet, Experiment, Need, PaperRow, Recipe};

/// The one model of a row.
pub fn need(row: &PaperRow, recipe: Recipe, seed: u64) -> Need {
    let vars = row.text("test_vars").and_then(|vars| vars.parse().ok()).unwrap_or(0);
    let set = AskedSet { config: row.text("test_config").unwrap_or_default().to_owned(), vars, beam: false };
    Need { experiment: Experiment::new(row.trained_on(), recipe, seed), set, endpoint: false }
}

//! The two recipes.

use polystep_core::named;
use serde::{Deserialize, Serialize};

named! {
    "recipe";
    /// Which defaults a run has.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Recipe {
        /// The paper's own, with its number of examples: for comparison.
        Paper = "paper",
        /// Ours: the best we can do in the budget.
        #[default]
        Fast = "fast",
    }
}

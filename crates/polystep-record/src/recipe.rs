//! The two recipes: which defaults a run is laid over.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which defaults a run is laid over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
    /// The paper's own, with its number of examples: for comparison.
    Paper,
    /// Ours: the best we can do in the budget.
    #[default]
    Fast,
}

impl Recipe {
    /// Both.
    pub const ALL: [Recipe; 2] = [Recipe::Fast, Recipe::Paper];

    /// The name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Recipe::Fast => "fast",
            Recipe::Paper => "paper",
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no recipe.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the recipes are fast and paper, not `{0}`")]
pub struct UnknownRecipe(String);

impl FromStr for Recipe {
    type Err = UnknownRecipe;

    fn from_str(text: &str) -> Result<Recipe, UnknownRecipe> {
        Recipe::ALL.into_iter().find(|r| r.name() == text).ok_or_else(|| UnknownRecipe(text.to_owned()))
    }
}

//! What a model is asked to do: a space of polynomials, and how their proofs are written (§2 and §3 of the paper).
//!
//! The same (seed, space, vars) gives the same polynomials in every task. The writing only decides how their proofs are cut
//! into steps and written down.

use crate::space::{Space, SpaceError};
use crate::writing::{Setting, Writing};

/// Which examples are generated.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    /// The space of polynomials.
    pub space: Space,
    /// How many variables.
    pub vars: usize,
    /// How their proofs are written.
    pub writing: Writing,
}

impl Task {
    /// Plain coarse infix proofs of a space.
    pub fn new(space: Space, vars: usize) -> Task {
        Task { space, vars, writing: Writing::default() }
    }

    /// Whether the choices fit together.
    pub fn validate(&self) -> Result<(), SpaceError> {
        self.writing.validate()?;
        match self.writing.setting {
            // The caps of polynomials do not matter to exercises.
            Setting::Arithmetic => Space::validate_vars(self.vars),
            _ => self.space.validate(self.vars),
        }
    }
}

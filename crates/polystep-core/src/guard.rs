//! The guard: endpoints, and exercises of the arithmetic probe, that training must not see.
//!
//! One guard for everything: the endpoints of all valid, test and beam proofs of the paper's six configurations in one and
//! two variables, and the exercises of the probe's sets. A training polynomial of any kind whose endpoint is in it is drawn
//! again (§3, "to avoid collisions"), and so is an exercise.

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::notation::Style;
use crate::sample::Polynomials;
use crate::sets::{FixedSet, SETS};
use crate::space::{KEYS, Space, SpaceError};

/// A set of endpoints and exercises, kept as fingerprints ([of polynomials](crate::poly::Poly::fingerprint),
/// [of exercises](crate::arithmetic::Exercise::fingerprint)).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Guard {
    endpoints: FxHashSet<u64>,
    exercises: FxHashSet<u64>,
}

impl Guard {
    /// The endpoints of all valid, test and beam proofs of the six configurations in one and two variables, and the
    /// exercises of the arithmetic probe's sets.
    pub fn standard() -> Guard {
        let spaces: Vec<(Space, usize)> =
            KEYS.iter().filter_map(|k| Space::named(k).ok()).flat_map(|s| [(s.clone(), 1), (s, 2)]).collect();
        let parts: Vec<Vec<u64>> =
            spaces.par_iter().map(|(space, vars)| endpoints(space, *vars).unwrap_or_default()).collect();
        Guard { endpoints: parts.into_iter().flatten().collect(), exercises: crate::arithmetic::guarded().collect() }
    }

    /// Whether the standard guard holds the sets of a space. Not by its key: other settings, and more variables, have sets of
    /// their own under the same one.
    pub fn is_standard(space: &Space, vars: usize) -> bool {
        (1..=2).contains(&vars) && Space::named(&space.key).is_ok_and(|named| named == *space)
    }

    /// Adds the sets of one more space, e.g. a user's own.
    pub fn extend(&mut self, space: &Space, vars: usize) -> Result<(), SpaceError> {
        self.endpoints.extend(endpoints(space, vars)?);
        Ok(())
    }

    /// Whether an endpoint with this fingerprint is guarded.
    #[inline]
    pub fn contains(&self, fingerprint: u64) -> bool {
        self.endpoints.contains(&fingerprint)
    }

    /// Whether the exercise with this fingerprint is guarded.
    #[inline]
    pub fn contains_exercise(&self, fingerprint: u64) -> bool {
        self.exercises.contains(&fingerprint)
    }

    /// How many endpoints are guarded.
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }
}

fn endpoints(space: &Space, vars: usize) -> Result<Vec<u64>, SpaceError> {
    let mut found = Vec::new();
    for FixedSet { purpose, proofs, .. } in SETS {
        let mut polynomials = Polynomials::new(space, vars, Style::default(), crate::sets::SEED, purpose)?;
        for index in 0..proofs {
            polynomials.draw(index);
            found.push(polynomials.endpoint_fingerprint());
        }
    }
    Ok(found)
}

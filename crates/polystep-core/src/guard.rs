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
use crate::stream::Purpose;

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
    ///
    /// # Errors
    /// If one of the paper's spaces cannot be sampled. A guard with holes would let training see the tests, silently.
    pub fn standard() -> Result<Guard, SpaceError> {
        let keys: Vec<(&'static str, usize)> = KEYS.iter().flat_map(|key| [(*key, 1), (*key, 2)]).collect();
        let parts = keys.par_iter().map(|&(key, vars)| {
            let drawn = Space::named(key).and_then(|space| endpoints(&space, vars));
            drawn.map_err(|error| SpaceError::Guard { key, vars, why: Box::new(error) })
        });
        let parts: Vec<Vec<u64>> = parts.collect::<Result<_, _>>()?;
        let endpoints = parts.into_iter().flatten().collect();
        Ok(Guard { endpoints, exercises: crate::arithmetic::guarded().collect() })
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

    /// An error if the endpoints of the first 1000 training polynomials of a space are all guarded. Such a space leaves nothing
    /// to train on, and drawing again would never end.
    pub fn check_room(&self, space: &Space, vars: usize, seed: u64) -> Result<(), SpaceError> {
        let mut polynomials = Polynomials::new(space, vars, Style::default(), seed, Purpose::Train)?;
        let free = |index| {
            polynomials.draw(index);
            !self.contains(polynomials.endpoint_fingerprint())
        };
        if (0..1000).any(free) { Ok(()) } else { Err(SpaceError::TooSmall { key: space.key.clone() }) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_guard_has_no_holes() {
        let why = Box::new(SpaceError::Unknown { key: "small_coeff".into() });
        let broken = SpaceError::Guard { key: "small_coeff", vars: 2, why }.to_string();
        for part in ["cannot be built", "unknown configuration", "small_coeff with 2 variables", "report it"] {
            assert!(broken.contains(part), "{broken}");
        }
        let guard = Guard::standard().unwrap();
        for key in KEYS {
            for vars in [1, 2] {
                let endpoints = endpoints(&Space::named(key).unwrap(), vars).unwrap();
                assert_eq!(endpoints.len() as u64, SETS.iter().map(|set| set.proofs).sum::<u64>(), "{key} {vars}");
                assert!(endpoints.iter().all(|&endpoint| guard.contains(endpoint)), "{key} {vars}");
            }
        }
        assert!(!guard.exercises.is_empty());
    }

    #[test]
    fn a_space_that_cannot_be_sampled_is_an_error() {
        let mut guard = Guard::default();
        let mut space = Space::named("small_coeff").unwrap();
        space.coeff.product = 0;
        assert!(guard.extend(&space, 1).is_err() && guard.is_empty());
    }
}

//! The guard: endpoints, and exercises of the arithmetic probe, that training must not see.
//!
//! A training polynomial of any kind whose endpoint is guarded is drawn again (§3, "to avoid collisions"), and so is an exercise.
//! [`GuardScope`] says whose endpoints these are. By default they are those of all twelve spaces of the paper, whatever is learned:
//! any model may then be tested on any set. The paper guarded a model's own sets only.

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::named;
use crate::notation::Style;
use crate::sample::Polynomials;
use crate::sets::{FixedSet, SETS};
use crate::space::{KEYS, Space, SpaceError};
use crate::stream::Purpose;

named! { "guard";
    /// Which sets training must not meet. A later one holds all that an earlier one does.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
    pub enum GuardScope {
        /// The sets of the spaces that are learned: the paper's guard.
        Own = "own",
        /// Those, and the sets of the paper's six configurations in one and two variables.
        #[default]
        All = "all",
        /// The same, with the long test sets.
        Long = "long",
    }
}

impl GuardScope {
    /// The sets of one space that are guarded.
    pub fn sets(self) -> [FixedSet; 3] {
        match self {
            GuardScope::Own | GuardScope::All => SETS,
            GuardScope::Long => SETS.map(FixedSet::lengthened),
        }
    }

    /// Whether the sets of a space are guarded whatever is learned. Not by its key: other settings, and more variables, have
    /// sets of their own under the same one.
    pub fn always_holds(self, space: &Space, vars: usize) -> bool {
        self != GuardScope::Own
            && (1..=2).contains(&vars)
            && Space::named(&space.key).is_ok_and(|named| named == *space)
    }
}

/// A set of endpoints and exercises, kept as fingerprints ([of polynomials](crate::poly::Poly::fingerprint),
/// [of exercises](crate::arithmetic::Exercise::fingerprint)).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Guard {
    scope: GuardScope,
    endpoints: FxHashSet<u64>,
    exercises: FxHashSet<u64>,
}

impl Guard {
    /// The guard of scope `all`, before any space of one's own.
    ///
    /// # Errors
    /// As [`Guard::of`].
    pub fn standard() -> Result<Guard, SpaceError> {
        Guard::of(GuardScope::All)
    }

    /// The endpoints that a scope guards whatever is learned, and the exercises of the arithmetic probe's sets.
    ///
    /// # Errors
    /// If one of the paper's spaces cannot be sampled. A guard with holes would let training see the tests, silently.
    pub fn of(scope: GuardScope) -> Result<Guard, SpaceError> {
        let spaces = KEYS.iter().filter(|_| scope != GuardScope::Own).flat_map(|key| [(*key, 1), (*key, 2)]);
        let parts: Vec<_> = spaces.flat_map(|space| scope.sets().map(|set| (space, set))).collect();
        let parts = parts.par_iter().map(|&((key, vars), set)| {
            let drawn = Space::named(key).and_then(|space| endpoints(&space, vars, set));
            drawn.map_err(|error| SpaceError::Guard { key, vars, why: Box::new(error) })
        });
        let parts: Vec<Vec<u64>> = parts.collect::<Result<_, _>>()?;
        let endpoints = parts.into_iter().flatten().collect();
        Ok(Guard { scope, endpoints, exercises: crate::arithmetic::guarded().collect() })
    }

    /// Adds the sets of one more space, e.g. a user's own.
    pub fn extend(&mut self, space: &Space, vars: usize) -> Result<(), SpaceError> {
        let parts = self.scope.sets().into_par_iter().map(|set| endpoints(space, vars, set));
        let parts: Vec<Vec<u64>> = parts.collect::<Result<_, _>>()?;
        self.endpoints.extend(parts.into_iter().flatten());
        Ok(())
    }

    /// Which sets it holds.
    pub fn scope(&self) -> GuardScope {
        self.scope
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

fn endpoints(space: &Space, vars: usize, set: FixedSet) -> Result<Vec<u64>, SpaceError> {
    let mut polynomials = Polynomials::new(space, vars, Style::default(), crate::sets::SEED, set.purpose)?;
    let drawn = (0..set.proofs).map(|index| {
        polynomials.draw(index);
        polynomials.endpoint_fingerprint()
    });
    Ok(drawn.collect())
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
        let [own, all, long] = GuardScope::ALL.map(|scope| Guard::of(scope).unwrap());
        for key in KEYS {
            for vars in [1, 2] {
                let space = Space::named(key).unwrap();
                for set in SETS.map(FixedSet::lengthened) {
                    let endpoints = endpoints(&space, vars, set).unwrap();
                    let fixed = SETS.iter().find(|fixed| fixed.purpose == set.purpose).unwrap().proofs as usize;
                    assert_eq!(endpoints.len() as u64, set.proofs, "{key} {vars} {}", set.name);
                    assert!(endpoints[..fixed].iter().all(|&endpoint| all.contains(endpoint)), "{key} {vars}");
                    assert!(endpoints.iter().all(|&endpoint| long.contains(endpoint)), "{key} {vars}");
                    let beyond = endpoints[fixed..].iter().any(|&endpoint| !all.contains(endpoint));
                    assert_eq!(beyond, set.proofs as usize > fixed, "{key} {vars} {}", set.name);
                }
            }
        }
        assert!(own.is_empty() && !own.exercises.is_empty() && own.exercises == long.exercises);
        assert_eq!(all, Guard::standard().unwrap());
    }

    #[test]
    fn a_scope_holds_the_sets_of_a_space_of_ones_own_to_its_length() {
        let mut space = Space::named("small_coeff").unwrap();
        space.products.max = 4;
        let last = |proof: u64| {
            let test = FixedSet { proofs: proof + 1, ..SETS[0] };
            *endpoints(&space, 3, test).unwrap().last().unwrap()
        };
        for scope in GuardScope::ALL {
            let mut guard = Guard::of(scope).unwrap();
            assert!(!scope.always_holds(&space, 3) && !scope.always_holds(&space, 1));
            guard.extend(&space, 3).unwrap();
            assert!(guard.contains(last(999)), "{scope}");
            assert_eq!(guard.contains(last(9999)), scope == GuardScope::Long, "{scope}");
        }
    }

    #[test]
    fn a_space_that_cannot_be_sampled_is_an_error() {
        let mut guard = Guard::default();
        let mut space = Space::named("small_coeff").unwrap();
        space.coeff.product = 0;
        assert!(guard.extend(&space, 1).is_err() && guard.is_empty());
    }
}

//! The fixed sets of each (configuration, number of variables): test, valid and beam; and longer ones, for models that err rarely.
//!
//! They are streams like any other, under one fixed seed; what is committed is the checksum of their starts. The beam set is
//! the first 5000 *steps* of its stream, so how many proofs it holds depends on the task; the guard holds all 5000 proofs
//! that the endpoint task needs, and every other task a part of them.
//!
//! The long sets are the same streams, further: the first 1000 proofs of a long test set are the test set. Training is guarded
//! against the rest of them only where it is asked for ([`GuardScope::Long`](crate::GuardScope::Long)).

use crate::examples::Examples;
use crate::notation::{Notation, Style, print};
use crate::sample::{Polynomials, Sampler};
use crate::space::{Space, SpaceError};
use crate::stream::Purpose;
use crate::task::Task;

/// The seed of all fixed sets.
pub const SEED: u64 = 2021;

/// How many steps a beam set has.
pub const BEAM_STEPS: usize = 5000;

/// How many proofs a long test set has.
pub const LONG_PROOFS: u64 = 10_000;

/// How many steps a long beam set has; a task with one step per proof has as many as the guard has proofs.
pub const LONG_BEAM_STEPS: usize = 10_000;

/// One of the three sets that every (configuration, vars) has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedSet {
    /// Its name.
    pub name: &'static str,
    /// The purpose of its stream.
    pub purpose: Purpose,
    /// How many proofs of the stream are guarded; for beam the most that a task can need.
    pub proofs: u64,
    /// The most steps that it has.
    pub steps: usize,
}

/// test, valid and beam.
pub const SETS: [FixedSet; 3] = [
    FixedSet { name: "test", purpose: Purpose::Test, proofs: 1000, steps: usize::MAX },
    FixedSet { name: "valid", purpose: Purpose::Valid, proofs: 1000, steps: usize::MAX },
    FixedSet { name: "beam", purpose: Purpose::Beam, proofs: BEAM_STEPS as u64, steps: BEAM_STEPS },
];

impl FixedSet {
    /// The set of this purpose; only test, valid and beam have one.
    pub fn of(purpose: Purpose) -> Option<FixedSet> {
        SETS.into_iter().find(|s| s.purpose == purpose)
    }

    /// The long set of the same stream. Validation has none: it is the same set.
    pub fn lengthened(self) -> FixedSet {
        match self.purpose {
            Purpose::Test => FixedSet { proofs: LONG_PROOFS, ..self },
            Purpose::Beam => FixedSet { steps: LONG_BEAM_STEPS, ..self },
            _ => self,
        }
    }

    /// The step examples of the set under a task.
    pub fn examples(&self, task: &Task) -> Result<Examples, SpaceError> {
        let mut sampler = Sampler::new(task, SEED, self.purpose)?;
        let mut examples = Examples::default();
        for index in 0..self.proofs {
            sampler.write_examples(index, None, &mut examples);
            if examples.len() >= self.steps {
                break;
            }
        }
        examples.spans.truncate(self.steps);
        Ok(examples)
    }

    /// BLAKE3 of the infix starts, one per line, as 64 hexadecimal digits.
    pub fn checksum(&self, space: &Space, vars: usize) -> Result<String, SpaceError> {
        let style = Style::default();
        let mut polynomials = Polynomials::new(space, vars, style, SEED, self.purpose)?;
        let mut hasher = blake3::Hasher::new();
        for index in 0..self.proofs {
            polynomials.draw(index);
            hasher.update(print(&polynomials.state(Notation::Infix), Notation::Infix, style).as_bytes());
            hasher.update(b"\n");
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// The checksums of the 72 fixed sets, those of the paper's spaces and of their signed variants: configuration, number of
/// variables, then test, valid, beam. A change here would mean
/// that numbers measured before and after cannot be compared.
pub const CHECKSUMS: &str = include_str!("sets.txt");

/// The checksums of the 24 long test sets: configuration, number of variables, test.
/// `UPDATE_GOLDEN=1 cargo test -p polystep-core --lib sets` writes both files.
pub const LONG_CHECKSUMS: &str = include_str!("long_sets.txt");

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use rayon::prelude::*;

    use super::*;
    use crate::space::KEYS;

    /// A line for each of the paper's spaces and their signed variants: the checksums of some sets.
    fn checksums(sets: &[FixedSet]) -> String {
        let keys = KEYS.map(str::to_owned).into_iter().chain(KEYS.map(|key| format!("{key}/signed")));
        let spaces: Vec<(String, usize)> = keys.flat_map(|key| [(key.clone(), 1), (key, 2)]).collect();
        let line = |(key, vars): &(String, usize)| {
            let space = Space::of_key(key).unwrap();
            let mut line = format!("{key} {vars}");
            for set in sets {
                write!(line, " {}", set.checksum(&space, *vars).unwrap()).unwrap();
            }
            line + "\n"
        };
        spaces.par_iter().map(line).collect()
    }

    fn assert_unmoved(sets: &[FixedSet], file: &str, committed: &str) {
        let found = checksums(sets);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(format!("{}/src/{file}", env!("CARGO_MANIFEST_DIR")), &found).unwrap();
        }
        assert_eq!(found, committed, "{file}");
    }

    #[test]
    fn the_fixed_sets_have_not_moved() {
        assert_unmoved(&SETS, "sets.txt", CHECKSUMS);
    }

    #[test]
    fn the_long_sets_have_not_moved() {
        assert_unmoved(&[SETS[0].lengthened()], "long_sets.txt", LONG_CHECKSUMS);
    }

    #[test]
    fn a_long_set_begins_with_the_short_one() {
        let task = Task::new(Space::named("medium_coeff").unwrap(), 1);
        for set in SETS {
            let [short, long] = [set, set.lengthened()].map(|set| set.examples(&task).unwrap());
            let same = |i| (short.src(i), short.tgt(i)) == (long.src(i), long.tgt(i));
            assert!((0..short.len()).all(same), "{}", set.name);
            assert_eq!(long.len() > short.len(), set.purpose != Purpose::Valid, "{}", set.name);
        }
        let long = SETS[0].lengthened().examples(&task).unwrap();
        assert_eq!(u64::from(long.spans.last().unwrap().proof), LONG_PROOFS - 1);
    }

    #[test]
    fn beam_sets_are_cut_at_five_thousand_steps() {
        let task = Task::new(Space::named("medium_coeff").unwrap(), 1);
        let beam = FixedSet::of(Purpose::Beam).unwrap().examples(&task).unwrap();
        assert_eq!(beam.len(), BEAM_STEPS);
        let test = FixedSet::of(Purpose::Test).unwrap().examples(&task).unwrap();
        assert_eq!(test.spans.last().unwrap().proof, 999);
    }
}

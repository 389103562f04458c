//! The fixed sets of each (configuration, number of variables): test, valid and beam.
//!
//! They are streams like any other, under one fixed seed; what is committed is the checksum of their starts. The beam set is
//! the first 5000 *steps* of its stream, so how many proofs it holds depends on the task; the guard holds all 5000 proofs
//! that the endpoint task needs, and every other task a part of them.

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

/// One of the three sets that every (configuration, vars) has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedSet {
    /// Its name.
    pub name: &'static str,
    /// The purpose of its stream.
    pub purpose: Purpose,
    /// How many proofs of the stream are guarded; for beam the most that a task can need.
    pub proofs: u64,
}

/// test, valid and beam.
pub const SETS: [FixedSet; 3] = [
    FixedSet { name: "test", purpose: Purpose::Test, proofs: 1000 },
    FixedSet { name: "valid", purpose: Purpose::Valid, proofs: 1000 },
    FixedSet { name: "beam", purpose: Purpose::Beam, proofs: BEAM_STEPS as u64 },
];

impl FixedSet {
    /// The set of this purpose; only test, valid and beam have one.
    pub fn of(purpose: Purpose) -> Option<FixedSet> {
        SETS.into_iter().find(|s| s.purpose == purpose)
    }

    /// The step examples of the set under a task. Beam sets are cut after [`BEAM_STEPS`] steps.
    pub fn examples(&self, task: &Task) -> Result<Examples, SpaceError> {
        let mut sampler = Sampler::new(task, SEED, self.purpose)?;
        let mut examples = Examples::default();
        for index in 0..self.proofs {
            sampler.write_examples(index, None, &mut examples);
            if self.purpose == Purpose::Beam && examples.len() >= BEAM_STEPS {
                examples.spans.truncate(BEAM_STEPS);
                break;
            }
        }
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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use rayon::prelude::*;

    use super::*;
    use crate::space::KEYS;

    #[test]
    fn the_fixed_sets_have_not_moved() {
        let keys = KEYS.map(str::to_owned).into_iter().chain(KEYS.map(|key| format!("{key}/signed")));
        let spaces: Vec<(String, usize)> = keys.flat_map(|key| [(key.clone(), 1), (key, 2)]).collect();
        let lines: Vec<String> = spaces
            .par_iter()
            .map(|(key, vars)| {
                let space = Space::of_key(key).unwrap();
                let mut line = format!("{key} {vars}");
                for set in SETS {
                    write!(line, " {}", set.checksum(&space, *vars).unwrap()).unwrap();
                }
                line
            })
            .collect();
        let found = lines.join("\n") + "\n";
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sets.txt"), &found).unwrap();
        }
        assert_eq!(found, CHECKSUMS);
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

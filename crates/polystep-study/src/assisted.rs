//! Adds up assisted proofs: proofs that a model and the checker write together.

use polystep_record::metrics::{Assisted, AssistedSteps, Completed};
use polystep_record::{AssistedRecord, Author, Proportion};

/// Scores assisted proofs by the beams that they needed, up to `width`; nothing if there are none.
pub fn score(records: &[AssistedRecord], width: usize) -> Option<Assisted> {
    let needed: Vec<Option<usize>> = records.iter().map(AssistedRecord::beams).collect();
    let within = |beams: usize| Proportion::of(needed.iter().map(|n| n.is_some_and(|n| n <= beams)));
    let completed = |beams: usize| Some(Completed { beams: beams as u64, proofs: within(beams)? });
    let authors = || records.iter().flat_map(|record| &record.authors);
    let steps = |by: fn(&Author) -> bool| Proportion::of(authors().map(by));
    Some(Assisted {
        completed: (0..=width).map(completed).collect::<Option<_>>()?,
        steps: AssistedSteps {
            model: steps(|a| *a == Author::Model)?,
            beams: steps(|a| matches!(a, Author::Beam(_)))?,
            exact: steps(|a| *a == Author::Exact)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Author::{Beam, Exact, Model};

    #[test]
    fn proofs_are_counted_by_the_beams_they_need() {
        let record = |authors: &[Author]| AssistedRecord { proof: "p".into(), authors: authors.to_vec() };
        let records =
            [record(&[Model, Model]), record(&[Beam(2), Model]), record(&[Beam(1), Exact]), record(&[Beam(3)])];
        let assisted = score(&records, 3).unwrap();
        let completed: Vec<_> = assisted.completed.iter().map(|c| (c.beams, c.proofs.count, c.proofs.of)).collect();
        assert_eq!(completed, [(0, 1, 4), (1, 1, 4), (2, 2, 4), (3, 3, 4)]);
        let steps = assisted.steps;
        assert_eq!([steps.model, steps.beams, steps.exact].map(|p| (p.count, p.of)), [(3, 7), (3, 7), (1, 7)]);
        assert_eq!(score(&[], 5), None);
    }
}

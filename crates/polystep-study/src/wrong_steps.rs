//! Which kind of step goes wrong (the paper's error tables).
//!
//! A wrong step counts under the kind that was *expected*, whatever the model did instead. First: the kind of a wrong proof's
//! first wrong step, over wrong proofs. Total: wrong steps of a kind, over wrong steps.

use polystep_core::StepKind;
use polystep_record::Proportion;
use polystep_record::metrics::{Errors, KindErrors};

/// Counts proofs, each the list of its steps in order: the expected kind, and whether the step is right.
pub fn count<'a>(proofs: impl IntoIterator<Item = &'a [(StepKind, bool)]>) -> Errors {
    let mut steps = [0u64; StepKind::ALL.len()];
    let (mut first, mut total) = (steps, steps);
    let place = |kind: StepKind| StepKind::ALL.iter().position(|k| *k == kind).unwrap_or(0);
    for proof in proofs {
        for (kind, right) in proof {
            steps[place(*kind)] += 1;
            total[place(*kind)] += u64::from(!right);
        }
        if let Some((kind, _)) = proof.iter().find(|(_, right)| !right) {
            first[place(*kind)] += 1;
        }
    }
    let (wrong_proofs, wrong_steps) = (first.iter().sum(), total.iter().sum());
    let of_kind = |(i, kind): (usize, StepKind)| {
        Some(KindErrors {
            kind,
            rate: Proportion::new(total[i], steps[i])?,
            first: Proportion::new(first[i], wrong_proofs),
            total: Proportion::new(total[i], wrong_steps),
        })
    };
    Errors { wrong_proofs, wrong_steps, kinds: StepKind::ALL.into_iter().enumerate().filter_map(of_kind).collect() }
}

#[cfg(test)]
mod tests {
    use StepKind::{Facstep, Markstep, Mulstep, Sumstep};

    use super::*;

    /// Three proofs. The second is wrong from its mulstep on (two wrong steps, first a mulstep); the third only at the sum.
    #[test]
    fn first_and_total_by_hand() {
        let right = [(Facstep, true), (Mulstep, true), (Sumstep, true)];
        let early = [(Facstep, true), (Mulstep, false), (Mulstep, false), (Sumstep, true)];
        let late = [(Mulstep, true), (Sumstep, false)];
        let errors = count([&right[..], &early, &late]);
        assert_eq!((errors.wrong_proofs, errors.wrong_steps), (2, 3));
        let share = |kind| {
            let k = errors.of_kind(kind).unwrap();
            (k.first.unwrap().percent, k.total.unwrap().percent, k.rate.percent)
        };
        assert_eq!(share(Facstep), (0.0, 0.0, 0.0));
        assert_eq!(share(Mulstep), (50.0, 200.0 / 3.0, 50.0));
        assert_eq!(share(Sumstep), (50.0, 100.0 / 3.0, 100.0 / 3.0));
        assert_eq!(errors.of_kind(Markstep), None);
    }

    #[test]
    fn marksteps_have_a_row_where_they_occur() {
        let annotated = [(Markstep, false), (Facstep, true), (Markstep, true)];
        let errors = count([&annotated[..]]);
        assert_eq!(errors.of_kind(Markstep).unwrap().first.unwrap().percent, 100.0);
        assert_eq!(errors.of_kind(Markstep).unwrap().rate.percent, 50.0);
    }

    #[test]
    fn without_errors_there_are_no_shares() {
        let errors = count([&[(Facstep, true)][..]]);
        assert_eq!(errors.kinds[0].first, None);
        assert_eq!(errors.kinds[0].rate.percent, 0.0);
    }
}

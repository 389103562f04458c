//! Adds up recursive proofs: proofs that a model writes alone, its own output being its next input.

use polystep_record::metrics::{Recursive, Stopped};
use polystep_record::{Proportion, RecursiveRecord, Stop};

/// Scores recursive proofs; nothing if there are none.
pub fn score(records: &[RecursiveRecord]) -> Option<Recursive> {
    let share = |holds: &dyn Fn(&RecursiveRecord) -> bool| Proportion::of(records.iter().map(holds));
    let stopped = |stop| {
        let proofs = share(&|record| record.stop == stop).filter(|p| p.count > 0)?;
        Some(Stopped { stop, proofs })
    };
    Some(Recursive {
        recursive_exact: share(&RecursiveRecord::is_exact)?,
        recursive_end: share(&RecursiveRecord::is_right_end)?,
        stops: Stop::ALL.into_iter().filter_map(stopped).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(states: &[&str], stop: Stop) -> RecursiveRecord {
        let own = |s: &[&str]| s.iter().map(|s| (*s).to_owned()).collect();
        RecursiveRecord {
            proof: "p".into(),
            states: own(states),
            expected: own(&["(2)*(3)+(1)", "(6)+(1)", "7"]),
            stop,
        }
    }

    #[test]
    fn two_ways_of_being_right() {
        let exact = record(&["(2)*(3)+(1)", "(6)+(1)", "7"], Stop::End);
        let detour = record(&["(2)*(3)+(1)", "7"], Stop::End);
        let wrong = record(&["(2)*(3)+(1)", "(5)+(1)", "6"], Stop::End);
        let broken = record(&["(2)*(3)+(1)", "(6"], Stop::Malformed);
        assert_eq!([&exact, &detour, &wrong, &broken].map(|r| r.is_exact()), [true, false, false, false]);
        assert_eq!([&exact, &detour, &wrong, &broken].map(|r| r.is_right_end()), [true, true, false, false]);
        assert_eq!(wrong.right_steps(), 1);
        let all = score(&[exact, detour, wrong, broken]).unwrap();
        assert_eq!((all.recursive_exact.percent, all.recursive_end.percent), (25.0, 50.0));
        assert_eq!(
            all.stops.iter().map(|s| (s.stop, s.proofs.count)).collect::<Vec<_>>(),
            [(Stop::End, 3), (Stop::Malformed, 1)]
        );
    }

    #[test]
    fn too_long_a_proof_is_not_exact_even_if_it_begins_right() {
        let mut long = record(&["(2)*(3)+(1)", "(6)+(1)", "7", "7"], Stop::Loop);
        assert!(!long.is_exact() && !long.is_right_end());
        long.states.pop();
        assert!(long.is_exact());
        assert_eq!(score(&[]), None);
    }
}

//! The numbers that the repository publishes follow from their counts, in every record of `results/runs` and `models`.

use std::fs;
use std::path::{Path, PathBuf};

use polystep_record::Proportion;
use polystep_record::metrics::KindErrors;
use polystep_study::Metrics;
use polystep_study::metrics::{BeamScores, Greedy};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// Every proportion anywhere in a document, made again from its count.
fn proportions(value: &Value, place: &str) -> usize {
    let inner = |key: &str, value: &Value| proportions(value, &format!("{place}/{key}"));
    match value {
        Value::Object(map) if map.contains_key("percent") => {
            let found: Proportion = serde_json::from_value(value.clone()).unwrap();
            let again = Proportion::new(found.count, found.of).unwrap();
            let pairs = [(found.percent, again.percent), (found.lo, again.lo), (found.hi, again.hi)];
            assert!(pairs.iter().all(|&(a, b)| close(a, b)), "{place}: {found:?}, again {again:?}");
            1
        }
        Value::Object(map) => map.iter().map(|(key, value)| inner(key, value)).sum(),
        Value::Array(list) => list.iter().enumerate().map(|(i, value)| inner(&i.to_string(), value)).sum(),
        _ => 0,
    }
}

/// The kinds' steps add up to all steps, their errors to all errors.
fn greedy_adds_up(greedy: &Greedy, place: &str) {
    let (proofs, steps, errors) = (greedy.full_proof.exact, greedy.stepwise.exact, &greedy.errors);
    assert_eq!(errors.wrong_proofs, proofs.of - proofs.count, "{place}");
    assert_eq!(errors.wrong_steps, steps.of - steps.count, "{place}");
    let sum = |part: fn(&KindErrors) -> u64| errors.kinds.iter().map(part).sum::<u64>();
    assert_eq!(sum(|k| k.rate.of), steps.of, "{place}");
    assert_eq!(sum(|k| k.rate.count), errors.wrong_steps, "{place}");
    assert_eq!(sum(|k| k.first.map_or(0, |p| p.count)), errors.wrong_proofs, "{place}");
    assert_eq!(sum(|k| k.total.map_or(0, |p| p.count)), errors.wrong_steps, "{place}");
    for slices in [&greedy.slices.terms, &greedy.slices.coefficient, &greedy.slices.length] {
        let wrong = slices.iter().fold((0, 0), |(n, of), s| (n + s.wrong.count, of + s.wrong.of));
        assert_eq!(wrong, (errors.wrong_steps, steps.of), "{place}");
    }
}

/// Sure and right, once counted, are the same in precision and recall; F1 is their harmonic mean, 2·both ÷ (sure + right).
fn calibration_adds_up(beam: &BeamScores, place: &str) {
    assert!(beam.any5.exact.count >= beam.top1.exact.count, "{place}");
    let exact = beam.calibration.as_ref().map(|c| (c.sure, beam.top1.exact));
    let symbolic = beam.calibration_symbolic.map(|sure| (sure, beam.top1.symbolic));
    for (sure, right) in exact.into_iter().chain(symbolic) {
        let rate = sure.sure_rate.unwrap();
        assert_eq!(rate.of, right.of, "{place}");
        let (Some(precision), Some(recall)) = (sure.precision, sure.recall) else {
            assert!(rate.count == 0 || right.count == 0, "{place}");
            continue;
        };
        assert_eq!((precision.of, recall.of), (rate.count, right.count), "{place}");
        assert_eq!(precision.count, recall.count, "{place}");
        let f1 = 2.0 * precision.count as f64 / (rate.count + right.count) as f64;
        assert!(close(sure.f1.unwrap(), f1), "{place}: {sure:?}");
    }
}

#[test]
fn records_agree_with_their_counts() {
    let (mut documents, mut numbers) = (0, 0);
    for folder in ["results/runs", "models"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path().join("metrics.json");
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let value: Value = serde_json::from_str(&text).unwrap();
            numbers += proportions(&value, &path.display().to_string());
            documents += 1;
            let metrics: Metrics = serde_json::from_value(value).unwrap();
            for e in &metrics.evaluations {
                let place = format!("{} {}:{}", path.display(), e.config, e.vars);
                e.greedy.iter().for_each(|greedy| greedy_adds_up(greedy, &place));
                e.beam.iter().chain(&e.beam_lp1).for_each(|beam| calibration_adds_up(beam, &place));
            }
        }
    }
    assert!(documents >= 40 && numbers > 3000, "{documents} documents, {numbers} numbers");
}

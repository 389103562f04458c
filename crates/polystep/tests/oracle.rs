//! The sample that the independent oracle has verified (reference/README.md): the same proofs, made again, text for text.

use polystep_core::{Guard, Purpose, Sampler, Setting, Space, Task};
use polystep_record::ProofRecord;
use std::collections::BTreeSet;

const SAMPLE: &str = include_str!("../../../reference/oracle_sample.jsonl");

#[test]
fn what_the_oracle_verified_is_what_we_generate() {
    let guard = Guard::standard();
    for line in SAMPLE.lines() {
        let verified: ProofRecord = serde_json::from_str(line).unwrap();
        let space = Space::named(&verified.config).unwrap();
        let task = Task { space, vars: verified.vars, writing: verified.writing() };
        let mut sampler = Sampler::new(&task, verified.seed, Purpose::Train).unwrap();
        let record = ProofRecord::guarded(&mut sampler, verified.index, &guard).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

#[test]
fn the_sample_holds_every_space_setting_and_notation() {
    let records: Vec<ProofRecord> = SAMPLE.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let spaces: BTreeSet<(&str, usize)> = records.iter().map(|r| (r.config.as_str(), r.vars)).collect();
    assert_eq!(spaces.len(), 12);
    let ways: BTreeSet<(&str, String, String)> =
        records.iter().map(|r| (r.setting.name(), r.granularity.to_string(), r.notation.to_string())).collect();
    // plain and calculator in four granularities and two notations; endpoint and arithmetic in two; annotated in three
    assert_eq!(ways.len(), 2 * 4 * 2 + 2 + 2 + 3);
    assert!(Setting::ALL.iter().all(|s| ways.iter().any(|w| w.0 == s.name())));
}

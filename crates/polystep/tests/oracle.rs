//! The sample that the independent oracle has verified (reference/README.md): the same proofs, made again, text for text.

use polystep_core::space::KEYS;
use polystep_core::{Granularity, Guard, Notation, Purpose, Sampler, Setting, Space, StepKind, Task, Writing};
use polystep_record::ProofRecord;

const SAMPLE: &str = include_str!("../../../reference/oracle_sample.jsonl");
const SIGNED: &str = include_str!("../../../reference/oracle_sample_signed.jsonl");

#[test]
fn what_the_oracle_verified_is_what_we_generate() {
    let standard = Guard::standard().unwrap();
    for line in SAMPLE.lines().chain(SIGNED.lines()) {
        let verified: ProofRecord = serde_json::from_str(line).unwrap();
        let space = Space::of_key(&verified.config).unwrap();
        let mut guard = standard.clone();
        if space.signed {
            guard.extend(&space, verified.vars).unwrap();
        }
        let task = Task { space, vars: verified.vars, writing: verified.writing() };
        let mut sampler = Sampler::new(&task, verified.seed, Purpose::Train).unwrap();
        let record = ProofRecord::guarded(&mut sampler, verified.index, &guard).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

#[test]
fn the_samples_hold_every_space_setting_notation_and_operation() {
    holds_everything(SAMPLE, "", &Setting::ALL);
    let polynomials = [Setting::Plain, Setting::Calculator, Setting::Annotated, Setting::Endpoint];
    holds_everything(SIGNED, "/signed", &polynomials);
    for part in ["-", "(0)", "[-", "INT- 1"] {
        assert!(SIGNED.contains(part), "{part}");
    }
}

fn holds_everything(sample: &str, variant: &str, settings: &[Setting]) {
    let records: Vec<ProofRecord> = sample.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for key in KEYS.map(|key| format!("{key}{variant}")) {
        for vars in [1, 2] {
            assert!(records.iter().any(|r| r.config == key && r.vars == vars), "{key} with {vars} variables");
        }
    }
    for &setting in settings {
        for notation in Notation::ALL {
            for (name, granularity) in Granularity::NAMED {
                let writing = Writing { setting, granularity, notation, ..Writing::default() };
                let one_step = matches!(setting, Setting::Endpoint | Setting::Arithmetic);
                if writing.validate().is_ok() && (!one_step || granularity == Granularity::default()) {
                    assert!(records.iter().any(|r| r.writing() == writing), "{setting} {name} {notation}");
                }
            }
        }
    }
    for kind in StepKind::ALL.into_iter().filter(|kind| kind.tag().is_some()) {
        assert!(records.iter().flat_map(|r| &r.steps).any(|step| step.kind == kind), "no {kind} was verified");
    }
}

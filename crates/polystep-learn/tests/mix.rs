//! Whole runs on the CPU whose stream shows some classes of steps more often: they continue bit for bit, and the stream of one
//! that is examined follows its errors.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use polystep_core::StepClass;
use polystep_engine::cpu::Cpu;
use polystep_learn::config::RunConfig;
use polystep_learn::log::Event;
use polystep_learn::train::{Checkpoint, Checkpoints, RunSetup, SessionEnd, Trainer, TrainingFolder};
use polystep_record::{JsonLines, LogLine, MixLine};

/// Of 16 384 proofs of a block about a hundred steps are kept: what is not named has the weight 1, and does not occur.
const TINY: &str = r#"
[data]
config = "no_backtrack"
[data.mix]
facstep = 0.002
sumstep = 0.002
mul_multi0 = 0.002
mul2_multi1 = 0.002
mul2_multi2 = 0.002
mul3_multi1 = 0.002
mul3_multi2 = 0.002
mul3_multi2_sums3 = 0.002
mul3_multi3 = 0.002
mul3_multi3_sums4 = 0.002
mul3_multi3_sums5 = 0.002
[model]
d = 64
layers = 1
heads = 4
ffn = 64
[train]
batch = 8
lr = 3e-3
warmup = 10
steps = 70
valid_every = 200
valid_proofs = 10
log_every = 4
checkpoint_steps = 1
"#;

fn setup(more: &str) -> RunSetup {
    RunSetup::without_test(RunConfig::from_toml(&format!("{TINY}{more}"), &[]).unwrap()).unwrap()
}

/// Runs or continues a run in `folder` until it has saved this step, or to its end.
fn train(setup: &RunSetup, folder: &Path, until: u64) -> Checkpoint {
    let held = match TrainingFolder::resume(folder) {
        Ok((folder, _)) => folder,
        Err(_) => TrainingFolder::create(folder, &setup.config).unwrap(),
    };
    let stop = AtomicBool::new(false);
    let mut observer = |event: &Event<'_>| {
        if matches!(event, Event::Saved { step, .. } if *step == until) {
            stop.store(true, Ordering::SeqCst);
        }
    };
    let mut cpu = Cpu::new(setup.programs(), setup.limits, 1).unwrap();
    let end = Trainer::new(setup, &held, &mut cpu, &mut observer, 2).unwrap().run(&stop).unwrap();
    assert_eq!(matches!(end, SessionEnd::Stopped { .. }), until < 70);
    drop(held);
    let mut last = Checkpoints::open(folder).unwrap().newest(setup.layout.len()).unwrap().unwrap();
    last.state.seconds = 0.0;
    last
}

/// The lines about classes, without the clock.
fn mixes(folder: &Path) -> Vec<MixLine> {
    let lines = JsonLines::open(&folder.join("metrics.jsonl")).unwrap().map(Result::unwrap);
    let mix = |line| if let LogLine::Mix(line) = line { Some(MixLine { seconds: 0.0, ..line }) } else { None };
    lines.filter_map(mix).collect()
}

/// Kills a run at some steps, and compares what becomes of it with a run that was never killed.
fn continues_bit_for_bit(setup: &RunSetup, stops: &[u64]) -> (Checkpoint, Vec<MixLine>) {
    let folders = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| folders.path().join(name));
    let unbroken = train(setup, &whole, 70);
    for &stop in stops {
        train(setup, &broken, stop);
    }
    assert!(unbroken == train(setup, &broken, 70), "weights, moments and state");
    assert_eq!(mixes(&whole), mixes(&broken));
    (unbroken, mixes(&whole))
}

#[test]
fn a_mixed_run_goes_on_as_if_nothing_had_happened() {
    let setup = setup("");
    let (end, lines) = continues_bit_for_bit(&setup, &[3, 33]);
    let seen = end.state.seen.unwrap();
    assert_eq!((end.state.examples, seen.0.iter().sum::<u64>()), (560, 560));
    let last = lines.last().unwrap();
    assert_eq!(last.examples, 560);
    assert!(last.classes.iter().all(|class| class.examples == seen.of(class.class) && class.accuracy.is_none()));
    assert!((last.classes.iter().map(|class| class.share).sum::<f64>() - 1.0).abs() < 1e-9);
}

/// A model that has learned almost nothing gets everything wrong but for the easiest steps, so these are shown less.
#[test]
fn a_stream_that_follows_the_errors_does_too() {
    let setup = setup("[train.focus]\nevery = 100\nfloor = 0.5\n");
    let (end, lines) = continues_bit_for_bit(&setup, &[1, 21, 22, 40]);
    let focus = end.state.focus.unwrap();
    assert!(focus.round >= 2 && lines.len() as u64 == focus.round, "{focus:?}");
    let exam = lines.last().unwrap();
    assert_eq!(exam.step, focus.examined);
    assert!(exam.classes.iter().all(|class| class.accuracy.is_some()), "{exam:?}");
    assert!(StepClass::ALL.iter().any(|&class| focus.asked.of(class) >= 200.0));
    let mut other = end.clone();
    other.state.focus = None;
    assert_eq!(other.state.contradiction(), None);
    other.state.seen.as_mut().unwrap().0[0] += 1;
    assert!(other.state.contradiction().unwrap().contains("examples of each class"));
}

#[test]
fn a_run_of_another_mix_is_refused() {
    let folders = tempfile::tempdir().unwrap();
    let folder = folders.path().join("run");
    train(&setup(""), &folder, 2);
    let focused = setup("[train.focus]\n");
    let (held, _) = TrainingFolder::resume(&folder).unwrap();
    let mut cpu = Cpu::new(focused.programs(), focused.limits, 1).unwrap();
    let error = Trainer::new(&focused, &held, &mut cpu, &mut (), 1).err().unwrap().to_string();
    assert!(error.contains("belongs to another run"), "{error}");
}

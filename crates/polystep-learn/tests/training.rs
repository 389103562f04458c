//! Whole runs on the CPU, with a tiny model: they learn, they continue bit for bit, they refuse what is damaged.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use polystep_engine::cpu::Cpu;
use polystep_learn::LearnError;

use polystep_learn::config::RunConfig;
use polystep_learn::feed::{EvalSet, EvalStep};
use polystep_learn::log::{Event, Observer};
use polystep_learn::train::{Checkpoint, Checkpoints, RunSetup, SessionEnd, Trainer, TrainingFolder};
use polystep_learn::weights::load_weights;
use polystep_record::{JsonLines, LogLine, TrainLine, TrainingEnd, TrainingReport};

const TINY: &str = r#"
[data]
config = "small_coeff"
[model]
d = 64
layers = 1
heads = 4
ffn = 128
dropout = 0.1
[train]
batch = 8
lr = 1e-3
warmup = 10
steps = 30
valid_every = 100
valid_proofs = 10
log_every = 4
"#;

fn setup(overrides: &[(&str, &str)]) -> RunSetup {
    let set: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    RunSetup::new(RunConfig::from_toml(TINY, &set).unwrap()).unwrap()
}

/// Runs or continues a run in `folder`.
fn train(
    setup: &RunSetup,
    folder: &Path,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<SessionEnd, LearnError> {
    let folder = match TrainingFolder::resume(folder) {
        Ok((folder, _)) => folder,
        Err(_) => TrainingFolder::create(folder, &setup.config)?,
    };
    let mut cpu = Cpu::new(setup.programs(), setup.limits, 1)?;
    Trainer::new(setup, &folder, &mut cpu, observer, 2)?.run(stop)
}

fn finish(setup: &RunSetup, folder: &Path) -> TrainingReport {
    match train(setup, folder, &mut (), &AtomicBool::new(false)).unwrap() {
        SessionEnd::Finished(report) => *report,
        SessionEnd::Stopped { step } => panic!("stopped at {step}"),
    }
}

/// Runs until the checkpoint of this step is saved, then drops everything.
fn stop_at(setup: &RunSetup, folder: &Path, step: u64) {
    let stop = AtomicBool::new(false);
    let mut observer = |event: &Event<'_>| {
        if matches!(event, Event::Saved { step: s, .. } if *s == step) {
            stop.store(true, Ordering::SeqCst);
        }
    };
    match train(setup, folder, &mut observer, &stop).unwrap() {
        SessionEnd::Stopped { step: s } => assert_eq!(s, step),
        SessionEnd::Finished(_) => panic!("finished before step {step}"),
    }
}

fn checkpoint(setup: &RunSetup, folder: &Path) -> Checkpoint {
    Checkpoints::open(folder).unwrap().newest(setup.layout.len()).unwrap().unwrap()
}

/// All but the clock.
fn timeless(folder: &Path) -> Vec<LogLine> {
    let lines = JsonLines::open(&folder.join("metrics.jsonl")).unwrap();
    let mut lines: Vec<LogLine> = lines.collect::<Result<_, _>>().unwrap();
    for line in &mut lines {
        match line {
            LogLine::Train(line) => line.seconds = 0.0,
            LogLine::Valid(line) => line.seconds = 0.0,
            LogLine::Curriculum(line) => line.seconds = 0.0,
            LogLine::Mix(line) => line.seconds = 0.0,
            LogLine::Other => {}
        }
    }
    lines
}

#[test]
fn a_resumed_run_repeats_an_unbroken_one_bit_for_bit() {
    let folders = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|n| folders.path().join(n));
    // Early stopping's weights are part of it: `select` makes the best ones travel through checkpoints too.
    let setup = setup(&[("train.checkpoint_steps", "5"), ("train.select", "best")]);
    let unbroken = finish(&setup, &whole);
    stop_at(&setup, &broken, 15);
    // What a killed run had logged after its checkpoint is cut off.
    std::fs::write(broken.join("metrics.jsonl"), {
        let mut text = std::fs::read_to_string(broken.join("metrics.jsonl")).unwrap();
        let later = serde_json::to_string(&LogLine::Train(TrainLine {
            step: 16,
            examples: 128,
            loss: 9.0,
            grad_norm: 9.0,
            lr: 9.0,
            exact: Some(0.0),
            tokens: 9,
            seconds: 9.0,
        }));
        text.push_str(&later.unwrap());
        text.push_str("\n{\"kind\":\"tra");
        text
    })
    .unwrap();
    // As are the best weights that it had found by then: these need not be those that are found again.
    let checkpoints = Checkpoints::open(&broken).unwrap();
    std::fs::write(checkpoints.best_path(20), b"of a future that is undone").unwrap();
    let resumed = finish(&setup, &broken);
    let [mut a, mut b] = [checkpoint(&setup, &whole), checkpoint(&setup, &broken)];
    assert_eq!((a.state.step, a.state.examples), (30, 240));
    a.state.seconds = 0.0;
    b.state.seconds = 0.0;
    assert_eq!(a, b);
    load_weights(&checkpoints.best_path(b.state.best.unwrap().step), &setup.layout).unwrap();
    assert_eq!(timeless(&whole), timeless(&broken));
    assert_eq!(
        load_weights(&whole.join("model.safetensors"), &setup.layout).unwrap(),
        load_weights(&broken.join("model.safetensors"), &setup.layout).unwrap()
    );
    assert!(unbroken.test.is_some());
    assert_eq!((unbroken.test, unbroken.valid), (resumed.test, resumed.valid));
}

/// A deeper decoder, an average of the weights, and a late part with larger batches and another eps: broken before the late part
/// begins, where it begins, and behind it.
#[test]
fn a_run_with_every_lever_is_resumed_bit_for_bit() {
    let folders = tempfile::tempdir().unwrap();
    let late = "{ from = 0.5, batch = 12, eps = 1e-12 }";
    let levers = [("model.decoder_layers", "2"), ("train.ema", "0.9"), ("train.late", late)];
    let setup = setup(&[&levers[..], &[("train.checkpoint_steps", "1")]].concat());
    let whole = folders.path().join("whole");
    let unbroken = finish(&setup, &whole);
    let mut a = checkpoint(&setup, &whole);
    a.state.seconds = 0.0;
    assert_eq!((a.state.step, a.state.examples), (30, 15 * 8 + 15 * 12));
    let model = load_weights(&whole.join("model.safetensors"), &setup.layout).unwrap().params;
    assert!(unbroken.averaged && model == *a.average.as_ref().unwrap() && model != a.params);
    for stop in [9, 15, 22] {
        let broken = folders.path().join(format!("broken at {stop}"));
        stop_at(&setup, &broken, stop);
        let resumed = finish(&setup, &broken);
        let mut b = checkpoint(&setup, &broken);
        b.state.seconds = 0.0;
        assert!(a == b, "broken at {stop}");
        assert_eq!(timeless(&whole), timeless(&broken));
        assert_eq!((&unbroken.test, &unbroken.valid), (&resumed.test, &resumed.valid));
    }
    for (left_out, why) in
        [(1, "it keeps an average of the weights, and this run has no train.ema"), (2, "another batch size")]
    {
        let fewer: Vec<_> = (0..3).filter(|&i| i != left_out).map(|i| levers[i]).collect();
        let error = train(&self::setup(&fewer), &whole, &mut (), &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
}

/// A checkpoint may lie inside a round, at its end, or where none of the log's lines ends.
#[test]
fn a_curriculum_goes_on_in_the_middle_of_a_round() {
    let folders = tempfile::tempdir().unwrap();
    let setup = setup(&[("curriculum.name", "C"), ("curriculum.n_batches", "4"), ("train.checkpoint_steps", "1")]);
    let whole = folders.path().join("whole");
    let unbroken = finish(&setup, &whole);
    let mut a = checkpoint(&setup, &whole);
    a.state.seconds = 0.0;
    let course = a.state.course.as_ref().unwrap();
    assert_eq!((a.state.step, course.round, course.used, course.examined), (30, 7, 16, 28));
    assert_eq!(course.seen.iter().sum::<u64>(), 240);
    for stop in [14, 16] {
        let broken = folders.path().join(format!("broken at {stop}"));
        stop_at(&setup, &broken, stop);
        let resumed = finish(&setup, &broken);
        let mut b = checkpoint(&setup, &broken);
        b.state.seconds = 0.0;
        assert_eq!(a, b);
        assert_eq!(timeless(&whole), timeless(&broken));
        assert_eq!((&unbroken.test, unbroken.rejected), (&resumed.test, resumed.rejected));
    }
    // One line in each window of four steps, and a round is four steps.
    let lines: Vec<_> = timeless(&whole)
        .into_iter()
        .filter_map(|line| if let LogLine::Curriculum(line) = line { Some(line) } else { None })
        .collect();
    assert_eq!(lines.iter().map(|l| l.step).collect::<Vec<_>>(), [4, 8, 12, 16, 20, 24, 28]);
    let last = lines.last().unwrap();
    assert_eq!(last.tasks.iter().map(|t| t.task.as_str()).collect::<Vec<_>>(), ["add", "mul3", "mixed"]);
    assert_eq!(last.tasks.iter().map(|t| t.examples).sum::<u64>(), last.examples);
    assert!((last.tasks.iter().map(|t| t.share).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn a_checkpoint_of_another_curriculum_is_refused() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    finish(&setup(&[("train.steps", "2"), ("curriculum.name", "C")]), &path);
    let error = train(&setup(&[("curriculum.name", "C2")]), &path, &mut (), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("belongs to another run: it was trained by another curriculum"), "{error}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let folders = tempfile::tempdir().unwrap();
    let setup = setup(&[("train.steps", "6")]);
    let run = |name: &str, threads: usize| {
        let folder = TrainingFolder::create(&folders.path().join(name), &setup.config).unwrap();
        let mut cpu = Cpu::new(setup.programs(), setup.limits, threads).unwrap();
        Trainer::new(&setup, &folder, &mut cpu, &mut (), threads).unwrap().run(&AtomicBool::new(false)).unwrap();
        checkpoint(&setup, folder.path()).params
    };
    assert_eq!(run("one", 1), run("three", 3));
}

/// Losses of the first 20 steps of [`TINY`] without dropout. Made by this test (it prints them when it fails) on an AVX2
/// CPU; other instruction sets round sums differently, which is what the tolerance is for. A change in data, weights,
/// schedule or any op shows here.
#[rustfmt::skip]
const GOLDEN: [f64; 20] = [
    4.205612, 4.218438, 4.188433, 4.169907, 4.154913, 4.108448, 4.087972, 4.014851, 3.956552, 3.881025,
    3.784998, 3.706532, 3.599632, 3.498517, 3.418843, 3.355931, 3.292622, 3.258076, 3.247546, 3.222814,
];

#[test]
fn the_golden_loss_curve() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    let setup = setup(&[("train.steps", "20"), ("train.log_every", "1"), ("model.dropout", "0")]);
    finish(&setup, &path);
    let losses: Vec<f64> = timeless(&path)
        .into_iter()
        .filter_map(|line| if let LogLine::Train(line) = line { Some(line.loss) } else { None })
        .collect();
    let close = losses.iter().zip(GOLDEN).all(|(a, b)| (a - b).abs() <= 1e-4 * b);
    assert!(losses.len() == 20 && close, "{losses:?}");
}

#[test]
fn a_tiny_model_learns() {
    let folders = tempfile::tempdir().unwrap();
    let setup = setup(&[
        ("train.steps", "200"),
        ("train.log_every", "20"),
        ("train.batch", "16"),
        ("model.dropout", "0"),
        ("train.lr", "3e-3"),
    ]);
    let report = finish(&setup, &folders.path().join("run"));
    let losses: Vec<f64> = timeless(&folders.path().join("run"))
        .into_iter()
        .filter_map(|line| if let LogLine::Train(line) = line { Some(line.loss) } else { None })
        .collect();
    assert_eq!(losses.len(), 10);
    assert!(losses[0] > 2.2 && losses[9] < 0.6 * losses[0], "{losses:?}");
    let test = report.test.unwrap();
    assert_eq!((report.steps, report.examples, test.full_proof.of), (200, 3200, 1000));
    assert_eq!(report.proofs, 16_384);
    assert!(test.by_kind.contains_key("mulstep"), "{:?}", test.by_kind);
}

#[test]
fn a_finished_run_leaves_its_files_and_is_not_resumed() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    let setup = setup(&[("train.steps", "4")]);
    finish(&setup, &path);
    let mut names: Vec<_> = path.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names[2].starts_with("events.out.tfevents."), "{names:?}");
    names.remove(2);
    assert_eq!(names, ["checkpoints", "config.toml", "metrics.json", "metrics.jsonl", "model.safetensors"]);
    let (folder, config) = TrainingFolder::open(&path).unwrap();
    assert_eq!(config, setup.config);
    assert!(folder.check_unfinished().unwrap_err().to_string().contains("is finished (see metrics.json)"));
    assert!(TrainingFolder::create(&path, &config).unwrap_err().to_string().contains("holds a run already"));
    assert!(TrainingFolder::open(folders.path()).unwrap_err().to_string().contains("holds no run"));
}

#[test]
fn a_run_without_test_ends_like_any_other_but_for_the_test() {
    let folders = tempfile::tempdir().unwrap();
    let tested = setup(&[("train.steps", "4")]);
    let untested = RunSetup::without_test(tested.config.clone()).unwrap();
    let [with, without] = [(&tested, "with"), (&untested, "without")].map(|(setup, name)| {
        let path = folders.path().join(name);
        let report = finish(setup, &path);
        let metrics = std::fs::read_to_string(path.join("metrics.json")).unwrap();
        assert_eq!(serde_json::from_str::<TrainingReport>(&metrics).unwrap(), report);
        assert_eq!(metrics.contains("\"test\""), report.test.is_some());
        (report, std::fs::read(path.join("model.safetensors")).unwrap())
    });
    assert!(with.0.test.is_some() && without.0.test.is_none());
    assert_eq!((with.0.valid, with.1), (without.0.valid, without.1));
}

#[test]
fn a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_good_checkpoint() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    // The first steps are harmless, then the rate explodes.
    let good = setup(&[("train.checkpoint_steps", "5"), ("train.lr", "1e-3")]);
    stop_at(&good, &path, 5);
    let bad =
        setup(&[("train.lr", "1e38"), ("train.warmup", "0"), ("train.schedule", "constant"), ("train.clip", "0")]);
    let error = train(&bad, &path, &mut (), &AtomicBool::new(false)).unwrap_err();
    let LearnError::NonFinite { step, kept, .. } = &error else { panic!("{error}") };
    assert!(*step > 5 && kept.contains("step-000000005.safetensors"), "{error}");
    assert_eq!(checkpoint(&good, &path).state.step, 5);
    assert!(!path.join("metrics.json").exists());
}

/// The best weights may be newer than the last checkpoint: they are written, and named, before the run stops. A validation
/// whose loss is not a number is no line of the log.
#[test]
fn the_best_weights_survive_a_loss_that_is_not_a_number() {
    for (valid_every, wanted) in [("40", "the loss"), ("8", "the validation loss")] {
        let folders = tempfile::tempdir().unwrap();
        let path = folders.path().join("run");
        let good = setup(&[("train.checkpoint_steps", "5"), ("train.valid_every", "0")]);
        stop_at(&good, &path, 5);
        // It begins with a validation, and its first step ruins the weights.
        let bad = setup(&[
            ("train.lr", "1e38"),
            ("train.warmup", "0"),
            ("train.clip", "0"),
            ("train.select", "best"),
            ("train.valid_every", valid_every),
        ]);
        let error = train(&bad, &path, &mut (), &AtomicBool::new(false)).unwrap_err();
        let LearnError::NonFinite { what, kept, .. } = &error else { panic!("{error}") };
        assert!(*what == wanted && kept.ends_with("best-000000005.safetensors holds the best weights"), "{error}");
        let best = load_weights(&path.join("checkpoints/best-000000005.safetensors"), &bad.layout).unwrap();
        assert!(best.params == checkpoint(&good, &path).params);
        let valid = timeless(&path).into_iter().filter(|line| matches!(line, LogLine::Valid(_))).count();
        assert_eq!(valid, 1);
    }
}

/// A run that ended before its first checkpoint begins anew, and what it had found best is not the new one's.
#[test]
fn a_run_that_begins_anew_forgets_the_best_weights_of_another() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    // A rate of about nothing: the first validation stays the best.
    let setup = setup(&[
        ("train.lr", "1e-12"),
        ("train.select", "best"),
        ("train.valid_every", "40"),
        ("train.checkpoint_steps", "25"),
    ]);
    drop(TrainingFolder::create(&path, &setup.config).unwrap());
    let stale = Checkpoints::open(&path).unwrap().best_path(20);
    std::fs::write(&stale, "of another").unwrap();
    stop_at(&setup, &path, 25);
    assert!(!stale.exists());
    assert_eq!(finish(&setup, &path).steps, 30);
}

/// Who finds weights takes the run for a finished one.
#[test]
fn a_run_that_dies_in_its_test_has_no_weights_yet() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    let whole = setup(&[("train.steps", "2")]);
    let nowhere = EvalStep { proof: 7, kind: "facstep".into(), src: vec![4], tgt: vec![4] };
    let deadly = RunSetup { test: Some(EvalSet { steps: vec![nowhere], proofs: 1 }), ..setup(&[("train.steps", "2")]) };
    std::thread::scope(|scope| scope.spawn(|| finish(&deadly, &path)).join().unwrap_err());
    assert!(!path.join("model.safetensors").exists());
    assert_eq!(finish(&whole, &path).steps, 2);
}

/// All endpoints of this space are in its evaluation sets: without the refusal the run would wait for its first batch for ever.
#[test]
fn a_space_that_the_guard_leaves_nothing_of_is_refused() {
    let text = r#"
[space]
key = "tiny"
base = "small_coeff"
coeff = { polynomial = 9, product = 4, factor = 2 }
degree = { polynomial = 3, factor = 1 }
terms = { product = 3, factor = 1 }
max = { products = 2, factors = 2 }
"#;
    for curriculum in ["", "[curriculum]\nname = \"C\"\n"] {
        let config = RunConfig::from_toml(&format!("{text}{curriculum}"), &[]).unwrap();
        let error = RunSetup::new(config).map(drop).unwrap_err();
        let said = "tiny is too small to train on: all endpoints of 1000 draws are in its valid, test or beam set";
        assert!(matches!(error, LearnError::Config(_)) && error.to_string().starts_with(said), "{error}");
    }
}

#[test]
fn a_checkpoint_beyond_the_budget_is_refused() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    finish(&setup(&[("train.steps", "4")]), &path);
    let error = train(&setup(&[("train.steps", "3")]), &path, &mut (), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().ends_with("it has done 4 steps, and the budget is 3"), "{error}");
}

#[test]
fn early_stopping_counts_examples_since_the_best() {
    let folders = tempfile::tempdir().unwrap();
    // A rate of about nothing: the second validation cannot beat the first.
    let setup = setup(&[("train.lr", "1e-12"), ("train.patience", "200"), ("train.steps", "1000")]);
    let path = folders.path().join("run");
    let report = finish(&setup, &path);
    assert_eq!(report.ended, TrainingEnd::NoNewBest);
    assert_eq!((report.valid.unwrap().examples, report.examples), (104, 304));
    // Killed after its last checkpoint and before its report: it ends where it had ended.
    std::fs::remove_file(path.join("metrics.json")).unwrap();
    let again = finish(&setup, &path);
    assert_eq!((again.ended, again.steps, again.test), (report.ended, report.steps, report.test));
}

#[test]
fn a_checkpoint_of_another_model_is_refused() {
    let folders = tempfile::tempdir().unwrap();
    let path = folders.path().join("run");
    finish(&setup(&[("train.steps", "2")]), &path);
    let error = train(&setup(&[("model.layers", "2")]), &path, &mut (), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("belongs to another run: its model has"), "{error}");
    let error = train(&setup(&[("data.seed", "5")]), &path, &mut (), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("its seed is 1, not 5"), "{error}");
}

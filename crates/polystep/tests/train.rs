//! `polystep train` as a process: it survives kill -9, saves on a signal, and refuses what is wrong with the right exit code.

mod sandbox;

use std::path::Path;
use std::process::{Child, Command, Output};

use sandbox::{ALONE, Sandbox, failed, signalled, wait_until};

const TINY: &str = "data.config = \"small_coeff\"\nmodel = { d = 64, layers = 1, heads = 4, ffn = 128 }\n\
    train = { batch = 4, lr = 1e-3, warmup = 5, steps = 40, valid_every = 60, valid_proofs = 5, log_every = 5, \
    checkpoint_steps = 4 }\n";

/// `polystep train` in a folder that has `tiny.toml`.
struct Training(Sandbox);

impl Training {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("tiny.toml", TINY);
        Training(sandbox)
    }

    fn command(&self, args: &[&str]) -> Command {
        self.0.command(&[&["train"], args, &ALONE].concat())
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn refused(&self, args: &[&str]) -> String {
        failed(self.run(args), 2)
    }

    /// Starts a run and waits until the checkpoint of this step, or a later one, is there.
    fn started(&self, args: &[&str], run: &str, step: u64) -> Child {
        let mut child = self.command(args).spawn().unwrap();
        let checkpoints = self.0.path(run).join("checkpoints");
        let newest = || {
            let names = checkpoints.read_dir().ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok());
            names.filter_map(|n| n.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse::<u64>().ok()).max()
        };
        wait_until(&mut child, "a checkpoint", || newest().is_some_and(|s| s >= step));
        child
    }
}

/// Ends a run as a power cut would.
fn kill(mut child: Child) {
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
}

/// Lines of metrics.jsonl without their clock.
fn lines(run: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    text.lines().map(|l| l[..l.find(",\"seconds\"").unwrap()].to_string()).collect()
}

#[test]
fn killed_again_and_again_it_ends_as_if_nothing_had_happened() {
    let training = Training::new();
    let whole = training.run(&["tiny.toml", "--out", "whole"]);
    assert!(whole.status.success(), "{whole:?}");
    let broken = training.0.path("broken");
    for (args, step) in [
        (&["tiny.toml", "--out", "broken"][..], 4),
        (&["--resume", "--out", "broken"][..], 16),
        (&["--resume", "--out", "broken"][..], 28),
    ] {
        kill(training.started(args, "broken", step));
        assert!(!broken.join("metrics.json").exists());
    }
    let last = training.run(&["--resume", "--out", "broken"]);
    assert!(last.status.success(), "{last:?}");
    let read = |run: &str, name: &str| std::fs::read(training.0.path(run).join(name)).unwrap();
    assert!(read("whole", "model.safetensors") == read("broken", "model.safetensors"), "the weights differ");
    assert_eq!(lines(&training.0.path("whole")), lines(&broken));
    assert!(!broken.read_dir().unwrap().any(|e| e.unwrap().path().extension().is_some_and(|e| e == "tmp")));
}

#[test]
fn a_signal_saves_first_and_exits_130() {
    let training = Training::new();
    let child = training.started(&["tiny.toml", "--out", "run", "--max-steps", "100000"], "run", 4);
    // Only one at a time.
    assert!(training.refused(&["--resume", "--out", "run", "--max-steps", "9"]).contains("run is in use: process "));
    let output = signalled(child, "-TERM");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("continue with: polystep train --resume --out run"), "{said}");
    let other = training.refused(&["--resume", "--out", "run", "--curriculum", "C"]);
    assert!(other.contains("a resumed run cannot change curriculum.name"), "{other}");
    // Another budget is the one thing that a resumed run may change.
    let again = ["--config", "small_coeff", "--set", "model.layers=1"];
    let output = training.run(&[&["--resume", "--out", "run", "--max-steps", "8"], &again[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let output = training.run(&["--resume", "--out", "run"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn what_is_wrong_is_one_sentence_with_its_place() {
    let training = Training::new();
    let short = training.refused(&["tiny.toml", "--out", "short", "--set", "model.max_positions=8"]);
    assert!(
        short.contains("model.max_positions = 8 is too short: no example of the task has so few tokens"),
        "{short}"
    );
    std::fs::write(training.0.path("wrong.toml"), "[model]\nlayer = 6\n").unwrap();
    let said = training.refused(&["wrong.toml"]);
    assert!(said.starts_with("error: wrong.toml, line 2: unknown field `layer`"), "{said}");
    assert!(training.refused(&["missing.toml"]).starts_with("error: cannot read missing.toml"));
    assert!(training.refused(&["--set", "model.heads=3"]).contains("model.heads = 3 does not divide model.d = 256"));
    assert!(training.refused(&["--config", "huge"]).contains("the configurations are small_coeff"));
    assert!(training.refused(&["--curriculum", "C3"]).contains("curriculum.name = \"C3\" is unknown: C, C2 or C4"));
    let circle = ["--set", "curriculum.tasks=[\"add\",\"mixed\"]", "--set"];
    let edges = "curriculum.edges=[[\"add\",\"mixed\"],[\"mixed\",\"add\"]]";
    assert!(training.refused(&[&circle[..], &[edges]].concat()).contains("the edge mixed -> add closes a circle"));
    assert!(training.refused(&["--resume", "--out", "nothing"]).contains("holds no run"));
    assert!(training.refused(&["tiny.toml", "--out", "tiny.toml"]).contains("tiny.toml is a file"));
    assert!(training.refused(&["--recipe", "best"]).contains("train.recipe=\"best\": unknown variant"));
    assert!(training.refused(&["tiny.toml", "--set", "train.precision=bf16"]).contains("needs --device cuda"));
    // Nothing was left behind by all this.
    assert_eq!(std::fs::read_dir(training.0.folder.path()).unwrap().count(), 2);
}

#[test]
fn a_space_in_a_file_of_its_own_has_its_own_lines() {
    let training = Training::new();
    std::fs::write(training.0.path("mine.toml"), "[space]\nbogus = 1\n").unwrap();
    for args in [&["--config", "mine.toml"][..], &["tiny.toml", "--config", "mine.toml"]] {
        let sentence = training.refused(args);
        assert!(sentence.contains("mine.toml, line 2: unknown field `bogus`"), "{sentence}");
    }
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let training = Training::new();
    kill(training.started(&["tiny.toml", "--out", "run", "--max-steps", "100000"], "run", 8));
    let mut names: Vec<_> = std::fs::read_dir(training.0.path("run/checkpoints"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "safetensors"))
        .collect();
    names.sort();
    let newest = names.last().unwrap();
    let mut bytes = std::fs::read(newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(newest, bytes).unwrap();
    let said = failed(training.run(&["--resume", "--out", "run"]), 1);
    assert!(said.contains("is damaged (its checksum does not match): remove it to resume from step"), "{said}");
}

#[test]
fn bench_train_prints_one_json_object() {
    let flags =
        "--device cpu --threads 1 --batches 2,3 --src 8 --tgt 6 --only fixed --rounds 3 --seconds 0.01 --warmup 0";
    let args: Vec<&str> =
        ["bench", "train", "--set", "model.layers=1", "--json"].into_iter().chain(flags.split(' ')).collect();
    let stdout = Sandbox::new().ok(&args);
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let lines = report["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    for (line, batch) in lines.iter().zip([2.0, 3.0]) {
        let [ms, rate, tokens] = ["ms_per_step", "examples_per_s", "tokens_per_s"].map(|k| line[k].as_f64().unwrap());
        assert!((rate - 1e3 * batch / ms).abs() < 1e-6 * rate, "{line}");
        assert!((tokens - 14.0 * rate).abs() < 1e-6 * tokens, "{line}");
        assert_eq!(line["rounds"].as_array().unwrap().len(), 3);
    }
}

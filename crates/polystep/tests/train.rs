//! `polystep train` as a process: it survives kill -9, saves on a signal, and refuses what is wrong with the right exit code.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const TINY: &str = r#"
[data]
config = "small_coeff"
[model]
d = 64
layers = 1
heads = 4
ffn = 128
[train]
batch = 4
lr = 1e-3
warmup = 5
steps = 40
valid_every = 60
valid_proofs = 5
log_every = 5
checkpoint_steps = 4
"#;

struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
        Sandbox { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polystep"));
        command.current_dir(self.folder.path()).arg("train").args(args).args(["--device", "cpu", "--threads", "1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Waits until the checkpoint of this step, or a later one, is there.
fn wait_for(run: &Path, step: u64, child: &mut Child) {
    let began = Instant::now();
    let newest = || {
        let names =
            std::fs::read_dir(run.join("checkpoints")).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok());
        names.filter_map(|n| n.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse::<u64>().ok()).max()
    };
    while newest().is_none_or(|s| s < step) {
        assert!(began.elapsed() < Duration::from_secs(120), "no checkpoint of step {step}");
        assert!(child.try_wait().unwrap().is_none(), "the run ended before step {step}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Lines of metrics.jsonl without their clock.
fn lines(run: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    text.lines().map(|l| l[..l.find(",\"seconds\"").unwrap()].to_string()).collect()
}

#[test]
fn killed_again_and_again_it_ends_as_if_nothing_had_happened() {
    let sandbox = Sandbox::new();
    let whole = sandbox.run(&["tiny.toml", "--out", "whole"]);
    assert!(whole.status.success(), "{whole:?}");
    let broken = sandbox.path("broken");
    for (args, step) in [
        (&["tiny.toml", "--out", "broken"][..], 4),
        (&["--resume", "--out", "broken"][..], 16),
        (&["--resume", "--out", "broken"][..], 28),
    ] {
        let mut child = sandbox.command(args).spawn().unwrap();
        wait_for(&broken, step, &mut child);
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        assert!(!broken.join("metrics.json").exists());
    }
    let last = sandbox.run(&["--resume", "--out", "broken"]);
    assert!(last.status.success(), "{last:?}");
    let read = |run: &str, name: &str| std::fs::read(sandbox.path(run).join(name)).unwrap();
    assert!(read("whole", "model.safetensors") == read("broken", "model.safetensors"), "the weights differ");
    assert_eq!(lines(&sandbox.path("whole")), lines(&broken));
    assert!(!broken.read_dir().unwrap().any(|e| e.unwrap().path().extension().is_some_and(|e| e == "tmp")));
}

#[test]
fn a_signal_saves_first_and_exits_130() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.command(&["tiny.toml", "--out", "run", "--max-steps", "100000"]).spawn().unwrap();
    wait_for(&sandbox.path("run"), 4, &mut child);
    // Only one at a time.
    assert!(
        sandbox.refused(&["--resume", "--out", "run", "--max-steps", "9"]).contains("run is in use: another polystep")
    );
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("continue with: polystep train --resume --out run"), "{said}");
    let other = sandbox.refused(&["--resume", "--out", "run", "--curriculum", "C"]);
    assert!(other.contains("a resumed run cannot change curriculum.name"), "{other}");
    // Another budget is the one thing that a resumed run may change.
    let again = ["--config", "small_coeff", "--set", "model.layers=1"];
    let output = sandbox.run(&[&["--resume", "--out", "run", "--max-steps", "8"], &again[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let output = sandbox.run(&["--resume", "--out", "run"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn what_is_wrong_is_one_sentence_with_its_place() {
    let sandbox = Sandbox::new();
    let short = sandbox.refused(&["tiny.toml", "--out", "short", "--set", "model.max_positions=8"]);
    assert!(
        short.contains("model.max_positions = 8 is too short: no example of the task has so few tokens"),
        "{short}"
    );
    std::fs::write(sandbox.path("wrong.toml"), "[model]\nlayer = 6\n").unwrap();
    let said = sandbox.refused(&["wrong.toml"]);
    assert!(said.starts_with("error: wrong.toml, line 2: unknown field `layer`"), "{said}");
    assert!(sandbox.refused(&["missing.toml"]).starts_with("error: cannot read missing.toml"));
    assert!(sandbox.refused(&["--set", "model.heads=3"]).contains("model.heads = 3 does not divide model.d = 256"));
    assert!(sandbox.refused(&["--config", "huge"]).contains("the configurations are small_coeff"));
    assert!(sandbox.refused(&["--curriculum", "C3"]).contains("curriculum.name = \"C3\" is unknown: C, C2 or C4"));
    let circle = ["--set", "curriculum.tasks=[\"add\",\"mixed\"]", "--set"];
    let edges = "curriculum.edges=[[\"add\",\"mixed\"],[\"mixed\",\"add\"]]";
    assert!(sandbox.refused(&[&circle[..], &[edges]].concat()).contains("the edge mixed -> add closes a circle"));
    assert!(sandbox.refused(&["--resume", "--out", "nothing"]).contains("holds no run"));
    assert!(sandbox.refused(&["tiny.toml", "--out", "tiny.toml"]).contains("tiny.toml is a file"));
    assert!(sandbox.refused(&["--recipe", "best"]).contains("train.recipe=\"best\": unknown variant"));
    assert!(sandbox.refused(&["tiny.toml", "--set", "train.precision=bf16"]).contains("needs --device cuda"));
    // Nothing was left behind by all this.
    assert_eq!(std::fs::read_dir(sandbox.folder.path()).unwrap().count(), 2);
}

#[test]
fn a_space_in_a_file_of_its_own_has_its_own_lines() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("mine.toml"), "[space]\nbogus = 1\n").unwrap();
    for args in [&["--config", "mine.toml"][..], &["tiny.toml", "--config", "mine.toml"]] {
        let sentence = sandbox.refused(args);
        assert!(sentence.contains("mine.toml, line 2: unknown field `bogus`"), "{sentence}");
    }
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.command(&["tiny.toml", "--out", "run", "--max-steps", "100000"]).spawn().unwrap();
    wait_for(&sandbox.path("run"), 8, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut names: Vec<_> = std::fs::read_dir(sandbox.path("run/checkpoints"))
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
    let output = sandbox.run(&["--resume", "--out", "run"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is damaged (its checksum does not match): remove it to resume from step"), "{said}");
}

#[test]
fn bench_train_prints_one_json_object() {
    let output = Command::new(env!("CARGO_BIN_EXE_polystep"))
        .args(["bench", "train", "--device", "cpu", "--threads", "1", "--batches", "2,3", "--src", "8", "--tgt", "6"])
        .args([
            "--only",
            "fixed",
            "--rounds",
            "3",
            "--seconds",
            "0.01",
            "--warmup",
            "0",
            "--set",
            "model.layers=1",
            "--json",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = report["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    for (line, batch) in lines.iter().zip([2.0, 3.0]) {
        let [ms, rate, tokens] = ["ms_per_step", "examples_per_s", "tokens_per_s"].map(|k| line[k].as_f64().unwrap());
        assert!((rate - 1e3 * batch / ms).abs() < 1e-6 * rate, "{line}");
        assert!((tokens - 14.0 * rate).abs() < 1e-6 * tokens, "{line}");
        assert_eq!(line["rounds"].as_array().unwrap().len(), 3);
    }
}

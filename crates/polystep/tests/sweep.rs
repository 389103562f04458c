//! `polystep sweep` as a process: tiny trials of a few steps, ranked, interrupted, continued and refused.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Three trials that learn a little, one that cannot, one whose first step destroys the weights.
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
warmup = 0
schedule = "constant"
steps = 24
valid_every = 32
valid_proofs = 5
log_every = 4
checkpoint_steps = 2
[grid]
"train.lr" = [1e-3, 2e-3, 3e-3, 1e-12, 1e38]
[sweep]
grace = 0.3
"#;

struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    fn new(text: &str) -> Self {
        let sandbox = Sandbox { folder: tempfile::tempdir().unwrap() };
        sandbox.write(text);
        sandbox
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path("tiny.toml"), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polystep"));
        command.current_dir(self.folder.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn sweep(&self, args: &[&str]) -> Command {
        self.command(&[&["sweep", "tiny.toml", "--device", "cpu", "--threads", "1"], args].concat())
    }

    fn ok(&self, args: &[&str]) -> String {
        said(self.sweep(args).output().unwrap())
    }

    fn refused(&self, args: &[&str]) -> String {
        let output = self.sweep(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn said(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Rows of sweep.csv without their clock.
fn rows(out: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(out.join("sweep.csv")).unwrap();
    let mut rows: Vec<Vec<String>> = text.lines().map(|l| l.split(',').map(str::to_owned).collect()).collect();
    let seconds = rows[0].iter().position(|c| c == "seconds").unwrap();
    rows.iter_mut().for_each(|row| drop(row.remove(seconds)));
    rows
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn trials_are_ranked_on_the_validation_set_alone() {
    let sandbox = Sandbox::new(TINY);
    let table = sandbox.ok(&[]);
    let out = sandbox.path("runs/tiny");
    let rows = rows(&out);
    let head = ["rank", "name", "train.lr", "valid_full_proof", "valid_stepwise", "valid_loss", "examples", "state"];
    assert_eq!(rows[0], head);
    let (mut names, mut losses) = (Vec::new(), Vec::new());
    for row in &rows[1..] {
        names.push(row[1].as_str());
        losses.push(row[5].parse::<f64>().unwrap_or(f64::INFINITY));
        let (examples, state) = match row[2].as_str() {
            // A third of the budget of 24 batches is the first validation after the grace.
            "1e-12" => ("32", "hopeless"),
            "1e38" => ("0", "failed"),
            _ => ("96", "finished"),
        };
        assert_eq!((row[6].as_str(), row[7].as_str()), (examples, state), "{row:?}");
    }
    // No proof and no step is right after so few steps: the loss orders them.
    assert!(losses.is_sorted() && losses[2] < losses[3], "{losses:?}");
    assert_eq!(names[3..], ["004-1e-12", "005-1e38"]);
    let best = format!("runs/tiny/{}", names[0]);
    assert!(table.ends_with(&format!("test it with: polystep eval {best}\n")), "{table}");

    // Nothing that was written knows of a test.
    for path in files(&out) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("test\""), "{} speaks of a test", path.display());
    }
    assert!(
        std::fs::read_to_string(out.join("004-1e-12/ended.json")).unwrap().contains("below the median of 3 others")
    );
    assert!(std::fs::read_to_string(out.join("005-1e38/ended.json")).unwrap().contains("so the run stops"));
    for trial in ["001-1e-3", "004-1e-12"] {
        assert!(!out.join(trial).join("checkpoints").exists(), "{trial} keeps checkpoints");
    }

    // The same command has nothing left to do.
    let before = std::fs::read(out.join("sweep.csv")).unwrap();
    let json: Value = serde_json::from_str(&sandbox.ok(&["--json"])).unwrap();
    assert_eq!(std::fs::read(out.join("sweep.csv")).unwrap(), before);
    assert_eq!((&json["best"], &json["trials"][0]["name"]), (&Value::from(names[0]), &Value::from(names[0])));
    assert_eq!(json["trials"].as_array().unwrap().len(), 5);

    // The winner is tested by hand, like any run.
    let arguments = ["eval", &best, "--no-beam", "--proofs", "2", "--device", "cpu", "--threads", "1"];
    said(sandbox.command(&arguments).output().unwrap());
    let metrics: Value =
        serde_json::from_slice(&std::fs::read(sandbox.path(&best).join("metrics.json")).unwrap()).unwrap();
    assert!(metrics["evaluations"][0]["greedy"].is_object() && metrics["valid"].is_object(), "{metrics}");

    // Another grid, another base and another seed do not belong here.
    sandbox.write(&TINY.replace("3e-3", "4e-3"));
    assert!(sandbox.refused(&[]).contains("runs/tiny holds a sweep over another [grid]: choose another --out"));
    sandbox.write(&TINY.replace("steps = 24", "steps = 25"));
    assert!(sandbox.refused(&[]).contains("a sweep of another run (it had steps = 24, not steps = 25)"));
    sandbox.write(TINY);
    assert!(sandbox.refused(&["--runs", "2"]).contains("a sweep of 5 trials, 3 of which are not among these 2"));
    assert!(sandbox.refused(&["--out", &best]).contains("holds a run, not a sweep"));
}

#[test]
fn killed_and_cut_short_it_ends_as_if_nothing_had_happened() {
    let text = TINY.replace(", 3e-3, 1e-12, 1e38]", "]");
    let sandbox = Sandbox::new(&text);
    sandbox.ok(&["--out", "whole"]);

    // Not a moment: the first trial is not even begun.
    let told = sandbox.ok(&["--out", "broken", "--minutes", "1e-9"]);
    assert!(
        told.ends_with("0 of 2 trials have ended; go on with: polystep sweep tiny.toml --out broken --device cpu\n"),
        "{told}"
    );
    let broken = sandbox.path("broken");
    let second = broken.join("002-2e-3/checkpoints/step-000000004.safetensors");
    let mut child = sandbox.sweep(&["--out", "broken"]).spawn().unwrap();
    let began = Instant::now();
    while !second.exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "no checkpoint of the second trial");
        assert!(child.try_wait().unwrap().is_none(), "the sweep ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let first = std::fs::metadata(broken.join("001-1e-3/model.safetensors")).unwrap().modified().unwrap();
    sandbox.ok(&["--out", "broken"]);
    let again = std::fs::metadata(broken.join("001-1e-3/model.safetensors")).unwrap().modified().unwrap();
    assert_eq!(first, again, "a finished trial was trained again");
    assert_eq!(rows(&broken), rows(&sandbox.path("whole")));
    for trial in ["001-1e-3", "002-2e-3"] {
        let model = |out: &str| std::fs::read(sandbox.path(out).join(trial).join("model.safetensors")).unwrap();
        assert!(model("broken") == model("whole"), "{trial}: the weights differ");
    }
}

#[test]
fn a_signal_saves_the_trial_and_exits_130() {
    let sandbox = Sandbox::new(&TINY.replace("steps = 24", "steps = 100000"));
    let child = sandbox.sweep(&["--out", "run"]).spawn().unwrap();
    let began = Instant::now();
    while !sandbox.path("run/001-1e-3/checkpoints/step-000000004.safetensors").exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(sandbox.refused(&["--out", "run"]).contains("run is in use: another polystep is training in it"));
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("0 of 5 trials have ended; go on with: polystep sweep tiny.toml --out run --device cpu"),
        "{told}"
    );
    assert_eq!(rows(&sandbox.path("run"))[1].last().unwrap(), "stopped");

    // By hand it would be tested.
    let output = sandbox.command(&["train", "--resume", "--out", "run/001-1e-3", "--device", "cpu"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("run/001-1e-3 is a trial of a sweep, which is not tested: continue the sweep"), "{said}");
}

//! `polystep sweep` as a process: tiny trials of a few steps, ranked, interrupted, continued and refused.

mod sandbox;

use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::{ALONE, Sandbox, failed, signalled, succeeded, wait_until};
use serde_json::Value;

/// Three trials that learn a little, one that cannot, one whose first step destroys the weights.
const TINY: &str = r#"
data.config = "small_coeff"
model = { d = 64, layers = 1, heads = 4, ffn = 128 }
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

/// `polystep sweep` of `tiny.toml`.
struct Sweep(Sandbox);

impl Sweep {
    fn new(text: &str) -> Self {
        let sweep = Sweep(Sandbox::new());
        sweep.write(text);
        sweep
    }

    fn write(&self, text: &str) {
        self.0.write("tiny.toml", text);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        self.0.command(&[&["sweep", "tiny.toml"], &ALONE[..], args].concat())
    }

    fn ok(&self, args: &[&str]) -> String {
        succeeded(self.command(args).output().unwrap())
    }

    fn refused(&self, args: &[&str]) -> String {
        failed(self.command(args).output().unwrap(), 2)
    }
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
    let sweep = Sweep::new(TINY);
    let table = sweep.ok(&[]);
    let out = sweep.path("runs/tiny");
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
    let json: Value = serde_json::from_str(&sweep.ok(&["--json"])).unwrap();
    assert_eq!(std::fs::read(out.join("sweep.csv")).unwrap(), before);
    assert_eq!((&json["best"], &json["trials"][0]["name"]), (&Value::from(names[0]), &Value::from(names[0])));
    assert_eq!(json["trials"].as_array().unwrap().len(), 5);

    // The winner is tested by hand, like any run.
    let arguments = ["eval", &best, "--no-beam", "--proofs", "2", "--device", "cpu", "--threads", "1"];
    sweep.0.ok(&arguments);
    let metrics = sweep.0.json(&format!("{best}/metrics.json"));
    assert!(metrics["evaluations"][0]["greedy"].is_object() && metrics["valid"].is_object(), "{metrics}");

    // Another grid, another base and another seed do not belong here.
    sweep.write(&TINY.replace("3e-3", "4e-3"));
    assert!(sweep.refused(&[]).contains("runs/tiny holds a sweep over another [grid]: choose another --out"));
    sweep.write(&TINY.replace("steps = 24", "steps = 25"));
    assert!(sweep.refused(&[]).contains("a sweep of another run (it had steps = 24, not steps = 25)"));
    sweep.write(TINY);
    assert!(sweep.refused(&["--runs", "2"]).contains("a sweep of 5 trials, 3 of which are not among these 2"));
    assert!(sweep.refused(&["--out", &best]).contains("holds a run, not a sweep"));
}

#[test]
fn killed_and_cut_short_it_ends_as_if_nothing_had_happened() {
    let text = TINY.replace(", 3e-3, 1e-12, 1e38]", "]");
    let sweep = Sweep::new(&text);
    sweep.ok(&["--out", "whole"]);

    // Not a moment: the first trial is not even begun.
    let told = sweep.ok(&["--out", "broken", "--minutes", "1e-9"]);
    assert!(
        told.ends_with("0 of 2 trials have ended; go on with: polystep sweep tiny.toml --out broken --device cpu\n"),
        "{told}"
    );
    let broken = sweep.path("broken");
    let second = broken.join("002-2e-3/checkpoints/step-000000004.safetensors");
    let mut child = sweep.command(&["--out", "broken"]).spawn().unwrap();
    wait_until(&mut child, "a checkpoint of the second trial", || second.exists());
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let first = std::fs::metadata(broken.join("001-1e-3/model.safetensors")).unwrap().modified().unwrap();
    sweep.ok(&["--out", "broken"]);
    let again = std::fs::metadata(broken.join("001-1e-3/model.safetensors")).unwrap().modified().unwrap();
    assert_eq!(first, again, "a finished trial was trained again");
    assert_eq!(rows(&broken), rows(&sweep.path("whole")));
    for trial in ["001-1e-3", "002-2e-3"] {
        let model = |out: &str| std::fs::read(sweep.path(out).join(trial).join("model.safetensors")).unwrap();
        assert!(model("broken") == model("whole"), "{trial}: the weights differ");
    }
}

#[test]
fn a_signal_saves_the_trial_and_exits_130() {
    let sweep = Sweep::new(&TINY.replace("steps = 24", "steps = 100000"));
    let mut child = sweep.command(&["--out", "run"]).spawn().unwrap();
    let first = sweep.path("run/001-1e-3/checkpoints/step-000000004.safetensors");
    wait_until(&mut child, "a checkpoint", || first.exists());
    let list = sweep.ok(&["--out", "run", "--list"]);
    let at_work = list.lines().find(|line| line.starts_with("001-1e-3 ")).unwrap();
    assert!(at_work.contains("at work") && at_work.contains(&child.id().to_string()), "{list}");
    let said = sweep.0.refused(&["train", "--resume", "--out", "run/001-1e-3", "--device", "cpu"]);
    assert!(said.contains("run/001-1e-3 is in use: process "), "{said}");
    let output = signalled(child, "-TERM");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("0 of 5 trials have ended; go on with: polystep sweep tiny.toml --out run --device cpu"),
        "{told}"
    );
    assert_eq!(rows(&sweep.path("run"))[1].last().unwrap(), "stopped");

    // By hand it would be tested.
    let said = sweep.0.refused(&["train", "--resume", "--out", "run/001-1e-3", "--device", "cpu"]);
    assert!(said.contains("run/001-1e-3 is a trial of a sweep, which is not tested: continue the sweep"), "{said}");
}

/// Trials at the same time, in processes of their own: the ranking is that of one trial after the other, the trial that the median
/// stops included.
#[test]
fn several_trials_at_a_time_are_ranked_as_one_after_the_other() {
    let sweep = Sweep::new(TINY);
    sweep.ok(&["--out", "one"]);
    let table = sweep.ok(&["--out", "many", "--jobs", "3"]);
    assert_eq!(rows(&sweep.path("many")), rows(&sweep.path("one")));
    assert!(table.contains("best on the validation set: "), "{table}");
    assert!(files(&sweep.path("many")).iter().all(|path| !path.to_string_lossy().contains("lease")), "a lease is left");
    assert_eq!(sweep.path("many/logs").read_dir().unwrap().count(), 3);
}

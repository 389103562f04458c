//! `polystep reproduce` as a process: a tiny model goes through a whole row, and nothing that is done is done again.

#[path = "reproduce/campaign.rs"]
mod campaign;
mod sandbox;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sandbox::{ALONE, Sandbox, failed, signalled, succeeded, wait_until};

/// A model that knows nothing, tested on two proofs.
fn plan(steps: u64) -> String {
    format!(
        "[table]\nname = \"var1coarsefull\"\norder = 1\n[fast]\nmodel.d = 64\nmodel.layers = 1\nmodel.heads = 4\nmodel.ffn = 64\n\
         model.max_positions = 256\ntrain.batch = 4\ntrain.steps = {steps}\ntrain.valid_every = 0\ntrain.valid_proofs = 2\n\
         train.checkpoint_steps = 5\n[evaluation]\nproofs = 2\n[cost]\nseconds_per_run = 1\nseconds_per_endpoint_run = 1\n\
         seconds_per_paper_run = 1\nseconds_per_evaluation = 1\n[expected]\npaper = [72.7, 98.9]\n"
    )
}

/// `polystep reproduce` with a plan of its own, without bundled models.
struct Reproduction(Sandbox);

impl Reproduction {
    fn new(steps: u64) -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("plan.toml", &plan(steps));
        Reproduction(sandbox)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn text(&self, name: &str) -> String {
        self.0.text(name)
    }

    fn command(&self, args: &str) -> Command {
        let args: Vec<&str> = args.split_whitespace().collect();
        let mut command = self.0.command(&[&["reproduce"], &args[..], &["--plan", "plan.toml"], &ALONE].concat());
        command.env("POLYSTEP_MODELS", "none");
        command
    }

    fn run(&self, args: &str) -> Output {
        self.command(args).output().unwrap()
    }

    fn ok(&self, args: &str) -> String {
        succeeded(self.run(args))
    }

    fn refused(&self, args: &str) -> String {
        failed(self.run(args), 2)
    }
}

const RUN: &str = "small_coeff-1-coarse-infix";
const ENDPOINT: &str = "small_coeff-1-endpoint-infix";

fn field(ledger: &str, line: usize, name: &str) -> String {
    let at = ledger.lines().next().unwrap().split(',').position(|h| h == name).unwrap();
    ledger.lines().nth(line).unwrap().split(',').nth(at).unwrap().to_owned()
}

/// As if the run had been trained and never evaluated.
fn forget_evaluations(run: &Path) {
    let path = run.join("metrics.json");
    let mut numbers: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    numbers["evaluations"] = serde_json::json!([]);
    std::fs::write(&path, numbers.to_string()).unwrap();
}

#[test]
fn a_row_is_trained_evaluated_and_entered_once() {
    let here = Reproduction::new(3);
    let dry = here.ok("--table var1coarsefull --rows 1 --dry-run");
    assert!(dry.contains(&format!("train         0:02  {RUN}\n")) && dry.contains(ENDPOINT), "{dry}");
    assert!(!here.path("runs").exists() && !here.path("results").exists());

    let table = here.ok("--table var1coarsefull --rows 1 --jobs 2");
    assert!(table.starts_with("var1coarsefull · recipe fast: 1 of 1 rows"), "{table}");
    assert!(table.contains("▼0.00") && table.contains("98.83"), "{table}");
    assert!(table.contains("full proof 0.00 (paper 95), "), "{table}");
    let ledger = here.text("results/var1coarsefull.csv");
    assert_eq!(ledger.lines().count(), 2, "{ledger}");
    assert!(
        ledger.lines().nth(1).unwrap().starts_with("1,small_coeff,plain,coarse,infix,,fast,S-64,12,0.00,"),
        "{ledger}"
    );
    assert_eq!(
        (field(&ledger, 1, "train_examples"), field(&ledger, 1, "full_proof_acc")),
        ("12".into(), "0.00".into())
    );
    for file in ["config.toml", "metrics.json", "metrics.jsonl"] {
        assert!(here.path("results/runs").join(RUN).join(file).exists(), "{file}");
    }
    assert_eq!(here.text("results/var1error.csv").lines().count(), 2, "the run belongs to this table too");

    // Elsewhere: the records only.
    let before = here.text(&format!("results/runs/{RUN}/metrics.json"));
    std::fs::remove_dir_all(here.path("runs")).unwrap();
    std::fs::remove_file(here.path("results/var1coarsefull.csv")).unwrap();
    assert_eq!(here.ok("--table var1coarsefull --rows 1"), table);
    assert!(!here.path("runs").exists(), "something was trained again");
    assert_eq!(here.text("results/var1coarsefull.csv"), ledger);
    assert_eq!(here.text(&format!("results/runs/{RUN}/metrics.json")), before);
    let list = here.ok("--list");
    assert!(list.contains("2 of 36"), "{list}");

    // The other formats hold the same numbers.
    let json: serde_json::Value = serde_json::from_str(&here.ok("--table var1coarsefull --rows 1 --json")).unwrap();
    let row = &json[0]["rows"][0];
    assert_eq!((row["keys"]["config"].as_str(), row["number"].as_u64()), (Some("small_coeff"), Some(1)));
    let cell = &row["cells"][3];
    assert_eq!((cell["column"].as_str(), cell["paper"].as_str()), (Some("full_proof_acc"), Some("95")));
    assert_eq!((cell["ours"].as_f64(), cell["lower"].as_bool()), (Some(0.0), Some(true)));
    assert!(here.ok("--table var1coarsefull --rows 1 --markdown").contains("| 0.00 ▼ / 95 |"));

    // And so do the figures of what was measured.
    here.ok("--table var1coarsefull,OODcoeff --show --plots figures/fast");
    let mut figures: Vec<_> =
        here.path("figures/fast").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    figures.sort();
    assert_eq!(figures, ["var1coarsefull-curves.svg", "var1coarsefull-endpoint-curves.svg", "var1coarsefull.svg"]);
    let figure = here.text("figures/fast/var1coarsefull.svg");
    assert!(figure.contains(">small_coeff coarse infix</text>") && figure.contains(">0.0 / 95.0</text>"), "{figure}");
    assert_eq!(here.run("--list --plots figures").status.code(), Some(2), "a list has no figures");
}

#[test]
fn nothing_is_trained_when_only_evaluation_is_asked() {
    let here = Reproduction::new(3);
    let output = here.run("--table var1coarsefull --rows 1 --eval-only");
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("2 runs with neither record nor weights here: "),
        "{output:?}"
    );
    assert!(!here.path("runs").exists());
    // Weights without an evaluation are evaluated.
    let tiny = plan(3).replace("train.steps = 3", "train.steps = 2");
    std::fs::write(here.path("plan.toml"), tiny).unwrap();
    here.ok("--table var1coarsefull --rows 1");
    std::fs::remove_dir_all(here.path("results")).unwrap();
    let log = here.text(&format!("runs/{RUN}/train.log"));
    forget_evaluations(&here.path("runs").join(RUN));
    here.ok("--table var1coarsefull --rows 1 --eval-only");
    assert_eq!(here.text(&format!("runs/{RUN}/train.log")), log);
    let ledger = here.text("results/var1coarsefull.csv");
    assert_eq!((ledger.lines().count(), field(&ledger, 1, "beam5_acc")), (2, "0.00".into()));

    // And so is a bundled model, which stays as it is.
    std::fs::create_dir(here.path("bundled")).unwrap();
    std::fs::rename(here.path("runs").join(RUN), here.path("bundled").join(RUN)).unwrap();
    forget_evaluations(&here.path("bundled").join(RUN));
    let bundled = here.text(&format!("bundled/{RUN}/metrics.json"));
    std::fs::remove_dir_all(here.path("results")).unwrap();
    let mut command = here.command("--table var1error --rows 1 --eval-only");
    let output = command.env("POLYSTEP_MODELS", here.path("bundled")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(here.text("results/var1error.csv").lines().count(), 2);
    assert_eq!(here.text(&format!("bundled/{RUN}/metrics.json")), bundled);
}

/// Weights and record are both here: the model is asked again, and must say what the record says. Records and ledgers stay as they are.
#[test]
fn a_model_is_tested_again_beside_its_record() {
    let here = Reproduction::new(2);
    here.ok("--table var1error --rows 1");
    let record = here.path("results/runs").join(RUN).join("metrics.json");
    let before = std::fs::read_to_string(&record).unwrap();
    let said = here.ok("--table var1error --rows 1 --eval-only");
    let verdict = format!("{RUN}  small_coeff:1  0.00  2    0.00  2  0.0 to 65.8  agrees");
    assert!(said.contains("\nTested again on CPU, 1 thread") && said.contains(&verdict), "{said}");
    assert!(!here.ok("--table var1error --rows 1 --show").contains("again"));
    assert_eq!(std::fs::read_to_string(&record).unwrap(), before);

    let mut numbers: serde_json::Value = serde_json::from_str(&before).unwrap();
    let better = polystep_record::Proportion::new(90, 100);
    numbers["evaluations"][0]["greedy"]["full_proof"]["exact"] = serde_json::to_value(better).unwrap();
    std::fs::write(&record, numbers.to_string()).unwrap();
    let output = here.run("--table var1error --rows 1 --eval-only --json");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("0.00  100   90.00  100  82.6 to 94.5  DIFFERS"), "{said}");
    assert!(said.contains(&format!("1 of 1 numbers lie outside the interval of their record: {RUN}")), "{said}");
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();

    let weights = here.path("runs").join(RUN).join("model.safetensors");
    let half = std::fs::metadata(&weights).unwrap().len() / 2;
    std::fs::File::options().write(true).open(&weights).unwrap().set_len(half).unwrap();
    let output = here.run("--table var1error --rows 1 --eval-only");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("error: {RUN}, copied from runs/{RUN}: ")), "{said}");
    assert!(said.contains("model.safetensors is damaged"), "{said}");
}

#[test]
fn no_time_means_no_run() {
    let here = Reproduction::new(3);
    let output = here.run("--table var1coarsefull --rows 1 --minutes 0.001");
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("2 runs still to be made, by the same command: "),
        "{output:?}"
    );
    assert!(!here.path("runs").exists());
}

/// Two commands do not train one run at the same time. The second takes another, and leaves when the rest is in good hands.
#[test]
fn a_run_that_another_command_is_at_is_left_to_it() {
    let here = Reproduction::new(1_000_000);
    let mut first = here.command("--table var1error --rows 1").spawn().unwrap();
    let claim = here.path("runs").join(RUN).join("claim.json");
    wait_until(&mut first, "a claim", || claim.exists());
    let list = here.ok("--table var1error --list");
    assert!(list.contains("At work:") && list.contains(&first.id().to_string()), "{list}");

    let tiny = Reproduction::new(2);
    std::fs::write(here.path("plan.toml"), tiny.text("plan.toml")).unwrap();
    let output = here.run("--table var1error --rows 1,2");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let held = format!("1 run being made by other processes: {RUN} (process {} on ", first.id());
    assert!(said.contains(&held), "{said}");
    assert_eq!(here.text("results/var1error.csv").lines().count(), 2, "row 2 was made");
    assert_eq!(signalled(first, "-TERM").status.code(), Some(130));
    assert!(!claim.exists() && !here.path("runs").join(RUN).join("lease.json").exists());
}

/// A run that fails makes the command fail, is told by name with its log, and is tried again by the next command. A Slurm task
/// leaves it alone, and fails only if it was its own.
#[test]
fn a_failed_run_is_named_and_tried_again() {
    let here = Reproduction::new(2);
    let run = here.path("runs").join(RUN);
    std::fs::create_dir_all(run.join("config.toml")).unwrap();
    let output = here.run("--table var1error --rows 1");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(&format!("; see runs/{RUN}/train.log")) && said.contains(&format!("1 run failed: {RUN}")),
        "{said}"
    );
    let list = here.ok("--table var1error --list");
    assert!(list.contains("Failed:\n") && list.contains(&format!("runs/{RUN}/train.log")), "{list}");
    let task = |job: &str| {
        let mut command = here.command("--table var1error --rows 1 --task");
        command.env("SLURM_JOB_ID", job).output().unwrap()
    };
    let output = task("7");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 run failed in other processes"), "{output:?}");
    std::fs::remove_dir(run.join("config.toml")).unwrap();
    here.ok("--table var1error --rows 1");
    assert!(!run.join("failed.json").exists() && here.path("results/var1error.csv").exists());
}

#[test]
fn when_time_is_up_a_training_stops_at_a_checkpoint() {
    let here = Reproduction::new(1_000_000);
    let output = here.run("--table var1error --rows 1 --minutes 0.12");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("{RUN}: stopped at a checkpoint")), "{said}");
    assert!(said.contains("1 run still to be made"), "{said}");
    assert!(here.path("runs").join(RUN).join("checkpoints").read_dir().unwrap().next().is_some());
    let dry = here.ok("--table var1error --rows 1 --dry-run");
    assert!(dry.starts_with("resume ") && dry.contains(RUN), "{dry}");
}

/// Only the command itself gets the signal; its child saves and stops all the same, and goes on next time.
#[test]
fn an_interrupted_command_goes_on() {
    let here = Reproduction::new(400);
    let mut child = here.command("--table var1error --rows 1").spawn().unwrap();
    let checkpoints = here.path("runs").join(RUN).join("checkpoints");
    let some = |path: &Path| path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    wait_until(&mut child, "a checkpoint", || some(&checkpoints));
    let output = signalled(child, "-TERM");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(here.text(&format!("runs/{RUN}/train.log")).contains("saved at step"), "{output:?}");
    assert!(!here.path("results").exists());
    here.ok("--table var1error --rows 1");
    assert!(here.text(&format!("runs/{RUN}/train.log")).contains(", continuing after step "));

    // The ledger is that of a command that nobody stopped, but for the time it took.
    let whole = Reproduction::new(400);
    whole.ok("--table var1error --rows 1");
    let ledger = |here: &Reproduction| {
        let text = here.text("results/var1error.csv");
        let seconds = text.lines().next().unwrap().split(',').position(|name| name == "seconds").unwrap();
        let line = text.lines().nth(1).unwrap().split(',').enumerate().filter(|(i, _)| *i != seconds);
        line.map(|(_, cell)| cell.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ledger(&here), ledger(&whole));
    assert_eq!(field(&here.text("results/var1error.csv"), 1, "train_examples"), "1600");
}

/// A killed command leaves its child to save and end. The same command again waits for that, and makes the run.
#[test]
fn a_killed_command_can_be_repeated_at_once() {
    let here = Reproduction::new(400);
    let mut child = here.command("--table var1error --rows 1").spawn().unwrap();
    let log = here.path("runs").join(RUN).join("train.log");
    let began = || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("step "));
    wait_until(&mut child, "training", began);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    here.ok("--table var1error --rows 1");
    assert_eq!(here.text("results/var1error.csv").lines().count(), 2);
}

#[test]
fn what_is_damaged_is_named_and_kept() {
    let here = Reproduction::new(2);
    here.ok("--table var1error --rows 1");
    let path = here.path("results/var1error.csv");
    let whole = here.text("results/var1error.csv");
    let damaged = whole.replacen("small_coeff", "smal_coeff", 1);
    std::fs::write(&path, &damaged).unwrap();
    let said = here.refused("--table var1error --rows 1");
    assert!(said.starts_with("error: results/var1error.csv line 2: var1error has no row 1,smal_coeff"), "{said}");
    assert!(said.ends_with("; repair it, or remove the file to have it made anew\n"), "{said}");
    assert_eq!(here.text("results/var1error.csv"), damaged);
    std::fs::write(&path, &whole).unwrap();

    let record = here.path("results/runs").join(RUN).join("metrics.json");
    let numbers = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, &numbers[..numbers.len() / 2]).unwrap();
    let said = here.refused("--table var1error --rows 1");
    assert!(said.contains(&format!("results/runs/{RUN}/metrics.json cannot be understood: EOF")), "{said}");

    // The weights: there is no evaluation any more, so they are asked again.
    std::fs::remove_dir_all(here.path("results")).unwrap();
    forget_evaluations(&here.path("runs").join(RUN));
    let weights = here.path("runs").join(RUN).join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    std::fs::write(&weights, bytes).unwrap();
    let output = here.run("--table var1error --rows 1");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("model.safetensors is damaged"), "{said}");
    assert_eq!(std::fs::metadata(&weights).unwrap().len(), middle as u64);
}

#[test]
fn runs_made_elsewhere_are_known_by_their_configuration() {
    let here = Reproduction::new(2);
    here.ok("--table var1error --rows 1");
    std::fs::rename(here.path("runs").join(RUN), here.path("a run of mine")).unwrap();
    std::fs::remove_dir_all(here.path("results")).unwrap();
    let mut command = here.command("");
    let output = command.args(["--import", "a run of mine"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("a run of mine is {RUN}\n")), "{output:?}");
    assert_eq!(here.text("results/var1error.csv").lines().count(), 2);

    // Another run of the same row does not take its place.
    let record = here.text(&format!("results/runs/{RUN}/metrics.json"));
    let mine = here.path("a run of mine/metrics.json");
    let mut numbers: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&mine).unwrap()).unwrap();
    numbers["seconds"] = serde_json::json!(1e6);
    std::fs::write(&mine, numbers.to_string()).unwrap();
    let output = here.command("").args(["--import", "a run of mine"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("results/runs/{RUN} is the record of another one; move it away first")), "{said}");
    assert_eq!(here.text(&format!("results/runs/{RUN}/metrics.json")), record);

    // The repository's own plan has another model: no row is like this.
    let config = here.text(&format!("results/runs/{RUN}/config.toml")).replace("batch = 4", "batch = 5");
    std::fs::write(here.path("a run of mine/config.toml"), config).unwrap();
    let output = here.command("").args(["--import", "a run of mine"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a run of the paper's tables"), "{output:?}");
}

#[test]
fn sizes_need_no_training() {
    let here = Reproduction::new(2);
    let plan = "[table]\nname = \"colide\"\norder = 17\n[sizes]\ndraws = 20000\n[cost]\nseconds_per_run = 1\n\
                [expected]\npaper = [104000000.0, 1730000000.0]\n";
    std::fs::write(here.path("plan.toml"), plan).unwrap();
    let table = here.ok("--table colide --rows 1,3");
    assert!(table.contains("small_coeff") && table.contains("104M"), "{table}");
    let ledger = here.text("results/colide.csv");
    assert_eq!((ledger.lines().count(), field(&ledger, 1, "draws")), (3, "20000".into()));
    assert_eq!(here.ok("--table colide --rows 1,3"), table);
    assert_eq!(here.text("results/colide.csv"), ledger, "nothing was estimated again");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let here = Reproduction::new(2);
    assert!(here.refused("").contains("error: which table? give --table NAME or --all"));
    assert!(
        here.refused("--table var3").contains("the paper has no table `var3`; its tables are var1coarsefull, OODcoeff")
    );
    for minutes in ["0", "-1", "inf", "nan"] {
        let said = here.refused(&format!("--table colide --minutes={minutes}"));
        assert!(
            said.contains("--minutes <M>") && (said.contains("it must be positive") || said.contains("any clock")),
            "{minutes}: {said}"
        );
    }
    assert!(here.refused("--table colide --rows 13").contains("matches none of the 12 rows of colide"));
    assert!(here.refused("--table colide --rows x=1").contains("colide has no key `x`; its keys are vars, config"));
    let broken = plan(2).replace("model.heads = 4", "model.heads = 5");
    std::fs::write(here.path("plan.toml"), broken).unwrap();
    let said = here.refused("--table var1error --rows 1 --dry-run");
    assert!(said.contains(&format!("{RUN}: model.heads = 5 does not divide model.d = 64")), "{said}");
}

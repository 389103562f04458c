//! `polystep reproduce` as a process: a tiny model goes through a whole row, and nothing that is done is done again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A model that knows nothing, tested on two proofs.
fn plan(steps: u64) -> String {
    format!(
        "[table]\nname = \"var1coarsefull\"\norder = 1\n[fast]\nmodel.d = 64\nmodel.layers = 1\nmodel.heads = 4\nmodel.ffn = 64\n\
         model.max_positions = 256\ntrain.batch = 4\ntrain.steps = {steps}\ntrain.valid_every = 0\ntrain.valid_proofs = 2\n\
         train.checkpoint_steps = 5\n[evaluation]\nproofs = 2\n[cost]\nseconds_per_run = 1\nseconds_per_endpoint_run = 1\n\
         seconds_per_paper_run = 1\nseconds_per_evaluation = 1\n[expected]\npaper = [72.7, 98.9]\n"
    )
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(steps: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plan.toml"), plan(steps)).unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polystep"));
        command.current_dir(self.folder.path()).arg("reproduce").args(args.split_whitespace());
        command.args(["--plan", "plan.toml", "--device", "cpu", "--threads", "1"]);
        command.env("POLYSTEP_MODELS", "none");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &str) -> Output {
        self.command(args).output().unwrap()
    }

    fn ok(&self, args: &str) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, args: &str) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
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
    let bench = Bench::new(3);
    let dry = bench.ok("--table var1coarsefull --rows 1 --dry-run");
    assert!(dry.contains(&format!("train         0:02  {RUN}\n")) && dry.contains(ENDPOINT), "{dry}");
    assert!(!bench.path("runs").exists() && !bench.path("results").exists());

    let table = bench.ok("--table var1coarsefull --rows 1 --jobs 2");
    assert!(table.starts_with("var1coarsefull · recipe fast: 1 of 1 rows"), "{table}");
    assert!(table.contains("▼0.00") && table.contains("98.83"), "{table}");
    assert!(table.contains("full proof 0.00 (paper 95), "), "{table}");
    let ledger = bench.text("results/var1coarsefull.csv");
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
        assert!(bench.path("results/runs").join(RUN).join(file).exists(), "{file}");
    }
    assert_eq!(bench.text("results/var1error.csv").lines().count(), 2, "the run belongs to this table too");

    // Elsewhere: the records only.
    let before = bench.text(&format!("results/runs/{RUN}/metrics.json"));
    std::fs::remove_dir_all(bench.path("runs")).unwrap();
    std::fs::remove_file(bench.path("results/var1coarsefull.csv")).unwrap();
    assert_eq!(bench.ok("--table var1coarsefull --rows 1"), table);
    assert!(!bench.path("runs").exists(), "something was trained again");
    assert_eq!(bench.text("results/var1coarsefull.csv"), ledger);
    assert_eq!(bench.text(&format!("results/runs/{RUN}/metrics.json")), before);
    let list = bench.ok("--list");
    assert!(list.contains("2 of 36"), "{list}");

    // The other formats hold the same numbers.
    let json: serde_json::Value = serde_json::from_str(&bench.ok("--table var1coarsefull --rows 1 --json")).unwrap();
    let row = &json[0]["rows"][0];
    assert_eq!((row["keys"]["config"].as_str(), row["number"].as_u64()), (Some("small_coeff"), Some(1)));
    let cell = &row["cells"][3];
    assert_eq!((cell["column"].as_str(), cell["paper"].as_str()), (Some("full_proof_acc"), Some("95")));
    assert_eq!((cell["ours"].as_f64(), cell["lower"].as_bool()), (Some(0.0), Some(true)));
    assert!(bench.ok("--table var1coarsefull --rows 1 --markdown").contains("| 0.00 ▼ / 95 |"));

    // And so do the figures of what was measured.
    bench.ok("--table var1coarsefull,OODcoeff --show --plots figures/fast");
    let mut figures: Vec<_> =
        bench.path("figures/fast").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    figures.sort();
    assert_eq!(figures, ["var1coarsefull-curves.svg", "var1coarsefull-endpoint-curves.svg", "var1coarsefull.svg"]);
    let figure = bench.text("figures/fast/var1coarsefull.svg");
    assert!(figure.contains(">small_coeff coarse infix</text>") && figure.contains(">0.0 / 95.0</text>"), "{figure}");
    assert_eq!(bench.run("--list --plots figures").status.code(), Some(2), "a list has no figures");
}

#[test]
fn nothing_is_trained_when_only_evaluation_is_asked() {
    let bench = Bench::new(3);
    let output = bench.run("--table var1coarsefull --rows 1 --eval-only");
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("2 runs with neither record nor weights here: "),
        "{output:?}"
    );
    assert!(!bench.path("runs").exists());
    // Weights without an evaluation are evaluated.
    let tiny = plan(3).replace("train.steps = 3", "train.steps = 2");
    std::fs::write(bench.path("plan.toml"), tiny).unwrap();
    bench.ok("--table var1coarsefull --rows 1");
    std::fs::remove_dir_all(bench.path("results")).unwrap();
    let log = bench.text(&format!("runs/{RUN}/train.log"));
    forget_evaluations(&bench.path("runs").join(RUN));
    bench.ok("--table var1coarsefull --rows 1 --eval-only");
    assert_eq!(bench.text(&format!("runs/{RUN}/train.log")), log);
    let ledger = bench.text("results/var1coarsefull.csv");
    assert_eq!((ledger.lines().count(), field(&ledger, 1, "beam5_acc")), (2, "0.00".into()));

    // And so is a model from the box, which stays as it is.
    std::fs::create_dir(bench.path("box")).unwrap();
    std::fs::rename(bench.path("runs").join(RUN), bench.path("box").join(RUN)).unwrap();
    forget_evaluations(&bench.path("box").join(RUN));
    let boxed = bench.text(&format!("box/{RUN}/metrics.json"));
    std::fs::remove_dir_all(bench.path("results")).unwrap();
    let mut command = bench.command("--table var1error --rows 1 --eval-only");
    let output = command.env("POLYSTEP_MODELS", bench.path("box")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bench.text("results/var1error.csv").lines().count(), 2);
    assert_eq!(bench.text(&format!("box/{RUN}/metrics.json")), boxed);
}

/// Weights and record are both here: the model is asked again, and must say what the record says. The books stay as they are.
#[test]
fn a_model_is_tested_again_beside_its_record() {
    let bench = Bench::new(2);
    bench.ok("--table var1error --rows 1");
    let record = bench.path("results/runs").join(RUN).join("metrics.json");
    let before = std::fs::read_to_string(&record).unwrap();
    let said = bench.ok("--table var1error --rows 1 --eval-only");
    let verdict = format!("{RUN}  small_coeff:1  0.00    0.00  0.0 to 65.8  agrees");
    assert!(said.contains("\nTested again on CPU, 1 thread") && said.contains(&verdict), "{said}");
    assert!(!bench.ok("--table var1error --rows 1 --show").contains("again"));
    assert_eq!(std::fs::read_to_string(&record).unwrap(), before);

    let mut numbers: serde_json::Value = serde_json::from_str(&before).unwrap();
    let exact = &mut numbers["evaluations"][0]["greedy"]["full_proof"]["exact"];
    (exact["percent"], exact["lo"], exact["hi"]) = (90.0.into(), 80.0.into(), 95.0.into());
    std::fs::write(&record, numbers.to_string()).unwrap();
    let output = bench.run("--table var1error --rows 1 --eval-only --json");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("0.00   90.00  80.0 to 95.0  DIFFERS"), "{said}");
    assert!(said.contains(&format!("1 of 1 numbers lie outside the interval of their record: {RUN}")), "{said}");
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();

    let weights = bench.path("runs").join(RUN).join("model.safetensors");
    let half = std::fs::metadata(&weights).unwrap().len() / 2;
    std::fs::File::options().write(true).open(&weights).unwrap().set_len(half).unwrap();
    let output = bench.run("--table var1error --rows 1 --eval-only");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("error: {RUN}, copied from runs/{RUN}: ")), "{said}");
    assert!(said.contains("model.safetensors is damaged"), "{said}");
}

#[test]
fn no_time_means_no_run() {
    let bench = Bench::new(3);
    let output = bench.run("--table var1coarsefull --rows 1 --minutes 0.001");
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("2 runs still to be made, by the same command: "),
        "{output:?}"
    );
    assert!(!bench.path("runs").exists());
}

/// Two commands do not train one run at the same time.
#[test]
fn a_run_that_another_command_is_at_is_left_to_it() {
    let bench = Bench::new(2);
    let run = bench.path("runs").join(RUN);
    std::fs::create_dir_all(&run).unwrap();
    let log = std::fs::File::create(run.join("train.log")).unwrap();
    log.lock().unwrap();
    let output = bench.run("--table var1error --rows 1");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(&format!("{RUN}: another command is at it")) && said.contains("1 run still to be made"),
        "{said}"
    );
    assert!(!run.join("config.toml").exists() && !bench.path("results").exists());
    log.unlock().unwrap();
    bench.ok("--table var1error --rows 1");
    assert!(bench.path("results/var1error.csv").exists());
}

#[test]
fn when_time_is_up_a_training_stops_at_a_checkpoint() {
    let bench = Bench::new(1_000_000);
    let output = bench.run("--table var1error --rows 1 --minutes 0.12");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("{RUN}: stopped at a checkpoint")), "{said}");
    assert!(said.contains("1 run still to be made"), "{said}");
    assert!(bench.path("runs").join(RUN).join("checkpoints").read_dir().unwrap().next().is_some());
    let dry = bench.ok("--table var1error --rows 1 --dry-run");
    assert!(dry.starts_with("resume ") && dry.contains(RUN), "{dry}");
}

/// Only the command itself gets the signal; its child saves and stops all the same, and goes on next time.
#[test]
fn an_interrupted_command_goes_on() {
    let bench = Bench::new(400);
    let mut child = bench.command("--table var1error --rows 1").spawn().unwrap();
    let checkpoints = bench.path("runs").join(RUN).join("checkpoints");
    let some = |path: &Path| path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    let began = Instant::now();
    while !some(&checkpoints) {
        assert!(began.elapsed() < Duration::from_secs(120) && child.try_wait().unwrap().is_none(), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(bench.text(&format!("runs/{RUN}/train.log")).contains("saved at step"), "{output:?}");
    assert!(!bench.path("results").exists());
    bench.ok("--table var1error --rows 1");
    assert!(bench.text(&format!("runs/{RUN}/train.log")).contains(", continuing after step "));

    // The ledger is that of a command that nobody stopped, but for the time it took.
    let whole = Bench::new(400);
    whole.ok("--table var1error --rows 1");
    let ledger = |bench: &Bench| {
        let text = bench.text("results/var1error.csv");
        let seconds = text.lines().next().unwrap().split(',').position(|name| name == "seconds").unwrap();
        let line = text.lines().nth(1).unwrap().split(',').enumerate().filter(|(i, _)| *i != seconds);
        line.map(|(_, cell)| cell.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ledger(&bench), ledger(&whole));
    assert_eq!(field(&bench.text("results/var1error.csv"), 1, "train_examples"), "1600");
}

#[test]
fn what_is_damaged_is_named_and_kept() {
    let bench = Bench::new(2);
    bench.ok("--table var1error --rows 1");
    let path = bench.path("results/var1error.csv");
    let whole = bench.text("results/var1error.csv");
    let damaged = whole.replacen("small_coeff", "smal_coeff", 1);
    std::fs::write(&path, &damaged).unwrap();
    let said = bench.refused("--table var1error --rows 1");
    assert!(said.starts_with("error: results/var1error.csv line 2: var1error has no row 1,smal_coeff"), "{said}");
    assert!(said.ends_with("; repair it, or remove the file to have it made anew\n"), "{said}");
    assert_eq!(bench.text("results/var1error.csv"), damaged);
    std::fs::write(&path, &whole).unwrap();

    let record = bench.path("results/runs").join(RUN).join("metrics.json");
    let numbers = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, &numbers[..numbers.len() / 2]).unwrap();
    let said = bench.refused("--table var1error --rows 1");
    assert!(said.contains(&format!("results/runs/{RUN}/metrics.json cannot be understood: EOF")), "{said}");

    // The weights: there is no evaluation any more, so they are asked again.
    std::fs::remove_dir_all(bench.path("results")).unwrap();
    forget_evaluations(&bench.path("runs").join(RUN));
    let weights = bench.path("runs").join(RUN).join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    std::fs::write(&weights, bytes).unwrap();
    let output = bench.run("--table var1error --rows 1");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("model.safetensors is damaged"), "{said}");
    assert_eq!(std::fs::metadata(&weights).unwrap().len(), middle as u64);
}

#[test]
fn runs_made_elsewhere_are_known_by_their_configuration() {
    let bench = Bench::new(2);
    bench.ok("--table var1error --rows 1");
    std::fs::rename(bench.path("runs").join(RUN), bench.path("a run of mine")).unwrap();
    std::fs::remove_dir_all(bench.path("results")).unwrap();
    let mut command = bench.command("");
    let output = command.args(["--import", "a run of mine"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("a run of mine is {RUN}\n")), "{output:?}");
    assert_eq!(bench.text("results/var1error.csv").lines().count(), 2);

    // Another run of the same row does not take its place.
    let record = bench.text(&format!("results/runs/{RUN}/metrics.json"));
    let mine = bench.path("a run of mine/metrics.json");
    let mut numbers: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&mine).unwrap()).unwrap();
    numbers["seconds"] = serde_json::json!(1e6);
    std::fs::write(&mine, numbers.to_string()).unwrap();
    let output = bench.command("").args(["--import", "a run of mine"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("results/runs/{RUN} is the record of another one; move it away first")), "{said}");
    assert_eq!(bench.text(&format!("results/runs/{RUN}/metrics.json")), record);

    // The repository's own plan has another model: no row is like this.
    let config = bench.text(&format!("results/runs/{RUN}/config.toml")).replace("batch = 4", "batch = 5");
    std::fs::write(bench.path("a run of mine/config.toml"), config).unwrap();
    let output = bench.command("").args(["--import", "a run of mine"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a run of the paper's tables"), "{output:?}");
}

#[test]
fn sizes_need_no_training() {
    let bench = Bench::new(2);
    let plan = "[table]\nname = \"colide\"\norder = 17\n[sizes]\ndraws = 20000\n[cost]\nseconds_per_run = 1\n\
                [expected]\npaper = [104000000.0, 1730000000.0]\n";
    std::fs::write(bench.path("plan.toml"), plan).unwrap();
    let table = bench.ok("--table colide --rows 1,3");
    assert!(table.contains("small_coeff") && table.contains("104M"), "{table}");
    let ledger = bench.text("results/colide.csv");
    assert_eq!((ledger.lines().count(), field(&ledger, 1, "draws")), (3, "20000".into()));
    assert_eq!(bench.ok("--table colide --rows 1,3"), table);
    assert_eq!(bench.text("results/colide.csv"), ledger, "nothing was estimated again");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let bench = Bench::new(2);
    assert!(bench.refused("").starts_with("error: which table? give --table NAME or --all"));
    assert!(
        bench
            .refused("--table var3")
            .contains("the paper has no table `var3`; its tables are var1coarsefull, OODcoeff")
    );
    for minutes in ["0", "-1", "inf", "nan"] {
        let said = bench.refused(&format!("--table colide --minutes={minutes}"));
        assert!(said.contains("--minutes must be positive"), "{minutes}: {said}");
    }
    assert!(bench.refused("--table colide --rows 13").contains("no row of colide is meant; it has 12"));
    assert!(bench.refused("--table colide --rows x=1").contains("colide has no key `x`; its keys are vars, config"));
    let broken = plan(2).replace("model.heads = 4", "model.heads = 5");
    std::fs::write(bench.path("plan.toml"), broken).unwrap();
    let said = bench.refused("--table var1error --rows 1 --dry-run");
    assert!(said.contains(&format!("{RUN}: model.heads = 5 does not divide model.d = 64")), "{said}");
}

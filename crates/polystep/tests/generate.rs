//! What a command leaves behind when it does not reach its end, and what never depends on the machine.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn polystep(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polystep"));
    command.args(arguments.split_whitespace());
    command
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Signals a run that would last for hours, once it has begun to write.
fn stopped(folder: &Path, arguments: &str, signal: &str) -> Output {
    let child: Child = polystep(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("polystep starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while entries(folder).is_empty() {
        assert!(Instant::now() < deadline, "nothing was ever written");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    child.wait_with_output().unwrap()
}

#[test]
fn a_signal_leaves_no_half_file() {
    for signal in ["-TERM", "-INT"] {
        let folder = tempfile::tempdir().unwrap();
        let output = stopped(folder.path(), "generate --proofs 1000000000 --out data.jsonl", signal);
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert_eq!(entries(folder.path()), [""; 0]);
    }
}

#[test]
fn a_signal_leaves_no_half_folder() {
    let folder = tempfile::tempdir().unwrap();
    let output = stopped(folder.path(), "generate --proofs 1000000000 --format parquet --out data", "-TERM");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(entries(folder.path()), [""; 0]);
}

/// A limit on the size of files stands in for the full disk: the write fails in the middle.
#[test]
fn a_full_disk_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in ["--out data.jsonl", "--format parquet --out data"] {
        let script = format!(
            "trap '' XFSZ; ulimit -f 16; exec {} generate --proofs 20000 {arguments}",
            env!("CARGO_BIN_EXE_polystep")
        );
        let output = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("error: cannot write data") && said.matches("too large").count() == 1, "{said}");
        assert_eq!(entries(folder.path()), [""; 0]);
    }
}

#[test]
fn a_full_standard_output_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = polystep("generate --proofs 10").stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write to standard output: "));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for arguments in ["generate --proofs 1000000000", "generate --steps 1000000000 --notation prefix"] {
        let mut child = polystep(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with('{') && line.ends_with("}\n"), "{line}");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
    }
}

#[test]
fn the_same_seed_gives_the_same_data_at_any_number_of_threads() {
    for setting in ["plain", "calculator", "arithmetic"] {
        let run = |threads| {
            let arguments = format!(
                "generate --config medium_terms --vars 2 --setting {setting} --proofs 5000 --seed 7 --threads {threads}"
            );
            let output = polystep(&arguments).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            output.stdout
        };
        let alone = run(1);
        assert_eq!(alone.iter().filter(|&&b| b == b'\n').count(), 5000);
        assert!(alone == run(2) && alone == run(5), "{setting}: the data depends on the number of threads");
    }
}

#[test]
fn a_longer_run_begins_like_a_shorter_one() {
    let run = |steps| polystep(&format!("generate --steps {steps} --granularity fine")).output().unwrap().stdout;
    let (short, long) = (run(1000), run(30_000));
    assert_eq!(short.iter().filter(|&&b| b == b'\n').count(), 1000);
    assert!(long.starts_with(&short));
}

/// One column of what is generated.
fn column(arguments: &str, name: &str) -> Vec<String> {
    let output = polystep(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows = String::from_utf8(output.stdout).unwrap();
    let row = |line| serde_json::from_str::<serde_json::Value>(line).unwrap()[name].as_str().unwrap().to_owned();
    rows.lines().map(row).collect()
}

/// `--retry` makes another space of the same name, with evaluation sets of its own.
#[test]
fn training_data_of_a_changed_space_avoids_its_own_test_set() {
    let space = "generate --config small_coeff --retry polynomial";
    let test = column(&format!("{space} --split test"), "end");
    let train = column(&format!("{space} --proofs 20000"), "end");
    let shared: Vec<&String> = train.iter().filter(|end| test.contains(end)).collect();
    assert!(shared.is_empty(), "{} endpoints, such as {}", shared.len(), shared[0]);
}

/// One folder with all splits: the fixed sets are whole, and the size is that of train.
#[test]
fn a_dataset_has_train_valid_and_test() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &str| polystep(arguments).current_dir(folder.path()).output().unwrap();
    let several = "generate --config small_coeff --split train,valid,test --proofs 20";
    let output = run(&format!("{several} --format parquet --out data"));
    assert!(output.status.success(), "{output:?}");
    let names = ["test", "train", "valid"].map(|split| format!("{split}-00000-of-00001.parquet"));
    assert_eq!(entries(&folder.path().join("data/data")), names);
    let card = std::fs::read_to_string(folder.path().join("data/README.md")).unwrap();
    for text in [
        "license:\n- mit\n- apache-2.0\n",
        "  - split: train\n    path: data/train-*.parquet\n  - split: valid\n",
        "2020 proofs of the space `small_coeff` with 1 variable",
        "| coefficient | 60 | 20 | 5 |\n| degree | 6 | | 3 |\n| terms | | 8 | 3 |\n",
        "A polynomial has 2 to 3 products, and a product 2 to 3 factors.",
        "| `train` | 20 | 1 | no endpoint of the fixed sets |\n| `valid` | 1000 | 2021 | fixed; training avoids",
        "--split train,valid,test --seed 1 --proofs 20 --format parquet",
    ] {
        assert!(card.contains(text), "{text} is not in {card}");
    }
    let refused = run(several);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("several splits need --format parquet"), "{said}");
}

/// Training avoids the fixed sets and nothing else of their streams.
#[test]
fn what_training_may_have_met_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let said = |arguments: &str| {
        let arguments = format!("generate --config small_coeff --split test {arguments}");
        let output = polystep(&arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let warning = "warning: training is guarded against the first 1000 proofs of --split test with seed 2021 only.";
    for guarded in ["", "--proofs 1000", "--steps 4000"] {
        assert!(!said(guarded).contains("warning"), "{guarded}");
    }
    for beyond in ["--proofs 1001", "--seed 7 --proofs 3", "--steps 20000", "--proofs 1001 --format parquet --out data"]
    {
        assert!(said(beyond).contains(warning), "{beyond}");
    }
    let card = std::fs::read_to_string(folder.path().join("data/README.md")).unwrap();
    assert!(card.contains("| `test` | 1001 | 2021 | **beyond the fixed set: training is not guarded"), "{card}");
}

#[test]
fn the_card_of_the_arithmetic_probe_speaks_of_exercises() {
    let folder = tempfile::tempdir().unwrap();
    let card = |key: &str| {
        let arguments = format!("generate --setting arithmetic --config {key} --proofs 8 --format parquet --out {key}");
        assert!(polystep(&arguments).current_dir(folder.path()).status().unwrap().success());
        std::fs::read_to_string(folder.path().join(key).join("README.md")).unwrap()
    };
    // The default configuration means all exercises.
    let [one, all] = ["mul9", "medium_coeff"].map(card);
    assert!(one.contains("8 exercises of the kind `mul9`, notation infix"), "{one}");
    assert!(one.contains("polystep generate --config mul9 "), "{one}");
    assert!(all.contains("8 exercises of the kinds `add4`, `mul4`, `add9`, `mul9` in turn"), "{all}");
    for card in [one, all] {
        assert!(
            !card.contains("Every state") && !card.contains("The space") && !card.contains("- polynomials"),
            "{card}"
        );
    }
}

//! From a run to its numbers, as a person would: train a few steps, then `eval`, `report`, `export` and `prove --model`. The
//! model knows nothing; what is tested is that every column is there and adds up. Other settings are in `experiments.rs`.

mod sandbox;

use sandbox::Sandbox;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).lines().count()
}

const QUICK: [&str; 6] = ["--proofs", "2", "--device", "cpu", "--threads", "2"];

#[test]
fn a_plain_run_gets_every_number_a_report_and_an_export() {
    let sandbox = Sandbox::new();
    sandbox.trained("run");
    let before = sandbox.json("run/metrics.json");
    let table = sandbox.ok(&[&["eval", "run", "--on", "small_coeff:1,medium_coeff:2"][..], &QUICK].concat());
    assert!(table.contains("Full proof") && table.contains("98.9") | table.contains("95"), "{table}");

    let metrics = sandbox.json("run/metrics.json");
    assert_eq!(metrics["test"], before["test"], "training's own numbers stay");
    let evaluations = metrics["evaluations"].as_array().unwrap();
    assert_eq!(evaluations.len(), 2);
    let home = &evaluations[0];
    for part in ["greedy", "recursive", "assisted", "beam", "beam_lp1"] {
        assert!(home[part].is_object(), "{part} is missing");
    }
    // Without a beam, model and checker complete what the model alone gets right.
    assert_eq!(home["assisted"]["completed"][0]["proofs"], home["greedy"]["full_proof"]["exact"]);
    assert!(home["assisted"]["completed"].as_array().unwrap().len() == 6 && table.contains("by beams used"), "{table}");
    let greedy = sandbox.path("run/predictions/small_coeff-1/greedy.jsonl");
    assert_eq!(lines(&greedy) as u64, home["greedy"]["stepwise"]["exact"]["of"].as_u64().unwrap());
    assert_eq!(lines(&sandbox.path("run/predictions/small_coeff-1/recursive.jsonl")), 2);
    assert_eq!(lines(&sandbox.path("run/predictions/small_coeff-1/beam.jsonl")), 10);

    // A look at less is printed, alone, and changes nothing.
    let kept = std::fs::read(sandbox.path("run/metrics.json")).unwrap();
    let look = sandbox.run(&["eval", "run", "--on", "small_coeff:1", "--proofs", "1", "--no-beam", "--device", "cpu"]);
    let (shown, said) = (String::from_utf8_lossy(&look.stdout), String::from_utf8_lossy(&look.stderr));
    assert!(shown.contains("tested on small_coeff with 1 variable\n") && !shown.contains("medium_coeff"), "{shown}");
    assert!(said.contains("already has a larger evaluation of small_coeff:1") && !said.contains("guarded"), "{said}");
    assert_eq!(std::fs::read(sandbox.path("run/metrics.json")).unwrap(), kept);
    assert_eq!(lines(&greedy) as u64, home["greedy"]["stepwise"]["exact"]["of"].as_u64().unwrap());

    // The same records, scored as a stranger's.
    let theirs = sandbox.ok(&["eval", "--predictions", "run/predictions/small_coeff-1/greedy.jsonl", "--json"]);
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    assert_eq!(theirs["evaluations"][0]["greedy"]["stepwise"], home["greedy"]["stepwise"]);

    let other =
        sandbox.run(&["eval", "--predictions", "run/predictions/small_coeff-1/greedy.jsonl", "--notation", "prefix"]);
    let said = String::from_utf8_lossy(&other.stderr);
    assert!(other.status.code() == Some(2) && said.contains("is written in infix: add --notation infix"), "{said}");

    sandbox.ok(&["report", "run"]);
    let page = std::fs::read_to_string(sandbox.path("run/report.html")).unwrap();
    assert!(page.contains("small_coeff") && !page.contains("src=\"http") && !page.contains("<link"));

    sandbox.ok(&["export", "run", "--out", "hf"]);
    let config: Value = serde_json::from_slice(&std::fs::read(sandbox.path("hf/config.json")).unwrap()).unwrap();
    assert_eq!(config["model_type"], "mbart");
    assert!(std::fs::read_to_string(sandbox.path("hf/README.md")).unwrap().contains("Full proof"));
    assert_eq!(sandbox.run(&["export", "run", "--out", "hf"]).status.code(), Some(2), "an export is not overwritten");
    let mode = |name: &str| std::fs::metadata(sandbox.path("hf").join(name)).unwrap().permissions().mode();
    assert_eq!(mode("model.safetensors"), mode("config.json"), "whoever may read one may read the other");

    let proof = sandbox.ok(&["prove", "(2*x^1)*(3)+(x+1)*(4)", "--model", "run", "--alternatives"]);
    assert!(
        proof.starts_with("model run: named with --model\ntrained on small_coeff, 1 variable, plain, coarse, infix")
    );
    let outside = sandbox.ok(&["prove", "(2*y^1)*(3)+(x+1)*(4)", "--model", "run"]);
    let why = "model run: named with --model; outside its training: 2 variables (it learned at most 1)\n";
    assert!(outside.starts_with(why), "{outside}");
}

#[test]
fn what_is_missing_is_named() {
    let sandbox = Sandbox::new();
    let refused = |args: &[&str]| sandbox.refused(args);
    assert!(refused(&["eval", "nowhere"]).contains("nowhere holds no run"));
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    assert!(refused(&["report", "empty"]).contains("there is no config.toml"));
    std::fs::write(sandbox.path("empty/config.toml"), "[data]\nvars").unwrap();
    assert!(refused(&["report", "empty"]).contains("config.toml is damaged"));
    assert!(refused(&["eval", "empty"]).contains("empty/config.toml, line 2"));
    assert!(refused(&["check", "empty"]).contains("cannot read empty, line 1"));
    std::fs::write(sandbox.path("bad.jsonl"), "{\"proof\": 1}\n").unwrap();
    assert!(refused(&["eval", "--predictions", "bad.jsonl"]).contains("bad.jsonl"));
    sandbox.trained("run");
    assert!(refused(&["eval", "run", "--on", "large"]).contains("--on large"));
    assert!(refused(&["eval", "run", "--on", "huge_coeff:1"]).contains("small_coeff"));
    assert!(refused(&["eval", "run", "--proofs", "0"]).contains("--proofs"));
    let long = vec!["(2*x^1)*(3)"; 30].join("+");
    let sentence = refused(&["prove", &long, "--model", "run"]);
    assert!(sentence.contains("the expression has 359 tokens and this model takes 255: "), "{sentence}");
    assert!(refused(&["eval", "run", "--setting", "calculator"]).contains("--setting"), "a run knows its own");
    let look =
        sandbox.run(&["eval", "run", "--on", "small_coeff/mul2:1", "--proofs", "1", "--no-beam", "--device", "cpu"]);
    let said = String::from_utf8_lossy(&look.stderr);
    assert!(said.contains("Training was not guarded against small_coeff/mul2:1"), "{said}");
    std::fs::write(sandbox.path("run/metrics.json"), "{").unwrap();
    let page = sandbox.run(&["report", "run"]);
    let said = String::from_utf8_lossy(&page.stderr);
    assert!(page.status.success() && said.contains("metrics.json is damaged"), "{said}");
    assert!(refused(&["export", "run", "--compact", "--out", "small/model"]).contains("metrics.json is damaged"));
    assert!(!sandbox.path("small").exists(), "nothing stays of an export that failed");
    std::fs::remove_file(sandbox.path("run/model.safetensors")).unwrap();
    assert!(refused(&["eval", "run"]).contains("not finished"));
}

/// A page that cannot be written is no bad input, and half a page is not left behind. A folder that is not there is bad input.
#[test]
fn a_full_disk_is_no_bad_input() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("run")).unwrap();
    sandbox.write("run/config.toml", "[data]\nconfig = \"small_coeff\"\nvars = 1\n");
    let report = sandbox.command(&["report", "run"]);
    // A limit on the size of files stands in for the full disk.
    let script = format!("trap '' XFSZ; ulimit -f 1; exec {} report run", report.get_program().display());
    let full = std::process::Command::new("sh").args(["-c", &script]).current_dir(sandbox.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&full.stderr);
    assert!(full.status.code() == Some(1) && said.contains("cannot write run/report.html: "), "{said}");
    assert_eq!(sandbox.entries("run"), ["config.toml"]);
    let nowhere = sandbox.run(&["report", "run", "--out", "no/such/page.html"]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", String::from_utf8_lossy(&nowhere.stderr));
}

//! Every kind of experiment by the two commands that its TOML in `configs/` names: train a tiny model for a few steps, evaluate
//! it, and look at the columns that only this kind has. The models know nothing; what is tested is what is counted, and where.

mod sandbox;

use sandbox::Sandbox;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What makes any experiment small enough for a test.
const TINY: [&str; 9] = [
    "model.d=64",
    "model.layers=1",
    "model.heads=4",
    "model.ffn=64",
    "model.max_positions=256",
    "train.batch=4",
    "train.steps=3",
    "train.valid_proofs=8",
    "train.log_every=1",
];

const PROOFS: usize = 8;

impl Sandbox {
    /// Trains an experiment of `configs/` in small.
    fn train(&self, experiment: &str, out: &str, flags: &[&str]) -> String {
        let toml = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../configs/{experiment}.toml"));
        let tiny = TINY.iter().flat_map(|set| ["--set", set]);
        let common = ["train", toml.to_str().unwrap(), "--out", out, "--device", "cpu", "--threads", "1"];
        self.ok(&common.into_iter().chain(flags.iter().copied()).chain(tiny).collect::<Vec<_>>())
    }

    /// Evaluates the first proofs, greedily and recursively.
    fn eval(&self, args: &[&str]) -> String {
        let proofs = PROOFS.to_string();
        let quick = ["--no-beam", "--proofs", &proofs, "--device", "cpu", "--threads", "2"];
        self.ok(&["eval"].iter().chain(args).chain(&quick).copied().collect::<Vec<_>>())
    }

    fn metrics(&self, run: &str) -> Value {
        self.json(&format!("{run}/metrics.json"))
    }

    fn records(&self, path: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(path)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The last validation of a run's log.
    fn validation(&self, run: &str) -> Value {
        let log = self.records(&format!("{run}/metrics.jsonl"));
        log.into_iter().rfind(|line| line["kind"] == "valid").unwrap()
    }
}

/// A line of the printed table: its numbers, ours first and the paper's last.
fn row<'a>(table: &'a str, column: &str) -> Vec<&'a str> {
    let line = table.lines().find_map(|line| line.strip_prefix(column));
    line.unwrap_or_else(|| panic!("no {column} in\n{table}")).split_whitespace().collect()
}

#[test]
fn endpoint_models_are_counted_in_pairs() {
    let sandbox = Sandbox::new();
    sandbox.train("endpoint", "run", &[]);
    let table = sandbox.eval(&["run"]);
    assert_eq!(row(&table, "Endpoint: #EE"), ["12", "4800000"], "three batches of four pairs");
    assert_eq!(row(&table, "Endpoint: Accuracy").last(), Some(&"83.73"));
    assert!(!table.contains("Greedy: ") && !table.contains("recursive"), "{table}");
    let metrics = sandbox.metrics("run");
    assert_eq!((metrics["examples"].as_u64(), metrics["proofs"].as_u64()), (Some(12), Some(16_384)));
    let home = &metrics["evaluations"][0];
    assert_eq!(home["greedy"]["full_proof"]["exact"]["of"], PROOFS);
    assert_eq!(home["greedy"]["full_proof"], home["greedy"]["stepwise"], "a pair is a proof and a step");
    assert!(home["recursive"].is_null());
    let pairs = sandbox.records("run/predictions/large_coeff-1/greedy.jsonl");
    assert!(pairs.iter().all(|p| p["kind"] == "endpoint" && p["step"] == 0) && pairs.len() == PROOFS);
    assert_eq!(sandbox.validation("run")["by_kind"].as_object().unwrap().keys().collect::<Vec<_>>(), ["endpoint"]);
}

#[test]
fn annotated_proofs_alternate_and_have_mark_errors() {
    let sandbox = Sandbox::new();
    sandbox.train("annotated", "run", &[]);
    let table = sandbox.eval(&["run"]);
    assert_eq!(row(&table, "First error: mark").last(), Some(&"2.54"));
    assert_eq!(row(&table, "All errors: mark").last(), Some(&"2.25"));
    let mut proofs: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for p in sandbox.records("run/predictions/large_coeff-1/greedy.jsonl") {
        proofs.entry(p["proof"].to_string()).or_default().push(p["kind"] == "markstep");
    }
    assert_eq!(proofs.len(), PROOFS);
    for (proof, marks) in &proofs {
        assert!(marks.len() % 2 == 1 && marks.iter().enumerate().all(|(i, mark)| *mark == (i % 2 == 0)), "{proof}");
    }
    let home = &sandbox.metrics("run")["evaluations"][0];
    let marks = proofs.values().flatten().filter(|mark| **mark).count();
    assert_eq!(home["greedy"]["by_kind"]["markstep"]["of"], marks);
    let kinds = home["greedy"]["errors"]["kinds"].as_array().unwrap();
    let mark = kinds.iter().find(|k| k["kind"] == "markstep").unwrap();
    assert_eq!(mark["rate"]["of"], marks);
    assert_eq!(home["recursive"]["recursive_exact"]["of"], PROOFS);
}

#[test]
fn a_calculator_is_scored_after_evaluation_and_before() {
    let sandbox = Sandbox::new();
    let said = sandbox.train("calculator", "run", &[]);
    assert!(said.contains("brackets as they stand"), "{said}");
    assert_eq!(sandbox.validation("run")["raw"], true);
    let table = sandbox.eval(&["run"]);
    assert_eq!(row(&table, "Greedy: Full proof").last(), Some(&"95.7"));
    assert!(table.contains("brackets right before evaluation"), "{table}");
    let greedy = &sandbox.metrics("run")["evaluations"][0]["greedy"];
    let (exact, raw) = (&greedy["stepwise"]["exact"], &greedy["raw_exact"]);
    assert_eq!(exact["of"], raw["of"]);
    assert!(exact["count"].as_u64() >= raw["count"].as_u64());

    // An answer that evaluates to the target is right, though its brackets are not the target's.
    let path = sandbox.path("run/predictions/large_coeff-1/greedy.jsonl");
    let mut records = sandbox.records("run/predictions/large_coeff-1/greedy.jsonl");
    let step = records.iter_mut().find(|p| p["target"].as_str().unwrap().contains('[')).unwrap();
    let swapped = {
        let target = step["target"].as_str().unwrap();
        let (open, close) = (target.find('[').unwrap(), target.find(']').unwrap());
        format!("{}[1*{}{}", &target[..open], &target[open + 1..close], &target[close..])
    };
    step["beams"] = serde_json::json!([{ "output": swapped, "logprob": -1.0 }]);
    std::fs::write(&path, records.iter().map(|r| format!("{r}\n")).collect::<String>()).unwrap();
    let file = path.to_str().unwrap();
    let again: Value =
        serde_json::from_str(&sandbox.ok(&["eval", "--predictions", file, "--setting", "calculator", "--json"]))
            .unwrap();
    let again = &again["evaluations"][0]["greedy"];
    assert_eq!(again["stepwise"]["exact"]["count"].as_u64(), Some(exact["count"].as_u64().unwrap() + 1));
    assert_eq!(again["raw_exact"]["count"], raw["count"]);

    // The brackets are evaluated in the loop: no state of a right proof holds one.
    for proof in sandbox.records("run/predictions/large_coeff-1/recursive.jsonl") {
        let expected = proof["expected"].as_array().unwrap();
        assert!(expected.iter().all(|state| !state.as_str().unwrap().contains('[')), "{proof}");
    }
}

/// A space of one's own is tested with other numbers of variables under its own key; its reading is a key of the TOML.
#[test]
fn a_reading_of_two_variables_is_a_setting() {
    let sandbox = Sandbox::new();
    for reading in ["all", "uniform"] {
        sandbox.train("variables", reading, &["--set", &format!("space.variables={reading}")]);
    }
    sandbox.eval(&["all", "uniform", "--on", "pairs:1,pairs:2"]);
    let inputs = |run: &str, vars: u32| -> Vec<String> {
        let records = sandbox.records(&format!("{run}/predictions/pairs-{vars}/greedy.jsonl"));
        records.iter().map(|record| record["input"].as_str().unwrap().to_owned()).collect()
    };
    let second = |inputs: Vec<String>| inputs.iter().filter(|input| input.contains("x2")).count();
    for reading in ["all", "uniform"] {
        assert!(second(inputs(reading, 1)) == 0 && second(inputs(reading, 2)) > 0, "{reading}");
    }
    assert_ne!(inputs("all", 2), inputs("uniform", 2));
}

#[test]
fn out_of_distribution_is_a_matrix() {
    let sandbox = Sandbox::new();
    for config in ["small_coeff", "large_coeff"] {
        sandbox.train("ood", config, &["--config", config]);
    }
    let sets = "small_coeff:1,large_coeff:1,small_coeff:2";
    let table = sandbox.eval(&["small_coeff", "large_coeff", "--on", sets]);
    let matrix = table.split("trained x tested, full proof").nth(1).unwrap_or_else(|| panic!("{table}"));
    for text in ["small_coeff, 2 var", "0.00 ↓ (31)", "0.00 ↓ (95.8)", "trained x tested, stepwise", "(68.02)"] {
        assert!(matrix.contains(text), "{text} is not in\n{matrix}");
    }

    let before = sandbox.metrics("small_coeff");
    let json = sandbox.ok(&["eval", "small_coeff", "large_coeff", "--matrix", "--json"]);
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["tested"].as_array().unwrap().len(), 3);
    for (row, config) in ["small_coeff", "large_coeff"].iter().enumerate() {
        assert_eq!(found["rows"][row]["trained"]["config"], *config);
        for column in 0..3 {
            let cell = &found["rows"][row]["entries"][column];
            assert!(cell["full_proof"]["ours"].is_number() && cell["stepwise"]["ours"].is_number(), "{cell}");
        }
    }
    assert_eq!(found["rows"][0]["entries"][1]["full_proof"]["paper"]["table"], "OODcoeff");
    assert_eq!(sandbox.metrics("small_coeff"), before, "--matrix decodes nothing");

    sandbox.ok(&["report", "small_coeff", "large_coeff", "--out", "ood.html"]);
    let csv = std::fs::read_to_string(sandbox.path("ood.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
    assert!(std::fs::read_to_string(sandbox.path("ood.html")).unwrap().contains("id=\"matrix\""));

    let refused = |args: &[&str]| {
        let output = sandbox.run(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["eval", "nowhere", "--matrix"]).contains("nowhere has not been evaluated"));
    assert!(refused(&["eval", "small_coeff", "--matrix", "--on", sets]).contains("--matrix"));
}

#[test]
fn arithmetic_is_measured_by_kind() {
    let sandbox = Sandbox::new();
    let said = sandbox.train("arithmetic", "run", &[]);
    let kinds = ["add4", "add9", "mul4", "mul9"];
    for kind in kinds {
        assert!(said.contains(kind), "{said}");
    }
    let curve = &sandbox.validation("run")["by_kind"];
    assert_eq!(curve.as_object().unwrap().keys().collect::<Vec<_>>(), kinds);
    let table = sandbox.eval(&["run"]);
    assert_eq!(row(&table, "Arithmetic: 4-digit sums").last(), Some(&"99"));
    assert_eq!(row(&table, "Arithmetic: 9-digit products").last(), Some(&"<1"));
    assert_eq!(row(&table, "Training: #Train"), ["12", "2000000"]);
    assert!(!table.contains("Full proof") && !table.contains("recursive"), "{table}");
    let by_kind = sandbox.metrics("run")["evaluations"][0]["greedy"]["by_kind"].clone();
    for kind in kinds {
        assert_eq!(by_kind[kind]["of"], PROOFS / 4, "{by_kind}");
    }
    // One kind alone, as a test set and as a task.
    let table = sandbox.eval(&["run", "--on", "mul9,add4"]);
    assert!(table.contains("tested on mul9") && table.contains("trained x tested"), "{table}");
    sandbox.train("arithmetic", "sums", &["--config", "add4", "--notation", "prefix"]);
    sandbox.eval(&["sums"]);
    let only = sandbox.metrics("sums")["evaluations"][0]["greedy"]["by_kind"].clone();
    assert_eq!(only.as_object().unwrap().keys().collect::<Vec<_>>(), ["add4"]);
    sandbox.ok(&["report", "run", "sums", "--out", "both.html"]);
    let page = std::fs::read_to_string(sandbox.path("both.html")).unwrap();
    assert!(page.contains("Accuracy by kind, validation") && page.contains("9-digit products right"));
    let refused = sandbox.run(&["prove", "(2)*(3)+(4)", "--model", "run"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn a_curriculum_has_its_lines_its_keys_and_its_section() {
    let sandbox = Sandbox::new();
    let rounds = ["--set", "curriculum.n_batches=1"];
    sandbox.train("curriculum-c2", "run", &rounds);
    let mut looks = sandbox.records("run/metrics.jsonl");
    looks.retain(|line| line["kind"] == "curriculum");
    assert_eq!(looks.iter().map(|l| l["step"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    let tasks = looks[2]["tasks"].as_array().unwrap();
    assert_eq!(tasks.iter().map(|t| t["task"].as_str().unwrap()).collect::<Vec<_>>(), ["add", "mul2", "mul3", "mixed"]);
    assert_eq!(tasks[3]["after"], serde_json::json!(["mul3", "add"]));
    assert_eq!(tasks.iter().map(|t| t["examples"].as_u64().unwrap()).sum::<u64>(), 12, "exams are not counted");

    let table = sandbox.eval(&["run"]);
    assert!(table.contains("1 variable · no_backtrack · curriculum · coarse · infix · C2"), "{table}");
    assert_eq!(row(&table, "Training: #Train"), ["12", "4800000"]);
    assert_eq!(row(&table, "Greedy: Full proof").last(), Some(&"86.44"));
    let metrics = sandbox.metrics("run");
    assert_eq!((&metrics["keys"]["setting"], &metrics["keys"]["curriculum"]), (&"curriculum".into(), &"C2".into()));
    assert_eq!(metrics["evaluations"][0]["recursive"]["recursive_exact"]["of"], PROOFS, "its proofs are plain ones");

    // A graph of one's own has no row in the paper.
    sandbox.train("curriculum-own", "own", &rounds);
    assert!(sandbox.eval(&["own"]).contains("medium_coeff · curriculum · coarse · infix · own"));

    sandbox.ok(&["report", "run"]);
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
    let page = read("run/report.html");
    assert!(page.contains("<h2>Curriculum</h2>") && page.contains("class=\"band s3\"") && !page.contains("NaN"));
    assert!(read("run/report.md").contains("| mixed | mul3, add |"), "{}", read("run/report.md"));
    for (curriculum, tasks) in [("curriculum-c", 3), ("curriculum-c4", 5)] {
        sandbox.train(curriculum, curriculum, &rounds);
        let looks = sandbox.records(&format!("{curriculum}/metrics.jsonl"));
        let look = looks.iter().rfind(|line| line["kind"] == "curriculum").unwrap();
        assert_eq!(look["tasks"].as_array().unwrap().len(), tasks);
    }
}

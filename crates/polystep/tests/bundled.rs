//! The bundled models: `polystep prove` picks the one that fits. The models here know nothing; which one is asked, and what is
//! said where none fits, is what is tested. One that knows something is in models/.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TINY: &str = "[model]\nd = 64\nlayers = 1\nheads = 4\nffn = 64\nmax_positions = 128\n\
                    [train]\nbatch = 4\nlr = 1e-3\nsteps = 2\nvalid_proofs = 2\n";

/// `prove` and friends with bundled models of one's own.
fn polystep(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polystep"));
    command.current_dir(folder).env("POLYSTEP_MODELS", folder.join("models")).args(args).output().unwrap()
}

fn ok(folder: &Path, args: &[&str]) -> (String, String) {
    let output = polystep(folder, args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{args:?}: {stderr}");
    (stdout, stderr)
}

/// A model of a space among the bundled ones, trained for two steps.
fn put(folder: &Path, name: &str, data: &str) {
    std::fs::write(folder.join("tiny.toml"), format!("[data]\n{data}\n{TINY}")).unwrap();
    let run = format!("runs/{name}");
    ok(folder, &["train", "tiny.toml", "--out", &run, "--device", "cpu", "--threads", "2"]);
    ok(folder, &["eval", &run, "--no-beam", "--proofs", "2", "--device", "cpu", "--threads", "2"]);
    ok(folder, &["export", &run, "--compact", "--out", &format!("models/{name}")]);
}

#[test]
fn the_model_whose_space_the_expression_belongs_to_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (text, note) = ok(folder, &["prove", "(x+1)*(2)+(3)"]);
    assert!(text.starts_with("P0") && note.contains("there is no folder models/"), "{note}");

    put(folder, "a-small", "config = \"small_coeff\"");
    put(folder, "b-both", "config = \"large_coeff\"\nalso = [\"medium_coeff:2\"]");
    let (size, half) = ("runs/a-small/model.safetensors", "models/a-small/model.safetensors");
    let bytes = |file: &str| std::fs::metadata(folder.join(file)).unwrap().len();
    assert!(bytes(half) < bytes(size) * 6 / 10 && folder.join("models/a-small/README.md").exists());

    // Both have learned this expression's space and neither knows anything: the one that learned more is asked, until the other
    // is measured to be better.
    let asked = |args: &[&str]| ok(folder, &[&["prove"][..], args].concat());
    let (both, _) = asked(&["(x+1)*(2)+(3)*(x)"]);
    let best = "the best of the 2 bundled models that learned such expressions\n";
    assert!(both.starts_with(&format!("model b-both: {best}")), "{both}");
    let measured = folder.join("models/a-small/metrics.json");
    let mut metrics: serde_json::Value = serde_json::from_slice(&std::fs::read(&measured).unwrap()).unwrap();
    let half = serde_json::to_value(polystep_record::Proportion::new(1, 2)).unwrap();
    metrics["evaluations"][0]["greedy"]["full_proof"]["exact"] = half;
    std::fs::write(&measured, metrics.to_string()).unwrap();
    let (small, _) = asked(&["(x+1)*(2)+(3)*(x)"]);
    assert!(small.starts_with(&format!("model a-small: {best}trained on small_coeff, 1 variable, plain")), "{small}");
    // 90 is too large a coefficient for small_coeff.
    let (large, _) = asked(&["(9*x)*(10)+(3)*(x)"]);
    let only = "model b-both: the only bundled model that learned such expressions\n";
    assert!(large.starts_with(&format!("{only}trained on large_coeff, 1 variable and 1 more space, plain")), "{large}");
    let (two, _) = asked(&["(x+y)*(2)+(3)*(x)"]);
    assert!(two.starts_with(only), "{two}");
    let none = "model b-both: no bundled model learned such expressions, and this one learned the most spaces; outside";
    let (outside, _) = asked(&["(x+1)*(200)+(3)*(x)"]);
    assert!(outside.starts_with(none) && outside.contains("coefficient 200 in a factor (it learned at most 10)"));
    // It has learned two variables: only the third is new to it.
    let (three, _) = asked(&["(x+y)*(z)+(3)*(x)"]);
    let third = "; outside its training: 3 variables (it learned at most 2)\n";
    assert!(three.starts_with(none) && three.contains(third), "{three}");
    let (ends, _) = asked(&["x+1", "--json"]);
    let ends: serde_json::Value = serde_json::from_str(&ends).unwrap();
    assert!(ends["right"] == true && ends["steps"].as_array().is_some_and(Vec::is_empty), "{ends}");

    let refused = |args: &[&str]| {
        let output = polystep(folder, &[&["prove"][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let run = refused(&["(x+1)*(2)+(3)", "--model", "runs/a-small", "--setting", "calculator"]);
    assert!(run.contains("--model") && run.contains("--setting"), "{run}");

    let (exact, note) = asked(&["(x+1)*(2)+(3)*(x)", "--notation", "prefix"]);
    assert!(exact.starts_with("P0") && note.contains("writes plain coarse steps in prefix"), "{note}");
    let alone = refused(&["(x+1)*(2)+(3)*(x)", "--notation", "prefix", "--alone"]);
    assert!(alone.contains("--alone needs a model"), "{alone}");
    let (exact, note) = asked(&["(x+1)*(2)+(3)*(x)", "--symbolic"]);
    assert!(exact.starts_with("P0") && note.is_empty(), "{note}");

    // An evaluation leaves a bundled model as it was delivered.
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(folder.join("models/a-small")).unwrap().map(|e| e.unwrap().path()).collect();
        names.sort();
        names.into_iter().map(|path| (std::fs::read(&path).ok(), path)).collect::<Vec<_>>()
    };
    let before = files();
    let (_, said) = ok(folder, &["eval", "models/a-small", "--proofs", "2", "--device", "cpu", "--threads", "2"]);
    assert!(said.contains("answers and numbers go to runs/a-small-eval"), "{said}");
    assert!(before == files() && folder.join("runs/a-small-eval/predictions/small_coeff-1/assisted.jsonl").exists());
    ok(folder, &["report", "runs/a-small-eval"]);

    std::fs::write(folder.join("models/b-both/metrics.json"), "{").unwrap();
    let damaged = polystep(folder, &["prove", "(x+1)*(2)+(3)*(x)"]);
    let said = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert_eq!(damaged.status.code(), Some(2));
    assert!(said.contains("b-both/metrics.json cannot be understood"), "{said}");
}

/// What the repository carries, on the paper's own kind of expression.
#[test]
fn the_bundled_models_prove() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let folders: Vec<PathBuf> = std::fs::read_dir(&models)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("config.toml").exists())
        .collect();
    assert!(folders.len() >= 2, "{folders:?}");
    let size: u64 = folders.iter().map(|f| std::fs::metadata(f.join("model.safetensors")).unwrap().len()).sum();
    assert!(size <= 64_000_000, "{size} bytes");
    for (expression, setting) in [
        ("(3*x1^2+5*x1^1)*(2*x1^1)+(4*x1^1+7)*(x1^1+9)", "plain"),
        ("(2*x2^2)*(3*x2^1+4)+(5*x1^2+x1^1*x2^1)*(3*x1^1)*(2)", "plain"),
        ("(3*x1^2+5*x1^1)*(2*x1^1)+(4*x1^1+7)*(x1^1+9)", "calculator"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polystep"));
        let output = command.env("POLYSTEP_MODELS", &models).args(["prove", expression, "--setting", setting]).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(text.contains(" by the model, 0 by beams, 0 exact\n"), "{setting}, {expression}:\n{text}");
        // A calculator leaves coefficients open; both what it wrote and what that comes to is shown.
        let open = text.contains("]*x1") && text.contains("\n                = ");
        assert_eq!(open, setting == "calculator", "{text}");
    }
}

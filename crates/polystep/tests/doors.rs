//! Spaces, data and weights of one's own, from the command line.

mod sandbox;

use std::io::Write;
use std::process::Stdio;

use sandbox::{ALONE, Sandbox, TINY, failed, succeeded};

const LONG: &str = "[space]\nkey = \"long\"\nbase = \"small_coeff\"\nmin.products = 4\n";

fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &ALONE].concat()
}

/// A command that reads a text.
fn fed(sandbox: &Sandbox, args: &[&str], text: &str) -> std::process::Output {
    let mut child = sandbox.command(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_space_of_ones_own_tests_a_model_and_the_guard_is_told() {
    let sandbox = Sandbox::new();
    sandbox.trained("run");
    sandbox.write("long.toml", LONG);
    let quick = ["--no-beam", "--proofs", "3"];
    let eval = |on: &str| sandbox.run(&[&with(&["eval", "run", "--on", on])[..], &quick].concat());
    let output = eval("small_coeff:1,long.toml:1");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    succeeded(output);
    assert!(
        said.contains("Training was not guarded against long:1") && !said.contains("against small_coeff"),
        "{said}"
    );
    let metrics = sandbox.json("run/metrics.json");
    let evaluations = metrics["evaluations"].as_array().unwrap();
    assert_eq!(evaluations[0].get("unguarded"), None);
    assert_eq!((&evaluations[1]["config"], &evaluations[1]["unguarded"]), (&"long".into(), &true.into()));
    assert!(evaluations[1]["space"].as_str().unwrap().contains("products 4 4"));
    // The page repeats it.
    sandbox.ok(&["report", "run"]);
    assert!(sandbox.text("run/report.html").contains("Training was not guarded against long:1"));
    // Another space under the same key is not mixed up with it.
    sandbox.write("long.toml", &LONG.replace('4', "5"));
    let said = failed(eval("long.toml:1"), 2);
    assert!(said.contains("was evaluated on another space under the key long"), "{said}");

    // A run that is guarded against the set says nothing, and knows the space by its key.
    sandbox.ok(&with(&["train", "tiny.toml", "--out", "guarded", "--set", "data.guard=[\"long.toml:1\"]"]));
    std::fs::remove_file(sandbox.path("long.toml")).unwrap();
    let output = sandbox.run(&[&with(&["eval", "guarded", "--on", "long:1"])[..], &quick].concat());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("not guarded"), "{output:?}");
    succeeded(output);
}

/// The long sets lie beside the others, and only a run that was trained under `long` is sure not to have met them.
#[test]
fn long_sets_are_kept_apart_and_the_guard_is_told() {
    let sandbox = Sandbox::new();
    sandbox.trained("run");
    let quick = ["--no-beam", "--proofs", "3"];
    let eval = |run: &str, more: &[&str]| {
        let output = sandbox.run(&[&with(&["eval", run])[..], &quick, more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (succeeded(output), said)
    };
    let (_, said) = eval("run", &[]);
    assert!(!said.contains("not guarded"), "{said}");
    let (shown, said) = eval("run", &["--long"]);
    assert!(shown.contains("(long test set)"), "{shown}");
    assert!(said.contains("Training was not guarded against the long set of small_coeff:1"), "{said}");
    let metrics = sandbox.json("run/metrics.json");
    let proofs = |kind: &str| metrics[kind][0]["greedy"]["full_proof"]["exact"]["of"].clone();
    assert_eq!((proofs("evaluations"), proofs("long")), (3.into(), 3.into()));
    assert_eq!((metrics["evaluations"][0].get("long"), &metrics["long"][0]["long"]), (None, &true.into()));
    let of = |set: &str| sandbox.text(&format!("run/predictions/{set}/recursive.jsonl"));
    assert_eq!(of("small_coeff-1-long"), of("small_coeff-1"), "a long set begins with the short one");

    sandbox.ok(&with(&["train", "tiny.toml", "--out", "long", "--set", "data.guard=long"]));
    assert!(sandbox.text("long/config.toml").contains("guard = \"long\""));
    let (_, said) = eval("long", &["--long"]);
    assert!(!said.contains("not guarded"), "{said}");
    // The paper's guard knows the run's own sets only.
    sandbox.ok(&with(&["train", "tiny.toml", "--out", "own", "--set", "data.guard=own"]));
    let (_, said) = eval("own", &["--on", "small_coeff:1,small_coeff:2"]);
    assert!(said.contains("not guarded against small_coeff:2") && !said.contains("against small_coeff:1"), "{said}");
    // Weights may not promise what they did not keep.
    let args = ["train", "tiny.toml", "--init", "own", "--out", "more"];
    let said = failed(sandbox.run(&with(&args)), 2);
    assert!(
        said.contains("own was trained under data.guard = \"own\" and may have met sets that \"all\" keeps away"),
        "{said}"
    );
}

#[test]
fn training_on_a_file_is_resumed_bit_for_bit() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.toml", TINY);
    sandbox.ok(&["generate", "--config", "small_coeff", "--proofs", "200", "--out", "mine.jsonl"]);
    let train = |out: &str, steps: &str| {
        sandbox.run(&with(&["train", "tiny.toml", "--data", "mine.jsonl", "--out", out, "--max-steps", steps]))
    };
    let output = train("whole", "6");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    succeeded(output);
    assert!(said.contains("200 records in 1 file") && said.contains("0 belong to an evaluation set"), "{said}");
    // Stopped by its budget, then continued to the end of a larger one.
    let constant = ["--set", "train.schedule=constant", "--set", "train.checkpoint_steps=2"];
    let run = |args: &[&str]| sandbox.ok(&[&with(args)[..]].concat());
    let file = ["train", "tiny.toml", "--data", "mine.jsonl", "--max-steps", "6", "--out"];
    run(&[&file[..], &["a"], &constant].concat());
    let mut child = sandbox.command(&with(&[&file[..], &["b"], &constant].concat())).spawn().unwrap();
    let first = sandbox.path("b/checkpoints/step-000000002.safetensors");
    sandbox::wait_until(&mut child, "a checkpoint", || first.exists() || sandbox.path("b/metrics.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    if !sandbox.path("b/metrics.json").exists() {
        run(&["train", "--resume", "--out", "b"]);
    }
    let weights = |run: &str| std::fs::read(sandbox.path(run).join("model.safetensors")).unwrap();
    assert!(weights("a") == weights("b"));
    // Data that is not the same any more.
    std::fs::remove_file(sandbox.path("b/metrics.json")).unwrap();
    sandbox.ok(&["generate", "--config", "small_coeff", "--proofs", "201", "--out", "mine.jsonl"]);
    let said = sandbox.refused(&with(&["train", "--resume", "--out", "b"]));
    assert!(said.contains("its data is not the data of data.file"), "{said}");
    sandbox.write("bad.jsonl", "{\"input\":\"(x1)+(2)\",\"target\":\"x1+2\"}\n{\"input\":\"(x1)+(2)\"}\n");
    let said = sandbox.refused(&with(&["train", "tiny.toml", "--data", "bad.jsonl", "--out", "bad"]));
    assert!(said.contains("bad.jsonl line 2: it has neither `input` and `target` nor `steps`"), "{said}");
    assert!(!sandbox.path("bad").exists());
}

#[test]
fn a_run_starts_from_weights_goes_on_and_is_looked_at_on_its_way() {
    let sandbox = Sandbox::new();
    sandbox.trained("run");
    sandbox.ok(&["export", "run", "--out", "exported"]);
    let config = sandbox.json("exported/config.json");
    assert_eq!(config["polystep"]["data"]["config"], "small_coeff");
    // The exported folder is a model like any other, and the same one.
    let question = "{\"id\":7,\"input\":\"(2)*(x1)+(3)\"}\n\"(1)+(2)\"\n";
    let answer =
        |model: &str, decode: &str| succeeded(fed(&sandbox, &with(&["answer", model, "--decode", decode]), question));
    for decode in ["greedy", "beam", "recursive", "checked"] {
        assert_eq!(answer("run", decode), answer("exported", decode));
    }
    let lines: Vec<serde_json::Value> =
        answer("run", "checked").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["id"]), (2, &7.into()));
    let last = lines[0]["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(last["output"], "2*x1+3");
    let said = failed(fed(&sandbox, &with(&["answer", "run"]), "\"(1)+(2)\"\n{\"input\":\"(y)\"}\n"), 2);
    assert!(said.contains("standard input line 2: not in the vocabulary"), "{said}");

    // From its weights: the shape comes with them.
    let tuned =
        ["train", "--config", "small_coeff", "--init", "exported", "--max-steps", "2", "--set", "train.batch=4"];
    sandbox.ok(&with(&[&tuned[..], &["--set", "train.valid_proofs=2", "--out", "tuned"]].concat()));
    assert!(
        sandbox.text("tuned/config.toml").contains("d = 64")
            && sandbox.text("tuned/config.toml").contains("init = \"exported\"")
    );
    let said = sandbox.refused(&with(&[&tuned[..], &["--set", "model.d=128", "--out", "other"]].concat()));
    assert!(said.contains("its model has another shape than [model]"), "{said}");
    assert!(!sandbox.path("other").exists());

    // The same run, longer: a new run with the old curves and the old test.
    let before = sandbox.text("run/metrics.json");
    sandbox.ok(&with(&["train", "--init", "run", "--more", "20", "--out", "more"]));
    let (old, new) = (sandbox.json("run/metrics.json"), sandbox.json("more/metrics.json"));
    assert_eq!(sandbox.text("run/metrics.json"), before);
    assert_eq!(new["examples"].as_u64().unwrap(), old["examples"].as_u64().unwrap() + 20);
    assert!(sandbox.text("more/metrics.jsonl").starts_with(&sandbox.text("run/metrics.jsonl")));
    assert!(sandbox.text("more/config.toml").contains("continues = \"run\""));
    let said = sandbox.refused(&with(&["train", "--init", "exported", "--more", "20", "--out", "never"]));
    assert!(said.contains("holds no run") || said.contains("not finished"), "{said}");

    // A run without its weights is a run on its way.
    std::fs::remove_file(sandbox.path("more/model.safetensors")).unwrap();
    std::fs::remove_file(sandbox.path("more/metrics.json")).unwrap();
    let look = with(&["eval", "more", "--no-beam", "--proofs", "2"]);
    let output = sandbox.run(&[&look[..], &["--checkpoint", "last"]].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("the weights after step 8"), "{output:?}");
    succeeded(output);
    assert!(!sandbox.path("more/metrics.json").exists(), "it is not finished");
    let said = sandbox.refused(&[&look[..], &["--checkpoint", "best"]].concat());
    assert!(said.contains("keeps no best weights"), "{said}");
}

#[test]
fn a_table_of_ones_own_is_a_campaign() {
    let sandbox = Sandbox::new();
    sandbox.write("long.toml", LONG);
    sandbox.write(
        "mine.toml",
        "[table]\nname = \"length\"\n[own]\ntests = [\"small_coeff:1\", \"long.toml:1\"]\n\
         [[own.run]]\nname = \"plain\"\nconfig = \"small_coeff\"\n\
         [[own.run]]\nname = \"prefix\"\nconfig = \"long.toml\"\nset = { data.notation = \"prefix\" }\n\
         [fast]\nmodel = { d = 64, layers = 1, heads = 4, ffn = 64 }\n\
         train = { batch = 4, steps = 2, valid_proofs = 2 }\n[evaluation]\nproofs = 2\n",
    );
    let make = ["reproduce", "--plan", "mine.toml"];
    let dry = sandbox.ok(&with(&[&make[..], &["--dry-run"]].concat()));
    assert!(dry.contains("length-plain") && dry.contains("length-prefix"), "{dry}");
    let printed = sandbox.ok(&with(&[&make[..], &["--plots", "plots", "--page", "page.html"]].concat()));
    assert!(printed.contains("length") && printed.contains("4 of 4 rows"), "{printed}");
    let ledger = sandbox.text("results/length.csv");
    assert!(ledger.starts_with("run,train_config,train_vars,setting,"), "{ledger}");
    assert_eq!(ledger.lines().count(), 5, "{ledger}");
    assert!(ledger.contains("\nprefix,long,1,plain,coarse,prefix,,small_coeff,1,fast,"), "{ledger}");
    assert!(sandbox.path("plots/length.svg").exists() && sandbox.text("page.html").contains("length-prefix"));
    // Guarded against its own sets, so nothing is to be said of them.
    assert!(!sandbox.text("page.html").contains("not guarded"));
    // Nothing is done twice.
    let again = sandbox.ok(&with(&[&make[..], &["--dry-run"]].concat()));
    assert!(!again.contains("length-plain"), "{again}");
    sandbox.write("wrong.toml", "[table]\nname = \"length\"\n[own]\ntests = [\"large_coeff:1\"]\nrun = []\n");
    assert!(sandbox.refused(&["reproduce", "--plan", "wrong.toml"]).contains("it needs a [[own.run]]"));
}

//! What the command line does where a machine, a file or a person is against it: no panic, no loss, one sentence.

mod sandbox;

use sandbox::{ALONE, Sandbox, failed, signalled, succeeded, wait_until};

const ESCAPE: char = '\u{1b}';

/// A stack that no machine has stands in for a limit on threads.
#[test]
fn threads_that_cannot_start_are_a_sentence() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.toml", sandbox::TINY);
    sandbox.write("grid.toml", "[grid]\n\"train.lr\" = [1e-3, 2e-3]\n");
    sandbox.write("proofs.jsonl", &sandbox.ok(&["generate", "--proofs", "2"]));
    for command in [
        "check proofs.jsonl",
        "train tiny.toml --out run --device cpu",
        "sweep grid.toml --out grid --device cpu",
        "reproduce --table var1error --rows 1 --device cpu",
        "doctor",
        "eval nowhere",
        "generate --proofs 2",
        "bench generate --proofs 2 --threads 2",
    ] {
        let mut command = sandbox.command(&command.split(' ').collect::<Vec<_>>());
        let said = failed(command.env("RUST_MIN_STACK", (1u64 << 46).to_string()).output().unwrap(), 1);
        assert!(said.starts_with("error: cannot ") && said.lines().count() == 1, "{command:?}: {said}");
    }
}

#[test]
fn numbers_that_no_machine_can_serve_are_refused() {
    let sandbox = Sandbox::new();
    let refused = |args: &str| sandbox.refused(&args.split(' ').collect::<Vec<_>>());
    assert!(refused("generate --threads 100000").contains("on this machine it is at most "));
    assert!(refused("reproduce --all --dry-run --seeds 1000000000").contains("1000000000 is not in 1..=1000"));
    for command in ["train", "sweep x.toml", "reproduce --all", "quickstart"] {
        assert!(
            refused(&format!("{command} --minutes 1e300")).contains("longer than any clock can count"),
            "{command}"
        );
        assert!(refused(&format!("{command} --minutes=-1")).contains("it must be positive"), "{command}");
    }
    let deep = vec!["a"; 50_000].join(".");
    assert!(sandbox.refused(&["train", "--set", &format!("{deep}=1")]).contains("as in model.layers=6"));
    sandbox.write("deep.toml", &format!("[grid]\n\"{deep}\" = [1, 2]\n"));
    let said = refused("sweep deep.toml --list");
    assert!(said.contains("as in model.layers=6") && said.len() < 4000, "{} bytes", said.len());
}

/// A run that cannot fit is refused before it starts, and leaves nothing.
#[test]
fn a_batch_that_is_too_large_for_the_memory_is_a_sentence() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_polystep");
    let script = format!("ulimit -v 3000000; exec {program} train --device cpu --out run --set train.batch=65536");
    let mut command = std::process::Command::new("bash");
    let said = failed(command.args(["-c", &script]).current_dir(sandbox.folder.path()).output().unwrap(), 1);
    assert!(said.starts_with("error: out of memory on the device (") && said.contains("smaller train.batch"), "{said}");
    assert_eq!(sandbox.entries("."), [""; 0]);
}

/// Nothing that a file or an argument holds may drive the terminal.
#[test]
fn control_characters_are_shown_not_sent() {
    let sandbox = Sandbox::new();
    let proof = sandbox.ok(&["generate", "--proofs", "1"]);
    let id = serde_json::from_str::<serde_json::Value>(&proof).unwrap()["id"].as_str().unwrap().to_owned();
    sandbox.write("proof.jsonl", &proof.replace(&id, "\\u001b[31mred").replacen("\"target\":\"", "\"target\":\"9", 1));
    let checked = sandbox.run(&["check", "proof.jsonl"]);
    assert_eq!(checked.status.code(), Some(1));
    let shown = String::from_utf8(checked.stdout).unwrap();
    assert!(shown.contains("line 1, \\u{1b}[31mred") && !shown.contains(ESCAPE), "{shown}");
    sandbox.write("space.toml", "[space]\nbogus = \"\u{1b}[31m\"\n");
    for args in [
        &["check", "\u{1b}[31m.jsonl"][..],
        &["generate", "--config", "\u{1b}[31m"],
        &["generate", "--config", "space.toml"],
        &["generate", "--\u{1b}[31m"],
        &["prove", "x+\u{1b}[31m"],
    ] {
        let said = sandbox.refused(args);
        assert!(said.contains("[31m") && !said.contains(ESCAPE), "{said}");
    }
}

#[test]
fn a_long_line_is_not_echoed() {
    let sandbox = Sandbox::new();
    sandbox.write("space.toml", &format!("[space]\nbase = \"medium_coeff\"\nbogus = \"{}\"\n", "a".repeat(540_000)));
    let said = sandbox.refused(&["generate", "--config", "space.toml"]);
    assert!(said.contains("line 3: unknown field `bogus`") && said.len() < 2000, "{} bytes", said.len());
}

#[test]
fn an_export_overwrites_nothing_and_leaves_no_half() {
    let sandbox = Sandbox::new();
    sandbox.trained("run");
    sandbox.ok(&[&["eval", "run", "--no-beam", "--proofs", "1"][..], &ALONE].concat());
    std::fs::create_dir(sandbox.path("mine")).unwrap();
    sandbox.write("mine/README.md", "mine");
    let before = sandbox.entries(".");
    for flags in [&["--out", "mine"][..], &["--out", ".", "--compact"], &["--out", "."]] {
        assert!(sandbox.refused(&[&["export", "run"], flags].concat()).contains("choose another name"));
    }
    // A limit on the size of files stands in for the full disk.
    for flags in ["--compact", ""] {
        let program = env!("CARGO_BIN_EXE_polystep");
        let script = format!("trap '' XFSZ; ulimit -f 16; exec {program} export run {flags} --out full");
        let mut command = std::process::Command::new("bash");
        let said = failed(command.args(["-c", &script]).current_dir(sandbox.folder.path()).output().unwrap(), 1);
        assert!(said.starts_with("error: cannot write"), "{said}");
    }
    assert_eq!(sandbox.text("mine/README.md"), "mine");
    assert_eq!(sandbox.entries("."), before);
}

#[test]
fn quickstart_stops_at_the_first_signal_and_keeps_what_it_did_not_make() {
    let sandbox = Sandbox::new();
    let quickstart = ["quickstart", "--examples", "100000", "--threads", "1", "--out", "run"];
    let mut child = sandbox.command(&quickstart).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    let output = signalled(child, "-TERM");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!sandbox.path("run/metrics.json").exists());

    let mut child = sandbox.command(&quickstart).spawn().unwrap();
    wait_until(&mut child, "training", || sandbox.path("run/config.toml").exists());
    assert_eq!(signalled(child, "-INT").status.code(), Some(130));
    sandbox.write("run/checkpoints/notes.txt", "mine");
    let said = sandbox.refused(&quickstart);
    assert!(said.contains("run holds a file that no quickstart makes, checkpoints/notes.txt"), "{said}");
    assert_eq!(sandbox.text("run/checkpoints/notes.txt"), "mine");
    // Without it the folder is nothing but a quickstart's, and is replaced.
    std::fs::remove_file(sandbox.path("run/checkpoints/notes.txt")).unwrap();
    let mut child = sandbox.command(&quickstart).spawn().unwrap();
    wait_until(&mut child, "the replacement", || !sandbox.path("run").exists());
    assert_eq!(signalled(child, "-INT").status.code(), Some(130));
}

#[test]
fn a_signal_ends_an_evaluation_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.trained("run");
    for signal in ["-TERM", "-INT", "-HUP"] {
        let mut child = sandbox.command(&[&["eval", "run"][..], &ALONE].concat()).spawn().unwrap();
        let predictions = sandbox.path("run/predictions");
        wait_until(&mut child, "an answer", || predictions.read_dir().is_ok_and(|mut e| e.next().is_some()));
        let output = signalled(child, signal);
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert_eq!(sandbox.entries("run/predictions"), [""; 0]);
        assert!(sandbox.json("run/metrics.json")["evaluations"].as_array().is_none_or(Vec::is_empty));
    }
}

/// Neither of two evaluations at a time may lose what the other one measured.
#[test]
fn evaluations_at_the_same_time_keep_each_other() {
    let sandbox = Sandbox::new();
    sandbox.trained("run");
    let sets = ["small_coeff:1", "medium_coeff:1", "large_coeff:1", "medium_degree:1"];
    let eval = |set| {
        let args = ["eval", "run", "--no-beam", "--proofs", "20", "--on", set];
        sandbox.command(&[&args[..], &ALONE].concat()).spawn().unwrap()
    };
    for child in sets.map(eval) {
        succeeded(child.wait_with_output().unwrap());
    }
    let metrics = sandbox.json("run/metrics.json");
    let measured = metrics["evaluations"].as_array().unwrap().iter();
    let mut measured: Vec<String> =
        measured.map(|e| format!("{}:{}", e["config"].as_str().unwrap(), e["vars"])).collect();
    measured.sort();
    assert_eq!(measured, ["large_coeff:1", "medium_coeff:1", "medium_degree:1", "small_coeff:1"]);
    assert_eq!(sandbox.entries("run/predictions").len(), 4);
}

/// The memory of a proof grows with its start and its steps, not with their product: without that, each of these takes
/// gigabytes.
#[test]
fn a_long_start_takes_modest_memory() {
    let sandbox = Sandbox::new();
    let sum = |products: usize| vec!["(x1^1)"; products].join("+");
    let record = |products: usize, granularity: &str| {
        serde_json::json!({
            "id": "long", "seed": 0, "index": 0, "config": "typed", "vars": 1, "setting": "plain",
            "granularity": granularity, "notation": "infix", "start": sum(products), "end": "x1", "steps": [],
        })
    };
    let step = serde_json::json!({
        "proof": "step", "step": 0, "kind": "facstep", "input": sum(4000), "target": "(x1)",
    });
    sandbox.write("long.jsonl", &format!("{}\n{}\n", record(4000, "coarse"), record(4000, "fine")));
    sandbox.write("step.jsonl", &step.to_string());
    let limited = |args: &str| {
        let script = format!("ulimit -v 600000; exec {} {args}", env!("CARGO_BIN_EXE_polystep"));
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script]).current_dir(sandbox.folder.path()).env("RAYON_NUM_THREADS", "2");
        command.output().unwrap()
    };
    let said = limited("check long.jsonl");
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    let said = String::from_utf8(said.stdout).unwrap();
    for missing in [4001, 7999] {
        assert!(said.contains(&format!("{missing} more steps lead to the endpoint")), "{said}");
    }
    let said = limited("check step.jsonl");
    assert!(String::from_utf8(said.stdout).unwrap().contains("In the facstep of product 1, "));
    let proof = succeeded(limited(&format!("prove --symbolic --granularity fine '{}' | tail -n 2", sum(2000))));
    assert_eq!(proof, "P3999  2000*x1\n       endpoint, after 2000 facsteps, 1999 sumsteps\n");
}

#[test]
fn what_is_too_long_to_be_checked_is_told() {
    let sandbox = Sandbox::new();
    let mut record: serde_json::Value = serde_json::from_str(&sandbox.ok(&["generate", "--proofs", "1"])).unwrap();
    let mut told = |key: &str, text: String, sentence: &str| {
        let before = std::mem::replace(&mut record[key], text.into());
        sandbox.write("long.jsonl", &record.to_string());
        record[key] = before;
        let output = sandbox.run(&["check", "long.jsonl"]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(sentence), "{said}");
    };
    let products = vec!["(2)"; 4097].join("+");
    told("start", products, "It cannot be checked: the start has 4097 products; that of a record has at most 4096.");
    let tokens = "1".repeat(40_000);
    told("end", tokens, "It cannot be checked: a state has 40000 tokens; the states of a record have at most 32768.");
    // Nine terms to the power of thirteen: the start is short, its endpoint is not.
    let large = vec!["(x1+x2+x3+x4+x5+x6+x7+x8+1)"; 13].join("*");
    told("start", large, "It cannot be checked: a state has more than 65536 terms.");
}

/// A space of one's own under a key of the paper would be printed beside the paper's numbers.
#[test]
fn the_papers_keys_are_reserved() {
    let sandbox = Sandbox::new();
    for key in ["small_coeff", "small_coeff-add", "arithmetic"] {
        sandbox.write("own.toml", &format!("[space]\nbase = \"small_coeff\"\nkey = \"{key}\"\n"));
        for args in [&["generate", "--config", "own.toml"][..], &["train", "own.toml", "--out", "run"]] {
            let said = sandbox.refused(args);
            let sentence = format!("line 3: the key `{key}` is reserved for a space of the paper");
            assert!(said.contains(&sentence) && said.contains("another key"), "{said}");
        }
    }
    let train = ["train", "--out", "run", "--set", "space.key=\"small_coeff\""];
    assert!(sandbox.refused(&train).contains("is reserved for a space of the paper"));
}

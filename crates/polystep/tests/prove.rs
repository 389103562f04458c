//! `polystep prove` by a model cannot mislead: every line says whose it is, and a false endpoint is called that.

mod sandbox;

use std::path::Path;
use std::process::Output;

use sandbox::{ALONE, Sandbox, TINY, failed, succeeded};
use serde_json::Value;

/// The command line with the models that the repository carries.
fn bundled(args: &[&str]) -> Output {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    Sandbox::new().command(&[&["prove"], args].concat()).env("POLYSTEP_MODELS", models).output().unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The expressions that new users typed first. No model learned a single product.
#[test]
fn what_anyone_types_first_is_proved() {
    for (typed, endpoint) in [("(x+1)*(x+2)", "x^2+3*x+2"), ("2*(x+1)", "2*x+2"), ("(x+y)*(x+z)", "x^2+x*y+x*z+y*z")] {
        let text = succeeded(bundled(&[typed]));
        assert!(text.contains("1 product (it learned 2 to 5)"), "{text}");
        assert!(text.contains(&format!("\nendpoint: {endpoint}\n")), "{text}");
        assert!(text.ends_with(" exact\n") && !text.contains('✗'), "{text}");

        // Alone, the model is right or wrong; the exit code says which.
        let output = bundled(&[typed, "--alone"]);
        let (code, text) = (output.status.code(), String::from_utf8(output.stdout).unwrap());
        let last_step = text.lines().rfind(|line| line.contains(['✓', '✗', '~'])).unwrap();
        match code {
            Some(0) => {
                assert!(text.ends_with("\nthe answer is right\n"), "{text}");
                assert!(last_step.ends_with(&format!("✓ {endpoint}")), "{text}");
            }
            Some(1) => {
                assert!(text.ends_with(&format!("\nthe answer is wrong: it should be {endpoint}\n")), "{text}");
                assert!(last_step.contains('✗'), "a false endpoint has no ✓: {text}");
            }
            code => panic!("{code:?}: {text}"),
        }
    }
    let one = String::from_utf8(bundled(&["(x+1)*(x+2)", "--alone"]).stdout).unwrap();
    assert!(one.contains("the same value, written another way") && one.ends_with("the answer is right\n"), "{one}");
}

#[test]
fn people_keep_their_names_and_see_what_was_read() {
    let text = succeeded(bundled(&["(a+2)(3b) + (a)^2 (4)"]));
    assert!(text.contains("\nread as (a+2)*(3*b)+(a)*(a)*(4)\n"), "{text}");
    assert!(text.contains("\nendpoint: 4*a^2+3*a*b+6*b\n") && !text.contains("x1"), "{text}");
    let proof = json(&succeeded(bundled(&["(a+2)(3b) + (a)^2 (4)", "--json"])));
    assert_eq!(proof["names"], serde_json::json!({"x1": "a", "x2": "b"}));
    assert_eq!(proof["endpoint"], "4*x1^2+3*x1*x2+6*x2");
    let latex = succeeded(bundled(&["(a+2)(3b)", "--latex"]));
    assert!(latex.contains("3 a b + 6 b") && !latex.contains("x_{"), "{latex}");
}

/// A model that knows nothing, in each setting: the checker completes its proof, and alone it is wrong.
#[test]
fn a_model_that_errs_is_completed_by_exact_steps() {
    let start = "(x+1)*(2)+(3)*(x)";
    for setting in ["plain", "calculator", "annotated", "endpoint"] {
        let sandbox = Sandbox::new();
        let config = TINY.replace("max_positions = 256", "max_positions = 64");
        sandbox.write("tiny.toml", &config.replacen("[data]\n", &format!("[data]\nsetting = \"{setting}\"\n"), 1));
        sandbox.ok(&[&["train", "tiny.toml", "--out", "run"][..], &ALONE].concat());
        let prove = |args: &[&str]| sandbox.run(&[&["prove", start, "--model", "run"], args, &ALONE].concat());
        let text = succeeded(prove(&[]));
        assert!(text.contains("\nendpoint: 5*x+2\n0 steps by the model, 0 by beams, "), "{setting}: {text}");
        assert!(text.contains("\nexact ") && !text.contains('✓'), "{setting}: {text}");
        let proof = json(&succeeded(prove(&["--json", "--alternatives"])));
        let steps = proof["steps"].as_array().unwrap();
        assert_eq!(proof["steps_by"]["exact"], steps.len(), "{setting}");
        for pair in steps.windows(2) {
            let reached = pair[0].get("next").unwrap_or(&pair[0]["line"]);
            assert_eq!(*reached, pair[1]["input"], "{setting}: the next input is the expected state");
        }
        assert!(steps.iter().all(|s| s["author"] == "exact" && s["probability"].is_null()), "{setting}");
        assert!(proof["right"] == false && proof["stop"] == "end" && proof["endpoint"] == "5*x1+2", "{setting}");

        let alone = prove(&["--alone"]);
        let text = String::from_utf8(alone.stdout.clone()).unwrap();
        assert_eq!(failed(alone, 1), "", "{setting}: the answer is no error");
        assert!(text.ends_with("\nthe answer is wrong: it should be 5*x+2\n"), "{setting}: {text}");
        let output = prove(&["--alone", "--json", "--alternatives"]);
        assert_eq!(output.status.code(), Some(1));
        let proof = json(&String::from_utf8(output.stdout).unwrap());
        assert!(proof["answer_right"] == false && proof["right"] == false, "{setting}");
        if setting == "annotated" {
            let nothing = sandbox.ok(&["prove", "5*x+2", "--model", "run"]);
            assert_eq!(nothing, "endpoint: already in normal form, nothing to prove\n");
        }
    }
}

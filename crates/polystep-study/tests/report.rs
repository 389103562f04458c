//! The page shows the numbers of metrics.json, needs nothing but itself, and says what a run does not have.

mod fixture;
mod markup;

use std::fs;
use std::path::Path;

use fixture::Fake;
use polystep_core::Setting;
use polystep_record::{Decoding, Proportion};
use polystep_study::report;
use polystep_study::{Metrics, StoredRun};
use serde_json::Value;

/// The page, with slashes as a browser reads them.
fn html(runs: &[StoredRun]) -> String {
    report::html(runs).unwrap().replace("&#x2f;", "/")
}

/// The texts that carry a pointer, with it.
fn shown(page: &str) -> Vec<(&str, &str)> {
    page.split("data-metric=\"")
        .skip(1)
        .map(|rest| {
            let (pointer, rest) = rest.split_once("\">").unwrap();
            (pointer, rest.split_once('<').unwrap().0)
        })
        .collect()
}

/// Each number on the page is the number at its pointer, to the decimals that are shown.
fn numbers_are_those_of(page: &str, documents: &[Value]) -> usize {
    let shown = shown(page);
    for (pointer, text) in &shown {
        let (run, pointer) = pointer.split_once('/').unwrap();
        let document = &documents[run.parse::<usize>().unwrap()];
        let value = document.pointer(&format!("/{pointer}")).and_then(Value::as_f64);
        let value = value.unwrap_or_else(|| panic!("{pointer} is on the page but not in metrics.json"));
        let decimals = text.split_once('.').map_or(0, |(_, d)| d.len());
        assert_eq!(*text, format!("{value:.decimals$}"), "{pointer}");
    }
    shown.len()
}

fn metrics(run: &StoredRun) -> Value {
    serde_json::from_str(&fs::read_to_string(run.folder.metrics()).unwrap()).unwrap()
}

fn is_well_formed(page: &str) {
    markup::is_well_formed(page.split_once("<body>").unwrap().1.split_once("<script>").unwrap().0);
}

fn needs_nothing(page: &str) {
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for word in ["http://", "https://", " src=", "<link", "@import", "url("] {
        assert!(!without_names.contains(word), "{word}");
    }
}

#[test]
fn the_numbers_are_those_of_metrics_json() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { also: &["large_coeff"], ..Fake::default() }.write(&folder.path().join("a"));
    let page = html(std::slice::from_ref(&run));
    assert!(numbers_are_those_of(&page, &[metrics(&run)]) > 50);
    is_well_formed(&page);
    needs_nothing(&page);
    // The paper's numbers of this very experiment, as printed.
    for printed in ["paper <b>92.8</b>", "<td>94.75</td>", "<td class=\"printed\">95.83</td>"] {
        assert!(page.contains(printed), "{printed}");
    }
    // A page that shows other numbers is found out.
    let full = run.metrics.unwrap().evaluations[0].greedy.as_ref().unwrap().full_proof.exact.percent;
    let forged = page.replace(&format!(">{full:.2}<"), ">99.99<");
    assert!(
        std::panic::catch_unwind(|| numbers_are_those_of(
            &forged,
            &[metrics(&StoredRun::open(&folder.path().join("a")).unwrap())]
        ))
        .is_err()
    );
}

#[test]
fn several_runs_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let base = Fake::default();
    let runs = [
        base.write(&folder.path().join("first")),
        Fake { seed: 2, ..base.clone() }.write(&folder.path().join("second")),
        Fake { granularity: "fine", clumsiness: 0.2, ..base }.write(&folder.path().join("fine")),
    ];
    let page = html(&runs);
    let documents: Vec<Value> = runs.iter().map(metrics).collect();
    assert!(numbers_are_those_of(&page, &documents) > 100);
    is_well_formed(&page);
    for text in [
        "data.granularity",
        "first, second differ in their seeds only.",
        "that only fine solves",
        "McNemar",
        "<h2>Who solves what</h2>",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn every_setting_has_its_page() {
    let folder = tempfile::tempdir().unwrap();
    for (setting, notation) in [
        (Setting::Plain, "prefix"),
        (Setting::Calculator, "infix"),
        (Setting::Calculator, "prefix"),
        (Setting::Annotated, "infix"),
        (Setting::Endpoint, "infix"),
        (Setting::Arithmetic, "infix"),
        (Setting::Arithmetic, "prefix"),
    ] {
        let name = format!("{setting}-{notation}");
        // One-shot models write short lines, on which the made-up one seldom errs.
        let arithmetic = setting == Setting::Arithmetic;
        let clumsiness = match setting {
            Setting::Arithmetic => 1000.0,
            Setting::Endpoint => 100.0,
            _ => 3.0,
        };
        let config = if arithmetic { "arithmetic" } else { "medium_coeff" };
        let fake = Fake { config, setting, notation, clumsiness, proofs: 60, ..Fake::default() };
        let run = fake.write(&folder.path().join(&name));
        let page = html(std::slice::from_ref(&run));
        numbers_are_those_of(&page, &[metrics(&run)]);
        is_well_formed(&page);
        // Every kind that occurs has its share of the errors, also where the paper has no such column.
        let kinds = page.matches("<td class=\"share\"><span class=\"track\">").count();
        assert!(kinds >= 2 && kinds == page.matches("<td class=\"share\">").count(), "{name}: {kinds}");
        let failures = page.matches("<p class=\"sentence\">").count();
        assert!(failures > 5, "{name}: {failures}");
        // The checker understood what it was given.
        for complaint in ["The input itself", "The target itself", "Right: this is"] {
            assert!(!page.contains(complaint), "{name}: {complaint}");
        }
        let markstep = page.contains("<th scope=\"row\">markstep</th>");
        assert_eq!(markstep, setting == Setting::Annotated, "{name}");
        assert_eq!(page.contains("Endpoint right"), setting == Setting::Endpoint, "{name}");
        assert_eq!(page.contains("brackets exact"), setting == Setting::Calculator, "{name}");
        assert_eq!(page.contains("9-digit products right"), arithmetic, "{name}");
        assert_eq!(page.contains("paper <b>&lt;1</b>"), arithmetic, "{name}");
    }
}

#[test]
fn trained_and_tested_are_a_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let base = Fake { notation: "prefix", proofs: 60, ..Fake::default() };
    let runs = [
        Fake { config: "small_coeff", also: &["large_coeff"], ..base.clone() }.write(&folder.path().join("small")),
        Fake { config: "large_coeff", also: &["small_coeff"], ..base }.write(&folder.path().join("large")),
    ];
    let page = html(&runs);
    numbers_are_those_of(&page, &runs.iter().map(metrics).collect::<Vec<_>>());
    is_well_formed(&page);
    let section = page.split_once("id=\"matrix\"").unwrap().1.split_once("</section>").unwrap().0;
    assert_eq!(shown(section).len(), 8, "two runs, two sets, two measures");
    for text in ["small: small_coeff, 1 var", "<td>31</td>", "<td>68.02</td>"] {
        assert!(section.contains(text), "{text}");
    }
    let files = report::write(&runs, &folder.path().join("both.html")).unwrap();
    let read = |i: usize| fs::read_to_string(&files[i]).unwrap();
    assert!(read(1).contains("| trained on | small_coeff, 1 var | large_coeff, 1 var |"));
    assert!(read(2).contains("trained on & small\\_coeff, 1 var & large\\_coeff, 1 var"));
    assert_eq!((files[3].file_name().unwrap(), read(3).lines().count()), ("both.csv".as_ref(), 5));
    assert!(!html(&runs[..1]).contains("id=\"compare\""), "one run on two sets has a matrix and nothing to compare");
    assert!(html(&runs[..1]).contains("id=\"matrix\""));
}

fn page_of(folder: &Path) -> String {
    let page = html(&[StoredRun::open(folder).unwrap()]);
    is_well_formed(&page);
    page
}

#[test]
fn what_a_run_does_not_have_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    Fake::default().write(&run);
    let complete = page_of(&run);
    assert!(!complete.contains("class=\"absent\""));

    fs::remove_dir_all(run.join("predictions")).unwrap();
    assert!(
        page_of(&run).contains("There are no predictions in predictions/medium_coeff-1, so failures cannot be listed.")
    );

    fs::remove_file(run.join("metrics.jsonl")).unwrap();
    assert!(page_of(&run).contains("There is no log of the training, so there are no learning curves."));

    // An evaluation without beam search and recursion.
    let path = run.join("metrics.json");
    let mut metrics: Metrics = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let evaluation = &mut metrics.evaluations[0];
    (evaluation.beam, evaluation.beam_lp1, evaluation.recursive) = (None, None, None);
    fs::write(&path, serde_json::to_string(&metrics).unwrap()).unwrap();
    let page = page_of(&run);
    assert!(page.contains("There is no beam search with probabilities in this evaluation"));
    assert!(page.contains("There are no recursive proofs in this evaluation."));

    metrics.evaluations[0].greedy = None;
    fs::write(&path, serde_json::to_string(&metrics).unwrap()).unwrap();
    assert!(page_of(&run).contains("There is no greedy evaluation of this run"));

    fs::remove_file(&path).unwrap();
    assert!(page_of(&run).contains("This run has not been evaluated"));

    fs::write(&path, "{}").unwrap();
    fs::remove_file(run.join("config.toml")).unwrap();
    assert!(page_of(&run).contains("There is no config.toml in this run."));
}

#[test]
fn damaged_predictions_do_not_break_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    Fake::default().write(&run);
    fs::write(run.join("predictions/medium_coeff-1/greedy.jsonl"), "{\"proof\":\"a\"}\n").unwrap();
    assert!(page_of(&run).contains("greedy.jsonl line 1: missing field `step`"));
}

/// A finished training run that `polystep eval` has not seen: its metrics.json has training's own test only.
#[test]
fn training_alone_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let share = |n: u64| {
        let Proportion { lo, hi, .. } = Proportion::new(n, 1000).unwrap();
        serde_json::json!({"right": n, "total": 1000, "share": n as f64 / 1000.0, "lo": lo / 100.0, "hi": hi / 100.0})
    };
    let document = serde_json::json!({
        "version": "0.1.0", "commit": "abc", "device": "cpu", "recipe": "fast", "seed": 7, "parameters": 1000, "steps": 10,
        "examples": 2560, "seconds": 1.5, "test": {"full_proof": share(972), "stepwise": share(991)}
    });
    fs::write(folder.path().join("metrics.json"), document.to_string()).unwrap();
    assert!(page_of(folder.path()).contains("97.20 % of 1000 proofs and 99.10 % of 1000 steps are exact."));
    // Adding an evaluation keeps what stands there, once.
    let metrics: Metrics = serde_json::from_value(document).unwrap();
    let again = serde_json::to_string(&metrics).unwrap();
    assert_eq!((again.matches("\"seed\"").count(), again.matches("\"test\"").count()), (1, 1));
    assert!(again.contains("\"steps\":10"));
}

/// Three looks at C: first add, then mul3, then mixed gets the larger part of the examples.
#[test]
fn a_curriculum_has_its_section() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    Fake::default().write(&path);
    assert!(!page_of(&path).contains("<h2>Curriculum</h2>"));
    let task = |task: &str, after: &[&str], accuracy: f64, examples: u64| {
        serde_json::json!({"task": task, "after": after, "accuracy": accuracy, "mastering": accuracy, "progress": 0.0,
            "attention": 0.1, "share": 0.9, "examples": examples})
    };
    let look = |step: u64, add: (f64, u64), mul3: (f64, u64), mixed: (f64, u64)| {
        let tasks = [
            task("add", &[], add.0, add.1),
            task("mul3", &["add"], mul3.0, mul3.1),
            task("mixed", &["mul3", "add"], mixed.0, mixed.1),
        ];
        serde_json::json!({"kind": "curriculum", "step": step, "examples": 10 * step, "tasks": tasks, "seconds": 1.0})
            .to_string()
            + "\n"
    };
    let looks = look(100, (0.5, 900), (0.1, 50), (0.0, 50))
        + &look(200, (0.9, 1000), (0.5, 900), (0.1, 100))
        + &look(300, (1.0, 1000), (0.75, 1000), (0.25, 1000));
    fs::write(path.join("metrics.jsonl"), looks).unwrap();
    let page = page_of(&path);
    needs_nothing(&page);
    for text in [
        "<h2>Curriculum</h2>",
        "The tasks add, mul3, mixed; add before mul3, mul3 before mixed, add before mixed.",
        "<title>mul3: 75 % mastered</title>",
        "Shares of the 3000 training examples; over the whole run add 33.3 %, mul3 33.3 %, mixed 33.3 %",
        "Of 100 fresh single steps of each task, teacher-forced, at the end add 100 %, mul3 75 %, mixed 25 % are right",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Two edges to the next column and one that passes a box; three bands of shares.
    assert_eq!((page.matches("class=\"edge\"").count(), page.matches("<path class=\"band s").count()), (3, 3));
    assert!(!page.contains("NaN"));
    let markdown = report::markdown(&[StoredRun::open(&path).unwrap()]);
    assert!(markdown.contains("| mixed | mul3, add | 25.0 | 25.0 | 1000 | 33.3 % |"), "{markdown}");
}

#[test]
fn text_from_a_model_is_never_markup() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    Fake::default().write(&run);
    let path = run.join("predictions/medium_coeff-1/greedy.jsonl");
    let line = r#"{"proof":"<b>p","step":0,"kind":"sumstep","input":"(1)+(2)","target":"3","beams":[{"output":"<script>alert(1)</script>","logprob":-1.0}]}"#;
    fs::write(path, line).unwrap();
    let page = page_of(&run);
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
    assert!(!page.contains("<b>p"));
}

#[test]
fn the_tables_for_other_documents() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(&folder.path().join("plain_coarse"));
    let out = folder.path().join("report.html");
    let files = report::write(&[run], &out).unwrap();
    let read = |i: usize| fs::read_to_string(&files[i]).unwrap();
    insta::assert_snapshot!("markdown", read(1));
    insta::assert_snapshot!("latex", read(2));
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".tmp")), "{left:?}");
    let nowhere = report::write(&[], &folder.path().join("no/such/report.html")).unwrap_err().to_string();
    assert!(nowhere.starts_with("cannot write "), "{nowhere}");
}

/// A name may hold anything. Where Markdown is shown as HTML, none of it is markup.
#[test]
fn names_are_never_markup_in_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("<script>alert(1)|[x](y)");
    Fake { proofs: 20, ..Fake::default() }.write(&run);
    let task = r#"{"task":"<img src=x>","after":[],"accuracy":1.0,"mastering":1.0,"examples":10}"#;
    fs::write(
        run.join("metrics.jsonl"),
        format!("{{\"kind\":\"curriculum\",\"step\":1,\"examples\":10,\"tasks\":[{task}]}}\n"),
    )
    .unwrap();
    let files = report::write(&[StoredRun::open(&run).unwrap()], &folder.path().join("report.html")).unwrap();
    let markdown = fs::read_to_string(&files[1]).unwrap();
    assert!(!markdown.contains("<script") && !markdown.contains("<img"), "{markdown}");
    assert!(markdown.contains("| &lt;script>alert(1)\\|\\[x\\](y) |"), "{markdown}");
    assert!(markdown.contains("Curriculum of &lt;script>") && markdown.contains("| &lt;img src=x> |"), "{markdown}");
}

/// Stored verdicts are believed, so that nothing is judged twice; but only those of these very predictions.
#[test]
fn the_page_reads_the_verdicts_that_an_evaluation_stored() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(&folder.path().join("run"));
    let set = run.folder.set(&run.keys.home());
    let without_errors = |page: &str| page.contains("None: every step in");
    assert!(!without_errors(&page_of(run.folder.path())));
    let path = set.verdicts(Decoding::Greedy);
    let verdicts = fs::read_to_string(&path).unwrap();
    let forged = verdicts.replace("same_value", "exact").replace("wrong_value", "exact").replace("malformed", "exact");
    fs::write(&path, &forged).unwrap();
    assert!(without_errors(&page_of(run.folder.path())), "the verdicts are not read");
    let predictions = fs::read_to_string(set.answers(Decoding::Greedy)).unwrap();
    fs::write(set.answers(Decoding::Greedy), predictions + "\n").unwrap();
    assert!(!without_errors(&page_of(run.folder.path())), "the verdicts of other predictions are believed");
}

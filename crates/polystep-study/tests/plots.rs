//! The figures of made-up records: well-formed, small, with the labels that belong there; none of what was not measured.

mod fixture;
mod markup;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fixture::Fake;
use polystep_core::Setting;
use polystep_core::space::KEYS;
use polystep_study::plots;
use polystep_study::records::RunRecords;
use polystep_study::tables::{PaperTable, Recipe, TableView};

/// Rows 3 and 4 of var1coarsefull, with their one-shot model; the former on all of OODcoeff's first three rows.
const RUN: Fake =
    Fake { config: "small_coeff", notation: "prefix", proofs: 60, also: &["medium_coeff"], ..Fake::USUAL };

/// The files of all tables.
fn files(folder: &Path, seeds: u64) -> BTreeMap<String, String> {
    let records = RunRecords::read(folder).unwrap();
    let tables = PaperTable::all();
    let view = |table: &PaperTable| {
        TableView::of(table, &table.rows.iter().collect::<Vec<_>>(), Recipe::Fast, seeds, &records)
    };
    let views: Vec<TableView> = tables.iter().map(view).collect();
    let figures = plots::of_tables(tables.iter().zip(&views), seeds, &records).into_iter();
    let figures: Vec<_> =
        figures.chain(plots::arithmetic(&records)).map(|(name, chart)| (name, chart.file())).collect();
    for (name, svg) in &figures {
        assert!(svg.starts_with("<svg ") && svg.len() < 60_000, "{name}: {} bytes", svg.len());
        assert!(svg.contains("fill=\"#ffffff\"/>") && !svg.contains("NaN") && !svg.contains("var("), "{name}");
        markup::is_well_formed(svg);
    }
    figures.into_iter().collect()
}

fn has(svg: &str, texts: &[&str]) {
    for text in texts {
        assert!(svg.contains(text), "{text} is not in {svg}");
    }
}

#[test]
fn nothing_measured_is_nothing_drawn() {
    let folder = tempfile::tempdir().unwrap();
    assert!(files(folder.path(), 1).is_empty());
    RUN.write(&folder.path().join("a-run-of-no-table"));
    assert!(files(folder.path(), 1).is_empty());
}

#[test]
fn tables_have_numbers_and_curves() {
    let folder = tempfile::tempdir().unwrap();
    let run = RUN.write(&folder.path().join("small_coeff-1-coarse-prefix"));
    Fake { granularity: "fine", also: &[], ..RUN }.write(&folder.path().join("small_coeff-1-fine-prefix"));
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    let all = files(folder.path(), 1);
    assert_eq!(names(&all), ["OOD2var", "OODcoeff", "var1coarsefull", "var1coarsefull-curves"]);

    let home = run.metrics.unwrap().evaluations.remove(0).greedy.unwrap().full_proof.exact.percent;
    let numbers = &all["var1coarsefull"];
    has(numbers, &["small_coeff coarse prefix<", "small_coeff fine prefix<", "ours, tested<", "2 of 24 rows measured"]);
    has(numbers, &[&format!(">{home:.1} / 95.3<"), "the paper's count of examples<"]);
    assert!(!numbers.contains("medium_coeff"), "not measured, not drawn");
    // Two rows of ours, the paper's and validation, and a key for each.
    let signs = ["<circle class=\"dot s0\"", "<path class=\"mark s1\"", "<circle class=\"mark s2\""];
    assert_eq!(signs.map(|sign| numbers.matches(sign).count()), [3, 3, 3]);
    assert_eq!(numbers.matches("class=\"whisker\"").count(), 2);

    let curves = &all["var1coarsefull-curves"];
    has(curves, &["<title>small_coeff coarse prefix, the paper's: 95.3 at 3.2M</title>", "96.9 at 4.4M", ">6M<"]);
    assert_eq!((curves.matches("class=\"line s0\"").count(), curves.matches("class=\"mark s1\"").count()), (2, 1));

    let matrix = &all["OODcoeff"];
    has(matrix, &[">ours<", "Rows: trained; columns: tested.", ">33.4<", &format!(">{home:.1}<"), ">–<"]);
    has(&all["OOD2var"], &[">2 → 1<", ">95.3<"]);

    // A one-shot model is one line, though it stands on two rows; another seed is another line of the same colour.
    Fake { setting: Setting::Endpoint, also: &[], ..RUN }.write(&folder.path().join("small_coeff-1-endpoint-prefix"));
    Fake { seed: 2, also: &[], ..RUN }.write(&folder.path().join("small_coeff-1-coarse-prefix-seed2"));
    let all = files(folder.path(), 2);
    let endpoint = &all["var1coarsefull-endpoint-curves"];
    has(endpoint, &["<title>small_coeff prefix, the paper's: 97.8 at 5.2M</title>"]);
    has(endpoint, &[">small_coeff prefix<", "Table var1coarsefull, 1 variable · recipe fast"]);
    has(&all["var1coarsefull-curves"], &["Table var1coarsefull, 1 variable · plain · recipe fast"]);
    assert_eq!(endpoint.matches("class=\"line s").count(), 2, "in the legend, and drawn");
    let curves = &all["var1coarsefull-curves"];
    has(curves, &["in percent, a line for each seed."]);
    assert_eq!(curves.matches(">small_coeff coarse prefix</text>").count(), 1);
    assert_eq!((curves.matches("class=\"line s0\"").count(), curves.matches("class=\"mark s0\"").count()), (3, 1));
    has(&all["var1coarsefull"], &["the range of its seeds"]);
}

#[test]
fn many_rows_are_small_multiples() {
    let folder = tempfile::tempdir().unwrap();
    let formats = ["coarse infix", "fine infix", "coarse prefix", "fine prefix"].map(|f| f.split_once(' ').unwrap());
    for (config, (granularity, notation)) in KEYS.iter().flat_map(|c| formats.map(|format| (c, format))) {
        Fake { config, granularity, notation, proofs: 2, also: &[], ..RUN }
            .write(&folder.path().join(format!("{config}-1-{granularity}-{notation}")));
    }
    let files = files(folder.path(), 1);
    assert!(files.contains_key("var1coarse") && !files.contains_key("var1coarse-curves"), "its runs are drawn already");
    let curves = &files["var1coarsefull-curves"];
    has(curves, &["in percent; a panel for each config."]);
    assert_eq!(curves.matches("class=\"panel\"").count(), KEYS.len());
    for config in KEYS {
        assert_eq!(curves.matches(&format!(">{config}</text>")).count(), 1, "a title");
    }
    for (i, (granularity, notation)) in formats.into_iter().enumerate() {
        let name = format!("{granularity} {notation}");
        assert_eq!(curves.matches(&format!(">{name}</text>")).count(), 1, "one legend for all");
        assert_eq!(curves.matches(&format!("class=\"line s{i}\"")).count(), 1 + KEYS.len(), "{name}");
        for config in KEYS {
            assert_eq!(curves.matches(&format!("<title>{config} {name}, the paper's: ")).count(), 1, "{config} {name}");
        }
    }
}

#[test]
fn a_calculators_curve_is_named_raw() {
    let folder = tempfile::tempdir().unwrap();
    Fake { setting: Setting::Calculator, config: "large_coeff", notation: "infix", also: &[], ..RUN }
        .write(&folder.path().join("large_coeff-1-coarse-infix-calculator"));
    let files = files(folder.path(), 1);
    has(&files["var1combo-curves"], &["raw: its brackets as they stand"]);
    has(
        &files["var1combo"],
        &["large_coeff calculator coarse<", "1 of 8 rows measured. A calculator's validation is raw"],
    );
}

#[test]
fn exercises_stand_in_one_figure() {
    let folder = tempfile::tempdir().unwrap();
    for config in ["add4", "mul9"] {
        Fake { setting: Setting::Arithmetic, config, notation: "infix", proofs: 20, also: &[], ..RUN }
            .write(&folder.path().join(format!("arithmetic-{config}")));
    }
    let files = files(folder.path(), 1);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["arithmetic"]);
    has(&files["arithmetic"], &[">4-digit sums<", ">9-digit products<", "4-digit sums, the paper's: 99 at 2M"]);
    has(&files["arithmetic"], &["9-digit products, the paper's: &lt;1 at 2M"]);
}

#[test]
fn a_curriculum_shows_how_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("small_coeff-1-coarse-prefix-C2");
    RUN.write(&run);
    let config = fs::read_to_string(run.join("config.toml")).unwrap() + "\n[curriculum]\nname = \"C2\"\n";
    fs::write(run.join("config.toml"), config).unwrap();
    let task = |task: &str, accuracy: f64, examples: u64| serde_json::json!({"task": task, "after": [], "accuracy": accuracy, "mastering": accuracy, "examples": examples});
    let look = |examples: u64, tasks: [serde_json::Value; 2]| {
        serde_json::json!({"kind": "curriculum", "step": examples, "examples": examples, "tasks": tasks}).to_string()
            + "\n"
    };
    let looks = look(1000, [task("add", 0.5, 900), task("mixed", 0.1, 100)])
        + &look(2000, [task("add", 1.0, 1000), task("mixed", 0.75, 1000)]);
    let log = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    fs::write(run.join("metrics.jsonl"), log + &looks).unwrap();
    let files = files(folder.path(), 1);
    let name = |part: &str| format!("small_coeff-1-coarse-prefix-C2-{part}");
    has(&files[&name("exams")], &["at the end add 100 %, mixed 75 %", "Exams of a curriculum<"]);
    assert_eq!(files[&name("shares")].matches("<path class=\"band s").count(), 2);
    has(&files["curriculum-var1coarse"], &["small_coeff prefix C2<"]);
    assert!(files.contains_key("curriculum-var1coarse-curves"));
}

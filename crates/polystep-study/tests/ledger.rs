//! From the records of finished runs to the lines of a ledger and the table that people see.

mod fixture;

use std::fs;
use std::path::Path;

use fixture::Fake;
use polystep_core::Setting;
use polystep_record::{LogLine, Proportion};
use polystep_study::ledger::Ledger;
use polystep_study::records::RunRecords;
use polystep_study::side_by_side::cells;
use polystep_study::tables::{PaperRow, PaperTable, Recipe, TableView};

/// One variable, small_coeff, coarse, prefix: row 3 of var1coarsefull, rows 1 to 3 of OODcoeff.
const RUN: Fake =
    Fake { config: "small_coeff", notation: "prefix", also: &["medium_coeff", "large_coeff"], ..Fake::USUAL };

fn records(folder: &Path) -> RunRecords {
    RunRecords::read(folder).unwrap()
}

fn ledger(table: &str, records: &RunRecords) -> Ledger {
    Ledger::of(&PaperTable::named(table).unwrap(), Recipe::Fast, records)
}

fn field<'l>(ledger: &'l Ledger, line: usize, name: &str) -> &'l str {
    let at = ledger.header.iter().position(|h| h == name).unwrap_or_else(|| panic!("no column {name}"));
    &ledger.lines[line][at]
}

#[test]
fn a_line_has_the_papers_keys_and_our_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = RUN.write(&folder.path().join("small_coeff-1-coarse-prefix")).metrics.unwrap();
    let ledger = ledger("var1coarsefull", &records(folder.path()));
    assert_eq!(ledger.lines.len(), 1);
    let text = |name: &str| field(&ledger, 0, name);
    assert_eq!(
        ledger.header[..8],
        ["vars", "config", "setting", "granularity", "notation", "curriculum", "recipe", "size"]
    );
    assert_eq!(ledger.lines[0][..8], ["1", "small_coeff", "plain", "coarse", "prefix", "", "fast", "S"]);
    for cell in cells(&metrics, &metrics.evaluations[0]) {
        let (name, ours) = (cell.column.name, cell.ours.unwrap());
        if ledger.header.iter().any(|h| h == name) {
            let decimals = if name == "train_examples" { 0 } else { 2 };
            assert_eq!(text(name), format!("{ours:.decimals$}"), "{name}");
        }
        if let Some((lo, hi)) = cell.interval.filter(|_| ledger.header.iter().any(|h| h == name)) {
            assert_eq!(
                (text(&format!("{name}_lo")), text(&format!("{name}_hi"))),
                (&*format!("{lo:.2}"), &*format!("{hi:.2}"))
            );
        }
    }
    assert_eq!((text("endpoint_acc"), text("train_examples"), text("seed")), ("", "7000064", "1"));
    assert_eq!((text("device"), text("commit")), ("a made-up device", "0123456789abcdef"));
}

#[test]
fn the_one_shot_model_fills_its_columns_on_every_row() {
    let folder = tempfile::tempdir().unwrap();
    RUN.write(&folder.path().join("small_coeff-1-coarse-prefix"));
    Fake { granularity: "fine", ..RUN }.write(&folder.path().join("small_coeff-1-fine-prefix"));
    Fake { setting: Setting::Endpoint, ..RUN }.write(&folder.path().join("small_coeff-1-endpoint-prefix"));
    let ledger = ledger("var1coarsefull", &records(folder.path()));
    assert_eq!(ledger.lines.len(), 2);
    let endpoint: f64 = field(&ledger, 0, "endpoint_acc").parse().unwrap();
    assert!(endpoint > 0.0 && field(&ledger, 1, "endpoint_acc") == field(&ledger, 0, "endpoint_acc"));
    assert_eq!(field(&ledger, 0, "endpoint_train_examples"), "7000064");
}

/// The paper's 3.2M examples of row 3 lie between our validations at 3 046 400 and 3 225 600.
#[test]
fn a_run_is_also_compared_at_the_papers_count_of_examples() {
    let folder = tempfile::tempdir().unwrap();
    let run = RUN.write(&folder.path().join("small_coeff-1-coarse-prefix"));
    let before = run.log.iter().find_map(|line| match line {
        LogLine::Valid(line) if line.examples == 3_046_400 => Some(100.0 * line.full_proof),
        _ => None,
    });
    Fake { setting: Setting::Calculator, notation: "infix", config: "large_coeff", also: &[], ..RUN }
        .write(&folder.path().join("large_coeff-1-coarse-infix-calculator"));
    let records = records(folder.path());
    let entered = ledger("var1coarsefull", &records);
    assert_eq!(field(&entered, 0, "valid_at_paper_examples"), format!("{:.2}", before.unwrap()));
    assert_eq!(field(&entered, 0, "endpoint_valid_at_paper_examples"), "", "there is no such model");
    let errors = Ledger::empty(&PaperTable::named("var1error").unwrap());
    assert!(!errors.header.contains(&"valid_at_paper_examples".to_owned()));
    Fake { setting: Setting::Endpoint, ..RUN }.write(&folder.path().join("small_coeff-1-endpoint-prefix"));
    let both = ledger("var1coarsefull", &self::records(folder.path()));
    assert!(field(&both, 0, "endpoint_valid_at_paper_examples").parse::<f64>().unwrap() > before.unwrap());

    let view = |name: &str| {
        let table = PaperTable::named(name).unwrap();
        TableView::of(&table, &table.rows.iter().collect::<Vec<_>>(), Recipe::Fast, 1, &records)
    };
    let words = |view: &TableView, word: &str| view.notes.iter().filter(|note| note.contains(word)).count();
    let plain = view("var1coarsefull");
    assert!(plain.markdown().contains(&format!(" / 95.3; {:.2} at 3.2M |", before.unwrap())), "{}", plain.markdown());
    assert_eq!((plain.notes.len(), words(&plain, "cosine"), words(&plain, "raw")), (3, 1, 0));
    assert_eq!(words(&plain, "How many each of our percentages is of"), 1);
    assert_eq!(words(&view("var1combo"), "raw"), 1);
    for elsewhere in ["OODcoeff", "annotate2var"].map(view) {
        assert_eq!((words(&elsewhere, "cosine"), words(&elsewhere, "raw")), (0, 0));
    }
    let json = serde_json::to_value(&plain).unwrap();
    let cell = &json["rows"][2]["cells"][3];
    assert_eq!((cell["column"].as_str(), cell["paper_examples"].as_f64()), (Some("full_proof_acc"), Some(3.2e6)));
    assert_eq!(cell["valid_at_paper_examples"].as_f64(), before);
    assert!(json["rows"][3]["cells"][3].get("valid_at_paper_examples").is_none());
}

#[test]
fn tables_that_read_others_are_filled_by_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = RUN.write(&folder.path().join("small_coeff-1-coarse-prefix")).metrics.unwrap();
    let records = records(folder.path());
    let ood = ledger("OODcoeff", &records);
    for (i, evaluation) in metrics.evaluations.iter().enumerate() {
        assert_eq!(field(&ood, i, "test_config"), evaluation.config);
        let full = evaluation.greedy.as_ref().unwrap().full_proof.exact.percent;
        assert_eq!(field(&ood, i, "full_proof_acc"), format!("{full:.2}"));
    }
    let errors = ledger("var1error", &records);
    assert!(field(&errors, 0, "err_first_mul").parse::<f64>().unwrap() > 0.0);
    assert_eq!(field(&errors, 0, "train_examples"), "7000064");
    assert_eq!(ledger("OODterm", &records).lines.len(), 0);
    assert_eq!(ledger("OOD2var", &records).lines.len(), 1, "at home, with one variable");
}

/// A run that was trained, and so tested once by teacher forcing, but never decoded.
#[test]
fn training_alone_gives_what_it_measured() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("small_coeff-1-coarse-prefix");
    RUN.write(&run);
    let share = |right| {
        let Proportion { lo, hi, .. } = Proportion::new(right, 1000).unwrap();
        let (share, lo, hi) = (right as f64 / 1000.0, lo / 100.0, hi / 100.0);
        format!(r#"{{"right":{right},"total":1000,"share":{share},"lo":{lo},"hi":{hi}}}"#)
    };
    let metrics = format!(
        r#"{{"recipe":"fast","seed":1,"examples":5,"test":{{"full_proof":{},"stepwise":{}}}}}"#,
        share(918),
        share(990)
    );
    fs::write(run.join("metrics.json"), metrics).unwrap();
    let records = records(folder.path());
    let ledger = ledger("var1coarsefull", &records);
    assert_eq!(field(&ledger, 0, "full_proof_acc"), "91.80");
    assert_eq!((field(&ledger, 0, "full_proof_acc_lo"), field(&ledger, 0, "full_proof_acc_hi")), ("89.94", "93.34"));
    assert_eq!((field(&ledger, 0, "stepwise_acc"), field(&ledger, 0, "beam5_acc")), ("99.00", ""));
    assert_eq!(Ledger::of(&PaperTable::named("OODcoeff").unwrap(), Recipe::Fast, &records).lines.len(), 1);
}

#[test]
fn seeds_are_lines_and_the_table_shows_their_mean() {
    let folder = tempfile::tempdir().unwrap();
    let seeded = |seed, clumsiness, name: &str| Fake { seed, clumsiness, ..RUN }.write(&folder.path().join(name));
    seeded(1, 1.0, "small_coeff-1-coarse-prefix");
    seeded(2, 3.0, "small_coeff-1-coarse-prefix-seed2");
    let records = records(folder.path());
    let ledger = ledger("var1coarsefull", &records);
    let full: Vec<f64> = (0..2).map(|i| field(&ledger, i, "full_proof_acc").parse().unwrap()).collect();
    assert_eq!((field(&ledger, 0, "seed"), field(&ledger, 1, "seed")), ("1", "2"));
    assert!(full[0] > full[1], "{full:?}");

    let table = PaperTable::named("var1coarsefull").unwrap();
    let rows: Vec<&PaperRow> = table.rows.iter().filter(|row| row.number == 3 || row.number == 4).collect();
    let view = |seeds| TableView::of(&table, &rows, Recipe::Fast, seeds, &records);
    let at = view(2).columns.iter().position(|c| c.name == "full_proof_acc").unwrap();
    let cell = view(2).rows[0].cells[at].clone();
    assert!((cell.ours.unwrap() - (full[0] + full[1]) / 2.0).abs() < 0.01);
    assert_eq!(
        cell.interval.map(|(lo, hi)| format!("{lo:.2} {hi:.2}")),
        Some(format!("{:.2} {:.2}", full[1], full[0]))
    );
    assert_eq!(cell.paper.as_ref().map(|paper| paper.text), Some("95.3"));
    assert!(cell.is_lower(), "a model this clumsy is below the paper's");
    assert_eq!(view(1).rows[0].seeds, [1]);
    assert!(view(2).rows[1].seeds.is_empty() && view(2).rows[1].cells[at].ours.is_none());
    let lower = view(1).lower();
    assert!(lower.len() == 1 && lower[0].starts_with("3 coarse: full proof "), "{lower:?}");
    assert!(lower[0].contains(" (paper 95.3), stepwise "), "{lower:?}");
    insta::assert_snapshot!("table_markdown", view(2).markdown());
}

#[test]
fn a_ledger_comes_back_and_a_damaged_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let table = PaperTable::named("var1error").unwrap();
    RUN.write(&folder.path().join("runs/small_coeff-1-coarse-prefix"));
    let mut ledger = ledger("var1error", &records(&folder.path().join("runs")));
    let device = ledger.header.iter().position(|h| h == "device").unwrap();
    ledger.lines[0][device] = "CPU, 2 threads \"of ours\"".into();
    let path = folder.path().join("var1error.csv");
    assert_eq!(Ledger::read(&path, &table).unwrap(), None);
    let text = ledger.text();
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        Ledger::read(&path, &table)
    };
    assert_eq!(read(&text).unwrap(), Some(ledger.clone()));
    let refused = |text: &str, why: &str| {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(&format!("var1error.csv line {why}")), "{error}");
    };
    refused("", "1: this is not the header of a var1error ledger");
    refused(&text.replacen("full_proof_acc", "accuracy", 1), "1: this is not the header");
    refused(&text[..text.len() - 40], "2: ");
    refused(&text.replacen("S,", "S,x", 1), "2: full_proof_acc is `x");
    refused(
        &text.replacen("small_coeff", "huge_coeff", 1),
        "2: var1error has no row 1,huge_coeff,plain,coarse,prefix,",
    );
    let none = Ledger::empty(&table);
    assert_eq!((ledger.unknown_to(&none), ledger.unknown_to(&ledger)), (vec![2], vec![]));
}

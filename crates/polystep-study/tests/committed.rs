//! What the repository says of itself: ledgers are those of the records, and the tables of the documents those of the ledgers.

use std::path::{Path, PathBuf};

use polystep_core::space::KEYS;
use polystep_record::paper::lookup;
use polystep_record::{Keys, PaperSetting, Proportion};
use polystep_study::ledger::Ledger;
use polystep_study::records::RunRecords;
use polystep_study::tables::{AskedSet, Experiment, Kind, PaperTable, Recipe};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn records() -> RunRecords {
    RunRecords::read(&root().join("results/runs")).unwrap()
}

fn keys(config: &str, vars: u32, setting: &str, granularity: &str, notation: &str) -> Keys {
    let (granularity, notation) = (granularity.parse().ok(), notation.parse().ok());
    Keys { vars, config: config.into(), setting: setting.parse().ok(), granularity, notation, ..Keys::default() }
}

/// Full proofs of a run on a space.
fn full_proofs(records: &RunRecords, run: &str, config: &str, vars: u32) -> Option<Proportion> {
    let set = AskedSet { config: config.into(), vars, beam: false };
    Some(records.get(run)?.evaluation(&set)?.greedy.as_ref()?.full_proof.exact)
}

/// The same in percent.
fn measured(records: &RunRecords, run: &str, config: &str, vars: u32) -> Option<f64> {
    Some(full_proofs(records, run, config, vars)?.percent)
}

/// The paper's number of full proofs in a row.
fn printed(keys: &Keys) -> f64 {
    let column = if keys.is(PaperSetting::Endpoint) { "endpoint_acc" } else { "full_proof_acc" };
    lookup(keys).iter().find(|p| p.column == column).unwrap_or_else(|| panic!("{keys:?}")).text.parse().unwrap()
}

/// The cells of the first line of a document that begins so; marks of emphasis are left out.
fn cells(document: &str, begin: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let line = text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{document}: {begin}"));
    line[begin.len()..].trim_matches(['|', ' ']).split('|').map(|cell| cell.trim().replace("**", "")).collect()
}

#[test]
fn ledgers_are_those_of_the_records() {
    let records = records();
    for table in PaperTable::all().into_iter().filter(|table| table.kind() != Kind::Sizes) {
        for (recipe, folder) in [(Recipe::Fast, "results"), (Recipe::Paper, "results/paper")] {
            let made = Ledger::of(&table, recipe, &records);
            let path = root().join(folder).join(format!("{}.csv", table.name));
            if std::env::var_os("UPDATE_GOLDEN").is_some() && !made.lines.is_empty() {
                std::fs::write(&path, made.text()).unwrap();
            }
            match Ledger::read(&path, &table).unwrap() {
                Some(read) => assert_eq!(read, made, "{}: run polystep reproduce --all --show", path.display()),
                None => {
                    assert!(made.lines.is_empty(), "{} is missing: run polystep reproduce --all --show", path.display())
                }
            }
        }
    }
}

/// What the page says of a run: our number, or that there is none yet, and the paper's.
fn told(records: &RunRecords, keys: &Keys) -> String {
    let run = Experiment { keys: keys.clone(), recipe: Recipe::Fast, seed: 1, own: None }.name();
    let ours = measured(records, &run, &keys.config, keys.vars).map_or("missing".into(), |ours| format!("{ours:.1}"));
    format!("{ours} {:.1}", printed(keys))
}

#[test]
fn the_results_page_has_the_ledgers_numbers() {
    let records = records();
    let formats = [("plain", "coarse", "infix"), ("plain", "fine", "infix"), ("plain", "coarse", "prefix")];
    let others = [("plain", "fine", "prefix"), ("endpoint", "", "infix"), ("endpoint", "", "prefix")];
    for config in KEYS {
        let said = cells("docs/results.md", &format!("| {config} |"));
        let expected = formats
            .iter()
            .chain(&others)
            .map(|(setting, granularity, notation)| told(&records, &keys(config, 1, setting, granularity, notation)));
        assert_eq!(said, expected.collect::<Vec<_>>(), "{config}");
    }
}

#[test]
fn the_results_page_has_the_ledgers_numbers_of_two_variables() {
    let records = records();
    let formats = [("plain", "coarse"), ("endpoint", "")];
    for config in KEYS {
        let said = cells("docs/results.md", &format!("| 2 variables, {config} |"));
        let expected = formats.iter().flat_map(|(setting, granularity)| {
            ["infix", "prefix"].map(|notation| told(&records, &keys(config, 2, setting, granularity, notation)))
        });
        let everything = format!("{:.1}", measured(&records, "all-spaces", config, 2).unwrap());
        assert_eq!(said, expected.chain([everything]).collect::<Vec<_>>(), "{config}");
    }
}

#[test]
fn the_fidelity_page_has_the_numbers_of_both_readings() {
    let records = records();
    for reading in ["all", "uniform"] {
        let expected = [1, 2].map(|vars| {
            let found = full_proofs(&records, &format!("variables-{reading}"), "pairs", vars).unwrap();
            format!("{:.1} ({:.1} to {:.1})", found.percent, found.lo, found.hi)
        });
        assert_eq!(cells("docs/fidelity.md", &format!("  | `{reading}` |")), expected);
    }
}

#[test]
fn the_model_of_all_spaces_does_what_is_said_of_it() {
    let records = records();
    for (vars, paper, documents) in [
        (
            1,
            "| 1 variable, paper |",
            [("README.md", "| 1 variable, one model for all |"), ("docs/results.md", "| 1 variable, one model |")],
        ),
        (
            2,
            "| 2 variables, paper |",
            [("README.md", "| 2 variables, the same model |"), ("docs/results.md", "| 2 variables, one model |")],
        ),
    ] {
        let ours = KEYS.map(|config| format!("{:.1}", measured(&records, "all-spaces", config, vars).unwrap()));
        let theirs = KEYS.map(|config| format!("{:.1}", printed(&keys(config, vars, "plain", "coarse", "infix"))));
        for (document, line) in documents {
            assert_eq!(cells(document, line), ours, "{document}");
            assert_eq!(cells(document, paper), theirs, "{document}");
        }
    }
}

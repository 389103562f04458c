//! docs/results.md is made from `page/results.md.j2`: every number on it is computed here from the records, the ledgers and the paper's
//! tables. The template itself may hold no number but those of [`CONSTANTS`].
//!
//! Sentences of the template that hold only while a fact holds ("all rows are above the paper") are asserted in `claims`. So a new record
//! either changes the page or fails here.

mod page;

use page::numbers::Numbers;

/// What the template may say in digits without a computation: names, definitions, and what the paper's text (not its tables) says.
const CONSTANTS: [&str; 13] = [
    "95",   // the level of the intervals
    "0.05", // where a comparison is called decided
    "5",    // beams, and the threshold of a sure answer
    "1",
    "2", // variables
    "C2",
    "C4", // curricula
    "99", // the paper's text on sums
    "top-1",
    "2.",
    "1.",
    "H200",
    "Transformer-S",
];

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const TEMPLATE: &str = include_str!("page/results.md.j2");

#[test]
fn the_page_is_made_from_the_records() {
    let numbers = Numbers::read(&root());
    numbers.claims();
    let made = page::render(TEMPLATE, numbers);
    let path = root().join("docs/results.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let same = committed.lines().zip(made.lines()).position(|(a, b)| a != b);
    let why = "run UPDATE_GOLDEN=1 cargo test -p polystep-study --test results_page";
    if let Some(at) = same {
        let line = |text: &str| text.lines().nth(at).unwrap_or_default().to_owned();
        panic!("docs/results.md, line {}: {why}\n- {}\n+ {}", at + 1, line(&committed), line(&made));
    }
    assert_eq!(committed, made, "{why}");
}

/// A number that nobody computes cannot stand on the page.
#[test]
fn the_template_has_no_numbers_of_its_own() {
    let mut text = String::new();
    let mut rest = TEMPLATE;
    // What is computed, code, and the targets of links go.
    while let Some(at) = rest.find(['{', '`', ']']) {
        text.push_str(&rest[..at]);
        let end = match &rest[at..] {
            open if open.starts_with("{{") => open.find("}}").map(|n| n + 2),
            open if open.starts_with("{%") => open.find("%}").map(|n| n + 2),
            open if open.starts_with('`') => open[1..].find('`').map(|n| n + 2),
            open if open.starts_with("](") => open.find(')').map(|n| n + 1),
            _ => Some(1),
        };
        text.push(' ');
        rest = &rest[at + end.expect("it is closed")..];
    }
    text.push_str(rest);
    let names = polystep_study::tables::NAMES;
    for line in text.lines().filter(|line| !line.starts_with("    ")) {
        for word in line.split(|c: char| !(c.is_alphanumeric() || "_.-".contains(c))) {
            let word = word.trim_end_matches(['.', '-']);
            let known = CONSTANTS.contains(&word) || names.contains(&word);
            assert!(known || !word.contains(|c: char| c.is_ascii_digit()), "`{word}` in: {line}");
        }
    }
}

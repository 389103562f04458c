//! Runs the literate goldens of `tests/proofs/*.md`: prose, then a proof.
//!
//! A block ```` ```proof GRANULARITY [SETTING] ```` holds the start and then one step per line: its kind and its target. A block
//! ```` ```refused ```` holds an expression and what the parser says to it.

use std::fs;
use std::path::Path;

use polystep_core::notation::{parse, print};
use polystep_core::{Granularity, Notation, Setting, Style, Writing, token};

#[test]
fn every_literate_proof() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proofs");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut blocks = 0;
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(file).unwrap();
        for (info, body) in fences(&text) {
            let place = format!("{}: {info}\n{body}", file.display());
            let mut words = info.split_whitespace();
            match words.next() {
                Some("proof") => proof(words.collect(), &body, &place),
                Some("refused") => refused(&body, &place),
                _ => continue,
            }
            blocks += 1;
        }
    }
    assert!(blocks >= 10, "only {blocks} blocks found");
}

/// The fenced blocks of a Markdown text: what stands behind the fence, and what it holds.
fn fences(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|l| !l.starts_with("```")).collect();
            found.push((info.to_owned(), body.join("\n")));
        }
    }
    found
}

fn proof(words: Vec<&str>, body: &str, place: &str) {
    let granularity: Granularity = words.first().unwrap_or(&"coarse").parse().expect(place);
    let setting: Setting = words.get(1).unwrap_or(&"plain").parse().expect(place);
    let style = Style::default();
    let mut lines = body.lines();
    let start = lines.next().expect(place).trim().trim_start_matches("MARK $ ");
    let start = parse(start, Notation::Infix, style).unwrap_or_else(|e| panic!("{place}\n{}", e.caret(start)));
    let writing = Writing { setting, granularity, ..Writing::default() };
    let proof = writing.proof(&start).expect(place);
    let found: Vec<String> =
        writing.lines(&proof).map(|l| format!("{} {}", l.kind, token::decode(&l.target, Notation::Infix))).collect();
    let expected: Vec<String> = lines
        .map(|l| l.split_once(' ').map(|(kind, state)| format!("{kind} {}", state.trim())).expect(place))
        .collect();
    assert_eq!(found, expected, "{place}");
    for state in proof.states() {
        for notation in [Notation::Infix, Notation::Prefix] {
            let text = print(&state, notation, style);
            assert_eq!(parse(&text, notation, style).as_ref(), Ok(&state), "{place}\n{text}");
        }
    }
}

fn refused(body: &str, place: &str) {
    let typed = body.lines().next().expect(place);
    let error = parse(typed, Notation::Infix, Style::default()).expect_err(place);
    assert_eq!(error.caret(typed), body, "{place}");
}

//! What people type is read as an expression with the same value, or refused with a sentence.
//!
//! `typed/inputs.md` holds one case for each kind of input. The properties type random expressions in random spellings.

#[path = "typed/expression.rs"]
mod expression;
#[path = "typed/value.rs"]
mod value;

use std::collections::BTreeMap;

use expression::{Expression, expression, write};
use polystep_core::typed::{MAX_FACTORS, MAX_PRODUCTS, MAX_TOKENS, Typed, read};
use polystep_core::{Notation, Style, Writing, notation, token};
use proptest::prelude::*;

const INPUTS: &str = include_str!("typed/inputs.md");

/// The cases of all blocks of one kind: blocks are fenced, and cases are separated by blank lines.
fn cases(kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = INPUTS.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("```") == Some(kind) {
            let block: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
            found.extend(block.join("\n").split("\n\n").map(str::to_owned));
        }
    }
    found
}

#[test]
fn accepted_inputs_have_the_endpoint_that_sympy_computed() {
    let cases = cases("read");
    assert!(cases.len() >= 100, "only {} cases", cases.len());
    for case in &cases {
        let labels: BTreeMap<&str, &str> = case.lines().map(|l| (l[..10].trim(), &l[10..])).collect();
        let typed = read(labels["typed"]).unwrap_or_else(|e| panic!("{}", e.caret(labels["typed"])));
        let label = if typed.rewritten() { "read as" } else { "same as" };
        assert_eq!(labels.get(label), Some(&typed.text().as_str()), "{case}");
        assert_eq!(*labels.get("shown").unwrap_or(&labels[label]), typed.text_in_names(), "{case}");
        assert_eq!(value::text(&value::of_state(typed.state())), labels["endpoint"], "{case}");
        // The proof ends there, too, unless its numbers do not fit.
        if let Ok(proof) = Writing::default().proof(typed.state()) {
            assert_eq!(Writing::default().print(proof.end()), labels["endpoint"], "{case}");
        }
        holds_what_every_reading_holds(&typed);
    }
}

#[test]
fn refused_inputs_have_their_sentence() {
    let cases = cases("refused");
    assert!(cases.len() >= 50, "only {} cases", cases.len());
    for case in &cases {
        let typed = case.lines().next().unwrap();
        let error = read(typed).map(|t| t.text()).expect_err(case);
        assert_eq!(error.caret(typed), *case);
    }
}

/// The limits, and that the strict text is read as itself.
fn holds_what_every_reading_holds(typed: &Typed) {
    let text = typed.text();
    let again = read(&text).unwrap_or_else(|e| panic!("{}", e.caret(&text)));
    assert_eq!(again.state(), typed.state(), "{text}");
    assert!(!again.rewritten(), "{text}");
    // A name can vanish (`x^0*y` is `y`). Then the others would be numbered anew.
    let all_occur = (0..8).all(|v| typed.names().get(v).is_none() || text.contains(&format!("x{}", v + 1)));
    if all_occur {
        assert_eq!(read(&typed.text_in_names()).as_ref().map(Typed::state), Ok(typed.state()), "{text}");
    }
    let tokens = text.chars().filter(|&c| c != 'x').count() as u64;
    assert!(tokens <= MAX_TOKENS, "{tokens} tokens: {text}");
    let products = typed.state().products();
    assert!(products.len() as u64 <= MAX_PRODUCTS, "{text}");
    assert!(products.iter().all(|p| p.0.len() as u64 <= MAX_FACTORS), "{text}");
    assert_eq!(notation::parse(&text, Notation::Infix, Style::default()).as_ref(), Ok(typed.state()), "{text}");
    assert_eq!(token::encode(&text).unwrap().len() as u64, tokens);
}

/// Names in the order in which they are numbered.
const NAMES: [[&str; 4]; 4] =
    [["x1", "x2", "x3", "x4"], ["x", "y", "z", "α"], ["a", "b2", "b12", "c"], ["X", "x", "Y", "y"]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_expressions_are_read_with_their_value(
        parts in prop::collection::vec(expression(), 1..4), factors in any::<bool>(),
        names in prop::sample::select(NAMES.to_vec()), spelling in any::<u64>(),
    ) {
        let expression = if factors { Expression::Product(parts) } else { Expression::Sum(parts) };
        let expression = Expression::Sum(vec![expression, all_names()]);
        let text = write(&expression, &names, spelling);
        match read(&text) {
            Ok(typed) => {
                let found = value::of_state(typed.state());
                prop_assert_eq!(value::text(&found), value::text(&expression.value()), "{}", text);
                holds_what_every_reading_holds(&typed);
            }
            Err(error) => prop_assert!(error.to_string().contains("at most"), "{}", error.caret(&text)),
        }
    }

    #[test]
    fn what_the_strict_parser_accepts_is_read_as_the_same_state(text in strict_text()) {
        let strict = notation::parse(&text, Notation::Infix, Style::default());
        // Other letters are numbered in the order of the alphabet: `y` alone is x1.
        let in_order = text.contains('x') && (text.contains('y') || !text.contains('z'));
        if let (Ok(state), true) = (strict, in_order) {
            let typed = read(&text).unwrap_or_else(|e| panic!("{}", e.caret(&text)));
            prop_assert_eq!(typed.state(), &state, "{}", text);
        }
    }

    #[test]
    fn nothing_that_can_be_typed_makes_it_panic(
        text in r"[0-9xya+*^()\[\]{} _$.\\²₁−-]{0,60}|\PC{0,30}|(\(|x|\+|1|\)|\^9|-|\\left){0,80}",
    ) {
        match read(&text) {
            Ok(typed) => holds_what_every_reading_holds(&typed),
            Err(error) => {
                prop_assert!(text.get(error.span.clone()).is_some(), "{:?} in {:?}", error.span, text);
                prop_assert!(!error.caret(&text).is_empty());
            }
        }
    }
}

/// A text as the strict parser accepts it, most of the time: terms and parentheses joined by `+`, `-` and `*`.
fn strict_text() -> impl Strategy<Value = String> {
    let term = r"([1-9][0-9]?\*)?[xyz](\^[1-3])?(\*[xyz])?( ?\*[1-9])?|[1-9]";
    let factor = format!(r"\(-?({term})([+-]({term})){{0,2}}\)|({term})");
    prop::string::string_regex(&format!(r"-?({factor})([*+-]({factor})){{0,4}}")).unwrap()
}

/// A sum of all four names, so that every name keeps its number.
fn all_names() -> Expression {
    Expression::Sum((0..4).map(Expression::Variable).collect())
}

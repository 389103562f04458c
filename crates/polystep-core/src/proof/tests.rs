use super::*;
use crate::monomial::TermOrder;
use crate::notation::{parse, print, print_open};
use crate::writing::{Setting, Writing};

const STYLE: Style = Style { order: TermOrder::Paper, ones: false };

fn infix(state: &State) -> String {
    print(state, Notation::Infix, STYLE)
}

fn proof(start: &str, granularity: &str) -> Proof {
    Proof::of(&parse(start, Notation::Infix, STYLE).unwrap(), granularity.parse().unwrap(), STYLE).unwrap()
}

fn proves(granularity: &str, states: &[&str]) {
    let proof = proof(states[0], granularity);
    assert_eq!(proof.states().map(|s| infix(&s)).collect::<Vec<_>>(), states);
}

fn leaves_open(granularity: &str, start: &str, targets: &[&str]) {
    let proof = proof(start, granularity);
    let open: Vec<String> = proof.steps().map(|s| print_open(&s.after, &s.open, Notation::Infix, STYLE)).collect();
    assert_eq!(open, targets);
}

fn marks(granularity: &str, start: &str, marked: &[&str]) {
    let lines = Writing { setting: Setting::Annotated, ..Writing::default() }.lines(&proof(start, granularity));
    let lines: Vec<_> = lines.collect();
    let targets: Vec<String> = lines.iter().map(|l| token::decode(&l.target, Notation::Infix)).collect();
    assert_eq!(targets, marked);
    for pair in lines.windows(2) {
        assert_eq!(pair[0].target, pair[1].input);
    }
}

#[test]
fn one_product_has_no_sumstep() {
    proves("coarse", &["(2*x1)*(x1^1+1)", "(2*x1)*(x1+1)", "2*x1^2+2*x1"]);
    proves("fine", &["(2*x1)*(x1+1)*(3)", "(2*x1^2+2*x1)*(3)", "6*x1^2+6*x1"]);
    proves("coarse", &["(x1^1+x1^1)", "2*x1"]);
    proves("coarse", &["(3*x1^2)", "3*x1^2"]);
    proves("fac=term", &["(3*x1^2)", "3*x1^2"]);
    proves("coarse", &["3*x1^2"]);
}

#[test]
fn fine_steps_take_one_factor_two_factors_two_products() {
    proves(
        "fine",
        &[
            "(x1^1)*(x1^1+x1^1)+(2)+(3)*(4)*(x1^2)",
            "(x1)*(x1^1+x1^1)+(2)+(3)*(4)*(x1^2)",
            "(x1)*(2*x1)+(2)+(3)*(4)*(x1^2)",
            "(2*x1^2)+(2)+(3)*(4)*(x1^2)",
            "(2*x1^2)+(2)+(12)*(x1^2)",
            "(2*x1^2)+(2)+(12*x1^2)",
            "(2*x1^2+2)+(12*x1^2)",
            "14*x1^2+2",
        ],
    );
    proves("fine_counted", &["(x1^1)*(x1)*(2)+(2)+(3)", "(x1)*(x1)*(2)+(2)+(3)", "(2*x1^2)+(2)+(3)", "2*x1^2+5"]);
}

#[test]
fn a_term_is_simplified_with_its_like_terms() {
    proves(
        "fac=term",
        &[
            "(2*x1^1+3*x1^1+x1^1*x2^1)*(x2^1)",
            "(x1*x2+2*x1^1+3*x1^1)*(x2^1)",
            "(x1*x2+5*x1)*(x2^1)",
            "(x1*x2+5*x1)*(x2)",
            "x1*x2^2+5*x1*x2",
        ],
    );
    proves("fac=term", &["(x1^1+x1^1+1+2)", "(2*x1+1+2)", "2*x1+3"]);
}

#[test]
fn the_calculator_is_left_the_coefficients() {
    leaves_open("coarse", "(5*x1^2+x1)*(3*x1)*(2)+(1)", &["([5*3*2]*x1^3+[3*2]*x1^2)+(1)", "30*x1^3+6*x1^2+1"]);
    leaves_open("coarse", "(x1^1+x1^1)", &["[1+1]*x1"]);
    leaves_open("coarse", "(3)*(4)+(5)", &["([3*4])+(5)", "[12+5]"]);
    leaves_open("coarse", "(x1+1)*(x1+1)", &["x1^2+[1+1]*x1+1"]);
    leaves_open("coarse", "(2*x1+3)*(x1+5)+(x1)", &["(2*x1^2+[2*5+3]*x1+[3*5])+(x1)", "2*x1^2+[13+1]*x1+15"]);
}

#[test]
fn annotation_marks_the_whole_unit() {
    marks(
        "coarse",
        "(x1^1)*(2)+(3)",
        &[
            "FAC $ #(x1^1)*(2)#+(3)",
            "MARK $ (x1)*(2)+(3)",
            "MUL $ #(x1)*(2)#+(3)",
            "MARK $ (2*x1)+(3)",
            "SUM $ #(2*x1)+(3)#",
            "MARK $ 2*x1+3",
            "END $ 2*x1+3",
        ],
    );
    marks(
        "fine",
        "(2)*(x1^1)*(3)+(1)+(4)",
        &[
            "FAC $ (2)*#(x1^1)#*(3)+(1)+(4)",
            "MARK $ (2)*(x1)*(3)+(1)+(4)",
            "MUL $ #(2)*(x1)#*(3)+(1)+(4)",
            "MARK $ (2*x1)*(3)+(1)+(4)",
            "MUL $ #(2*x1)*(3)#+(1)+(4)",
            "MARK $ (6*x1)+(1)+(4)",
            "SUM $ #(6*x1)+(1)#+(4)",
            "MARK $ (6*x1+1)+(4)",
            "SUM $ #(6*x1+1)+(4)#",
            "MARK $ 6*x1+5",
            "END $ 6*x1+5",
        ],
    );
}

/// The derived order of the kinds is the order in a proof, and tables and curves list them so.
#[test]
fn the_order_of_the_kinds_is_the_order_of_the_steps() {
    let proof = proof("(x1^1)*(2)+(3)", "coarse");
    let kinds = proof.kinds();
    assert_eq!(kinds, [StepKind::Facstep, StepKind::Mulstep, StepKind::Sumstep]);
    assert!(StepKind::ALL.is_sorted());
    let operations = StepKind::ALL.into_iter().take_while(|&kind| kind < StepKind::Markstep);
    assert!(operations.eq(kinds.iter().copied()), "an operation is missing from this proof, or stands behind markstep");
}

/// Two kinds with one tag would make annotated data ambiguous.
#[test]
fn every_operation_has_a_tag_of_its_own() {
    let tagged: Vec<(StepKind, u8)> = StepKind::ALL.into_iter().filter_map(|kind| Some((kind, kind.tag()?))).collect();
    let operations = StepKind::ALL.into_iter().filter(|&kind| kind < StepKind::Markstep);
    assert!(operations.eq(tagged.iter().map(|&(kind, _)| kind)));
    for (i, &(kind, tag)) in tagged.iter().enumerate() {
        assert!(token::is_tag(tag) && ![token::MARK, token::END].contains(&tag), "{kind}");
        assert!(tagged[..i].iter().all(|&(_, other)| other != tag), "{kind} shares its tag");
        assert!(!token::name(tag).starts_with('<'), "the tag of {kind} has no name");
    }
}

use super::*;

fn reads_as(typed: &str, printed: &str) {
    let state = parse(typed, Notation::Infix, Style::default()).unwrap_or_else(|e| panic!("{}", e.caret(typed)));
    assert_eq!(print(&state, Notation::Infix, Style::default()), printed, "{typed}");
    for notation in [Notation::Infix, Notation::Prefix] {
        let text = print(&state, notation, Style::default());
        assert_eq!(parse(&text, notation, Style::default()).as_ref(), Ok(&state), "{text}");
    }
}

fn complains(typed: &str, at: Range<usize>, sentence: &str) {
    let error = parse(typed, Notation::Infix, Style::default()).expect_err(typed);
    assert_eq!((error.span.clone(), error.to_string().contains(sentence)), (at, true), "{}", error.caret(typed));
}

#[test]
fn what_people_type() {
    reads_as("(2*x2^2)*(3*x2^1+4)", "(2*x2^2)*(3*x2^1+4)");
    reads_as(" ( 2 * x_2**2 ) * ( 3*y^1 + 4 ) ", "(2*x2^2)*(3*x2^1+4)");
    reads_as("2*(x+1)", "(2)*(x1+1)");
    reads_as("(x+1)*2*x*(3)", "(x1+1)*(2*x1)*(3)");
    reads_as("2*3*x", "(2)*(3*x1)");
    reads_as("x*x", "(x1)*(x1)");
    reads_as("(1*x + x_{2})", "(x1+x2)");
    reads_as("y*x*2", "2*x1*x2");
    reads_as("(x+1)*(2)+3*x+4", "(x1+1)*(2)+(3*x1)+(4)");
}

#[test]
fn a_bare_polynomial_is_the_endpoint_only_in_normal_form() {
    reads_as("30*x1^3+6*x2^3+6*x1^2*x2+8*x2^2", "30*x1^3+6*x2^3+6*x1^2*x2+8*x2^2");
    reads_as("8*x2^2+30*x1^3", "(8*x2^2+30*x1^3)");
    reads_as("x^1+1", "(x1^1+1)");
    reads_as("x+x", "(x1+x1)");
    reads_as("(3*x^2)", "(3*x1^2)");
}

#[test]
fn prefix_has_one_operator_per_level() {
    let style = Style::default();
    let prefix = |s| print(&parse(s, Notation::Infix, style).unwrap(), Notation::Prefix, style);
    assert_eq!(prefix("(3*x+4)*(2)*(x^2)"), "*F + * INT+ 3 x1 INT+ 4 *F INT+ 2 ^ x1 INT+ 2");
    assert_eq!(prefix("(3*x+4)*(2*x^2)"), "*F + * INT+ 3 x1 INT+ 4 * INT+ 2 ^ x1 INT+ 2");
    assert_eq!(prefix("(x^1*y^1)+(12)+(3)"), "+P * ^ x1 INT+ 1 ^ x2 INT+ 1 +P INT+ 1 2 INT+ 3");
    assert_eq!(prefix("(x^1)"), "*F ^ x1 INT+ 1");
    assert_eq!(prefix("2*x*y+1"), "+ * INT+ 2 * x1 x2 INT+ 1");
}

#[test]
fn what_the_language_does_not_have() {
    complains("(x+1)^2", 5..6, "cannot be raised to a power");
    complains("(x)-(1)", 4..5, "a minus belongs to a term");
    complains("(2-[3*4]*x)", 3..4, "a minus belongs to a term");
    complains("x+-1", 2..3, "expected a number or a variable, found `-`");
    complains("[3-1]*x", 2..3, "expected `+`, `*` or `]`");
    complains("-0", 1..2, "0 stands only alone");
    complains("(x-0)", 3..4, "0 stands only alone");
    complains("(0)+0", 4..5, "0 stands only alone");
    complains("[0*3]*x", 1..2, "0 stands only alone");
    complains("x+007", 2..5, "no number begins with 0");
    complains("x/2", 1..2, "fractions");
    complains("(2*(x+1))", 3..4, "nested");
    complains("((x))", 1..2, "nested");
    complains("(x+1", 0..1, "no partner");
    complains("x+1)", 3..4, "no partner");
    complains("2x", 1..2, "missing");
    complains("(x)(y)", 3..4, "missing");
    complains("x9", 0..2, "x1 to x8");
    complains("a+1", 0..1, "x1 to x8");
    complains("x^0", 2..3, "0 stands only alone");
    complains("0*x", 0..3, "0 stands only alone");
    complains("x^", 2..2, "expected a number, found the end");
    complains("3**2", 1..3, "expected");
    complains("(2*3*x)", 3..4, "one coefficient");
    complains("(x*x)", 3..4, "x1 stands twice");
    complains("99999999999999999999", 0..20, "2^63");
    complains("9223372036854775808", 0..19, "2^63");
    complains("x^256", 2..5, "255");
    complains("x%2", 1..2, "`%` is not part");
    complains("", 0..0, "empty");
    complains("x+", 2..2, "found the end");
}

#[test]
fn signs_belong_to_terms() {
    reads_as("-3*x^2+x-4", "-3*x1^2+x1-4");
    reads_as("(-2*x)*(x-3)+(4*x)", "(-2*x1)*(x1-3)+(4*x1)");
    reads_as("-x*2 − 1*y", "-2*x1-x2");
    reads_as("(x)*(-x^1) - 3*x", "(x1)*(-x1^1)+(-3*x1)");
    reads_as("-9223372036854775808", "-9223372036854775808");
    reads_as("0", "0");
    reads_as("(0)*(x-1)+(0)", "(0)*(x1-1)+(0)");
    reads_as("([2+-2]*x^2+[3*-1]*x)*([1+-1]*x)", "(-3*x1)*(0)");
    let style = Style::default();
    let prefix = |s| print(&parse(s, Notation::Infix, style).unwrap(), Notation::Prefix, style);
    assert_eq!(prefix("-x"), "* INT- 1 x1");
    assert_eq!(prefix("-2*x*y-13"), "+ * INT- 2 * x1 x2 INT- 1 3");
    assert_eq!(prefix("(0)+(x)"), "+P INT+ 0 x1");
    for refused in ["INT- 0", "+ x1 INT+ 0", "* INT+ 0 x1", "- x1 INT+ 1", "^ x1 INT- 2", "* [ INT+ 0 ] x1"] {
        assert!(parse(refused, Notation::Prefix, style).is_err(), "{refused}");
    }
    let ones = Style { ones: true, ..style };
    let state = parse("(-1*x^1-1*x^2)*(-x^2)", Notation::Infix, ones).unwrap();
    assert_eq!(print(&state, Notation::Infix, ones), "(-1*x1^1-1*x1^2)*(-x1^2)");
    assert_eq!(latex(&parse("-x*y+3*x-1", Notation::Infix, style).unwrap(), style), "-x_{1} x_{2} + 3 x_{1} - 1");
}

#[test]
fn brackets_are_evaluated() {
    let style = Style::default();
    let (state, open) = parse_open("([5*3*2]*x1^3+[3*2]*x1^2)", Notation::Infix, style).unwrap();
    assert_eq!(print(&state, Notation::Infix, style), "(30*x1^3+6*x1^2)");
    assert_eq!(print_open(&state, &open, Notation::Infix, style), "([5*3*2]*x1^3+[3*2]*x1^2)");
    let prefix = print_open(&state, &open, Notation::Prefix, style);
    assert!(prefix.contains("* [ * INT+ 3 INT+ 2 ] ^ x1 INT+ 2"), "{prefix}");
    assert_eq!(parse_open(&prefix, Notation::Prefix, style), Ok((state, open)));
    let huge = "[9999999999*9999999999]*x1";
    let error = parse(huge, Notation::Infix, style).unwrap_err();
    assert_eq!((error.complaint, error.span), (Complaint::BracketOverflow, 0..23));
}

#[test]
fn ones_are_a_setting() {
    let style = Style { ones: true, ..Style::default() };
    let state = parse("(1*x^1+1*x^2+3*y^2)*(1)", Notation::Infix, style).unwrap();
    assert_eq!(print(&state, Notation::Infix, style), "(1*x1^1+1*x1^2+3*x2^2)*(1)");
    assert_eq!(parse(&print(&state, Notation::Prefix, style), Notation::Prefix, style), Ok(state));
}

#[test]
fn the_caret_points() {
    let error = parse("(x+1)^2", Notation::Infix, Style::default()).unwrap_err();
    assert_eq!(
        error.caret("(x+1)^2"),
        "(x+1)^2\n     ^ a parenthesis cannot be raised to a power: write the factor several times"
    );
}

#[test]
fn latex_output() {
    let state = parse("(2*x2^2)*(3*x2^1+4)", Notation::Infix, Style::default()).unwrap();
    assert_eq!(latex(&state, Style::default()), r"\left(2 x_{2}^{2}\right) \left(3 x_{2}^{1} + 4\right)");
}

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

use super::tree::{Atom, Base, TypedSum};
use super::*;
use crate::notation::{self, Notation};

/// Each line is what is typed, ` => `, and either the strict text or, in brackets, the place and a part of the sentence.
fn all_hold(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (typed, expected) = line.split_once(" => ").expect(line);
        match (read(typed), expected.strip_prefix('[').and_then(|e| e.split_once("] "))) {
            (Ok(read), None) => assert_eq!(read.text(), expected, "{typed}"),
            (Err(error), Some((place, sentence))) => {
                assert_eq!(format!("{:?}", error.span), place, "{}", error.caret(typed));
                assert!(error.to_string().contains(sentence), "{}", error.caret(typed));
            }
            (Ok(read), Some(_)) => panic!("{typed} is read as {}", read.text()),
            (Err(error), None) => panic!("{}", error.caret(typed)),
        }
    }
}

fn complains(typed: &str, at: Range<usize>, sentence: &str) {
    all_hold(&format!("{typed} => [{at:?}] {sentence}"));
}

#[test]
fn terms_gather_numbers_and_powers_side_by_side() {
    all_hold(
        "
        2x y => 2*x1*x2
        y*x*2 => 2*x1*x2
        2*3*x => (2)*(3*x1)
        x*y*x => (x1*x2)*(x1)
        2*x*x^0 => 2*x1
        2x(3)*4y => (2*x1)*(3)*(4*x2)
        ",
    );
}

#[test]
fn a_minus_goes_into_the_term_behind_it_or_becomes_a_factor() {
    all_hold(
        "
        -2x(x-3)+(4x) => (-2*x1)*(x1-3)+(4*x1)
        (x)-y(x) => (x1)+(-x2)*(x1)
        x*-y*-2 => 2*x1*x2
        -(2x)(x) => (-1)*(2*x1)*(x1)
        (x)*-(y) => (x1)*(-1)*(x2)
        -2^2*x => (-1)*(2)*(2)*(x1)
        (-(x))*(2) => (-1)*(x1)*(2)
        (1-(x))*(2) => (1-x1)*(2)
        ",
    );
}

#[test]
fn a_power_repeats_its_factor() {
    all_hold(
        "
        (x-1)^3 => (x1-1)*(x1-1)*(x1-1)
        2(x y)^2 => (2)*(x1*x2)*(x1*x2)
        (x+1)^0+(y+1)^1 => (1)+(x2+1)
        ((x+1)^2*y)^2 => (x1+1)*(x1+1)*(x2)*(x1+1)*(x1+1)*(x2)
        ",
    );
}

#[test]
fn inner_sums_are_distributed_over_and_not_expanded() {
    all_hold(
        "
        2(3(x+1)+y) => (2)*(3)*(x1+1)+(2)*(x2)
        ((x+1)+(y+1))*((x+2)+3) => (x1+1)*(x1+2)+(x1+1)*(3)+(x2+1)*(x1+2)+(x2+1)*(3)
        x-(2(x+1)-y) => (x1)+(-1)*(2)*(x1+1)+(-1)*(-x2)
        ((x+1)^2+1)^2 => (x1+1)*(x1+1)*(x1+1)*(x1+1)+(x1+1)*(x1+1)*(1)+(1)*(x1+1)*(x1+1)+(1)*(1)
        ",
    );
}

#[test]
fn a_sum_of_products_of_numbers_and_variables_is_one_factor() {
    all_hold(
        "
        (2*3*x*x-y*(-2)+(2x)^2)*(x) => (6*x1^2+2*x2+4*x1^2)*(x1)
        (x^1*x+y^1)*(2) => (x1^2+x2^1)*(2)
        (4000000000*4000000000+1)*x => [12..22] multiply to more than fits
        ((2)^64+1)*x => [1..7] multiply to more than fits
        (x^200*x^200+1)*x => [7..12] 255
        ((x^2)^18446744073709551615+1)*x => [1..27] 255
        ((-1)^18446744073709551615+x)*y => (-1+x1)*(x2)
        ((-1)^18446744073709551614+x)*y => (1+x1)*(x2)
        ",
    );
}

#[test]
fn zero_is_a_whole_factor() {
    all_hold(
        "
        0 => 0
        -0 => 0
        0x => (0)*(x1)
        2*0*3 => (2)*(0)*(3)
        x-0 => (x1)+(0)
        (0*x+1)*(y) => (0)*(x1)*(x2)+(1)*(x2)
        ",
    );
}

#[test]
fn coefficients_are_signed_64_bit_numbers() {
    all_hold(
        "
        9223372036854775807 => 9223372036854775807
        -9223372036854775808 => -9223372036854775808
        x+9223372036854775808 => [2..21] does not fit
        9223372036854775808^2 => [0..21] does not fit
        x+99999999999999999999 => [2..22] does not fit
        [9223372036854775807*9]*x => [0..23] multiply to more than fits
        ",
    );
}

#[test]
fn names_keep_their_numbers_or_are_sorted() {
    let variables = |typed: &str| {
        let names = read(typed).unwrap().names().clone();
        (0..8).filter_map(|v| names.get(v).map(|n| format!("{n}=x{}", v + 1))).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(variables("x8+x_3"), "x3=x3 x8=x8");
    assert_eq!(variables("z+y"), "y=x1 z=x2");
    assert_eq!(variables("x9+x8+x10"), "x8=x1 x9=x2 x10=x3");
    assert_eq!(variables("b+B+a+α_2"), "a=x1 B=x2 b=x3 α2=x4");
    assert_eq!(variables("x1+y"), "x1=x1 y=x2");
    assert_eq!(variables("x01+x₂"), "x1=x1 x2=x2");
    complains("y1*x+x_2", 5..8, "`x2` stands beside `x`");
    complains("x10000", 0..6, "index");
    complains("\\left x", 0..5, "\\left(");
}

#[test]
fn texts_are_renamed() {
    let typed = read("t2 + t10").unwrap();
    assert_eq!(typed.names().rename("(3*x1^2-x2)*(x1)+(x8)"), "(3*t2^2-t10)*(t2)+(x8)");
}

#[test]
fn only_spelling_is_not_rewriting() {
    for typed in ["2x²y", "(x+1)(y-2)", "$x_1 \\cdot x_{2}$", "( x1 + 3 ) * ( 2 )", "-a^2+1", "3 × k"] {
        assert!(!read(typed).unwrap().rewritten(), "{typed}");
    }
    for typed in ["2(x+1)", "x+x", "(x+1)^2", "--x", "x^0", "y x", "((x))", "+x", "x+0"] {
        assert!(read(typed).unwrap().rewritten(), "{typed}");
    }
}

#[test]
fn the_style_decides_about_order_and_ones() {
    let grlex = Style { order: crate::TermOrder::Grlex, ..Style::default() };
    assert_eq!(read("x^2*y+y^3").unwrap().text(), "(x1^2*x2+x2^3)");
    assert_eq!(read_in("x^2*y+y^3", grlex).unwrap().text(), "x1^2*x2+x2^3");
    let ones = Style { ones: true, ..Style::default() };
    assert_eq!(read_in("(-1x^1+1y)(1)", ones).unwrap().text(), "(-1*x1^1+1*x2^1)*(1)");
    assert_eq!(read("(-1x^1+1y)(1)").unwrap().text(), "(-x1^1+x2)*(1)");
}

#[test]
fn the_state_is_the_strict_parsers() {
    for typed in ["(x+1)(x+2)", "2(x^1+3)^2", "x+x", "3*x^2-1", "([2*3-4*-2]*x1+1)*(x1)", "-x(0)", "0", "-[3*-2]x"] {
        let typed = read(typed).unwrap();
        let strict = notation::parse(&typed.text(), Notation::Infix, Style::default());
        assert_eq!(strict.as_ref(), Ok(typed.state()), "{}", typed.text());
    }
}

#[test]
fn sizes_are_counted_before_anything_is_built() {
    all_hold(&format!("(x)^32 => {}", ["(x1)"; 32].join("*")));
    complains("x+(x)^33", 2..8, "33 factors");
    complains("(x)^16(y)^17", 0..12, "33 factors");
    complains("((x+1)^9999)^9999", 1..11, "9999 factors");
    complains("((x(y+1)+1)^2+1)^4", 0..18, "625 products");
    complains("(10000000x-y^12)^(32)", 0..21, "575 tokens");
    let sum = |first: &str, n: usize| format!("({first}{})", "+1".repeat(n - 1));
    assert_eq!(read(&vec!["(x)"; 32].join("+")).unwrap().text().len(), 32 * 5 - 1);
    complains(&vec!["(x)"; 33].join("+"), 0..131, "33 products");
    assert_eq!(read(&sum("1", 255)).unwrap().text().len(), 511);
    complains(&sum("10", 255), 0..512, "512 tokens");
    complains(&sum("1", 256)[1..512], 0..511, "513 tokens");
}

#[test]
fn towers_and_depth_are_refused_at_once() {
    let tower = (0..20).fold("x(y+1)+1".to_owned(), |inner, _| format!("({inner})^9+1"));
    assert!(matches!(read(&tower).unwrap_err().problem, TypedProblem::Products(_) | TypedProblem::Factors(_)));
    let nested = |depth: usize| format!("{}x{}", "(".repeat(depth), ")".repeat(depth));
    all_hold(&format!("{} => (x1)", nested(MAX_DEPTH)));
    all_hold(&format!("{side} => {side}", side = vec!["(x1)*(x1)*(x1)"; 30].join("+")));
    complains(&nested(MAX_DEPTH + 1), MAX_DEPTH..MAX_DEPTH + 1, "64 deep");
    complains(&"(".repeat(4000), MAX_DEPTH..MAX_DEPTH + 1, "64 deep");
    complains(&"x+".repeat(MAX_SYMBOLS), MAX_SYMBOLS..MAX_SYMBOLS + 1, "too long");
    all_hold(&format!("{}x => x1", "-".repeat(4000)));
}

#[test]
fn nothing_typed_is_said_so() {
    for typed in ["", "  ", "$$", "$ $", "\\(\\)"] {
        assert_eq!(read(typed).unwrap_err().problem, TypedProblem::Empty, "{typed}");
    }
}

#[test]
fn the_caret_points() {
    let caret = |typed: &str| read(typed).unwrap_err().caret(typed);
    assert!(caret("α² + π").starts_with("α² + π\n     ^ `π` is not"), "{}", caret("α² + π"));
    assert!(caret("x\n+sin(y)").starts_with("x +sin(y)\n   ^^^ `sin`"), "{}", caret("x\n+sin(y)"));
}

/// Coefficients by the exponents of x1 to x8.
type Value = BTreeMap<[u64; 8], i128>;

fn multiply(a: &Value, b: &Value) -> Value {
    let mut product = Value::new();
    for (left, c) in a {
        for (right, d) in b {
            let exponents = std::array::from_fn(|i| left[i] + right[i]);
            let sum = product.entry(exponents).or_default();
            *sum = c.wrapping_mul(*d).wrapping_add(*sum);
        }
    }
    product
}

/// The value of what was typed, straight from the tree and without any rewriting.
fn value_of_tree(sum: &TypedSum) -> Value {
    let number = |n: i128| Value::from([([0; 8], n)]);
    let base = |atom: &Atom| match &atom.base {
        Base::Number(n) => number((*n).into()),
        Base::Variable(v) => Value::from([(std::array::from_fn(|i| u64::from(i == *v)), 1)]),
        Base::Parentheses(sum) | Base::Brackets(sum) => value_of_tree(sum),
    };
    let mut total = Value::new();
    for product in sum {
        let mut value = number(1);
        for atom in &product.atoms {
            let base = base(atom);
            value = multiply(&value, &number(if atom.negative { -1 } else { 1 }));
            value = (0..atom.exponent.unwrap_or(1)).fold(value, |power, _| multiply(&power, &base));
        }
        for (exponents, coeff) in value {
            let sum = total.entry(exponents).or_default();
            *sum = coeff.wrapping_add(*sum);
        }
    }
    total.retain(|_, coeff| *coeff != 0);
    total
}

fn tree(text: &str) -> TypedSum {
    let symbols = symbol::symbols(text).unwrap();
    tree::parse(text, &symbols, &Names::of(&symbols).unwrap()).unwrap()
}

/// The strict text of a state has the value of what was typed.
fn keeps_the_value(typed: &str) -> Result<(), TestCaseError> {
    if let Ok(read) = read(typed) {
        // The strict text is in x1 to x8, so its names keep their numbers.
        prop_assert_eq!(value_of_tree(&tree(&read.text())), value_of_tree(&tree(typed)), "{}", typed);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn rewriting_keeps_the_value(
        typed in r"(-?[1-9x-z]|\^[0-3]|\(|\)|[-+*]|\([x1]-y\)|[0-9]){1,16}",
        sum in "(-?[2x-z]?[(][(]?[x-z1][+-][1-9]?y[)]{1,2}([(][x-z][+-][1-9]{1,2}[)]|\\^[0-3])?[+]?){1,4}",
    ) {
        keeps_the_value(&typed)?;
        keeps_the_value(sum.trim_end_matches('+'))?;
    }
}

#[test]
fn latex_has_the_names_of_the_user() {
    let typed = read("x7^2*y_1 + a").unwrap();
    assert_eq!(typed.names().rename_latex("x_{1} + x_{2}^{2} x_{3} + x_{4}"), "a + x_{7}^{2} y_{1} + x_{4}");
}

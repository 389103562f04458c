use super::*;
use crate::token::encode;

fn writing(granularity: &str) -> Writing {
    Writing { granularity: granularity.parse().unwrap(), ..Writing::default() }
}

fn says(before: &str, proposed: &str, verdict: Verdict, sentence: &str) {
    let writing = Writing::default();
    let check = writing.check(&writing.parse(before).unwrap(), proposed).unwrap();
    assert_eq!((check.verdict, check.why.to_string().as_str()), (verdict, sentence));
}

#[test]
fn right_steps() {
    let right = "Right: this is the expected facstep.";
    says("(2*x)*(x^1+1)+(3)", "(2*x1)*(x1+1)+(3)", Verdict::Exact, right);
    says("(2)+(3)", "5", Verdict::Exact, "Right: this is the expected sumstep.");
}

#[test]
fn wrong_values_name_the_term() {
    let wrong = |before, proposed, sentence| says(before, proposed, Verdict::WrongValue, sentence);
    wrong(
        "(3*x+4)*(x+5)+(1)",
        "(3*x^2+18*x+20)+(1)",
        "In the mulstep of product 1, the coefficient of x1 should be 19, not 18.",
    );
    wrong("(3*x+4)*(x+5)+(1)", "(3*x^2+20)+(1)", "In the mulstep of product 1, the term 19*x1 is missing.");
    wrong(
        "(3*x+4)+(x+5)",
        "4*x+8",
        "In the sumstep of all products, the polynomial became another one: the constant should be 9, not 8.",
    );
    wrong(
        "(x^1)*(2)+(3)",
        "(x)*(2)+(4)",
        "In the facstep of product 1, product 2 was changed too, and wrongly: it should have been copied.",
    );
    wrong(
        "(2)*(x^1+x^1)+(3)",
        "(2)*(3*x)+(3)",
        "In the facstep of product 1, in factor 2, the coefficient of x1 should be 2, not 3.",
    );
}

#[test]
fn signs_are_named() {
    let wrong = |before, proposed, sentence| says(before, proposed, Verdict::WrongValue, sentence);
    wrong(
        "(2*x-3)*(x+5)+(1)",
        "(2*x^2+7*x+15)+(1)",
        "In the mulstep of product 1, the constant should be -15, not 15.",
    );
    wrong("(x-1)*(x+1)+(x)", "(x^2+x-1)+(x)", "In the mulstep of product 1, the term x1 should not be there.");
    wrong("(x-1)*(-x+3)+(x)", "(-x^2-3)+(x)", "In the mulstep of product 1, the term 4*x1 is missing.");
    wrong(
        "(x)+(-x)",
        "2*x",
        "In the sumstep of all products, the polynomial became another one: the term 2*x1 should not be there.",
    );
    says("(x)+(-x)", "0", Verdict::Exact, "Right: this is the expected sumstep.");
    let copied = "Nothing was done: the line is a copy, but the mulstep of product 1 comes next.";
    says("(0)*(x-1)+(2)", "(0)*(x-1)+(2)", Verdict::SameValue, copied);
    let end = |output| explained(Setting::Endpoint, StepKind::Endpoint, "(x1)*(-2)+(3)", "-2*x1+3", output);
    assert_eq!(end("2*x1+3"), "Another polynomial: 2*x1 should be -2*x1.");
    assert_eq!(end("0"), "Another polynomial: -2*x1 is missing, and one more term is wrong.");
    let calculator = |output| {
        let (input, target) = ("(x1+1)*(x1-1)", "x1^2+[-1+1]*x1-1");
        let writing = Writing { setting: Setting::Calculator, ..Writing::default() };
        writing.judge_text(StepKind::Mulstep, target, output).verdict.exact()
            && explained(Setting::Calculator, StepKind::Mulstep, input, target, output).starts_with("Right")
    };
    assert!(calculator("x1^2+[1+-1]*x1-1") && calculator("x1^2-1") && !calculator("x1^2+[1+1]*x1-1"));
}

/// Products and factors are compared by value: one that only stands elsewhere is not called wrong.
#[test]
fn a_permutation_is_not_a_difference() {
    let wrong = |before, proposed, sentence| says(before, proposed, Verdict::WrongValue, sentence);
    wrong(
        "(2)*(x^1)+(3)*(x)+(5)",
        "(2)*(x)+(5)+(4)*(x)",
        "In the facstep of product 1, product 2 was changed too, and wrongly: it should have been copied.",
    );
    wrong(
        "(2)*(x^1+x^1)+(3)",
        "(3*x)*(2)+(3)",
        "In the facstep of product 1, in factor 2, the coefficient of x1 should be 2, not 3.",
    );
    says(
        "(2)*(x^1)+(3)",
        "(3)+(2)*(x)",
        Verdict::SameValue,
        "The same polynomial, but the facstep of product 1 leaves its products in another order: \
         expected (2)*(x1)+(3).",
    );
}

#[test]
fn right_values_but_not_the_step() {
    let same = |before, proposed, sentence| says(before, proposed, Verdict::SameValue, sentence);
    let start = "(x^1)*(2)+(x^1)*(3)";
    same(start, start, "Nothing was done: the line is a copy, but the facstep of product 1 comes next.");
    same(
        start,
        "(x)*(2)+(x)*(3)",
        "The same polynomial, but 2 steps at once: the facstep of product 1 comes next, alone.",
    );
    same(
        start,
        "(x^1)*(2)+(x)*(3)",
        "The same polynomial, but product 2 was rewritten: the facstep of product 1 comes first.",
    );
    same(
        "(x+1)+(2)",
        "3+x",
        "The same polynomial, but not written as the sumstep of all products writes it: expected x1+3.",
    );
    same("5", "5", "The proof was already finished: there is nothing left to simplify.");
}

#[test]
fn steps_are_named_by_what_they_rewrite() {
    let name = |granularity: &str, before: &str| {
        let writing = writing(granularity);
        let copied = writing.check(&writing.parse(before).unwrap(), before).unwrap().why;
        let Explanation::Copied(step) = copied else { panic!("{copied}") };
        step.to_string()
    };
    assert_eq!(name("coarse", "(x^1)*(2)"), "the facstep of product 1");
    assert_eq!(name("fine", "(2)*(x^1)"), "the facstep of factor 2 of product 1");
    assert_eq!(name("fac=term", "(2)*(x^1)"), "the facstep of the next term of factor 2 of product 1");
    assert_eq!(name("fine", "(1)+(2)*(3)*(4)"), "the mulstep of the two leftmost factors of product 2");
    assert_eq!(name("fine", "(1)+(2)+(3)"), "the sumstep of products 1 and 2");
    assert_eq!(name("fine", "(1)+(2)"), "the sumstep of all products");
}

#[test]
fn malformed_steps_say_where() {
    let sentence = "It cannot be read: `+`, `*` or `)` expected";
    let writing = Writing::default();
    let check = writing.check(&writing.parse("(x)*(2)+(3)").unwrap(), "(2*x+(3)").unwrap();
    let Explanation::Unreadable(error, character) = check.why else { panic!("{sentence}") };
    assert_eq!((check.verdict, error.span, character), (Verdict::Malformed, 5..6, 6));
}

fn explained(setting: Setting, kind: StepKind, input: &str, target: &str, output: &str) -> String {
    Writing { setting, ..Writing::default() }.explain(kind, input, target, Some(output)).to_string()
}

#[test]
fn plain_and_calculator_steps_are_checked() {
    let input = "(3*x1+4)*(x1+5)+(1)";
    let wanted = "In the mulstep of product 1, the coefficient of x1 should be 19, not 18.";
    let target = "(3*x1^2+19*x1+20)+(1)";
    let plain = |output| explained(Setting::Plain, StepKind::Mulstep, input, target, output);
    assert_eq!(plain("(3*x1^2+18*x1+20)+(1)"), wanted);
    assert_eq!(plain(target), "Right: this is the expected mulstep.");
    assert!(plain("(3*x1^2+[3*5+4]*x1+[4*5])+(1)").contains("bracket"));
    assert_eq!(
        plain("(3*x^2+19*x+20)+(1)"),
        "It is not written as the language writes it. Expected (3*x1^2+19*x1+20)+(1)."
    );
    let target = "(3*x1^2+[3*5+4]*x1+[4*5])+(1)";
    let calculator = |output| explained(Setting::Calculator, StepKind::Mulstep, input, target, output);
    assert_eq!(calculator("(3*x1^2+[3*5+3]*x1+[4*5])+(1)"), wanted);
}

#[test]
fn annotations_are_explained() {
    let (s, marked) = ("MARK $ (2)*(x1)+(3)", "MUL $ #(2)*(x1)#+(3)");
    let mark = |output| explained(Setting::Annotated, StepKind::Markstep, s, marked, output);
    assert_eq!(mark("SUM $ #(2)*(x1)+(3)#"), "What comes next is MUL, not SUM.");
    assert_eq!(mark("MUL $ (2)*(x1)+#(3)#"), "The next step is MUL, but another operand is marked.");
    assert_eq!(mark("MUL $ #(2)*(x1)#+(4)"), "The state was changed, but a markstep only marks.");
    assert_eq!(mark("MUL $ #(2)*(x1)#+(3"), "It cannot be read: without its marks it is no state.");
    assert!(mark("(2)*(x1)+(3)").starts_with("It has no tag: an annotated state begins with MARK $, "));
    let operation = |output| explained(Setting::Annotated, StepKind::Mulstep, marked, "MARK $ (2*x1)+(3)", output);
    assert_eq!(
        operation("MARK $ (3*x1)+(3)"),
        "In the mulstep of product 1, the coefficient of x1 should be 2, not 3."
    );
    assert_eq!(operation("SUM $ (2*x1)+(3)"), "The state is right, but it should be tagged MARK and carry no mark.");
}

#[test]
fn endpoints_and_arithmetic_are_explained() {
    let end = |output| explained(Setting::Endpoint, StepKind::Endpoint, "(x1)*(2)+(3)", "2*x1+3", output);
    assert_eq!(end("4*x1+3"), "Another polynomial: 4*x1 should be 2*x1.");
    assert_eq!(end("4*x1^2"), "Another polynomial: 2*x1 is missing, and one more term is wrong.");
    assert_eq!(end("2*x1+3+1*x1^7"), "It has terms that should not be there.");
    assert!(end("2*x1+").starts_with("It cannot be read: "));
    let add = |output| explained(Setting::Arithmetic, StepKind::Add, "1234+5678", "6912", output);
    assert_eq!(add("6913"), "One digit is wrong: expected 6912.");
    assert_eq!(add("7013"), "3 of 4 digits are wrong: expected 6912.");
    assert_eq!(add("691"), "The result has 4 digits, not 3: expected 6912.");
    assert_eq!(add("6+912"), "It is not written as a number: expected 6912.");
    assert!(Writing::default().explain(StepKind::Add, "", "", None).to_string().starts_with("There is no answer"));
}

#[test]
fn a_model_is_checked_against_what_its_input_asks_for() {
    let checked = |setting, input: &str, output: &str| {
        let writing = Writing { setting, ..Writing::default() };
        writing.check_line(&encode(input).unwrap(), &encode(output).unwrap())
    };
    let right = checked(Setting::Annotated, "MARK $ (2)*(x1)+(3)", "MUL $ #(2)*(x1)#+(3)");
    assert_eq!((right.verdict, right.expected), (Verdict::Exact, Some(StepKind::Markstep)));
    let lost = checked(Setting::Annotated, "MUL $ (2)*(x1)+#(3)#", "MARK $ (2*x1)+(3)");
    assert_eq!((lost.verdict, lost.why), (Verdict::WrongValue, Explanation::NotAsked));
    let same = checked(Setting::Endpoint, "(2)*(x1)+(3)", "(2*x1)+(3)");
    assert_eq!((same.verdict, same.why), (Verdict::SameValue, Explanation::NotSimplified));
}

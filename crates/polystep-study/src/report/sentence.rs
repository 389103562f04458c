//! What is wrong with an answer, in one sentence: the core's checker, made to fit every setting.
//!
//! The checker speaks about plain states. Brackets are evaluated by its parser; an annotation's tag and marks are taken off
//! first and spoken about here; the one-shot endpoint and the arithmetic probe have no step that could be named.

use polystep_core::judge::untagged;
use polystep_core::notation::{parse, print};
use polystep_core::{Check, Granularity, Notation, Poly, Setting, State, StepKind, check_step, token};

use crate::predictions::Prediction;
use crate::score::Scoring;

/// Why `output` is not the target of the prediction.
pub fn explain(prediction: &Prediction, output: Option<&str>, scoring: &Scoring, granularity: Granularity) -> String {
    let Some(output) = output else {
        return "There is no answer: the input is too long for the model, or its output never came to an end."
            .to_owned();
    };
    match scoring.setting {
        Setting::Arithmetic => arithmetic(&prediction.target, output),
        Setting::Endpoint => endpoint(&prediction.target, output, scoring),
        Setting::Annotated => annotated(prediction, output, scoring, granularity),
        Setting::Plain if output.contains('[') => {
            "It leaves a bracket open, which only a calculator's proof may.".to_owned()
        }
        Setting::Plain | Setting::Calculator => step(&prediction.input, output, scoring, granularity),
    }
}

fn step(input: &str, output: &str, scoring: &Scoring, granularity: Granularity) -> String {
    let checked = parse(input, scoring.notation, scoring.style)
        .map_err(|e| format!("The input itself cannot be read: {e}."))
        .and_then(|before| {
            check_step(&before, output, granularity, scoring.notation, scoring.style)
                .map_err(|e| format!("It cannot be checked: {e}."))
        });
    match checked {
        Ok(Check { error: Some(error), .. }) => {
            let at = output.get(..error.span.start).map_or(0, |before| before.chars().count());
            format!("It cannot be read: {error} (character {}).", at + 1)
        }
        Ok(check) => check.sentence,
        Err(sentence) => sentence,
    }
}

fn arithmetic(target: &str, output: &str) -> String {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<Vec<_>>();
    let (wanted, found) = (digits(target), digits(output));
    if wanted.len() != found.len() {
        return format!("The result has {} digits, not {}.", wanted.len(), found.len());
    }
    match wanted.iter().zip(&found).filter(|(a, b)| a != b).count() {
        0 => "It is not written as a number.".to_owned(),
        1 => "One digit is wrong.".to_owned(),
        n => format!("{n} of {} digits are wrong.", wanted.len()),
    }
}

fn endpoint(target: &str, output: &str, scoring: &Scoring) -> String {
    let read = |text: &str| parse(text, scoring.notation, scoring.style);
    let (wanted, found) = match (read(target), read(output)) {
        (Ok(wanted), Ok(found)) => (wanted, found),
        (_, Err(e)) => return format!("It cannot be read: {e}."),
        (Err(e), _) => return format!("The target itself cannot be read: {e}."),
    };
    match (wanted.value(scoring.style.order), found.value(scoring.style.order)) {
        (Ok(a), Ok(b)) if a == b && found.is_endpoint() => {
            "The right polynomial, but its terms are not in order.".to_owned()
        }
        (Ok(a), Ok(b)) if a == b => "The right polynomial, but it is not simplified to the end.".to_owned(),
        (Ok(a), Ok(b)) => difference(&a, &b, scoring),
        (_, Err(e)) | (Err(e), _) => format!("It cannot be checked: {e}."),
    }
}

/// How many terms are wrong, and the first of them.
fn difference(wanted: &Poly, found: &Poly, scoring: &Scoring) -> String {
    let missing: Vec<_> = wanted.terms().iter().filter(|t| !found.terms().contains(t)).collect();
    let Some(&&(coeff, monomial)) = missing.first() else {
        return "It has terms that should not be there.".to_owned();
    };
    let name = |c: u64| {
        let term = Poly::collect([(c, monomial)], scoring.style.order).unwrap_or_default();
        print(&State::Bare(term), Notation::Infix, scoring.style)
    };
    let first = match found.terms().iter().find(|t| t.1 == monomial) {
        Some(&(instead, _)) => format!("{} should be {}", name(instead), name(coeff)),
        None => format!("{} is missing", name(coeff)),
    };
    match missing.len() {
        1 => format!("Another polynomial: {first}."),
        2 => format!("Another polynomial: {first}, and one more term is wrong."),
        n => format!("Another polynomial: {first}, and {} more terms are wrong.", n - 1),
    }
}

fn annotated(prediction: &Prediction, output: &str, scoring: &Scoring, granularity: Granularity) -> String {
    let read = |text: &str| {
        let tokens = token::encode(text).ok()?;
        let state = token::decode(&untagged(&tokens)?, Notation::Infix);
        Some((token::name(tokens[0]), state))
    };
    let (Some((wanted_tag, wanted)), Some((tag, state))) = (read(&prediction.target), read(output)) else {
        return "It has no tag: an annotated state begins with MARK $, FAC $, MUL $, SUM $ or END $.".to_owned();
    };
    let same_state = state == wanted;
    match prediction.kind {
        StepKind::Markstep if parse(&state, Notation::Infix, scoring.style).is_err() => {
            "It cannot be read: without its marks it is no state.".to_owned()
        }
        StepKind::Markstep if !same_state => "The state was changed, but a markstep only marks.".to_owned(),
        StepKind::Markstep if tag != wanted_tag => {
            format!("What comes next is {wanted_tag}, not {tag}.")
        }
        StepKind::Markstep => {
            format!("The next step is {wanted_tag}, but another operand is marked.")
        }
        _ if same_state => {
            format!("The state is right, but it should be tagged {wanted_tag} and carry no mark.")
        }
        _ => match read(&prediction.input) {
            Some((_, before)) => step(&before, &state, scoring, granularity),
            None => "The input itself has no tag.".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(setting: Setting, kind: StepKind, input: &str, target: &str, output: &str) -> String {
        let prediction = Prediction {
            proof: "p".into(),
            step: 0,
            kind,
            input: input.into(),
            target: target.into(),
            beams: Vec::new(),
        };
        explain(&prediction, Some(output), &Scoring { setting, ..Scoring::default() }, Granularity::COARSE)
    }

    #[test]
    fn plain_and_calculator_steps_are_the_checkers() {
        let input = "(3*x1+4)*(x1+5)+(1)";
        let wanted = "In the mulstep of product 1, the coefficient of x1 should be 19, not 18.";
        assert_eq!(
            says(Setting::Plain, StepKind::Mulstep, input, "(3*x1^2+19*x1+20)+(1)", "(3*x1^2+18*x1+20)+(1)"),
            wanted
        );
        let target = "(3*x1^2+[3*5+4]*x1+[4*5])+(1)";
        assert_eq!(
            says(Setting::Calculator, StepKind::Mulstep, input, target, "(3*x1^2+[3*5+3]*x1+[4*5])+(1)"),
            wanted
        );
        assert!(says(Setting::Plain, StepKind::Mulstep, input, target, target).contains("bracket"));
    }

    #[test]
    fn annotations_are_explained() {
        let (s, marked) = ("MARK $ (2)*(x1)+(3)", "MUL $ #(2)*(x1)#+(3)");
        let mark = |output| says(Setting::Annotated, StepKind::Markstep, s, marked, output);
        assert_eq!(mark("SUM $ #(2)*(x1)+(3)#"), "What comes next is MUL, not SUM.");
        assert_eq!(mark("MUL $ (2)*(x1)+#(3)#"), "The next step is MUL, but another operand is marked.");
        assert_eq!(mark("MUL $ #(2)*(x1)#+(4)"), "The state was changed, but a markstep only marks.");
        assert_eq!(mark("MUL $ #(2)*(x1)#+(3"), "It cannot be read: without its marks it is no state.");
        assert!(mark("(2)*(x1)+(3)").starts_with("It has no tag"));
        let operation = |output| says(Setting::Annotated, StepKind::Mulstep, marked, "MARK $ (2*x1)+(3)", output);
        assert_eq!(
            operation("MARK $ (3*x1)+(3)"),
            "In the mulstep of product 1, the coefficient of x1 should be 2, not 3."
        );
        assert_eq!(
            operation("SUM $ (2*x1)+(3)"),
            "The state is right, but it should be tagged MARK and carry no mark."
        );
    }

    #[test]
    fn endpoints_and_arithmetic_are_explained() {
        let end = |output| says(Setting::Endpoint, StepKind::Endpoint, "(x1)*(2)+(3)", "2*x1+3", output);
        assert_eq!(end("4*x1+3"), "Another polynomial: 4*x1 should be 2*x1.");
        assert_eq!(end("4*x1^2"), "Another polynomial: 2*x1 is missing, and one more term is wrong.");
        assert_eq!(end("2*x1+3+1*x1^7"), "It has terms that should not be there.");
        assert!(end("2*x1+").starts_with("It cannot be read: "));
        let add = |output| says(Setting::Arithmetic, StepKind::Add, "1234+5678", "6912", output);
        assert_eq!(add("6913"), "One digit is wrong.");
        assert_eq!(add("691"), "The result has 4 digits, not 3.");
    }
}

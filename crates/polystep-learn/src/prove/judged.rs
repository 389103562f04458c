//! The lines of a model that works alone, judged against the start's value and the exact proof.
//!
//! A line is never judged against the model's own line before it: a step that is right in itself does not make a false line
//! true. A line that has the start's value but is not the next one of the exact proof is right, only written another way.

use polystep_core::writing::Line;
use polystep_core::{Check, Explanation, Poly, Proof, Verdict, Writing};
use polystep_record::Stop;

use crate::decode::RecursiveProof;

/// What is said of a line that has the right value.
pub const ANOTHER_WAY: &str = "the same value, written another way";

/// What is said of a line with another value, if no more is known.
const ANOTHER_VALUE: &str = "Not the value of the start.";

/// A judged line.
pub struct JudgedLine {
    /// How it turned out.
    pub verdict: Verdict,
    /// Why.
    pub sentence: String,
}

/// A judged proof.
pub struct JudgedProof {
    /// Every line.
    pub lines: Vec<JudgedLine>,
    /// Whether it ends in the endpoint of the start.
    pub right: bool,
}

/// Judges what a model wrote against the exact proof and the value of its start.
pub fn judge(writing: &Writing, exact: &Proof, value: &Poly, walked: &RecursiveProof) -> JudgedProof {
    let lines: Vec<Line> = writing.lines(exact).collect();
    let has_value = |tokens: &[u8]| {
        let state = writing.state(tokens)?;
        Some(state.value(writing.style.order).is_ok_and(|found| found == *value))
    };
    let mut judged: Vec<JudgedLine> = Vec::new();
    // How many lines of the exact proof have been reached.
    let mut reached = 0;
    for (i, state) in walked.states.iter().enumerate() {
        let input = if i == 0 { &lines[0].input } else { &walked.states[i - 1] };
        let cut = walked.stop == Stop::Malformed && i + 1 == walked.states.len();
        let check = || writing.check_line(input, state);
        let (verdict, sentence) = match has_value(state).filter(|_| !cut) {
            None => (Verdict::Malformed, unreadable(check())),
            Some(true) => match lines[reached..].iter().position(|line| state_of(line) == state) {
                Some(0) => {
                    reached += 1;
                    (Verdict::Exact, Explanation::Right(lines[reached - 1].kind).to_string())
                }
                ahead => {
                    reached += ahead.map_or(0, |n| n + 1);
                    (Verdict::SameValue, format!("{}.", capitalised(ANOTHER_WAY)))
                }
            },
            Some(false) => {
                // Where the input has the right value, the checker knows what went wrong in this line.
                let known = Some(check()).filter(|c| c.verdict == Verdict::WrongValue && c.expected.is_some());
                let sentence = known.filter(|_| has_value(input) == Some(true)).map(|c| c.why.to_string());
                (Verdict::WrongValue, sentence.unwrap_or_else(|| ANOTHER_VALUE.to_owned()))
            }
        };
        judged.push(JudgedLine { verdict, sentence });
    }
    let ends = |tokens: &Vec<u8>| writing.state(tokens).is_some_and(|state| state.is_endpoint());
    let right = walked.stop == Stop::End
        && walked.states.last().is_some_and(|last| ends(last) && has_value(last) == Some(true));
    JudgedProof { lines: judged, right }
}

/// The state that a line of the exact proof leads to, as tokens.
fn state_of(line: &Line) -> &Vec<u8> {
    line.next.as_ref().unwrap_or(&line.target)
}

fn unreadable(check: Check) -> String {
    // An output that was cut at the length limit may look readable.
    let why = if check.verdict == Verdict::Malformed { check.why } else { Explanation::NoAnswer };
    why.to_string()
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_core::{Notation, Setting, notation, token};

    /// The verdicts on lines that a model might have written, and whether its answer is right.
    fn judged(setting: Setting, start: &str, written: &[&str], stop: Stop) -> (Vec<Verdict>, bool) {
        let writing = Writing { setting, ..Writing::default() };
        let start = notation::parse(start, Notation::Infix, writing.style).unwrap();
        let (exact, value) = (writing.proof(&start).unwrap(), start.value(writing.style.order).unwrap());
        let states: Vec<Vec<u8>> = written.iter().map(|text| token::encode(text).unwrap()).collect();
        let walked = RecursiveProof { outputs: states.clone(), states, logprobs: Vec::new(), stop };
        let judged = judge(&writing, &exact, &value, &walked);
        (judged.lines.iter().map(|line| line.verdict).collect(), judged.right)
    }

    use Verdict::{Exact, Malformed, SameValue, WrongValue};

    #[test]
    fn another_form_is_not_wrong() {
        let lines = ["(x1^2+3*x1+2)", "x1^2+3*x1+2"];
        let found = judged(Setting::Plain, "(x1+1)*(x1+2)", &lines, Stop::End);
        assert_eq!(found, (vec![SameValue, Exact], true));
        // Two steps at once, and then the exact proof goes on.
        let lines = ["(6*x1)+(12)", "6*x1+12"];
        let found = judged(Setting::Plain, "(2*x1)*(3)+(3)*(4)", &lines, Stop::End);
        assert_eq!(found, (vec![SameValue, Exact], true));
    }

    #[test]
    fn a_step_that_is_right_in_itself_does_not_make_a_false_line_true() {
        let lines = ["(2*x1+1)+(3)", "2*x1+4"];
        let found = judged(Setting::Plain, "(x1)*(2)+(3)", &lines, Stop::End);
        assert_eq!(found, (vec![WrongValue, WrongValue], false));
    }

    #[test]
    fn only_an_endpoint_is_an_answer() {
        let start = "(x1)*(2)+(3)";
        let copied = judged(Setting::Plain, start, &[start], Stop::Loop);
        assert_eq!(copied, (vec![SameValue], false));
        assert_eq!(judged(Setting::Endpoint, start, &["(2*x1)+(3)"], Stop::End), (vec![SameValue], false));
        assert_eq!(judged(Setting::Endpoint, start, &["2*x1+3"], Stop::End), (vec![Exact], true));
        // Cut at the length limit: it looks readable, but it never came to an end.
        assert_eq!(judged(Setting::Plain, start, &["(2*x1)+(3)"], Stop::Malformed), (vec![Malformed], false));
    }

    #[test]
    fn marks_and_brackets_are_read() {
        let lines =
            ["MUL $ (x1)*(2)+#(3)#", "MARK $ (2*x1)+(3)", "SUM $ #(2*x1)+(3)#", "MARK $ 2*x1+3", "END $ 2*x1+3"];
        let found = judged(Setting::Annotated, "(x1)*(2)+(3)", &lines, Stop::End);
        assert_eq!(found, (vec![SameValue, SameValue, Exact, Exact, Exact], true));
        let lines = ["(12)+(x1)", "x1+12"];
        assert_eq!(judged(Setting::Calculator, "(3)*(4)+(x1)", &lines, Stop::End), (vec![Exact, Exact], true));
    }
}

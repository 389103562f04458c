//! A step as people see it: both lines in infix, and what was rewritten into what.
//!
//! A prefix model's lines are shown in infix, too; the model's own text stands beside them. What a step rewrites is its operand.
//! What it became is what stands between the unchanged tokens to its left and right.

use std::ops::Range;

use polystep_core::notation::{laid_out, latex, print_open, write_tokens};
use polystep_core::token::{decode, decoded_spans};
use polystep_core::writing::Line;
use polystep_core::{Notation, Proof, Setting, State, StepKind, Writing};
use serde::Serialize;

/// Both lines of a step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShownStep {
    /// What the step does.
    pub kind: StepKind,
    /// The line before it.
    pub before: String,
    /// What is rewritten there, as characters.
    pub rewritten: Range<usize>,
    /// The line after it; a calculator's with open brackets.
    pub after: String,
    /// What it became there.
    pub into: Range<usize>,
    /// The line after it as LaTeX, brackets evaluated.
    pub latex: String,
}

/// The steps of a proof, one for each of its lines.
pub fn shown_steps(exact: &Proof, writing: &Writing, lines: &[Line]) -> Vec<ShownStep> {
    match writing.setting {
        Setting::Plain | Setting::Calculator => stepwise(exact, writing),
        _ => lines.iter().map(|line| whole(line, writing)).collect(),
    }
}

fn stepwise(exact: &Proof, writing: &Writing) -> Vec<ShownStep> {
    let style = writing.style;
    let step = |step: polystep_core::proof::Step| {
        let (tokens, layout) = laid_out(&step.before, Notation::Infix, style);
        let operand = step.operand.range(&layout);
        let open = match writing.setting {
            Setting::Calculator => step.open,
            _ => Default::default(),
        };
        let mut after = Vec::new();
        write_tokens(&step.after, &open, Notation::Infix, style, &mut after);
        let (left, right) = (&tokens[..operand.start], &tokens[operand.end..]);
        let kept = after.starts_with(left) && after[left.len()..].ends_with(right);
        let into = if kept { left.len()..after.len() - right.len() } else { 0..after.len() };
        ShownStep {
            kind: step.kind,
            before: decode(&tokens, Notation::Infix),
            rewritten: characters(&tokens, operand),
            after: print_open(&step.after, &open, Notation::Infix, style),
            into: characters(&after, into),
            latex: latex(&step.after, style),
        }
    };
    exact.steps().map(step).collect()
}

/// A line whose parts have no layout of their own: all of it was rewritten.
fn whole(line: &Line, writing: &Writing) -> ShownStep {
    let state = |tokens: &[u8]| writing.state(tokens);
    let infix = |tokens: &[u8], state: Option<&State>| match (writing.notation, state) {
        (Notation::Prefix, Some(state)) => polystep_core::notation::print(state, Notation::Infix, writing.style),
        _ => writing.text(tokens),
    };
    let (from, to) = (state(&line.input), state(&line.target));
    let (before, after) = (infix(&line.input, from.as_ref()), infix(&line.target, to.as_ref()));
    ShownStep {
        kind: line.kind,
        rewritten: 0..before.len(),
        into: 0..after.len(),
        before,
        after,
        latex: to.map_or_else(String::new, |state| latex(&state, writing.style)),
    }
}

/// Where tokens stand in their text. Infix is ASCII, so bytes are characters.
fn characters(tokens: &[u8], range: Range<usize>) -> Range<usize> {
    let spans = decoded_spans(tokens, Notation::Infix);
    match spans.get(range.clone()) {
        Some([first, .., last]) => first.start..last.end,
        Some([one]) => one.clone(),
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_core::notation::parse;

    fn marked(setting: Setting, notation: Notation, start: &str) -> Vec<[String; 2]> {
        let writing = Writing { setting, notation, ..Writing::default() };
        let start = parse(start, Notation::Infix, writing.style).unwrap();
        let exact = writing.proof(&start).unwrap();
        let lines: Vec<Line> = writing.lines(&exact).collect();
        let steps = shown_steps(&exact, &writing, &lines);
        assert_eq!(steps.len(), lines.len());
        let mark =
            |text: &str, at: &Range<usize>| format!("{}<{}>{}", &text[..at.start], &text[at.clone()], &text[at.end..]);
        steps.iter().map(|s| [mark(&s.before, &s.rewritten), mark(&s.after, &s.into)]).collect()
    }

    #[test]
    fn what_was_rewritten_into_what() {
        let steps = [["<(x1+1)*(x1+2)>+(3*x1)", "<(x1^2+3*x1+2)>+(3*x1)"], ["<(x1^2+3*x1+2)+(3*x1)>", "<x1^2+6*x1+2>"]];
        let start = "(x1+1)*(x1+2)+(3*x1)";
        for notation in Notation::ALL {
            assert_eq!(marked(Setting::Plain, notation, start), steps, "people read infix");
        }
        let open = marked(Setting::Calculator, Notation::Infix, "(3)*(4)+(x1)");
        assert_eq!(open[0], ["<(3)*(4)>+(x1)", "<([3*4])>+(x1)"]);
        assert_eq!(marked(Setting::Endpoint, Notation::Prefix, start), [["<(x1+1)*(x1+2)+(3*x1)>", "<x1^2+6*x1+2>"]]);
        let annotated = marked(Setting::Annotated, Notation::Infix, "(x1)*(2)+(3)");
        assert_eq!(annotated[0], ["<MARK $ (x1)*(2)+(3)>", "<MUL $ #(x1)*(2)#+(3)>"]);
    }
}

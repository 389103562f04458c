//! A model's proof on the terminal: each line with whose it is, how probable it was, and what the checker says.
//!
//! ✓ is the line of the exact proof. ~ has the same value, written another way. ✗ has another value or cannot be read.
//! A line that the checker had to supply has no mark.

use std::fmt::Write as _;

use polystep_core::Verdict;
use polystep_core::typed::Names;
use polystep_learn::prove::{ANOTHER_WAY, ModelProof, ModelStep};
use polystep_record::Stop;

use crate::table::counted;

/// A proof as a person reads it.
pub fn for_people(proof: &ModelProof, names: &Names, alternatives: bool, device: &str) -> String {
    let mut out = format!("model {}: {}", proof.model, proof.chosen);
    if let Some(outside) = &proof.outside {
        let _ = write!(out, "; outside its training: {outside}");
    }
    let _ = writeln!(out, "\ntrained on {}; on {device}", proof.trained_on);
    if let Some(read_as) = &proof.read_as {
        let _ = writeln!(out, "read as {read_as}");
    }
    // The column of authors and probabilities; what belongs to a line stands below it.
    let indent = " ".repeat(if proof.alone { 8 } else { 16 });
    let _ = writeln!(out, "\n{indent}  {}", names.rename(&proof.start));
    let mut explained = false;
    for step in &proof.steps {
        let author = if proof.alone { String::new() } else { format!("{:<8}", step.author) };
        let mark = mark(step, proof.alone);
        let _ = writeln!(out, "{author}{:>7} {mark} {}", percent(step.probability), names.rename(&step.line));
        if let Some(next) = &step.next {
            let _ = writeln!(out, "{indent}= {}", names.rename(next));
        }
        if let Some(remark) = remark(step, proof.alone, explained) {
            let _ = writeln!(out, "{indent}    {}", names.rename(&remark));
            explained |= proof.alone && step.verdict != Verdict::SameValue;
        }
        if alternatives {
            let margin = step.margin.map_or("no second answer".into(), |m| format!("{m:.1} ahead of the second"));
            let _ = writeln!(out, "{indent}    ln p = {:.2}, {margin}", step.logprob);
            for (text, logprob) in step.beams.iter().skip(1) {
                let _ = writeln!(out, "{indent}    {logprob:>8.2}  {}", names.rename(text));
            }
        }
    }
    out.push('\n');
    let endpoint = names.rename(&proof.endpoint);
    out + &if proof.alone { alone(proof, &endpoint) } else { together(proof, &endpoint) }
}

/// How a line turned out.
fn mark(step: &ModelStep, alone: bool) -> &'static str {
    if !alone {
        return if step.probability.is_some() { "✓" } else { " " };
    }
    match step.verdict {
        Verdict::Exact => "✓",
        Verdict::SameValue => "~",
        _ => "✗",
    }
}

/// What is said below a line: what the model wrote instead, or, if it works alone, what is not as expected.
fn remark(step: &ModelStep, alone: bool, explained: bool) -> Option<String> {
    let same_value = step.verdict == Verdict::SameValue;
    match alone {
        _ if step.verdict.exact() => None,
        true if same_value => Some(ANOTHER_WAY.to_owned()),
        true if explained => None,
        true => Some(step.sentence.clone()),
        false if step.output.is_empty() => Some(format!("the model wrote nothing. {}", step.sentence)),
        false if same_value => Some(format!("the model wrote {}: {ANOTHER_WAY}", step.output)),
        false => Some(format!("the model wrote {}: wrong. {}", step.output, step.sentence)),
    }
}

/// A probability; what rounds to 0 or 100 is not called that.
fn percent(probability: Option<f32>) -> String {
    match probability.map(|p| 100.0 * p) {
        None => String::new(),
        Some(p) if p >= 99.95 => ">99.9 %".into(),
        Some(p) if p < 0.05 => "<0.1 %".into(),
        Some(p) => format!("{p:.1} %"),
    }
}

fn together(proof: &ModelProof, endpoint: &str) -> String {
    let by = &proof.steps_by;
    let steps = counted(by.model, "step");
    format!("endpoint: {endpoint}\n{steps} by the model, {} by beams, {} exact\n", by.beams, by.exact)
}

fn alone(proof: &ModelProof, endpoint: &str) -> String {
    let count = |verdict: Verdict| proof.steps.iter().filter(|s| s.verdict == verdict).count();
    let [exact, same, wrong, unreadable] =
        [Verdict::Exact, Verdict::SameValue, Verdict::WrongValue, Verdict::Malformed].map(count);
    let mut text = format!("{}: {exact} as in the exact proof", counted(proof.steps.len(), "line"));
    for (n, what) in [(same, ANOTHER_WAY), (wrong, "wrong"), (unreadable, "unreadable")] {
        if n > 0 {
            let _ = write!(text, ", {n} {what}");
        }
    }
    text.push('\n');
    text.push_str(match proof.stop {
        Stop::End => "",
        Stop::Malformed => "stopped: it wrote something that cannot be read\n",
        Stop::Loop => "stopped: it came back to an earlier state\n",
        Stop::Limit => "stopped: too many steps\n",
    });
    match proof.answer_right {
        Some(true) => text + "the answer is right\n",
        _ => text + &format!("the answer is wrong: it should be {endpoint}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_called_certain_or_impossible() {
        let shown = [1.0, 0.9996, 0.999, 0.5, 0.0004, 0.0].map(|p| percent(Some(p)));
        assert_eq!(shown, [">99.9 %", ">99.9 %", "99.9 %", "50.0 %", "<0.1 %", "<0.1 %"]);
        assert_eq!(percent(None), "");
    }
}

//! `polystep prove --model`: the proof that a trained model writes, step by step, every step checked.
//!
//! The model's own output is its next input. The first wrong step is explained; the walk goes on only as long as what the
//! model wrote can be read.

use std::cmp::Reverse;
use std::fmt::Write as _;

use polystep_core::{Setting, State, Task, Verdict, fit};
use polystep_learn::decode::{
    AnswerCache, BEAM_WIDTH, EngineStepper, Hypothesis, Start, beam_search, recursive_proofs,
};
use polystep_record::Stop;
use serde::Serialize;

use super::exact::NOTHING_TO_PROVE;
use crate::device::Device;
use crate::failure::{Result, bad_input};
use crate::run_config::description;
use crate::table::counted;
use crate::trained_model::TrainedModel;

/// What to show beside the proof.
pub struct Options {
    /// How sure the model is of each step, and its other beams.
    pub alternatives: bool,
    /// JSON instead of text.
    pub json: bool,
}

/// One step of the model.
#[derive(Serialize)]
struct NeuralStep {
    input: String,
    output: String,
    /// The output with its brackets evaluated, where it has any: the next input.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    logprob: f32,
    /// ln p₁ − ln p₂ of the two best beams; none if only one finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<f32>,
    verdict: &'static str,
    sentence: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beams: Vec<(String, f32)>,
}

/// The whole.
#[derive(Serialize)]
struct NeuralProof {
    start: String,
    trained_on: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<String>,
    steps: Vec<NeuralStep>,
    stop: Stop,
    right: bool,
}

impl NeuralProof {
    fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

/// Has the model prove `start`; returns the text to print.
pub fn prove(
    trained: &TrainedModel,
    start: &State,
    device: Device,
    threads: usize,
    options: &Options,
) -> Result<String> {
    let task = trained.home();
    let writing = &task.writing;
    if writing.setting == Setting::Arithmetic {
        return Err(bad_input("this model was trained on the arithmetic probe: it proves nothing"));
    }
    let mut lines = writing.lines(&writing.proof(start).map_err(bad_input)?);
    let count = lines.len();
    let written = writing.print(start);
    let Some(first) = lines.next() else {
        let (start, trained_on) = (written, description(&trained.config));
        let proof = NeuralProof { start, trained_on, outside: None, steps: Vec::new(), stop: Stop::End, right: true };
        return if options.json { proof.json() } else { Ok(format!("{NOTHING_TO_PROVE}\n")) };
    };
    // One position is the last token's, `</s>`.
    let (tokens, most) = (first.input.len(), trained.model.max_positions - 1);
    if tokens > most {
        let long = format!("the expression has {tokens} tokens and this model takes {most}");
        return Err(bad_input(format!("{long}: polystep prove --symbolic writes the exact proof")));
    }
    let mut stepper = trained.stepper(device, threads)?;
    let begin = Start { input: first.input.clone(), steps: count };
    let mut walked = recursive_proofs(&mut stepper, task, std::slice::from_ref(&begin), &mut AnswerCache::default())?;
    let walked = walked.remove(0);
    let mut inputs: Vec<&[u8]> = vec![&begin.input];
    inputs.extend(walked.states.iter().map(Vec::as_slice));
    let beams = match options.alternatives {
        true => beam_search(&mut stepper, &inputs[..walked.states.len()], BEAM_WIDTH)?,
        false => Vec::new(),
    };
    let text = |tokens: &[u8]| writing.text(tokens);
    let mut steps = Vec::new();
    for (i, output) in walked.states.iter().enumerate() {
        let check = writing.check_line(inputs[i], output);
        let headline: &[Hypothesis] = beams.get(i).map_or(&[], |b| &b.headline);
        let margin = match headline {
            [a, b, ..] => Some(a.logprob - b.logprob),
            _ => None,
        };
        steps.push(NeuralStep {
            input: text(inputs[i]),
            output: text(&walked.outputs[i]),
            next: (walked.outputs[i] != *output).then(|| text(output)),
            logprob: walked.logprobs[i],
            margin,
            verdict: check.verdict.name(),
            sentence: check.why.to_string(),
            beams: headline.iter().map(|h| (text(&h.tokens), h.logprob)).collect(),
        });
    }
    let stop = walked.stop;
    let right = stop == Stop::End && steps.iter().all(|s| s.verdict == Verdict::Exact.name());
    let outside = outside(trained, start)?;
    let proof = NeuralProof { start: written, trained_on: description(&trained.config), outside, steps, stop, right };
    if options.json { proof.json() } else { Ok(for_people(&proof, options, &stepper)) }
}

/// Why the expression lies in none of the spaces that the model learned, if so; of several the nearest one's reason.
fn outside(trained: &TrainedModel, start: &State) -> Result<Option<String>> {
    // Of two that fail the same question, the one whose number of variables is nearer.
    let near = |found: &fit::Misfit, task: &Task| (found.passed, Reverse(task.vars.abs_diff(start.vars())));
    let mut nearest: Option<(fit::Misfit, &Task)> = None;
    for task in &trained.tasks {
        let Some(found) = fit::misfit(start, &task.space, task.vars, task.writing.style.order).map_err(bad_input)?
        else {
            return Ok(None);
        };
        let nearer = |(best, of): &(fit::Misfit, &Task)| near(&found, task) > near(best, of);
        if nearest.as_ref().is_none_or(nearer) {
            nearest = Some((found, task));
        }
    }
    Ok(nearest.map(|(found, task)| match &trained.tasks[..] {
        [_] => found.why,
        _ => format!("nearest is {} with {}, but {}", task.space.key, counted(task.vars, "variable"), found.why),
    }))
}

fn for_people(proof: &NeuralProof, options: &Options, stepper: &EngineStepper) -> String {
    let mut out = format!("a model trained on {}, on {}\n", proof.trained_on, stepper.device());
    if let Some(why) = &proof.outside {
        let _ = writeln!(out, "note: this expression is outside of what it was trained on: {why}");
    }
    let _ = writeln!(out, "\n  {}", proof.start);
    let mut explained = false;
    for step in &proof.steps {
        let right = step.verdict == Verdict::Exact.name();
        let _ = writeln!(out, "{} {}", if right { "✓" } else { "✗" }, step.output);
        if let Some(next) = &step.next {
            let _ = writeln!(out, "= {next}");
        }
        if !right && !explained {
            let _ = writeln!(out, "    {}", step.sentence);
            explained = true;
        }
        if options.alternatives {
            let margin = step.margin.map_or("no second answer".into(), |m| format!("{m:.1} ahead of the second"));
            let _ = writeln!(out, "    ln p = {:.2}, {margin}", step.logprob);
            for (text, logprob) in step.beams.iter().skip(1) {
                let _ = writeln!(out, "    {logprob:>8.2}  {text}");
            }
        }
    }
    let end = match (proof.right, proof.stop) {
        (true, _) => "every step is right".to_owned(),
        (false, Stop::End) => "a wrong proof".to_owned(),
        (false, Stop::Malformed) => "stopped: it wrote something that cannot be read".to_owned(),
        (false, Stop::Loop) => "stopped: it came back to an earlier state".to_owned(),
        (false, Stop::Limit) => "stopped: too many steps".to_owned(),
    };
    let _ = writeln!(out, "\n{end}");
    out
}

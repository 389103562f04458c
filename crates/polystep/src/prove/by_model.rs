//! The proof by a trained model: together with the checker, or (`--alone`) by itself.
//!
//! Together, every line is right: where the model's greedy step is not the expected one, a beam takes its place, and if no
//! beam is, the exact step. Alone, the model's own output is its next input, and every line is judged against the start.

use std::collections::BTreeMap;

use polystep_core::writing::Line;
use polystep_core::{Explanation, Proof, Setting, Verdict, fit};
use polystep_learn::decode::{
    AnswerCache, AssistedStep, Author, BEAM_WIDTH, EngineStepper, Hypothesis, Start, assisted_steps, beam_search,
    recursive_proofs,
};
use polystep_record::Stop;
use serde::Serialize;

use super::exact::NOTHING_TO_PROVE;
use super::input::Input;
use super::judged;
use super::show;
use crate::device::Device;
use crate::failure::{Result, bad_input};
use crate::run_config::description;
use crate::trained_model::TrainedModel;

/// A model, and why it is this one.
pub struct ChosenModel {
    /// The model.
    pub trained: TrainedModel,
    /// The name of its folder.
    pub name: String,
    /// Why it was chosen.
    pub why: String,
}

/// What to show.
pub struct Options {
    /// The model by itself, without the checker's help.
    pub alone: bool,
    /// How sure the model is of each step, and its other beams.
    pub alternatives: bool,
    /// JSON instead of text.
    pub json: bool,
}

/// One line of the proof, with what the model answered there.
#[derive(Serialize)]
pub struct ModelStep {
    pub input: String,
    /// What the model wrote greedily.
    pub output: String,
    /// The line with its brackets evaluated, where it has any: the next input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Of the greedy output.
    pub logprob: f32,
    /// ln p₁ − ln p₂ of the two best beams; none if only one finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f32>,
    /// How the greedy output turned out.
    pub verdict: &'static str,
    pub sentence: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beams: Vec<(String, f32)>,
    /// The line of the proof.
    pub line: String,
    /// Whose it is: `model`, `beam 2` or `exact`.
    pub author: String,
    /// How probable it was, if it is the model's.
    pub probability: Option<f32>,
}

/// How many steps are whose.
#[derive(Serialize, Default)]
pub struct StepsBy {
    pub model: usize,
    pub beams: usize,
    pub exact: usize,
}

/// The whole. Expressions are in the variables of the language; `names` has the user's.
#[derive(Serialize)]
pub struct ModelProof {
    pub start: String,
    pub trained_on: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    pub steps: Vec<ModelStep>,
    pub stop: Stop,
    /// Whether the model, greedily, writes every line of the exact proof.
    pub right: bool,
    pub model: String,
    pub chosen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_as: Option<String>,
    pub names: BTreeMap<String, String>,
    pub alone: bool,
    /// The exact endpoint.
    pub endpoint: String,
    pub steps_by: StepsBy,
    /// Whether the model's own answer is right; only if it works alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_right: Option<bool>,
}

/// What to print, and whether the answer is right.
pub struct PrintedAnswer {
    pub text: String,
    pub right: bool,
}

/// Has the model prove an expression.
pub fn prove(
    chosen: &ChosenModel,
    input: &Input,
    device: Device,
    threads: usize,
    options: &Options,
) -> Result<PrintedAnswer> {
    let trained = &chosen.trained;
    let writing = &trained.home().writing;
    if writing.setting == Setting::Arithmetic {
        return Err(bad_input("this model was trained on the arithmetic probe: it proves nothing"));
    }
    let exact = writing.proof(&input.start).map_err(bad_input)?;
    let named = |v: usize| Some((format!("x{}", v + 1), input.names.get(v)?.to_string()));
    let mut proof = ModelProof {
        start: writing.print(&input.start),
        trained_on: description(&trained.config),
        outside: None,
        steps: Vec::new(),
        stop: Stop::End,
        right: true,
        model: chosen.name.clone(),
        chosen: chosen.why.clone(),
        read_as: input.read_as.clone(),
        names: (0..8).filter_map(named).collect(),
        alone: options.alone,
        endpoint: writing.print(exact.end()),
        steps_by: StepsBy::default(),
        answer_right: None,
    };
    let json = |proof: &ModelProof| -> Result<String> { Ok(serde_json::to_string(proof)? + "\n") };
    if exact.kinds().is_empty() {
        let text = if options.json { json(&proof)? } else { format!("{NOTHING_TO_PROVE}\n") };
        return Ok(PrintedAnswer { text, right: true });
    }
    let lines: Vec<Line> = writing.lines(&exact).collect();
    // One position is the last token's, `</s>`.
    let (tokens, most) = (lines[0].input.len(), trained.model.max_positions - 1);
    if tokens > most {
        let long = format!("the expression has {tokens} tokens and this model takes {most}");
        return Err(bad_input(format!("{long}: polystep prove --symbolic writes the exact proof")));
    }
    proof.outside = fit::outside(&input.start, &trained.tasks).map_err(bad_input)?;
    let mut stepper = trained.stepper(device, threads)?;
    if options.alone {
        alone(&mut proof, trained, &exact, &lines, &mut stepper, options)?;
    } else {
        together(&mut proof, trained, &lines, &mut stepper, options)?;
    }
    proof.right = proof.stop == Stop::End && proof.steps.iter().all(|s| s.verdict == Verdict::Exact.name());
    let device = stepper.device();
    let text = if options.json { json(&proof)? } else { show::for_people(&proof, &input.names, options, &device) };
    Ok(PrintedAnswer { text, right: proof.answer_right != Some(false) })
}

/// Model and checker together: every line is the expected one.
fn together(
    proof: &mut ModelProof,
    trained: &TrainedModel,
    lines: &[Line],
    stepper: &mut EngineStepper,
    options: &Options,
) -> Result<()> {
    let writing = &trained.home().writing;
    let text = |tokens: &[u8]| writing.text(tokens);
    let mut assisted = assisted_steps(stepper, writing, lines, &mut AnswerCache::default())?;
    if options.alternatives {
        search_the_rest(&mut assisted, lines, stepper)?;
    }
    for (line, step) in lines.iter().zip(&assisted) {
        let AssistedStep { author, greedy, beams } = step;
        let (author, count) = match author {
            Author::Model => ("model".to_owned(), &mut proof.steps_by.model),
            Author::Beam(n) => (format!("beam {n}"), &mut proof.steps_by.beams),
            Author::Exact => ("exact".to_owned(), &mut proof.steps_by.exact),
        };
        *count += 1;
        let written = writing.evaluated(&greedy.tokens).unwrap_or_else(|| greedy.tokens.clone());
        let (verdict, why) = match greedy.finished {
            true => Some(writing.check_line(&line.input, &written)).map(|c| (c.verdict, c.why)),
            false => None,
        }
        .unwrap_or((Verdict::Malformed, Explanation::NoAnswer));
        let shown = step.taken().map_or(&line.target, |taken| &taken.tokens);
        proof.steps.push(ModelStep {
            input: text(&line.input),
            output: text(&greedy.tokens),
            next: line.next.as_ref().filter(|next| *next != shown).map(|next| text(next)),
            logprob: greedy.logprob,
            verdict: verdict.name(),
            sentence: why.to_string(),
            line: text(shown),
            author,
            probability: step.taken().map(|taken| taken.logprob.exp()),
            ..ModelStep::with_beams(if options.alternatives { beams } else { &[] }, text)
        });
    }
    Ok(())
}

/// Makes the beam searches that were not needed.
fn search_the_rest(steps: &mut [AssistedStep], lines: &[Line], stepper: &mut EngineStepper) -> Result<()> {
    let rest: Vec<usize> = (0..steps.len()).filter(|&i| steps[i].author == Author::Model).collect();
    let inputs: Vec<&[u8]> = rest.iter().map(|&i| lines[i].input.as_slice()).collect();
    for (i, found) in rest.into_iter().zip(beam_search(stepper, &inputs, BEAM_WIDTH)?) {
        steps[i].beams = found.headline;
    }
    Ok(())
}

/// The model by itself.
fn alone(
    proof: &mut ModelProof,
    trained: &TrainedModel,
    exact: &Proof,
    lines: &[Line],
    stepper: &mut EngineStepper,
    options: &Options,
) -> Result<()> {
    let writing = &trained.home().writing;
    let text = |tokens: &[u8]| writing.text(tokens);
    let begin = [Start { input: lines[0].input.clone(), steps: lines.len() }];
    let walked = recursive_proofs(stepper, trained.home(), &begin, &mut AnswerCache::default())?.remove(0);
    let mut inputs: Vec<&[u8]> = vec![&begin[0].input];
    inputs.extend(walked.states.iter().map(Vec::as_slice));
    let beams = match options.alternatives {
        true => beam_search(stepper, &inputs[..walked.states.len()], BEAM_WIDTH)?,
        false => Vec::new(),
    };
    let value = exact.start().value(writing.style.order).map_err(bad_input)?;
    let judged = judged::judge(writing, exact, &value, &walked);
    for (i, (state, line)) in walked.states.iter().zip(judged.lines).enumerate() {
        let output = text(&walked.outputs[i]);
        proof.steps.push(ModelStep {
            input: text(inputs[i]),
            next: (walked.outputs[i] != *state).then(|| text(state)),
            logprob: walked.logprobs[i],
            verdict: line.verdict.name(),
            sentence: line.sentence,
            line: output.clone(),
            output,
            author: "model".to_owned(),
            probability: Some(walked.logprobs[i].exp()),
            ..ModelStep::with_beams(beams.get(i).map_or(&[], |b| &b.headline), text)
        });
    }
    proof.steps_by.model = proof.steps.len();
    (proof.stop, proof.answer_right) = (walked.stop, Some(judged.right));
    Ok(())
}

impl ModelStep {
    /// A step of which only the beams are known.
    fn with_beams(beams: &[Hypothesis], text: impl Fn(&[u8]) -> String) -> ModelStep {
        let margin = match beams {
            [a, b, ..] => Some(a.logprob - b.logprob),
            _ => None,
        };
        ModelStep {
            input: String::new(),
            output: String::new(),
            next: None,
            logprob: 0.0,
            margin,
            verdict: Verdict::Exact.name(),
            sentence: String::new(),
            beams: beams.iter().map(|h| (text(&h.tokens), h.logprob)).collect(),
            line: String::new(),
            author: String::new(),
            probability: None,
        }
    }
}

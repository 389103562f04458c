//! `polystep answer`: a trained model decodes a file of inputs.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};
use polystep_core::writing::Line;
use polystep_core::{Setting, Writing, token};
use polystep_learn::decode::{
    AnswerCache, AssistedStep, BEAM_WIDTH, Hypothesis, Start, Stepper, assisted_steps, beam_search, greedy,
    recursive_proofs,
};
use polystep_record::{AnswerRecord, Beam, CheckedStep, JsonLines, Question, RecordError, WrittenAnswer};

use crate::args::{StopArgs, ThreadArgs};
use crate::decode_progress::ReportingStepper;
use crate::device::{self, Device};
use crate::failure::{Result, bad_input};
use crate::output::{OutputStream, note};
use crate::{interrupt, trained_model};

const EXAMPLES: &str = "\
Examples:
  polystep answer runs/fast < inputs.jsonl > answers.jsonl
  polystep answer models/all-spaces inputs.jsonl --decode beam --out answers.jsonl
  polystep answer exports/tuned inputs.jsonl --decode checked
  polystep generate --split test --steps 500 | polystep answer runs/fast > p.jsonl
  polystep eval --predictions p.jsonl

Each line of the input is a JSON object with the field input, or the input alone as a JSON string.
Other fields are kept, so the answers to the lines of polystep generate --steps are predictions.
  greedy     the model's answer to one step, with the checker's verdict
  beam       its best answers to one step, best first
  recursive  the whole proof that it writes alone: its output is its next input
  checked    the whole proof by model and checker: a beam or the exact step replaces a wrong one
A wrong line is named and nothing is decoded. Exit codes: 0, done; 2, a line is wrong.";

/// How inputs are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Decode {
    /// the best token, again and again
    Greedy,
    /// beam search
    Beam,
    /// the model alone, to the end of the proof
    Recursive,
    /// model and checker together
    Checked,
}

/// Inputs that are decoded before their answers are written.
const BATCH: usize = 4096;

/// Flags of `polystep answer`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The model: a run, a bundled model, or a folder made by polystep export
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The inputs, one JSON value per line [default: standard input]
    #[arg(value_name = "FILE.jsonl")]
    file: Option<PathBuf>,
    /// How to decode
    #[arg(long, value_enum, default_value_t = Decode::Greedy)]
    decode: Decode,
    /// Width of the beam search
    #[arg(long, value_name = "N", default_value_t = BEAM_WIDTH as u8, value_parser = clap::value_parser!(u8).range(1..=5))]
    beam: u8,
    /// The file to write, whole or not at all [default: standard output, batch by batch]
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[arg(long, default_value_t = Device::Auto, help = device::HELP)]
    device: Device,
    #[command(flatten)]
    stop: StopArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Answers.
pub fn run(args: Args) -> Result<()> {
    args.threads.start()?;
    let trained = trained_model::open(&args.model)?;
    let writing = &trained.home().writing;
    let questions = read(args.file.as_deref(), args.decode, writing)?;
    // Only now: while it waits for standard input there is nothing to put away, and a signal ends it at once.
    args.stop.listen()?;
    let mut stepper = trained_model::stepper(&trained, args.device, args.threads.count())?;
    note(format_args!("{} on {}", args.model.display(), stepper.device()));
    let mut out = OutputStream::create(args.out.as_deref())?;
    let mut watched = ReportingStepper::new(&mut stepper, "inputs", questions.len());
    for batch in questions.chunks(BATCH) {
        let written = decode(&mut watched, writing, batch, args.decode, usize::from(args.beam));
        // A signal ends decoding by an error of the stepper. The batches before it are written.
        if interrupt::check().is_err() {
            out.flush()?;
        }
        interrupt::check()?;
        for (asked, written) in batch.iter().zip(written?) {
            serde_json::to_writer(&mut out, &AnswerRecord { question: asked.question.clone(), written })?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    drop(watched);
    out.finish()
}

/// A question as the model reads it.
struct Asked {
    question: Question,
    tokens: Vec<u8>,
    /// The exact proof from here, for those who need it.
    lines: Vec<Line>,
}

/// Reads all questions. A line that cannot be answered is named before anything is decoded.
fn read(file: Option<&Path>, how: Decode, writing: &Writing) -> Result<Vec<Asked>> {
    let (reader, name): (Box<dyn BufRead>, PathBuf) = match file {
        Some(path) if path != Path::new("-") => {
            let file = File::open(path).map_err(|e| bad_input(format!("cannot read {}: {e}", path.display())))?;
            (Box::new(BufReader::new(file)), path.to_path_buf())
        }
        _ => (Box::new(std::io::stdin().lock()), "standard input".into()),
    };
    let whole = matches!(how, Decode::Recursive | Decode::Checked);
    if whole && matches!(writing.setting, Setting::Endpoint | Setting::Arithmetic) {
        let setting = writing.setting;
        return Err(bad_input(format!("a model of setting {setting} writes one step only: --decode greedy or beam")));
    }
    let mut asked = Vec::new();
    let mut lines = JsonLines::<Question, _>::new(reader, &name);
    while let Some(question) = lines.next() {
        let question = question?;
        let wrong = |why: String| RecordError::Line { path: name.clone(), line: lines.line(), why };
        let tokens = token::encode(&question.input).map_err(|e| wrong(format!("not in the vocabulary: {e}")))?;
        let lines = match whole {
            true => proof(writing, &tokens).ok_or_else(|| {
                wrong(format!("the input is not a state of setting {} in {}", writing.setting, writing.notation))
            })?,
            false => Vec::new(),
        };
        asked.push(Asked { question, tokens, lines });
    }
    Ok(asked)
}

/// The lines of the exact proof from an input; none if it cannot be read.
fn proof(writing: &Writing, tokens: &[u8]) -> Option<Vec<Line>> {
    let lines: Vec<Line> = writing.lines(&writing.proof(&writing.state(tokens)?).ok()?).collect();
    // An annotated input may stand after the line that marks its operand.
    let skipped = lines.iter().position(|line| line.input == tokens).unwrap_or(0);
    Some(lines.into_iter().skip(skipped).collect())
}

/// What the model writes for some questions, in their order.
fn decode(
    stepper: &mut dyn Stepper,
    writing: &Writing,
    asked: &[Asked],
    how: Decode,
    width: usize,
) -> Result<Vec<WrittenAnswer>> {
    let inputs: Vec<&[u8]> = asked.iter().map(|a| a.tokens.as_slice()).collect();
    let text = |tokens: &[u8]| writing.text(tokens);
    Ok(match how {
        Decode::Greedy => {
            let all = greedy(stepper, &inputs)?;
            inputs.iter().zip(all).map(|(input, answer)| step(writing, input, &[answer])).collect()
        }
        Decode::Beam => {
            let all = beam_search(stepper, &inputs, width)?;
            inputs.iter().zip(all).map(|(input, found)| step(writing, input, &found.headline)).collect()
        }
        Decode::Recursive => {
            let start = |a: &Asked| Start { input: a.tokens.clone(), steps: a.lines.len() };
            let starts: Vec<Start> = asked.iter().map(start).collect();
            let proofs = recursive_proofs(stepper, writing, &starts, &mut AnswerCache::default())?;
            let alone = |(asked, proof): (&Asked, polystep_learn::decode::RecursiveProof)| {
                let end = asked.lines.last().map_or(&asked.tokens, |line| line.next.as_ref().unwrap_or(&line.target));
                let right = proof.states.last().unwrap_or(&asked.tokens) == end;
                WrittenAnswer::Alone { states: proof.states.iter().map(|s| text(s)).collect(), stop: proof.stop, right }
            };
            asked.iter().zip(proofs).map(alone).collect()
        }
        Decode::Checked => {
            let lines: Vec<Line> = asked.iter().flat_map(|a| a.lines.iter().cloned()).collect();
            let mut steps = assisted_steps(stepper, writing, &lines, &mut AnswerCache::default())?.into_iter();
            let checked = |asked: &Asked| -> Result<WrittenAnswer> {
                let pairs =
                    asked.lines.iter().map(|line| Ok(checked_step(line, &steps.next().context("a step")?, writing)));
                Ok(WrittenAnswer::Checked { steps: pairs.collect::<Result<_>>()? })
            };
            asked.iter().map(checked).collect::<Result<_>>()?
        }
    })
}

/// The answers to one step, and the checker's verdict on the first.
fn step(writing: &Writing, input: &[u8], answers: &[Hypothesis]) -> WrittenAnswer {
    let beams: Vec<&Hypothesis> = answers.iter().filter(|h| h.finished).collect();
    let verdict = beams.first().and_then(|best| {
        let line = writing.expected(input).ok()?;
        Some(writing.judge(line.kind, &line.target, &best.tokens).verdict)
    });
    let beam = |h: &&Hypothesis| Beam::finished(writing.text(&h.tokens), f64::from(h.logprob));
    WrittenAnswer::Step { beams: beams.iter().map(beam).collect(), verdict }
}

fn checked_step(line: &Line, step: &AssistedStep, writing: &Writing) -> CheckedStep {
    let author = step.author.to_string();
    let taken = step.taken();
    let output = writing.text(taken.map_or(&line.target, |taken| &taken.tokens));
    CheckedStep { output, author, logprob: taken.map(|taken| f64::from(taken.logprob)) }
}

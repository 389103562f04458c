//! `polystep prove`: an expression that a person typed, proved by the trained model that fits it, or (`--symbolic`) exactly.
//!
//! A model's proof cannot mislead: by default model and checker work together, and every line says whose it is. `--alone`
//! shows the model by itself, and says whether its answer is right. Where no model writes as asked, the exact proof stands
//! in, and a note says so.

mod by_model;
mod exact;
mod show;

pub use exact::for_people;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use polystep_core::{Notation, Setting, State, Task, Writing};
use polystep_learn::prove::{Problem, ProveOptions, fitting, known_models};

use crate::args::{ThreadArgs, WritingArgs};
use crate::bundled;
use crate::device::{self, Device};
use crate::failure::{Failure, Result, bad_input, bad_text};
use crate::output::{OutputStream, note};
use crate::printable::printable;
use crate::trained_model;
use by_model::{ChosenModel, PrintedAnswer};

const EXAMPLES: &str = "\
Examples:
  polystep prove '2x(x+3) + 4(x+1)'                     by the bundled model that fits
  polystep prove '2x(x+3) + 4(x+1)' --alone             by the model without help
  polystep prove '2x(x+3) + 4(x+1)' --alternatives      and how sure it is
  polystep prove '2x(x+3) + 4(x+1)' --model runs/fast   by a model of yours
  polystep prove '2*(x+1)*(x+3) + x' --symbolic --granularity fine
  polystep prove '(x+1)*(x+2)' --symbolic --setting calculator
  polystep prove '(x+1)*(x+2)' --latex

You may type what you would write on paper: 2x, (x+1)(x+2), (x+1)^3, x², x_1, \\cdot, letters of
your own, minus signs. What is not a sum of products is rewritten and shown.

By default model and checker work together. The model's greedy step is taken if it is the
expected step; else the first of 5 beams that is; else the exact step. Each line says whose it is
and how probable it was.";

/// Flags of `polystep prove`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The polynomial to simplify, in infix or (when it holds INT+ or INT-) prefix
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    #[command(flatten)]
    writing: WritingArgs,
    /// The exact proof, without a model
    #[arg(long)]
    symbolic: bool,
    /// Print the proof as one JSON record; with --symbolic as `polystep generate` does
    #[arg(long, conflicts_with = "latex")]
    json: bool,
    /// Print the exact proof as a LaTeX align environment
    #[arg(long)]
    latex: bool,
    /// The folder of a run whose model proves it; its task decides how steps are written [default: the model in models/ that fits]
    #[arg(long, value_name = "RUN", conflicts_with_all = ["latex", "symbolic", "WritingArgs"])]
    model: Option<PathBuf>,
    /// The model by itself: its own output is its next input; exit code 1 if its answer is wrong
    #[arg(long, conflicts_with_all = ["latex", "symbolic"])]
    alone: bool,
    /// How sure the model is of each step, and what else it would have written
    #[arg(long, conflicts_with_all = ["latex", "symbolic"])]
    alternatives: bool,
    #[arg(long, default_value_t = Device::Cpu, help = device::HELP)]
    device: Device,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Proves one expression.
pub fn run(args: Args) -> Result<()> {
    let Args { expression, writing, symbolic, json, latex, model, alone, alternatives, device, threads } = args;
    let writing = writing.writing();
    let named = model.map(named_model).transpose()?;
    let read_for = named.as_ref().map_or(writing, |chosen| chosen.trained.home().writing);
    if writing.setting == Setting::Arithmetic {
        return Err(bad_input("the arithmetic setting has no polynomials: nothing to prove"));
    }
    writing.validate().map_err(bad_input)?;
    let read = Problem::read_any(&expression, read_for.style);
    let mut input = read.map_err(|e| bad_text("", &expression, e.span.clone(), &e, "here"))?;
    if read_for.notation == Notation::Prefix {
        // Prefix writes every -1, so there it is not a one that a facstep leaves out.
        input.start = read_for.parse(&read_for.print(&input.start)).map_err(bad_input)?;
    }
    let chosen = match named {
        None if !symbolic && !latex => bundled_model(&input.start, &writing, alone)?,
        named => named,
    };
    if let Some(chosen) = chosen {
        let options = ProveOptions { alone, alternatives };
        let answer = by_model::prove(&chosen, &input, device, threads.count(), options, json)?;
        let PrintedAnswer { text, right } = answer;
        print(&text)?;
        return if right { Ok(()) } else { Err(Failure::AnsweredNo) };
    }
    let proof = writing.proof(&input.start).map_err(bad_input)?;
    let mut out = OutputStream::create(None)?;
    if json {
        exact::record(&proof, &writing, &mut out)?;
    } else if latex {
        exact::in_latex(&proof, writing.style, &input.names, &mut out)?;
    } else {
        if let Some(state) = &input.read_as {
            writeln!(out, "read as {state}\n")?;
        }
        for_people(&proof, &writing, &input.names, &mut out)?;
    }
    out.finish()
}

/// The model that `--model` names.
fn named_model(folder: PathBuf) -> Result<ChosenModel> {
    let trained = trained_model::open(&folder)?;
    Ok(ChosenModel { trained, name: folder_name(&folder), why: "named with --model".to_owned() })
}

/// The last part of a path: `runs/fast` is `fast`.
fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize();
    let name = whole.as_deref().unwrap_or(folder).file_name();
    let name = name.map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned());
    printable(&name).into_owned()
}

/// The bundled model that fits. Without one, a note says why the exact proof follows; a model that is to work alone cannot be
/// replaced.
fn bundled_model(start: &State, writing: &Writing, alone: bool) -> Result<Option<ChosenModel>> {
    let without = |why: String| match alone {
        true => Err(bad_input(format!("{why}: --alone needs a model, which --model names"))),
        false => {
            note(format_args!("note: {why}; this is the exact proof"));
            Ok(None)
        }
    };
    let Some(folder) = bundled::folder() else {
        return without("there is no folder models/ with trained models".to_owned());
    };
    let models = known_models(&folder)?;
    match fitting(&models, start, |task: &Task| task.writing == *writing).map_err(bad_input)? {
        Some((model, why)) => {
            let trained = trained_model::open(&model.folder)?;
            Ok(Some(ChosenModel { trained, name: folder_name(&model.folder), why }))
        }
        None => {
            let Writing { setting, granularity, notation, .. } = writing;
            let folder = folder.display();
            without(format!("no model in {folder} writes {setting} {granularity} steps in {notation}"))
        }
    }
}

fn print(text: &str) -> Result<()> {
    let mut out = OutputStream::create(None)?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

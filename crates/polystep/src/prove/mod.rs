//! `polystep prove`: an expression that a person typed, proved by the trained model that fits it, or (`--symbolic`) exactly.
//!
//! Where no model writes as asked, the exact proof stands in, and a note says so.

mod by_model;
mod exact;

pub use exact::for_people;

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use polystep_core::{Notation, Setting, State, Task, Writing, notation};

use crate::args::{ThreadArgs, WritingArgs};
use crate::bundled;
use crate::device::Device;
use crate::failure::{Result, bad_input, bad_text};
use crate::output::{OutputStream, note};
use crate::trained_model::TrainedModel;

const EXAMPLES: &str = "\
Examples:
  polystep prove '(2*x)*(x+3)+(x+1)*(4)'                     by the bundled model that fits
  polystep prove '(2*x)*(x+3)+(x+1)*(4)' --alternatives      and how sure it is
  polystep prove '(2*x)*(x+3)+(x+1)*(4)' --model runs/fast   by a model of yours
  polystep prove '2*(x+1)*(x+3) + x' --symbolic --granularity fine
  polystep prove '(x+1)*(x+2)' --symbolic --setting calculator
  polystep prove '(x+1)*(x+2)' --latex

You may type spaces, x_1, x, y and z for x1, x2 and x3, ** for ^, and leave out parentheses around
single terms.";

/// Flags of `polystep prove`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The polynomial to simplify, in infix or (when it holds INT+) prefix
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
    /// How sure the model is of each step, and what else it would have written
    #[arg(long, conflicts_with_all = ["latex", "symbolic"])]
    alternatives: bool,
    /// Where the model computes
    #[arg(long, value_enum, default_value_t = Device::Cpu)]
    device: Device,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Proves one expression.
pub fn run(args: Args) -> Result<()> {
    let Args { expression, writing, symbolic, json, latex, model, alternatives, device, threads } = args;
    let writing = writing.writing();
    let trained = model.as_deref().map(TrainedModel::open).transpose()?;
    let style = trained.as_ref().map_or(writing.style, |t| t.home().writing.style);
    if writing.setting == Setting::Arithmetic {
        return Err(bad_input("the arithmetic setting has no polynomials: nothing to prove"));
    }
    writing.validate().map_err(bad_input)?;
    let typed_in = if expression.contains("INT+") { Notation::Prefix } else { Notation::Infix };
    let start = notation::parse(&expression, typed_in, style)
        .map_err(|e| bad_text("", &expression, e.span.clone(), &e, "here"))?;
    let trained = match trained {
        None if !symbolic && !latex => bundled_model(&start, &writing)?,
        trained => trained,
    };
    if let Some(trained) = trained {
        let options = by_model::Options { alternatives, json };
        return print(&by_model::prove(&trained, &start, device, threads.count(), &options)?);
    }
    let proof = writing.proof(&start).map_err(bad_input)?;
    let mut out = OutputStream::create(None)?;
    if json {
        exact::record(&proof, &writing, &mut out)?;
    } else if latex {
        exact::in_latex(&proof, writing.style, &mut out)?;
    } else {
        for_people(&proof, &writing, &mut out)?;
    }
    out.finish()
}

/// The bundled model that fits; without one, a note says why the exact proof follows.
fn bundled_model(start: &State, writing: &Writing) -> Result<Option<TrainedModel>> {
    let note = |why: std::fmt::Arguments| note(format_args!("note: {why}; this is the exact proof"));
    let Some(folder) = bundled::folder() else {
        note(format_args!("there is no folder models/ with trained models"));
        return Ok(None);
    };
    match bundled::fitting(bundled::models(&folder)?, start, |task: &Task| task.writing == *writing)? {
        Some(model) => TrainedModel::open(&model.folder).map(Some),
        None => {
            let Writing { setting, granularity, notation, .. } = writing;
            let folder = folder.display();
            note(format_args!("no model in {folder} writes {setting} {granularity} steps in {notation}"));
            Ok(None)
        }
    }
}

fn print(text: &str) -> Result<()> {
    let mut out = OutputStream::create(None)?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

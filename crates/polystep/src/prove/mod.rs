//! `polystep prove`: an expression that a person typed, proved by the trained model that fits it, or (`--symbolic`) exactly.
//!
//! The exact proof is written as the paper writes its P₀ … P₅: each state with the operand of the next step underlined.
//! Everything else (records, LaTeX) is for programs and papers. Where no model writes as asked, the exact proof stands in,
//! and a note says so.

pub mod by_model;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use polystep_core::proof::Operand;
use polystep_core::{Factor, Notation, Product, Proof, Setting, State, Step, StepKind, Style, Task, Writing, notation};
use polystep_record::{ProofRecord, StepRecord};

use crate::args::{ThreadArgs, WritingArgs};
use crate::bundled;
use crate::device::Device;
use crate::failure::{Result, bad_input, bad_text};
use crate::output::{Output, note};
use crate::table::counted;
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

/// What is said of a start in normal form.
pub const NOTHING_TO_PROVE: &str = "endpoint: already in normal form, nothing to prove";

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
    let text = if json {
        record(&proof, &writing)?
    } else if latex {
        in_latex(&proof, writing.style)
    } else {
        for_people(&proof, &writing)
    };
    print(&text)
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
    let mut out = Output::create(None)?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

/// A proof as a person reads it.
pub fn for_people(proof: &Proof, writing: &Writing) -> String {
    match writing.setting {
        Setting::Plain | Setting::Calculator => stepwise(proof, writing),
        _ => as_lines(proof, writing),
    }
}

/// Each state, its next operand underlined and the step named; for the calculator also what is left open.
fn stepwise(proof: &Proof, writing: &Writing) -> String {
    let Writing { notation, style, .. } = *writing;
    let width = format!("P{}", proof.steps.len()).len();
    let mut text = String::new();
    for (i, step) in proof.steps.iter().enumerate() {
        let span = step.span(notation, style);
        let _ = writeln!(text, "{:width$}  {}", format!("P{i}"), writing.print(&step.before));
        let marked = format!("{}{}", " ".repeat(span.start), "~".repeat(span.len()));
        let _ = writeln!(text, "{:width$}  {marked} {}: {}", "", step.kind, what(step));
        if writing.setting == Setting::Calculator {
            let open = notation::print_open(&step.after, &step.open, notation, style);
            let _ = writeln!(text, "{:width$}  {open}", "=");
        }
    }
    let _ = writeln!(text, "{:width$}  {}", format!("P{}", proof.steps.len()), writing.print(proof.end()));
    let _ = writeln!(text, "{:width$}  {}", "", summary(proof));
    text
}

/// The lines that a model sees, one after the other.
fn as_lines(proof: &Proof, writing: &Writing) -> String {
    let lines = writing.lines(proof);
    let mut text = String::new();
    if let Some(first) = lines.first() {
        let _ = writeln!(text, "{:8}  {}", "start", writing.text(&first.input));
    }
    for line in &lines {
        let _ = writeln!(text, "{:8}  {}", line.kind.name(), writing.text(&line.target));
    }
    if lines.is_empty() {
        let _ = writeln!(text, "{}", summary(proof));
    }
    text
}

/// What a step does, in the words of a textbook.
fn what(step: &Step) -> String {
    match (step.kind, &step.operand) {
        (StepKind::Facstep, Operand::Products(r)) => {
            format!("simplify the factors of product {}", r.start + 1)
        }
        (StepKind::Facstep, _) => "collect like terms, drop exponents 1".into(),
        (StepKind::Mulstep, Operand::Products(r)) => {
            format!("multiply out product {}", r.start + 1)
        }
        (StepKind::Mulstep, _) => "multiply the two leftmost factors".into(),
        (StepKind::Sumstep, Operand::Products(r)) if r.len() < step.before.products().len() => {
            "add the two leftmost products".into()
        }
        (StepKind::Sumstep, _) => "add the products".into(),
        // These are no steps of a proof.
        (StepKind::Markstep | StepKind::Endpoint | StepKind::Add | StepKind::Mul, _) => step.kind.to_string(),
    }
}

fn summary(proof: &Proof) -> String {
    if proof.steps.is_empty() {
        return NOTHING_TO_PROVE.into();
    }
    let counts: Vec<String> = StepKind::ALL
        .into_iter()
        .map(|kind| (kind, proof.steps.iter().filter(|s| s.kind == kind).count()))
        .filter(|&(_, n)| n > 0)
        .map(|(kind, n)| counted(n, &kind.to_string()))
        .collect();
    format!("endpoint, after {}", counts.join(", "))
}

fn record(proof: &Proof, writing: &Writing) -> Result<String> {
    let Writing { setting, granularity, notation, style } = *writing;
    let record = ProofRecord {
        id: "typed".into(),
        seed: 0,
        index: 0,
        config: "typed".into(),
        vars: proof.start.vars().max(1),
        setting,
        granularity,
        notation,
        style,
        start: writing.print(&proof.start),
        end: writing.print(proof.end()),
        steps: writing.lines(proof).iter().map(|line| StepRecord::new(line, notation)).collect(),
    };
    Ok(serde_json::to_string(&record)? + "\n")
}

fn in_latex(proof: &Proof, style: Style) -> String {
    let mut text = String::from("\\begin{align*}\n");
    for (i, step) in proof.steps.iter().enumerate() {
        let head = if i == 0 { "P_0 &= " } else { "    &= " };
        let _ = writeln!(text, "{head}{} && (P_{{{i}}}) \\text{{ {}}} \\\\", underlined(step, style), step.kind);
    }
    let (n, end) = (proof.steps.len(), notation::latex(proof.end(), style));
    let head = if n == 0 { "P_0 &= " } else { "    &= " };
    let _ = writeln!(text, "{head}{end} && (P_{{{n}}}) \\text{{ endpoint}}\n\\end{{align*}}");
    text
}

/// The state before a step, its operand underlined.
fn underlined(step: &Step, style: Style) -> String {
    let products = step.before.products();
    let sum = |part: &[Product]| notation::latex(&State::Sum(part.to_vec()), style);
    let underline = |part: String| format!("\\underline{{{part}}}");
    let join =
        |parts: Vec<String>, with: &str| parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(with);
    let (range, middle) = match &step.operand {
        Operand::Products(range) => (range.clone(), underline(sum(&products[range.clone()]))),
        Operand::Factors { product, factors } => {
            let all = &products[*product].0;
            let some = |part: &[Factor]| {
                if part.is_empty() { String::new() } else { sum(&[Product(part.to_vec())]) }
            };
            let parts =
                vec![some(&all[..factors.start]), underline(some(&all[factors.clone()])), some(&all[factors.end..])];
            (*product..product + 1, join(parts, " "))
        }
        // A term is underlined with its factor: half a parenthesis cannot be.
        Operand::Terms { product, factor, .. } => {
            let whole = Operand::Factors { product: *product, factors: *factor..factor + 1 };
            return underlined(&Step { operand: whole, ..step.clone() }, style);
        }
    };
    join(vec![sum(&products[..range.start]), middle, sum(&products[range.end..])], " + ")
}

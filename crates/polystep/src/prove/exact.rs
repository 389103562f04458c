//! The exact proof, for people, for programs and for papers.
//!
//! For people it looks as the paper prints its P₀ … P₅: each state, with the operand of the next step underlined.

use std::fmt::Write as _;

use polystep_core::proof::Operand;
use polystep_core::{Factor, Product, Proof, Setting, State, Step, StepKind, Style, Writing, notation};
use polystep_record::{ProofRecord, StepRecord};

use crate::failure::Result;
use crate::table::counted;

/// What is said of a start in normal form.
pub const NOTHING_TO_PROVE: &str = "endpoint: already in normal form, nothing to prove";

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

/// A proof as one JSON record.
pub fn record(proof: &Proof, writing: &Writing) -> Result<String> {
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

/// A proof as a LaTeX align environment.
pub fn in_latex(proof: &Proof, style: Style) -> String {
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

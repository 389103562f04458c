//! The exact proof, for people, for programs and for papers.
//!
//! For people it looks as the paper prints its P₀ … P₅: each state, with the operand of the next step underlined.

use std::io::{self, Write};

use polystep_core::proof::{Operand, Rewrite};
use polystep_core::typed::Names;
use polystep_core::{Factor, Product, Proof, Setting, State, StepKind, Style, Writing, notation};
use polystep_record::ProofRecord;

use crate::failure::Result;
use crate::table::counted;

/// What is said of a start in normal form.
pub const NOTHING_TO_PROVE: &str = "endpoint: already in normal form, nothing to prove";

/// A proof as a person reads it, in the names that the person gave to the variables, written state by state.
pub fn for_people(proof: &Proof, writing: &Writing, names: &Names, out: &mut impl Write) -> io::Result<()> {
    match writing.setting {
        Setting::Plain | Setting::Calculator => stepwise(proof, writing, names, out),
        _ => as_lines(proof, writing, names, out),
    }
}

/// Each state, its next operand underlined and the step named; for the calculator also what is left open.
fn stepwise(proof: &Proof, writing: &Writing, names: &Names, out: &mut impl Write) -> io::Result<()> {
    let Writing { notation, style, setting, .. } = *writing;
    let width = format!("P{}", proof.kinds().len()).len();
    let columns = |text: &str| names.rename(text).chars().count();
    let mut walk = if setting == Setting::Calculator { proof.walk_open() } else { proof.walk() };
    for i in 0..proof.kinds().len() {
        let (tokens, layout) = notation::laid_out(walk.state(), notation, style);
        let products = layout.products.len();
        let Some(Rewrite { kind, operand, open }) = walk.advance() else { break };
        let span = operand.span(&tokens, &layout, notation);
        let before = writing.text(&tokens);
        writeln!(out, "{:width$}  {}", format!("P{i}"), names.rename(&before))?;
        let marked = " ".repeat(columns(&before[..span.start])) + &"~".repeat(columns(&before[span]));
        writeln!(out, "{:width$}  {marked} {kind}: {}", "", what(kind, &operand, products))?;
        if setting == Setting::Calculator {
            let open = notation::print_open(walk.state(), &open, notation, style);
            writeln!(out, "{:width$}  {}", "=", names.rename(&open))?;
        }
    }
    let end = names.rename(&writing.print(proof.end()));
    writeln!(out, "{:width$}  {end}", format!("P{}", proof.kinds().len()))?;
    writeln!(out, "{:width$}  {}", "", summary(proof))
}

/// The lines that a model sees, one after the other.
fn as_lines(proof: &Proof, writing: &Writing, names: &Names, out: &mut impl Write) -> io::Result<()> {
    for (i, line) in writing.lines(proof).enumerate() {
        if i == 0 {
            writeln!(out, "{:8}  {}", "start", names.rename(&writing.text(&line.input)))?;
        }
        writeln!(out, "{:8}  {}", line.kind.name(), names.rename(&writing.text(&line.target)))?;
    }
    if writing.lines(proof).len() == 0 {
        writeln!(out, "{}", summary(proof))?;
    }
    Ok(())
}

/// What a step does to a state of so many products, in the words of a textbook.
fn what(kind: StepKind, operand: &Operand, products: usize) -> String {
    match (kind, operand) {
        (StepKind::Facstep, Operand::Products(r)) => {
            format!("simplify the factors of product {}", r.start + 1)
        }
        (StepKind::Facstep, _) => "collect like terms, drop exponents 1".into(),
        (StepKind::Mulstep, Operand::Products(r)) => {
            format!("multiply out product {}", r.start + 1)
        }
        (StepKind::Mulstep, _) => "multiply the two leftmost factors".into(),
        (StepKind::Sumstep, Operand::Products(r)) if r.len() < products => "add the two leftmost products".into(),
        (StepKind::Sumstep, _) => "add the products".into(),
        // These are no steps of a proof.
        (StepKind::Markstep | StepKind::Endpoint | StepKind::Add | StepKind::Mul, _) => kind.to_string(),
    }
}

fn summary(proof: &Proof) -> String {
    if proof.kinds().is_empty() {
        return NOTHING_TO_PROVE.into();
    }
    let counts: Vec<String> = StepKind::ALL
        .into_iter()
        .map(|kind| (kind, proof.kinds().iter().filter(|&&k| k == kind).count()))
        .filter(|&(_, n)| n > 0)
        .map(|(kind, n)| counted(n, &kind.to_string()))
        .collect();
    format!("endpoint, after {}", counts.join(", "))
}

/// A proof as one JSON record, in the variables of the language.
pub fn record(proof: &Proof, writing: &Writing, out: &mut impl Write) -> Result<()> {
    serde_json::to_writer(&mut *out, &ProofRecord::typed(proof, writing))?;
    Ok(writeln!(out)?)
}

/// A proof as a LaTeX align environment, in the user's names, written state by state.
pub fn in_latex(proof: &Proof, style: Style, names: &Names, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\\begin{{align*}}")?;
    let mut walk = proof.walk();
    for i in 0..proof.kinds().len() {
        let before = walk.state().clone();
        let Some(Rewrite { kind, operand, .. }) = walk.advance() else { break };
        let head = if i == 0 { "P_0 &= " } else { "    &= " };
        let state = names.rename_latex(&underlined(before.products(), &operand, style));
        writeln!(out, "{head}{state} && (P_{{{i}}}) \\text{{ {kind}}} \\\\")?;
    }
    let (n, end) = (proof.kinds().len(), names.rename_latex(&notation::latex(proof.end(), style)));
    let head = if n == 0 { "P_0 &= " } else { "    &= " };
    writeln!(out, "{head}{end} && (P_{{{n}}}) \\text{{ endpoint}}\n\\end{{align*}}")
}

/// A sum of products, the operand of the next step underlined.
fn underlined(products: &[Product], operand: &Operand, style: Style) -> String {
    let sum = |part: &[Product]| notation::latex(&State::Sum(part.to_vec()), style);
    let underline = |part: String| format!("\\underline{{{part}}}");
    let join =
        |parts: Vec<String>, with: &str| parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(with);
    let (range, middle) = match operand {
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
            return underlined(products, &whole, style);
        }
    };
    join(vec![sum(&products[..range.start]), middle, sum(&products[range.end..])], " + ")
}

//! `polystep export`: a run as a Hugging Face folder that `transformers` loads as BART or mBART without custom code; or as a
//! compact run folder, as in models/.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args as ClapArgs;
use polystep_engine::NormOrder;
use polystep_learn::export::write_folder;
use polystep_learn::trained::TrainedModel;
use polystep_learn::weights::{WeightType, save_weights};
use polystep_record::{RunFolder, write_whole};
use polystep_study::columns::Unit;
use polystep_study::side_by_side::cells;
use polystep_study::{Metrics, StoredRun};

use crate::failure::{Result, bad_input};
use crate::output::new_folder;
use crate::table::counted;
use crate::trained_model;
use crate::{interrupt, say};

const EXAMPLES: &str = "\
Examples:
  polystep export runs/fast --out exports/fast
  polystep export runs/fast --compact --out models/fast
  python3 -c \"from transformers import AutoTokenizer, AutoModelForSeq2SeqLM as M; \\
    t = AutoTokenizer.from_pretrained('exports/fast'); m = M.from_pretrained('exports/fast'); \\
    y = m.generate(**t('(2*x1^1)*(x1^1+3)', return_tensors='pt')); \\
    print(t.decode(y[0], skip_special_tokens=True))\"";

/// What Hugging Face reads of a card.
const HEAD: &str = "---\nlibrary_name: transformers\ntags: [polynomials, mathematics, step-by-step]\n---\n\n";

/// Flags of `polystep export`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder of a finished run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The folder to write; it must be new or empty
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Write a compact run folder instead, as in models/: bf16 weights, config.toml, metrics.json and a card
    #[arg(long)]
    compact: bool,
}

/// Exports. The folder appears only when it is complete. A folder that already holds something is refused.
pub fn run(args: Args) -> Result<()> {
    interrupt::listen()?;
    let Args { run, out, compact } = args;
    let trained = trained_model::open(&run)?;
    let metrics = if compact { Some(measured_numbers(&run)?) } else { None };
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    let folder = new_folder(&out)?;
    let card = card(&trained, &run, if compact { "" } else { HEAD });
    let TrainedModel { config, layout, params, .. } = &trained;
    let out = out.display();
    let Some(metrics) = metrics else {
        write_folder(folder.place(), config, layout, params, &card)?;
        interrupt::check()?;
        folder.finish()?;
        return say!("{out}: loads with AutoModelForSeq2SeqLM.from_pretrained");
    };
    let inside = RunFolder::new(folder.place());
    save_weights(&inside.model(), layout, params, WeightType::Bf16)?;
    write_whole(&inside.metrics(), metrics)?;
    write_whole(&inside.path().join("README.md"), card)?;
    write_whole(&inside.config(), config.to_toml())?;
    interrupt::check()?;
    folder.finish()?;
    say!("{out}: proves with polystep prove EXPR --model {out}")
}

/// The run's metrics.json in one line.
fn measured_numbers(run: &Path) -> Result<String> {
    let metrics = RunFolder::new(run).metrics();
    if !metrics.is_file() {
        return Err(bad_input(format!("{} has no metrics.json: polystep eval it first", run.display())));
    }
    let damaged = |e| bad_input(format!("{} is damaged: {e}", metrics.display()));
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&metrics)?).map_err(damaged)?;
    Ok(format!("{document}\n"))
}

/// The model card: what it is, how it was made, what was measured, how to call it.
fn card(trained: &TrainedModel, run: &Path, head: &str) -> String {
    let TrainedModel { config, model, layout, .. } = trained;
    let (task, data) = (trained.home(), &config.data);
    let [encoder_layers, decoder_layers] = model.depth();
    let family = if model.norm == NormOrder::Pre { "mBART (pre-norm)" } else { "BART (post-norm)" };
    let mut card = format!(
        "{head}# polystep: {}, {}{}, {}, {}, {}\n\n\
         A Transformer that simplifies polynomials step by step: it reads one state of a proof and writes the next.\n\
         Trained with polystep, recipe `{}`, seed {}.\n\n\
         - shape: {family}, {} parameters, d {}, {}+{} layers, {} heads, up to {} tokens\n\
         - input: one state, as `polystep prove` prints it; `</s>` is appended by the tokenizer\n\
         - the decoder starts from `<s>` (id 1). If you train on with `labels`, pass `decoder_input_ids` too: mBART's own shift\n  \
         would start from the last label\n",
        task.space.key,
        counted(task.vars, "variable"),
        if data.also.is_empty() { String::new() } else { format!(" with {} more spaces", data.also.len()) },
        data.setting,
        data.granularity,
        data.notation,
        config.train.recipe,
        data.seed,
        layout.parameters(),
        model.d,
        encoder_layers,
        decoder_layers,
        model.heads,
        model.max_positions,
    );
    card.push_str("\n## Measured\n\n");
    match StoredRun::open(run).ok().and_then(|r| r.metrics) {
        Some(metrics) if !metrics.evaluations.is_empty() => measured(&metrics, &mut card),
        _ => card.push_str("Not evaluated: run `polystep eval` on the run before exporting it.\n"),
    }
    card
}

fn measured(metrics: &Metrics, card: &mut String) {
    for evaluation in &metrics.evaluations {
        let _ = writeln!(
            card,
            "On {} with {}:\n\n| | ours | paper |\n|---|---|---|",
            evaluation.config,
            counted(evaluation.vars as usize, "variable")
        );
        for cell in cells(metrics, evaluation) {
            let Some(ours) = cell.ours else { continue };
            let paper = cell.paper.as_ref().map_or("", |p| p.text);
            let decimals = if cell.column.unit == Unit::Count { 0 } else { 2 };
            let _ = writeln!(card, "| {}: {} | {ours:.decimals$} | {paper} |", cell.column.group, cell.column.heading);
        }
        card.push('\n');
    }
}

//! Proves typed expressions by one model, many at a time: one expression per line on standard input, two JSON objects per line on
//! standard output: the proof by model and checker together, and the model alone.
//!
//!     cargo run --release -p polystep-learn --example prove_many models/all-spaces < expressions.txt > proofs.jsonl

use std::io::{BufRead, Write};
use std::path::Path;

use polystep_core::Style;
use polystep_learn::prove::{OpenProof, Problem, ProveOptions, prove_many};
use polystep_learn::trained::TrainedModel;

/// Proofs that the model is asked for at once.
const AT_ONCE: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder of a trained model")?;
    let trained = TrainedModel::open(Path::new(&folder))?;
    let mut stepper = trained.cpu_stepper(1)?;
    let typed: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let mut out = std::io::stdout().lock();
    for texts in typed.chunks(AT_ONCE) {
        let open = || -> Result<Vec<OpenProof>, Box<dyn std::error::Error>> {
            let one = |text: &String| {
                let problem = Problem::read(text, Style::default()).map_err(|e| format!("{text}: {e}"))?;
                Ok(OpenProof::new(&trained, &folder, "named", &problem)?)
            };
            texts.iter().map(one).collect()
        };
        let together = prove_many(open()?, &mut stepper, ProveOptions::default())?;
        let alone = prove_many(open()?, &mut stepper, ProveOptions { alone: true, ..ProveOptions::default() })?;
        for (together, alone) in together.iter().zip(&alone) {
            writeln!(out, "[{},{}]", serde_json::to_string(together)?, serde_json::to_string(alone)?)?;
        }
        out.flush()?;
    }
    Ok(())
}

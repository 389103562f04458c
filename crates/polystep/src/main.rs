//! polystep: the command line. One thin file per subcommand; everything exact lives in `polystep-core`.

mod args;
mod bench;
mod bundled;
mod check;
mod completions;
mod decode_progress;
mod device;
mod doctor;
mod estimate;
mod eval;
mod export;
mod failure;
mod generate;
mod interrupt;
mod output;
mod paper;
mod printable;
mod progress;
mod prove;
mod quickstart;
mod report;
mod reproduce;
mod run_config;
mod sweep;
mod table;
mod train;
mod train_display;
mod trained_model;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Begin here:
  polystep quickstart
  polystep prove '(x+1)*(x+2) + 3*x'
  polystep generate --config large_coeff --proofs 3

Exit codes: 0, done; 1, it failed at run time; 2, the input is wrong; 130, interrupted.";

/// Transformers that simplify polynomials step by step, and exactly how well they do it
#[derive(Parser, Debug)]
#[command(version, about, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// See all that polystep does, in under five minutes
    Quickstart(quickstart::Args),
    /// Sample polynomials and write their proofs, as JSONL or Parquet
    Generate(generate::Args),
    /// Simplify a polynomial step by step
    Prove(prove::Args),
    /// Check proofs, step examples or predictions: counts by verdict, the first failures explained
    Check(check::Args),
    /// Estimate how large a problem space is, with the paper's number beside ours
    Estimate(estimate::Args),
    /// Train a Transformer on proofs made on the fly
    Train(train::Args),
    /// Train the combinations of a grid one after the other, and rank them on the validation set
    Sweep(sweep::Args),
    /// Decode the fixed test sets with a trained model and report every number of the paper
    Eval(eval::Args),
    /// One page about one run or several: curves, the paper's table, errors, calibration, failures
    Report(report::Args),
    /// Make the paper's tables anew, the paper's numbers beside ours
    Reproduce(reproduce::Args),
    /// Write a trained model as a Hugging Face folder
    Export(export::Args),
    /// See which devices and libraries there are, and whether they compute rightly
    Doctor(doctor::Args),
    /// Measure how fast the library is here
    Bench(bench::Args),
    /// Print the completion script of a shell
    Completions(completions::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Quickstart(args) => quickstart::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Prove(args) => prove::run(args),
        Command::Check(args) => check::run(args),
        Command::Estimate(args) => estimate::run(args),
        Command::Train(args) => train::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Report(args) => report::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Export(args) => export::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Completions(args) => completions::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// An example that is broken in two cannot be pasted: lines of help that we broke ourselves fit where clap breaks them.
    #[test]
    fn examples_stand_on_one_line() {
        fn check(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        let command = Cli::command();
        command.clone().debug_assert();
        check(&command);
    }
}

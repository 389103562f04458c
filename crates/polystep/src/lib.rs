//! polystep: the command line. One thin file per subcommand; everything exact lives in `polystep-core`.
//!
//! It is a library with one function, [`main`], because it starts in two ways: as the binary, and from a Python wheel.
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "doc comments of flags are help texts: [space] is a table of a TOML"
)]

mod answer;
mod args;
mod bench;
mod board;
mod bundled;
mod check;
mod child;
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
mod launch;
mod memory;
mod mps;
mod output;
mod printable;
mod progress;
mod prove;
mod quickstart;
mod report;
mod reproduce;
mod run_config;
mod serve;
mod slots;
mod slurm;
mod sweep;
mod table;
mod train;
mod train_display;
mod trained_model;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub use launch::Launch;
use output::say;

const EXAMPLES: &str = "\
Begin here:
  polystep quickstart
  polystep prove '(x+1)*(x+2) + 3*x'
  polystep generate --config large_coeff --proofs 3

Exit codes: 0, done; 1, it failed at run time; 2, the input is wrong; 130, interrupted.";

/// Train Transformers to simplify polynomials step by step, and measure exactly how well they do it
#[derive(Parser, Debug)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The subcommands: each is a module with its flags, `Args`, and what they start, `run`.
macro_rules! commands {
    ($($(#[$help:meta])* $name:ident $module:ident;)+) => {
        #[derive(Subcommand, Debug)]
        enum Command {
            $($(#[$help])* $name($module::Args),)+
        }

        impl Command {
            fn run(self) -> failure::Result<()> {
                match self {
                    $(Command::$name(args) => $module::run(args),)+
                }
            }
        }
    };
}

commands! {
    /// See all that polystep does, in under five minutes
    Quickstart quickstart;
    /// Sample polynomials and write their proofs, as JSONL or Parquet
    Generate generate;
    /// Simplify a polynomial step by step
    Prove prove;
    /// Open a page on which a model proves what you type, and runs and tables are shown
    Serve serve;
    /// Decode a file of inputs with a trained model: greedily, by beam search, recursively, or with the checker
    Answer answer;
    /// Check proofs, step examples or predictions; count verdicts and explain the first failures
    Check check;
    /// Estimate how large a problem space is, with the paper's number beside ours
    Estimate estimate;
    /// Train a Transformer on proofs made on the fly
    Train train;
    /// Train the combinations of a grid, and rank them on the validation set
    Sweep sweep;
    /// Decode the fixed test sets with a trained model and report every number of the paper
    Eval eval;
    /// Write a page about one or more runs: curves, the paper's table, errors, calibration, failures
    Report report;
    /// Reproduce the paper's tables, with the paper's numbers beside ours
    Reproduce reproduce;
    /// Write a trained model as a Hugging Face folder
    Export export;
    /// Show the devices and libraries that were found, and check that they compute correctly
    Doctor doctor;
    /// Measure how fast the library is here
    Bench bench;
    /// Print the completion script of a shell
    Completions completions;
}

/// Reads the arguments. A message about wrong ones repeats them, so it is made of arguments that are safe to print.
fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(arguments).map_err(|error| {
        let safe = arguments.iter().map(|a| printable::printable(&a.to_string_lossy()).into_owned());
        Cli::try_parse_from(safe).err().unwrap_or(error)
    })
}

/// Runs the command line, prints what there is to say, and returns the exit code.
pub fn main(launch: Launch) -> u8 {
    match parse(&launch::remember(launch).arguments) {
        Ok(cli) => cli.command.run().err().map_or(0, failure::Failure::report),
        Err(message) => {
            // Help, the version, or what is wrong; nothing is left to be done when even its stream is gone.
            let _ = message.print();
            message.exit_code() as u8
        }
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

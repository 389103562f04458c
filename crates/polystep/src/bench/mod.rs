//! `polystep bench`: how fast the library is on this machine.

mod decode;
mod generate;
mod train;

use clap::{Args as ClapArgs, Subcommand};
use serde::Serialize;

use crate::failure::Result;

/// Flags of `polystep bench`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Step examples sampled, proved and tokenised per second, on one thread and on all
    Generate(generate::Args),
    /// Training steps per second, on fixed shapes and on real data
    Train(train::Args),
    /// Sequences decoded per second, greedy and with beams
    Decode(decode::Args),
}

/// Runs the bench that was asked for.
pub fn run(args: Args) -> Result<()> {
    match args.what {
        What::Generate(args) => generate::run(args),
        What::Train(args) => train::run(args),
        What::Decode(args) => decode::run(args),
    }
}

/// What every report in JSON begins with.
#[derive(Serialize, Debug)]
struct Head {
    bench: &'static str,
    device: String,
    commit: &'static str,
}

impl Head {
    fn new(bench: &'static str, device: String) -> Head {
        Head { bench, device, commit: polystep_learn::COMMIT }
    }
}

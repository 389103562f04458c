//! `polystep completions`: what the shell needs to complete our commands and flags.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

use crate::failure::Result;
use crate::output::OutputStream;

/// Flags of `polystep completions`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// The shell to complete in
    shell: Shell,
}

/// Prints the completion script.
pub fn run(args: Args) -> Result<()> {
    // Into memory first: clap_complete panics when a pipe closes under it.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "polystep", &mut script);
    let mut out = OutputStream::create(None)?;
    std::io::Write::write_all(&mut out, &script)?;
    out.finish()
}

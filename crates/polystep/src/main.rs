//! The `polystep` binary. The command line itself is the library of the same name, so that a Python wheel can carry it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    polystep::main(polystep::Launch::binary()).into()
}

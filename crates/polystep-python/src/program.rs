//! The command line, as the wheel starts it.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Runs the `polystep` command and returns its exit code.
///
/// `arguments` begin with the name of the program. `command` starts another process of it. `folder` is the folder of the package.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>, command: Vec<OsString>, folder: PathBuf) -> u8 {
    py.detach(|| polystep::main(polystep::Launch { arguments, command, folder: Some(folder) }))
}

//! How this program was started: its arguments, the command that starts another one like it, and where its files lie.
//!
//! Whoever calls [`main`](crate::main) says it once. Nothing else asks for the file of this process: in a Python wheel that is
//! the interpreter.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context;

use crate::failure::Result;

/// How the program was started.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Its arguments, the name of the program first.
    pub arguments: Vec<OsString>,
    /// The command that starts the program without arguments: its binary, or an interpreter with a module.
    pub command: Vec<OsString>,
    /// The folder of the installed program. The bundled models lie in `models` inside it.
    pub folder: Option<PathBuf>,
}

impl Launch {
    /// The binary that this process runs, with the arguments of the process.
    pub fn binary() -> Launch {
        let binary = std::env::current_exe().ok();
        let folder = binary.as_deref().and_then(Path::parent).map(Path::to_owned);
        let command = binary.into_iter().map(OsString::from).collect();
        Launch { arguments: std::env::args_os().collect(), command, folder }
    }
}

static LAUNCH: OnceLock<Launch> = OnceLock::new();

/// Remembers how the program was started; the first call counts.
pub fn remember(launch: Launch) -> &'static Launch {
    LAUNCH.get_or_init(|| launch)
}

/// A command that starts this program again, as a process of its own.
pub fn another() -> Result<Command> {
    let command = LAUNCH.get().and_then(|launch| launch.command.split_first());
    let (program, first) = command.context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(first);
    Ok(command)
}

/// The folder of the installed program, where it is known.
pub fn folder() -> Option<&'static Path> {
    LAUNCH.get()?.folder.as_deref()
}

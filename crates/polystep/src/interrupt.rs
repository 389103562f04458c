//! Ctrl-C, SIGTERM and SIGHUP. The first signal only raises a flag, so that the command can put its files away and end with
//! exit code 130. The second, for a command that is stuck, ends the program at once. Schedulers send one signal to a process and
//! to its parent, which passes it on; so a second signal within a moment is the first one again. A command that writes no file does
//! not listen: the signal ends it in the usual way, and the shell reports the same 130.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::failure::{Failure, Result};

static RAISED: AtomicBool = AtomicBool::new(false);
static CHILD: AtomicBool = AtomicBool::new(false);
/// When the first signal came.
static FIRST: OnceLock<Instant> = OnceLock::new();
/// A second signal within this time is the first one again.
const ECHO: Duration = Duration::from_secs(1);

/// Listens for signals from now on; for commands that write files.
pub fn listen() -> Result<()> {
    let raise = || {
        RAISED.store(true, Ordering::SeqCst);
        if FIRST.get_or_init(Instant::now).elapsed() > ECHO {
            std::process::exit(130);
        }
    };
    Ok(ctrlc::set_handler(raise).context("cannot listen for signals")?)
}

/// Whether standard input tells this process when to stop: then it is the child of another polystep.
pub fn is_child() -> bool {
    CHILD.load(Ordering::SeqCst)
}

/// Raises the flag when standard input comes to its end: whoever started this process, and holds the other end, wants it to
/// put its files away, or is gone.
pub fn when_stdin_closes() -> Result<()> {
    CHILD.store(true, Ordering::SeqCst);
    let wait = || {
        // A standard input that cannot be read is at its end.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        RAISED.store(true, Ordering::SeqCst);
    };
    std::thread::Builder::new().spawn(wait).context("cannot start threads")?;
    Ok(())
}

/// An error once a signal has arrived; long loops ask between two blocks of work.
pub fn check() -> Result<()> {
    if RAISED.load(Ordering::SeqCst) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The flag itself, for a loop that lives in a library.
pub fn flag() -> &'static AtomicBool {
    &RAISED
}

//! A command of this program that runs in a process of its own, the child. Its output goes to a log.
//!
//! A child is stopped by closing its standard input (`--until-stdin-closes`). It then saves its files and ends. The same
//! happens when the time is over, on Ctrl-C, and when the parent dies, so at most one training step is lost. While a child
//! works, it holds a lock on its log.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::failure::Result;
use crate::interrupt;
use crate::launch;
use crate::output::note;

/// How often the parent checks on a child.
const LOOK: Duration = Duration::from_millis(100);
/// Without a terminal: how often a line says how far a child is.
const TELL: Duration = Duration::from_secs(60);
/// How long a child may take to save its files.
const SAVING: Duration = Duration::from_secs(5);

/// How a child ended.
pub enum Ended {
    /// It finished its work.
    Well,
    /// It was stopped.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
    /// The child of another command is working on the same run.
    Busy,
    /// The child of another command worked on the same run and has just ended. The caller must look again at what remains to do.
    Freed,
}

/// Runs this program with `args`, and stops it in time for the deadline, if there is one. `name` is the run that it works on.
pub fn run(name: &str, args: &[String], log: &Path, deadline: Option<Instant>, board: &Board) -> Result<Ended> {
    let cannot = |what: &str| format!("cannot {what} {}", log.display());
    let mut file = OpenOptions::new().create(true).append(true).open(log).with_context(|| cannot("write"))?;
    // The child inherits the lock together with its output, so the lock lasts as long as a process works on the run.
    if is_locked(&file) {
        // A child whose parent was killed saves and ends by itself.
        let began = Instant::now();
        while is_locked(&file) {
            if began.elapsed() >= SAVING || interrupt::check().is_err() {
                board.say(&format!("{name}: another process is training it; skipped"));
                return Ok(Ended::Busy);
            }
            thread::sleep(LOOK);
        }
        return Ok(Ended::Freed);
    }
    writeln!(file, "$ polystep {}", args.join(" "))?;
    let began = file.metadata()?.len();
    let mut command = launch::another()?;
    command.args(args).stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().context("cannot start a child of this program")?;
    let line = board.line(name);
    let mut told = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let late = deadline.is_some_and(|deadline| Instant::now() + SAVING >= deadline);
        if late || interrupt::check().is_err() {
            drop(child.stdin.take());
        }
        let latest = || said(log, began).lines().last().unwrap_or_default().to_owned();
        match &line {
            Some(line) => line.set_message(latest()),
            None if told.elapsed() >= TELL => {
                board.say(&format!("{name}: {}", latest()));
                told = Instant::now();
            }
            None => {}
        }
        thread::sleep(LOOK);
    };
    if let Some(line) = line {
        line.finish_and_clear();
    }
    Ok(match status.code() {
        Some(0) => Ended::Well,
        Some(130) => Ended::Stopped,
        // Ctrl-C sends its signal to the child too.
        None if interrupt::check().is_err() => Ended::Stopped,
        _ => {
            let said = said(log, began);
            let why = said.lines().find_map(|line| line.strip_prefix("error: ")).map(str::to_owned);
            Ended::Failed(why.unwrap_or_else(|| format!("it ended with {status}; see {}", log.display())))
        }
    })
}

fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// What a child has written to the log since it had the length `began`.
fn said(log: &Path, began: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(text.get(began as usize..).unwrap_or_default()).into_owned()
}

/// Shows progress: on a terminal a live line for each child, otherwise plain lines.
pub struct Board {
    lines: Option<MultiProgress>,
}

impl Board {
    /// On standard error.
    pub fn new() -> Board {
        Board { lines: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// Prints a line above the live lines.
    pub fn say(&self, line: &str) {
        match &self.lines {
            Some(lines) => drop(lines.println(line)),
            None => note(line),
        }
    }

    fn line(&self, name: &str) -> Option<ProgressBar> {
        let style = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}");
        let bar = ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Some(self.lines.as_ref()?.add(bar.with_prefix(name.to_owned())))
    }
}

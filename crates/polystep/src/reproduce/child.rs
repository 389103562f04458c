//! One command of this program in a process of its own, its output in a log.
//!
//! A child is stopped by closing its standard input (`--until-stdin-closes`): it puts its files away and ends. This covers the end
//! of the time, Ctrl-C and the death of the parent alike, so a training is never lost beyond its last step. While a child
//! works, it holds a lock on its log.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::failure::Result;
use crate::interrupt;
use crate::output::note;

/// How often a child is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How often a log is told how far a child is.
const TELL: Duration = Duration::from_secs(60);
/// How long a child may take to put its files away.
const SAVING: Duration = Duration::from_secs(5);

/// How a child ended.
pub enum Ended {
    /// It did all its work.
    Well,
    /// It was stopped.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
    /// Another command's child is at work here.
    Busy,
    /// Another command's child was at work here and has ended just now: what there is to do may have changed.
    Freed,
}

/// Runs this binary with `args` as a part of the work called `name`, and stops it in time for the deadline, if it has one.
pub fn run(name: &str, args: &[String], log: &Path, deadline: Option<Instant>, board: &Board) -> Result<Ended> {
    let cannot = |what: &str| format!("cannot {what} {}", log.display());
    let mut file = OpenOptions::new().create(true).append(true).open(log).with_context(|| cannot("write"))?;
    // The child inherits the lock with its output, so it lasts as long as anybody works on the run.
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
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
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
        // A child that a signal ended, as it ends this command.
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

/// What a child has said since `began`.
fn said(log: &Path, began: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(text.get(began as usize..).unwrap_or_default()).into_owned()
}

/// Where progress is shown: a live line for each child on a terminal, else lines.
pub struct Board {
    lines: Option<MultiProgress>,
}

impl Board {
    /// On standard error.
    pub fn new() -> Board {
        Board { lines: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// Says a line, above those that live.
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

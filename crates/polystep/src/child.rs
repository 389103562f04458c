//! A command of this program that runs in a process of its own, the child. Its output goes to a log.
//!
//! A child is stopped by closing its standard input (`--until-stdin-closes`). It then saves its files and ends. The same
//! happens when the time is over, on Ctrl-C, and when the parent dies, so at most one training step is lost.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::board::Board;
use crate::device::Device;
use crate::failure::{BUSY, Result};
use crate::{interrupt, launch};

/// How often the parent checks on a child.
const LOOK: Duration = Duration::from_millis(50);
/// How often the progress of a child is read.
const READ: Duration = Duration::from_millis(500);
/// How long a child may take to save its files.
pub const SAVING: Duration = Duration::from_secs(5);

/// How a child ended.
pub enum Ended {
    /// It finished its work.
    Well,
    /// It was stopped.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
    /// Another process was at its run.
    Busy,
}

/// A child before it starts.
pub struct Child<'a> {
    /// What it does, given the number of its process: the name of a run.
    pub name: &'a dyn Fn(u32) -> String,
    /// The subcommand and its flags.
    pub args: Vec<String>,
    /// Where it computes.
    pub device: Device,
    /// Its threads; if none, it decides.
    pub threads: Option<usize>,
    /// What it has in its environment beside ours.
    pub environment: &'a [(&'static str, std::path::PathBuf)],
    /// Where its output goes, after what is there.
    pub log: &'a Path,
    /// When it must have ended.
    pub deadline: Option<Instant>,
}

impl Child<'_> {
    /// Runs the child to its end, and stops it in time for the deadline.
    pub fn run(self, board: &Board) -> Result<Ended> {
        let Child { name, mut args, device, threads, environment, log, deadline } = self;
        args.extend(["--until-stdin-closes".into(), "--device".into(), device.to_string()]);
        args.extend(threads.into_iter().flat_map(|threads| ["--threads".into(), threads.to_string()]));
        let cannot = || format!("cannot write {}", log.display());
        let mut file = OpenOptions::new().create(true).append(true).open(log).with_context(cannot)?;
        writeln!(file, "$ polystep {}", args.join(" "))?;
        let began = file.metadata()?.len();
        let mut command = launch::another()?;
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.args(&args).stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file);
        let mut child = command.spawn().context("cannot start a child of this program")?;
        let mut line = board.line(device);
        let mut read = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let late = deadline.is_some_and(|deadline| Instant::now() + SAVING >= deadline);
            if late || interrupt::check().is_err() {
                drop(child.stdin.take());
            }
            if read.elapsed() >= READ {
                line.tell(&name(child.id()), said(log, began).lines().last().unwrap_or_default());
                read = Instant::now();
            }
            thread::sleep(LOOK);
        };
        Ok(match status.code() {
            Some(0) => Ended::Well,
            Some(130) => Ended::Stopped,
            Some(code) if code == i32::from(BUSY) => Ended::Busy,
            // Ctrl-C sends its signal to the child too.
            None if interrupt::check().is_err() => Ended::Stopped,
            _ => {
                let said = said(log, began);
                let why = said.lines().find_map(|line| line.strip_prefix("error: ")).map(str::to_owned);
                Ended::Failed(why.unwrap_or_else(|| format!("it ended with {status}")))
            }
        })
    }
}

/// What a child has written to the log since it had the length `began`.
fn said(log: &Path, began: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(text.get(began as usize..).unwrap_or_default()).into_owned()
}

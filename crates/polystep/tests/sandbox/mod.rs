//! A folder to work in, and the command line there. Every file of tests uses a part of it.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A run that is trained in moments and knows nothing.
pub const TINY: &str = "[data]\nconfig = \"small_coeff\"\n[model]\nd = 64\nlayers = 1\nheads = 4\nffn = 64\n\
                        max_positions = 256\n[train]\nbatch = 4\nlr = 1e-3\nsteps = 3\nvalid_proofs = 2\n";

/// Everything on one thread of the CPU.
pub const ALONE: [&str; 4] = ["--device", "cpu", "--threads", "1"];

pub struct Sandbox {
    pub folder: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        Sandbox { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// The names in a folder, sorted.
    pub fn entries(&self, name: &str) -> Vec<String> {
        let entries = self.path(name).read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    /// Trains the tiny model into `run`.
    pub fn trained(&self, run: &str) {
        self.write("tiny.toml", TINY);
        self.ok(&[&["train", "tiny.toml", "--out", run][..], &ALONE].concat());
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polystep"));
        command.current_dir(self.folder.path()).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What it prints; it must succeed.
    pub fn ok(&self, args: &[&str]) -> String {
        succeeded(self.run(args))
    }

    /// What it says of bad input.
    pub fn refused(&self, args: &[&str]) -> String {
        failed(self.run(args), 2)
    }
}

/// The standard output of a command that succeeded.
pub fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The standard error of a command that ended with `code`.
pub fn failed(output: Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Waits for something that a running command does.
pub fn wait_until(child: &mut Child, what: &str, mut happened: impl FnMut() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what} never happened");
        assert!(child.try_wait().unwrap().is_none(), "the command ended before {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal and waits for the end.
pub fn signalled(child: Child, signal: &str) -> Output {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

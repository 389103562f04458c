//! A folder to work in, and the command line there.

use std::path::PathBuf;
use std::process::{Command, Output};

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

    pub fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_polystep")).current_dir(self.folder.path()).args(args).output().unwrap()
    }

    /// What it prints; it must succeed.
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

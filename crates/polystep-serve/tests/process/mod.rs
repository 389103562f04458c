//! `polystep serve` as a process of its own.
#![allow(dead_code, reason = "each program uses a part of it")]

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A server that was started from the binary.
pub struct ServerProcess {
    pub address: SocketAddr,
    child: Child,
}

impl ServerProcess {
    /// Starts it on a free port.
    pub fn start(binary: &str, flags: &[&str]) -> ServerProcess {
        let mut child = Command::new(binary)
            .args(["serve", "--port", "0"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/');
        ServerProcess { address: address.parse().expect("an address"), child }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in MiB.
    pub fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of it");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
    }

    /// Asks it to end. Returns its exit code and what it wrote to standard error.
    pub fn terminate(mut self) -> (Option<i32>, String) {
        let signal = Command::new("kill").arg(self.id().to_string()).status();
        assert!(signal.is_ok_and(|status| status.success()));
        let mut stderr = String::new();
        let _ = self.child.stderr.take().expect("a pipe").read_to_string(&mut stderr);
        (self.child.wait().expect("it ends").code(), stderr)
    }
}

//! Tells the crate which commit it is built from; every run's report names it. `POLYSTEP_COMMIT` overrides git.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=POLYSTEP_COMMIT");
    if std::env::var_os("POLYSTEP_COMMIT").is_some() {
        return;
    }
    // A debug build does not follow every commit: that would rebuild all that depends on it.
    let head = if std::env::var("PROFILE").is_ok_and(|p| p == "release") { "logs/HEAD" } else { "HEAD" };
    if let Some(path) = git(&["rev-parse", "--git-path", head]) {
        println!("cargo:rerun-if-changed={path}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=POLYSTEP_COMMIT={commit}");
    }
}

/// What git says; none outside a repository, as in a crate that was downloaded.
fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

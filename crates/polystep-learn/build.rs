//! Tells the crate which commit it is built from; every run's report names it. `POLYSTEP_COMMIT` overrides git.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=POLYSTEP_COMMIT");
    // A debug build does not follow every commit: that would rebuild all that depends on it.
    let head = if std::env::var("PROFILE").is_ok_and(|p| p == "release") { "logs/HEAD" } else { "HEAD" };
    println!("cargo:rerun-if-changed=../../.git/{head}");
    if std::env::var_os("POLYSTEP_COMMIT").is_some() {
        return;
    }
    let git = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Ok(out) = git
        && out.status.success()
    {
        println!("cargo:rustc-env=POLYSTEP_COMMIT={}", String::from_utf8_lossy(&out.stdout).trim());
    }
}

//! Where threads cannot be started, the data is refused with a sentence, not with a panic.

use std::process::Command;

use polystep_core::{Space, Task};
use polystep_learn::feed::Proofs;

/// Set in the process that wants 64 threads but has room for the stacks of three. The stacks are large, so that plenty of memory is left
/// for everything else when the fourth does not fit.
const INSIDE: &str = "POLYSTEP_TEST_FEW_THREADS";

#[test]
#[cfg(target_os = "linux")]
fn threads_that_cannot_be_started_are_an_error() {
    if std::env::var_os(INSIDE).is_some() {
        let task = Task::new(Space::named("small_coeff").unwrap(), 1);
        let error = Proofs::new(&task, 1, 512).unwrap_err().to_string();
        assert!(error.starts_with("cannot start the threads that make the guard: "), "{error}");
        return;
    }
    let script = "ulimit -v 2000000 && exec \"$0\" --exact threads_that_cannot_be_started_are_an_error";
    let mut inside = Command::new("sh");
    inside
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(INSIDE, "1")
        .env("RAYON_NUM_THREADS", "64")
        .env("RUST_MIN_STACK", "500000000");
    let out = inside.output().unwrap();
    let told = [out.stdout, out.stderr].concat();
    assert!(out.status.success(), "{}: {}", out.status, String::from_utf8_lossy(&told));
}

//! `polystep serve`: it says where it is, proves, and on SIGTERM finishes what runs and ends with exit code 0.
#![cfg(unix)]

#[path = "../../polystep-serve/tests/client/mod.rs"]
mod client;
#[path = "../../polystep-serve/tests/process/mod.rs"]
mod process;

use client::{Connection, expression, post};
use process::ServerProcess;

#[test]
fn sigterm_finishes_what_runs() {
    let server = ServerProcess::start(env!("CARGO_BIN_EXE_polystep"), &["--threads", "1"]);
    let mut connection = Connection::open(server.address).unwrap();
    let expr = "(x+1)*(x+2)*(x+3)+(2*x+1)*(3*x+2)+(x)*(4)";
    connection.send(&post(server.address, "/api/prove", "text/event-stream", &expression(expr))).unwrap();
    assert_eq!(connection.head().unwrap().status, 200);
    let first = String::from_utf8(connection.chunk().unwrap().unwrap()).unwrap();
    assert!(first.starts_with("event: start\n"), "{first}");
    let address = server.address;
    let ended = std::thread::spawn(move || server.terminate());
    let mut last = String::new();
    while let Some(chunk) = connection.chunk().unwrap() {
        last = String::from_utf8(chunk).unwrap();
    }
    assert!(last.contains("event: end\n"), "the proof came to its end: {last}");
    let (code, stderr) = ended.join().unwrap();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(Connection::open(address).is_err(), "nobody listens any more");
}

#[test]
fn what_cannot_be_served_is_said() {
    let run = |flags: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_polystep")).arg("serve").args(flags).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, stderr) = run(&["--runs", "no/such/folder"]);
    assert!(code == Some(2) && stderr.contains("--runs: there is no folder no/such/folder"), "{stderr}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, stderr) = run(&["--port", &taken.local_addr().unwrap().port().to_string()]);
    assert!(code == Some(1) && stderr.contains("another --port may be free"), "{stderr}");
}

//! Hostile requests against a server of its own: no panic, no hang, no 200 where there should be none.
//!
//!     cargo run --release -p polystep-serve --example hostile -- target/release/polystep 2000

#[path = "../tests/attack/mod.rs"]
mod attack;
#[path = "../tests/client/mod.rs"]
mod client;
#[path = "../tests/process/mod.rs"]
mod process;

use std::time::Instant;

use process::ServerProcess;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let binary = arguments.next().expect("the path of the binary polystep");
    let requests = arguments.next().map_or(2000, |n| n.parse().expect("a number of requests"));
    let server = ServerProcess::start(&binary, &[]);
    let began = Instant::now();
    let (sent, wrong) = attack::attack_with(server.address, requests);
    let seconds = began.elapsed().as_secs_f64();
    for (kind, count) in &sent {
        println!("{count:6}  {kind}");
    }
    println!("{:6}  hostile requests of {} kinds in {seconds:.1} s", sent.values().sum::<usize>(), sent.len());
    let well = attack::still_well(server.address);
    let (code, stderr) = server.terminate();
    println!(
        "{:6}  wrong answers; then a proof: {}; after SIGTERM: exit code {code:?}",
        wrong.len(),
        if well.is_ok() { "right" } else { "wrong" }
    );
    for sentence in &wrong {
        println!("{sentence}");
    }
    assert!(wrong.is_empty() && well.is_ok() && code == Some(0), "{well:?}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

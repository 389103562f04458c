//! Many clients against one after the other: proofs per second, answers, resident memory.
//!
//!     cargo run --release -p polystep-serve --example load -- target/release/polystep 64 60
//!
//! Every answer is compared with the exact proof, line by line. Polynomials are drawn from the spaces that the universal
//! model has learned; no two are the same.

#[path = "../tests/client/mod.rs"]
mod client;
#[path = "../tests/process/mod.rs"]
mod process;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::Connection;
use polystep_core::{Polynomials, Purpose, Space, Style, Writing};
use process::ServerProcess;

const MODEL: &str = "all-spaces";
/// Seconds that one client has to itself.
const ALONE: u64 = 20;

/// What became of the requests of some clients.
#[derive(Default)]
struct Outcome {
    /// Answers by status.
    statuses: BTreeMap<u16, u64>,
    /// Answers that are not the exact proof.
    wrong: u64,
    /// How long each proof took.
    times: Vec<Duration>,
}

/// Draws a polynomial and its proof: what is asked, and the lines that must come.
fn problem(polynomials: &mut Polynomials, index: u64) -> (String, Vec<String>) {
    let writing = Writing::default();
    polynomials.draw(index);
    let start = polynomials.state(writing.notation);
    let proof = writing.proof(&start).expect("a sampled polynomial");
    (writing.print(&start), writing.lines(&proof).map(|line| writing.text(&line.target)).collect())
}

/// One client asks until the time is over.
fn client(server: &ServerProcess, seed: u64, next: &AtomicU64, until: Instant) -> Outcome {
    let spaces = ["small_coeff", "medium_coeff", "no_backtrack"].map(|key| Space::named(key).expect("a space"));
    let mut sources = spaces.map(|space| {
        Polynomials::new(&space, 1, Style::default(), seed, Purpose::Test).expect("a space that can be sampled")
    });
    let mut connection = Connection::open(server.address).expect("a connection");
    let mut outcome = Outcome::default();
    while Instant::now() < until {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let (expr, lines) = problem(&mut sources[index as usize % 3], index);
        let body = serde_json::json!({ "expr": expr, "model": MODEL }).to_string();
        let began = Instant::now();
        let answer = connection.post("/api/prove", &body).expect("an answer");
        *outcome.statuses.entry(answer.status).or_default() += 1;
        match answer.status {
            200 => {
                outcome.times.push(began.elapsed());
                let proof = answer.json();
                let found = proof["steps"].as_array().expect("steps").iter().map(|step| step["line"].as_str());
                outcome.wrong += u64::from(!found.eq(lines.iter().map(|line| Some(line.as_str()))));
            }
            _ => thread::sleep(Duration::from_millis(200)),
        }
    }
    outcome
}

/// So many clients for so long. Prints what became of them, and returns proofs per second and whether all is well.
fn clients(server: &ServerProcess, count: u64, seconds: u64, seed: u64) -> (f64, bool) {
    let (began, next) = (Instant::now(), AtomicU64::new(0));
    let until = began + Duration::from_secs(seconds);
    let mut all = Outcome::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(|| client(server, seed, &next, until))).collect();
        for worker in workers {
            let Outcome { statuses, wrong, times } = worker.join().expect("a client");
            statuses.into_iter().for_each(|(status, n)| *all.statuses.entry(status).or_default() += n);
            all.wrong += wrong;
            all.times.extend(times);
        }
    });
    all.times.sort();
    let rate = all.times.len() as f64 / began.elapsed().as_secs_f64();
    let at = |share: f64| all.times[(share * (all.times.len() - 1) as f64) as usize].as_millis();
    println!(
        "{count:3} clients, {seconds} s: {rate:.1} proofs/s, {} ms at the median, {} ms at 99 %; answers {:?}, {} wrong",
        at(0.5),
        at(0.99),
        all.statuses,
        all.wrong
    );
    (rate, all.wrong == 0 && all.statuses.keys().all(|status| [200, 429].contains(status)))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let binary = arguments.next().expect("the path of the binary polystep");
    let mut number = |otherwise: u64| arguments.next().map_or(otherwise, |n| n.parse().expect("a number"));
    let (count, seconds) = (number(64), number(60));
    let server = ServerProcess::start(&binary, &[]);
    clients(&server, 1, 3, 1);
    let (one, one_well) = clients(&server, 1, ALONE.min(seconds), 2);
    let ((many, many_well), [early, late]) = thread::scope(|scope| {
        let load = scope.spawn(|| clients(&server, count, seconds, 3));
        let began = Instant::now();
        let memory = [seconds.min(60) / 6, seconds - 1].map(|at| {
            thread::sleep((began + Duration::from_secs(at)).saturating_duration_since(Instant::now()));
            server.resident()
        });
        (load.join().expect("the load"), memory)
    });
    println!("{:.2} times the proofs of one client after the other", many / one);
    println!(
        "resident memory: {early:.0} MiB at {} s, {late:.0} MiB at {} s: {:.2} times",
        seconds.min(60) / 6,
        seconds - 1,
        late / early
    );
    let (code, stderr) = server.terminate();
    println!("after SIGTERM: exit code {code:?}");
    assert!(one_well && many_well && code == Some(0) && !stderr.contains("panicked"), "{stderr}");
}

//! Hostile requests, and what each of them must get: a status that says no, or a closed connection. Never 200, never a hang.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Connection, expression, post};

/// The longest that any of them may take: a client that sends slowly is cut off after ten seconds.
const PATIENCE: Duration = Duration::from_secs(25);

/// What a request must get.
enum Wanted {
    /// One of these.
    Status(&'static [u16]),
    /// One of these, or the connection is closed without a word.
    StatusOrClosed(&'static [u16]),
    /// We go away; nobody answers.
    Nothing,
}
use Wanted::{Nothing, Status, StatusOrClosed};

struct Attack {
    name: &'static str,
    bytes: Vec<u8>,
    wanted: Wanted,
}

fn attack(name: &'static str, bytes: impl Into<Vec<u8>>, wanted: Wanted) -> Attack {
    Attack { name, bytes: bytes.into(), wanted }
}

/// One of each kind. `n` varies what can vary.
fn attacks(address: SocketAddr, n: usize) -> Vec<Attack> {
    let json = |path: &str, body: &str| post(address, path, "application/json", body);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
    let with = |headers: &str| format!("GET /api/models HTTP/1.1\r\n{headers}\r\n").into_bytes();
    let expr = |text: &str| json("/api/prove", &expression(text));
    let up = "..%2f".repeat(1 + n % 9);
    let dots = "../".repeat(1 + n % 9);
    let mut huge_chunks = format!(
        "POST /api/prove HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for _ in 0..20 {
        huge_chunks.extend(format!("2000\r\n{}\r\n", "x".repeat(0x2000)).into_bytes());
    }
    let mut not_utf8 = json("/api/parse", "{\"text\":\"??\"}");
    not_utf8.iter_mut().filter(|byte| **byte == b'?').for_each(|byte| *byte = 0xff);
    vec![
        attack("bad JSON", json("/api/prove", &format!("{{\"expr\": {n}")), Status(&[400])),
        attack("a number for a text", json("/api/prove", &format!("{{\"expr\": {n}}}")), Status(&[400])),
        attack("an unknown field", json("/api/parse", "{\"text\": \"x\", \"eval\": \"1\"}"), Status(&[400])),
        attack("nested JSON", json("/api/prove", &"[".repeat(60_000)), Status(&[400])),
        attack("JSON that is not UTF-8", not_utf8, Status(&[400])),
        attack("an empty body", json("/api/prove", ""), Status(&[400])),
        attack("a huge body", json("/api/prove", &"x".repeat(1 << 20)), StatusOrClosed(&[413])),
        attack("a huge body in chunks", huge_chunks, StatusOrClosed(&[413])),
        attack(
            "another type of body",
            format!(
                "POST /api/prove HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}"
            ),
            Status(&[415]),
        ),
        attack(
            "a lie about the length",
            format!(
                "POST /api/prove HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: -1\r\n\r\n"
            ),
            StatusOrClosed(&[400]),
        ),
        attack(
            "two lengths",
            format!(
                "POST /api/prove HTTP/1.1\r\nHost: {address}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{{}}"
            ),
            StatusOrClosed(&[400, 415]),
        ),
        attack("traversal", get(&format!("/api/runs/{up}etc%2fpasswd")), Status(&[404])),
        attack("traversal in a report", get(&format!("/api/runs/{up}models/report")), Status(&[404])),
        attack("traversal in a record", get(&format!("/api/records/{up}runs")), Status(&[404])),
        attack("traversal in a table", get(&format!("/api/tables/{up}var1coarse")), Status(&[404])),
        attack("traversal in the path", get(&format!("/{dots}etc/passwd")), Status(&[404])),
        attack("a run named with zero", get("/api/runs/%00"), Status(&[404])),
        attack("a name that is not UTF-8", get("/api/runs/%ff%fe"), Status(&[400, 404])),
        attack("a foreign Host", with(&format!("Host: evil{n}.example\r\n")), Status(&[403])),
        attack(
            "a foreign Host with our port",
            with(&format!("Host: evil.example:{}\r\n", address.port())),
            Status(&[403]),
        ),
        attack(
            "a foreign Origin",
            with(&format!("Host: {address}\r\nOrigin: http://evil{n}.example\r\n")),
            Status(&[403]),
        ),
        attack("the null Origin", with(&format!("Host: {address}\r\nOrigin: null\r\n")), Status(&[403])),
        attack("another site", with(&format!("Host: {address}\r\nSec-Fetch-Site: cross-site\r\n")), Status(&[403])),
        attack("no Host", with(""), Status(&[400])),
        attack("two Hosts", with(&format!("Host: {address}\r\nHost: {address}\r\n")), Status(&[400])),
        attack(
            "another authority",
            format!("GET http://evil.example/ HTTP/1.1\r\nHost: {address}\r\n\r\n"),
            Status(&[403]),
        ),
        attack("the wrong method", get("/api/prove"), Status(&[405])),
        attack("an unknown path", get(&format!("/secret{n}")), Status(&[404])),
        attack("garbage", format!("\x16\x03\x01{n}\x00\x7f\r\n\r\n"), StatusOrClosed(&[400])),
        attack(
            "a long header",
            with(&format!("Host: {address}\r\nX: {}\r\n", "y".repeat(100_000))),
            StatusOrClosed(&[400, 431]),
        ),
        attack(
            "many headers",
            with(&format!("Host: {address}\r\n{}", "X: y\r\n".repeat(500))),
            StatusOrClosed(&[400, 431]),
        ),
        attack("a long address", get(&format!("/{}", "a".repeat(70_000))), StatusOrClosed(&[414, 431])),
        attack("markup", expr("<script>alert(1)</script>"), Status(&[422])),
        attack("a deep expression", expr(&"(".repeat(4000)), Status(&[422])),
        attack("a large expression", expr(&"(x+1)*".repeat(600)), Status(&[422])),
        attack("a tower", expr("((x+1)^9999)^9999"), Status(&[422])),
        attack("a large number", expr(&"9".repeat(400 + n % 50)), Status(&[422])),
        attack("control characters", expr("x\u{0}+\u{1b}[31m1"), Status(&[422])),
        attack("nothing to prove", expr("   "), Status(&[422])),
        attack(
            "an unknown model",
            json("/api/prove", &format!("{{\"expr\":\"(x+1)*(x+2)\",\"model\":\"{dots}models\"}}")),
            Status(&[404]),
        ),
        attack(
            "a step that is not there",
            json("/api/step", "{\"expr\":\"(x+1)*(x+2)\",\"step\":999999999999}"),
            Status(&[404]),
        ),
        attack("a negative step", json("/api/step", "{\"expr\":\"(x+1)*(x+2)\",\"step\":-1}"), Status(&[400])),
        attack("too many variables", get("/api/random?space=small_coeff&vars=99&seed=1"), Status(&[422])),
        attack("an unknown space", get(&format!("/api/random?space={up}&vars=1&seed=1")), Status(&[422])),
        attack("a bad seed", get("/api/random?space=small_coeff&vars=1&seed=x"), Status(&[400])),
        attack("one line to check", json("/api/check", "{\"lines\":[\"(x1)\"]}"), Status(&[400])),
        attack("lines that cannot be read", json("/api/check", "{\"lines\":[\"((\",\"x\"]}"), Status(&[422])),
        attack(
            "a closed stream",
            post(address, "/api/prove", "text/event-stream", &expression(&format!("(x+{n})*(x+2)*(x+3)+(x)*(4)"))),
            Nothing,
        ),
        attack("a broken request", json("/api/prove", &expression("(x+1)*(x+2)"))[..60].to_vec(), Nothing),
        attack("a slow header", format!("GET / HTTP/1.1\r\nHost: {address}\r\nX: "), StatusOrClosed(&[408])),
        attack(
            "a slow body",
            format!(
                "POST /api/prove HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
            ),
            StatusOrClosed(&[408]),
        ),
    ]
}

/// Sends a request and says what is wrong with what came of it.
fn outcome(address: SocketAddr, attack: &Attack) -> Result<(), String> {
    let began = Instant::now();
    let mut connection = Connection::open(address).map_err(|e| format!("{}: cannot connect: {e}", attack.name))?;
    // The server may close the connection before it has read everything.
    let _ = connection.send(&attack.bytes);
    if matches!(attack.wanted, Nothing) {
        return Ok(());
    }
    let answer = connection.answer();
    if began.elapsed() > PATIENCE {
        return Err(format!("{}: it took {:?}", attack.name, began.elapsed()));
    }
    match (&attack.wanted, answer) {
        (Status(wanted) | StatusOrClosed(wanted), Ok(answer)) if wanted.contains(&answer.status) => Ok(()),
        (StatusOrClosed(_), Err(_)) => Ok(()),
        (_, Ok(answer)) => Err(format!("{}: it got {} {}", attack.name, answer.status, answer.body)),
        (_, Err(error)) => Err(format!("{}: {error}", attack.name)),
    }
}

/// Sends at least so many hostile requests, 32 at a time. Returns how many of each kind were sent, and what went wrong.
pub fn attack_with(address: SocketAddr, requests: usize) -> (BTreeMap<&'static str, usize>, Vec<String>) {
    let kinds = attacks(address, 0).len();
    let all: Vec<Attack> = (0..requests.div_ceil(kinds)).flat_map(|n| attacks(address, n)).collect();
    let mut sent = BTreeMap::new();
    for attack in &all {
        *sent.entry(attack.name).or_insert(0) += 1;
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(attack) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
            wrong.extend(outcome(address, attack).err());
        }
        wrong
    };
    let wrong = thread::scope(|scope| {
        let workers: Vec<_> = (0..32).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    (sent, wrong)
}

/// Whether a connection is still answered as it should be: a proof, and the page.
pub fn still_well(address: SocketAddr) -> Result<(), String> {
    let proof = Connection::open(address).and_then(|mut c| c.post("/api/prove", &expression("(x+1)*(x+2)+3*x")));
    let proof = proof.map_err(|e| e.to_string())?;
    if proof.status != 200 || proof.json()["endpoint"] != "x1^2+6*x1+2" {
        return Err(format!("a proof: {} {}", proof.status, proof.body));
    }
    let mut raw = TcpStream::connect(address).map_err(|e| e.to_string())?;
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    raw.write_all(request.as_bytes()).map_err(|e| e.to_string())?;
    let mut page = String::new();
    raw.read_to_string(&mut page).map_err(|e| e.to_string())?;
    if page.starts_with("HTTP/1.1 200 OK") { Ok(()) } else { Err(page) }
}

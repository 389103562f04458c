//! The server as a client meets it: proofs as JSON and as events, refusals, and hostile requests.

mod attack;
mod client;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use client::{Connection, expression, post};
use polystep_serve::{ServeSettings, serve_until};
use serde_json::{Value, json};

/// A server with the models and results of the repository, which ends with this value.
struct Server {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(runs: Option<PathBuf>) -> Server {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let settings = ServeSettings {
            address: "127.0.0.1:0".parse().unwrap(),
            hosts: Vec::new(),
            models: Some(root.join("models")),
            results: Some(root.join("results")),
            runs,
            threads: 1,
            time_limit: Duration::from_secs(60),
        };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, address) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let stop = async { stopped.await.unwrap_or_default() };
            runtime.block_on(serve_until(&settings, |address| ready.send(address).unwrap(), stop)).unwrap();
        });
        let address = address.recv_timeout(Duration::from_secs(60)).expect("the server starts");
        Server { address, stop: Some(stop), thread: Some(thread) }
    }

    fn connection(&self) -> Connection {
        Connection::open(self.address).unwrap()
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.connection().get(path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.connection().post(path, &body.to_string()).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

/// The events of a stream: names and data.
fn events(server: &Server, expr: &str) -> Vec<(String, Value)> {
    let mut connection = server.connection();
    connection.send(&post(server.address, "/api/prove", "text/event-stream", &expression(expr))).unwrap();
    let answer = connection.answer().unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    let event = |text: &str| {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        (field("event: ").to_owned(), serde_json::from_str(field("data: ")).unwrap())
    };
    answer.body.split("\n\n").filter(|text| !text.is_empty()).map(event).collect()
}

#[test]
fn proofs_as_events_and_as_json() {
    let server = Server::start(None);
    let found = events(&server, "(a+1)(a+2) + 3a");
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "step", "step", "end"]);
    let (start, first) = (&found[0].1, &found[1].1);
    assert_eq!(
        (&start["names"]["x1"], &start["lines"], &start["endpoint"]),
        (&json!("a"), &json!(2), &json!("x1^2+6*x1+2"))
    );
    assert_eq!(first["shown"]["before"], "(x1+1)*(x1+2)+(3*x1)");
    assert_eq!(first["shown"]["rewritten"], json!({"start": 0, "end": 13}));
    assert!(first["author"].is_string() && first["verdict"].is_string() && first["sentence"].is_string());
    assert_eq!(found[3].1["endpoint"], "x1^2+6*x1+2");

    let whole = server.post("/api/prove", json!({"expr": "(a+1)(a+2) + 3a"}));
    let lines =
        |proof: &Value| proof["steps"].as_array().unwrap().iter().map(|s| s["line"].clone()).collect::<Vec<_>>();
    assert_eq!(lines(&whole), found[1..3].iter().map(|(_, step)| step["line"].clone()).collect::<Vec<_>>());
    assert_eq!(whole["steps_by"], found[3].1["steps_by"]);

    let named = server
        .post("/api/prove", json!({"expr": "(x+1)*(x+2)+(3)*(4)", "model": "large_coeff-1-coarse-infix-calculator"}));
    assert_eq!(
        (&named["model"], &named["endpoint"]),
        (&json!("large_coeff-1-coarse-infix-calculator"), &json!("x1^2+3*x1+14"))
    );
    let nothing = events(&server, "2x+1");
    assert_eq!(nothing.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["start", "end"]);
}

#[test]
fn all_about_a_step() {
    let server = Server::start(None);
    let step = server.post("/api/step", json!({"expr": "(x+1)*(x+2)+3*x", "step": 1}));
    let beams = step["beams"].as_array().unwrap();
    assert_eq!(beams.len(), 5);
    let probabilities: Vec<f64> = beams.iter().map(|beam| beam["probability"].as_f64().unwrap()).collect();
    assert!(probabilities.is_sorted_by(|a, b| a >= b) && probabilities[0] > 0.5, "{probabilities:?}");
    assert_eq!((&beams[0]["verdict"], &beams[0]["text"]), (&json!("exact"), &json!("x1^2+6*x1+2")));
    let attention = &step["attention"];
    let terms = |side: &str| attention[side].as_array().unwrap().iter().filter(|part| part["term"] == true).count();
    assert_eq!((terms("source"), terms("target")), (4, 3));
    for row in attention["weights"].as_array().unwrap() {
        let total: f64 = row.as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).sum();
        assert!(row.as_array().unwrap().len() == 4 && total > 0.0 && total < 1.0001, "{row}");
    }
}

#[test]
fn what_is_typed_is_read_or_refused_with_its_place() {
    let server = Server::start(None);
    let read = |text: &str| server.post("/api/parse", json!({ "text": text }));
    assert_eq!(read("(a+1)²"), json!({"ok": true, "read_as": "(a+1)*(a+1)", "rewritten": true}));
    assert_eq!(read("(x+1)*(x)")["rewritten"], false);
    let wrong = read("x²/3");
    assert_eq!((&wrong["ok"], &wrong["span"]), (&json!(false), &json!([2, 3])), "places count characters");
    assert!(wrong["error"].as_str().unwrap().starts_with("division is not possible"));
    let refused = server.connection().post("/api/prove", &expression("x²/3")).unwrap();
    assert_eq!((refused.status, &refused.json()["span"]), (422, &json!([2, 3])));

    let checked =
        server.post("/api/check", json!({"lines": ["(x1+1)*(x1+2)+(3)", "(x1^2+3*x1+2)+(3)", "x1^2+3*x1+6"]}));
    assert_eq!((&checked["right"], &checked["lines"][0]["verdict"]), (&json!(false), &json!("exact")));
    assert_eq!(checked["lines"][1]["verdict"], "wrong_value");
}

#[test]
fn lists_runs_and_tables() {
    let runs = tempfile::tempdir().unwrap();
    let run = runs.path().join("mine");
    std::fs::create_dir(&run).unwrap();
    for file in ["config.toml", "metrics.json", "metrics.jsonl"] {
        let record =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/runs/large_coeff-1-coarse-infix").join(file);
        std::fs::copy(record, run.join(file)).unwrap();
    }
    let server = Server::start(Some(runs.path().to_path_buf()));
    let models = server.get("/api/models");
    assert_eq!(models["models"].as_array().unwrap().len(), 4);
    for space in models["spaces"].as_array().unwrap() {
        let path = format!("/api/random?space={}&vars={}&seed=7", space["space"].as_str().unwrap(), space["vars"]);
        assert_eq!(server.get(&path), server.get(&path), "the same seed gives the same polynomial");
    }
    let list = server.get("/api/runs");
    assert_eq!((&list[0]["name"], &list[0]["state"]), (&json!("mine"), &json!("finished")));
    let detail = server.get("/api/runs/mine");
    assert!(!detail["valid"].as_array().unwrap().is_empty() && !detail["tests"].as_array().unwrap().is_empty());
    let report = server.connection().get("/api/runs/mine/report").unwrap();
    assert!(report.status == 200 && report.body.starts_with("<!doctype html>"), "{}", report.status);
    assert!(report.header("content-security-policy").unwrap().starts_with("sandbox allow-scripts; default-src 'none'"));
    assert_eq!(server.get("/api/tables").as_array().unwrap().len(), 17);
    let table = server.get("/api/tables/var1coarsefull");
    let run = table["runs"].as_array().unwrap().iter().flat_map(|names| names.as_array().unwrap()).next().unwrap();
    assert!(!server.get(&format!("/api/records/{}", run.as_str().unwrap()))["valid"].as_array().unwrap().is_empty());
    assert!(!server.get("/api/gallery").as_array().unwrap().is_empty());
}

#[test]
fn the_page_carries_its_headers() {
    let server = Server::start(None);
    let page = server.connection().get("/").unwrap();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'") && !policy.contains("unsafe")
    );
    assert_eq!(
        (page.header("x-content-type-options"), page.header("cache-control")),
        (Some("nosniff"), Some("no-store"))
    );
    let refused = server.connection().get("/nothing").unwrap();
    assert!(refused.status == 404 && refused.header("content-security-policy") == Some(policy));
}

#[test]
fn many_clients_at_once_are_all_answered_rightly() {
    let server = Server::start(None);
    let ask = |i: usize| {
        let expr = format!("(x+{})*(x+2)+(3)*(x+{i})", i + 1);
        let answer = server.connection().post("/api/prove", &expression(&expr)).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        // (x+i+1)(x+2) + 3(x+i)
        let (one, none) = (i + 6, 5 * i + 2);
        assert_eq!(answer.json()["endpoint"], format!("x1^2+{one}*x1+{none}"));
    };
    std::thread::scope(|scope| (1..=16).for_each(|i| drop(scope.spawn(move || ask(i)))));
}

#[test]
fn hostile_requests_get_nowhere() {
    let server = Server::start(None);
    let (sent, wrong) = attack::attack_with(server.address, 60);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(sent.values().sum::<usize>() >= 60);
    attack::still_well(server.address).unwrap();
}

//! What is fuzzed: one function for each kind of text or file that polystep reads and did not write.
//!
//! A target fails by a panic. Reading without a panic is the least that is asked. Where there is a second way to the same answer, the two
//! are compared: what was read is printed and read again, an exact proof is checked, a forged state is saved and loaded.
//! The functions are used twice: by cargo-fuzz on nightly, and by a test that runs the committed corpora on stable.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::time::Duration;

use polystep_core::notation::{Open, latex, parse_open, parse_tokens, print_open, write_tokens};
use polystep_core::{
    Granularity, Notation, Polynomials, Purpose, Setting, SpaceTable, State, StepKind, Style, Verdict, Writing, token,
    typed,
};
use polystep_learn::config::RunConfig;
use polystep_learn::model::{ModelConfig, ParamLayout, Size};
use polystep_learn::sweep::Sweep;
use polystep_learn::train::{Checkpoint, RunState};
use polystep_learn::weights::load_weights;
use polystep_record::audit::{audit_proof, check_lengths};
use polystep_record::log::LogLine;
use polystep_record::{ExampleRecord, Prediction, ProofRecord, Question, RunFolder, StepRecord};
use polystep_serve::{ServeSettings, serve_until};
use polystep_study::csv;
use polystep_study::ledger::Ledger;
use polystep_study::score::score;
use polystep_study::tables::PaperTable;

/// A target with its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. The corpus of each lies in the folder of its name.
pub const TARGETS: [Target; 9] = [
    ("typed", typed),
    ("infix", infix),
    ("prefix", prefix),
    ("brackets", brackets),
    ("records", records),
    ("tomls", tomls),
    ("safetensors", safetensors),
    ("csvs", csvs),
    ("http", http),
];

/// States of more tokens are read, but not proved: a proof of the longest state that is allowed takes a second.
const PROVED: usize = 256;

/// What a person types.
pub fn typed(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    match typed::read(text) {
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{error}");
            assert!(text.get(error.span).is_some(), "the place is between characters");
        }
        Ok(read) => {
            let writing = Writing::default();
            let again = writing.parse(&read.text()).expect("what was printed is read");
            assert_eq!(again, *read.state());
            assert_eq!(typed::read(&read.text()).expect("it is typed, too").state(), read.state());
            proved(&writing, read.state());
        }
    }
}

/// The strict language in infix.
pub fn infix(data: &[u8]) {
    strict(data, Notation::Infix);
}

/// The strict language in prefix.
pub fn prefix(data: &[u8]) {
    strict(data, Notation::Prefix);
}

/// The first byte picks the style, the rest is read.
fn strict(data: &[u8], notation: Notation) {
    let Some((&first, rest)) = data.split_first() else { return };
    let Ok(text) = str::from_utf8(rest) else { return };
    let style = Style { ones: first & 1 == 1, ..Style::default() };
    match parse_open(text, notation, style) {
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "the place is between characters: {error}");
            error.caret(text);
        }
        Ok((state, open)) => {
            let printed = print_open(&state, &open, notation, style);
            let (again, brackets) = parse_open(&printed, notation, style).expect("what was printed is read");
            assert_eq!(print_open(&again, &brackets, notation, style), printed);
            latex(&state, style);
            proved(&Writing { notation, style, ..Writing::default() }, &state);
        }
    }
}

/// Its proof, if it is short: every line must be what the line before it asks for.
fn proved(writing: &Writing, state: &State) {
    let mut tokens = Vec::new();
    write_tokens(state, &Open::new(), writing.notation, writing.style, &mut tokens);
    if tokens.len() > PROVED {
        return;
    }
    let Ok(proof) = writing.proof(state) else { return };
    if let (Ok(start), Ok(end)) = (state.value(writing.style.order), proof.end().value(writing.style.order)) {
        assert_eq!(start, end, "a proof keeps the value");
    }
    for line in writing.lines(&proof).take(8) {
        assert_eq!(writing.check_line(&line.input, &line.target).verdict, Verdict::Exact);
    }
}

/// A model's tokens for a calculator. The first byte picks the notation; the rest is text, or tokens as they are.
pub fn brackets(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let notation = if first & 1 == 0 { Notation::Infix } else { Notation::Prefix };
    let tokens = match str::from_utf8(rest).map(token::encode) {
        Ok(Ok(tokens)) if first & 2 == 0 => tokens,
        _ => rest.iter().map(|byte| byte % 64).collect(),
    };
    let writing = Writing { setting: Setting::Calculator, notation, ..Writing::default() };
    let evaluated = writing.evaluated(&tokens);
    if let Some(evaluated) = &evaluated {
        assert!(!evaluated.contains(&token::BRACKET), "every bracket is evaluated");
    }
    if let Ok((state, open)) = parse_tokens(&tokens, notation, Style::default()) {
        let mut again = Vec::new();
        write_tokens(&state, &open, notation, Style::default(), &mut again);
        if again == tokens {
            assert!(evaluated.is_some(), "what the language writes is evaluated");
        }
    }
    let kind = StepKind::ALL[usize::from(first >> 2) % StepKind::ALL.len()];
    for setting in Setting::ALL {
        let writing = Writing { setting, notation, ..Writing::default() };
        if writing.validate().is_ok() {
            assert!(writing.judge(kind, &tokens, &tokens).raw_exact);
            writing.state(&tokens);
            writing.check_line(&tokens, &tokens);
        }
    }
}

/// Lines of JSON: proofs, predictions, pairs, questions, log lines; and `metrics.json`.
pub fn records(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(record) = serde_json::from_str::<ProofRecord>(text)
        && let Ok(audit) = audit_proof(&record)
    {
        assert_eq!(audit.steps.len(), record.steps.len());
    }
    if let Ok(prediction) = serde_json::from_str::<Prediction>(text)
        && check_lengths([prediction.input.as_str(), &prediction.target]).is_ok()
    {
        let writing = Writing::by_looks(prediction.kind, &prediction.input, &prediction.target);
        if prediction.input.len() < PROVED {
            score(&prediction, &writing.fitted(&prediction.input, &prediction.target));
        }
        score(&prediction, &writing);
    }
    if let Ok(log) = serde_json::from_str::<LogLine>(text) {
        let written = serde_json::to_string(&log).expect("a line can be written");
        assert_eq!(serde_json::from_str::<LogLine>(&written).ok(), Some(log), "{written}");
    }
    let _ = serde_json::from_str::<StepRecord>(text);
    let _ = serde_json::from_str::<ExampleRecord>(text).map(ExampleRecord::pairs);
    let _ = serde_json::from_str::<Question>(text);
    if text.contains("evaluations") || text.contains("percent") {
        std::fs::write(FOLDER.join("metrics.json"), data).expect("the folder is there");
        let _ = RunFolder::new(&*FOLDER).read_metrics();
    }
}

/// TOMLs: a run, a sweep, a space.
pub fn tomls(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // Files that a TOML names are read elsewhere: here nothing but the text counts.
    if [".toml", "init", "files"].iter().any(|name| text.contains(name)) {
        return;
    }
    if let Ok(config) = RunConfig::from_toml(text, &[]) {
        let again = RunConfig::from_toml(&config.to_toml(), &[]);
        assert_eq!(again.expect("what was written is read"), config);
    }
    if let Ok(sweep) = Sweep::from_toml(text) {
        Sweep::from_toml(&sweep.to_toml()).expect("what was written is read");
    }
    if let Ok(space) = SpaceTable::from_toml(text).and_then(|table| table.resolve())
        && space.validate(1).is_ok()
        && space.products.max <= 4
        && space.factors.max <= 4
    {
        // A space that is too small or too large is refused here, and does not draw for ever.
        if let Ok(mut drawn) = Polynomials::new(&space, 1, Style::default(), 1, Purpose::Train) {
            drawn.draw(0);
            proved(&Writing { granularity: Granularity::FINE, ..Writing::default() }, &drawn.state(Notation::Infix));
        }
    }
}

/// safetensors. The first byte says what the rest is: a whole file, a header alone, or the state of a checkpoint.
pub fn safetensors(data: &[u8]) {
    const PARAMS: usize = 2;
    static LAYOUT: LazyLock<ParamLayout> = LazyLock::new(|| {
        let config =
            ModelConfig { d: 8, heads: 1, ffn: 8, layers: 1, max_positions: 4, ..ModelConfig::of_size(Size::S) };
        ParamLayout::new(&config)
    });
    let Some((&first, rest)) = data.split_first() else { return };
    let path = FOLDER.join("a.safetensors");
    if first % 3 == 2 {
        let Ok(state) = serde_json::from_slice::<RunState>(rest) else { return };
        let forged = Checkpoint {
            state,
            params: vec![0.5; PARAMS],
            first: vec![0.0; PARAMS],
            second: vec![0.0; PARAMS],
            average: None,
        };
        let possible = forged.state.contradiction().is_none();
        forged.save(&path).expect("the folder is there");
        let loaded = Checkpoint::load(&path, PARAMS);
        assert_eq!(loaded.as_ref().ok(), possible.then_some(&forged), "{loaded:?}");
        return;
    }
    let length = (rest.len() as u64).to_le_bytes();
    let bytes = if first % 3 == 0 { rest.to_vec() } else { [&length[..], rest, &[0; 64]].concat() };
    std::fs::write(&path, bytes).expect("the folder is there");
    if let Ok(loaded) = load_weights(&path, &LAYOUT) {
        assert!(loaded.params.iter().all(|x| x.is_finite()));
    }
    let _ = Checkpoint::load(&path, PARAMS);
}

/// CSVs: any of them, and ledgers.
pub fn csvs(data: &[u8]) {
    static TABLES: LazyLock<Vec<PaperTable>> = LazyLock::new(PaperTable::all);
    let Ok(text) = str::from_utf8(data) else { return };
    let rows = csv::read(text);
    if let Some(rows) = rows.into_iter().map(|(_, row)| row).collect::<Option<Vec<_>>>() {
        let written = csv::write(&rows);
        let again: Vec<_> = csv::read(&written).into_iter().map(|(_, row)| row).collect();
        assert_eq!(again, rows.into_iter().map(Some).collect::<Vec<_>>(), "{written:?}");
    }
    let path = FOLDER.join("a.csv");
    std::fs::write(&path, data).expect("the folder is there");
    for table in &*TABLES {
        if let Ok(Some(ledger)) = Ledger::read(&path, table) {
            std::fs::write(&path, ledger.text()).expect("the folder is there");
            assert_eq!(Ledger::read(&path, table).expect("what was written is read"), Some(ledger));
        }
    }
}

/// Bodies of requests, sent to a server that has no model. The first byte picks the address; a query is what follows a 0.
pub fn http(data: &[u8]) {
    static OPEN: Mutex<Option<TcpStream>> = Mutex::new(None);
    let Some((&first, rest)) = data.split_first() else { return };
    let path = ["/api/parse", "/api/check", "/api/prove", "/api/step", "/api/random"][usize::from(first) % 5];
    let mut request = if path == "/api/random" {
        let query: String =
            rest.iter().map(|&b| if b.is_ascii_graphic() && b != b'#' { b as char } else { '+' }).collect();
        format!("GET {path}?{query} HTTP/1.1\r\nHost: {}\r\n\r\n", *SERVER).into_bytes()
    } else {
        let length = rest.len();
        let header = "Content-Type: application/json";
        format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{header}\r\nContent-Length: {length}\r\n\r\n", *SERVER)
            .into_bytes()
    };
    if path != "/api/random" {
        request.extend(rest);
    }
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let status = match open.take().and_then(|stream| answer(stream, &request)) {
        Some((stream, status)) => {
            *open = Some(stream);
            status
        }
        // A connection is kept for five minutes only.
        None => {
            let stream = TcpStream::connect(*SERVER).expect("the server listens");
            let (stream, status) = answer(stream, &request).expect("the server answers");
            *open = Some(stream);
            status
        }
    };
    assert!((200..500).contains(&status), "{path} is answered with {status}");
}

/// Sends a request, and reads the status of its answer and all of its body.
fn answer(mut stream: TcpStream, request: &[u8]) -> Option<(TcpStream, u16)> {
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    stream.write_all(request).ok()?;
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer).ok().filter(|&n| n > 0)?;
        read.extend_from_slice(&buffer[..n]);
        let Some(head) = read.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&read[..head]).to_lowercase();
        let length: usize = text.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
        if read.len() >= head + 4 + length {
            return Some((stream, text.split(' ').nth(1)?.parse().ok()?));
        }
    }
}

/// A server without models, which lives as long as the process.
static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let settings = ServeSettings {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        hosts: Vec::new(),
        models: None,
        runs: None,
        results: None,
        threads: 1,
        time_limit: Duration::from_secs(20),
    };
    let (ready, address) = mpsc::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).max_blocking_threads(1).enable_all().build().expect("a runtime");
        let told = move |address| ready.send(address).expect("the target waits");
        runtime.block_on(serve_until(&settings, told, std::future::pending())).expect("it serves");
    });
    address.recv().expect("the server starts")
});

/// A folder of this process for the files that are read, in memory where there is such a place.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = place.join(format!("polystep-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for files");
    folder
});

//! `polystep check`: counts by verdict for proofs, step examples and predictions, and the first failures explained. A wrong
//! proof is a failure (exit 1); a wrong prediction is a result.

pub mod inspect;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use clap::Args as ClapArgs;
use polystep_core::{StepKind, Verdict};
use polystep_record::{Prediction, ProofRecord};
use rayon::prelude::*;
use serde::Serialize;

use crate::args::start_threads;
use crate::failure::{Failure, Result, bad_input};
use crate::generate::StepExample;
use crate::printable::printable;
use crate::say;
use crate::table::table;
use inspect::{Finding, Findings, GivenWriting, JudgedAnswer};

/// Lines judged at once.
const BLOCK: usize = 4096;
/// A block of long lines ends after so many bytes.
const BLOCK_BYTES: usize = 1 << 24;
/// The longest line that is read. A file from elsewhere may have one that never ends.
const MAX_LINE_BYTES: u64 = 1 << 28;

const EXAMPLES: &str = "\
Examples:
  polystep generate --proofs 1000 | polystep check -
  polystep check proofs.jsonl
  polystep check predictions.jsonl --failures 10
  echo '{\"input\":\"(x1)+(2*x1)\",\"output\":\"3*x1\"}' | polystep check - --json

A line is a proof (with steps), a prediction (with beams), a step example (with a target), or an
answer: an input with its output, judged by what the input asks for.
With --json there is a line for each record: its number, verdict and reason; the last line has the
totals.

Verdicts (the paper counts the first two as right):
  exact         the expected step, token for token (calculator: after evaluation)
  same value    the same polynomial, but not the expected step
  wrong value   another polynomial
  malformed     it cannot be read
  broken        with --json only: no step is at fault, but the record is

Exit code: 0, also when predictions are wrong; 1 when a proof or a step example is wrong;
2 when a line is not a record.";

/// Flags of `polystep check`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A JSONL file of proofs, step examples, predictions or answers; - is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// How many failures are explained
    #[arg(long, value_name = "N", default_value_t = 3)]
    failures: usize,
    #[command(flatten)]
    writing: GivenWriting,
    /// Print JSON lines: a verdict with its reason for each record, then the totals
    #[arg(long)]
    json: bool,
}

/// The verdict of `--json` where no single step is at fault.
const BROKEN: &str = "broken";

/// What `--json` prints for a record.
#[derive(Serialize)]
struct RecordVerdict<'a> {
    line: usize,
    #[serde(skip_serializing_if = "str::is_empty")]
    proof: &'a str,
    /// The step that decides: the first that is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<StepKind>,
    right: bool,
    verdict: &'static str,
    reason: &'a str,
}

impl<'a> RecordVerdict<'a> {
    fn new(line: usize, findings: &'a Findings) -> RecordVerdict<'a> {
        let (decisive, right) = (findings.decisive(), findings.right());
        let wrong_step = decisive.filter(|f| f.verdict != Verdict::Exact || right);
        let verdict = match (wrong_step, &findings.broken) {
            (Some(finding), _) => finding.verdict.name(),
            (None, Some(_)) => BROKEN,
            (None, None) => Verdict::Exact.name(),
        };
        let reason = wrong_step.map(|f| f.sentence.as_str()).or(findings.broken.as_deref());
        RecordVerdict {
            line,
            proof: &findings.id,
            step: wrong_step.map(|f| f.step),
            kind: wrong_step.map(|f| f.kind),
            right,
            verdict,
            reason: reason.unwrap_or("Right: there is nothing to do."),
        }
    }
}

/// Counts by verdict, in the order of [`Verdict::ALL`].
type Counts = [u64; 4];

/// What `--json` prints at the end.
#[derive(Serialize, Default, Debug)]
struct Report {
    proofs: u64,
    wrong_proofs: u64,
    step_examples: u64,
    predictions: u64,
    any_beam_exact: u64,
    steps: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

/// A line of the file.
enum Record {
    Proof(ProofRecord),
    Prediction(Prediction),
    /// A step without an answer: its target is judged.
    Step(StepExample),
    /// An input with its output.
    Answer(JudgedAnswer),
}

/// Checks a file.
pub fn run(args: Args) -> Result<()> {
    let name = if args.file == "-" { "standard input" } else { args.file.as_str() };
    let reader: Box<dyn Read> = match args.file.as_str() {
        "-" => Box::new(std::io::stdin()),
        path => Box::new(std::fs::File::open(path).map_err(|e| bad_input(format!("cannot read {path}: {e}")))?),
    };
    start_threads(0)?;
    let mut tally = Tally::default();
    let mut reader = BufReader::new(reader);
    let mut first = 1;
    loop {
        let (mut block, mut bytes) = (Vec::new(), 0);
        while block.len() < BLOCK && bytes < BLOCK_BYTES {
            let number = first + block.len();
            let unreadable =
                |e| bad_input(format!("cannot read {name}, line {number}: {e}; check reads lines of JSON"));
            let Some(line) = next_line(&mut reader).map_err(unreadable)? else { break };
            bytes += line.len();
            block.push(line);
        }
        if block.is_empty() {
            break;
        }
        let judged: Vec<Result<Option<Judged>>> =
            block.par_iter().enumerate().map(|(i, line)| judge(line, name, first + i, &args)).collect();
        for (i, judged) in judged.into_iter().enumerate() {
            if let Some(judged) = judged? {
                if args.json {
                    say!("{}", serde_json::to_string(&RecordVerdict::new(first + i, &judged.findings))?)?;
                }
                tally.add(judged, first + i, args.failures);
            }
        }
        first += block.len();
    }
    if tally.report.proofs + tally.report.predictions + tally.report.step_examples == 0 {
        return Err(bad_input(format!("{name} holds no records")));
    }
    tally.print(args.json)?;
    match tally.wrong {
        0 => Ok(()),
        n => Err(Failure::Runtime(anyhow::anyhow!("{n} of the proofs or step examples in {name} are wrong"))),
    }
}

/// The next line; none at the end of the file.
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == MAX_LINE_BYTES {
        return Err(io::Error::other(format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20)));
    }
    let mut text = String::from_utf8(line).map_err(|_| io::Error::other("stream did not contain valid UTF-8"))?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(Some(text))
}

/// A record and what was found out about it.
struct Judged {
    findings: Findings,
    kind: RecordKind,
    any_beam_exact: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    Proof,
    Step,
    Prediction,
}

fn judge(line: &str, name: &str, number: usize, args: &Args) -> Result<Option<Judged>> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let record = read(line).map_err(|e| {
        let column = if e.column() > 0 { format!(", column {}", e.column()) } else { String::new() };
        let kinds = "; a line is a proof (with steps), a prediction (with beams), a step example (with a target) or an \
                     answer (with an input and an output)";
        bad_input(format!("{name}, line {number}{column}: {}{}", plain(&e), if e.is_data() { kinds } else { "" }))
    })?;
    let (kind, (findings, any_beam_exact)) = match record {
        Record::Proof(proof) => (RecordKind::Proof, (inspect::proof(&proof), false)),
        Record::Step(step) => (RecordKind::Step, (args.writing.step(&step), false)),
        Record::Prediction(record) => (RecordKind::Prediction, args.writing.prediction(&record)),
        Record::Answer(record) => (RecordKind::Prediction, args.writing.answer(&record)),
    };
    Ok(Some(Judged { findings, kind, any_beam_exact }))
}

/// Which record a line is, its keys tell: quotes cannot occur inside a state.
fn read(line: &str) -> serde_json::Result<Record> {
    if line.contains("\"steps\"") {
        return serde_json::from_str(line).map(Record::Proof);
    }
    if line.contains("\"beams\"") {
        return serde_json::from_str(line).map(Record::Prediction);
    }
    if line.contains("\"output\"") {
        return serde_json::from_str(line).map(Record::Answer);
    }
    serde_json::from_str(line).map(Record::Step)
}

/// serde_json's sentence without its "at line 1 column 2", which speaks of a line alone.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

#[derive(Default)]
struct Tally {
    report: Report,
    counts: BTreeMap<StepKind, Counts>,
    failures: Vec<String>,
    wrong: u64,
}

impl Tally {
    fn add(&mut self, judged: Judged, line: usize, most: usize) {
        let Judged { findings, kind, any_beam_exact } = judged;
        let right = findings.right();
        match kind {
            RecordKind::Proof => {
                self.report.proofs += 1;
                self.report.wrong_proofs += u64::from(!right);
            }
            RecordKind::Step => self.report.step_examples += 1,
            RecordKind::Prediction => {
                self.report.predictions += 1;
                self.report.any_beam_exact += u64::from(any_beam_exact);
            }
        }
        self.wrong += u64::from(!right && kind != RecordKind::Prediction);
        for finding in &findings.steps {
            self.counts.entry(finding.kind).or_default()[finding.verdict as usize] += 1;
            if finding.verdict != Verdict::Exact && self.failures.len() < most {
                self.failures.push(explained(line, &findings.id, finding));
            }
        }
        if let Some(sentence) = &findings.broken
            && self.failures.len() < most
        {
            self.failures.push(printable(&format!("line {line}, {}: {sentence}", findings.id)).into_owned());
        }
    }

    fn print(&mut self, json: bool) -> Result<()> {
        if json {
            for (kind, counts) in &self.counts {
                let by_verdict = Verdict::ALL.iter().map(|v| (v.name(), counts[*v as usize])).collect();
                self.report.steps.insert(kind.to_string(), by_verdict);
            }
            return say!("{}", serde_json::to_string(&BTreeMap::from([("totals", &self.report)]))?);
        }
        let Report { proofs, wrong_proofs, step_examples, predictions, any_beam_exact, .. } = self.report;
        let mut total = Counts::default();
        let mut rows = Vec::new();
        for (kind, counts) in &self.counts {
            rows.push(row(kind.name(), counts));
            total.iter_mut().zip(counts).for_each(|(t, c)| *t += c);
        }
        rows.push(row("all", &total));
        let [exact, same, wrong, malformed] = Verdict::ALL.map(Verdict::name);
        say!("{}", table(1, ["kind", "steps", exact, same, wrong, malformed], rows))?;
        if proofs > 0 {
            let mean = total.iter().sum::<u64>() as f64 / proofs as f64;
            say!("{proofs} proofs, {} right, {wrong_proofs} wrong; {mean:.2} steps per proof", proofs - wrong_proofs)?;
        }
        if step_examples > 0 {
            say!("{step_examples} step examples, {} wrong", self.wrong - wrong_proofs)?;
        }
        if predictions > 0 {
            say!("{predictions} predictions; an exact answer among the beams of {any_beam_exact}")?;
        }
        for failure in &self.failures {
            say!("\n{failure}")?;
        }
        Ok(())
    }
}

fn row(name: &str, counts: &Counts) -> [String; 6] {
    let [a, b, c, d] = counts.map(|n| n.to_string());
    [name.into(), counts.iter().sum::<u64>().to_string(), a, b, c, d]
}

fn explained(line: usize, id: &str, finding: &Finding) -> String {
    let Finding { kind, verdict, sentence, step, input, output } = finding;
    let text = format!(
        "line {line}, {id}, step {step}, {kind}: {}. {sentence}\n    from     {input}\n    written  {output}",
        verdict.name()
    );
    printable(&text).into_owned()
}

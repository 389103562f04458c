//! The decoder with a model that panics on one source, and with proofs whose readers go away.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polystep_core::token::{EOS, encode};
use polystep_core::{Notation, StepKind, notation};
use polystep_learn::config::RunConfig;
use polystep_learn::decode::{Branch, Capacity, TopTokens};
use polystep_learn::model::{ModelConfig, ParamLayout, initial_params};
use polystep_learn::prove::Problem;

use super::*;
use crate::shown::shown_steps;

/// Writes nothing, counts its batches, and panics where `poison` is among the sources.
struct Poisoned {
    poison: Vec<u8>,
    batches: Arc<AtomicUsize>,
    sources: usize,
}

impl Stepper for Poisoned {
    fn capacity(&self) -> Capacity {
        Capacity { hypotheses: 400, tokens: 10_000, longest: 60 }
    }

    fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.sources = sources.len();
        assert!(!sources.contains(&&self.poison[..]), "poison");
        Ok(())
    }

    fn step(&mut self, _: usize, open: &[Branch], k: usize, out: &mut TopTokens) -> Result<(), EngineError> {
        *out = TopTokens { k, tokens: vec![EOS; k * open.len()], logprobs: vec![-1.0; k * open.len()] };
        Ok(())
    }
}

#[derive(Clone)]
struct PoisonedModel {
    poison: Vec<u8>,
    batches: Arc<AtomicUsize>,
}

impl Decodes for PoisonedModel {
    fn writing(&self) -> Writing {
        Writing::default()
    }

    fn stepper(&self) -> Result<Box<dyn Stepper>, EngineError> {
        Ok(Box::new(Poisoned { poison: self.poison.clone(), batches: self.batches.clone(), sources: 0 }))
    }

    fn attention(&self) -> Result<CrossAttention, EngineError> {
        let (config, layout, params) = tiny();
        CrossAttention::new(&config, &layout, &params, 1)
    }
}

fn tiny() -> (ModelConfig, ParamLayout, Vec<f32>) {
    let text = "[data]\nconfig = \"small_coeff\"\n[model]\nd = 64\nlayers = 1\nmax_positions = 60\n";
    let config = RunConfig::from_toml(text, &[]).unwrap().model;
    let layout = ParamLayout::new(&config);
    let params = initial_params(&config, &layout, 1);
    (config, layout, params)
}

/// A model of which only the shape matters.
fn trained() -> TrainedModel {
    let (model, layout, params) = tiny();
    let text = "[data]\nconfig = \"small_coeff\"\n[model]\nd = 64\nlayers = 1\nmax_positions = 60\n";
    let config = RunConfig::from_toml(text, &[]).unwrap();
    TrainedModel { tasks: config.tasks().unwrap(), config, model, layout, params, verified: true, step: None }
}

fn job(expr: &str, until: Instant) -> (Job, mpsc::Receiver<ProofEvent>) {
    let problem = Problem::read(expr, Default::default()).unwrap();
    let open = OpenProof::new(&trained(), "test", "for a test", &problem).unwrap();
    let shown = shown_steps(open.exact(), open.writing(), open.lines());
    let (events, received) = mpsc::channel(open.lines().len() + 2);
    (Job::Proof(Box::new(ProofJob { open, shown, events, until })), received)
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// How a proof ends: its number of steps, or the sentence.
fn end(mut received: mpsc::Receiver<ProofEvent>) -> Result<usize, String> {
    let mut steps = 0;
    loop {
        match received.blocking_recv() {
            Some(ProofEvent::Step(step)) => {
                assert_eq!(step.number, steps);
                steps += 1;
            }
            Some(ProofEvent::End(proof)) => {
                assert_eq!(proof.steps.len(), steps);
                return Ok(steps);
            }
            Some(ProofEvent::Failed(sentence)) => return Err(sentence),
            None => return Err("gone".into()),
        }
    }
}

#[test]
fn a_panic_ends_one_proof_alone() {
    let start = notation::parse("(x1+1)*(x1+5)+(3)", Notation::Infix, Default::default()).unwrap();
    let poison = encode(&Writing::default().print(&start)).unwrap();
    let batches = Arc::new(AtomicUsize::new(0));
    let queue = start_thread(PoisonedModel { poison, batches });
    let (jobs, ends): (Vec<Job>, Vec<_>) =
        ["(x+1)*(x+2)+3", "(x+1)*(x+5)+3", "(x+1)*(x+3)+3"].map(|expr| job(expr, later())).into_iter().unzip();
    jobs.into_iter().for_each(|job| queue.send(job).unwrap());
    let ends: Vec<_> = ends.into_iter().map(end).collect();
    assert!(ends[0] == Ok(2) && ends[2] == Ok(2), "{ends:?}");
    assert_eq!(ends[1], Err("decoding failed: please report it".to_owned()));
    // The thread lives on.
    let (again, received) = job("(x+1)*(x+2)+3", later());
    queue.send(again).unwrap();
    assert_eq!(end(received), Ok(2));
}

fn start_thread(model: PoisonedModel) -> SyncSender<Job> {
    super::start(&model, 2).unwrap()
}

#[test]
fn proofs_that_come_together_are_decoded_together() {
    let batches = Arc::new(AtomicUsize::new(0));
    let model = PoisonedModel { poison: vec![0], batches: batches.clone() };
    let mut rounds = Rounds::new(model, 64);
    let mut ends = Vec::new();
    for i in 1..=20 {
        let (job, received) = job(&format!("(x+1)*(x+{i})+3"), later());
        rounds.accept(job);
        ends.push(received);
    }
    rounds.round();
    // One batch of greedy answers, and one of beams for those that missed.
    assert_eq!(batches.load(Ordering::SeqCst), 2);
    rounds.round();
    assert!(rounds.proofs.is_empty());
    assert!(ends.into_iter().map(end).all(|end| end == Ok(2)));
}

#[test]
fn who_is_gone_or_late_is_not_decoded() {
    let batches = Arc::new(AtomicUsize::new(0));
    let mut rounds = Rounds::new(PoisonedModel { poison: vec![0], batches: batches.clone() }, 64);
    let (gone, received) = job("(x+1)*(x+2)+3", later());
    drop(received);
    let (late, received) = job("(x+1)*(x+2)+3", Instant::now());
    rounds.accept(gone);
    rounds.accept(late);
    rounds.round();
    assert_eq!((rounds.proofs.len(), batches.load(Ordering::SeqCst)), (0, 0));
    assert_eq!(end(received), Err("the proof took too long and was stopped".to_owned()));
}

#[test]
fn a_full_queue_says_so() {
    let (queue, _jobs) = sync_channel(1);
    let decoder = Decoder { trained: Arc::new(trained()), queue };
    assert!(decoder.ask(job("(x+1)*(x+2)+3", later()).0).is_ok());
    let refused = decoder.ask(job("(x+1)*(x+2)+3", later()).0).unwrap_err();
    let response = axum::response::IntoResponse::into_response(refused);
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
}

#[test]
fn all_about_a_step() {
    let mut rounds = Rounds::new(PoisonedModel { poison: vec![0], batches: Arc::default() }, 64);
    let line = Line {
        kind: StepKind::Sumstep,
        input: encode("(2*x1)+(3)").unwrap(),
        target: encode("2*x1+3").unwrap(),
        next: None,
    };
    let (answer, mut received) = oneshot::channel();
    rounds.accept(Job::Step(StepJob { line, answer, until: later() }));
    rounds.round();
    let detail = received.try_recv().unwrap().unwrap();
    assert!(!detail.beams.is_empty());
    assert!(detail.beams.iter().all(|beam| beam.verdict == polystep_core::Verdict::Malformed && beam.text.is_empty()));
    let attention = detail.attention.expect("the input has terms");
    assert_eq!(attention.source.iter().filter(|part| part.term).count(), 2);
}

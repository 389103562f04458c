//! The threads of a model, which decode for all requests together.
//!
//! A proof is a sequence of steps. In each round a thread takes the next step of every proof that it has, decodes all of them in
//! one batch, and sends each proof its step. Proofs join and leave between rounds, so nobody waits for somebody else's proof to
//! end.
//!
//! The decision a reader would get wrong: there is a thread for each core, with a batch of its own, and not one batch on all
//! cores. Decoding is a long chain of small products. Cores that share each of them wait for one another at every one.
//!
//! A proof whose reader is gone is dropped before the next round. One that is past its time is ended. Where a batch panics,
//! each of its steps is decoded alone, and only the one that panics fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{io, thread};

use polystep_core::Writing;
use polystep_core::writing::Line;
use polystep_engine::EngineError;
use polystep_learn::decode::{
    AnswerCache, AssistedStep, BEAM_WIDTH, CrossAttention, Stepper, assisted_steps, beam_search,
};
use polystep_learn::prove::{ModelProof, ModelStep, OpenProof, verdict_on};
use polystep_learn::trained::TrainedModel;
use serde::{Serialize, Serializer};
use tokio::sync::{mpsc, oneshot};

use crate::error::Refusal;
use crate::shown::ShownStep;
use crate::terms::{TermAttention, term_attention};

/// Proofs that are decoded at once, by all threads of a model.
const TOGETHER: usize = 64;
/// Requests that may wait beside them.
const WAITING: usize = 64;
/// Threads of a model: each has its own copy of the weights.
const MOST_THREADS: usize = 4;

/// What becomes of a proof.
#[derive(Clone, Debug)]
pub enum ProofEvent {
    /// A step is there.
    Step(Box<StepEvent>),
    /// All steps are there.
    End(Box<ModelProof>),
    /// There will be no more steps: one sentence.
    Failed(String),
}

/// A step of a proof.
#[derive(Clone, Debug, Serialize)]
pub struct StepEvent {
    /// Which one, from 0.
    pub number: usize,
    /// What the model and the checker made of it.
    #[serde(flatten)]
    pub step: ModelStep,
    /// As people see it.
    pub shown: ShownStep,
}

/// A proof that is to be decoded.
pub struct ProofJob {
    /// The proof.
    pub open: OpenProof,
    /// Its steps as people see them.
    pub shown: Vec<ShownStep>,
    /// Where its events go. There is room for all of them.
    pub events: mpsc::Sender<ProofEvent>,
    /// When it must be done.
    pub until: Instant,
}

/// One step that somebody wants to know all about.
pub struct StepJob {
    /// The step.
    pub line: Line,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<StepDetail, Refusal>>,
    /// When it must be done.
    pub until: Instant,
}

/// All about a step.
#[derive(Clone, Debug, Serialize)]
pub struct StepDetail {
    /// The beams, best first.
    pub beams: Vec<JudgedBeam>,
    /// Where the model looked while it wrote its line.
    pub attention: Option<TermAttention>,
}

/// A beam and the checker's verdict.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedBeam {
    /// What it says.
    pub text: String,
    /// How probable it is.
    pub probability: f32,
    /// How it turned out.
    #[serde(serialize_with = "by_name")]
    pub verdict: polystep_core::Verdict,
    /// Why.
    pub sentence: String,
}

fn by_name<T: ToString, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&value.to_string())
}

/// What is decoded.
pub enum Job {
    /// A whole proof.
    Proof(Box<ProofJob>),
    /// One step.
    Step(StepJob),
}

/// What decodes: a trained model, or what a test puts in its place.
pub trait Decodes: Send {
    /// How it writes.
    fn writing(&self) -> Writing;
    /// The model, ready.
    fn stepper(&self) -> Result<Box<dyn Stepper>, EngineError>;
    /// Its attention.
    fn attention(&self) -> Result<CrossAttention, EngineError>;
}

#[derive(Clone)]
struct OnCpu {
    trained: Arc<TrainedModel>,
    threads: usize,
}

impl Decodes for OnCpu {
    fn writing(&self) -> Writing {
        self.trained.home().writing
    }

    fn stepper(&self) -> Result<Box<dyn Stepper>, EngineError> {
        Ok(Box::new(self.trained.cpu_stepper(self.threads)?))
    }

    fn attention(&self) -> Result<CrossAttention, EngineError> {
        let TrainedModel { model, layout, params, .. } = &*self.trained;
        CrossAttention::new(model, layout, params, self.threads)
    }
}

/// A model with its threads, which end when the last request and the catalog have let go of it.
pub struct Decoder {
    /// The model.
    pub trained: Arc<TrainedModel>,
    queue: SyncSender<Job>,
}

impl Decoder {
    /// Starts its threads, on so many cores.
    pub fn start(trained: TrainedModel, cores: usize) -> io::Result<Decoder> {
        let (trained, threads) = (Arc::new(trained), cores.clamp(1, MOST_THREADS));
        let model = OnCpu { trained: trained.clone(), threads: (cores / threads).max(1) };
        Ok(Decoder { trained, queue: start(&model, threads)? })
    }

    /// Hands a job over, if there is room.
    pub fn ask(&self, job: Job) -> Result<(), Refusal> {
        self.queue.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::busy(),
            TrySendError::Disconnected(_) => Refusal::internal("this model has stopped: please report it"),
        })
    }
}

/// Starts threads that decode with a model.
fn start(model: &(impl Decodes + Clone + 'static), threads: usize) -> io::Result<SyncSender<Job>> {
    let (queue, jobs) = sync_channel(WAITING);
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..threads {
        let (model, jobs) = (model.clone(), jobs.clone());
        let work = move || Rounds::new(model, TOGETHER / threads).run(&jobs);
        thread::Builder::new().name("polystep-decoder".into()).spawn(work)?;
    }
    Ok(queue)
}

/// The thread's state.
struct Rounds<M> {
    model: M,
    writing: Writing,
    /// How many jobs it takes at once.
    together: usize,
    stepper: Option<Box<dyn Stepper>>,
    attention: Option<CrossAttention>,
    proofs: Vec<ProofJob>,
    steps: Vec<StepJob>,
}

/// A line that could not be decoded: one sentence.
type Answer = Result<AssistedStep, String>;

impl<M: Decodes> Rounds<M> {
    fn new(model: M, together: usize) -> Rounds<M> {
        let writing = model.writing();
        Rounds { model, writing, together, stepper: None, attention: None, proofs: Vec::new(), steps: Vec::new() }
    }

    fn run(mut self, jobs: &Mutex<Receiver<Job>>) {
        // Weights are packed and memory is touched now, not while somebody waits.
        let _ = self.decode(&[Line {
            kind: polystep_core::StepKind::Sumstep,
            input: polystep_core::token::encode("(1)+(2)").unwrap_or_default(),
            target: Vec::new(),
            next: None,
        }]);
        loop {
            if self.proofs.is_empty() && self.steps.is_empty() {
                let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                match next {
                    Ok(job) => self.accept(job),
                    Err(_) => return,
                }
            }
            while self.proofs.len() + self.steps.len() < self.together {
                // A thread that has nothing to do holds the queue, and takes what comes.
                let next = jobs.try_lock().ok().and_then(|jobs| jobs.try_recv().ok());
                match next {
                    Some(job) => self.accept(job),
                    None => break,
                }
            }
            self.round();
        }
    }

    fn accept(&mut self, job: Job) {
        match job {
            Job::Proof(job) => self.proofs.push(*job),
            Job::Step(job) => self.steps.push(job),
        }
    }

    /// The next step of every proof, and every single step that was asked for.
    fn round(&mut self) {
        let now = Instant::now();
        self.proofs.retain(|job| {
            let late = job.until <= now;
            if late {
                // The reader may be gone by now.
                let _ = job.events.try_send(ProofEvent::Failed("the proof took too long and was stopped".to_owned()));
            }
            !late && !job.events.is_closed()
        });
        self.steps.retain(|job| job.until > now && !job.answer.is_closed());
        let next = |job: &ProofJob| job.open.waiting()[0].clone();
        let lines: Vec<Line> =
            self.proofs.iter().map(next).chain(self.steps.iter().map(|job| job.line.clone())).collect();
        let mut answers = self.decode(&lines).into_iter();
        let mut open = Vec::with_capacity(self.proofs.len());
        for (job, answer) in std::mem::take(&mut self.proofs).into_iter().zip(&mut answers) {
            open.extend(advance(job, answer));
        }
        self.proofs = open;
        for (job, answer) in std::mem::take(&mut self.steps).into_iter().zip(answers) {
            let detail = answer.and_then(|step| self.detail(&job.line, step)).map_err(Refusal::internal);
            // Nobody may be waiting any more.
            let _ = job.answer.send(detail);
        }
    }

    /// Decodes lines together. If that panics, each alone: then only those that panic have no answer.
    fn decode(&mut self, lines: &[Line]) -> Vec<Answer> {
        if lines.is_empty() {
            return Vec::new();
        }
        match (
            self.attempt(|rounds, stepper| {
                assisted_steps(stepper, &rounds.writing, lines, &mut AnswerCache::default())
            }),
            lines,
        ) {
            (Ok(answers), _) => answers.into_iter().map(Ok).collect(),
            (Err(error), [_]) => vec![Err(error)],
            (Err(_), lines) => lines.iter().flat_map(|line| self.decode(std::slice::from_ref(line))).collect(),
        }
    }

    /// Calls `f` with the stepper. After an error or a panic the stepper is made anew.
    fn attempt<T>(&mut self, f: impl FnOnce(&Self, &mut dyn Stepper) -> Result<T, EngineError>) -> Result<T, String> {
        let taken = self.stepper.take();
        let made = AssertUnwindSafe(|| {
            let mut stepper = match taken {
                Some(stepper) => stepper,
                None => self.model.stepper()?,
            };
            let value = f(self, &mut *stepper)?;
            Ok::<_, EngineError>((value, stepper))
        });
        match catch_unwind(made) {
            Ok(Ok((value, stepper))) => {
                self.stepper = Some(stepper);
                Ok(value)
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("decoding failed: please report it".to_owned()),
        }
    }

    /// The beams of a step, judged, and the attention of the answer that was taken, or else of the model's own.
    fn detail(&mut self, line: &Line, mut step: AssistedStep) -> Result<StepDetail, String> {
        if step.beams.is_empty() {
            let found = self.attempt(|_, stepper| beam_search(stepper, &[&line.input], BEAM_WIDTH))?;
            step.beams = found.into_iter().next().map_or_else(Vec::new, |found| found.headline);
        }
        let judged = |beam: &polystep_learn::decode::Hypothesis| {
            let (verdict, why) = verdict_on(&self.writing, line, beam);
            let (text, probability) = (self.writing.text(&beam.tokens), beam.logprob.exp());
            JudgedBeam { text, probability, verdict, sentence: why.to_string() }
        };
        let beams = step.beams.iter().map(judged).collect();
        if self.attention.is_none() {
            self.attention = self.model.attention().ok();
        }
        let output = &step.taken().unwrap_or(&step.greedy).tokens;
        let map = self.attention.as_mut().and_then(|attention| attention.of(&line.input, output).ok().flatten());
        let attention = map.and_then(|map| term_attention(&self.writing, &line.input, output, &map));
        Ok(StepDetail { beams, attention })
    }
}

/// Adds an answer to its proof and sends the step. Returns the proof if it goes on.
fn advance(mut job: ProofJob, answer: Answer) -> Option<ProofJob> {
    let answered = match answer {
        Ok(answered) => answered,
        Err(sentence) => {
            let _ = job.events.try_send(ProofEvent::Failed(sentence));
            return None;
        }
    };
    let number = job.open.so_far().steps.len();
    let step = job.open.push(&answered, false).clone();
    let shown = job.shown[number].clone();
    // A reader that is gone is noticed before the next round.
    let _ = job.events.try_send(ProofEvent::Step(Box::new(StepEvent { number, step, shown })));
    if !job.open.waiting().is_empty() {
        return Some(job);
    }
    let _ = job.events.try_send(ProofEvent::End(Box::new(job.open.finish())));
    None
}

#[cfg(test)]
mod tests;

//! Models: bundled, of a run, or exported. They answer the steps of proofs, and prove expressions.
//!
//! A model computes in a thread of its own, which takes one question after the other. Whoever asks waits without the interpreter's
//! lock, and looks for signals.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polystep_core::{State, Style, token};
use polystep_engine::EngineError;
use polystep_engine::cuda::Cuda;
use polystep_learn::decode::{AnswerCache, Branch, Capacity, Hypothesis, Stepper, TopTokens, beam_search};
use polystep_learn::prove::{OpenProof, Problem, ProveError, ProveOptions, prove};
use polystep_learn::trained::TrainedModel;
use pyo3::exceptions::{PyFileNotFoundError, PyRuntimeError};
use pyo3::prelude::*;

use crate::check::Texts;
use crate::error::{Exception, bad_input, check_signals};
use crate::space::Task;

/// While it waits for an answer: how often it looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Hypotheses that are extended at once on a GPU.
const CUDA_LANES: usize = 8192;

/// A trained model: bundled with polystep, of a run, or a folder that `polystep export` or transformers wrote.
///
/// >>> import polystep
/// >>> polystep.Model.bundled()
/// ['all-spaces', 'large_coeff-1-coarse-infix', 'large_coeff-1-coarse-infix-calculator', 'no_backtrack-1-coarse-infix']
/// >>> model = polystep.Model.load("large_coeff-1-coarse-infix", device="cpu")
/// >>> model.answer("(2*x1)*(x1+3)+(4)").output
/// '(2*x1^2+6*x1)+(4)'
#[pyclass(module = "polystep", frozen)]
pub struct Model {
    name: String,
    trained: Arc<TrainedModel>,
    device: String,
    questions: Mutex<Sender<Question>>,
    /// The process that has its thread.
    process: u32,
}

/// Something that the model's thread does.
type Question = Box<dyn FnOnce(&mut dyn Stepper) + Send>;

/// What a model wrote.
#[pyclass(module = "polystep", frozen, get_all)]
#[derive(Clone)]
pub struct Answer {
    /// The text.
    output: String,
    /// The sum of the log-probabilities of its tokens, `</s>` included.
    logprob: f32,
    /// Whether it came to its end. If not, it was cut at the model's length, or the input was too long.
    finished: bool,
    /// All that a beam search found, best first; empty without one.
    beams: Vec<(String, f32)>,
}

#[pymethods]
impl Answer {
    fn __repr__(&self) -> String {
        format!("<polystep.Answer {}>", self.output)
    }
}

#[pymethods]
impl Model {
    /// Reads a model. `model` is the name of a bundled one, or a folder. `device` is `"auto"`, `"cpu"` or `"cuda"`.
    #[staticmethod]
    #[pyo3(signature = (model, *, device = "auto", threads = 0))]
    fn load(py: Python<'_>, model: PathBuf, device: &str, threads: usize) -> PyResult<Model> {
        let folder = if model.is_dir() { model } else { bundled_named(py, &model)? };
        let on_cuda = match device {
            "auto" => Cuda::available().is_ok(),
            "cpu" => false,
            "cuda" => true,
            _ => return Err(bad_input(format!("unknown device `{device}`: auto, cpu or cuda"))),
        };
        let (trained, device, questions) = py.detach(|| {
            let trained = Arc::new(TrainedModel::open(&folder).map_err(Exception::exception)?);
            let (device, questions) = start(Arc::clone(&trained), on_cuda, threads)?;
            Ok::<_, PyErr>((trained, device, questions))
        })?;
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Model { name, trained, device, questions: Mutex::new(questions), process: std::process::id() })
    }

    /// The names of the bundled models.
    #[staticmethod]
    fn bundled(py: Python<'_>) -> PyResult<Vec<String>> {
        let folder = bundled_folder(py)?;
        let is_model = |path: &PathBuf| polystep_record::RunFolder::new(path).has_model();
        let entries = std::fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
        let mut names: Vec<String> = entries.filter(is_model).filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// The name of its folder.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// What it learned; the first task is its own.
    #[getter]
    fn tasks(&self) -> Vec<Task> {
        self.trained.tasks.iter().cloned().map(Task).collect()
    }

    /// The device that it computes on.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// What the model writes for an input, or for each input of a list: greedily, or with a beam search of `beams` beams (2 to 5).
    ///
    /// >>> import polystep
    /// >>> model = polystep.Model.load("large_coeff-1-coarse-infix", device="cpu")
    /// >>> best, second = model.answer("(x1)+(2*x1)", beams=5).beams[:2]
    /// >>> best[0], best[1] > second[1]
    /// ('3*x1', True)
    #[pyo3(signature = (inputs, *, beams = 1))]
    fn answer<'py>(&self, py: Python<'py>, inputs: Texts, beams: usize) -> PyResult<Bound<'py, PyAny>> {
        if !(1..=5).contains(&beams) {
            return Err(bad_input(format!("{beams} beams: 1 (greedy) to 5")));
        }
        let (texts, one) = match inputs {
            Texts::One(text) => (vec![text], true),
            Texts::Many(texts) => (texts, false),
        };
        let read = |(i, text): (usize, &String)| {
            token::encode(text).map_err(|e| bad_input(format!("input {i} cannot be read: {e}")))
        };
        let tokens: Vec<Vec<u8>> = texts.iter().enumerate().map(read).collect::<PyResult<_>>()?;
        let writing = self.trained.home().writing;
        let answer = move |best: &Hypothesis, beams: &[Hypothesis]| Answer {
            output: writing.text(&best.tokens),
            logprob: best.logprob,
            finished: best.finished,
            beams: beams.iter().map(|beam| (writing.text(&beam.tokens), beam.logprob)).collect(),
        };
        let mut answers: Vec<Answer> = self.asked(py, move |stepper| {
            let sources: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
            if beams == 1 {
                let found = AnswerCache::default().greedy(stepper, &sources).map_err(Exception::exception)?;
                return Ok(found.iter().map(|best| answer(best, &[])).collect());
            }
            let none = Hypothesis { tokens: Vec::new(), logprob: f32::NEG_INFINITY, finished: false };
            let found = beam_search(stepper, &sources, beams).map_err(Exception::exception)?;
            Ok(found.iter().map(|f| answer(f.headline.first().unwrap_or(&none), &f.headline)).collect())
        })?;
        match answers.pop() {
            Some(answer) if one => Ok(Bound::new(py, answer)?.into_any()),
            last => {
                answers.extend(last);
                Ok(answers.into_pyobject(py)?.into_any())
            }
        }
    }

    /// Proves an expression. Model and checker work together: where the model's step is not the expected one, a beam takes its place,
    /// or the exact step. `alone` leaves the checker out: the model's own output is its next input.
    ///
    /// >>> import polystep
    /// >>> proof = polystep.Model.load("large_coeff-1-coarse-infix", device="cpu").prove("(2x)(x+3) + 4")
    /// >>> proof.endpoint, proof.right
    /// ('2*x1^2+6*x1+4', True)
    /// >>> [(step.author, step.line) for step in proof.steps]
    /// [('model', '(2*x1^2+6*x1)+(4)'), ('model', '2*x1^2+6*x1+4')]
    #[pyo3(signature = (expression, *, alone = false, alternatives = false))]
    fn prove(&self, py: Python<'_>, expression: &str, alone: bool, alternatives: bool) -> PyResult<ModelProof> {
        let problem = problem(expression, self.trained.home().writing.style)?;
        let open = OpenProof::new(&self.trained, &self.name, "named in Model.load", &problem).map_err(refused)?;
        let options = ProveOptions { alone, alternatives };
        Ok(ModelProof(self.asked(py, move |stepper| prove(open, stepper, options).map_err(refused))?))
    }

    fn __repr__(&self) -> String {
        format!("<polystep.Model {}: {}>", self.name, self.trained.config.description())
    }
}

impl Model {
    /// Asks the model something without the interpreter's lock. A signal ends it.
    fn asked<T: Send + 'static>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut dyn Stepper) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        let gone = || PyRuntimeError::new_err("the thread of this model is gone: load the model in this process");
        if std::process::id() != self.process {
            return Err(gone());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (send, answer) = channel();
        let stopped = Arc::clone(&stop);
        let question = move |stepper: &mut dyn Stepper| {
            // Whoever asked may have been interrupted.
            let _ = send.send(ask(&mut Stoppable { stepper, stop: &stopped }));
        };
        py.detach(move || {
            let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
            questions.send(Box::new(question)).map_err(|_| gone())?;
            drop(questions);
            loop {
                match answer.recv_timeout(LOOK) {
                    Ok(answer) => return answer,
                    Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                    Err(RecvTimeoutError::Timeout) => {
                        check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                    }
                }
            }
        })
    }
}

/// Starts the thread of a model; the device that it computes on, and where it takes questions.
fn start(trained: Arc<TrainedModel>, on_cuda: bool, threads: usize) -> PyResult<(String, Sender<Question>)> {
    let (questions, asked) = channel::<Question>();
    let (ready, made) = channel();
    let work = move || {
        let stepper = match on_cuda {
            true => trained.stepper_on(CUDA_LANES, |programs, limits| Ok(Box::new(Cuda::new(programs, limits)?))),
            false => trained.cpu_stepper(threads),
        };
        match stepper {
            Err(error) => drop(ready.send(Err(error.exception()))),
            Ok(mut stepper) => {
                let _ = ready.send(Ok(stepper.device()));
                asked.into_iter().for_each(|question| question(&mut stepper));
            }
        }
    };
    let cannot = |why: String| PyRuntimeError::new_err(format!("cannot start a thread for the model: {why}"));
    std::thread::Builder::new().name("model".to_owned()).spawn(work).map_err(|e| cannot(e.to_string()))?;
    let device = made.recv().map_err(|e| cannot(e.to_string()))??;
    Ok((device, questions))
}

/// A stepper that can be stopped between two steps.
struct Stoppable<'a> {
    stepper: &'a mut dyn Stepper,
    stop: &'a AtomicBool,
}

impl Stepper for Stoppable<'_> {
    fn capacity(&self) -> Capacity {
        self.stepper.capacity()
    }

    fn begin(&mut self, sources: &[&[u8]]) -> Result<(), EngineError> {
        self.stepper.begin(sources)
    }

    fn step(&mut self, position: usize, open: &[Branch], k: usize, out: &mut TopTokens) -> Result<(), EngineError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(EngineError::Device { what: "decoding".into(), message: "interrupted".into() });
        }
        self.stepper.step(position, open, k, out)
    }
}

/// A proof by a model. `json()` is what `polystep prove --json` prints.
#[pyclass(module = "polystep", frozen)]
pub struct ModelProof(polystep_learn::prove::ModelProof);

#[pymethods]
impl ModelProof {
    /// Where it starts.
    #[getter]
    fn start(&self) -> &str {
        &self.0.start
    }

    /// The exact endpoint.
    #[getter]
    fn endpoint(&self) -> &str {
        &self.0.endpoint
    }

    /// Its lines.
    #[getter]
    fn steps(&self) -> Vec<ModelStep> {
        self.0.steps.iter().map(ModelStep::of).collect()
    }

    /// Whether the model, greedily, writes every line of the exact proof.
    #[getter]
    fn right(&self) -> bool {
        self.0.right
    }

    /// Whether the model's own answer is right; `None` unless it worked alone.
    #[getter]
    fn answer_right(&self) -> Option<bool> {
        self.0.answer_right
    }

    /// Why the expression lies outside what the model has learned, if it does.
    #[getter]
    fn outside(&self) -> Option<&str> {
        self.0.outside.as_deref()
    }

    /// The proof as JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(bad_input)
    }

    fn __len__(&self) -> usize {
        self.0.steps.len()
    }

    fn __str__(&self) -> String {
        let lines = self.0.steps.iter().map(|step| format!("\n{:8}  {}", step.author, step.line));
        format!("{:8}  {}{}", "start", self.0.start, lines.collect::<String>())
    }

    fn __repr__(&self) -> String {
        format!("<polystep.ModelProof of {}, {} steps>", self.0.start, self.0.steps.len())
    }
}

/// A line of a proof by a model.
#[pyclass(module = "polystep", frozen, get_all)]
#[derive(Clone)]
pub struct ModelStep {
    /// What the model was asked.
    input: String,
    /// What it wrote greedily.
    output: String,
    /// The line of the proof.
    line: String,
    /// Whose the line is: `"model"`, `"beam 2"` or `"exact"`.
    author: String,
    /// How the model's output turned out.
    verdict: &'static str,
    /// Why, in a sentence.
    reason: String,
    /// The log-probability of the model's output.
    logprob: f32,
    /// The beams with their log-probabilities, best first, if they were asked for.
    beams: Vec<(String, f32)>,
}

#[pymethods]
impl ModelStep {
    fn __repr__(&self) -> String {
        format!("<polystep.ModelStep by {}: {}>", self.author, self.line)
    }
}

impl ModelStep {
    fn of(step: &polystep_learn::prove::ModelStep) -> ModelStep {
        ModelStep {
            input: step.input.clone(),
            output: step.output.clone(),
            line: step.line.clone(),
            author: step.author.to_string(),
            verdict: step.verdict.name(),
            reason: step.sentence.clone(),
            logprob: step.logprob,
            beams: step.beams.clone(),
        }
    }
}

/// Reads an expression that a person typed; an error shows the place.
fn problem(text: &str, style: Style) -> PyResult<Problem> {
    Problem::read_any(text, style).map_err(|error| {
        let before = text.get(..error.span.start).map_or(0, |before| before.chars().count());
        let short = text.len() <= 100 && !text.contains('\n');
        bad_input(if short { format!("{error}\n{text}\n{}^", " ".repeat(before)) } else { error.to_string() })
    })
}

/// The state that a person typed.
pub fn typed(text: &str, style: Style) -> PyResult<State> {
    Ok(problem(text, style)?.start)
}

fn refused(error: ProveError) -> PyErr {
    match error {
        ProveError::Engine(error) => error.exception(),
        error => bad_input(error),
    }
}

/// The folder of the bundled models: the one that `POLYSTEP_MODELS` names, or that of the package.
fn bundled_folder(py: Python<'_>) -> PyResult<PathBuf> {
    if let Some(named) = std::env::var_os("POLYSTEP_MODELS") {
        return Ok(named.into());
    }
    let package: PathBuf = py.import("polystep")?.getattr("__file__")?.extract()?;
    Ok(package.with_file_name("models"))
}

fn bundled_named(py: Python<'_>, name: &Path) -> PyResult<PathBuf> {
    let folder = bundled_folder(py)?.join(name);
    let names = Model::bundled(py).unwrap_or_default().join(", ");
    let missing = || format!("there is no folder {}; the bundled models are {names}", name.display());
    if folder.is_dir() { Ok(folder) } else { Err(PyFileNotFoundError::new_err(missing())) }
}

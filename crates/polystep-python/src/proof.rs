//! Proofs: drawn from a space, or of an expression that a person typed.

use polystep_core::sets::{FixedSet, SEED};
use polystep_core::{Purpose, Sampler, Setting};
use polystep_learn::feed::Proofs;
use polystep_record::{ProofRecord, StepRecord};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Exception, bad_input};
use crate::keywords::Keywords;
use crate::space::Task;

/// Proofs between two looks for a signal.
const BLOCK: u64 = 512;

/// A proof: its start, its end and its steps. `json()` is the line that `polystep generate` writes.
#[pyclass(module = "polystep", frozen, eq)]
#[derive(Clone, PartialEq)]
pub struct Proof(pub ProofRecord);

#[pymethods]
impl Proof {
    /// `config:vars:split:seed:index`
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// The seed of its stream.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Its place in the stream.
    #[getter]
    fn index(&self) -> u64 {
        self.0.index
    }

    /// The first state.
    #[getter]
    fn start(&self) -> &str {
        &self.0.start
    }

    /// The last state, which is in normal form.
    #[getter]
    fn end(&self) -> &str {
        &self.0.end
    }

    /// The steps.
    #[getter]
    fn steps(&self) -> Vec<Step> {
        self.0.steps.iter().map(Step::of).collect()
    }

    /// The proof as one line of JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(bad_input)
    }

    fn __len__(&self) -> usize {
        self.0.steps.len()
    }

    fn __str__(&self) -> String {
        let lines = self.0.steps.iter().map(|step| format!("\n{:8}  {}", step.kind, step.target));
        format!("{:8}  {}{}", "start", self.0.start, lines.collect::<String>())
    }

    fn __repr__(&self) -> String {
        format!("<polystep.Proof {}, {} steps>", self.0.id, self.0.steps.len())
    }
}

/// A step of a proof: what a model reads, and what it is to write.
#[pyclass(module = "polystep", frozen, eq, get_all)]
#[derive(Clone, PartialEq)]
pub struct Step {
    /// What it does.
    pub kind: &'static str,
    /// What a model reads.
    pub input: String,
    /// What it is to write.
    pub target: String,
    /// The target with its brackets evaluated; `None` unless the setting is calculator.
    pub next: Option<String>,
}

#[pymethods]
impl Step {
    fn __repr__(&self) -> String {
        format!("<polystep.Step {}: {} -> {}>", self.kind, self.input, self.target)
    }
}

impl Step {
    fn of(record: &StepRecord) -> Step {
        let StepRecord { kind, input, target, next } = record.clone();
        Step { kind: kind.name(), input, target, next }
    }
}

/// Draws `n` proofs of a task, from place `first` of a stream on.
///
/// `split` is `"train"`, `"valid"`, `"test"` or `"beam"`. Training proofs are guarded: a polynomial whose endpoint occurs in a fixed
/// set is drawn again. The seed is 1 for training and 2021 for the fixed sets, unless you give one. The proofs are those of
/// `polystep generate`, in the same order.
///
/// >>> import polystep
/// >>> proof = polystep.sample("small_coeff/add", 1)[0]
/// >>> proof.id
/// 'small_coeff/add:1:train:1:0'
/// >>> print(proof)
/// start     (3*x1^3+3*x1^2+2)+(3*x1^2)+(2*x1^2+3+1)
/// facstep   (3*x1^3+3*x1^2+2)+(3*x1^2)+(2*x1^2+4)
/// sumstep   3*x1^3+8*x1^2+6
#[pyfunction]
#[pyo3(signature = (task, n = 1, *, first = 0, seed = None, split = "train", **keywords))]
pub fn sample(
    py: Python<'_>,
    task: &Bound<'_, PyAny>,
    n: u64,
    first: u64,
    seed: Option<u64>,
    split: &str,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<Proof>> {
    let keywords = Keywords::new(keywords)?;
    let task = Task::of(task, &keywords)?;
    keywords.finish()?;
    let purpose: Purpose = split_named(split)?;
    let seed = seed.unwrap_or(if FixedSet::of(purpose).is_some() { SEED } else { 1 });
    let guarded = purpose == Purpose::Train;
    let proofs = py.detach(|| guarded.then(|| Proofs::new(&task, seed, usize::MAX)).transpose());
    let proofs = proofs.map_err(Exception::exception)?;
    let mut sampler = Sampler::new(&task, seed, purpose).map_err(Exception::exception)?;
    let last = first.checked_add(n).ok_or_else(|| bad_input("there are 2^64 proofs in a stream"))?;
    let mut drawn = Vec::new();
    for start in (first..last).step_by(BLOCK as usize) {
        py.check_signals()?;
        let block = py.detach(|| {
            let record = |index| match &proofs {
                Some(proofs) => ProofRecord::guarded(&mut sampler, index, proofs.guard()),
                None => Some(ProofRecord::of(&mut sampler, index)),
            };
            (start..last.min(start + BLOCK)).filter_map(record).map(Proof).collect::<Vec<_>>()
        });
        drawn.extend(block);
    }
    Ok(drawn)
}

/// One of the four splits that have a stream.
pub fn split_named(split: &str) -> PyResult<Purpose> {
    let splits = [Purpose::Train, Purpose::Valid, Purpose::Test, Purpose::Beam];
    let unknown = || bad_input(format!("unknown split `{split}`: train, valid, test or beam"));
    splits.into_iter().find(|purpose| purpose.name() == split).ok_or_else(unknown)
}

/// The exact proof of an expression, as `polystep prove --symbolic` writes it.
///
/// >>> import polystep
/// >>> proof = polystep.prove("(x+1)(x+2) + 3x")
/// >>> proof.end
/// 'x1^2+6*x1+2'
/// >>> [step.kind for step in proof.steps]
/// ['mulstep', 'sumstep']
/// >>> polystep.prove("(x+1")
/// Traceback (most recent call last):
///     ...
/// ValueError: this parenthesis is never closed
/// (x+1
/// ^
#[pyfunction]
#[pyo3(signature = (expression, **keywords))]
pub fn prove(py: Python<'_>, expression: &str, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Proof> {
    let keywords = Keywords::new(keywords)?;
    let writing = keywords.writing(polystep_core::Writing::default())?;
    keywords.finish()?;
    if writing.setting == Setting::Arithmetic {
        return Err(bad_input("the arithmetic setting has no polynomials: nothing to prove"));
    }
    let start = crate::model::typed(expression, writing.style)?;
    let proof = py.detach(|| writing.proof(&start).map(|proof| ProofRecord::typed(&proof, &writing)));
    Ok(Proof(proof.map_err(bad_input)?))
}

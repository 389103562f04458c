//! A batch of step examples: tokens as numpy arrays, packed end to end or padded to a rectangle; and the same as text.

use std::ops::Range;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use polystep_core::{ExampleSpan, Notation, StepKind, Task, token};
use polystep_record::{Beam, Prediction, proof_id};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::bad_input;
use crate::score::to_json;

/// Sequences of tokens, end to end, or padded to a rectangle.
#[derive(Default)]
pub struct Sequences {
    tokens: Vec<u8>,
    offsets: Vec<i64>,
    /// The width of the rectangle.
    padded: Option<usize>,
}

/// Tokens that are copied at once.
const WORD: usize = 64;

impl Sequences {
    fn with_room(sequences: usize, tokens: usize) -> Sequences {
        let mut offsets = Vec::with_capacity(sequences + 1);
        offsets.push(0);
        Sequences { tokens: Vec::with_capacity(tokens), offsets, padded: None }
    }

    /// Appends runs of `from`, each between its special tokens.
    fn extend(&mut self, from: &[u8], runs: impl Iterator<Item = Range<usize>> + Clone, special: [Option<u8>; 2]) {
        let (mut at, specials) = (self.tokens.len(), special.iter().flatten().count());
        let mut end = at;
        self.offsets.extend(runs.clone().map(|run| {
            end += run.len() + specials;
            end as i64
        }));
        self.tokens.resize(end + WORD, token::PAD);
        for run in runs {
            if let Some(first) = special[0] {
                self.tokens[at] = first;
                at += 1;
            }
            copy(from, run.clone(), &mut self.tokens, at);
            at += run.len();
            if let Some(last) = special[1] {
                self.tokens[at] = last;
                at += 1;
            }
        }
        self.tokens.truncate(end);
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn of(&self, i: usize) -> &[u8] {
        &self.tokens[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// Makes one row of each sequence, filled up with `<pad>`.
    fn pad(&mut self) {
        let width = (0..self.len()).map(|i| self.of(i).len()).max().unwrap_or(0);
        let mut rows = vec![token::PAD; self.len() * width];
        if width > 0 {
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                let tokens = self.of(i);
                row[..tokens.len()].copy_from_slice(tokens);
            }
        }
        (self.tokens, self.padded) = (rows, Some(width));
    }
}

/// Copies a run in whole words. What that writes too much, behind the run, is not used yet: the caller has left room for it.
#[inline]
fn copy(from: &[u8], run: Range<usize>, to: &mut [u8], at: usize) {
    if run.end + WORD > from.len() {
        to[at..at + run.len()].copy_from_slice(&from[run]);
        return;
    }
    for word in (0..run.len()).step_by(WORD) {
        let (source, target) = (run.start + word, at + word);
        to[target..target + WORD].copy_from_slice(&from[source..source + WORD]);
    }
}

/// Step examples that are put together.
pub struct Rows {
    special: bool,
    src: Sequences,
    tgt: Sequences,
    kinds: Vec<u8>,
    proofs: Vec<u64>,
    steps: Vec<u16>,
}

/// Tokens for which a side of an example has room before it has to grow.
const USUAL_TOKENS: usize = 56;
/// Examples that are added at once: their spans stay in the cache.
const AT_ONCE: usize = 1024;

impl Rows {
    /// Room for so many examples, unless they are very many. With special tokens a source ends with `</s>`, and a target stands between `<s>` and `</s>`.
    pub fn with_room(examples: usize, special: bool) -> Rows {
        let examples = examples.min(1 << 20);
        let room = || Sequences::with_room(examples, examples * USUAL_TOKENS);
        let (kinds, proofs) = (Vec::with_capacity(examples), Vec::with_capacity(examples));
        Rows { special, src: room(), tgt: room(), kinds, proofs, steps: Vec::with_capacity(examples) }
    }

    /// Adds examples whose tokens are these. `proof` is the whole index of a proof, of which a span has the low bits.
    pub fn extend(
        &mut self,
        tokens: &[u8],
        spans: impl Iterator<Item = ExampleSpan>,
        proof: impl Fn(&ExampleSpan) -> u64,
    ) {
        let (first, last) = if self.special { (Some(token::BOS), Some(token::EOS)) } else { (None, None) };
        let mut spans = spans.peekable();
        let mut some = Vec::with_capacity(AT_ONCE);
        while spans.peek().is_some() {
            some.clear();
            some.extend(spans.by_ref().take(AT_ONCE));
            let middle = |span: &ExampleSpan| span.start as usize + usize::from(span.src_len);
            self.src.extend(tokens, some.iter().map(|span| span.start as usize..middle(span)), [None, last]);
            let target = |span: &ExampleSpan| middle(span)..middle(span) + usize::from(span.tgt_len);
            self.tgt.extend(tokens, some.iter().map(target), [first, last]);
            self.kinds.extend(some.iter().map(|span| span.kind as u8));
            self.proofs.extend(some.iter().map(&proof));
            self.steps.extend(some.iter().map(|span| span.step));
        }
    }

    /// Makes rectangles of both sides.
    pub fn pad(&mut self) {
        self.src.pad();
        self.tgt.pad();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }
}

/// Where the examples of a batch come from.
#[derive(Clone)]
pub struct Origin {
    /// Their task.
    pub task: Task,
    /// `config:vars:split:seed:`, what the ids of their proofs begin with.
    pub ids: String,
}

impl Origin {
    /// Examples of a stream.
    pub fn new(task: &Task, purpose: polystep_core::Purpose, seed: u64) -> Origin {
        let first = proof_id(&task.space.key, task.vars, purpose, seed, 0);
        Origin { task: task.clone(), ids: first[..first.len() - 1].to_owned() }
    }
}

/// A batch of step examples.
///
/// Packed, `src` and `tgt` hold the tokens of all examples end to end, and example i is
/// `src[src_offsets[i]:src_offsets[i + 1]]`. Padded, they have one row per example, filled up with `polystep.PAD`, and there are no
/// offsets. `inputs` and `targets` are the same as text.
///
/// >>> import polystep
/// >>> batch = next(polystep.examples("small_coeff/add", batch_size=2, shuffle=False))
/// >>> len(batch), batch.src.dtype.name, batch.src_offsets.tolist()
/// (2, 'uint8', [0, 35, 68])
/// >>> batch.inputs[1], batch.targets[1]
/// ('(3*x1^3+3*x1^2+2)+(3*x1^2)+(2*x1^2+4)', '3*x1^3+8*x1^2+6')
/// >>> batch.ids[1], int(batch.step[1]), batch.kinds[1]
/// ('small_coeff/add:1:train:1:0', 1, 'sumstep')
#[pyclass(module = "polystep", frozen)]
pub struct Batch {
    origin: Origin,
    special: bool,
    /// The tokens of the sources.
    #[pyo3(get)]
    src: Py<PyAny>,
    /// The tokens of the targets.
    #[pyo3(get)]
    tgt: Py<PyAny>,
    /// Where each source begins in `src`, and where the last one ends; `None` if the batch is padded.
    #[pyo3(get)]
    src_offsets: Option<Py<PyArray1<i64>>>,
    /// Where each target begins in `tgt`, and where the last one ends; `None` if the batch is padded.
    #[pyo3(get)]
    tgt_offsets: Option<Py<PyArray1<i64>>>,
    /// What each step does, as a place in `polystep.KINDS`.
    #[pyo3(get)]
    kind: Py<PyArray1<u8>>,
    /// The place of each proof in its stream.
    #[pyo3(get)]
    proof: Py<PyArray1<u64>>,
    /// Which step of its proof each example is.
    #[pyo3(get)]
    step: Py<PyArray1<u16>>,
    /// Where the stream goes on after this batch: give it to `polystep.examples` as `start`.
    #[pyo3(get)]
    position: (u64, u64),
}

impl Batch {
    /// The arrays of a batch.
    pub fn new(py: Python<'_>, rows: Rows, origin: Origin, position: (u64, u64)) -> PyResult<Batch> {
        let Rows { special, src, tgt, kinds, proofs, steps } = rows;
        let (src, src_offsets) = arrays(py, src)?;
        let (tgt, tgt_offsets) = arrays(py, tgt)?;
        let (kind, proof, step) =
            (PyArray1::from_vec(py, kinds), PyArray1::from_vec(py, proofs), PyArray1::from_vec(py, steps));
        let (kind, proof, step) = (kind.unbind(), proof.unbind(), step.unbind());
        Ok(Batch { origin, special, src, tgt, src_offsets, tgt_offsets, kind, proof, step, position })
    }

    fn notation(&self) -> Notation {
        self.origin.task.writing.notation
    }
}

type Arrays = (Py<PyAny>, Option<Py<PyArray1<i64>>>);

fn arrays(py: Python<'_>, sequences: Sequences) -> PyResult<Arrays> {
    let n = sequences.len();
    let Sequences { tokens, offsets, padded } = sequences;
    if let Some(width) = padded {
        let rows: Bound<'_, PyArray2<u8>> = PyArray1::from_vec(py, tokens).reshape([n, width])?;
        return Ok((rows.into_any().unbind(), None));
    }
    Ok((PyArray1::from_vec(py, tokens).into_any().unbind(), Some(PyArray1::from_vec(py, offsets).unbind())))
}

#[pymethods]
impl Batch {
    fn __len__(&self, py: Python<'_>) -> usize {
        self.kind.bind(py).len().unwrap_or(0)
    }

    /// The sources as text.
    #[getter]
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.texts(py, &self.src, self.src_offsets.as_ref())
    }

    /// The targets as text.
    #[getter]
    fn targets(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.texts(py, &self.tgt, self.tgt_offsets.as_ref())
    }

    /// The names of the kinds.
    #[getter]
    fn kinds(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let kinds = self.kind.bind(py).readonly();
        Ok(kinds.as_slice()?.iter().map(|&kind| StepKind::ALL[usize::from(kind)].name()).collect())
    }

    /// The ids of the proofs.
    #[getter]
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let proofs = self.proof.bind(py).readonly();
        Ok(proofs.as_slice()?.iter().map(|index| format!("{}{index}", self.origin.ids)).collect())
    }

    /// What a model wrote for these examples, as records for `polystep.score`. An answer is a text, or a list of texts, best first;
    /// `logprobs` has the same shape.
    #[pyo3(signature = (answers, logprobs = None))]
    fn records<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Beams<String>>,
        logprobs: Option<Vec<Beams<f64>>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let n = self.__len__(py);
        let logprobs = logprobs.unwrap_or_else(|| vec![Beams::Many(Vec::new()); n]);
        if answers.len() != n || logprobs.len() != n {
            return Err(bad_input(format!(
                "there are {n} examples, {} answers and {} logprobs",
                answers.len(),
                logprobs.len()
            )));
        }
        let (ids, inputs, targets) = (self.ids(py)?, self.inputs(py)?, self.targets(py)?);
        let (kinds, steps) = (self.kind.bind(py).readonly(), self.step.bind(py).readonly());
        let (kinds, steps) = (kinds.as_slice()?, steps.as_slice()?);
        let asked = ids.into_iter().zip(inputs).zip(targets).zip(answers.into_iter().zip(logprobs)).enumerate();
        let records = asked.map(|(i, (((proof, input), target), (answers, logprobs)))| {
            let (answers, logprobs) = (answers.into_vec(), logprobs.into_vec());
            let logprob = |beam| logprobs.get(beam).copied().filter(|l: &f64| l.is_finite());
            let beam = |(b, output)| Beam { output, logprob: logprob(b), finished: true };
            let (kind, step) = (StepKind::ALL[usize::from(kinds[i])], usize::from(steps[i]));
            Prediction { proof, step, kind, input, target, beams: answers.into_iter().enumerate().map(beam).collect() }
        });
        to_json(py, &records.collect::<Vec<_>>())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let layout = if self.src_offsets.is_some() { "packed" } else { "padded" };
        format!("<polystep.Batch of {} step examples, {layout}>", self.__len__(py))
    }
}

/// One value, or several, best first.
#[derive(FromPyObject, Clone)]
pub enum Beams<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Beams<T> {
    fn into_vec(self) -> Vec<T> {
        match self {
            Beams::One(one) => vec![one],
            Beams::Many(many) => many,
        }
    }
}

impl Batch {
    /// The sequences of one side as text, without special tokens.
    fn texts(&self, py: Python<'_>, tokens: &Py<PyAny>, offsets: Option<&Py<PyArray1<i64>>>) -> PyResult<Vec<String>> {
        let ends = |row: &[u8]| row.iter().rposition(|&t| t != token::PAD).map_or(0, |last| last + 1);
        let text = |row: &[u8]| {
            let row = row.strip_prefix(&[token::BOS]).filter(|_| self.special).unwrap_or(row);
            let row = row.strip_suffix(&[token::EOS]).filter(|_| self.special).unwrap_or(row);
            token::decode(row, self.notation())
        };
        match offsets {
            Some(offsets) => {
                let (tokens, offsets) =
                    (tokens.bind(py).cast::<PyArray1<u8>>()?.readonly(), offsets.bind(py).readonly());
                let (tokens, offsets) = (tokens.as_slice()?, offsets.as_slice()?);
                Ok(offsets.windows(2).map(|w| text(&tokens[w[0] as usize..w[1] as usize])).collect())
            }
            None => {
                let rows = tokens.bind(py).cast::<PyArray2<u8>>()?.readonly();
                Ok(rows
                    .as_array()
                    .rows()
                    .into_iter()
                    .map(|row| row.to_vec())
                    .map(|row| text(&row[..ends(&row)]))
                    .collect())
            }
        }
    }
}

/// A text as tokens.
///
/// >>> import polystep
/// >>> polystep.encode("2*x1").tolist()
/// [6, 23, 14]
/// >>> polystep.VOCABULARY[23]
/// '*'
#[pyfunction]
pub fn encode<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyArray1<u8>>> {
    Ok(PyArray1::from_vec(py, token::encode(text).map_err(bad_input)?))
}

/// Tokens as text. Special tokens are left out, and nothing after `</s>` is read.
///
/// >>> import polystep
/// >>> polystep.decode(polystep.encode("2*x1"))
/// '2*x1'
#[pyfunction]
#[pyo3(signature = (tokens, notation = "infix"))]
pub fn decode(tokens: Tokens<'_>, notation: &str) -> PyResult<String> {
    let notation: Notation = notation.parse().map_err(bad_input)?;
    let tokens = match &tokens {
        Tokens::Array(array) => array.as_slice().map_err(|e| PyValueError::new_err(e.to_string()))?.to_vec(),
        Tokens::List(list) => list.clone(),
    };
    let text = tokens.iter().copied().take_while(|&t| t != token::EOS).filter(|&t| t != token::PAD && t != token::BOS);
    Ok(token::decode(&text.collect::<Vec<_>>(), notation))
}

/// Tokens as an array or as a list.
#[derive(FromPyObject)]
pub enum Tokens<'py> {
    Array(PyReadonlyArray1<'py, u8>),
    List(Vec<u8>),
}

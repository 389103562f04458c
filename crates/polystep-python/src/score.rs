//! Records to metrics; and documents between Python and Rust, as JSON.

use std::path::PathBuf;

use polystep_core::Writing;
use polystep_record::{JsonLines, Prediction, TestSet};
use polystep_study::score::score as score_one;
use polystep_study::{Inputs, evaluate};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Exception, bad_input};
use crate::keywords::Keywords;

/// A Python object as a document.
pub fn from_json<T: DeserializeOwned>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    let text: String = object.py().import("json")?.call_method1("dumps", (object,))?.extract()?;
    serde_json::from_str(&text).map_err(|error| {
        let text = error.to_string();
        bad_input(text.split(" at line ").next().unwrap_or(&text))
    })
}

/// A document as Python objects.
pub fn to_json<'py>(py: Python<'py>, document: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(document).map_err(bad_input)?;
    py.import("json")?.call_method1("loads", (PyString::new(py, &text),))
}

/// The numbers of the paper from what a model wrote.
///
/// `records` is a list of predictions, as `Batch.records` makes them, or a JSONL file of them. A record has `proof`, `step`, `kind`,
/// `input`, `target`, and `beams`, each with `output` and, if you know it, `logprob`. Every step of a proof must be there once.
///
/// The result has the keys of an evaluation in metrics.json: `greedy` judges the first beam of every step, and `beam`, where there are
/// several beams, the five best. Keywords say how the steps are written, as in `polystep.Task`.
///
/// >>> import polystep
/// >>> record = {"proof": "a", "step": 0, "kind": "sumstep", "input": "(x1)+(2*x1)", "target": "3*x1",
/// ...           "beams": [{"output": "3*x1", "logprob": -0.1}]}
/// >>> polystep.score([record])["greedy"]["stepwise"]["exact"]["percent"]
/// 100.0
#[pyfunction]
#[pyo3(signature = (records, **keywords))]
pub fn score<'py>(records: &Bound<'py, PyAny>, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let py = records.py();
    let keywords = Keywords::new(keywords)?;
    let writing = keywords.writing(Writing::default())?;
    keywords.finish()?;
    let predictions: Vec<Prediction> = match records.extract::<PathBuf>() {
        Ok(path) => {
            let lines = JsonLines::open(&path).and_then(Iterator::collect);
            lines.map_err(Exception::exception)?
        }
        Err(_) => {
            let read = |(i, record): (usize, PyResult<Bound<'py, PyAny>>)| {
                from_json(&record?).map_err(|error| bad_input(format!("record {i}: {}", error.value(py))))
            };
            records.try_iter()?.enumerate().map(read).collect::<PyResult<_>>()?
        }
    };
    if predictions.is_empty() {
        return Err(bad_input("there are no records"));
    }
    let evaluation = py.detach(|| {
        let scored = || Some(predictions.iter().map(|prediction| score_one(prediction, &writing)).collect());
        let beams = predictions.iter().any(|prediction| prediction.beams.len() > 1);
        let inputs = Inputs { greedy: scored(), beam: if beams { scored() } else { None }, ..Inputs::default() };
        evaluate(&set_of(&predictions), &inputs)
    });
    to_json(py, &evaluation.map_err(Exception::exception)?)
}

/// The test set that the ids of the proofs name, `config:vars:split:seed:index`; `unknown` if they are from elsewhere.
fn set_of(predictions: &[Prediction]) -> TestSet {
    let id: Vec<&str> = predictions.first().map_or(Vec::new(), |p| p.proof.split(':').collect());
    match (id.as_slice(), id.get(1).and_then(|vars| vars.parse().ok())) {
        ([config, _, _, _, _], Some(vars)) => TestSet::new(*config, vars),
        _ => TestSet::new("unknown", 1),
    }
}

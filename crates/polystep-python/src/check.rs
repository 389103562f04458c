//! The checker: is a step right, and if not, why?

use polystep_core::{Setting, Verdict, Writing, token};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::bad_input;
use crate::keywords::Keywords;

/// Steps between two looks for a signal.
const BLOCK: usize = 1 << 14;

/// What the checker says about a step. It is true if the step is exactly the expected one.
///
/// `verdict` is `"exact"`, `"same value"` (the same polynomial, but not the expected step), `"wrong value"` or `"malformed"`.
#[pyclass(module = "polystep", frozen, eq, get_all)]
#[derive(Clone, PartialEq)]
pub struct Check {
    /// How the step turned out.
    verdict: &'static str,
    /// The kind of step that was expected; `None` if there is nothing left to do.
    expected: Option<&'static str>,
    /// Why, in a sentence.
    reason: String,
}

#[pymethods]
impl Check {
    /// Whether it is exactly the expected step.
    #[getter]
    fn exact(&self) -> bool {
        self.verdict == Verdict::Exact.name()
    }

    /// Whether it is right by the paper's test: at least the same polynomial.
    #[getter]
    fn symbolic(&self) -> bool {
        self.exact() || self.verdict == Verdict::SameValue.name()
    }

    fn __bool__(&self) -> bool {
        self.exact()
    }

    fn __repr__(&self) -> String {
        format!("<polystep.Check {}: {}>", self.verdict, self.reason)
    }
}

/// One text, or many.
#[derive(FromPyObject)]
pub enum Texts {
    One(String),
    Many(Vec<String>),
}

/// Checks whether `output` is the step that `input` asks for: one of each, or a list of each.
///
/// Keywords say how the steps are written, as in `polystep.Task`. Text in the vocabulary is judged token for token, as `polystep eval`
/// does. What a person typed freely is compared as mathematics.
///
/// >>> import polystep
/// >>> found = polystep.check("(3*x1+4)*(x1+5)+(1)", "(3*x1^2+18*x1+20)+(1)")
/// >>> found.verdict, found.expected
/// ('wrong value', 'mulstep')
/// >>> found.reason
/// 'In the mulstep of product 1, the coefficient of x1 should be 19, not 18.'
/// >>> [c.verdict for c in polystep.check(["(x1)+(2*x1)", "(x1)+(2*x1)"], ["3*x1", "(2*x1)+(x1)"])]
/// ['exact', 'same value']
#[pyfunction]
#[pyo3(signature = (input, output, **keywords))]
pub fn check<'py>(
    py: Python<'py>,
    input: Texts,
    output: Texts,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = Keywords::new(keywords)?;
    let writing = keywords.writing(Writing::default())?;
    keywords.finish()?;
    match (input, output) {
        (Texts::One(input), Texts::One(output)) => {
            let found = py.detach(|| checked(&writing, &input, &output)).map_err(bad_input)?;
            Ok(Bound::new(py, found)?.into_any())
        }
        (Texts::Many(inputs), Texts::Many(outputs)) if inputs.len() == outputs.len() => {
            let mut found = Vec::with_capacity(inputs.len());
            for (first, (inputs, outputs)) in (0..).step_by(BLOCK).zip(inputs.chunks(BLOCK).zip(outputs.chunks(BLOCK)))
            {
                py.check_signals()?;
                found.extend(py.detach(|| block(&writing, inputs, outputs, first))?);
            }
            Ok(found.into_pyobject(py)?.into_any())
        }
        (Texts::Many(inputs), Texts::Many(outputs)) => {
            Err(bad_input(format!("there are {} inputs and {} outputs", inputs.len(), outputs.len())))
        }
        _ => Err(PyTypeError::new_err("give one input and one output, or a list of each")),
    }
}

/// Checks many steps in all threads; `first` is the number of the first, for errors.
fn block(writing: &Writing, inputs: &[String], outputs: &[String], first: usize) -> PyResult<Vec<Check>> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let share = inputs.len().div_ceil(threads).max(1);
    let part = |(t, (inputs, outputs)): (usize, (&[String], &[String]))| {
        let one = |(i, (input, output)): (usize, (&String, &String))| {
            checked(writing, input, output).map_err(|e| format!("step {}: {e}", first + t * share + i))
        };
        inputs.iter().zip(outputs).enumerate().map(one).collect::<Result<Vec<_>, String>>()
    };
    std::thread::scope(|scope| {
        let parts = inputs.chunks(share).zip(outputs.chunks(share)).enumerate();
        let handles: Vec<_> = parts.map(|p| scope.spawn(move || part(p))).collect();
        let mut found = Vec::with_capacity(inputs.len());
        for handle in handles {
            found.extend(handle.join().expect("checking does not panic").map_err(bad_input)?);
        }
        Ok(found)
    })
}

/// Checks one step.
fn checked(writing: &Writing, input: &str, output: &str) -> Result<Check, String> {
    let found = |check: polystep_core::Check| Check {
        verdict: check.verdict.name(),
        expected: check.expected.map(|kind| kind.name()),
        reason: check.why.to_string(),
    };
    let (asked, written) = (token::encode(input), token::encode(output));
    if let (Ok(asked), Ok(written)) = (&asked, &written) {
        return Ok(found(writing.check_line(asked, written)));
    }
    // Tags, marks and exercises are never typed freely.
    if !matches!(writing.setting, Setting::Plain | Setting::Calculator) {
        let asked = asked.map_err(|e| format!("the input cannot be read: {e}"))?;
        let line = writing.expected(&asked).map_err(|why| why.to_string())?;
        let why = writing.explain(line.kind, input, &writing.text(&line.target), Some(output));
        return Ok(found(polystep_core::Check { verdict: Verdict::Malformed, expected: Some(line.kind), why }));
    }
    let before = writing.parse(input).map_err(|e| format!("the input cannot be read: {e}"))?;
    writing.check(&before, output).map(found).map_err(|e| e.to_string())
}

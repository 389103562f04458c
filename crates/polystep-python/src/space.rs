//! Spaces of polynomials, and tasks: a space with a number of variables and a way to write proofs.

use std::path::Path;

use polystep_core::{Setting, SpaceError, SpaceTable};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Exception, bad_input};
use crate::keywords::Keywords;
use crate::score::{from_json, to_json};

/// A set of polynomials under caps.
///
/// `base` is a configuration of the paper (`"large_coeff"`), one of its sub-tasks (`"medium_coeff/mul2"`), or a TOML file with a
/// `[space]` table. Keywords are the keys of that table, and change `base` to a space of your own:
///
/// >>> import polystep
/// >>> polystep.Space("large_coeff").key
/// 'large_coeff'
/// >>> long = polystep.Space("medium_coeff", key="long", max={"products": 5, "factors": 2})
/// >>> long.key, long.caps["products"]["max"]
/// ('long', 5)
/// >>> polystep.Space("huge")
/// Traceback (most recent call last):
///     ...
/// ValueError: unknown configuration `huge`; the configurations are small_coeff, medium_coeff, large_coeff, no_backtrack, medium_degree, medium_terms
#[pyclass(module = "polystep", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Space(pub polystep_core::Space);

#[pymethods]
impl Space {
    #[new]
    #[pyo3(signature = (base = "medium_coeff", /, **table))]
    fn new(base: &str, table: Option<&Bound<'_, PyDict>>) -> PyResult<Space> {
        let Some(table) = table.filter(|table| !table.is_empty()) else { return Space::named(base) };
        let table: SpaceTable = from_json(table)?;
        let space = SpaceTable { base: Some(base.to_owned()), ..table }.resolve().map_err(Exception::exception)?;
        Space::valid(space)
    }

    /// A space from the text of a TOML file.
    ///
    /// >>> import polystep
    /// >>> text = '''
    /// ... [space]
    /// ... key = "mine"
    /// ... base = "small_coeff"
    /// ... '''
    /// >>> polystep.Space.from_toml(text).key
    /// 'mine'
    #[staticmethod]
    fn from_toml(text: &str) -> PyResult<Space> {
        let named = |error| match error {
            SpaceError::Toml { message, span: Some(span) } => {
                let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
                bad_input(format!("line {line}: {message}"))
            }
            error => error.exception(),
        };
        Space::valid(polystep_core::Space::from_toml(text).map_err(named)?)
    }

    /// Its name.
    #[getter]
    fn key(&self) -> &str {
        &self.0.key
    }

    /// All its caps and settings.
    #[getter]
    fn caps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_json(py, &self.0)
    }

    fn __repr__(&self) -> String {
        format!("<polystep.Space {}: {}>", self.0.key, self.0)
    }
}

impl Space {
    /// A configuration, a sub-task, or a TOML file.
    fn named(base: &str) -> PyResult<Space> {
        if !base.ends_with(".toml") {
            return Ok(Space(polystep_core::Space::of_key(base).map_err(Exception::exception)?));
        }
        let read = polystep_record::folder::read_text(Path::new(base)).map_err(Exception::exception)?;
        let missing =
            || pyo3::exceptions::PyFileNotFoundError::new_err(format!("cannot read {base}: there is no such file"));
        let named = |error: PyErr| bad_input(format!("{base}, {}", Python::attach(|py| error.value(py).to_string())));
        Space::from_toml(&read.ok_or_else(missing)?).map_err(named)
    }

    fn valid(space: polystep_core::Space) -> PyResult<Space> {
        space.validate(1).map_err(Exception::exception)?;
        Ok(Space(space))
    }
}

/// What a model is asked to do: a space, a number of variables, and how proofs are written.
///
/// Wherever a task is asked for, you can also give a space, or the name of one, and the keywords:
///
/// - `vars`: 1 (the default) to 8
/// - `setting`: `"plain"` (the default), `"calculator"`, `"annotated"`, `"endpoint"` or `"arithmetic"`
/// - `granularity`: `"coarse"` (the default), `"fine"`, `"fine_counted"`, or switches such as `"coarse,sum=pair"`
/// - `notation`: `"infix"` (the default) or `"prefix"`
/// - `order`: the order of terms, `"paper"` (the default) or `"grlex"`
/// - `ones`: whether unsimplified terms show the coefficient 1
///
/// >>> import polystep
/// >>> polystep.Task("small_coeff", vars=2, setting="calculator")
/// <polystep.Task small_coeff, vars=2, calculator, coarse, infix>
/// >>> polystep.Task("small_coeff", setting="annotated", notation="prefix")
/// Traceback (most recent call last):
///     ...
/// ValueError: annotated proofs are written in infix only
#[pyclass(module = "polystep", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Task(pub polystep_core::Task);

#[pymethods]
impl Task {
    #[new]
    #[pyo3(signature = (space = None, /, **keywords))]
    fn new(space: Option<&Bound<'_, PyAny>>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Task> {
        let keywords = Keywords::new(keywords)?;
        let task = match space {
            Some(space) => Task::of(space, &keywords)?,
            None => {
                Task::with(Base::Named("medium_coeff".to_owned()), 1, polystep_core::Writing::default(), &keywords)?
            }
        };
        keywords.finish()?;
        Ok(Task(task))
    }

    /// Its space.
    #[getter]
    fn space(&self) -> Space {
        Space(self.0.space.clone())
    }

    /// How many variables.
    #[getter]
    fn vars(&self) -> usize {
        self.0.vars
    }

    /// What a step looks like.
    #[getter]
    fn setting(&self) -> &'static str {
        self.0.writing.setting.name()
    }

    /// How large a step is.
    #[getter]
    fn granularity(&self) -> String {
        self.0.writing.granularity.to_string()
    }

    /// How states are written.
    #[getter]
    fn notation(&self) -> &'static str {
        self.0.writing.notation.name()
    }

    fn __repr__(&self) -> String {
        let polystep_core::Task { space, vars, writing } = &self.0;
        let (setting, granularity, notation) = (writing.setting, writing.granularity, writing.notation);
        format!("<polystep.Task {}, vars={vars}, {setting}, {granularity}, {notation}>", space.key)
    }
}

/// Where the space of a task comes from.
enum Base {
    Space(polystep_core::Space),
    Named(String),
}

impl Task {
    /// A task, or a space with keywords. Keywords change a task.
    pub fn of(any: &Bound<'_, PyAny>, keywords: &Keywords) -> PyResult<polystep_core::Task> {
        let default = polystep_core::Writing::default();
        if let Ok(task) = any.cast::<Task>() {
            let polystep_core::Task { space, vars, writing } = task.get().0.clone();
            return Task::with(Base::Space(space), vars, writing, keywords);
        }
        if let Ok(space) = any.cast::<Space>() {
            return Task::with(Base::Space(space.get().0.clone()), 1, default, keywords);
        }
        match any.extract::<String>() {
            Ok(name) => Task::with(Base::Named(name), 1, default, keywords),
            Err(_) => Err(PyTypeError::new_err("give a Task, a Space, or the name of a configuration")),
        }
    }

    fn with(
        base: Base,
        vars: usize,
        writing: polystep_core::Writing,
        keywords: &Keywords,
    ) -> PyResult<polystep_core::Task> {
        let vars = keywords.take("vars")?.unwrap_or(vars);
        let writing = keywords.writing(writing)?;
        let space = match base {
            Base::Space(space) => space,
            Base::Named(name) => Task::space_named(&name, writing.setting)?,
        };
        let task = polystep_core::Task { space, vars, writing };
        task.validate().map_err(Exception::exception)?;
        Ok(task)
    }

    /// The arithmetic probe has keys of its own beside the configurations, each of which stands for all exercises.
    fn space_named(name: &str, setting: Setting) -> PyResult<polystep_core::Space> {
        let exercises = setting == Setting::Arithmetic && !name.ends_with(".toml");
        match exercises.then(|| polystep_core::Space::exercises(name)) {
            Some(Ok(space)) => Ok(space),
            Some(Err(error)) if polystep_core::Space::of_key(name).is_err() => Err(error.exception()),
            _ => Ok(Space::named(name)?.0),
        }
    }
}

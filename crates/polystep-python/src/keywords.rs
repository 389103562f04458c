//! The keywords that say how proofs are written. Every function that takes a task takes them, too.

use std::str::FromStr;

use polystep_core::{UnknownName, Writing};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::bad_input;

/// Keywords of a call, taken out one by one.
pub struct Keywords<'py>(Option<Bound<'py, PyDict>>);

impl<'py> Keywords<'py> {
    /// The keywords that a function's signature does not name.
    pub fn new(keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Keywords<'py>> {
        Ok(Keywords(keywords.map(PyDictMethods::copy).transpose()?))
    }

    /// Takes a keyword out, if it is there.
    pub fn take<T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>>(&self, name: &str) -> PyResult<Option<T>> {
        let Some(keywords) = &self.0 else { return Ok(None) };
        let Some(value) = keywords.get_item(name)? else { return Ok(None) };
        keywords.del_item(name)?;
        value.extract().map(Some).map_err(Into::into)
    }

    /// Takes the name of a choice out.
    fn choice<T: FromStr<Err = UnknownName>>(&self, name: &str, choice: &mut T) -> PyResult<()> {
        if let Some(text) = self.take::<String>(name)? {
            *choice = text.parse().map_err(bad_input)?;
        }
        Ok(())
    }

    /// A way to write, changed by `setting`, `granularity`, `notation`, `order` and `ones`.
    pub fn writing(&self, mut writing: Writing) -> PyResult<Writing> {
        self.choice("setting", &mut writing.setting)?;
        self.choice("granularity", &mut writing.granularity)?;
        self.choice("notation", &mut writing.notation)?;
        self.choice("order", &mut writing.style.order)?;
        writing.style.ones = self.take("ones")?.unwrap_or(writing.style.ones);
        writing.validate().map_err(bad_input)?;
        Ok(writing)
    }

    /// An error if a keyword is left that nobody knows.
    pub fn finish(self) -> PyResult<()> {
        match self.0.and_then(|left| left.keys().iter().next()) {
            Some(name) => Err(PyTypeError::new_err(format!("unexpected keyword argument {}", name.repr()?))),
            None => Ok(()),
        }
    }
}

//! polystep in Python. `maturin` makes a wheel of this crate and of the files in `python/`.
//!
//! The library is `polystep._native`; `polystep` exports its names, and `_native.pyi` has their types. What a function does stands
//! in its docstring, whose examples are tests. Three decisions hold for all of it:
//!
//! - Bad input is a `ValueError` with the sentence that the command line prints. What fails at run time is a `RuntimeError` or an
//!   `OSError`.
//! - Whatever takes time releases the interpreter's lock, and asks for signals, so that Ctrl-C works.
//! - Documents (records, metrics, tables of caps) cross the border as JSON. Numbers of examples cross it as numpy arrays.

mod batch;
mod check;
mod error;
mod keywords;
mod model;
mod program;
mod proof;
mod score;
mod sets;
mod space;
mod stream;

use pyo3::prelude::*;

/// The compiled part of polystep. Import `polystep` instead.
#[pymodule]
mod _native {
    use polystep_core::{StepKind, token};
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::batch::{decode, encode};
    #[pymodule_export]
    use super::check::{Check, check};
    #[pymodule_export]
    use super::model::{Answer, Model, ModelProof, ModelStep};
    #[pymodule_export]
    use super::program::main;
    #[pymodule_export]
    use super::proof::{Proof, Step, prove, sample};
    #[pymodule_export]
    use super::score::score;
    #[pymodule_export]
    use super::sets::fixed_set;
    #[pymodule_export]
    use super::space::{Space, Task};
    #[pymodule_export]
    use super::stream::{ExampleStream, examples};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("PAD", token::PAD)?;
        module.add("BOS", token::BOS)?;
        module.add("EOS", token::EOS)?;
        module.add("VOCABULARY", (0..token::VOCABULARY as u8).map(token::name).collect::<Vec<_>>())?;
        module.add("KINDS", StepKind::ALL.map(StepKind::name).to_vec())
    }
}

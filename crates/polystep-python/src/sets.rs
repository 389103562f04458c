//! The fixed sets, on which models are judged.

use polystep_core::sets::{FixedSet, SEED};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{Batch, Origin, Rows};
use crate::error::{Exception, bad_input};
use crate::keywords::Keywords;
use crate::proof::split_named;
use crate::space::Task;

/// A fixed set of a task as one batch: `"test"` (1000 proofs), `"valid"` (1000 proofs) or `"beam"` (5000 steps).
///
/// Training never sees its endpoints. `proofs` takes the first proofs only.
///
/// >>> import polystep
/// >>> test = polystep.fixed_set("large_coeff", "test", proofs=100)
/// >>> test.ids[0], len(set(test.ids))
/// ('large_coeff:1:test:2021:0', 100)
/// >>> polystep.score(test.records(test.targets))["greedy"]["full_proof"]["exact"]["percent"]
/// 100.0
#[pyfunction]
#[pyo3(signature = (task, split = "test", *, proofs = None, padded = false, special_tokens = false, **keywords))]
pub fn fixed_set(
    py: Python<'_>,
    task: &Bound<'_, PyAny>,
    split: &str,
    proofs: Option<u64>,
    padded: bool,
    special_tokens: bool,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Batch> {
    let keywords = Keywords::new(keywords)?;
    let task = Task::of(task, &keywords)?;
    keywords.finish()?;
    let purpose = split_named(split)?;
    let set = FixedSet::of(purpose).ok_or_else(|| bad_input("training has no fixed set: use polystep.examples"))?;
    let rows = py.detach(|| {
        let examples = set.examples(&task)?;
        let mut rows = Rows::with_room(examples.len(), special_tokens);
        let most = proofs.unwrap_or(u64::MAX);
        let spans = examples.spans.iter().copied().take_while(|span| u64::from(span.proof) < most);
        rows.extend(&examples.tokens, spans, |span| u64::from(span.proof));
        if padded {
            rows.pad();
        }
        Ok(rows)
    });
    let rows = rows.map_err(polystep_core::SpaceError::exception)?;
    let all = set.proofs.min(proofs.unwrap_or(u64::MAX));
    Batch::new(py, rows, Origin::new(&task, purpose, SEED), (all, 0))
}

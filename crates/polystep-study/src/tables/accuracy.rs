//! Tables of models tested on their own space: accuracies, calibration, errors by kind of step. A row with `endpoint_` columns
//! needs two models, because the paper prints the one-shot model (start to endpoint) of a space beside each of its step-wise
//! models. The one-shot model of an annotated row is the plain one, since an endpoint has no marks.

use super::{AskedSet, Experiment, Need, PaperRow, Recipe};
use polystep_record::{Keys, PaperSetting};

/// The step-wise model, and the one-shot model where the row has its columns.
pub fn needs(row: &PaperRow, recipe: Recipe, seed: u64) -> Vec<Need> {
    let keys = row.trained_on();
    let need = |keys: Keys, endpoint: bool| Need {
        set: AskedSet { config: keys.config.clone(), vars: keys.vars, beam: !endpoint },
        experiment: Experiment::new(keys, recipe, seed),
        endpoint,
    };
    let mut needs = vec![need(keys.clone(), false)];
    if row.text("endpoint_acc").is_some() {
        needs.push(need(Keys { setting: Some(PaperSetting::Endpoint), granularity: None, ..keys }, true));
    }
    needs
}

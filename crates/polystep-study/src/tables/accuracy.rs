//! Tables of models tested at home: accuracies, calibration, errors by step kind. A row with `endpoint_` columns needs two
//! models, for the paper prints the one-shot model of a space beside each of its step-wise ones; an annotated row's one-shot
//! model is the plain one, since an endpoint has no marks.

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

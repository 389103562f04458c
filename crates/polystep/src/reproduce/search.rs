//! `--search` searches the hyper-parameters of a `tuned` row, as the paper's authors did. Without it, the paper's values are used.
//!
//! The search is a `polystep sweep` over `reproduce/search.toml` in `runs/NAME-search`. It uses only the validation set. The run
//! itself is then trained with the values found, and only this run is tested.

use std::path::{Path, PathBuf};

use anyhow::Context;
use polystep_learn::sweep::{Sweep, ranking};

use super::job::{Folders, Job};
use crate::failure::{Result, bad_input};

/// The file with the tables `[grid]` and `[sweep]`.
const GRID: &str = include_str!("../../reproduce/search.toml");

/// A search for the hyper-parameters of a run.
pub struct Search {
    sweep: Sweep,
    text: String,
    /// The folder of the trials.
    pub folder: PathBuf,
}

impl Search {
    /// The search of a run.
    pub fn new(job: &Job, folders: &Folders) -> Result<Search> {
        let grid = Sweep::from_toml(GRID).map_err(bad_input)?;
        let searched = |key: &str| grid.axes.iter().any(|axis| axis.key == key);
        let own = job.overrides.iter().filter(|(key, _)| !searched(key));
        let own: String = own.map(|(key, value)| format!("{key} = {value}\n")).collect();
        let text = format!("{own}\n{GRID}");
        let sweep = Sweep::from_toml(&text).map_err(bad_input)?;
        Ok(Search { sweep, text, folder: folders.run(&format!("{}-search", job.name)) })
    }

    /// Writes the sweep's file into its folder.
    pub fn write(&self) -> Result<PathBuf> {
        let cannot = |path: &Path| format!("cannot write {}", path.display());
        std::fs::create_dir_all(&self.folder).with_context(|| cannot(&self.folder))?;
        let path = self.folder.join("search.toml");
        std::fs::write(&path, &self.text).with_context(|| cannot(&path))?;
        Ok(path)
    }

    /// The run's keys, with the values that the search has found; none if no trial reached its first validation.
    pub fn found(&self, job: &Job) -> Result<Option<Vec<(String, String)>>> {
        let rows = ranking(&self.sweep, &self.folder)?;
        let Some(best) = rows.iter().find(|row| row.best.is_some()) else { return Ok(None) };
        let values = best.trial.values.iter().cloned();
        let chosen: Vec<(String, String)> = self.sweep.axes.iter().map(|axis| axis.key.clone()).zip(values).collect();
        let kept = job.overrides.iter().filter(|(key, _)| chosen.iter().all(|(k, _)| k != key)).cloned();
        Ok(Some(kept.chain(chosen.clone()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::table_plan::TablePlans;
    use polystep_record::paper::KeyColumn;
    use polystep_study::tables::{PaperTable, Recipe};

    #[test]
    fn every_tuned_row_can_be_searched() {
        let plans = TablePlans::read::<&Path>(&[]).expect("the repository's plans are right");
        let folders = Folders { runs: "runs".into(), results: "results".into(), models: None };
        for table in ["var1combo", "var1comboerrors"].into_iter().filter_map(PaperTable::named) {
            for row in table.rows.iter().filter(|row| row.key(KeyColumn::Setting) == Some("tuned")) {
                for recipe in [Recipe::Fast, Recipe::Paper] {
                    let job = Job::new(row.needs(recipe, 1).remove(0).experiment, &plans);
                    let search = Search::new(&job, &folders).expect("a sweep");
                    assert_eq!((search.sweep.combinations.len(), search.sweep.trials().len()), (72, 12));
                    let config = &search.sweep.combinations[0].config;
                    assert_eq!(config.data.config, job.experiment.keys.config);
                    assert_eq!(config.train.recipe.to_string(), recipe.to_string());
                }
            }
        }
    }
}

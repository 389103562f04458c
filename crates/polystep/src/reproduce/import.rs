//! `--import FOLDER` makes records of runs that were trained elsewhere.
//!
//! The configuration of a run decides which row of a table it belongs to, not the name of its folder: its data, the shape of its
//! model and its recipe must be those of the row. Two runs may belong to the same row. The second never replaces the record of
//! the first.

use std::path::Path;

use polystep_learn::config::RunConfig;
use polystep_record::RunFolder;
use polystep_study::records::RunRecord;
use polystep_study::tables::{Experiment, Recipe};

use super::results_folder::ResultsFolder;
use super::table_plan::TablePlans;
use crate::failure::{Result, bad_input};
use crate::output::note;

/// Imports one run folder, or every run folder in a folder, into the results.
pub fn import(folder: &Path, plans: &TablePlans, results: &mut ResultsFolder) -> Result<()> {
    let failed = |e| bad_input(format!("cannot read {}: {e}", folder.display()));
    let mut runs = Vec::new();
    if RunFolder::new(folder).is_begun() {
        runs.push(folder.to_path_buf());
    } else {
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            runs.extend(RunFolder::new(&path).is_begun().then_some(path));
        }
        runs.sort();
    }
    if runs.is_empty() {
        return Err(bad_input(format!("there is no run in {}: no config.toml there or one below", folder.display())));
    }
    for run in runs {
        let (experiment, config) = known(&run, plans)?;
        let name = experiment.name();
        let (old, new) = (results.records.get(&name), RunRecord::read(&run).map_err(bad_input)?);
        if old.zip(new.as_ref()).is_some_and(|(old, new)| old.metrics.run != new.metrics.run) {
            let (run, record) = (run.display(), results.record(&name));
            let why = format!("{} is the record of another one; move it away first", record.display());
            return Err(bad_input(format!("{run} would be {name}, but {why}")));
        }
        results.enter(&name, &run, experiment.recipe, |_| Ok(true))?;
        let planned = plans.config(&experiment)?.train.examples;
        let other = match (config.train.examples, planned) {
            (Some(n), Some(m)) if n != m => format!(" (its budget was {n} examples; the table's is {m})"),
            _ => String::new(),
        };
        note(format_args!("{} is {name}{other}", run.display()));
    }
    Ok(())
}

/// The run of the tables that a folder holds.
fn known(run: &Path, plans: &TablePlans) -> Result<(Experiment, RunConfig)> {
    let path = RunFolder::new(run).config();
    let text = std::fs::read_to_string(&path).map_err(|e| bad_input(format!("cannot read {}: {e}", path.display())))?;
    let config = RunConfig::from_toml(&text, &[]).map_err(|e| bad_input(format!("{}: {e}", path.display())))?;
    let identity = |config: &RunConfig| {
        let mut config = config.clone();
        config.data.seed = 0;
        (config.data, config.model, config.space, config.curriculum, config.train.recipe, config.train.batch)
    };
    for (table, _) in plans.iter() {
        for recipe in [Recipe::Fast, Recipe::Paper] {
            for (_, need) in table.needs(recipe, config.data.seed) {
                if identity(&plans.config(&need.experiment)?) == identity(&config) {
                    return Ok((need.experiment, config));
                }
            }
        }
    }
    let why = "no row of any table has such data, model, batch and recipe";
    Err(bad_input(format!("{} is not a run of the paper's tables: {why}", run.display())))
}

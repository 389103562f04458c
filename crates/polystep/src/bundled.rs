//! The bundled models: compact run folders under `models/`, and which of them fits an expression.
//!
//! `models/` is looked for in these places, and nowhere else:
//! 1. the folder that `POLYSTEP_MODELS` names;
//! 2. beside the binary, or in the folder of the Python package;
//! 3. in the clone whose `target/` holds the binary;
//! 4. in the clone that the program was built in.
//!
//! A folder of that name which holds none of our models is skipped. Only the weights of the chosen model are read.

use std::path::{Path, PathBuf};

use polystep_core::{State, Task, fit};
use polystep_learn::train::TrainingFolder;
use polystep_record::RunFolder;
use polystep_study::Metrics;

use crate::failure::{Result, bad_input};
use crate::launch;

/// Names the folder of the models.
const VARIABLE: &str = "POLYSTEP_MODELS";

/// A model that has not been read yet.
pub struct BundledModel {
    /// Its folder.
    pub folder: PathBuf,
    /// What it learned; the first is its own.
    pub tasks: Vec<Task>,
    metrics: Metrics,
}

impl BundledModel {
    /// Full proofs on the test set of a task, in percent; 0 if that was not measured.
    pub fn accuracy(&self, task: &Task) -> f64 {
        let same = |e: &&polystep_study::Evaluation| e.config == task.space.key && e.vars as usize == task.vars;
        let greedy = self.metrics.evaluations.iter().find(same).and_then(|e| e.greedy.as_ref());
        greedy.map_or(0.0, |g| g.full_proof.exact.percent)
    }

    /// How well it does where the expression could have been sampled; nothing if that is nowhere.
    fn at_home(&self, start: &State) -> Result<Option<f64>> {
        let mut best: Option<f64> = None;
        for task in &self.tasks {
            if fit::fits(start, task).map_err(bad_input)? {
                best = Some(best.unwrap_or(0.0).max(self.accuracy(task)));
            }
        }
        Ok(best)
    }
}

/// The folder of the models, if there is one.
pub fn folder() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(PathBuf::from(named)).filter(|f| f.is_dir());
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    places(launch::folder()).into_iter().chain(built.canonicalize()).find(|f| holds_models(f))
}

/// Where `models/` may be for a program that lies in this folder.
fn places(folder: Option<&Path>) -> Vec<PathBuf> {
    let Some(beside) = folder else { return Vec::new() };
    let target = beside.parent().filter(|target| target.file_name().is_some_and(|name| name == "target"));
    [Some(beside), target.and_then(Path::parent)].into_iter().flatten().map(|f| f.join("models")).collect()
}

fn holds_models(folder: &Path) -> bool {
    let ours = |path: PathBuf| RunFolder::new(path).has_model();
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|e| ours(e.path()))))
}

/// Every model of a folder, by name; a damaged one is named.
pub fn models(folder: &Path) -> Result<Vec<BundledModel>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if RunFolder::new(&path).is_begun() {
            folders.push(path);
        }
    }
    folders.sort();
    folders.into_iter().map(open).collect()
}

fn open(folder: PathBuf) -> Result<BundledModel> {
    let (_, config) = TrainingFolder::open(&folder)?;
    let tasks = config.tasks().map_err(bad_input)?;
    let missing = || bad_input(format!("{} has no metrics.json", folder.display()));
    let metrics = RunFolder::new(&folder).read_metrics()?.ok_or_else(missing)?;
    Ok(BundledModel { folder, tasks, metrics })
}

/// The model for an expression among those that write as asked: the best one at home, else (with no home) the one that
/// learned most. With it comes why it was chosen.
pub fn fitting(
    models: Vec<BundledModel>,
    start: &State,
    writes: impl Fn(&Task) -> bool,
) -> Result<Option<(BundledModel, String)>> {
    let mut candidates = Vec::new();
    for model in models.into_iter().filter(|m| m.tasks.first().is_some_and(&writes)) {
        candidates.push((model.at_home(start)?, model));
    }
    let (all, at_home) = (candidates.len(), candidates.iter().filter(|c| c.0.is_some()).count());
    let mut best: Option<(Option<f64>, BundledModel)> = None;
    for (home, model) in candidates {
        let better = best.as_ref().is_none_or(|b| (home, model.tasks.len()) > (b.0, b.1.tasks.len()));
        if better {
            best = Some((home, model));
        }
    }
    let why = match (all, at_home) {
        (1, 0) => "the only bundled model that writes such proofs, but it did not learn such expressions".to_owned(),
        (_, 0) => "no bundled model learned such expressions, and this one learned the most spaces".to_owned(),
        (_, 1) => "the only bundled model that learned such expressions".to_owned(),
        (_, n) => format!("the best of the {n} bundled models that learned such expressions"),
    };
    Ok(best.map(|b| (b.1, why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever can write to a folder above the binary must not be able to supply its models.
    #[test]
    fn models_are_not_looked_for_in_every_folder_above_the_binary() {
        let places = |folder: &str| places(Some(Path::new(folder)));
        assert_eq!(places("/usr/local/bin"), [Path::new("/usr/local/bin/models")]);
        let clone = ["/home/a/polystep/target/release/models", "/home/a/polystep/models"];
        assert_eq!(places("/home/a/polystep/target/release"), clone.map(PathBuf::from));
    }

    #[test]
    fn another_folder_of_that_name_is_skipped() {
        let place = tempfile::tempdir().expect("a folder");
        let theirs = place.path().join("bert");
        std::fs::create_dir(&theirs).expect("a folder");
        std::fs::write(theirs.join("model.safetensors"), "").expect("a file");
        assert!(!holds_models(place.path()) && !holds_models(&place.path().join("nowhere")));
        assert!(holds_models(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")));
    }
}

//! `--eval-only`: tests again, on this device, the models whose weights this machine has, and compares them with their records.
//!
//! A row is tested with its own model, from `runs/` or from the bundled models. If there is none, a bundled model that has
//! learned the row's space among others takes its place. Only greedy proofs are measured again, since they decide a row. The
//! new numbers are printed but not saved: a record keeps what was computed on its own device.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use polystep_record::{Keys, Lease, Proportion, RunFolder};
use polystep_study::records::{RunRecord, RunRecords};
use polystep_study::tables::{AskedSet, Experiment, Need};

use super::job::Folders;
use super::job_queue::make_folder;
use super::job_runner::JobRunner;
use super::selection::Selection;
use crate::board::Board;
use crate::child::Ended;
use crate::failure::Result;
use crate::output::note;
use crate::table::table;
use crate::{interrupt, say};

/// The folder beside the runs in which models are tested again.
const AGAIN: &str = "again";

/// A model on this machine, and the sets to test it on.
#[derive(Clone, PartialEq, Debug)]
pub struct Test {
    /// Its name, which is its record's.
    pub name: String,
    /// The first experiment that asked for it.
    experiment: Experiment,
    weights: PathBuf,
    sets: Vec<AskedSet>,
}

/// The result of a model on one set: here, and in its record.
pub struct Retested {
    model: String,
    set: AskedSet,
    here: Proportion,
    record: Option<Proportion>,
}

impl Retested {
    /// Whether the number lies in the interval of the recorded one. Without a record there is nothing to disagree with.
    fn agrees(&self) -> bool {
        self.record.is_none_or(|record| (record.lo..=record.hi).contains(&self.here.percent))
    }
}

/// The tests that this machine can make of what the rows need, each model and set once.
fn tests(needs: &[Need], folders: &Folders, records: &RunRecords) -> Result<Vec<Test>> {
    let bundled = bundled(folders)?;
    let mut tests: BTreeMap<String, Test> = BTreeMap::new();
    for Need { experiment, set, .. } in needs {
        let own = experiment.name();
        let can = |(_, record): &&(String, RunRecord)| {
            let home = record.metrics.keys.at_home(&set.config, set.vars).map(|keys| Keys { also: Vec::new(), ..keys });
            let run = &record.metrics.run;
            let made_alike = run.recipe == Some(experiment.recipe.to_string()) && run.seed == Some(experiment.seed);
            made_alike && home.as_ref() == Some(&experiment.keys)
        };
        let known = |name: &String| records.get(name).is_some();
        let name = match folders.weights(&own).is_some() {
            true => Some(own).filter(known),
            false => bundled.iter().find(can).map(|(name, _)| name.clone()),
        };
        let Some((name, weights)) = name.and_then(|name| Some((name.clone(), folders.weights(&name)?))) else {
            continue;
        };
        let test = tests.entry(name.clone()).or_insert_with(|| Test {
            name,
            experiment: experiment.clone(),
            weights,
            sets: Vec::new(),
        });
        if test.sets.iter().all(|other| (&other.config, other.vars) != (&set.config, set.vars)) {
            test.sets.push(AskedSet { beam: false, ..set.clone() });
        }
    }
    Ok(tests.into_values().collect())
}

/// The bundled models, by name.
fn bundled(folders: &Folders) -> Result<Vec<(String, RunRecord)>> {
    let Some(models) = &folders.models else { return Ok(Vec::new()) };
    let records = RunRecords::read(models)?;
    Ok(records.iter().map(|(name, record)| (name.to_owned(), record.clone())).collect())
}

impl JobRunner<'_> {
    /// Tests the models of a selection again, or as many as there is time for. Models that this command has just evaluated
    /// (`fresh`) are left out. A model that cannot be tested is an error.
    pub fn retest(&self, selection: &Selection, fresh: &[String], records: &RunRecords) -> Result<Vec<Retested>> {
        let needs: Vec<Need> = selection.needs().map(|(_, need)| need).collect();
        let mut tests = tests(&needs, self.folders, records)?;
        tests.retain(|test| !fresh.contains(&test.name));
        if tests.is_empty() {
            note("no model of these rows is here to be tested again");
        }
        let board = Board::new();
        let mut answers = Vec::new();
        for test in &tests {
            let seconds = self.pace.evaluation(self.plans, &test.experiment) * test.sets.len() as f64;
            if !self.has_time(seconds) {
                board.say(&format!("{}: not tested again, time is up", test.name));
                continue;
            }
            let on: Vec<String> = test.sets.iter().map(|set| format!("{}:{}", set.config, set.vars)).collect();
            let run = self.folders.runs.join(AGAIN).join(&test.name);
            let campaign = self.folders.campaign(&format!("{AGAIN}/{}", test.name));
            make_folder(&campaign)?;
            let _claim = Lease::wait(&campaign.claim())?;
            prepare(&test.weights, &run)?;
            board.say(&format!("{}: tested again on {}", test.name, on.join(", ")));
            match self.eval(&test.name, &run, (&test.sets, false), proofs(records, test), self.slots[0], &board)? {
                Ended::Well => {}
                Ended::Failed(why) => {
                    let from = test.weights.display();
                    return Err(anyhow::anyhow!("{}, copied from {from}: {why}", test.name).into());
                }
                Ended::Stopped | Ended::Busy => {
                    interrupt::check()?;
                    continue;
                }
            }
            let measured = RunRecord::read(&run)?;
            for set in &test.sets {
                let exact = |record: &RunRecord| Some(record.evaluation(set)?.greedy.as_ref()?.full_proof.exact);
                let unanswered = || anyhow::anyhow!("{}: no answers on {}:{}", test.name, set.config, set.vars);
                let here = measured.as_ref().and_then(exact).ok_or_else(unanswered)?;
                let record = records.get(&test.name).and_then(exact);
                answers.push(Retested { model: test.name.clone(), set: set.clone(), here, record });
            }
        }
        Ok(answers)
    }
}

/// How many proofs to test: as many as the record has, so that the two can be compared.
fn proofs(records: &RunRecords, test: &Test) -> Option<u64> {
    let evaluation = |set| records.get(&test.name)?.evaluation(set)?.greedy.as_ref();
    test.sets.iter().filter_map(evaluation).map(|greedy| greedy.full_proof.exact.of).min()
}

/// Makes a run folder that holds the weights, but no earlier measurement.
fn prepare(weights: &Path, run: &Path) -> Result<()> {
    let (weights, run) = (RunFolder::new(weights), RunFolder::new(run));
    let old = run.metrics();
    if old.exists() {
        fs::remove_file(&old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    for file in [RunFolder::model, RunFolder::config] {
        let from = file(&weights);
        fs::copy(&from, file(&run)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}

/// Prints the comparison; to standard error if standard output has JSON. A number outside its record's interval is a failure.
pub fn report(answers: &[Retested], device: &str, json: bool) -> Result<()> {
    if answers.is_empty() {
        return Ok(());
    }
    let rows = answers.iter().map(|answer| {
        let record = |text: fn(Proportion) -> String| answer.record.map_or("—".into(), text);
        let verdict = match answer.record {
            None => "no record",
            Some(_) if answer.agrees() => "agrees",
            Some(_) => "DIFFERS",
        };
        [
            answer.model.clone(),
            format!("{}:{}", answer.set.config, answer.set.vars),
            format!("{:.2}", answer.here.percent),
            answer.here.of.to_string(),
            record(|p| format!("{:.2}", p.percent)),
            record(|p| p.of.to_string()),
            record(|p| format!("{:.1} to {:.1}", p.lo, p.hi)),
            verdict.into(),
        ]
    });
    let table = table(2, ["model", "tested on", "here", "n", "record", "n", "95 %", ""], rows);
    let text = format!("Tested again on {device}, full proofs in percent, beside the record:\n{table}");
    match json {
        true => note(&text),
        false => say!("\n{text}")?,
    }
    let differ: Vec<&str> = answers.iter().filter(|a| !a.agrees()).map(|a| a.model.as_str()).collect();
    match differ.as_slice() {
        [] => Ok(()),
        differ => Err(anyhow::anyhow!(
            "{} of {} numbers lie outside the interval of their record: {}",
            differ.len(),
            answers.len(),
            differ.join(", ")
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_study::tables::{PaperTable, Recipe};

    /// A row's own model comes first. A model of several spaces takes its place only where the format is the same.
    #[test]
    fn bundled_models_answer_for_the_rows_they_can() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = Folders { runs: "none".into(), results: root.join("results"), models: Some(root.join("models")) };
        let records = RunRecords::read(&folders.records()).expect("the records are whole");
        let found = |table: &str, recipe| -> Vec<(String, Vec<String>)> {
            let table = PaperTable::named(table).expect("a table");
            let needs: Vec<Need> = table.needs(recipe, 1).into_iter().map(|(_, need)| need).collect();
            let tests = super::tests(&needs, &folders, &records).expect("the bundled models are whole");
            let sets = |test: &Test| test.sets.iter().map(|set| format!("{}:{}", set.config, set.vars)).collect();
            tests.iter().map(|test| (test.name.clone(), sets(test))).collect()
        };
        let test = |name: &str, sets: &[&str]| (name.to_owned(), sets.iter().map(|set| set.to_string()).collect());
        assert_eq!(found("var1coarse", Recipe::Fast), [test("all-spaces", &["medium_degree:1"])]);
        assert_eq!(
            found("var1coarsefull", Recipe::Fast),
            [
                test("all-spaces", &["small_coeff:1", "medium_coeff:1", "medium_degree:1", "medium_terms:1"]),
                test("large_coeff-1-coarse-infix", &["large_coeff:1"]),
                test("no_backtrack-1-coarse-infix", &["no_backtrack:1"]),
            ]
        );
        assert_eq!(
            found("var1combo", Recipe::Fast),
            [test("large_coeff-1-coarse-infix-calculator", &["large_coeff:1"])]
        );
        assert!(found("var1coarsefull", Recipe::Paper).is_empty() && found("colide", Recipe::Fast).is_empty());
    }
}

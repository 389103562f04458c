//! What `sweep` prints and writes about its trials: the list, which process is at which trial, the ranking.

use std::io::Write as _;
use std::path::Path;

use polystep_learn::sweep::{RankedTrial, Sweep, Trial, TrialFolder, TrialState, csv, ranking};
use polystep_learn::train::RunSetup;
use polystep_record::folder::{lease_of, read_text};
use polystep_record::{CampaignFolder, Lease, LeaseHolder, utc};
use serde_json::{Map, Value, json};

use crate::failure::Result;
use crate::output::OutputStream;
use crate::{say, table};

/// `--list`: the trials; once the sweep has begun, also what became of them and which process is at work on them.
pub fn list(sweep: &Sweep, out: &Path, json: bool) -> Result<()> {
    let trials = sweep.trials();
    let mut rows = Vec::new();
    for trial in &trials {
        let folder = TrialFolder::new(out, trial);
        let failure = CampaignFolder::new(folder.path()).failure()?.map(|failure| failure.why);
        rows.push((trial, folder.state()?, folder.holder(), failure.or(folder.why()?)));
    }
    if json {
        let trials: Vec<Value> = rows
            .iter()
            .map(|(trial, state, holder, why)| {
                json!({"name": trial.name, "grid": grid(sweep, trial), "state": state, "at_work": holder, "why": why})
            })
            .collect();
        return say!("{:#}", json!({"combinations": sweep.combinations.len(), "trials": trials}));
    }
    let name = format!("number-{}", sweep.keys().join("-"));
    if rows.iter().all(|(_, state, holder, _)| state.is_none() && holder.is_none()) {
        say!("{name}")?;
        trials.iter().try_for_each(|trial| say!("{}", trial.name))?;
    } else {
        let cells = rows.iter().map(|(trial, state, holder, _)| {
            let state = match (state, holder) {
                (None | Some(TrialState::Stopped), Some(_)) => "at work",
                (None, None) => "to come",
                (Some(state), _) => state.name(),
            };
            let who = |part: fn(&LeaseHolder) -> String| holder.as_ref().map_or(String::new(), part);
            let job = who(|h| h.job.clone().unwrap_or_default());
            let process = who(|h| h.process.number().to_string());
            [trial.name.clone(), state.to_owned(), who(|h| utc(h.since)), who(|h| h.host.clone()), process, job]
        });
        say!("{}", table::table(6, [&name, "state", "since", "host", "process", "job"], cells))?;
    }
    for (trial, _, _, why) in &rows {
        why.iter().try_for_each(|why| say!("{}: {why}", trial.name))?;
    }
    say!("{} of {} combinations", trials.len(), sweep.combinations.len())
}

/// The trial's values under their keys.
fn grid(sweep: &Sweep, trial: &Trial) -> Map<String, Value> {
    let keys = sweep.keys().into_iter().map(str::to_owned);
    keys.zip(trial.values.iter().map(|value| json!(value))).collect()
}

/// Writes the ranking, if it is not written yet. Of two processes the second sees what the first has seen.
pub fn write_csv(sweep: &Sweep, out: &Path) -> Result<()> {
    let _lease = Lease::wait(&lease_of(out))?;
    let (path, rows) = (out.join("sweep.csv"), ranking(sweep, out)?);
    let (old, new) = (read_text(&path)?, csv(sweep, &rows));
    if old.as_ref() == Some(&new) || old.is_none() && rows.is_empty() {
        return Ok(());
    }
    let mut file = OutputStream::create(Some(&path))?;
    file.write_all(new.as_bytes())?;
    file.finish()
}

/// The best trial that can be tested.
fn best<'a, 'b>(rows: &'b [RankedTrial<'a>]) -> Option<&'b RankedTrial<'a>> {
    rows.iter().find(|row| row.state == TrialState::Finished)
}

/// Prints the ranking.
pub fn print(sweep: &Sweep, out: &Path, rows: &[RankedTrial<'_>]) -> Result<()> {
    let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.2}", 100.0 * s));
    let valid = rows.iter().map(|row| valid(row.trial)).collect::<Result<Vec<_>>>()?;
    let cells = rows.iter().zip(valid).enumerate().map(|(i, (row, (proofs, steps)))| {
        [
            (i + 1).to_string(),
            row.trial.name.clone(),
            row.state.name().into(),
            percent(row.best.map(|b| b.full_proof)),
            proofs.to_string(),
            percent(row.best.map(|b| b.stepwise)),
            steps.to_string(),
            row.best.map_or("-".into(), |b| format!("{:.4}", b.loss)),
            row.examples.to_string(),
            format!("{:.0}", row.seconds),
        ]
    });
    let name = format!("number-{}", sweep.keys().join("-"));
    let header = ["", &name, "state", "valid full proof", "n", "stepwise", "n", "loss", "examples", "seconds"];
    say!("{}", table::table(3, header, cells))?;
    if let Some(best) = best(rows) {
        say!("best on the validation set: {}", best.trial.name)?;
        say!("test it with: polystep eval {}", out.join(&best.trial.name).display())?;
    }
    Ok(())
}

/// Proofs and steps of the set that a trial is validated on.
fn valid(trial: &Trial) -> Result<(usize, usize)> {
    let set = RunSetup::validation_set(&trial.config)?;
    Ok((set.proofs, set.steps.len()))
}

/// The ranking as JSON.
pub fn as_json(sweep: &Sweep, out: &Path, rows: &[RankedTrial<'_>], runs: usize) -> Value {
    // To the digits of sweep.csv.
    let percent = |share: f64| (10_000.0 * share).round() / 100.0;
    let trials: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            json!({
                "rank": i + 1,
                "name": row.trial.name,
                "grid": grid(sweep, row.trial),
                "valid_full_proof": row.best.map(|b| percent(b.full_proof)),
                "valid_stepwise": row.best.map(|b| percent(b.stepwise)),
                "valid_loss": row.best.map(|b| b.loss),
                "examples": row.examples,
                "seconds": row.seconds,
                "state": row.state,
            })
        })
        .collect();
    json!({
        "out": out,
        "combinations": sweep.combinations.len(),
        "runs": runs,
        "best": best(rows).map(|row| &row.trial.name),
        "trials": trials,
    })
}

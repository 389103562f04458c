//! A trial's folder is an ordinary run folder. Its files say what became of the trial: `metrics.json` exists when it is
//! finished, `ended.json` when it was stopped for good. The learning curve is in the log.

use std::cmp::Ordering;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Trial;
use crate::LearnError;
use crate::train::Spent;
use crate::train::TrainingFolder;
use polystep_record::folder::{lease_of, read_text};
use polystep_record::{
    Claim, JsonLines, Lease, LeaseHolder, LeaseWatch, LogLine, RecordError, RunFolder, ValidLine, write_whole,
};

/// What became of a trial that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// It came to its end.
    Finished,
    /// It fell behind the others and was stopped.
    Hopeless,
    /// It was interrupted, and goes on when the sweep does.
    Stopped,
    /// It cannot go on, as with a loss that is not a number.
    Failed,
}

impl TrialState {
    /// Whether it is over: it does not continue with the sweep.
    pub fn over(self) -> bool {
        self != TrialState::Stopped
    }

    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            TrialState::Finished => "finished",
            TrialState::Hopeless => "hopeless",
            TrialState::Stopped => "stopped",
            TrialState::Failed => "failed",
        }
    }
}

/// The numbers of a validation. Full proofs decide first, then steps, then the loss. The loss decides early on, when no trial
/// has a step right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Share of proofs with every step right.
    pub full_proof: f64,
    /// Share of steps that are right.
    pub stepwise: f64,
    /// Mean loss over the target tokens.
    pub loss: f64,
}

impl Score {
    /// Worse is less.
    pub fn order(&self, other: &Score) -> Ordering {
        let proofs = self.full_proof.total_cmp(&other.full_proof);
        proofs.then(self.stepwise.total_cmp(&other.stepwise)).then(other.loss.total_cmp(&self.loss))
    }
}

/// The validations of a trial, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve(pub(super) Vec<(Spent, Score)>);

impl Curve {
    /// Adds a validation.
    pub fn push(&mut self, line: &ValidLine) {
        let ValidLine { step: steps, examples, seconds, full_proof, stepwise, loss, .. } = *line;
        let score = Score { full_proof, stepwise, loss: loss.unwrap_or(f64::INFINITY) };
        self.0.push((Spent { steps, examples, seconds }, score));
    }

    /// The best of all validations.
    pub fn best(&self) -> Option<Score> {
        self.best_within(|_| true)
    }

    /// The best of the validations whose number of examples the predicate accepts.
    pub fn best_within(&self, within: impl Fn(u64) -> bool) -> Option<Score> {
        self.0.iter().filter(|(spent, _)| within(spent.examples)).map(|(_, score)| *score).max_by(Score::order)
    }
}

/// A trial's folder.
#[derive(Clone, Debug)]
pub struct TrialFolder {
    folder: RunFolder,
}

#[derive(Serialize, Deserialize)]
struct Ended {
    state: TrialState,
    why: String,
}

impl TrialFolder {
    /// The folder of a trial in a sweep's folder, whether it exists or not.
    pub fn new(out: &Path, trial: &Trial) -> Self {
        TrialFolder { folder: RunFolder::new(out.join(&trial.name)) }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What became of the trial; none if it has not begun.
    pub fn state(&self) -> Result<Option<TrialState>, LearnError> {
        if self.folder.is_finished() {
            return Ok(Some(TrialState::Finished));
        }
        let begun = self.folder.is_begun().then_some(TrialState::Stopped);
        Ok(self.ended()?.map_or(begun, |ended| Some(ended.state)))
    }

    /// Tries to take the trial's lease.
    pub fn claim(&self, watch: &mut LeaseWatch) -> Result<Claim, LearnError> {
        std::fs::create_dir_all(self.path()).map_err(RecordError::file("make", self.path()))?;
        Ok(watch.claim(&lease_of(self.path()))?)
    }

    /// Who is at work on the trial; none if nobody is.
    pub fn holder(&self) -> Option<LeaseHolder> {
        LeaseHolder::read(&lease_of(self.path()))
    }

    /// Why the trial was given up; none if it was not.
    pub fn why(&self) -> Result<Option<String>, LearnError> {
        Ok(self.ended()?.map(|ended| ended.why))
    }

    fn ended(&self) -> Result<Option<Ended>, LearnError> {
        let path = self.folder.ended();
        let parse = |text: String| {
            let help = ": remove it to continue the trial".into();
            serde_json::from_str(&text).map_err(|e| LearnError::Damaged {
                path: path.clone(),
                why: e.to_string(),
                help,
            })
        };
        read_text(&path)?.map(parse).transpose()
    }

    /// The run folder, made if the trial has not begun. An error if it holds another run than the trial's.
    pub fn run(&self, lease: Lease, trial: &Trial) -> Result<TrainingFolder, LearnError> {
        if self.state()?.is_none() {
            TrainingFolder::mark_as_trial(self.path())?;
            return TrainingFolder::create_under(lease, self.path(), &trial.config);
        }
        let (folder, config) = TrainingFolder::resume_under(lease, self.path())?;
        if config != trial.config {
            let why = trial.difference(&config);
            let name = self.path().display();
            return Err(LearnError::Folder(format!("{name} was set up differently ({why}): choose another --out")));
        }
        Ok(folder)
    }

    /// Marks the trial as one that does not continue, with the reason.
    pub fn end(&self, state: TrialState, why: &str) -> Result<(), LearnError> {
        let text = serde_json::to_string(&Ended { state, why: why.into() });
        let text = text.map_err(|e| LearnError::Data(e.to_string()))?;
        Ok(write_whole(&self.folder.ended(), text + "\n")?)
    }

    /// Removes the checkpoints of a trial that is over. A sweep of large models would fill the disk with them.
    pub fn tidy(&self) -> Result<(), LearnError> {
        let path = self.folder.checkpoints();
        match std::fs::remove_dir_all(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(RecordError::file("remove", &path)(e).into()),
            _ => Ok(()),
        }
    }

    /// Its learning curve; empty before the first validation.
    pub fn curve(&self) -> Result<Curve, LearnError> {
        let mut curve = Curve::default();
        self.log()?.iter().filter_map(LogLine::valid).for_each(|line| curve.push(line));
        Ok(curve)
    }

    /// Examples and seconds spent, up to the last line of its log.
    pub fn spent(&self) -> Result<(u64, f64), LearnError> {
        let last = self.log()?.iter().rev().find_map(LogLine::progress);
        Ok(last.map_or((0, 0.0), |(_, examples, seconds)| (examples, seconds)))
    }

    /// The whole lines of its log. The last line of a trial that was killed may be cut. A damaged line before it is an error.
    fn log(&self) -> Result<Vec<LogLine>, LearnError> {
        let path = self.folder.log();
        let text = read_text(&path)?.unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        Ok(JsonLines::new(whole.as_bytes(), &path).collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_may_be_cut_at_its_end_and_nowhere_else() {
        let parent = tempfile::tempdir().unwrap();
        let folder = TrialFolder { folder: RunFolder::new(parent.path()) };
        let line = |step: u64| {
            format!(
                r#"{{"kind":"valid","step":{step},"examples":{},"full_proof":0.5,"stepwise":0.75,"loss":0.1,"best":true,"seconds":1.5}}"#,
                8 * step
            )
        };
        let write = |text: String| std::fs::write(folder.folder.log(), text).unwrap();
        assert_eq!(folder.spent().unwrap(), (0, 0.0));
        write(format!("{}\n{}\n{{\"kind\":\"val", line(10), line(20)));
        assert_eq!(folder.spent().unwrap(), (160, 1.5));
        write(format!("{}\n{{\"kind\":\"val\n{}\n", line(10), line(20)));
        let error = folder.curve().unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl line 2: "), "{error}");
    }
}

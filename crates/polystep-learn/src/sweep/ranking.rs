//! Which trial is best: the one with the best validation, full proofs first. `sweep.csv` holds the grid's keys and validation
//! scores, in percent as in every table of the project. It holds nothing of the test set.

use std::path::Path;

use super::trial::{Score, TrialFolder, TrialState};
use super::{MedianRule, Sweep, Trial};
use crate::LearnError;
use crate::train::Spent;

/// A trial that has begun.
#[derive(Clone, Debug)]
pub struct RankedTrial<'a> {
    /// Which one.
    pub trial: &'a Trial,
    /// Its best validation; none before the first.
    pub best: Option<Score>,
    /// Examples seen.
    pub examples: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// What became of it.
    pub state: TrialState,
}

/// Every trial that has begun, the best first; of equals, the earlier in the grid.
pub fn ranking<'a>(sweep: &'a Sweep, out: &Path) -> Result<Vec<RankedTrial<'a>>, LearnError> {
    let mut rows = Vec::new();
    for (trial, standing) in sweep.trials().into_iter().zip(MedianRule::new(sweep, out).standings(None)?) {
        let Some(state) = standing.state else { continue };
        let spent = standing.hopeless.map(|(Spent { examples, seconds, .. }, _)| (examples, seconds));
        let (examples, seconds) = spent.map_or_else(|| TrialFolder::new(out, trial).spent(), Ok)?;
        rows.push(RankedTrial { trial, best: standing.curve.best(), examples, seconds, state });
    }
    sort(&mut rows);
    Ok(rows)
}

fn sort(rows: &mut [RankedTrial<'_>]) {
    let nothing = Score { full_proof: -1.0, stepwise: -1.0, loss: f64::INFINITY };
    rows.sort_by(|a, b| {
        let [x, y] = [a, b].map(|row| row.best.unwrap_or(nothing));
        y.order(&x).then_with(|| a.trial.name.cmp(&b.trial.name))
    });
}

/// The ranking as a CSV.
pub fn csv(sweep: &Sweep, rows: &[RankedTrial<'_>]) -> String {
    let mut text = line([&["rank", "name"], &sweep.keys()[..], &SCORES].concat().into_iter().map(str::to_owned));
    for (i, row) in rows.iter().enumerate() {
        let percent = |share: fn(Score) -> f64| row.best.map_or(String::new(), |s| format!("{:.2}", 100.0 * share(s)));
        let own = [(i + 1).to_string(), row.trial.name.clone()];
        let scores = [
            percent(|s| s.full_proof),
            percent(|s| s.stepwise),
            row.best.map_or(String::new(), |s| format!("{:.4}", s.loss)),
            row.examples.to_string(),
            format!("{:.1}", row.seconds),
            row.state.name().to_owned(),
        ];
        text += &line(own.into_iter().chain(row.trial.values.iter().cloned()).chain(scores));
    }
    text
}

/// What follows the grid's keys.
const SCORES: [&str; 6] = ["valid_full_proof", "valid_stepwise", "valid_loss", "examples", "seconds", "state"];

fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| {
        if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    };
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_then_steps_then_loss_then_the_grids_order_and_no_test_column() {
        let sweep = Sweep::from_toml(
            "[grid]\n\"train.batch\" = [8, 16, 32, 64, 96, 128]\n\"data.granularity\" = [\"fac=term,sum=all\"]\n",
        )
        .unwrap();
        let score = |full_proof, stepwise, loss| Some(Score { full_proof, stepwise, loss });
        let mut rows: Vec<RankedTrial<'_>> = sweep
            .combinations
            .iter()
            .zip([
                score(0.1, 0.9, 0.1),
                None,
                score(0.5, 0.6, 0.4),
                score(0.5, 0.7, 0.5),
                score(0.5, 0.6, 0.3),
                score(0.1, 0.9, 0.1),
            ])
            .map(|(trial, best)| RankedTrial { trial, best, examples: 640, seconds: 1.25, state: TrialState::Finished })
            .collect();
        rows[1].state = TrialState::Failed;
        sort(&mut rows);
        assert_eq!(
            csv(&sweep, &rows),
            "rank,name,train.batch,data.granularity,valid_full_proof,valid_stepwise,valid_loss,examples,seconds,state\n\
             1,004-64-fac-term-sum-all,64,\"fac=term,sum=all\",50.00,70.00,0.5000,640,1.2,finished\n\
             2,005-96-fac-term-sum-all,96,\"fac=term,sum=all\",50.00,60.00,0.3000,640,1.2,finished\n\
             3,003-32-fac-term-sum-all,32,\"fac=term,sum=all\",50.00,60.00,0.4000,640,1.2,finished\n\
             4,001-8-fac-term-sum-all,8,\"fac=term,sum=all\",10.00,90.00,0.1000,640,1.2,finished\n\
             5,006-128-fac-term-sum-all,128,\"fac=term,sum=all\",10.00,90.00,0.1000,640,1.2,finished\n\
             6,002-16-fac-term-sum-all,16,\"fac=term,sum=all\",,,,640,1.2,failed\n"
        );
    }
}

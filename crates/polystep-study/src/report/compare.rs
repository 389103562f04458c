//! Several runs on one page: the table, what differs, which proofs each of them solves, and whether that is chance.

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::run::GradedRun;
use crate::compare::{RunPair, SeedGroup, Spread, differences, seed_groups};
use crate::number::{CountFormat, number};
use crate::plots::run::together;
use crate::run::StoredRun;
use crate::side_by_side::{Layer, LayeredTable, SideBySide, cells_of_run};

/// How many proofs are shown of those that only one run solves.
const EXAMPLES: usize = 12;

/// The section about several runs.
pub fn section(runs: &[StoredRun], graded: &[GradedRun]) -> Value {
    let configs: Vec<toml::Table> = runs.iter().filter_map(|r| r.config.clone()).collect();
    let complete = configs.len() == runs.len();
    let logs: Vec<_> = runs.iter().map(|r| (r.name.as_str(), r.log.as_slice())).collect();
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    for i in 0..runs.len() {
        for j in i + 1..runs.len() {
            let (first, second) = (&runs[i].name, &runs[j].name);
            let solved = graded[i].solved.as_ref().zip(graded[j].solved.as_ref());
            match solved.and_then(|(a, b)| RunPair::of(a, b)) {
                Some(pair) => pairs.push(pair_section(first, second, pair)),
                None => unpaired.push(format!("{first} and {second}")),
            }
        }
    }
    let measured: Vec<_> = runs.iter().map(|r| (r.config.as_ref(), r.metrics.as_ref())).collect();
    let group = |g: SeedGroup| {
        let names: Vec<String> = g.runs.iter().map(|&i| runs[i].name.clone()).collect();
        context! { names, rows => Serde(g.columns.iter().map(seed_row).collect::<Vec<_>>()) }
    };
    context! {
        names => runs.iter().map(|r| r.name.clone()).collect::<Vec<_>>(),
        table => Serde(table(runs)),
        chart => Serde(together(&logs)),
        differences => Serde(complete.then(|| differences(&configs))),
        configs_missing => !complete,
        pairs,
        unpaired,
        seeds => seed_groups(&measured).into_iter().map(group).collect::<Vec<_>>(),
    }
}

/// The name of a column, with mean, deviation and range over seeds.
fn seed_row(spread: &Spread) -> [String; 4] {
    let text = |value| number(value, spread.column.unit, CountFormat::Short);
    let column = format!("{} {}", spread.column.group, spread.column.heading);
    let range = format!("{}–{}", text(spread.min), text(spread.max));
    [column, text(spread.mean), text(spread.deviation), range]
}

/// Two runs.
fn pair_section(first: &str, second: &str, mut pair: RunPair) -> Value {
    let significant = pair.p_value < 0.05;
    let sentence = match (pair.table.first_only, pair.table.second_only) {
        (0, 0) => "They solve the same proofs.".to_owned(),
        (a, b) if a == b => "They solve equally many proofs.".to_owned(),
        (a, b) => {
            let (better, worse) = if a > b { (first, second) } else { (second, first) };
            let (more, less) = (a.max(b), a.min(b));
            let chance = if significant { "more than chance explains" } else { "which may be chance" };
            format!("{better} solves {more} proofs that {worse} does not. The other way round it is {less}: {chance}.")
        }
    };
    pair.only_first.truncate(EXAMPLES);
    pair.only_second.truncate(EXAMPLES);
    context! {
        first,
        second,
        of => pair.table.total(),
        p => if pair.p_value < 1e-4 { "p < 0.0001".to_owned() } else { format!("p = {:.4}", pair.p_value) },
        sentence,
        significant,
        ..Value::from(Serde(pair)),
    }
}

/// One row per run, on its own space if it was tested there. The paper's row follows the last of neighbouring runs that repeat
/// the same experiment.
fn table(runs: &[StoredRun]) -> Option<LayeredTable> {
    let rows = runs.iter().enumerate().filter_map(|(i, run)| {
        let metrics = run.metrics.as_ref()?;
        Some((run.name.clone(), cells_of_run(i, metrics, metrics.home()?.0)))
    });
    let table = SideBySide::of_runs(rows.collect(), |cell| !cell.column.is_error() && cell.ours.is_some());
    if table.rows.is_empty() {
        return None;
    }
    let mut layered = table.layered(&[Layer::Ours, Layer::Of, Layer::Paper], "–");
    let rows = layered.rows.clone();
    let repeated = |i: usize| rows[i].class == "paper" && rows.get(i + 2) == Some(&rows[i]);
    layered.rows = (0..rows.len()).filter(|i| !repeated(*i)).map(|i| rows[i].clone()).collect();
    Some(layered)
}

//! Several runs on one page: the table, what differs, who solves what, and whether that is chance.

use serde::Serialize;

use super::curves;
use super::numbers::{Number, Table, TableRow, groups, headings};
use super::page::Graded;
use super::{number, printed};
use crate::chart::Chart;
use crate::columns::{COLUMNS, Cell, Column, cells, pointer};
use crate::compare::{Difference, Example, Pair, differences, pair, seeds};
use crate::run::StoredRun;

/// Examples that are shown of what only one run solves.
const EXAMPLES: usize = 12;

/// The section.
#[derive(Serialize)]
pub struct Comparison {
    names: Vec<String>,
    table: Option<Table>,
    chart: Option<Chart>,
    differences: Vec<Difference>,
    configs_missing: bool,
    pairs: Vec<PairView>,
    unpaired: Vec<String>,
    seeds: Vec<SeedsView>,
}

/// Two runs.
#[derive(Serialize)]
struct PairView {
    first: String,
    second: String,
    of: u64,
    both: u64,
    neither: u64,
    first_only: u64,
    second_only: u64,
    p: String,
    sentence: String,
    significant: bool,
    only_first: Vec<Example>,
    only_second: Vec<Example>,
}

/// Several seeds.
#[derive(Serialize)]
struct SeedsView {
    names: Vec<String>,
    rows: Vec<SeedRow>,
}

#[derive(Serialize)]
struct SeedRow {
    column: String,
    mean: String,
    deviation: String,
    range: String,
}

impl Comparison {
    /// Prepares the section.
    pub fn of(runs: &[StoredRun], graded: &[Graded]) -> Comparison {
        let configs: Vec<toml::Table> = runs.iter().filter_map(|r| r.config.clone()).collect();
        let complete = configs.len() == runs.len();
        let logs: Vec<_> = runs.iter().map(|r| (r.name.clone(), r.log.as_slice())).collect();
        let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
        for i in 0..runs.len() {
            for j in i + 1..runs.len() {
                let found = graded[i].solved.as_ref().zip(graded[j].solved.as_ref()).and_then(|(a, b)| pair(a, b));
                match found {
                    Some(pair) => pairs.push(pair_view(&runs[i].name, &runs[j].name, pair)),
                    None => unpaired.push(format!("{} and {}", runs[i].name, runs[j].name)),
                }
            }
        }
        let measured: Vec<_> = runs.iter().map(|r| (r.config.as_ref(), r.metrics.as_ref())).collect();
        let group = |g: crate::compare::Seeds| SeedsView {
            names: g.runs.iter().map(|&i| runs[i].name.clone()).collect(),
            rows: g.columns.iter().map(seed_row).collect(),
        };
        Comparison {
            names: runs.iter().map(|r| r.name.clone()).collect(),
            table: table(runs),
            chart: curves::together(&logs),
            differences: if complete { differences(&configs) } else { Vec::new() },
            configs_missing: !complete,
            pairs,
            unpaired,
            seeds: seeds(&measured).into_iter().map(group).collect(),
        }
    }
}

fn seed_row(spread: &crate::compare::Spread) -> SeedRow {
    let text = |v| number(v, spread.column.unit);
    SeedRow {
        column: format!("{} {}", spread.column.group, spread.column.heading),
        mean: text(spread.mean),
        deviation: text(spread.deviation),
        range: format!("{}–{}", text(spread.min), text(spread.max)),
    }
}

fn pair_view(first: &str, second: &str, pair: Pair) -> PairView {
    let table = pair.table;
    let p = if pair.p_value < 1e-4 { "p < 0.0001".to_owned() } else { format!("p = {:.4}", pair.p_value) };
    let significant = pair.p_value < 0.05;
    let sentence = match (table.first_only, table.second_only) {
        (0, 0) => "They solve the same proofs.".to_owned(),
        (a, b) if a == b => "They solve equally many.".to_owned(),
        (a, b) => {
            let (better, worse) = if a > b { (first, second) } else { (second, first) };
            let (more, less) = (a.max(b), a.min(b));
            let chance = if significant { "more than chance explains" } else { "which may be chance" };
            format!("{better} solves {more} that {worse} does not, against {less} the other way round: {chance}.")
        }
    };
    let some = |mut examples: Vec<Example>| {
        examples.truncate(EXAMPLES);
        examples
    };
    PairView {
        first: first.to_owned(),
        second: second.to_owned(),
        of: table.total(),
        both: table.both,
        neither: table.neither,
        first_only: table.first_only,
        second_only: table.second_only,
        p,
        sentence,
        significant,
        only_first: some(pair.only_first),
        only_second: some(pair.only_second),
    }
}

/// One row per run, on its own space if it was tested there, and the paper's row under those that have one.
fn table(runs: &[StoredRun]) -> Option<Table> {
    let rows: Vec<(usize, Vec<Cell>)> = runs
        .iter()
        .enumerate()
        .filter_map(|(i, run)| {
            let metrics = run.metrics.as_ref()?;
            Some((i, cells(metrics, metrics.home()?.1)))
        })
        .collect();
    let has =
        |c: &Column| rows.iter().any(|(_, cells)| cells.iter().any(|cell| cell.column == *c && cell.ours.is_some()));
    let columns: Vec<Column> = COLUMNS.into_iter().filter(|c| !c.name.starts_with("err_") && has(c)).collect();
    if rows.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    let mut papers: Vec<Vec<Option<String>>> = Vec::new();
    for (i, cells) in &rows {
        let find = |c: &Column| cells.iter().find(|cell| cell.column == *c);
        let ours = |c: &Column| {
            let Some(value) = find(c).and_then(|cell| cell.ours) else {
                return Number::text("–");
            };
            let home = runs[*i].metrics.as_ref().and_then(|m| m.home());
            let metric = home.and_then(|(at, e)| Some(format!("{i}/evaluations/{at}{}", pointer(e, c.name)?)));
            let small = find(c).and_then(|cell| cell.interval).map(|(lo, hi)| format!("{lo:.1}–{hi:.1}"));
            Number { metric, small, ..Number::text(number(value, c.unit)) }
        };
        let paper: Vec<Option<String>> = columns.iter().map(|c| find(c).and_then(printed)).collect();
        out.push(TableRow { label: runs[*i].name.clone(), class: "ours", cells: columns.iter().map(ours).collect() });
        papers.push(paper);
    }
    // The paper's row stands under the last of neighbouring runs that repeat the same experiment.
    let known = |paper: &[Option<String>]| paper.iter().any(Option::is_some);
    for i in (0..papers.len()).rev() {
        if known(&papers[i]) && papers.get(i + 1) != Some(&papers[i]) {
            let cells = papers[i].iter().map(|t| Number::text(t.clone().unwrap_or_default())).collect();
            out.insert(i + 1, TableRow { label: "paper".to_owned(), class: "paper", cells });
        }
    }
    Some(Table { groups: groups(&columns), headings: headings(&columns), rows: out })
}

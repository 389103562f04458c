//! The numbers of the results page.

mod sums;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polystep_core::StepKind;
use polystep_core::space::KEYS;
use polystep_record::paper::lookup;
use polystep_record::{Keys, Proportion};
use polystep_study::columns::Quantity;
use polystep_study::ledger::Ledger;
use polystep_study::metrics::Evaluation;
use polystep_study::paired::Paired;
use polystep_study::records::{RunRecord, RunRecords};
use polystep_study::tables::{Kind, PaperRow, PaperTable, Recipe, TableView};
use serde_json::{Value, json};

/// The tables whose errors, sure answers and recursive proofs are added up.
const PLAIN: [&str; 3] = ["var1coarsefull", "var2coarse", "results2varfine"];

pub struct Numbers {
    records: RunRecords,
    tables: Vec<PaperTable>,
    views: BTreeMap<&'static str, TableView>,
}

/// Two formats, over pairs of runs that differ in nothing else.
pub struct Comparison {
    names: [&'static str; 2],
    ours: Paired,
    paper: Option<Paired>,
}

impl Comparison {
    pub fn verdict(&self) -> String {
        let Paired { first_only: ahead, second_only: behind, .. } = self.ours;
        let p = self.ours.p_value();
        let [first, second] = self.names;
        match p < 0.05 {
            false => format!("it is not decided ({})", p_is(p)),
            true => {
                let (winner, wins) = if ahead > behind { (first, ahead) } else { (second, behind) };
                format!("{winner} ahead in {wins} of {} pairs that are not level ({})", ahead + behind, p_is(p))
            }
        }
    }
}

fn p_is(p: f64) -> String {
    if p < 0.0005 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

fn probability(p: f64) -> String {
    if p < 0.0005 { "< 0.001".into() } else { format!("{p:.3}") }
}

fn one(x: f64) -> String {
    format!("{x:.1}")
}

fn whole(n: u64) -> String {
    let digits = n.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap());
    groups.collect::<Vec<_>>().join(",")
}

fn millions(n: u64) -> String {
    format!("{:.1}M", n as f64 / 1e6)
}

fn full(evaluation: &Evaluation) -> Proportion {
    evaluation.greedy.as_ref().unwrap().full_proof.exact
}

fn shown(p: Proportion) -> Value {
    json!({ "full": one(p.percent), "ci": format!("{:.1} to {:.1}", p.lo, p.hi) })
}

impl Numbers {
    pub fn read(root: &Path) -> Numbers {
        let records = RunRecords::read(&root.join("results/runs")).unwrap();
        let tables = PaperTable::all();
        let view = |table: &PaperTable| {
            let rows: Vec<&PaperRow> = table.rows.iter().collect();
            match table.kind() {
                Kind::Sizes => {
                    let ledger = Ledger::read(&root.join("results/colide.csv"), table).unwrap();
                    TableView::of_sizes(table, &rows, ledger.as_ref())
                }
                _ => TableView::of(table, &rows, Recipe::Fast, 1, &records),
            }
        };
        let views = tables.iter().map(|table| (table.name, view(table))).collect();
        Numbers { records, tables, views }
    }

    /// What the template says in words.
    pub fn claims(&self) {
        for name in PLAIN {
            let range = self.range(name);
            assert_eq!(
                (&range["below"], &range["one_shot_below"]),
                (&json!(0), &json!(0)),
                "{name}: all rows are above"
            );
        }
        let [recipe, paper] = ["large_coeff-1-coarse-infix-paper", "large_coeff-1-coarse-infix"];
        let found = full(self.home_of(recipe));
        let printed: f64 = self.run(paper)["paper"].as_str().unwrap().parse().unwrap();
        assert!(found.lo <= printed && printed <= found.hi, "full proofs agree");
        for run in ["large_coeff-1-coarse-infix-calculator", "no_backtrack-1-fine-infix-calculator"] {
            assert_eq!(full(self.home_of(run)).count, 1000, "{run}: all proofs");
        }
        for kind in ["arithmetic-add4", "arithmetic-add9", "arithmetic-mul4", "arithmetic-mul9"] {
            let right = full(self.home_of(kind)).percent;
            assert!(if kind.contains("add") { right >= 99.0 } else { right < 1.0 }, "{kind}");
        }
        for vars in [1, 2] {
            for config in KEYS {
                let ours = full(self.evaluation("all-spaces", config, vars)).percent;
                assert!(ours > self.printed_full(config, vars).parse().unwrap(), "the universal model on {config}");
            }
        }
        assert!(self.comparison("second").ours.second_only == 0 && self.comparison("second").ours.p_value() < 0.05);
        let one_seed = |view: &TableView| view.rows.iter().all(|row| row.seeds.len() <= 1);
        assert!(self.views.values().all(one_seed), "the page says that there is one seed");
        let ours = self.records.iter().flat_map(|(_, record)| &record.metrics.evaluations);
        assert!(ours.filter_map(|e| e.greedy.as_ref()).all(|g| g.full_proof.exact.of == 1000), "n");
        for (config, smaller) in [("large_coeff", "small_coeff"), ("large_coeff", "medium_coeff")] {
            let run = format!("{config}-1-coarse-prefix");
            assert!(full(self.evaluation(&run, smaller, 1)).percent > full(self.home_of(&run)).percent);
        }
        let rows = self.views["curriculum-var1coarse"].rows.iter();
        assert!(rows.clone().all(|row| row.seeds.is_empty()), "the page says that no curriculum is in the table yet");
        assert_eq!(self.views["annotate1var"].rows.iter().filter(|row| !row.seeds.is_empty()).count(), 1, "one pair");
    }

    pub fn table(&self, name: &str) -> &PaperTable {
        self.tables.iter().find(|table| table.name == name).unwrap()
    }

    fn record(&self, run: &str) -> &RunRecord {
        self.records.get(run).unwrap_or_else(|| panic!("{run} has no record"))
    }

    fn home_of(&self, run: &str) -> &Evaluation {
        self.record(run).metrics.home().unwrap().1
    }

    fn evaluation(&self, run: &str, config: &str, vars: u32) -> &Evaluation {
        let found = self.record(run).metrics.evaluations.iter().find(|e| e.config == config && e.vars == vars);
        found.unwrap_or_else(|| panic!("{run} was not tested on {config}:{vars}"))
    }

    /// The one row of a table with these keys, `key=value,…`.
    fn row_of(&self, table: &str, keys: &str) -> &PaperRow {
        let has =
            |row: &&PaperRow| keys.split(',').all(|k| k.split_once('=').is_some_and(|(k, v)| row.text(k) == Some(v)));
        let found: Vec<_> = self.table(table).rows.iter().filter(has).collect();
        assert_eq!(found.len(), 1, "{table} {keys}");
        found[0]
    }

    pub fn cell(&self, table: &str, keys: &str, column: &str) -> &'static str {
        self.row_of(table, keys).text(column).unwrap()
    }

    fn value(&self, table: &str, keys: &str, column: &str) -> f64 {
        self.cell(table, keys, column).parse().unwrap()
    }

    pub fn run(&self, run: &str) -> Value {
        let paper = self.paper(&self.record(run).metrics.keys).map(one);
        let mut value = shown(full(self.home_of(run)));
        value["paper"] = json!(paper.unwrap_or_else(|| "-".into()));
        value
    }

    pub fn on(&self, run: &str, config: &str, vars: u32) -> Value {
        shown(full(self.evaluation(run, config, vars)))
    }

    fn paper(&self, keys: &Keys) -> Option<f64> {
        let wanted = ["full_proof_acc", "endpoint_acc"];
        let column = usize::from(keys.is(polystep_record::PaperSetting::Endpoint));
        lookup(keys).iter().find(|p| p.column == wanted[column])?.text.parse().ok()
    }

    fn keys(config: &str, vars: u32, format: &str) -> Keys {
        let (steps, notation) = format.split_once('-').unwrap();
        let setting = if steps == "endpoint" { "endpoint" } else { "plain" };
        let (granularity, notation) = (steps.parse().ok(), notation.parse().ok());
        Keys { vars, config: config.into(), setting: setting.parse().ok(), granularity, notation, ..Keys::default() }
    }

    pub fn printed_full(&self, config: &str, vars: u32) -> String {
        one(self.paper(&Numbers::keys(config, vars, "coarse-infix")).unwrap())
    }

    /// Our number and the paper's.
    pub fn both(&self, config: &str, vars: u32, format: &str) -> String {
        let run = format!("{config}-{vars}-{format}");
        let ours = self.records.get(&run).map(|_| format!("**{}**", one(full(self.home_of(&run)).percent)));
        let paper = self.paper(&Numbers::keys(config, vars, format)).unwrap();
        format!("{} {}", ours.unwrap_or_else(|| "missing".into()), one(paper))
    }

    pub fn examples(&self, run: &str) -> String {
        millions(self.record(run).metrics.run.examples.unwrap())
    }

    pub fn parameters(&self, run: &str) -> String {
        format!("{:.2}M", self.record(run).metrics.run.parameters.unwrap() as f64 / 1e6)
    }

    pub fn beam(&self, run: &str, what: &str, lp1: bool) -> String {
        let evaluation = self.home_of(run);
        let beam = if lp1 { &evaluation.beam_lp1 } else { &evaluation.beam }.as_ref().unwrap();
        let sure = || beam.calibration.as_ref().unwrap().sure;
        one(match what {
            "top1" => beam.top1.exact.percent,
            "any5" => beam.any5.exact.percent,
            "sure" => sure().sure_rate.unwrap().percent,
            "recall" => sure().recall.unwrap().percent,
            other => panic!("{other}"),
        })
    }

    /// How a table's rows stand against the paper's.
    pub fn range(&self, table: &str) -> Value {
        let view = &self.views[table];
        let (mut gaps, mut early, mut early_below, mut one_shot) = (Vec::new(), 0, 0, BTreeMap::new());
        for row in view.rows.iter().filter(|row| !row.seeds.is_empty()) {
            for cell in &row.cells {
                let Some(gap) = cell.difference() else { continue };
                match cell.column.quantity {
                    Quantity::FullProof => {
                        gaps.push(gap);
                        if let Some(at) = &cell.at_paper_examples {
                            early += 1;
                            early_below += usize::from(at.full_proof < cell.paper.as_ref().unwrap().value);
                        }
                    }
                    Quantity::EndpointAccuracy => {
                        let key = |name| row.keys.iter().find(|(key, _)| key.to_string() == name).unwrap().1;
                        one_shot.insert((key("config"), key("notation")), gap);
                    }
                    _ => {}
                }
            }
        }
        let measured = || {
            let rows = view.rows.iter().filter(|row| !row.seeds.is_empty()).flat_map(|row| &row.cells);
            let counts = [Quantity::Examples, Quantity::EndpointExamples];
            rows.filter(move |cell| cell.difference().is_some() && !counts.contains(&cell.column.quantity))
        };
        let extreme = |pick: fn(f64, f64) -> f64| gaps.iter().copied().reduce(pick).map_or("-".into(), one);
        json!({
            "rows": gaps.len(), "smallest": extreme(f64::min), "largest": extreme(f64::max),
            "above": gaps.iter().filter(|gap| **gap > 0.0).count(), "below": gaps.iter().filter(|gap| **gap < 0.0).count(),
            "one_shot": one_shot.len(), "one_shot_below": one_shot.values().filter(|gap| **gap < 0.0).count(),
            "cells": measured().count(), "lower": measured().filter(|cell| cell.is_lower()).count(),
            "early": early, "early_below": early_below,
        })
    }

    pub fn tables(&self) -> Vec<Value> {
        let row = |table: &PaperTable| {
            let measured = self.views[table.name].rows.iter().filter(|row| !row.seeds.is_empty()).count();
            let range = self.range(table.name);
            let dash = |key: &str| if table.kind() == Kind::Sizes { json!("-") } else { range[key].clone() };
            json!({
                "name": table.name, "rows": table.rows.len(), "measured": measured, "above": dash("above"), "below": dash("below"),
            })
        };
        self.tables.iter().map(row).collect()
    }

    pub fn total(&self) -> Value {
        let sum = |key: &str| self.tables().iter().map(|table| table[key].as_u64().unwrap()).sum::<u64>();
        let (rows, measured) = (sum("rows"), sum("measured"));
        json!({ "tables": self.tables.len(), "rows": rows, "measured": measured, "missing": rows - measured })
    }

    /// Full proofs of every model on its own space, each model once.
    pub fn home(&self) -> Value {
        let (mut gaps, mut known) = (Vec::new(), BTreeSet::new());
        for table in self.tables.iter().filter(|table| table.kind() == Kind::Accuracy) {
            for (row, view) in table.rows.iter().zip(&self.views[table.name].rows).filter(|(_, v)| !v.seeds.is_empty())
            {
                let cell = view.cells.iter().find(|cell| cell.column.quantity == Quantity::FullProof);
                if known.insert(row.needs(Recipe::Fast, 1)[0].experiment.name()) {
                    gaps.extend(cell.and_then(|cell| cell.difference()));
                }
            }
        }
        let above: Vec<f64> = gaps.iter().copied().filter(|gap| *gap > 0.0).collect();
        let extreme = |pick: fn(f64, f64) -> f64| above.iter().copied().reduce(pick).map(one);
        json!({
            "measured": gaps.len(), "above": above.len(), "smallest": extreme(f64::min), "largest": extreme(f64::max),
        })
    }

    fn compared(&self, names: [&'static str; 2], pairs: &[(String, String)]) -> Comparison {
        let order = |a: f64, b: f64| (a > b, b > a);
        let run = |name: &str| match name.strip_prefix("all-spaces on ") {
            Some(set) => {
                let (config, vars) = set.split_once(':').unwrap();
                Some(full(self.evaluation("all-spaces", config, vars.parse().unwrap())).percent)
            }
            None => self.records.get(name).map(|_| full(self.home_of(name)).percent),
        };
        let paper = |name: &str| {
            let (config, rest) = name.split_once('-')?;
            let (vars, format) = rest.split_once('-')?;
            self.paper(&Numbers::keys(config, vars.parse().ok()?, format))
        };
        let both =
            |of: &dyn Fn(&str) -> Option<f64>| pairs.iter().filter_map(|(a, b)| Some(order(of(a)?, of(b)?))).collect();
        let (ours, theirs): (Vec<_>, Vec<_>) = (both(&run), both(&paper));
        let theirs = Some(theirs).filter(|pairs| !pairs.is_empty()).map(Paired::count);
        Comparison { names, ours: Paired::count(ours), paper: theirs }
    }

    pub fn comparison(&self, name: &str) -> Comparison {
        let over = |formats: &[(&str, &str)], vars: [u32; 2]| {
            let pair = |config: &str, (a, b): &(&str, &str)| {
                (format!("{config}-{}-{a}", vars[0]), format!("{config}-{}-{b}", vars[1]))
            };
            KEYS.iter().flat_map(|config| formats.iter().map(move |pair_of| pair(config, pair_of))).collect::<Vec<_>>()
        };
        let fine = [("fine-infix", "coarse-infix"), ("fine-prefix", "coarse-prefix")];
        let notation = [("coarse-infix", "coarse-prefix"), ("fine-infix", "fine-prefix")];
        let steps = [("coarse-infix", "endpoint-infix"), ("coarse-prefix", "endpoint-prefix")];
        let formats = ["coarse-infix", "coarse-prefix", "fine-infix", "fine-prefix"].map(|f| (f, f));
        let universal = |vars: u32| {
            KEYS.map(|c| (format!("all-spaces on {c}:{vars}"), format!("{c}-{vars}-coarse-infix"))).to_vec()
        };
        let (names, pairs) = match name {
            "fine1" => (["fine steps are", "coarse steps are"], over(&fine, [1, 1])),
            "fine2" => (["fine steps are", "coarse steps are"], over(&fine, [2, 2])),
            "notation1" => (["infix is", "prefix is"], over(&notation, [1, 1])),
            "notation2" => (["infix is", "prefix is"], over(&notation, [2, 2])),
            "steps1" => (["steps are", "one shot is"], over(&steps, [1, 1])),
            "steps2" => (["steps are", "one shot is"], over(&steps, [2, 2])),
            "second" => (["one variable is", "two variables are"], over(&formats, [1, 2])),
            "universal1" => (["the universal model is", "the others are"], universal(1)),
            "universal2" => (["the universal model is", "the others are"], universal(2)),
            other => panic!("{other}"),
        };
        self.compared(names, &pairs)
    }

    pub fn comparisons(&self) -> Vec<Value> {
        let rows = [
            ("fine1", "fine, coarse; one variable"),
            ("fine2", "fine, coarse; two variables"),
            ("notation1", "infix, prefix; one variable"),
            ("notation2", "infix, prefix; two variables"),
            ("steps1", "coarse steps, one shot; one variable"),
            ("steps2", "coarse steps, one shot; two variables"),
            ("second", "one variable, two variables"),
            ("universal1", "universal model, model of one space; one variable"),
            ("universal2", "universal model, model of one space; two variables"),
        ];
        let row = |(name, what): (&str, &str)| {
            let Comparison { ours, paper, .. } = self.comparison(name);
            let theirs = |of: &dyn Fn(&Paired) -> String| paper.as_ref().map_or("-".into(), of);
            json!({
                "what": what, "n": ours.total(), "ahead": ours.first_only, "behind": ours.second_only, "p": probability(ours.p_value()),
                "paper_ahead": theirs(&|p| p.first_only.to_string()), "paper_behind": theirs(&|p| p.second_only.to_string()),
                "paper_p": theirs(&|p| probability(p.p_value())),
            })
        };
        rows.into_iter().map(row).collect()
    }
}

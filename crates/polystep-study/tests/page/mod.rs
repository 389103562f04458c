//! The results page: a template, and the functions that it calls.

pub mod numbers;

use std::sync::Arc;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context};

use numbers::Numbers;

/// The page.
pub fn render(template: &str, numbers: Numbers) -> String {
    let numbers = Arc::new(numbers);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    macro_rules! function {
        ($name:literal, |$numbers:ident $(, $argument:ident: $type:ty)*| $body:expr) => {
            let shared = Arc::clone(&numbers);
            environment.add_function($name, move |$($argument: $type),*| -> Value {
                let $numbers = &shared;
                Value::from(Serde($body))
            });
        };
    }
    function!("both", |n, config: String, vars: u32, format: String| n.both(&config, vars, &format));
    function!("row", |n, run: String| n.run(&run));
    function!("on", |n, run: String, config: String, vars: u32| n.on(&run, &config, vars));
    function!("examples", |n, run: String| n.examples(&run));
    function!("parameters", |n, run: String| n.parameters(&run));
    function!("range", |n, table: String| n.range(&table));
    function!("beam", |n, run: String, what: String| n.beam(&run, &what, false));
    function!("lp1", |n, run: String, what: String| n.beam(&run, &what, true));
    function!("printed", |n, table: String, row: String, column: String| n.cell(&table, &row, &column).to_owned());
    function!("printed_full", |n, config: String, vars: u32| n.printed_full(&config, vars));
    function!("verdict", |n, name: String| n.comparison(&name).verdict());
    function!("tables_of", |n, table: String| n.table(&table).rows.len());
    let shown = context! {
        n => 1000,
        configs => polystep_core::space::KEYS,
        total => Serde(numbers.total()),
        home => Serde(numbers.home()),
        tables => Serde(numbers.tables()),
        comparisons => Serde(numbers.comparisons()),
        errors => Serde(numbers.errors()),
        sure => Serde(numbers.sure()),
        alone => Serde(numbers.alone()),
        ood => Serde(numbers.ood()),
        ood_below => numbers.ood_below().0,
        ood_symbolic => numbers.ood_below().1,
        two => Serde(numbers.two_to_one()),
        misprint => Serde(numbers.misprints()),
    };
    let page = environment.render_str(template, shown).unwrap_or_else(|e| panic!("{e:#}"));
    // A loop leaves blanks at the end of a table's line.
    page.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

use std::collections::BTreeSet;

use super::*;
use crate::side_by_side::Cell;

fn names(needs: &[Need]) -> Vec<String> {
    needs.iter().map(|n| n.experiment.name()).collect()
}

fn row(table: &str, number: usize) -> PaperRow {
    PaperTable::named(table).unwrap().rows[number - 1].clone()
}

fn overrides(experiment: &Experiment) -> Vec<String> {
    experiment.overrides().into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

#[test]
fn there_are_17_tables() {
    let tables = PaperTable::all();
    assert_eq!(tables.len(), 17);
    assert_eq!(tables.iter().map(|t| t.rows.len()).sum::<usize>(), 246);
    let kinds = |kind| tables.iter().filter(|t| t.kind() == kind).count();
    assert_eq!((kinds(Kind::Sizes), kinds(Kind::Accuracy), kinds(Kind::Ood)), (1, 13, 3));
    assert!(PaperTable::named("var3coarse").is_none());
}

#[test]
fn a_run_has_one_name() {
    let needs = |table, number, recipe, seed| names(&row(table, number).needs(recipe, seed));
    let fast = |table, number| needs(table, number, Recipe::Fast, 1);
    assert_eq!(fast("var1coarsefull", 9), ["large_coeff-1-coarse-infix", "large_coeff-1-endpoint-infix"]);
    assert_eq!(fast("annotate2var", 1), ["small_coeff-2-fine-infix-annotated", "small_coeff-2-endpoint-infix"]);
    assert_eq!(fast("var1combo", 1), ["large_coeff-1-fine-infix-tuned"]);
    assert_eq!(fast("var1combo", 2), ["large_coeff-1-coarse-infix-calculator"]);
    assert_eq!(fast("curriculum-var1coarse", 13), ["no_backtrack-1-coarse-infix-C2"]);
    assert_eq!(fast("OODcoeff", 6), ["medium_coeff-1-coarse-prefix"]);
    assert_eq!(needs("var1error", 9, Recipe::Paper, 3), ["large_coeff-1-coarse-infix-paper-seed3"]);
    assert!(fast("colide", 1).is_empty());
}

/// All runs of all tables, in either recipe, have different names; the paper's tables need 136 of them.
#[test]
fn names_tell_runs_apart() {
    let mut seen = BTreeSet::new();
    for recipe in [Recipe::Fast, Recipe::Paper] {
        let mut runs: Vec<Experiment> = Vec::new();
        for need in PaperTable::all().iter().flat_map(|t| t.needs(recipe, 1)).map(|(_, need)| need) {
            if !runs.contains(&need.experiment) {
                runs.push(need.experiment);
            }
        }
        assert_eq!(
            runs.len(),
            24 + 12 + 24 + 12 + 24 + 24 + 16,
            "plain and one-shot for 1 and 2 variables, annotated, curricula, tuned"
        );
        assert!(runs.iter().all(|run| seen.insert(run.name())), "two runs have one name");
    }
}

#[test]
fn a_model_is_asked_everything_at_once() {
    let asked = |table, number| -> Vec<String> {
        let experiment = row(table, number).needs(Recipe::Fast, 1).remove(0).experiment;
        let set = |s: AskedSet| format!("{}:{}{}", s.config, s.vars, if s.beam { " beam" } else { "" });
        test_sets(&PaperTable::all(), &experiment).into_iter().map(set).collect()
    };
    let medium = ["medium_coeff:1 beam", "small_coeff:1", "large_coeff:1", "medium_degree:1", "medium_terms:1"];
    assert_eq!(asked("var1coarsefull", 7), medium);
    assert_eq!(asked("OODterm", 2), medium, "whichever table asks first");
    assert_eq!(asked("var1coarsefull", 5), ["medium_coeff:1 beam"]);
    assert_eq!(asked("var2coarse", 2), ["small_coeff:2 beam", "small_coeff:1"]);
}

#[test]
fn tuned_rows_have_the_papers_hyper_parameters() {
    let experiment = |table, number, recipe| row(table, number).needs(recipe, 1).remove(0).experiment;
    let tuned = overrides(&experiment("var1combo", 3, Recipe::Fast));
    for wanted in ["model.size=\"L\"", "model.d=512", "model.dropout=0.0", "train.batch=64", "data.setting=\"plain\""] {
        assert!(tuned.iter().any(|o| o == wanted), "{wanted} is not in {tuned:?}");
    }
    assert_eq!(tuned, overrides(&experiment("var1comboerrors", 6, Recipe::Fast)), "the same run in both tables");
    let calculator = |recipe| experiment("var1combo", 2, recipe).hyper();
    assert_eq!(calculator(Recipe::Fast), None);
    let wanted = [("model.size", "\"L\""), ("model.d", "512"), ("model.dropout", "0.5"), ("train.batch", "64")];
    assert_eq!(calculator(Recipe::Paper), Some(wanted.map(|(key, value)| (key, value.to_owned()))));
    assert_eq!(experiment("var1coarsefull", 1, Recipe::Paper).hyper(), None);
}

#[test]
fn the_papers_recipe_has_the_papers_number_of_examples() {
    let examples = |table, number, recipe, endpoint: bool| {
        let need = row(table, number).needs(recipe, 1).into_iter().find(|n| n.endpoint == endpoint).unwrap();
        overrides(&need.experiment).into_iter().find(|o| o.starts_with("train.examples"))
    };
    assert_eq!(examples("var1coarsefull", 9, Recipe::Paper, false).as_deref(), Some("train.examples=3400000"));
    assert_eq!(examples("var1coarsefull", 9, Recipe::Paper, true).as_deref(), Some("train.examples=4800000"));
    assert_eq!(examples("var1combo", 1, Recipe::Paper, false).as_deref(), Some("train.examples=3600000"));
    assert_eq!(examples("curriculum-var1coarse", 1, Recipe::Paper, false).as_deref(), Some("train.examples=2800000"));
    assert_eq!(examples("var1coarsefull", 9, Recipe::Fast, false), None);
}

/// PaperRow 9 of var1coarsefull: precision 99.98, which the paper has rounded, F1 0.97, and a number of examples.
#[test]
fn lower_is_what_is_shown_lower() {
    let row = row("var1coarsefull", 9);
    let lower = |name: &str, ours: f64| {
        let table = PaperTable::named("var1coarsefull").unwrap();
        let column = table.columns().find(|c| c.name == name).unwrap();
        Cell { ours: Some(ours), ..Cell::printed(column, row.printed(&table, column)) }.is_lower()
    };
    assert!(!lower("precision", 99.976) && lower("precision", 99.974) && !lower("precision", 100.0));
    assert!(!lower("f1", 0.9696) && lower("f1", 0.9694));
    assert!(!lower("train_examples", 1.0), "fewer examples are not worse");
}

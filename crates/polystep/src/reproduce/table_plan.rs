//! The plan of a table, `reproduce/TABLE.toml`: its place in the order, what its runs change in their recipe, and what a run costs.
//!
//! The plans are compiled in, so that the binary needs no file. `--plan FILE` replaces one of them. A plan without `[cost]` trains
//! nothing: its table uses models that other tables train. So each run has one owner, the plan that trains it, and one
//! configuration.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use polystep_learn::config::RunConfig;
use polystep_record::PaperSetting;
use polystep_study::compare::flattened;
use polystep_study::tables::{Experiment, PaperTable, Recipe};
use serde::Deserialize;

use super::own_table::{OwnKeys, OwnRun};
use crate::failure::{Result, bad_input, bad_toml};
use crate::run_config::read;
use crate::slurm::SlurmTable;

macro_rules! plans {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../reproduce/", $name, ".toml")))),+]
    };
}

/// The plans of the repository, by table.
const PLANS: [(&str, &str); 17] = polystep_study::for_tables!(plans);

/// A table's plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablePlan {
    /// Which table.
    pub table: TableKeys,
    /// Keys of a run's TOML that its runs of recipe `fast` change.
    #[serde(default)]
    pub fast: toml::Table,
    /// The same for recipe `paper`.
    #[serde(default)]
    pub paper: toml::Table,
    /// What is different for its one-shot models in recipe `fast`.
    #[serde(default)]
    pub endpoint: EndpointKeys,
    /// How the models are tested.
    #[serde(default)]
    pub evaluation: EvaluationKeys,
    /// How the sizes of spaces are estimated; for `colide` only.
    pub sizes: Option<SizesKeys>,
    /// What a run costs; none if the table trains no model itself.
    pub cost: Option<RunCost>,
    /// What to expect; none for a table of one's own.
    pub expected: Option<Expected>,
    /// What a Slurm task asks for.
    pub slurm: Option<SlurmTable>,
    /// The runs and test sets of a table of one's own.
    pub own: Option<OwnKeys>,
}

/// `[table]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableKeys {
    /// Its name.
    pub name: String,
    /// Its place in `--all`.
    #[serde(default = "last")]
    pub order: u32,
}

fn last() -> u32 {
    u32::MAX
}

/// `[endpoint]`
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointKeys {
    /// Train on as many pairs as the paper's model had, instead of the recipe's number.
    #[serde(default)]
    pub papers_pairs: bool,
}

/// `[evaluation]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationKeys {
    /// How many proofs of each test set are used, for a quick trial; all if not given.
    pub proofs: Option<u64>,
}

/// `[sizes]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizesKeys {
    /// Polynomials per draw.
    pub draws: u64,
}

/// `[cost]`, in seconds on one NVIDIA H200 (sizes of spaces: on 16 cores).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCost {
    /// Training a run, recipe fast.
    #[serde(default)]
    pub seconds_per_run: f64,
    /// Training a model with a calculator, recipe fast, if it is smaller than the table's other models.
    pub seconds_per_calculator_run: Option<f64>,
    /// Training a one-shot model, recipe fast.
    #[serde(default)]
    pub seconds_per_endpoint_run: f64,
    /// Training a run of either kind, recipe paper.
    #[serde(default)]
    pub seconds_per_paper_run: f64,
    /// Testing a model on all its sets.
    #[serde(default)]
    pub seconds_per_evaluation: f64,
}

/// `[expected]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The paper's lowest and highest number in its headline column.
    pub paper: [f64; 2],
}

impl TablePlan {
    /// What the runs of a recipe change.
    fn changes(&self, recipe: Recipe) -> &toml::Table {
        match recipe {
            Recipe::Fast => &self.fast,
            Recipe::Paper => &self.paper,
        }
    }

    /// The run of one's own table that an experiment is.
    fn own_run(&self, experiment: &Experiment) -> Option<&OwnRun> {
        let name = experiment.own?.strip_prefix(&self.table.name)?.strip_prefix('-')?;
        self.own.as_ref()?.run.iter().find(|run| run.name == name)
    }

    /// How a run of one's own table is set up: the plan's keys for all runs, then the run's.
    fn own_overrides(&self, run: &OwnRun, recipe: Recipe, seed: u64) -> Vec<(String, String)> {
        let mut all = vec![("train.recipe".to_owned(), format!("{:?}", recipe.name()))];
        all.extend(run.overrides());
        all.extend(self.own.as_ref().and_then(OwnKeys::guard));
        all.push(("data.seed".into(), seed.to_string()));
        all.extend(assigned(self.changes(recipe)));
        all.extend(assigned(&run.set));
        all
    }

    fn own_config(&self, run: &OwnRun, recipe: Recipe) -> Result<RunConfig> {
        let config = RunConfig::from_toml("", &self.own_overrides(run, recipe, 1));
        config.map_err(|e| bad_input(format!("the run {} of {}: {e}", run.name, self.table.name)))
    }

    /// Polynomials per draw, for the table of sizes.
    pub fn draws(&self) -> Result<u64> {
        let missing = || bad_input(format!("the plan of {} has no [sizes] draws", self.table.name));
        self.sizes.as_ref().map(|sizes| sizes.draws).ok_or_else(missing)
    }

    fn parse(name: &str, text: &str) -> Result<TablePlan> {
        let wrong = |e: toml::de::Error| bad_toml(name, text, Some(e.span().unwrap_or(0..0)), e.message());
        let plan: TablePlan = toml::from_str(text).map_err(wrong)?;
        let seconds = |cost: &RunCost| {
            let calculator = cost.seconds_per_calculator_run.unwrap_or_default();
            let others = [cost.seconds_per_run, cost.seconds_per_endpoint_run, cost.seconds_per_paper_run];
            others.into_iter().chain([calculator, cost.seconds_per_evaluation])
        };
        if plan.cost.iter().flat_map(seconds).any(|s| Duration::try_from_secs_f64(s).is_err()) {
            return Err(bad_input(format!("{name}: the seconds of [cost] must be numbers from 0 up")));
        }
        Ok(plan)
    }
}

/// All plans, in order, with their tables.
pub struct TablePlans {
    all: Vec<(PaperTable, TablePlan)>,
    /// The plan that trains a run, by the name of the run with seed 1.
    owners: BTreeMap<String, usize>,
}

impl TablePlans {
    /// The repository's plans. Each file replaces one of them, or adds a table of one's own.
    pub fn read<P: AsRef<Path>>(files: &[P]) -> Result<TablePlans> {
        let mut all = Vec::new();
        for (name, text) in PLANS {
            all.push(TablePlan::parse(&format!("reproduce/{name}.toml"), text)?);
        }
        for path in files.iter().map(AsRef::as_ref) {
            let name = path.display().to_string();
            let mut plan = TablePlan::parse(&name, &read(path)?)?;
            match all.iter_mut().find(|p| p.table.name == plan.table.name) {
                Some(_) if plan.own.is_some() => {
                    return Err(bad_input(format!(
                        "{name}: the paper has a table `{}`: name yours otherwise",
                        plan.table.name
                    )));
                }
                Some(old) => *old = plan,
                None if plan.own.is_some() => {
                    plan.cost.get_or_insert_default();
                    all.push(plan);
                }
                None => {
                    let help = "a table of your own needs [own]; see docs/spaces.md";
                    return Err(bad_input(format!("{name}: the paper has no table `{}`; {help}", plan.table.name)));
                }
            }
        }
        all.sort_by_key(|plan| plan.table.order);
        let table = |plan: TablePlan| match &plan.own {
            None => Ok(PaperTable::named(&plan.table.name).map(|table| (table, plan))),
            Some(own) => {
                let keys = |run: &OwnRun| plan.own_config(run, Recipe::Fast).map(|config| config.keys());
                let table = own.table(&plan.table.name, keys)?.table();
                Ok(Some((table, plan)))
            }
        };
        let all: Vec<Option<(PaperTable, TablePlan)>> = all.into_iter().map(table).collect::<Result<_>>()?;
        let all: Vec<(PaperTable, TablePlan)> = all.into_iter().flatten().collect();
        let mut owners = BTreeMap::new();
        for (i, (table, _)) in all.iter().enumerate().filter(|(_, (_, plan))| plan.cost.is_some()) {
            for recipe in [Recipe::Fast, Recipe::Paper] {
                for (_, need) in table.needs(recipe, 1) {
                    owners.entry(need.experiment.name()).or_insert(i);
                }
            }
        }
        Ok(TablePlans { all, owners })
    }

    /// Tables and plans, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&PaperTable, &TablePlan)> {
        self.all.iter().map(|(table, plan)| (table, plan))
    }

    /// The `[slurm]` of the plan that was given, if it has one.
    pub fn slurm(&self) -> SlurmTable {
        self.all.iter().find_map(|(_, plan)| plan.slurm.clone()).unwrap_or_default()
    }

    /// The tables of one's own.
    pub fn own(&self) -> impl Iterator<Item = (&PaperTable, &TablePlan)> {
        self.iter().filter(|(_, plan)| plan.own.is_some())
    }

    /// A table with its plan.
    pub fn named(&self, name: &str) -> Result<(&PaperTable, &TablePlan)> {
        self.iter().find(|(table, _)| table.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.iter().map(|(table, _)| table.name).collect();
            bad_input(format!("the paper has no table `{name}`; its tables are {}", names.join(", ")))
        })
    }

    /// The plan that trains a run, and its place in the order.
    pub fn owner(&self, experiment: &Experiment) -> Option<(usize, &TablePlan)> {
        let name = Experiment { seed: 1, ..experiment.clone() }.name();
        let &at = self.owners.get(&name)?;
        Some((at, &self.all[at].1))
    }

    /// How a run is set up: its own keys, then those of its plan.
    pub fn overrides(&self, experiment: &Experiment) -> Vec<(String, String)> {
        let mut all = experiment.overrides();
        if let Some((_, plan)) = self.owner(experiment) {
            if let Some(run) = plan.own_run(experiment) {
                return plan.own_overrides(run, experiment.recipe, experiment.seed);
            }
            all.extend(assigned(plan.changes(experiment.recipe)));
            let papers = plan.endpoint.papers_pairs && experiment.keys.is(PaperSetting::Endpoint);
            if let (true, Recipe::Fast, Some(pairs)) = (papers, experiment.recipe, papers_budget(experiment)) {
                all.push(("train.examples".to_owned(), pairs.to_string()));
            }
        }
        all
    }

    /// The resolved configuration of a run.
    pub fn config(&self, experiment: &Experiment) -> Result<RunConfig> {
        let config = RunConfig::from_toml("", &self.overrides(experiment));
        config.map_err(|e| bad_input(format!("{}: {e}", experiment.name())))
    }
}

/// `{train: {examples: 5}}` as `train.examples = 5`.
fn assigned(table: &toml::Table) -> impl Iterator<Item = (String, String)> {
    flattened(table).into_iter().map(|(key, value)| (key, value.to_string()))
}

/// How many examples the paper's model was trained on.
fn papers_budget(experiment: &Experiment) -> Option<u64> {
    let theirs = Experiment { recipe: Recipe::Paper, ..experiment.clone() };
    RunConfig::from_toml("", &theirs.overrides()).ok()?.train.examples
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_study::tables::{Kind, NAMES};

    fn plans() -> TablePlans {
        TablePlans::read::<&Path>(&[]).expect("the repository's plans are right")
    }

    #[test]
    fn every_table_has_a_plan_and_the_order_is_the_tables() {
        assert_eq!(plans().iter().map(|(table, _)| table.name).collect::<Vec<_>>(), NAMES);
    }

    /// The paper's range in a plan is the range of the numbers that the paper prints.
    #[test]
    fn the_papers_range_is_the_csvs() {
        for (table, plan) in plans().iter() {
            let column = if table.kind() == Kind::Sizes { "equation_size_estimate" } else { "full_proof_acc" };
            let numbers: Vec<f64> = table.rows.iter().filter_map(|row| row.value(column)).collect();
            let range = numbers.iter().fold([f64::MAX, f64::MIN], |[lo, hi], v| [lo.min(*v), hi.max(*v)]);
            assert_eq!(plan.expected.as_ref().expect("a range").paper, range, "{}", table.name);
        }
    }

    /// In both recipes every row of every table needs runs that can be set up, and each run has one owner.
    #[test]
    fn every_row_leads_to_runs() {
        let plans = plans();
        for (table, _) in plans.iter().filter(|(table, _)| table.kind() != Kind::Sizes) {
            for recipe in [Recipe::Fast, Recipe::Paper] {
                let needs = table.needs(recipe, 2);
                for row in &table.rows {
                    assert!(needs.iter().any(|(number, _)| *number == row.number), "{} {}", table.name, row.number);
                }
                for (_, need) in needs {
                    let (_, owner) = plans.owner(&need.experiment).expect("a run has an owner");
                    let cost = owner.cost.expect("an owner has a cost");
                    assert!(cost.seconds_per_run > 0.0 && cost.seconds_per_paper_run > 0.0, "{}", owner.table.name);
                    let name = need.experiment.name();
                    let config = plans.config(&need.experiment).unwrap_or_else(|_| panic!("{name} cannot be run"));
                    let keys = &need.experiment.keys;
                    assert_eq!((config.data.config, config.data.seed), (keys.config.clone(), 2), "{name}");
                    assert_eq!(config.train.recipe.to_string(), recipe.to_string(), "{name}");
                    assert_eq!(Some(config.data.notation), keys.notation, "{name}");
                }
            }
        }
    }

    #[test]
    fn a_plan_is_laid_over_the_rows_own_keys() {
        let plans = plans();
        let (table, _) = plans.named("var1combo").expect("a table");
        let tuned = |recipe| plans.config(&table.rows[2].needs(recipe, 1)[0].experiment).expect("a run");
        let (fast, paper) = (tuned(Recipe::Fast), tuned(Recipe::Paper));
        assert_eq!((fast.model.d, fast.model.layers, fast.train.batch), (512, 6, 256));
        assert_eq!((paper.model.d, paper.model.layers, paper.train.batch), (512, 6, 64));
        assert_eq!(paper.train.examples, Some(3_200_000));
    }

    #[test]
    fn readers_leave_their_runs_to_others() {
        let plans = plans();
        let owner = |table: &str, row: usize| {
            let (table, _) = plans.named(table).expect("a table");
            let experiment = table.rows[row - 1].needs(Recipe::Fast, 5).remove(0).experiment;
            plans.owner(&experiment).expect("an owner").1.table.name.clone()
        };
        assert_eq!(owner("OODcoeff", 1), "var1coarsefull");
        assert_eq!(owner("OOD2var", 1), "var2coarse");
        assert_eq!(owner("var2error", 2), "results2varfine");
        assert_eq!(owner("var1comboerrors", 1), "var1comboerrors");
        assert_eq!(owner("var1comboerrors", 2), "var1combo");
    }

    #[test]
    fn a_wrong_plan_is_refused() {
        let read = |text: &str| {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), text).expect("written");
            TablePlans::read(&[file.path()]).err().map(|e| format!("{e:?}")).unwrap_or_default()
        };
        assert!(read("[table]\nname = \"var1coarse\"\norder = 1\n[costs]\n").contains("line 4: unknown field `costs`"));
        let cost =
            "[table]\nname = \"var1coarse\"\norder = 1\n[cost]\nseconds_per_run = -1\n[expected]\npaper = [1.0, 2.0]\n";
        assert!(read(cost).contains("the seconds of [cost] must be numbers from 0 up"));
        assert!(
            read("[table]\nname = \"x\"\norder = 1\n[expected]\npaper = [1.0, 2.0]\n").contains("has no table `x`")
        );
    }
}

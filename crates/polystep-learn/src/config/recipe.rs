//! The two recipes. All defaults are here.
//!
//! `paper` is what the paper did, as far as it says so. Its budget is that of the row in the paper's tables that is reproduced.
//! `fast` is ours: pre-norm, GELU, larger batches, warm-up and a cosine schedule.

use std::collections::BTreeMap;

use polystep_core::{Granularity, Notation, Setting, TermOrder};
use polystep_engine::{Activation, NormOrder};
use polystep_record::paper::lookup;
use polystep_record::{Keys, Recipe};

use super::GuardSetting;
use super::tables::{DataTable, LateTable, Logits, Precision, Schedule, Select, TrainTable};
use crate::curriculum::CurriculumTable;
use crate::model::{ModelConfig, Size};

/// Examples of the arithmetic probe in both recipes: the paper's number (arithmetic.csv).
const PROBE: u64 = 2_000_000;

/// The budget of a task without a row in the paper: about the middle of the paper's budgets.
const PAPER_ELSE: u64 = 4_000_000;

impl Default for DataTable {
    fn default() -> Self {
        DataTable {
            config: "medium_coeff".into(),
            vars: 1,
            also: Vec::new(),
            mix: BTreeMap::new(),
            guard: GuardSetting::default(),
            file: None,
            setting: Setting::Plain,
            granularity: Granularity::COARSE,
            notation: Notation::Infix,
            order: TermOrder::default(),
            ones: false,
            seed: 1,
        }
    }
}

impl Default for LateTable {
    fn default() -> Self {
        LateTable { from: 0.67, batch: None, eps: None }
    }
}

impl Default for TrainTable {
    fn default() -> Self {
        TrainTable::of(Recipe::Fast, &DataTable::default(), None)
    }
}

/// The model of a recipe in one of the paper's sizes.
pub(super) fn model_of(recipe: Recipe, size: Size) -> ModelConfig {
    let fast = ModelConfig::of_size(size);
    match recipe {
        Recipe::Paper => ModelConfig { norm: NormOrder::Post, activation: Activation::Relu, ..fast },
        Recipe::Fast => fast,
    }
}

impl TrainTable {
    /// A recipe for a task, learned by a curriculum or without one.
    pub fn of(recipe: Recipe, data: &DataTable, curriculum: Option<&CurriculumTable>) -> Self {
        let fast = TrainTable {
            recipe,
            init: None,
            continues: None,
            lr: 6e-4,
            warmup: 1000,
            schedule: Schedule::Cosine,
            beta1: 0.9,
            beta2: 0.98,
            eps: 1e-8,
            weight_decay: 0.0,
            clip: 1.0,
            batch: 256,
            precision: Precision::Auto,
            examples: Some(match data.setting {
                Setting::Endpoint => 10_000_000,
                Setting::Arithmetic => PROBE,
                _ => 7_000_000,
            }),
            steps: None,
            minutes: None,
            patience: 0,
            select: Select::Last,
            valid_every: 100_000,
            valid_proofs: 1000,
            log_every: 100,
            checkpoint_minutes: 5.0,
            checkpoint_steps: 0,
            logits: Logits::Bf16,
            ema: None,
            late: None,
            focus: None,
        };
        match recipe {
            Recipe::Fast => fast,
            Recipe::Paper => TrainTable {
                lr: 1e-4,
                warmup: 0,
                schedule: Schedule::Constant,
                beta2: 0.999,
                clip: 5.0,
                batch: 32,
                examples: Some(paper_examples(data, curriculum).unwrap_or(PAPER_ELSE)),
                patience: 300_000,
                select: Select::Best,
                ..fast
            },
        }
    }
}

#[cfg(test)]
impl super::RunConfig {
    /// A recipe for the default task.
    pub(crate) fn of_recipe(recipe: Recipe) -> Self {
        let data = DataTable::default();
        let (model, train) = (model_of(recipe, Size::S), TrainTable::of(recipe, &data, None));
        Self { data, model, train, space: None, spaces: Default::default(), curriculum: None }
    }
}

/// How many examples the paper trained this task on; none if the paper has no such row. It has no model of several spaces.
fn paper_examples(data: &DataTable, curriculum: Option<&CurriculumTable>) -> Option<u64> {
    if !data.also.is_empty() {
        return None;
    }
    if data.setting == Setting::Arithmetic {
        return Some(PROBE);
    }
    // The user's own graph has no name, and no row in the paper.
    let curriculum = curriculum.map(|c| c.name.as_deref());
    if curriculum == Some(None) {
        return None;
    }
    let endpoint = data.setting == Setting::Endpoint;
    let column = if endpoint { "endpoint_train_examples" } else { "train_examples" };
    let printed = lookup(&data.keys(curriculum)).into_iter().find(|printed| printed.column == column)?;
    printed.text.parse().ok()
}

impl DataTable {
    /// The keys of the paper's tables, for a model trained by a curriculum, which may have no name, or without one.
    pub fn keys(&self, curriculum: Option<Option<&str>>) -> Keys {
        let keys = Keys {
            vars: self.vars as u32,
            config: self.config.clone(),
            granularity: Some(self.granularity),
            notation: Some(self.notation),
            also: self.also.iter().map(|also| also.set.clone()).collect(),
            ..Keys::default()
        };
        keys.trained(Some(self.setting), curriculum)
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunConfig;
    use super::*;
    use polystep_record::TestSet;

    /// Rows of the paper's tables.
    #[test]
    fn the_papers_budgets() {
        let data =
            |config: &str, vars, setting| DataTable { config: config.into(), vars, setting, ..DataTable::default() };
        let paper_examples = |data: &DataTable| super::paper_examples(data, None);
        assert_eq!(paper_examples(&data("small_coeff", 1, Setting::Plain)), Some(3_600_000));
        assert_eq!(paper_examples(&data("medium_coeff", 2, Setting::Plain)), Some(5_300_000));
        assert_eq!(paper_examples(&data("large_coeff", 1, Setting::Calculator)), Some(3_200_000));
        assert_eq!(paper_examples(&data("small_coeff", 1, Setting::Endpoint)), Some(5_000_000));
        assert_eq!(paper_examples(&data("small_coeff", 1, Setting::Annotated)), Some(3_700_000));
        let fine = DataTable { granularity: Granularity::FINE, ..data("small_coeff", 2, Setting::Plain) };
        assert_eq!(paper_examples(&fine), Some(4_600_000));
        assert_eq!(paper_examples(&data("small_coeff", 3, Setting::Plain)), None);
        let mixed =
            DataTable { also: vec![TestSet::new("large_coeff", 1).into()], ..data("small_coeff", 1, Setting::Plain) };
        assert_eq!(paper_examples(&mixed), None);
    }

    #[test]
    fn the_papers_budgets_of_curricula() {
        let data = DataTable { config: "no_backtrack".into(), ..DataTable::default() };
        let named = |name: &str| CurriculumTable { name: Some(name.into()), ..CurriculumTable::default() };
        assert_eq!(paper_examples(&data, Some(&named("C2"))), Some(4_800_000));
        assert_eq!(paper_examples(&data, Some(&named("C4"))), Some(5_100_000));
        assert_eq!(paper_examples(&data, Some(&named("C"))), None, "the paper has C for small_coeff only");
        assert_eq!(paper_examples(&data, Some(&CurriculumTable::default())), None, "a graph of one's own");
        let endpoint = DataTable { setting: Setting::Endpoint, ..data };
        assert_eq!(paper_examples(&endpoint, Some(&named("C2"))), None);
    }

    /// The design's table of recipes.
    #[test]
    fn the_recipes() {
        let RunConfig { train: p, model: m, .. } = RunConfig::of_recipe(Recipe::Paper);
        assert_eq!((m.norm, m.activation), (NormOrder::Post, Activation::Relu));
        assert_eq!(
            (p.lr, p.warmup, p.schedule, p.beta1, p.beta2, p.eps),
            (1e-4, 0, Schedule::Constant, 0.9, 0.999, 1e-8)
        );
        assert_eq!((p.batch, p.clip, p.weight_decay, p.patience), (32, 5.0, 0.0, 300_000));
        let RunConfig { train: f, model: m, .. } = RunConfig::of_recipe(Recipe::Fast);
        assert_eq!((m.norm, m.activation, m.dropout), (NormOrder::Pre, Activation::Gelu, 0.0));
        assert_eq!(
            (f.lr, f.warmup, f.schedule, f.beta1, f.beta2, f.eps),
            (6e-4, 1000, Schedule::Cosine, 0.9, 0.98, 1e-8)
        );
        assert_eq!((f.batch, f.clip, f.weight_decay, f.patience), (256, 1.0, 0.0, 0));
        assert_eq!(f.examples, Some(7_000_000));
    }
}

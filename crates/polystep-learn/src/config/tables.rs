//! The tables `[data]` and `[train]` of a run's TOML: every key and its meaning. `[model]` is
//! [`ModelConfig`](crate::model::ModelConfig); `[curriculum]` is [`CurriculumTable`](crate::curriculum::CurriculumTable). Defaults
//! are in [`super::recipe`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use polystep_core::{Granularity, Notation, Setting, StepClass, TermOrder};
use polystep_record::{Recipe, WeightedSet};
use serde::{Deserialize, Serialize};

use super::GuardSetting;
use crate::curriculum::FocusTable;

/// `[data]`: what is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataTable {
    /// A configuration of the paper (`large_coeff`), a sub-task of one (`large_coeff/mul2`), a file with a `[space]` table
    /// (`mine.toml`), or the key of `[space]`;
    /// in setting `arithmetic` one of `add4`, `add9`, `mul4`, `mul9`, or `arithmetic` for all four.
    pub config: String,
    /// Number of variables, 1 to 8.
    pub vars: usize,
    /// Further spaces that one model learns, as `["small_coeff:1", "large_coeff:2", "mine.toml:1"]`. They are drawn in equal parts,
    /// or by their weights, as in `[{ space = "no_backtrack:1", weight = 2 }]`; the weight of `config` is 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<WeightedSet>,
    /// Which evaluation sets training never meets. Those of the spaces that are learned always; with `all`, the default, those of
    /// the paper's spaces too; with `long` also the long test sets; with `own` no others, as in the paper. Further sets stand
    /// in a list, as `["longer.toml:1"]` or `["long", "longer.toml:1"]`.
    #[serde(skip_serializing_if = "GuardSetting::is_default")]
    pub guard: GuardSetting,
    /// Examples of one's own, in place of those that are drawn: a file of JSONL or Parquet, or a folder of such files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// `plain`, `calculator`, `annotated`, `endpoint` or `arithmetic`.
    pub setting: Setting,
    /// `coarse`, `fine`, `fine_counted`, or switches as in `fac=term,mul=pair,sum=all`.
    pub granularity: Granularity,
    /// `infix` or `prefix`.
    pub notation: Notation,
    /// The order of terms.
    pub order: TermOrder,
    /// Whether unsimplified terms with the coefficient 1 are written `1*x1^1`.
    pub ones: bool,
    /// The seed of polynomials, their order, dropout and the first weights.
    pub seed: u64,
    /// How often the steps of a class are learned from, relative to the class with the largest weight, of which all drawn steps
    /// are. A class that is not named has the weight 1, so without this table every step that is drawn is learned from.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mix: BTreeMap<StepClass, f64>,
}

/// `[train]`: how it is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainTable {
    /// `paper` or `fast`: supplies every key that is not given.
    pub recipe: Recipe,
    /// The folder whose weights are the first ones: a run, a bundled model, or what `export` made. Without it they are random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<PathBuf>,
    /// The finished run that this one continues; written by `train --more`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<PathBuf>,
    /// Learning rate, after the warm-up.
    pub lr: f64,
    /// Steps of linear warm-up.
    pub warmup: u64,
    /// `constant`, or `cosine` to 0 at the end of the budget.
    pub schedule: Schedule,
    /// Adam's decay of the first moment.
    pub beta1: f64,
    /// Adam's decay of the second moment.
    pub beta2: f64,
    /// Added to the root of Adam's second moment.
    pub eps: f64,
    /// Decoupled weight decay, of every parameter.
    pub weight_decay: f64,
    /// Largest global norm of the gradient; 0 for no clipping.
    pub clip: f64,
    /// Examples in a batch.
    pub batch: usize,
    /// `auto` (bf16 on CUDA, fp32 on the CPU), `bf16` or `fp32`.
    pub precision: Precision,
    /// Budget in examples. Of several budgets the first that is spent ends the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examples: Option<u64>,
    /// Budget in optimiser steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Budget in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Early stopping: examples without a new best on the validation set; 0 for never.
    pub patience: u64,
    /// Which weights a finished run keeps and tests: `best` on the validation set, or `last`.
    pub select: Select,
    /// Examples between two validations; 0 for none but the last.
    pub valid_every: u64,
    /// Proofs of the validation set that are used, at most 1000.
    pub valid_proofs: u64,
    /// Steps that one line of the log covers.
    pub log_every: u64,
    /// Minutes between two checkpoints; 0 for none but the last.
    pub checkpoint_minutes: f64,
    /// Steps between two checkpoints, beside those by time; 0 for none.
    pub checkpoint_steps: u64,
    /// `bf16`, or `fp32` for logits and a gradient of theirs that are not rounded; on the CPU everything is fp32.
    #[serde(skip_serializing_if = "Logits::is_bf16")]
    pub logits: Logits,
    /// Decay of an average of the weights (EMA), as in 0.9995. The average is then what is validated, kept and tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ema: Option<f64>,
    /// What changes in the last part of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateTable>,
    /// `[train.focus]`: classes of steps with errors are shown more often, beside what `[data.mix]` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<FocusTable>,
}

impl TrainTable {
    /// Examples in a batch, early and late in the budget.
    pub fn batches(&self) -> [usize; 2] {
        [self.batch, self.late.as_ref().and_then(|late| late.batch).unwrap_or(self.batch)]
    }
}

/// `[train.late]`: what changes in the last part of the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LateTable {
    /// The share of the budget after which it begins.
    pub from: f64,
    /// Examples in a batch from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Adam's eps from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eps: Option<f64>,
}

/// What follows the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// One learning rate.
    Constant,
    /// Half a cosine to 0 at the end of the budget.
    Cosine,
}

/// What the engine computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// What the device does best.
    Auto,
    /// bf16 with fp32 accumulation and master weights: CUDA.
    Bf16,
    /// fp32: the CPU.
    Fp32,
}

/// What the logits of training and validation are kept in, and their gradient. Decoding always has them in fp32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Logits {
    /// As all other activations.
    Bf16,
    /// Not rounded.
    Fp32,
}

impl Logits {
    fn is_bf16(&self) -> bool {
        *self == Logits::Bf16
    }
}

/// Which weights a finished run keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Select {
    /// Those of the best validation.
    Best,
    /// The last ones.
    Last,
}

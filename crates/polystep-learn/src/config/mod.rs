//! A run's TOML. The recipe supplies the keys that it leaves out. A mistake is refused, with the number of its line.
//!
//! A TOML is read in five stages:
//! 1. It is parsed, with the place of every key.
//! 2. The overrides of `--set` are laid over it.
//! 3. The tables are made from it.
//! 4. A space that is named by its file is read, and its table takes the file's place.
//! 5. Every key that was not given is taken from the recipe.
//! 6. The whole is checked.
//!
//! So all defaults are in `recipe`, including those that depend on other keys, and what is written to a run's folder needs no
//! other file.

mod guard;
mod recipe;
mod spaces;
mod stored;
mod tables;

pub use crate::curriculum::CurriculumTable;
pub use crate::error::ConfigError;
pub use guard::GuardSetting;
pub use polystep_record::Recipe;
pub use spaces::{is_space_file, read_space};
pub use tables::{DataTable, LateTable, Logits, Precision, Schedule, Select, TrainTable};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use polystep_core::{ClassWeights, Setting, SpaceTable, Style, Task, Writing, arithmetic};
use polystep_engine::Adam;
use polystep_record::{Keys, TestSet, WeightedSet};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::curriculum::Graph;
use crate::error::one_line;
use crate::model::ModelConfig;

/// The most names that a key may have. The longest real key has three: `space.max.products`.
const MOST_NAMES: usize = 8;

/// The weights that a class or a space may have.
const WEIGHTS: RangeInclusive<f64> = 0.001..=1000.0;

/// Everything that decides what a run computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// What is learned.
    #[serde(default)]
    pub data: DataTable,
    /// The shape of the network.
    #[serde(default)]
    pub model: ModelConfig,
    /// How it is learned.
    #[serde(default)]
    pub train: TrainTable,
    /// The user's own space, if there is one; `data.config` is then its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<SpaceTable>,
    /// The user's other spaces, by their keys: `[spaces.long]` is the space of `long:1` in `data.also` or `data.guard`, and of
    /// the task `long` of a curriculum.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spaces: BTreeMap<String, SpaceTable>,
    /// The curriculum, if there is one: in which order the sub-tasks are learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curriculum: Option<CurriculumTable>,
}

impl RunConfig {
    /// Reads a TOML and lays each override `(key, value)`, such as `("model.layers", "6")`, over it. The recipe supplies the keys
    /// that neither of them has.
    pub fn from_toml(text: &str, overrides: &[(String, String)]) -> Result<Self, ConfigError> {
        let wrong = |e: toml::de::Error| ConfigError::of_toml(text, &e);
        let mut document = DeTable::parse(text).map_err(wrong)?;
        for (key, value) in overrides {
            // Each override is first checked alone, so that the message is about its key.
            alone(key, value).map_err(|why| ConfigError::new(format!("{key}={value}: {why}")))?;
            overlay(document.get_mut(), single(key, value).unwrap_or_default());
        }
        let mut given = RunConfig::deserialize(toml::Deserializer::from(document.clone())).map_err(wrong)?;
        given.read_spaces()?;
        let config = given.filled(document.get_ref())?;
        config.check()?;
        Ok(config)
    }

    /// The same with every key that `document` does not give at its default. Some defaults depend on what was given.
    fn filled(mut self, document: &DeTable<'_>) -> Result<Self, ConfigError> {
        let given = |table: &str, key: &str| {
            let table = document.get(table).and_then(|table| table.get_ref().as_table());
            table.is_some_and(|table| table.contains_key(key))
        };
        if let Some(space) = &self.space {
            self.data.config = space.key().to_owned();
        } else if self.data.setting == Setting::Arithmetic && !given("data", "config") {
            self.data.config = arithmetic::MIXTURE.into();
        }
        let mut model = match &self.train.init {
            // The shape of the first weights, unless the TOML says it all.
            Some(folder) if !ModelConfig::KEYS.iter().all(|key| given("model", key)) => {
                RunConfig::stored(folder)?.model
            }
            _ => recipe::model_of(self.train.recipe, self.model.size),
        };
        if given("model", "d") {
            model.ffn = 4 * self.model.d.min(1 << 20); // so wide a model is refused in `check`
        }
        self.model = under(&model, document.get("model"))?;
        let examples = self.train.examples;
        let train = TrainTable::of(self.train.recipe, &self.data, self.curriculum.as_ref());
        self.train = under(&train, document.get("train"))?;
        // Any budget that is given takes the place of the recipe's.
        if ["examples", "steps", "minutes"].iter().any(|key| given("train", key)) {
            self.train.examples = examples.filter(|_| given("train", "examples"));
        }
        Ok(self)
    }

    /// The whole of it, as it is written to a run's folder.
    pub fn to_toml(&self) -> String {
        let body = toml::to_string(self).unwrap_or_else(|e| format!("# {e}\n"));
        format!("# Resolved by polystep {} ({}).\n{body}", env!("CARGO_PKG_VERSION"), crate::COMMIT)
    }

    /// What it is, in the words of the paper's tables.
    pub fn keys(&self) -> Keys {
        self.data.keys(self.curriculum.as_ref().map(|curriculum| curriculum.name.as_deref()))
    }

    /// Adam's constants.
    pub fn optimiser(&self) -> Adam {
        let t = &self.train;
        Adam {
            beta1: t.beta1 as f32,
            beta2: t.beta2 as f32,
            weight_decay: t.weight_decay as f32,
            clip: t.clip as f32,
            ema: t.ema.unwrap_or(0.0) as f32,
        }
    }

    /// The task.
    pub fn task(&self) -> Result<Task, ConfigError> {
        let DataTable { config, vars, setting, granularity, notation, order, ones, .. } = self.data.clone();
        if self.space.is_some() && setting == Setting::Arithmetic {
            return Err(ConfigError::new("[space]: the arithmetic probe has no polynomials; leave it out"));
        }
        let named = |e: ConfigError| match self.space {
            Some(_) => e,
            None => ConfigError::new(format!("data.config: {e}")),
        };
        let writing = Writing { setting, granularity, notation, style: Style { order, ones } };
        let task = Task { space: self.space_of(&config).map_err(named)?, vars, writing };
        task.validate().map_err(|e| ConfigError::new(e.to_string()))?;
        Ok(task)
    }

    /// What a run learns, for people.
    pub fn description(&self) -> String {
        let d = &self.data;
        let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let also = match d.also.len() {
            0 => String::new(),
            more => format!(" and {}", counted(more, "more space")),
        };
        format!("{}, {}{also}, {}, {}, {}", d.config, counted(d.vars, "variable"), d.setting, d.granularity, d.notation)
    }

    /// The task, and those of `data.also`: all that the model learns.
    pub fn tasks(&self) -> Result<Vec<Task>, ConfigError> {
        let mut tasks = vec![self.task()?];
        for WeightedSet { set, .. } in &self.data.also {
            let task = self.task_on(set).map_err(|e| ConfigError::new(format!("data.also, \"{set}\": {e}")))?;
            if tasks.contains(&task) {
                return Err(ConfigError::new(format!("data.also, \"{set}\": is learned already")));
            }
            tasks.push(task);
        }
        Ok(tasks)
    }

    /// How many of the drawn proofs belong to each of the tasks, relative to each other.
    pub fn task_weights(&self) -> Vec<f64> {
        std::iter::once(1.0).chain(self.data.also.iter().map(|also| also.weight)).collect()
    }

    /// How often the steps of each class are learned from.
    pub fn class_weights(&self) -> ClassWeights {
        let mut weights = ClassWeights::NATURAL;
        for (&class, &weight) in &self.data.mix {
            *weights.at(class) = weight;
        }
        weights
    }

    /// An error if the stream that `[data.mix]` and the weights of `data.also` ask for cannot be made.
    fn check_mix(&self) -> Result<(), ConfigError> {
        let refuse = |wrong: bool, why: String| if wrong { Err(ConfigError::new(why)) } else { Ok(()) };
        for WeightedSet { set, weight } in &self.data.also {
            let range = WEIGHTS.contains(weight);
            refuse(!range, format!("data.also, \"{set}\": its weight must be between 0.001 and 1000"))?;
        }
        for (class, weight) in &self.data.mix {
            let range = *weight == 0.0 || WEIGHTS.contains(weight);
            refuse(!range, format!("data.mix.{class} must be 0, or between 0.001 and 1000"))?;
        }
        let weighted = !self.data.mix.is_empty()
            || self.train.focus.is_some()
            || self.data.also.iter().any(|also| also.weight != 1.0);
        refuse(
            weighted && self.data.file.is_some(),
            "[data.mix], [train.focus] and the weights of data.also choose among what is drawn: leave out data.file"
                .into(),
        )?;
        let chosen = !self.data.mix.is_empty() || self.train.focus.is_some();
        let alone = "[curriculum] chooses what is learned: leave out [data.mix] and [train.focus]";
        refuse(chosen && self.curriculum.is_some(), alone.into())?;
        self.train.focus.map_or(Ok(()), |focus| focus.check())
    }

    /// The tasks of the sets in `data.guard`: training never meets their endpoints.
    pub fn guarded(&self) -> Result<Vec<Task>, ConfigError> {
        let named =
            |set: &TestSet| self.task_on(set).map_err(|e| ConfigError::new(format!("data.guard, \"{set}\": {e}")));
        self.data.guard.sets.iter().map(named).collect()
    }

    /// The run's task on the space of a test set.
    pub fn task_on(&self, set: &TestSet) -> Result<Task, ConfigError> {
        let task = Task { space: self.space_of(&set.config)?, vars: set.vars as usize, ..self.task()? };
        task.validate().map_err(|e| ConfigError::new(e.to_string()))?;
        Ok(task)
    }

    /// The graph of the curriculum, its constants, and the task behind each of its names; none if there is none.
    pub fn curriculum(&self) -> Result<Option<(Graph, CurriculumTable, Vec<Task>)>, ConfigError> {
        let Some(table) = &self.curriculum else { return Ok(None) };
        let target = self.task()?;
        if self.data.setting == Setting::Arithmetic {
            return Err(ConfigError::new("[curriculum]: the arithmetic probe has no sub-tasks; leave it out"));
        }
        if !self.data.also.is_empty() {
            return Err(ConfigError::new("[curriculum] leads to one space: leave out data.also"));
        }
        if self.space.is_none() && self.data.config.contains('/') {
            let why =
                format!("data.config = \"{}\" is a sub-task: a curriculum leads to a whole one", self.data.config);
            return Err(ConfigError::new(why));
        }
        if table.inside && !matches!(self.data.setting, Setting::Plain | Setting::Calculator) {
            let why = format!(
                "curriculum.inside: setting {} has no steps of a part of a proof; leave it out",
                self.data.setting
            );
            return Err(ConfigError::new(why));
        }
        let (graph, spaces) = table.resolve(&target.space, |key| self.space_of(key).ok())?;
        let tasks = spaces.into_iter().map(|space| Task { space, ..target.clone() }).collect();
        Ok(Some((graph, table.clone(), tasks)))
    }

    /// If it cannot be run, one sentence that says why.
    fn check(&self) -> Result<(), ConfigError> {
        self.check_spaces()?;
        self.tasks()?;
        self.guarded()?;
        self.curriculum()?;
        self.check_mix()?;
        if self.data.file.is_some() && self.curriculum.is_some() {
            return Err(ConfigError::new("[curriculum] chooses what is drawn next: leave out data.file"));
        }
        self.model.check()?;
        let t = &self.train;
        // The numbers as the engine will see them: in fp32 a small number may be 0 and a large one infinite.
        let (lr, Adam { beta1, beta2, weight_decay, clip, ema }) = (t.lr as f32, self.optimiser());
        let late = t.late.clone().unwrap_or_default();
        let [_, late_batch] = t.batches();
        let late_eps = late.eps.unwrap_or(t.eps) as f32;
        let positive = |x: f32| x > 0.0 && x.is_finite();
        let not_negative = |x: f32| x >= 0.0 && x.is_finite();
        let betas = (0.0..1.0).contains(&beta1) && (0.0..1.0).contains(&beta2);
        let saves = !t.checkpoint_minutes.is_nan() && t.checkpoint_minutes >= 0.0;
        let minutes = t.minutes.is_none_or(|m| m > 0.0);
        let rules = [
            (self.data.seed <= i64::MAX as u64, "data.seed must be below 2^63"),
            ((1..=65_536).contains(&t.batch), "train.batch must be between 1 and 65536"),
            (positive(lr), "train.lr must be positive"),
            (betas, "train.beta1 and train.beta2 must be at least 0 and below 1"),
            (positive(t.eps as f32), "train.eps must be positive"),
            (
                t.ema.is_none() || (ema > 0.0 && ema < 1.0),
                "train.ema must be above 0 and below 1; leave it out for no average",
            ),
            ((0.0..1.0).contains(&late.from), "train.late.from is a share of the budget: at least 0 and below 1"),
            ((1..=65_536).contains(&late_batch), "train.late.batch must be between 1 and 65536"),
            (positive(late_eps), "train.late.eps must be positive"),
            (
                t.late.is_none() || late.batch.is_some() || late.eps.is_some(),
                "train.late changes nothing: give it batch or eps",
            ),
            (
                self.curriculum.is_none() || late.batch.is_none(),
                "[curriculum] divides batches of one size among its tasks: leave out train.late.batch",
            ),
            (not_negative(clip), "train.clip must be 0 (no clipping) or positive"),
            (not_negative(weight_decay), "train.weight_decay must not be negative"),
            (t.log_every > 0, "train.log_every must be at least 1"),
            ((1..=1000).contains(&t.valid_proofs), "train.valid_proofs must be between 1 and 1000"),
            (saves, "train.checkpoint_minutes must not be negative"),
            (minutes, "train.minutes must be positive"),
            (t.examples != Some(0) && t.steps != Some(0), "a budget of 0 trains nothing"),
        ];
        let broken = rules.into_iter().find(|(kept, _)| !kept);
        broken.map_or(Ok(()), |(_, why)| Err(ConfigError::new(why)))
    }
}

/// A table of defaults, with the keys that were given laid over it.
fn under<T: Serialize + DeserializeOwned>(defaults: &T, given: Option<&Spanned<DeValue>>) -> Result<T, ConfigError> {
    let text = toml::to_string(defaults).map_err(|e| ConfigError::new(e.to_string()))?;
    let wrong = |e: toml::de::Error| ConfigError::new(one_line(e.message()));
    let mut table = DeTable::parse(&text).map_err(wrong)?;
    if let Some(DeValue::Table(given)) = given.map(Spanned::get_ref) {
        overlay(table.get_mut(), given.clone());
    }
    T::deserialize(toml::Deserializer::from(table)).map_err(wrong)
}

fn overlay<'a>(under: &mut DeTable<'a>, over: DeTable<'a>) {
    for (key, value) in over {
        match (under.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value.into_inner()) {
            (Some(DeValue::Table(table)), DeValue::Table(over)) => overlay(table, over),
            (_, value) => drop(under.insert(key, Spanned::new(0..0, value))),
        }
    }
}

/// Parses a single key and its value, or says why no run has them.
pub(crate) fn alone(key: &str, value: &str) -> Result<RunConfig, String> {
    let table = single(key, value).ok_or("a key is a table and a name, as in model.layers=6")?;
    let deserializer = toml::Deserializer::from(Spanned::new(0..0, table));
    RunConfig::deserialize(deserializer).map_err(|e| one_line(e.message()))
}

/// `("model.layers", "6")` as a TOML. A value that is not valid TOML is taken as a string, as in `data.notation=prefix`.
fn single<'a>(key: &'a str, value: &'a str) -> Option<DeTable<'a>> {
    let value = DeValue::parse(value).unwrap_or_else(|_| Spanned::new(0..0, DeValue::String(value.into())));
    let names: Vec<&str> = key.split('.').collect();
    if !(2..=MOST_NAMES).contains(&names.len()) || names.contains(&"") {
        return None;
    }
    let table = |inner, name: &&'a str| {
        let name = Spanned::new(0..0, Cow::Borrowed(*name));
        Spanned::new(0..0, DeValue::Table(DeTable::from_iter([(name, inner)])))
    };
    match names.iter().rev().fold(value, table).into_inner() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! A run's TOML. What is not written is supplied by the recipe; what is written wrongly is refused with its line.
//!
//! A TOML is read twice: once on its own, so that an error can point at its place, and once laid over the recipe's own
//! TOML, together with `--set` overrides. So every default stands in `recipe` alone, also those that depend on other keys.

mod curriculum;
mod recipe;
mod tables;

pub use curriculum::CurriculumTable;
pub use tables::{ActivationName, DataTable, ModelTable, NormName, Precision, Recipe, Schedule, Select, TrainTable};

use std::ops::Range;

use polystep_core::{Setting, Space, SpaceError, SpaceTable, Style, Task, arithmetic};
use polystep_engine::{Activation, NormOrder};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::curriculum::{Graph, Settings};
use crate::model::{ModelConfig, Optimiser};

/// Everything that decides what a run computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// What is learned.
    #[serde(default)]
    pub data: DataTable,
    /// The shape of the network.
    #[serde(default)]
    pub model: ModelTable,
    /// How it is learned.
    #[serde(default)]
    pub train: TrainTable,
    /// A space of one's own; `data.config` is then its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<SpaceTable>,
    /// In which order its sub-tasks are learned, if they are learned apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curriculum: Option<CurriculumTable>,
}

/// What a person wrote wrongly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// One sentence.
    pub message: String,
    /// The place in the TOML, in bytes, if there is one.
    pub span: Option<Range<usize>>,
}

impl ConfigError {
    /// A sentence without a place.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ConfigError { message: message.into(), span: None }
    }

    /// A sentence about a place of the text, which begins with its line.
    pub(crate) fn at(text: &str, span: Range<usize>, message: impl std::fmt::Display) -> Self {
        let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
        ConfigError { message: format!("line {line}: {message}"), span: Some(span) }
    }

    /// What TOML says of the text.
    pub(crate) fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        match error.span() {
            Some(span) => ConfigError::at(text, span, one_line(error.message())),
            None => ConfigError::new(one_line(error.message())),
        }
    }
}

impl RunConfig {
    /// Reads a TOML and lays it, and then each override `(key, value)` such as `("model.layers", "6")`, over its recipe.
    pub fn from_toml(text: &str, overrides: &[(String, String)]) -> Result<Self, ConfigError> {
        RunConfig::check_keys(text)?;
        let mut given: Table = toml::from_str(text).map_err(|e| ConfigError::of_toml(text, &e))?;
        for (key, value) in overrides {
            // On its own first: then the sentence is about this key.
            let alone = alone(key, value).map_err(|why| ConfigError::new(format!("{key}={value}: {why}")))?;
            overlay(&mut given, alone);
        }
        let config = base(&given)?;
        config.check()?;
        Ok(config)
    }

    /// An error if a TOML, which need not be a whole run, has a key or a type that no run has.
    pub fn check_keys(text: &str) -> Result<(), ConfigError> {
        toml::from_str::<RunConfig>(text).map(drop).map_err(|e| ConfigError::of_toml(text, &e))
    }

    /// The whole of it, as it is written to a run's folder.
    pub fn to_toml(&self) -> String {
        let body = toml::to_string(self).unwrap_or_else(|e| format!("# {e}\n"));
        format!("# Resolved by polystep {} ({}).\n{body}", env!("CARGO_PKG_VERSION"), crate::COMMIT)
    }

    /// The shape of the model.
    pub fn model(&self) -> ModelConfig {
        let m = &self.model;
        ModelConfig {
            d: m.d,
            layers: m.layers,
            heads: m.heads,
            ffn: m.ffn,
            norm: match m.norm {
                NormName::Pre => NormOrder::Pre,
                NormName::Post => NormOrder::Post,
            },
            activation: match m.activation {
                ActivationName::Relu => Activation::Relu,
                ActivationName::Gelu => Activation::Gelu,
            },
            dropout: m.dropout as f32,
            max_positions: m.max_positions,
            scale_embedding: m.scale_embedding,
            init_std: m.init_std as f32,
        }
    }

    /// Adam's constants.
    pub fn optimiser(&self) -> Optimiser {
        let t = &self.train;
        Optimiser {
            beta1: t.beta1 as f32,
            beta2: t.beta2 as f32,
            eps: t.eps as f32,
            weight_decay: t.weight_decay as f32,
            clip: t.clip as f32,
        }
    }

    /// The task.
    pub fn task(&self) -> Result<Task, ConfigError> {
        let DataTable { config, vars, setting, granularity, notation, order, ones, .. } = self.data.clone();
        let wrong = |e: polystep_core::SpaceError| ConfigError::new(e.to_string());
        let space = match &self.space {
            Some(_) if setting == Setting::Arithmetic => {
                return Err(ConfigError::new("[space]: the arithmetic probe has no polynomials; leave it out"));
            }
            Some(table) => table.resolve().map_err(wrong)?,
            None => named_space(&config, setting).map_err(|e| ConfigError::new(format!("data.config: {e}")))?,
        };
        let task = Task { space, vars, setting, granularity, notation, style: Style { order, ones } };
        task.validate().map_err(wrong)?;
        Ok(task)
    }

    /// The task, and those of `data.also`: all that the model learns.
    pub fn tasks(&self) -> Result<Vec<Task>, ConfigError> {
        let home = self.task()?;
        let mut tasks = vec![home.clone()];
        for text in &self.data.also {
            let wrong = |why: &str| ConfigError::new(format!("data.also, \"{text}\": {why}"));
            let (config, vars) = text
                .rsplit_once(':')
                .and_then(|(config, vars)| Some((config, vars.parse().ok()?)))
                .ok_or_else(|| wrong("write a configuration and a number of variables, as in large_coeff:1"))?;
            let space = named_space(config, home.setting).map_err(|e| wrong(&e.to_string()))?;
            let task = Task { space, vars, ..home.clone() };
            task.validate().map_err(|e| wrong(&e.to_string()))?;
            if tasks.contains(&task) {
                return Err(wrong("is learned already"));
            }
            tasks.push(task);
        }
        Ok(tasks)
    }

    /// The graph of the curriculum, its constants, and the task behind each of its names; none if there is none.
    pub fn curriculum(&self) -> Result<Option<(Graph, Settings, Vec<Task>)>, ConfigError> {
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
        let (graph, spaces) = table.resolve(&target.space)?;
        let tasks = spaces.into_iter().map(|space| Task { space, ..target.clone() }).collect();
        Ok(Some((graph, table.settings(), tasks)))
    }

    /// One sentence on what cannot be run, if anything.
    fn check(&self) -> Result<(), ConfigError> {
        self.tasks()?;
        self.curriculum()?;
        self.model().check().map_err(ConfigError::new)?;
        let t = &self.train;
        let refuse = |wrong: bool, why: &str| if wrong { Err(ConfigError::new(why)) } else { Ok(()) };
        refuse(self.data.seed > i64::MAX as u64, "data.seed must be below 2^63")?;
        refuse(t.batch == 0 || t.batch > 65_536, "train.batch must be between 1 and 65536")?;
        // As the engine will have them: in fp32 a small number may be 0 and a large one infinite.
        let (lr, Optimiser { beta1, beta2, eps, weight_decay, clip }) = (t.lr as f32, self.optimiser());
        refuse(!(lr > 0.0 && lr.is_finite()), "train.lr must be positive")?;
        let betas = (0.0..1.0).contains(&beta1) && (0.0..1.0).contains(&beta2);
        refuse(!betas, "train.beta1 and train.beta2 must be at least 0 and below 1")?;
        refuse(!(eps > 0.0 && eps.is_finite()), "train.eps must be positive")?;
        refuse(!(clip >= 0.0 && clip.is_finite()), "train.clip must be 0 (no clipping) or positive")?;
        refuse(!(weight_decay >= 0.0 && weight_decay.is_finite()), "train.weight_decay must not be negative")?;
        refuse(t.log_every == 0, "train.log_every must be at least 1")?;
        refuse(t.valid_proofs == 0 || t.valid_proofs > 1000, "train.valid_proofs must be between 1 and 1000")?;
        refuse(
            t.checkpoint_minutes.is_nan() || t.checkpoint_minutes < 0.0,
            "train.checkpoint_minutes must not be negative",
        )?;
        refuse(t.minutes.is_some_and(|m| m.is_nan() || m <= 0.0), "train.minutes must be positive")?;
        refuse(t.examples == Some(0) || t.steps == Some(0), "a budget of 0 trains nothing")
    }
}

/// A configuration of the paper or a sub-task of one; in the arithmetic probe its exercises.
fn named_space(key: &str, setting: Setting) -> Result<Space, SpaceError> {
    if setting == Setting::Arithmetic { Space::exercises(key) } else { Space::of_key(key) }
}

/// The recipe under what is given, defaults that depend on other keys included.
fn base(given: &Table) -> Result<RunConfig, ConfigError> {
    let loud = |e: &str| ConfigError::new(one_line(e));
    // Every key was checked on its own; what is read here is only looked up.
    let peek: RunConfig = Value::Table(given.clone()).try_into().map_err(|e: toml::de::Error| loud(e.message()))?;
    let mut data = peek.data;
    if let Some(space) = &peek.space {
        data.config = space.key.clone().unwrap_or_else(|| "custom".into());
    } else if data.setting == Setting::Arithmetic && !has(given, "data", "config") {
        data.config = arithmetic::MIXTURE.into();
    }
    let mut model = ModelTable::of(peek.train.recipe, peek.model.size);
    if has(given, "model", "d") {
        model.ffn = 4 * peek.model.d.min(1 << 20); // so wide a model is refused in `check`
    }
    let mut train = TrainTable::of(peek.train.recipe, &data, peek.curriculum.as_ref());
    if ["examples", "steps", "minutes"].iter().any(|key| has(given, "train", key)) {
        train.examples = None;
    }
    let budget = train.examples;
    let under = RunConfig { data: data.clone(), model, train, space: None, curriculum: None };
    let mut table = Table::try_from(&under).map_err(|e| loud(&e.to_string()))?;
    overlay(&mut table, given.clone());
    let mut config: RunConfig = Value::Table(table).try_into().map_err(|e: toml::de::Error| loud(e.message()))?;
    config.data.config = data.config;
    // A budget that is not given is none, where serde would supply the default recipe's.
    if !has(given, "train", "examples") {
        config.train.examples = budget;
    }
    Ok(config)
}

fn has(table: &Table, name: &str, key: &str) -> bool {
    table.get(name).and_then(Value::as_table).is_some_and(|t| t.contains_key(key))
}

fn overlay(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(a)), Value::Table(b)) => overlay(a, b),
            (_, value) => drop(under.insert(key, value)),
        }
    }
}

/// One key and its value as a TOML, or why they belong to no run.
pub(crate) fn alone(key: &str, value: &str) -> Result<Table, String> {
    let alone = single(key, value).ok_or("a key is a table and a name, as in model.layers=6")?;
    Value::Table(alone.clone()).try_into::<RunConfig>().map_err(|e| one_line(e.message()))?;
    Ok(alone)
}

/// `("model.layers", "6")` as a TOML. A value that is no TOML is a string: `data.notation=prefix`.
fn single(key: &str, value: &str) -> Option<Table> {
    let value = toml::from_str::<Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| Value::String(value.into()));
    let (table, name) = key.split_once('.')?;
    let names: Vec<&str> = std::iter::once(table).chain(name.split('.')).collect();
    if names.iter().any(|n| n.is_empty()) {
        return None;
    }
    let nested =
        names.iter().rev().fold(value, |inner, name| Value::Table(Table::from_iter([(name.to_string(), inner)])));
    nested.as_table().cloned()
}

/// What serde says, in one line and without the names of Rust's types.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let whole = "a whole number, at least 0";
    let words = [("usize", whole), ("u64", whole), ("u32", whole), ("f64", "a number"), ("bool", "true or false")];
    let named = words.iter().find_map(|(name, word)| Some((line.strip_suffix(name)?, word)));
    named.map_or_else(|| line.clone(), |(before, word)| format!("{before}{word}"))
}

#[cfg(test)]
mod tests;

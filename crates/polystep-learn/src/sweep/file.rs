//! The sweep's TOML: the tables of a run, and the tables `[grid]` and `[sweep]`. All combinations are checked when the file is
//! read. So no trial is refused after others have run for hours.

use std::ops::Range;
use std::path::Path;

use polystep_core::stream::{Purpose, Streams};
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::grid::{self, GridAxis, Trial};
use polystep_record::RecordError;

use crate::LearnError;
use crate::config::{ConfigError, RunConfig, alone};
use polystep_record::folder::lease_of;
use polystep_record::{Lease, RunFolder, write_whole};

/// More combinations than this are a mistake.
const MOST: usize = 100_000;

/// Keys that change the validation set itself: scores on different sets cannot be ranked.
const OTHER_SET: [&str; 5] = ["data.config", "data.vars", "data.also", "data.setting", "train.valid_proofs"];

/// What happens to a trial that falls behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// It is stopped by the [median rule](super::MedianRule).
    Median,
    /// It runs to its end.
    Never,
}

/// `[sweep]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SweepTable {
    /// How many combinations are tried, drawn at random; all of them, in the grid's order, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,
    /// The seed of that draw.
    pub seed: u64,
    /// `median` or `never`.
    pub stop: StopRule,
    /// Share of its budget that every trial may spend before it is judged.
    pub grace: f64,
    /// How many other trials must have ended before one is judged.
    pub least: usize,
}

impl Default for SweepTable {
    fn default() -> Self {
        SweepTable { runs: None, seed: 1, stop: StopRule::Median, grace: 0.25, least: 3 }
    }
}

/// What is tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The run's tables as they were written. The recipe fills in each combination, not these.
    base: Table,
    /// The keys of the grid, in the file's order.
    pub axes: Vec<GridAxis>,
    /// `[sweep]`.
    pub settings: SweepTable,
    /// Every combination, the last key changing fastest.
    pub combinations: Vec<Trial>,
}

impl Sweep {
    /// Reads a sweep's TOML.
    pub fn from_toml(text: &str) -> Result<Sweep, ConfigError> {
        let wrong = |e: toml::de::Error| ConfigError::of_toml(text, &e);
        let mut document = DeTable::parse(text).map_err(wrong)?;
        // `[slurm]` says where a sweep runs, not what it tries.
        let [grid, settings, _] = ["grid", "sweep", "slurm"].map(|name| document.get_mut().remove(name));
        RunConfig::deserialize(toml::Deserializer::from(document.clone())).map_err(wrong)?;
        let base = Table::deserialize(toml::Deserializer::from(document)).map_err(wrong)?;
        let settings = match settings {
            Some(table) => read_settings(text, table)?,
            None => SweepTable::default(),
        };
        let Some(grid) = grid else {
            return Err(ConfigError::new(
                "there is no [grid]: a sweep needs lists of values, as in \"train.lr\" = [1e-4, 5e-4]",
            ));
        };
        let mut axes = Vec::new();
        read_axes(text, "", grid.span(), grid.get_ref(), &mut axes)?;
        // A TOML table has no order of its own; people expect the order in which they wrote.
        axes.sort_by_key(|(place, _)| *place);
        let axes: Vec<GridAxis> = axes.into_iter().map(|(_, axis)| axis).collect();
        if axes.is_empty() {
            return Err(ConfigError::at(text, grid.span(), "[grid] is empty"));
        }
        let number = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()).filter(|&n| n <= MOST));
        let number = number
            .ok_or_else(|| ConfigError::at(text, grid.span(), format!("[grid] has more than {MOST} combinations")))?;
        let body = base.to_string();
        let combinations = (0..number).map(|n| grid::trial(&body, &axes, n, number)).collect::<Result<_, _>>()?;
        Ok(Sweep { base, axes, settings, combinations })
    }

    /// The trials, in the order in which they run. A random subset is in the order in which it was drawn, so that a larger subset of
    /// the same seed begins with the smaller one.
    pub fn trials(&self) -> Vec<&Trial> {
        let mut trials: Vec<&Trial> = self.combinations.iter().collect();
        if let Some(runs) = self.settings.runs {
            Streams::new(self.settings.seed, Purpose::Shuffle, "sweep").at(0).choose(&mut trials, runs);
            trials.truncate(runs);
        }
        trials
    }

    /// The sweep as a TOML that is kept beside the trials. Reading it gives the same sweep.
    pub fn to_toml(&self) -> String {
        let settings = toml::to_string(&self.settings).unwrap_or_else(|e| format!("# {e}\n"));
        let axis = |axis: &GridAxis| format!("{} = [{}]\n", Value::String(axis.key.clone()), axis.values.join(", "));
        let grid: String = self.axes.iter().map(axis).collect();
        format!(
            "# Written by polystep {} ({}).\n{}\n[grid]\n{grid}\n[sweep]\n{settings}",
            env!("CARGO_PKG_VERSION"),
            crate::COMMIT,
            self.base
        )
    }

    /// Writes the sweep into its folder. An error if the folder has a single run, or if it has a sweep with a trial that is not in
    /// this one with the same settings. So a sweep may grow, but not change.
    pub fn keep(&self, out: &Path) -> Result<(), LearnError> {
        let name = out.display();
        let refuse = |why: String| Err(LearnError::Folder(format!("{name} holds {why}: choose another --out")));
        std::fs::create_dir_all(out).map_err(RecordError::file("make", out))?;
        let _lease = Lease::wait(&lease_of(out))?;
        if RunFolder::new(out).is_begun() {
            return refuse("a run, not a sweep".into());
        }
        let path = out.join("sweep.toml");
        if path.exists() {
            let text = std::fs::read_to_string(&path).map_err(RecordError::file("read", &path))?;
            let earlier = Sweep::from_toml(&text)
                .map_err(|e| LearnError::Folder(format!("{} cannot be read: {e}", path.display())))?;
            if let Some(why) = self.contradiction(&earlier) {
                return refuse(why);
            }
        }
        Ok(write_whole(&path, self.to_toml())?)
    }

    /// How an earlier sweep differs, if it cannot be continued by this one.
    fn contradiction(&self, earlier: &Sweep) -> Option<String> {
        let names = |sweep: &Sweep| sweep.combinations.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
        if self.keys() != earlier.keys() || names(self) != names(earlier) {
            return Some("a sweep over another [grid]".into());
        }
        let mut pairs = earlier.combinations.iter().zip(&self.combinations);
        if let Some((old, new)) = pairs.find(|(old, new)| old.config != new.config) {
            return Some(format!("a sweep of another run ({})", old.difference(&new.config)));
        }
        let mine = self.trials();
        let lost = earlier.trials().iter().filter(|old| mine.iter().all(|new| new.name != old.name)).count();
        let [before, now] = [earlier, self].map(|sweep| sweep.trials().len());
        (lost > 0).then(|| {
            format!(
                "a sweep of {before} trials, {lost} of which are not among these {now} (runs may grow, the seed stays)"
            )
        })
    }

    /// The keys of the grid.
    pub fn keys(&self) -> Vec<&str> {
        self.axes.iter().map(|axis| axis.key.as_str()).collect()
    }
}

fn read_settings(text: &str, table: Spanned<DeValue<'_>>) -> Result<SweepTable, ConfigError> {
    let span = table.span();
    let settings = SweepTable::deserialize(toml::de::ValueDeserializer::from(table))
        .map_err(|e| ConfigError::of_toml(text, &e))?;
    let refuse = |wrong: bool, why: &str| if wrong { Err(ConfigError::at(text, span.clone(), why)) } else { Ok(()) };
    refuse(settings.runs == Some(0), "sweep.runs must be at least 1")?;
    refuse(settings.seed > i64::MAX as u64, "sweep.seed must be below 2^63")?;
    refuse(!(0.0..=1.0).contains(&settings.grace), "sweep.grace is a share of the budget, 0 to 1")?;
    refuse(settings.least == 0, "sweep.least must be at least 1")?;
    Ok(settings)
}

/// Every list below `[grid]`, with its place in the text. `"model.d"`, `model.d` and `[grid.model] d` are one key.
fn read_axes(
    text: &str,
    key: &str,
    place: Range<usize>,
    value: &DeValue<'_>,
    axes: &mut Vec<(usize, GridAxis)>,
) -> Result<(), ConfigError> {
    let refuse = |span: Range<usize>, why: String| Err(ConfigError::at(text, span, why));
    match value {
        DeValue::Table(table) => table.iter().try_for_each(|(name, value)| {
            let key = if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
            read_axes(text, &key, name.span(), value.get_ref(), axes)
        }),
        DeValue::Array(list) => {
            if OTHER_SET.contains(&key) || key.starts_with("space.") {
                return refuse(place, format!("{key} changes the validation set: make a sweep for each value"));
            }
            if axes.iter().any(|(_, axis)| axis.key == key) {
                return refuse(place, format!("{key} stands twice in [grid]"));
            }
            let (mut values, mut meanings) = (Vec::new(), Vec::new());
            for item in list.iter() {
                let value = match item.get_ref() {
                    DeValue::String(string) => Value::String(string.to_string()).to_string(),
                    _ => text[item.span()].to_owned(),
                };
                let meaning = match alone(key, &value) {
                    Ok(meaning) => meaning,
                    Err(why) => return refuse(place, format!("{key} = {value}: {why}")),
                };
                if meanings.contains(&meaning) {
                    return refuse(item.span(), format!("{key} has {value} twice"));
                }
                meanings.push(meaning);
                values.push(value);
            }
            if values.is_empty() {
                return refuse(place, format!("{key} has no values"));
            }
            axes.push((place.start, GridAxis { key: key.to_owned(), values }));
            Ok(())
        }
        _ => refuse(place, format!("{key} must be a list of values")),
    }
}

#[cfg(test)]
mod tests;

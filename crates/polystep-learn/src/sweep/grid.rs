//! The combinations of a grid. They are counted like an odometer: the last key changes fastest. A trial is named by its place
//! in the whole grid, not by when it runs. So its folder keeps its name when a random subset grows.

use crate::config::{ConfigError, RunConfig};

/// A key of the grid with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridAxis {
    /// The key, such as `model.d`.
    pub key: String,
    /// The values, as TOML.
    pub values: Vec<String>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The name of its folder: its place in the grid, from 1, and its values.
    pub name: String,
    /// A value for each key of the grid, as people read it.
    pub values: Vec<String>,
    /// The run.
    pub config: RunConfig,
}

impl Trial {
    /// The first line in which another configuration differs from the trial's.
    pub fn difference(&self, other: &RunConfig) -> String {
        let [was, is] = [self.config.to_toml(), other.to_toml()];
        let differs = was.lines().zip(is.lines()).find(|(a, b)| a != b);
        differs.map_or("its configuration changed".into(), |(a, b)| format!("it had {a}, not {b}"))
    }
}

/// Combination `n` of `number`.
pub(super) fn trial(base: &str, axes: &[GridAxis], n: usize, number: usize) -> Result<Trial, ConfigError> {
    let mut rest = n;
    let mut chosen: Vec<(String, String)> = axes
        .iter()
        .rev()
        .map(|axis| {
            let value = axis.values[rest % axis.values.len()].clone();
            rest /= axis.values.len();
            (axis.key.clone(), value)
        })
        .collect();
    chosen.reverse();
    let config = RunConfig::from_toml(base, &chosen).map_err(|e| {
        let combination: Vec<String> = chosen.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        ConfigError::new(format!("the combination {}: {e}", combination.join(", ")))
    })?;
    let values: Vec<String> = chosen.iter().map(|(_, value)| value.trim_matches('"').to_owned()).collect();
    let digits = number.to_string().len().max(3);
    let name = format!("{:0digits$}-{}", n + 1, values.join("-"));
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "-");
    Ok(Trial { name, values, config })
}

//! A run's configuration as the command line reads it: the TOML file, and `--set` on top of it.

use std::path::Path;

use polystep_learn::config::RunConfig;

use crate::failure::{Result, bad_config, bad_input};

/// The text of a file that the user named.
pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| {
        let looked = match path.is_relative() && e.kind() == std::io::ErrorKind::NotFound {
            true => crate::output::working_folder(),
            false => String::new(),
        };
        bad_input(format!("cannot read {}: {e}{looked}", path.display()))
    })
}

/// A run's TOML, which the user knows as `name`, with overrides.
pub fn parse(name: &str, text: &str, overrides: &[(String, String)]) -> Result<RunConfig> {
    RunConfig::from_toml(text, overrides).map_err(|e| bad_config(e, name, text))
}

/// `--set KEY=VALUE`, given several times.
pub fn assignments(set: &[String]) -> Result<Vec<(String, String)>> {
    let one = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| bad_input(format!("--set {text}: write a key and its value, as in model.layers=6")))?;
        Ok((key.trim().into(), value.trim().into()))
    };
    set.iter().map(one).collect()
}

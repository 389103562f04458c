//! What the model in a folder was set up with: a run's `config.toml`, or the `config.json` of a folder that `export` made.
//!
//! `export` puts the run's configuration under the key [`ENTRY`] of `config.json`. `transformers` keeps keys that it does not
//! know, so the entry is still there after fine-tuning and `save_pretrained`. The shape of the model is read from the keys of
//! `transformers` itself.

use std::path::Path;

use polystep_record::RunFolder;
use serde::Deserialize;
use serde_json::Value;

use super::{ConfigError, RunConfig};
use crate::model::{ENTRY, ModelConfig};

impl RunConfig {
    /// What the model in a folder was set up with.
    pub fn stored(folder: &Path) -> Result<RunConfig, ConfigError> {
        let run = RunFolder::new(folder);
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|e| ConfigError::new(format!("cannot read {}: {e}", path.display())))
        };
        if run.is_begun() {
            let path = run.config();
            let named = |e: ConfigError| ConfigError::new(format!("{}, {e}", path.display()));
            return RunConfig::from_toml(&read(&path)?, &[]).map_err(named);
        }
        let path = run.exported();
        if !path.exists() {
            let why = "there is no config.toml in it, and no config.json of an export";
            return Err(ConfigError::new(format!("{} holds no run: {why}", folder.display())));
        }
        let named = |why: String| ConfigError::new(format!("{}: {why}", path.display()));
        let document: Value = serde_json::from_str(&read(&path)?).map_err(|e| named(e.to_string()))?;
        let model = ModelConfig::of_transformers(&document).map_err(|e| named(e.to_string()))?;
        let entry = document.get(ENTRY).ok_or_else(|| {
            named(format!("it has no entry `{ENTRY}`, which says what the model learned: export the run again"))
        })?;
        let stored = RunConfig::deserialize(entry).map_err(|e| named(format!("{ENTRY}: {e}")))?;
        let config = RunConfig { model, ..stored };
        config.check().map_err(|e| named(e.to_string()))?;
        Ok(config)
    }
}

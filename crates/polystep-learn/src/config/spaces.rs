//! The spaces of a run's TOML: the paper's, by their keys, and the user's own.
//!
//! Wherever a key of the paper stands (`data.config`, `data.also`, `data.guard`, the tasks of a curriculum), a file `NAME.toml`
//! with a `[space]` table may stand. It is read once, relative to the folder in which polystep runs. Its table takes its place:
//! as `[space]` for `data.config`, else as `[spaces.KEY]`. So a run's folder holds everything that the run was set up with.

use std::path::Path;

use polystep_core::space::is_reserved;
use polystep_core::{Space, SpaceTable};

use super::{ConfigError, RunConfig};
use crate::error::one_line;

/// Whether a text names a space by its file.
pub fn is_space_file(text: &str) -> bool {
    Path::new(text).extension().is_some_and(|ending| ending == "toml")
}

/// The `[space]` table of a file.
pub fn read_space(path: &str) -> Result<SpaceTable, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|e| ConfigError::new(format!("cannot read {path}: {e}")))?;
    let wrong = |e: polystep_core::SpaceError| match e {
        polystep_core::SpaceError::Toml { message, span } => {
            let line = span.map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            ConfigError::new(format!("{path}, line {line}: {}", one_line(&message)))
        }
        e => ConfigError::new(format!("{path}: {e}")),
    };
    let table = SpaceTable::from_toml(&text).map_err(wrong)?;
    table.resolve().and_then(|space| space.validate(1)).map_err(wrong)?;
    Ok(table)
}

impl RunConfig {
    /// Reads every space that is named by its file.
    pub(super) fn read_spaces(&mut self) -> Result<(), ConfigError> {
        if is_space_file(&self.data.config) {
            if self.space.is_some() {
                return Err(ConfigError::new("data.config names a file, and there is a [space] too: give one of them"));
            }
            self.space = Some(read_space(&self.data.config)?);
        }
        let mut data = std::mem::take(&mut self.data);
        for set in data.also.iter_mut().map(|also| &mut also.set).chain(&mut data.guard.sets) {
            self.keep(&mut set.config)?;
        }
        self.data = data;
        if let Some(mut curriculum) = self.curriculum.take() {
            let edges = curriculum.edges.iter_mut().flat_map(|(before, after)| [before, after]);
            for task in curriculum.tasks.iter_mut().chain(edges) {
                self.keep(task)?;
            }
            self.curriculum = Some(curriculum);
        }
        Ok(())
    }

    /// Replaces the name of a file by the key of its space, and keeps its table.
    fn keep(&mut self, name: &mut String) -> Result<(), ConfigError> {
        if !is_space_file(name) {
            return Ok(());
        }
        let table = read_space(name)?;
        let key = table.key().to_owned();
        let known = self.spaces.get(&key).or(self.space.as_ref().filter(|space| space.key() == key));
        if known.is_some_and(|known| *known != table) {
            let why = format!("{name}: another space of this run has the key `{key}`: give one of them another key");
            return Err(ConfigError::new(why));
        }
        if known.is_none() {
            self.spaces.insert(key.clone(), table);
        }
        *name = key;
        Ok(())
    }

    /// The space of a key: the user's own, or the paper's in the run's setting.
    pub fn space_of(&self, key: &str) -> Result<Space, ConfigError> {
        let home = self.space.as_ref().filter(|space| space.key() == key);
        let space = match home.or_else(|| self.spaces.get(key)) {
            Some(own) => own.resolve().map(|space| Space { key: key.to_owned(), ..space }),
            None => Space::in_setting(key, self.data.setting),
        };
        space.map_err(|e| ConfigError::new(e.to_string()))
    }

    /// An error if a key of `[spaces]` belongs to another space.
    pub(super) fn check_spaces(&self) -> Result<(), ConfigError> {
        for (key, table) in &self.spaces {
            let wrong = |why: &str| Err(ConfigError::new(format!("[spaces.{key}]: {why}")));
            if is_reserved(key) {
                return wrong("this key is reserved for a space of the paper: give your space another key");
            }
            if self.space.as_ref().is_some_and(|space| space.key() == key && space != table) {
                return wrong("[space] has this key too: give one of them another key");
            }
            if table.key.as_ref().is_some_and(|own| own != key) {
                return wrong("its own key is another one: leave it out");
            }
            self.space_of(key)?;
        }
        Ok(())
    }
}

//! A run of the paper's tables: what it is trained on, how, and its one name.
//!
//! The name leaves out what is usual (plain, recipe fast, seed 1), so that `large_coeff-1-coarse-infix` is the same folder for
//! every table, machine and day. The recipe is part of it: `paper` and `fast` never mix.

use polystep_record::paper::{cell, lookup};
use polystep_record::{Keys, PaperSetting, Recipe, key_text};

/// A model that a table needs.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// What it is trained on.
    pub keys: Keys,
    /// How.
    pub recipe: Recipe,
    /// From which seed.
    pub seed: u64,
    /// The name of a run of one's own table, whose keys may not tell it from others; none for the paper's.
    pub own: Option<&'static str>,
}

impl Experiment {
    /// The name of its folder.
    pub fn name(&self) -> String {
        let Keys { vars, config, setting, curriculum, .. } = &self.keys;
        let steps = match setting {
            Some(PaperSetting::Endpoint) => PaperSetting::Endpoint.to_string(),
            _ => key_text(&self.keys.granularity),
        };
        let notation = key_text(&self.keys.notation);
        let suffix = match setting {
            None | Some(PaperSetting::Plain | PaperSetting::Endpoint) => "",
            Some(PaperSetting::Curriculum) => curriculum,
            Some(other) => other.name(),
        };
        let (mut name, suffix) = match self.own {
            Some(own) => (own.to_owned(), ""),
            None => (format!("{config}-{vars}-{steps}-{notation}"), suffix),
        };
        for part in [suffix, if self.recipe == Recipe::Paper { "paper" } else { "" }] {
            if !part.is_empty() {
                name += &format!("-{part}");
            }
        }
        if self.seed != 1 {
            name += &format!("-seed{}", self.seed);
        }
        name
    }

    /// Hyper-parameters that the paper states, as keys of a run's TOML: its search found them. A `tuned` row has them in either
    /// recipe; a calculator's belong to the paper's own recipe only, where the paper compares with tuned models. They are in
    /// `var1comboerrors`; `var1combo` has the same models.
    pub fn hyper(&self) -> Option<[(&'static str, String); 4]> {
        let stated = match self.keys.setting {
            Some(PaperSetting::Tuned) => true,
            Some(PaperSetting::Calculator) => self.recipe == Recipe::Paper,
            _ => false,
        };
        let text = |column| cell("var1comboerrors", &self.keys, column).filter(|_| stated);
        let size = if text("size")? == "tr-l" { "L" } else { "S" };
        let dropout: f64 = text("dropout")?.parse().ok()?;
        Some([
            ("model.size", format!("{size:?}")),
            ("model.d", text("emb")?.to_owned()),
            ("model.dropout", format!("{dropout:?}")),
            ("train.batch", text("batch")?.to_owned()),
        ])
    }

    /// Its configuration as keys of a run's TOML, to be laid over its recipe.
    pub fn overrides(&self) -> Vec<(String, String)> {
        let Keys { vars, config, setting, granularity, notation, curriculum, .. } = &self.keys;
        let endpoint = self.keys.is(PaperSetting::Endpoint);
        let text = |text: &str| format!("{text:?}");
        let mut all = vec![("train.recipe", text(self.recipe.name()))];
        all.push(("data.config", text(config)));
        all.push(("data.vars", vars.to_string()));
        all.extend(setting.map(|setting| ("data.setting", text(setting.setting().name()))));
        all.extend(granularity.filter(|_| !endpoint).map(|steps| ("data.granularity", text(&steps.to_string()))));
        all.extend(notation.map(|notation| ("data.notation", text(notation.name()))));
        all.push(("data.seed", self.seed.to_string()));
        if !curriculum.is_empty() {
            all.push(("curriculum.name", text(curriculum)));
        }
        all.extend(self.hyper().into_iter().flatten());
        // The recipe itself knows the budgets of plain rows only.
        if self.recipe == Recipe::Paper {
            let column = if endpoint { "endpoint_train_examples" } else { "train_examples" };
            if let Some(examples) = lookup(&self.keys).into_iter().find(|p| p.column == column) {
                all.push(("train.examples", examples.text.to_owned()));
            }
        }
        all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// The size of a resolved configuration's model, as the ledger names it: `S`, `L`, and the width where it is not 256: `L-512`.
pub fn size_of_config(config: &toml::Table) -> String {
    let model = config.get("model");
    let size = model.and_then(|m| m.get("size")?.as_str()).unwrap_or_default();
    match model.and_then(|m| m.get("d")?.as_integer()) {
        Some(256) | None => size.to_owned(),
        Some(d) => format!("{size}-{d}"),
    }
}

//! What a model was trained on, in the words of the paper's tables.

use std::fmt::Display;
use std::str::FromStr;

use polystep_core::{Granularity, Notation, Setting, Style, TermOrder, Writing, named};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::test_set::{TestSet, WeightedSet, as_texts};

/// A setting of the paper's tables: those of a proof, and two ways of training on plain proofs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PaperSetting {
    /// State to state.
    Plain,
    /// Plain proofs, with hyper-parameters that a search found.
    Tuned,
    /// Coefficients are left to a calculator.
    Calculator,
    /// Operands are marked.
    Annotated,
    /// Plain proofs, learned by a curriculum.
    Curriculum,
    /// The one-shot model: start to endpoint.
    Endpoint,
    /// The arithmetic probe.
    Arithmetic,
}

named!(
    PaperSetting, "setting":
    Plain "plain", Tuned "tuned", Calculator "calculator", Annotated "annotated", Curriculum "curriculum",
    Endpoint "endpoint", Arithmetic "arithmetic"
);

impl PaperSetting {
    /// The first setting of the tables whose proofs are written so: of plain proofs, `plain` itself.
    fn of(setting: Setting) -> Option<PaperSetting> {
        PaperSetting::ALL.into_iter().find(|paper| paper.setting() == setting)
    }

    /// How its proofs are written.
    pub fn setting(self) -> Setting {
        match self {
            PaperSetting::Plain | PaperSetting::Tuned | PaperSetting::Curriculum => Setting::Plain,
            PaperSetting::Calculator => Setting::Calculator,
            PaperSetting::Annotated => Setting::Annotated,
            PaperSetting::Endpoint => Setting::Endpoint,
            PaperSetting::Arithmetic => Setting::Arithmetic,
        }
    }
}

/// The keys that identify a row of the paper's tables. A key that is unknown or does not apply is empty in files and `None` here.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Keys {
    /// Number of variables.
    pub vars: u32,
    /// `medium_coeff`, …
    pub config: String,
    /// The setting; endpoint for the one-shot model.
    #[serde(with = "or_empty")]
    pub setting: Option<PaperSetting>,
    /// How large the steps are.
    #[serde(with = "or_empty")]
    pub granularity: Option<Granularity>,
    /// How states are written.
    #[serde(with = "or_empty")]
    pub notation: Option<Notation>,
    /// C, C2, C4, `own`, or empty.
    #[serde(default)]
    pub curriculum: String,
    /// Further spaces that the model learned beside its own, as `config:vars`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "as_texts")]
    pub also: Vec<TestSet>,
}

/// A key as it is written in tables and files: empty if there is none.
pub fn key_text<T: Display>(key: &Option<T>) -> String {
    key.as_ref().map_or(String::new(), T::to_string)
}

/// The table `[data]` of a configuration, as far as the keys and the writing need it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct DataKeys {
    config: String,
    vars: Option<u32>,
    also: Vec<WeightedSet>,
    #[serde(with = "or_empty")]
    setting: Option<Setting>,
    #[serde(with = "or_empty")]
    granularity: Option<Granularity>,
    #[serde(with = "or_empty")]
    notation: Option<Notation>,
    order: TermOrder,
    ones: bool,
}

/// Why a configuration has no keys.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum KeysError {
    /// Its table `[data]` cannot be understood.
    #[error("[data]: {}", .0.message())]
    Data(toml::de::Error),
}

impl Keys {
    /// The keys of a resolved configuration, and the style in which its states are written. An unknown word is an error that names
    /// the table and the word.
    pub fn of_config(config: &toml::Table) -> Result<(Keys, Style), KeysError> {
        let data = config.get("data").cloned().unwrap_or_else(|| toml::Table::new().into());
        let data: DataKeys = data.try_into().map_err(KeysError::Data)?;
        let curriculum = config.get("curriculum").and_then(toml::Value::as_table);
        // The user's own graph has no name.
        let name = curriculum.map(|table| table.get("name").and_then(toml::Value::as_str));
        let DataKeys { config, vars, also, setting, granularity, notation, order, ones } = data;
        let also = also.into_iter().map(|also| also.set).collect();
        let keys = Keys { vars: vars.unwrap_or(1), config, granularity, notation, also, ..Keys::default() };
        Ok((keys.trained(setting, name), Style { order, ones }))
    }

    /// The same keys for a setting and a curriculum. The outer option says whether there is a curriculum, the inner one its name.
    pub fn trained(self, setting: Option<Setting>, curriculum: Option<Option<&str>>) -> Keys {
        let setting = match (setting, curriculum) {
            (Some(Setting::Plain), Some(_)) => Some(PaperSetting::Curriculum),
            (setting, _) => setting.and_then(PaperSetting::of),
        };
        let curriculum = curriculum.map_or("", |name| name.unwrap_or("own")).to_owned();
        Keys { setting, curriculum, ..self }
    }

    /// How proofs with these keys are written. An unknown key has its default.
    pub fn writing(&self, style: Style) -> Writing {
        Writing {
            setting: self.setting.map_or_else(Setting::default, PaperSetting::setting),
            granularity: self.granularity.unwrap_or_default(),
            notation: self.notation.unwrap_or_default(),
            style,
        }
    }

    /// Whether the model belongs to a setting of the paper.
    pub fn is(&self, setting: PaperSetting) -> bool {
        self.setting == Some(setting)
    }

    /// The set of the space that the model is named after.
    pub fn home(&self) -> TestSet {
        TestSet::new(&self.config, self.vars)
    }

    /// The keys of the row for one test set, if the model was trained on its space. For a model of several spaces each of
    /// them is a home.
    pub fn at_home(&self, config: &str, vars: u32) -> Option<Keys> {
        let set = TestSet::new(config, vars);
        (self.home() == set || self.also.contains(&set)).then(|| Keys { config: set.config, vars, ..self.clone() })
    }

    /// The row's name for people: `1 variable · medium_coeff · plain · coarse · prefix`.
    pub fn title(&self) -> String {
        let notation = key_text(&self.notation);
        if self.is(PaperSetting::Arithmetic) {
            return format!("arithmetic probe · {} · {notation}", self.config);
        }
        let vars = if self.vars == 1 { "1 variable".to_owned() } else { format!("{} variables", self.vars) };
        let mut parts = vec![vars, self.config.clone(), key_text(&self.setting)];
        if !self.also.is_empty() {
            let more = self.also.len();
            parts.insert(2, format!("and {more} more space{}", if more == 1 { "" } else { "s" }));
        }
        if !self.is(PaperSetting::Endpoint) {
            parts.push(key_text(&self.granularity));
        }
        parts.extend([notation, self.curriculum.clone()]);
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }
}

/// A value as its text, or an empty text.
mod or_empty {
    use super::*;

    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&key_text(value))
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
        let text = String::deserialize(d)?;
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(de::Error::custom) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Keys, KeysError> {
        Keys::of_config(&toml::from_str(text).unwrap()).map(|(keys, _)| keys)
    }

    #[test]
    fn what_is_not_known_is_empty() {
        let empty = r#"{"vars":0,"config":"","setting":"","granularity":"","notation":"","curriculum":""}"#;
        assert_eq!(serde_json::to_string(&Keys::default()).unwrap(), empty);
        assert_eq!(serde_json::from_str::<Keys>(empty).unwrap(), Keys::default());
        assert_eq!(read("").unwrap(), Keys { vars: 1, ..Keys::default() });
    }

    /// An unknown word must not become the default.
    #[test]
    fn a_misspelt_key_is_an_error() {
        let refused = |line: &str| read(&format!("[data]\n{line}\n")).unwrap_err().to_string();
        assert!(refused("setting = \"plane\"").starts_with("[data]: unknown setting `plane`: plain, calculator, "));
        assert!(refused("notation = \"infixed\"").starts_with("[data]: unknown notation `infixed`"));
        assert!(refused("granularity = \"courser\"").starts_with("[data]: unknown granularity `courser`"));
        let forged = r#"{"vars":1,"config":"a","setting":"plane","granularity":"","notation":"","curriculum":""}"#;
        assert!(serde_json::from_str::<Keys>(forged).unwrap_err().to_string().starts_with("unknown setting `plane`"));
    }

    #[test]
    fn every_space_a_model_learned_is_a_home() {
        let keys =
            "[data]\nconfig = \"small_coeff\"\nsetting = \"plain\"\ngranularity = \"coarse\"\nnotation = \"infix\"\n";
        assert_eq!(read(keys).unwrap().at_home("large_coeff", 2), None);
        let both = read(&format!("{keys}also = [\"large_coeff:2\"]\n")).unwrap();
        assert_eq!(both.title(), "1 variable · small_coeff · and 1 more space · plain · coarse · infix");
        assert_eq!(both.at_home("large_coeff", 2).unwrap().home(), TestSet::new("large_coeff", 2));
    }
}

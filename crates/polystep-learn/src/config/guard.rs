//! `data.guard`: which evaluation sets training never meets.
//!
//! A scope (`guard = "own"`), further sets (`guard = ["longer.toml:1"]`, of scope `all`), or both (`guard = ["long", "longer.toml:1"]`).
//! A list without a scope is how earlier versions wrote it.

use polystep_core::GuardScope;
use polystep_record::TestSet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What training is guarded against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuardSetting {
    /// Whose sets: of the spaces that are learned, of all spaces of the paper, or the long ones too.
    pub scope: GuardScope,
    /// Further sets.
    pub sets: Vec<TestSet>,
}

impl GuardSetting {
    /// Whether it is what a run has that does not say otherwise.
    pub fn is_default(&self) -> bool {
        *self == GuardSetting::default()
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write all, own or long, or a list of sets, as in [\"longer.toml:1\"]")]
enum Written {
    Scope(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for GuardSetting {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<GuardSetting, D::Error> {
        let list = match Written::deserialize(d)? {
            Written::Scope(name) => {
                let scope = name.parse().map_err(D::Error::custom)?;
                return Ok(GuardSetting { scope, sets: Vec::new() });
            }
            Written::List(list) => list,
        };
        let (scopes, sets): (Vec<_>, Vec<_>) = list.iter().partition(|text| text.parse::<GuardScope>().is_ok());
        let scope = match scopes[..] {
            [] => GuardScope::default(),
            [name] => name.parse().map_err(D::Error::custom)?,
            _ => return Err(D::Error::custom("several of all, own and long: give one of them")),
        };
        let set = |text: &String| text.parse().map_err(|why| D::Error::custom(format!("\"{text}\": {why}")));
        Ok(GuardSetting { scope, sets: sets.into_iter().map(set).collect::<Result<_, _>>()? })
    }
}

impl Serialize for GuardSetting {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let scope = Some(self.scope.name()).filter(|_| self.scope != GuardScope::default());
        match scope {
            Some(name) if self.sets.is_empty() => s.serialize_str(name),
            scope => {
                s.collect_seq(scope.map(str::to_owned).into_iter().chain(self.sets.iter().map(ToString::to_string)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Table {
        guard: GuardSetting,
    }

    #[test]
    fn a_scope_sets_or_both_are_read_as_they_are_written() {
        let sets = vec![TestSet::new("longer.toml", 1)];
        for (text, scope, sets) in [
            ("\"own\"", GuardScope::Own, &[][..]),
            ("\"long\"", GuardScope::Long, &[]),
            ("[\"longer.toml:1\"]", GuardScope::All, &sets),
            ("[\"own\", \"longer.toml:1\"]", GuardScope::Own, &sets),
        ] {
            let text = format!("guard = {text}\n");
            let table: Table = toml::from_str(&text).unwrap();
            assert_eq!(table.guard, GuardSetting { scope, sets: sets.to_vec() });
            assert_eq!(toml::to_string(&table).unwrap(), text);
        }
        let all: Table = toml::from_str("guard = \"all\"").unwrap();
        assert!(all.guard.is_default());
        let refused = |text: &str| toml::from_str::<Table>(text).unwrap_err().to_string();
        assert!(refused("guard = \"none\"").contains("unknown guard `none`: own, all or long"));
        assert!(refused("guard = [\"own\", \"long\"]").contains("give one of them"));
        assert!(refused("guard = [\"longer\"]").contains("\"longer\": write a configuration"));
        assert!(refused("guard = 3").contains("write all, own or long"));
    }
}

//! A test set, written `config:vars`, as in `large_coeff:1`. A space of one's own has its key there, or the name of its file
//! where a person writes it: `longer.toml:1`.

use std::fmt;
use std::str::FromStr;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// The test set of one space.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TestSet {
    /// The space.
    pub config: String,
    /// Its number of variables.
    pub vars: u32,
}

impl TestSet {
    /// The set of a space.
    pub fn new(config: impl Into<String>, vars: u32) -> TestSet {
        TestSet { config: config.into(), vars }
    }

    /// The name of its folder among a run's predictions. A sub-task's key has a slash (`small_coeff/add`), which a folder
    /// cannot have.
    pub fn folder_name(&self) -> String {
        format!("{}-{}", self.config.replace('/', "-"), self.vars)
    }
}

impl fmt::Display for TestSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.config, self.vars)
    }
}

/// A text that names no test set.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("write a configuration, or a file with a [space] table, and a number of variables, as in large_coeff:1")]
pub struct NoTestSet;

impl FromStr for TestSet {
    type Err = NoTestSet;

    fn from_str(text: &str) -> Result<TestSet, NoTestSet> {
        let parsed = text.rsplit_once(':').and_then(|(config, vars)| Some(TestSet::new(config, vars.parse().ok()?)));
        parsed.ok_or(NoTestSet)
    }
}

/// A space that is learned beside others, and how many of the drawn proofs are its own, relative to the others. In files it is
/// the text of its set, or, with a weight other than 1, the table `{ space = "no_backtrack:1", weight = 2 }`.
#[derive(Clone, PartialEq, Debug)]
pub struct WeightedSet {
    /// The space.
    pub set: TestSet,
    /// Its weight.
    pub weight: f64,
}

impl From<TestSet> for WeightedSet {
    fn from(set: TestSet) -> Self {
        WeightedSet { set, weight: 1.0 }
    }
}

impl Serialize for WeightedSet {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.weight == 1.0 {
            return s.collect_str(&self.set);
        }
        let mut table = s.serialize_struct("WeightedSet", 2)?;
        table.serialize_field("space", &self.set.to_string())?;
        table.serialize_field("weight", &self.weight)?;
        table.end()
    }
}

impl<'de> Deserialize<'de> for WeightedSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            space: String,
            weight: f64,
        }
        struct TextOrTable;
        impl<'de> de::Visitor<'de> for TextOrTable {
            type Value = WeightedSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a space, as \"large_coeff:1\" or { space = \"large_coeff:1\", weight = 2 }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WeightedSet, E> {
                let set: Result<TestSet, E> = text.parse().map_err(|why| E::custom(format!("\"{text}\": {why}")));
                Ok(set?.into())
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<WeightedSet, A::Error> {
                let Table { space, weight } = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(WeightedSet { weight, ..self.visit_str(&space)? })
            }
        }
        d.deserialize_any(TextOrTable)
    }
}

/// Lists of values in files, each as its text.
pub mod as_texts {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes the texts.
    pub fn serialize<T: Display, S: Serializer>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(values.iter().map(ToString::to_string))
    }

    /// Reads the texts. An error names the text.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(d: D) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(d)?;
        let parse = |text: &String| text.parse().map_err(|why| de::Error::custom(format!("\"{text}\": {why}")));
        texts.iter().map(parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_written_where_it_counts() {
        let sets = [WeightedSet::from(TestSet::new("a", 1)), WeightedSet { set: TestSet::new("b", 2), weight: 0.5 }];
        let text = serde_json::to_string(&sets).unwrap();
        assert_eq!(text, r#"["a:1",{"space":"b:2","weight":0.5}]"#);
        assert_eq!(serde_json::from_str::<Vec<WeightedSet>>(&text).unwrap(), sets);
        let wrong = |text| serde_json::from_str::<WeightedSet>(text).unwrap_err().to_string();
        assert!(wrong(r#""a""#).starts_with("\"a\": write a configuration"));
        assert!(wrong(r#"{"space":"a:1"}"#).contains("missing field `weight`"));
        assert!(wrong(r#"{"space":"a:1","weight":1,"x":1}"#).contains("unknown field `x`"));
        assert!(wrong("3").contains("expected a space, as \"large_coeff:1\""));
    }

    #[test]
    fn reads_what_it_prints() {
        let set = TestSet::new("small_coeff/add", 2);
        assert_eq!(set.to_string(), "small_coeff/add:2");
        assert_eq!(set.to_string().parse(), Ok(set.clone()));
        assert_eq!(set.folder_name(), "small_coeff-add-2");
        assert!("small_coeff".parse::<TestSet>().is_err() && "small_coeff:x".parse::<TestSet>().is_err());
    }
}

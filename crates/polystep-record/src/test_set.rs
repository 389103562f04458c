//! A test set, written `config:vars`, as in `large_coeff:1`. A space of one's own has its key there, or the name of its file
//! where a person writes it: `longer.toml:1`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
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
    fn reads_what_it_prints() {
        let set = TestSet::new("small_coeff/add", 2);
        assert_eq!(set.to_string(), "small_coeff/add:2");
        assert_eq!(set.to_string().parse(), Ok(set.clone()));
        assert_eq!(set.folder_name(), "small_coeff-add-2");
        assert!("small_coeff".parse::<TestSet>().is_err() && "small_coeff:x".parse::<TestSet>().is_err());
    }
}

//! A user's own space: the `[space]` table of a TOML file.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Coefficients, Count, Degrees, KEYS, Retry, Space, SpaceError, Subtask, Terms, Variables};
use crate::arithmetic;

/// Caps on numbers of products and factors; at least two of each are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table as in { products = 3, factors = 3 }")]
pub struct Max {
    /// Products of a polynomial.
    pub products: u32,
    /// Factors of a product.
    pub factors: u32,
}

/// The `[space]` table of a TOML file: what is left out is taken from `base`, the paper's default if there is none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpaceTable {
    /// Its name; `custom` if none is given. A [reserved](is_reserved) name is refused.
    #[serde(deserialize_with = "own_key")]
    pub key: Option<String>,
    /// The configuration that supplies what is left out.
    pub base: Option<String>,
    /// `coeff = { polynomial = 120, product = 40, factor = 8 }`
    pub coeff: Option<Coefficients>,
    /// `degree = { polynomial = 6, factor = 3 }`
    pub degree: Option<Degrees>,
    /// `terms = { product = 8, factor = 3 }`
    pub terms: Option<Terms>,
    /// `max = { products = 3, factors = 3 }`
    pub max: Option<Max>,
    /// Variables of a product.
    pub vars_prod: Option<usize>,
    /// Variables of a factor.
    pub vars_fac: Option<usize>,
    /// `factor`, `product` or `polynomial`.
    pub retry: Option<Retry>,
    /// `all` or `uniform`.
    pub variables: Option<Variables>,
}

/// Whether no space of a user may have this key: those of the paper, of its sub-tasks and of the arithmetic probe, and `all`.
/// Numbers of another space under such a key would be taken for the paper's. A key in whose folder the predictions of a
/// reserved key lie (`small_coeff-add` for `small_coeff/add`) is reserved, too.
pub fn is_reserved(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('/', "-");
    let named = |name: &str| name == key;
    let subtask = |of: &str| key.strip_prefix(of).and_then(|k| k.strip_prefix('-')).is_some_and(is_subtask);
    KEYS.iter().any(|of| named(of) || subtask(of))
        || arithmetic::KEYS.iter().any(|k| named(k))
        || is_subtask(&key)
        || key == "all"
}

fn is_subtask(name: &str) -> bool {
    name.parse::<Subtask>().is_ok()
}

fn own_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let key = String::deserialize(deserializer)?;
    if is_reserved(&key) {
        let taken = format!("the key `{key}` is reserved for a space of the paper: give your space another key");
        return Err(D::Error::custom(taken));
    }
    Ok(Some(key))
}

impl SpaceTable {
    /// The space it describes.
    pub fn resolve(&self) -> Result<Space, SpaceError> {
        let base = Space::named(self.base.as_deref().unwrap_or("medium_coeff"))?;
        let max = self.max.unwrap_or(Max { products: base.products.max, factors: base.factors.max });
        Ok(Space {
            key: self.key.clone().unwrap_or_else(|| "custom".to_owned()),
            coeff: self.coeff.unwrap_or(base.coeff),
            degree: self.degree.unwrap_or(base.degree),
            terms: self.terms.unwrap_or(base.terms),
            products: Count { min: 2, max: max.products },
            factors: Count { min: 2, max: max.factors },
            vars_prod: self.vars_prod,
            vars_fac: self.vars_fac,
            retry: self.retry.unwrap_or_default(),
            variables: self.variables.unwrap_or_default(),
        })
    }
}

impl Space {
    /// A user's space: a TOML document with a `[space]` table.
    pub fn from_toml(text: &str) -> Result<Space, SpaceError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Document {
            space: SpaceTable,
        }
        let document: Document =
            toml::from_str(text).map_err(|e| SpaceError::Toml { message: e.message().to_owned(), span: e.span() })?;
        document.space.resolve()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_space() {
        let text = "[space]\nbase = \"large_coeff\"\nmax = { products = 4, factors = 2 }\nretry = \"factor\"\n";
        let space = Space::from_toml(text).unwrap();
        assert_eq!((space.coeff.polynomial, space.products.max, space.retry), (300, 4, Retry::Factor));
        assert_eq!(space.validate(2), Ok(()));
    }

    #[test]
    fn the_papers_keys_are_reserved() {
        let read = |key: &str| Space::from_toml(&format!("[space]\nbase = \"small_coeff\"\nkey = \"{key}\"\n"));
        let reserved = "small_coeff Small_Coeff medium_terms small_coeff/add small_coeff-add large_coeff-mixed add mul2 \
                        scoeff arithmetic add4 mul9 all";
        for key in reserved.split(' ') {
            let Err(SpaceError::Toml { message, span }) = read(key) else { panic!("{key}") };
            let taken = format!("the key `{key}` is reserved for a space of the paper: give your space another key");
            assert_eq!((message, span.is_some_and(|s| s.start >= 29)), (taken, true));
        }
        for key in ["small", "small_coeff2", "small_coeff-mine", "my-add", "pairs", "custom"] {
            assert_eq!(read(key).unwrap().key, key);
        }
        assert_eq!(Space::from_toml("[space]\nbase = \"small_coeff\"\n").unwrap().key, "custom");
    }

    #[test]
    fn unknown_keys_are_refused_with_their_place() {
        let text = "[space]\nmax_terms = 3\n";
        let Err(SpaceError::Toml { message, span }) = Space::from_toml(text) else { panic!() };
        assert!(message.contains("unknown field `max_terms`"), "{message}");
        assert_eq!(&text[span.unwrap()], "max_terms");
        assert!(Space::named("huge").unwrap_err().to_string().contains("no_backtrack"));
    }
}

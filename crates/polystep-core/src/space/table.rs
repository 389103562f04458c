//! A user's own space: the `[space]` table of a TOML file.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Coefficients, Count, Degrees, KEYS, Retry, Space, SpaceError, Subtask, Terms, Variables};
use crate::arithmetic;

/// A table of caps, each of which may be left out.
macro_rules! caps {
    ($(#[$doc:meta])* $name:ident, $example:literal: $($(#[$field_doc:meta])* $field:ident $type:ty),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default, expecting = $example)]
        pub struct $name {
            $($(#[$field_doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)+
        }
    };
}

caps! {
    /// `coeff`: the largest coefficients.
    CoeffCaps, "a table as in { polynomial = 120, product = 40, factor = 8 }":
    /// Of the simplified polynomial.
    polynomial u64,
    /// Of a simplified product.
    product u64,
    /// Of a factor as it is sampled.
    factor u64
}

caps! {
    /// `degree`: the largest degrees.
    DegreeCaps, "a table as in { polynomial = 6, factor = 3 }":
    /// Of the simplified polynomial.
    polynomial u32,
    /// Of a factor.
    factor u32
}

caps! {
    /// `terms`: the largest numbers of terms.
    TermCaps, "a table as in { product = 8, factor = 3 }":
    /// Of a simplified product.
    product u32,
    /// Of a factor as it is sampled.
    factor u32
}

caps! {
    /// `max`: the largest numbers of products and factors.
    Max, "a table as in { products = 3, factors = 3 }":
    /// Products of a polynomial.
    products u32,
    /// Factors of a product.
    factors u32
}

caps! {
    /// `min`: the smallest numbers of products, factors and terms.
    Min, "a table as in { products = 2, factors = 2, terms = 1 }":
    /// Products of a polynomial; 2 unless given.
    products u32,
    /// Factors of a product; 2 unless given. A product may end early at 2, where the paper's does; a larger number is kept.
    factors u32,
    /// Terms of a factor as it is sampled; 1 unless given.
    terms u32
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
    pub coeff: Option<CoeffCaps>,
    /// `degree = { polynomial = 6, factor = 3 }`
    pub degree: Option<DegreeCaps>,
    /// `terms = { product = 8, factor = 3 }`
    pub terms: Option<TermCaps>,
    /// `max = { products = 3, factors = 3 }`
    pub max: Option<Max>,
    /// `min = { products = 2, factors = 2, terms = 1 }`
    pub min: Option<Min>,
    /// Variables of a product.
    pub vars_prod: Option<usize>,
    /// Variables of a factor.
    pub vars_fac: Option<usize>,
    /// `factor`, `product` or `polynomial`.
    pub retry: Option<Retry>,
    /// `all` or `uniform`.
    pub variables: Option<Variables>,
    /// Whether terms have signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
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
    /// Its key: its name, or `custom`.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or("custom")
    }

    /// The space it describes. A minimum above the base's maximum raises the maximum, unless that is given too.
    pub fn resolve(&self) -> Result<Space, SpaceError> {
        let base = Space::named(self.base.as_deref().unwrap_or("medium_coeff"))?;
        let (coeff, degree) = (self.coeff.unwrap_or_default(), self.degree.unwrap_or_default());
        let (terms, max, min) =
            (self.terms.unwrap_or_default(), self.max.unwrap_or_default(), self.min.unwrap_or_default());
        let count = |base: Count, min: Option<u32>, max: Option<u32>| {
            let min = min.unwrap_or(base.min);
            Count { min, max: max.unwrap_or(base.max.max(min)) }
        };
        let min_terms = min.terms.unwrap_or(base.min_terms);
        Ok(Space {
            key: self.key().to_owned(),
            coeff: Coefficients {
                polynomial: coeff.polynomial.unwrap_or(base.coeff.polynomial),
                product: coeff.product.unwrap_or(base.coeff.product),
                factor: coeff.factor.unwrap_or(base.coeff.factor),
            },
            degree: Degrees {
                polynomial: degree.polynomial.unwrap_or(base.degree.polynomial),
                factor: degree.factor.unwrap_or(base.degree.factor),
            },
            terms: Terms {
                product: terms.product.unwrap_or(base.terms.product),
                factor: terms.factor.unwrap_or(base.terms.factor.max(min_terms)),
            },
            min_terms,
            products: count(base.products, min.products, max.products),
            factors: count(base.factors, min.factors, max.factors),
            vars_prod: self.vars_prod,
            vars_fac: self.vars_fac,
            retry: self.retry.unwrap_or_default(),
            variables: self.variables.unwrap_or_default(),
            signed: self.signed.unwrap_or_default(),
        })
    }
}

impl SpaceTable {
    /// The `[space]` table of a TOML document that has nothing else.
    pub fn from_toml(text: &str) -> Result<SpaceTable, SpaceError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Document {
            space: SpaceTable,
        }
        let document: Result<Document, _> = toml::from_str(text);
        let wrong = |e: toml::de::Error| SpaceError::Toml { message: e.message().to_owned(), span: e.span() };
        Ok(document.map_err(wrong)?.space)
    }
}

impl Space {
    /// A user's space: a TOML document with a `[space]` table.
    pub fn from_toml(text: &str) -> Result<Space, SpaceError> {
        SpaceTable::from_toml(text)?.resolve()
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
        let text = "[space]\nmin.products = 1\nmax = { products = 1, factors = 2 }\nsigned = true\n";
        let space = Space::from_toml(text).unwrap();
        assert_eq!((space.products, space.signed, space.validate(1)), (Count { min: 1, max: 1 }, true, Ok(())));
    }

    /// A set that asks for more than a model has learned is three lines.
    #[test]
    fn longer_polynomials_are_three_lines() {
        let read = |line: &str| Space::from_toml(&format!("[space]\nbase = \"large_coeff\"\n{line}\n")).unwrap();
        let space = read("min.products = 5");
        assert_eq!((space.products, space.factors.max), (Count { min: 5, max: 5 }, 3));
        let space = read("max.factors = 6");
        assert_eq!((space.factors, space.products.max), (Count { min: 2, max: 6 }, 3));
        let space = read("min.terms = 4");
        assert_eq!((space.min_terms, space.terms.factor, space.terms.product), (4, 4, 8));
        let space = read("coeff.factor = 99");
        assert_eq!((space.coeff.factor, space.coeff.product), (99, 100));
        assert!(read("min = { products = 4, factors = 4 }\nmax.factors = 3").validate(1).is_err());
        assert!(read("min.terms = 4\nterms.factor = 3").validate(1).is_err());
    }

    #[test]
    fn the_papers_keys_are_reserved() {
        let read = |key: &str| Space::from_toml(&format!("[space]\nbase = \"small_coeff\"\nkey = \"{key}\"\n"));
        let reserved = "small_coeff Small_Coeff medium_terms small_coeff/add small_coeff-add large_coeff-mixed add mul2 \
                        scoeff signed large_coeff/signed arithmetic add4 mul9 all";
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

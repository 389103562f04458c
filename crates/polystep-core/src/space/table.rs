//! A user's own space: the `[space]` table of a TOML file.

use serde::{Deserialize, Serialize};

use super::{Coefficients, Count, Degrees, Retry, Space, SpaceError, Terms, Variables};

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
    /// Its name; `custom` if none is given.
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
    fn unknown_keys_are_refused_with_their_place() {
        let text = "[space]\nmax_terms = 3\n";
        let Err(SpaceError::Toml { message, span }) = Space::from_toml(text) else { panic!() };
        assert!(message.contains("unknown field `max_terms`"), "{message}");
        assert_eq!(&text[span.unwrap()], "max_terms");
        assert!(Space::named("huge").unwrap_err().to_string().contains("no_backtrack"));
    }
}

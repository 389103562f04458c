//! How large the steps of a proof are.
//!
//! Three switches say what one step takes: `fac`, `mul` and `sum`. Three combinations have names: `coarse`, `fine` and
//! `fine_counted`. A text is a name, or switches, or a name and switches that change it: `coarse,sum=pair`. Switches without a
//! name change `fine`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named;
use crate::named::UnknownName;

/// What one facstep simplifies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fac {
    /// One factor.
    Factor,
    /// The next term of a factor, with its like terms.
    Term,
    /// All factors of one product.
    Product,
}
named!(Fac, "fac": Factor "factor", Term "term", Product "product");

/// What one mulstep multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mul {
    /// The two leftmost factors.
    Pair,
    /// All factors of one product.
    Product,
}
named!(Mul, "mul": Pair "pair", Product "product");

/// What one sumstep adds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sum {
    /// The two leftmost products.
    Pair,
    /// All products.
    All,
}
named!(Sum, "sum": Pair "pair", All "all");

/// How large a step is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Granularity {
    /// What one facstep simplifies.
    pub fac: Fac,
    /// What one mulstep multiplies.
    pub mul: Mul,
    /// What one sumstep adds.
    pub sum: Sum,
}

impl Granularity {
    /// Whole products at once (the paper's COARSE).
    pub const COARSE: Granularity = Granularity { fac: Fac::Product, mul: Mul::Product, sum: Sum::All };
    /// One factor, two factors, two products (the paper's FINER, as its text has it).
    pub const FINE: Granularity = Granularity { fac: Fac::Factor, mul: Mul::Pair, sum: Sum::Pair };
    /// One factor, whole products, one sum: closer to the steps per proof that the paper's error tables imply.
    pub const FINE_COUNTED: Granularity = Granularity { fac: Fac::Factor, mul: Mul::Product, sum: Sum::All };

    /// The granularities with a name.
    pub const NAMED: [(&'static str, Granularity); 3] =
        [("coarse", Granularity::COARSE), ("fine", Granularity::FINE), ("fine_counted", Granularity::FINE_COUNTED)];

    /// Every granularity there is: those with a name, then every other combination of switches. A step or a prediction does
    /// not say how large it was meant to be; its reader tries these, in this order.
    pub fn known() -> Vec<Granularity> {
        let mut known: Vec<Granularity> = Granularity::NAMED.map(|(_, g)| g).to_vec();
        for fac in Fac::ALL {
            for mul in Mul::ALL {
                for sum in Sum::ALL {
                    let granularity = Granularity { fac, mul, sum };
                    if !known.contains(&granularity) {
                        known.push(granularity);
                    }
                }
            }
        }
        known
    }

    /// How a granularity can be written, for messages and help.
    pub fn syntax() -> String {
        let (fac, mul, sum) = (Fac::ALL.map(Fac::name), Mul::ALL.map(Mul::name), Sum::ALL.map(Sum::name));
        let switches = format!("fac={}, mul={}, sum={}", fac.join("|"), mul.join("|"), sum.join("|"));
        format!("{}, or switches {switches}", Granularity::NAMED.map(|(name, _)| name).join(", "))
    }

    /// The granularity with one switch set; none if there is no such switch.
    fn set(mut self, switch: &str) -> Option<Granularity> {
        match switch.split_once('=')? {
            ("fac", value) => self.fac = value.parse().ok()?,
            ("mul", value) => self.mul = value.parse().ok()?,
            ("sum", value) => self.sum = value.parse().ok()?,
            _ => return None,
        }
        Some(self)
    }

    fn named(name: &str) -> Option<Granularity> {
        Granularity::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, granularity)| granularity)
    }
}

impl Default for Granularity {
    fn default() -> Granularity {
        Granularity::COARSE
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Granularity::NAMED.into_iter().find(|(_, granularity)| granularity == self) {
            Some((name, _)) => f.pad(name),
            None => write!(f, "fac={},mul={},sum={}", self.fac, self.mul, self.sum),
        }
    }
}

impl FromStr for Granularity {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Granularity, UnknownName> {
        let mut granularity = Granularity::FINE;
        for (i, part) in text.split(',').map(str::trim).enumerate() {
            let name = if i == 0 { Granularity::named(part) } else { None };
            granularity = name.or_else(|| granularity.set(part)).ok_or_else(|| UnknownName {
                what: "granularity",
                found: part.to_owned(),
                known: Granularity::syntax(),
            })?;
        }
        Ok(granularity)
    }
}

impl TryFrom<String> for Granularity {
    type Error = UnknownName;

    fn try_from(text: String) -> Result<Granularity, UnknownName> {
        text.parse()
    }
}

impl From<Granularity> for String {
    fn from(granularity: Granularity) -> String {
        granularity.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_granularity_can_be_read_back() {
        for granularity in Granularity::known() {
            let text = granularity.to_string();
            assert_eq!(text.parse(), Ok(granularity));
            for switch in text.split(',').filter_map(|part| part.split_once('=')) {
                assert!(
                    Granularity::syntax().contains(&format!("{}=", switch.0)),
                    "the message leaves out {}",
                    switch.0
                );
            }
        }
        for name in ["coarse", "fine", "fine_counted", "fac=term,mul=pair,sum=pair", "fac=product,mul=pair,sum=all"] {
            assert_eq!(name.parse::<Granularity>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn switches_change_fine_or_the_name_before_them() {
        assert_eq!("sum=all,mul=product".parse(), Ok(Granularity::FINE_COUNTED));
        assert_eq!("coarse,sum=pair".parse(), Ok(Granularity { sum: Sum::Pair, ..Granularity::COARSE }));
        assert_eq!("coarse, fac=factor".parse(), Ok(Granularity::FINE_COUNTED));
    }

    #[test]
    fn what_is_no_granularity_is_named() {
        let refused = |text: &str| text.parse::<Granularity>().unwrap_err().to_string();
        assert_eq!(
            refused("fac=pair"),
            "unknown granularity `fac=pair`: coarse, fine, fine_counted, or switches fac=factor|term|product, \
             mul=pair|product, sum=pair|all"
        );
        assert!(refused("sum=pair,coarse").starts_with("unknown granularity `coarse`"), "a name comes first");
        assert!(refused("").starts_with("unknown granularity ``"));
    }
}

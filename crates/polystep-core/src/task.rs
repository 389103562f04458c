//! What a model is asked to do: a space, a setting, a granularity, a notation (§2 and §3 of the paper).
//!
//! The same (seed, space, vars) gives the same polynomials in every task; a task only decides how their proofs are cut into
//! steps and written down.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::notation::{Notation, Style};
use crate::space::{Space, SpaceError};
use crate::token;

/// What a step does; the paper's names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum StepKind {
    /// Terms are collected within a factor.
    Facstep,
    /// Factors are multiplied out.
    Mulstep,
    /// Products are added.
    Sumstep,
    /// The operand of the next step is marked (annotated proofs).
    Markstep,
    /// Everything at once.
    Endpoint,
    /// The arithmetic probe's a+b.
    Add,
    /// The arithmetic probe's a*b.
    Mul,
}

impl StepKind {
    /// All kinds.
    pub const ALL: [StepKind; 7] = [
        StepKind::Facstep,
        StepKind::Mulstep,
        StepKind::Sumstep,
        StepKind::Markstep,
        StepKind::Endpoint,
        StepKind::Add,
        StepKind::Mul,
    ];

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Facstep => "facstep",
            StepKind::Mulstep => "mulstep",
            StepKind::Sumstep => "sumstep",
            StepKind::Markstep => "markstep",
            StepKind::Endpoint => "endpoint",
            StepKind::Add => "add",
            StepKind::Mul => "mul",
        }
    }

    /// The tag of an annotated operation step.
    pub(crate) fn tag(self) -> u8 {
        match self {
            StepKind::Facstep => token::FAC,
            StepKind::Mulstep => token::MUL,
            StepKind::Sumstep => token::SUM,
            _ => token::MARK,
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one facstep simplifies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fac {
    /// The next term of a factor, with its like terms.
    Term,
    /// One factor.
    Factor,
    /// All factors of one product.
    Product,
}

/// What one mulstep multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mul {
    /// The two leftmost factors.
    Pair,
    /// All factors of one product.
    Product,
}

/// What one sumstep adds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sum {
    /// The two leftmost products.
    Pair,
    /// All products.
    All,
}

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
}

impl Default for Granularity {
    fn default() -> Granularity {
        Granularity::COARSE
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Granularity::COARSE => return f.write_str("coarse"),
            Granularity::FINE => return f.write_str("fine"),
            Granularity::FINE_COUNTED => return f.write_str("fine_counted"),
            _ => {}
        }
        let fac = match self.fac {
            Fac::Term => "term",
            Fac::Factor => "factor",
            Fac::Product => "product",
        };
        let mul = match self.mul {
            Mul::Pair => "pair",
            Mul::Product => "product",
        };
        let sum = match self.sum {
            Sum::Pair => "pair",
            Sum::All => "all",
        };
        write!(f, "fac={fac},mul={mul},sum={sum}")
    }
}

impl FromStr for Granularity {
    type Err = String;

    /// `coarse`, `fine`, `fine_counted`, or switches that change `fine`: `fac=term,sum=all`.
    fn from_str(s: &str) -> Result<Granularity, String> {
        match s {
            "coarse" => return Ok(Granularity::COARSE),
            "fine" => return Ok(Granularity::FINE),
            "fine_counted" => return Ok(Granularity::FINE_COUNTED),
            _ => {}
        }
        let mut granularity = Granularity::FINE;
        for switch in s.split(',').map(str::trim) {
            match switch {
                "fac=term" => granularity.fac = Fac::Term,
                "fac=factor" => granularity.fac = Fac::Factor,
                "fac=product" => granularity.fac = Fac::Product,
                "mul=pair" => granularity.mul = Mul::Pair,
                "mul=product" => granularity.mul = Mul::Product,
                "sum=pair" => granularity.sum = Sum::Pair,
                "sum=all" => granularity.sum = Sum::All,
                _ => {
                    return Err(format!(
                        "unknown granularity `{switch}`: coarse, fine, fine_counted, or switches \
                         fac=factor|term|product, mul=pair|product, sum=pair|all"
                    ));
                }
            }
        }
        Ok(granularity)
    }
}

impl TryFrom<String> for Granularity {
    type Error = String;

    fn try_from(s: String) -> Result<Granularity, String> {
        s.parse()
    }
}

impl From<Granularity> for String {
    fn from(g: Granularity) -> String {
        g.to_string()
    }
}

/// What the steps of a proof look like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// State to state.
    #[default]
    Plain,
    /// Coefficients are left open in brackets, for a calculator.
    Calculator,
    /// Each operation step is preceded by one that marks its operand. Infix only.
    Annotated,
    /// Start to endpoint in one shot.
    Endpoint,
    /// Sums and products of 4- and 9-digit numbers; there is no polynomial.
    Arithmetic,
}

impl Setting {
    /// All settings.
    pub const ALL: [Setting; 5] =
        [Setting::Plain, Setting::Calculator, Setting::Annotated, Setting::Endpoint, Setting::Arithmetic];

    /// The name in records and flags.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Plain => "plain",
            Setting::Calculator => "calculator",
            Setting::Annotated => "annotated",
            Setting::Endpoint => "endpoint",
            Setting::Arithmetic => "arithmetic",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(s: &str) -> Result<Setting, String> {
        Setting::ALL
            .into_iter()
            .find(|setting| setting.name() == s)
            .ok_or_else(|| format!("unknown setting `{s}`: plain, calculator, annotated, endpoint or arithmetic"))
    }
}

/// Which examples are generated.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    /// The space of polynomials.
    pub space: Space,
    /// How many variables.
    pub vars: usize,
    /// What the steps look like.
    pub setting: Setting,
    /// How large they are.
    pub granularity: Granularity,
    /// How states are written.
    pub notation: Notation,
    /// The order of terms, and whether ones are written.
    pub style: Style,
}

impl Task {
    /// Plain coarse infix proofs of a space.
    pub fn new(space: Space, vars: usize) -> Task {
        Task {
            space,
            vars,
            setting: Setting::default(),
            granularity: Granularity::default(),
            notation: Notation::default(),
            style: Style::default(),
        }
    }

    /// Whether the choices fit together.
    pub fn validate(&self) -> Result<(), SpaceError> {
        if self.setting == Setting::Annotated && self.notation == Notation::Prefix {
            return Err(SpaceError::Task("annotated proofs are written in infix only"));
        }
        self.space.validate(self.vars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granularities_have_names() {
        for name in ["coarse", "fine", "fine_counted", "fac=term,mul=pair,sum=pair", "fac=product,mul=pair,sum=all"] {
            assert_eq!(name.parse::<Granularity>().unwrap().to_string(), name);
        }
        assert_eq!("sum=all,mul=product".parse(), Ok(Granularity::FINE_COUNTED));
        assert!("fac=pair".parse::<Granularity>().unwrap_err().contains("fac=factor|term|product"));
    }
}

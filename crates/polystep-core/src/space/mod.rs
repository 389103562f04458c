//! Problem spaces: the caps under which polynomials are sampled (Table "constraints" of the paper and its six configurations).
//!
//! A configuration is data, not code: a user's own space from TOML and a curriculum's sub-tasks are values of the same type.
//! The decision a reader would get wrong: the caps on products and sums hold for the *expanded* product and sum, while the
//! factor's coefficient cap holds for its terms as sampled, before like terms merge (No Backtrack's 3375 = (3·5)³ says so).

mod table;

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::monomial::{MAX_DEGREE, MAX_VARS};
use crate::named;
#[cfg(doc)]
use crate::stream::Streams;
use crate::writing::{Setting, WritingError};

pub use table::{CoeffCaps, DegreeCaps, Max, Min, SpaceTable, TermCaps, is_reserved};

/// What is drawn again when a cap fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// The factor that broke its product's cap.
    Factor,
    /// The product, with a new number of factors; mdeg stays.
    #[default]
    Product,
    /// Everything.
    Polynomial,
}
named!(Retry, "retry": Factor "factor", Product "product", Polynomial "polynomial");

/// How many variables take part in a polynomial.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variables {
    /// All of them.
    #[default]
    All,
    /// Uniformly many, 1…vars.
    Uniform,
}
named!(Variables, "number of variables": All "all", Uniform "uniform");

/// From how many to how many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Count {
    /// At least.
    pub min: u32,
    /// At most.
    pub max: u32,
}

/// Caps on coefficients.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Coefficients {
    /// In the simplified polynomial.
    pub polynomial: u64,
    /// In a simplified product.
    pub product: u64,
    /// In a factor as it is sampled.
    pub factor: u64,
}

/// Caps on degrees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Degrees {
    /// Of the simplified polynomial.
    pub polynomial: u32,
    /// Of a factor.
    pub factor: u32,
}

/// Caps on numbers of terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Terms {
    /// Of a simplified product.
    pub product: u32,
    /// Of a factor as it is sampled.
    pub factor: u32,
}

/// A space of polynomials that can be sampled.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Space {
    /// Its name; the paper's key for the six configurations.
    pub key: String,
    /// C: caps on coefficients.
    pub coeff: Coefficients,
    /// D: caps on degrees.
    pub degree: Degrees,
    /// T: caps on numbers of terms.
    pub terms: Terms,
    /// How many terms a factor has at least, as it is sampled.
    pub min_terms: u32,
    /// How many products.
    pub products: Count,
    /// How many factors in each.
    pub factors: Count,
    /// V_P: variables of a product; all, unless given.
    pub vars_prod: Option<usize>,
    /// V_f: variables of a factor; all, unless given.
    pub vars_fac: Option<usize>,
    /// What is drawn again when a cap fails.
    pub retry: Retry,
    /// How many variables take part.
    pub variables: Variables,
    /// Whether terms have signs. The caps hold for the polynomial before its signs are drawn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
}

/// A variant of a space: a curriculum's sub-tasks in the paper's order (§3, curriculum learning), and the signed polynomials.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subtask {
    /// One factor per product.
    Add,
    /// One product of two factors.
    Mul2,
    /// One product of two or three factors.
    Mul3,
    /// The small coefficients.
    Scoeff,
    /// The target itself.
    Mixed,
    /// The target's polynomials with signs, which the paper does not have.
    Signed,
}
named!(Subtask, "sub-task": Add "add", Mul2 "mul2", Mul3 "mul3", Scoeff "scoeff", Mixed "mixed", Signed "signed");

/// A space that does not exist, cannot be read or cannot be sampled.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SpaceError {
    /// No such configuration.
    #[error("unknown configuration `{key}`; the configurations are {}", KEYS.join(", "))]
    Unknown {
        /// What was asked for.
        key: String,
    },
    /// No such sub-task.
    #[error("unknown sub-task `{task}` of {key}; the sub-tasks are {}", Subtask::ALL.map(Subtask::name).join(", "))]
    UnknownSubtask {
        /// The configuration.
        key: String,
        /// What was asked for.
        task: String,
    },
    /// No such exercises of the arithmetic probe.
    #[error("unknown exercises `{key}`; the arithmetic probe has {}", crate::arithmetic::KEYS.join(", "))]
    UnknownExercises {
        /// What was asked for.
        key: String,
    },
    /// TOML that does not describe a space; the span is in bytes.
    #[error("{message}")]
    Toml {
        /// What is wrong.
        message: String,
        /// Where.
        span: Option<Range<usize>>,
    },
    /// A cap that no polynomial can meet.
    #[error("this space can never be sampled: {cap} = {value} is in the way ({reason})")]
    Cap {
        /// The cap's name in TOML.
        cap: &'static str,
        /// Its value.
        value: u64,
        /// Why nothing fits.
        reason: String,
    },
    /// The guard against the fixed sets cannot be built.
    #[error(
        "the guard against the test sets cannot be built: {why} (the sets of {key} with {vars} variables). \
             The spaces are part of the program, so this is a bug: report it with the version that `polystep doctor` shows"
    )]
    Guard {
        /// The configuration whose sets cannot be drawn.
        key: &'static str,
        /// Its variables.
        vars: usize,
        /// What is wrong with it.
        why: Box<SpaceError>,
    },
    /// A cap beyond what polystep computes with.
    #[error("{cap} = {value} is too large: {reason}")]
    TooLarge {
        /// The cap's name in TOML.
        cap: &'static str,
        /// Its value.
        value: u64,
        /// What it exceeds.
        reason: String,
    },
    /// A space whose valid, test and beam sets hold all of it.
    #[error(
        "{key} is too small to train on: all endpoints of 1000 draws are in its valid, test or beam set; widen its caps"
    )]
    TooSmall {
        /// The space.
        key: String,
    },
    /// A number of variables that does not exist.
    #[error("{0} variables: polystep takes 1 to 8")]
    Vars(usize),
    /// Choices of writing that do not fit together.
    #[error("{0}")]
    Writing(#[from] WritingError),
}

/// The paper's six configurations.
pub const KEYS: [&str; 6] =
    ["small_coeff", "medium_coeff", "large_coeff", "no_backtrack", "medium_degree", "medium_terms"];

impl Space {
    /// One of the paper's configurations.
    pub fn named(key: &str) -> Result<Space, SpaceError> {
        #[rustfmt::skip]
        let caps = match key {
            //                 C poly, prod, fac   D poly, fac  T prod, fac  products, factors
            "small_coeff"   => ([60, 20, 5],        [6, 3],      [8, 3],      [3, 3]),
            "medium_coeff"  => ([120, 40, 8],       [6, 3],      [8, 3],      [3, 3]),
            "large_coeff"   => ([300, 100, 10],     [6, 3],      [8, 3],      [3, 3]),
            "no_backtrack"  => ([10125, 3375, 5],   [9, 3],      [27, 3],     [3, 3]),
            "medium_degree" => ([120, 40, 8],       [12, 5],     [8, 3],      [3, 3]),
            "medium_terms"  => ([120, 40, 8],       [6, 3],      [20, 4],     [5, 4]),
            _ => return Err(SpaceError::Unknown { key: key.to_owned() }),
        };
        Ok(Space::with_caps(key, caps))
    }

    /// A space with these caps in the order of the paper's table, its settings at their defaults.
    fn with_caps(key: &str, (c, d, t, max): ([u64; 3], [u32; 2], [u32; 2], [u32; 2])) -> Space {
        Space {
            key: key.to_owned(),
            coeff: Coefficients { polynomial: c[0], product: c[1], factor: c[2] },
            degree: Degrees { polynomial: d[0], factor: d[1] },
            terms: Terms { product: t[0], factor: t[1] },
            min_terms: 1,
            products: Count { min: 2, max: max[0] },
            factors: Count { min: 2, max: max[1] },
            vars_prod: None,
            vars_fac: None,
            retry: Retry::default(),
            variables: Variables::default(),
            signed: false,
        }
    }

    /// One of the paper's configurations, or a sub-task of one: `medium_coeff/mul2`.
    pub fn of_key(key: &str) -> Result<Space, SpaceError> {
        let Some((key, task)) = key.split_once('/') else { return Space::named(key) };
        let space = Space::named(key)?;
        match task.parse() {
            Ok(task) => Ok(space.subtask(task)),
            Err(_) => Err(SpaceError::UnknownSubtask { key: key.to_owned(), task: task.to_owned() }),
        }
    }

    /// The space of the arithmetic probe under one of its [keys](crate::arithmetic::KEYS). Exercises are no polynomials: this
    /// space has none, and only its key counts.
    pub fn exercises(key: &str) -> Result<Space, SpaceError> {
        if !crate::arithmetic::KEYS.contains(&key) {
            return Err(SpaceError::UnknownExercises { key: key.to_owned() });
        }
        Ok(Space::with_caps(key, ([0; 3], [0; 2], [0; 2], [0; 2])))
    }

    /// The space that a key names in a setting: of polynomials, or of the arithmetic probe's exercises.
    pub fn in_setting(key: &str, setting: Setting) -> Result<Space, SpaceError> {
        if setting == Setting::Arithmetic { Space::exercises(key) } else { Space::of_key(key) }
    }

    /// A curriculum's sub-task of this space. [`Subtask::Scoeff`] is `small_coeff` with the target's variables and settings;
    /// the others keep the target's caps.
    pub fn subtask(&self, task: Subtask) -> Space {
        let one = Count { min: 1, max: 1 };
        let mut space = self.clone();
        match task {
            Subtask::Add => space.factors = one,
            Subtask::Mul2 => (space.products, space.factors) = (one, Count { min: 2, max: 2 }),
            Subtask::Mul3 => {
                let max = self.factors.max.clamp(2, 3);
                (space.products, space.factors) = (one, Count { min: 2, max });
            }
            Subtask::Scoeff => {
                let Space { retry, variables, signed, .. } = *self;
                space = Space { retry, variables, signed, ..small_coeff() };
                (space.vars_prod, space.vars_fac) = (self.vars_prod, self.vars_fac);
            }
            Subtask::Mixed => return space,
            Subtask::Signed => space.signed = true,
        }
        space.key = format!("{}/{task}", self.key);
        space
    }

    /// What the streams of this space are keyed by: all that decides which polynomials are drawn, and not its name. Signs are
    /// drawn from a stream of their own, so a signed space has the key of the unsigned one.
    ///
    /// This is part of version 1 of the [streams](Streams::new). Every byte of it decides everyone's data, so it must never
    /// change, not even a word; `tests/golden/streams.txt` pins it. It is not a text for people: that is `Display`.
    pub fn stream_key(&self, vars: usize) -> String {
        let Space { coeff: c, degree: d, terms: t, products: p, factors: f, .. } = self;
        let retry = match self.retry {
            Retry::Factor => "Factor",
            Retry::Product => "Product",
            Retry::Polynomial => "Polynomial",
        };
        let variables = match self.variables {
            Variables::All => "All",
            Variables::Uniform => "Uniform",
        };
        let (vars_prod, vars_fac) = (self.vars_prod.unwrap_or(0), self.vars_fac.unwrap_or(0));
        // A minimum that no space of the paper has comes last, and only where there is one.
        let min_terms = if self.min_terms > 1 { format!(" min.terms {}", self.min_terms) } else { String::new() };
        format!(
            "C {} {} {} D {} {} T {} {} products {} {} factors {} {} V {vars_prod} {vars_fac} retry {retry} variables \
             {variables} vars {vars}{min_terms}",
            c.polynomial, c.product, c.factor, d.polynomial, d.factor, t.product, t.factor, p.min, p.max, f.min, f.max
        )
    }

    /// Whether the caps are in range and can be met by some polynomial in `vars` variables. Caps that only dead-lock
    /// in combination are found by the sampler's trial draws.
    pub fn validate(&self, vars: usize) -> Result<(), SpaceError> {
        Space::validate_vars(vars)?;
        let at_least_one = [
            ("coeff.polynomial", self.coeff.polynomial),
            ("coeff.product", self.coeff.product),
            ("coeff.factor", self.coeff.factor),
            ("degree.polynomial", u64::from(self.degree.polynomial)),
            ("terms.product", u64::from(self.terms.product)),
            ("terms.factor", u64::from(self.terms.factor)),
            ("min.terms", u64::from(self.min_terms)),
            ("vars_prod", self.vars_prod.unwrap_or(1) as u64),
            ("vars_fac", self.vars_fac.unwrap_or(1) as u64),
        ];
        for (cap, value) in at_least_one {
            if value == 0 {
                return Err(SpaceError::Cap { cap, value, reason: "it must be at least 1".to_owned() });
            }
        }
        let terms = Count { min: self.min_terms, max: self.terms.factor };
        for (cap, count) in [("max.products", self.products), ("max.factors", self.factors), ("terms.factor", terms)] {
            if count.max < count.min || count.min == 0 {
                let reason = format!("at least {} are drawn", count.min.max(1));
                return Err(SpaceError::Cap { cap, value: u64::from(count.max), reason });
            }
            if count.max > 32 && cap != "terms.factor" {
                let reason = "at most 32".to_owned();
                return Err(SpaceError::TooLarge { cap, value: u64::from(count.max), reason });
            }
        }
        let limits = [
            ("coeff.polynomial", self.coeff.polynomial, 1 << 40),
            ("coeff.product", self.coeff.product, 1 << 32),
            ("coeff.factor", self.coeff.factor, 1 << 20),
            ("degree.polynomial", u64::from(self.degree.polynomial), u64::from(MAX_DEGREE)),
            ("terms.product", u64::from(self.terms.product), 1 << 10),
            ("terms.factor", u64::from(self.terms.factor), 1 << 6),
        ];
        for (cap, value, limit) in limits {
            // 2^32 · (2^20 · 2^6) stays below 2^58, so a sampled product's coefficient cannot overflow before it is checked.
            if value > limit {
                return Err(SpaceError::TooLarge { cap, value, reason: format!("at most {limit}") });
            }
        }
        Ok(())
    }

    /// Whether there are so many variables.
    pub fn validate_vars(vars: usize) -> Result<(), SpaceError> {
        if (1..=MAX_VARS).contains(&vars) { Ok(()) } else { Err(SpaceError::Vars(vars)) }
    }

    /// The variables that a factor and a product can have when `vars` take part.
    pub fn variables_of(&self, vars: usize) -> (usize, usize) {
        (self.vars_fac.unwrap_or(vars), self.vars_prod.unwrap_or(vars))
    }
}

fn small_coeff() -> Space {
    Space::named("small_coeff").expect("it is one of the six")
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Space { coeff: c, degree: d, terms: t, .. } = self;
        write!(f, "C {} {} {}", c.polynomial, c.product, c.factor)?;
        write!(f, " D {} {} T {} {}", d.polynomial, d.factor, t.product, t.factor)?;
        write!(f, " products {} {}", self.products.min, self.products.max)?;
        write!(f, " factors {} {}", self.factors.min, self.factors.max)?;
        write!(f, " V {} {}", self.vars_prod.unwrap_or(0), self.vars_fac.unwrap_or(0))?;
        write!(f, " retry {:?} variables {:?}", self.retry, self.variables)?;
        if self.min_terms > 1 {
            write!(f, " min.terms {}", self.min_terms)?;
        }
        f.write_str(if self.signed { " signed" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_backtrack_cannot_break_its_caps() {
        let s = Space::named("no_backtrack").unwrap();
        let largest_factor = s.coeff.factor * u64::from(s.terms.factor);
        assert_eq!(s.coeff.product, largest_factor.pow(s.factors.max));
        assert_eq!(s.coeff.polynomial, s.coeff.product * u64::from(s.products.max));
        assert_eq!(s.terms.product, s.terms.factor.pow(s.factors.max));
        assert_eq!(s.degree.polynomial, s.degree.factor * s.factors.max);
    }

    #[test]
    fn caps_that_nothing_meets_are_named() {
        let text = "[space]\nmax = { products = 1, factors = 3 }";
        let error = Space::from_toml(text).unwrap().validate(1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this space can never be sampled: max.products = 1 is in the way (at least 2 are drawn)"
        );
        assert_eq!(Space::named("small_coeff").unwrap().validate(9), Err(SpaceError::Vars(9)));
    }

    #[test]
    fn subtasks_keep_the_targets_caps() {
        let target = Space::named("medium_terms").unwrap();
        let mul3 = target.subtask(Subtask::Mul3);
        assert_eq!((mul3.key.as_str(), mul3.terms, mul3.factors.max), ("medium_terms/mul3", target.terms, 3));
        assert_eq!(target.subtask(Subtask::Scoeff).coeff, small_coeff().coeff);
        assert_eq!(target.subtask(Subtask::Mixed), target);
        let signed = target.subtask(Subtask::Signed);
        assert_eq!(Space { key: target.key.clone(), signed: false, ..signed.clone() }, target);
        assert_eq!((signed.stream_key(2), Space::of_key("medium_terms/signed")), (target.stream_key(2), Ok(signed)));
    }
}

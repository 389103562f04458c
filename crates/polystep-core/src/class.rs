//! How hard a step is: a class for every step, from the step alone.
//!
//! Facsteps, sumsteps, marksteps, endpoints and exercises are classes of their own. Mulsteps differ more than all of these among
//! themselves. What counts is how many factors the step multiplies, how many of them have several terms, and the largest
//! number of summands that meet in one coefficient of the product: `(x+1)*(x+2)*(x+3)` has coefficients of 1, 3, 3 and 1
//! summands.
//!
//! The decision a reader would get wrong: summands are counted before anything cancels or is added, one for each choice of a
//! term per factor. So the class depends on the monomials of the factors, never on their coefficients.
//!
//! The same class is computed in two places: here from a state, and in the private module `fast` from a draft. A test holds them
//! together.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::expr::{Factor, State};
use crate::granularity::Mul;
use crate::monomial::Monomial;
use crate::named;
use crate::notation::parse_tokens;
use crate::proof::StepKind;
use crate::stream::Stream;
use crate::writing::{Setting, Writing, untagged};

named! {
    "class of steps";
    /// How hard a step is. The names are keys in TOMLs and files.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[repr(u8)]
    pub enum StepClass {
        /// Any facstep.
        Facstep = "facstep",
        /// A mulstep in which no factor has several terms.
        MulMulti0 = "mul_multi0",
        /// Two factors, one of them with several terms.
        Mul2Multi1 = "mul2_multi1",
        /// Two factors, both with several terms.
        Mul2Multi2 = "mul2_multi2",
        /// Three or more factors, one of them with several terms.
        Mul3Multi1 = "mul3_multi1",
        /// Three or more factors, two of them with several terms, at most 2 summands in a coefficient.
        Mul3Multi2 = "mul3_multi2",
        /// Three or more factors, two of them with several terms, 3 or more summands in a coefficient.
        Mul3Multi2Sums3 = "mul3_multi2_sums3",
        /// Three or more factors with several terms, at most 3 summands in a coefficient.
        Mul3Multi3 = "mul3_multi3",
        /// Three or more factors with several terms, 4 summands in a coefficient.
        Mul3Multi3Sums4 = "mul3_multi3_sums4",
        /// Three or more factors with several terms, 5 or more summands in a coefficient.
        Mul3Multi3Sums5 = "mul3_multi3_sums5",
        /// Any sumstep.
        Sumstep = "sumstep",
        /// Any markstep of an annotated proof.
        Markstep = "markstep",
        /// A whole proof at once.
        Endpoint = "endpoint",
        /// An exercise a+b of the arithmetic probe.
        Add = "add",
        /// An exercise a*b of the arithmetic probe.
        Mul = "mul",
    }
}

/// How many classes there are.
pub const CLASSES: usize = StepClass::ALL.len();

impl StepClass {
    /// The class of a step that is no mulstep; of a mulstep, the easiest class.
    pub const fn of_kind(kind: StepKind) -> StepClass {
        match kind {
            StepKind::Facstep => StepClass::Facstep,
            StepKind::Mulstep => StepClass::MulMulti0,
            StepKind::Sumstep => StepClass::Sumstep,
            StepKind::Markstep => StepClass::Markstep,
            StepKind::Endpoint => StepClass::Endpoint,
            StepKind::Add => StepClass::Add,
            StepKind::Mul => StepClass::Mul,
        }
    }

    /// The class of a mulstep: how many factors it multiplies, how many of them have several terms, and (asked for only where
    /// it counts) the largest number of summands in one coefficient of the product.
    #[inline]
    pub fn of_product(factors: usize, multi: usize, summands: impl FnOnce() -> usize) -> StepClass {
        match (factors, multi) {
            (_, 0) => StepClass::MulMulti0,
            (..=2, 1) => StepClass::Mul2Multi1,
            (..=2, _) => StepClass::Mul2Multi2,
            (_, 1) => StepClass::Mul3Multi1,
            (_, 2) => match summands() {
                ..=2 => StepClass::Mul3Multi2,
                _ => StepClass::Mul3Multi2Sums3,
            },
            _ => match summands() {
                ..=3 => StepClass::Mul3Multi3,
                4 => StepClass::Mul3Multi3Sums4,
                _ => StepClass::Mul3Multi3Sums5,
            },
        }
    }

    /// The class of the mulstep that multiplies these factors.
    pub fn of_factors(factors: &[Factor]) -> StepClass {
        let multi = factors.iter().filter(|f| terms(f).nth(1).is_some()).count();
        StepClass::of_product(factors.len(), multi, || most_summands(factors))
    }
}

/// The largest number of choices of one term per factor that lead to the same monomial.
pub fn most_summands(factors: &[Factor]) -> usize {
    let mut counts = FxHashMap::from_iter([(Monomial::ONE, 1usize)]);
    for factor in factors {
        let mut longer: FxHashMap<Monomial, usize> = FxHashMap::default();
        for (&monomial, &count) in &counts {
            for term in terms(factor) {
                // A monomial that is too large belongs to no step: such a product cannot be multiplied out.
                let product = monomial.checked_mul(term).unwrap_or(Monomial::ONE);
                *longer.entry(product).or_default() += count;
            }
        }
        counts = longer;
    }
    counts.into_values().max().unwrap_or(0)
}

/// The monomials of a factor; zero has none.
fn terms(factor: &Factor) -> impl Iterator<Item = Monomial> {
    factor.0.iter().filter(|t| t.coeff != 0).map(|t| t.monomial)
}

impl Writing {
    /// The class of the step of this kind that an input asks for. None if the input cannot be read, or asks for no mulstep where
    /// the kind says so.
    pub fn class(&self, kind: StepKind, input: &[u8]) -> Option<StepClass> {
        if kind != StepKind::Mulstep {
            return Some(StepClass::of_kind(kind));
        }
        let state = match self.setting {
            Setting::Annotated => parse_tokens(&untagged(input)?, self.notation, self.style),
            _ => parse_tokens(input, self.notation, self.style),
        };
        let State::Sum(products) = state.ok()?.0 else { return None };
        let factors = &products.iter().find(|p| p.0.len() > 1)?.0;
        let taken = match self.granularity.mul {
            Mul::Pair => 2,
            Mul::Product => factors.len(),
        };
        Some(StepClass::of_factors(&factors[..taken]))
    }
}

/// How often the steps of each class are shown: the weight of a class is the share of its steps that are kept, relative to the
/// class with the largest weight, of which all are. With equal weights the stream is the natural one.
pub type ClassWeights = ByClass<f64>;

/// A value for every class. In files it is a map by their names, without the values that are the default (0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByClass<T>(pub [T; CLASSES]);

impl<T: Copy> ByClass<T> {
    /// The value of a class.
    #[inline]
    pub fn of(&self, class: StepClass) -> T {
        self.0[class as usize]
    }

    /// The place of a class's value.
    #[inline]
    pub fn at(&mut self, class: StepClass) -> &mut T {
        &mut self.0[class as usize]
    }
}

impl<T: Copy + Default> Default for ByClass<T> {
    fn default() -> Self {
        ByClass([T::default(); CLASSES])
    }
}

impl<T: Copy + Default + PartialEq + Serialize> Serialize for ByClass<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(StepClass::ALL.into_iter().zip(self.0).filter(|(_, value)| *value != T::default()))
    }
}

impl<'de, T: Copy + Default + Deserialize<'de>> Deserialize<'de> for ByClass<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut all = ByClass::default();
        for (class, value) in BTreeMap::<StepClass, T>::deserialize(d)? {
            *all.at(class) = value;
        }
        Ok(all)
    }
}

impl ClassWeights {
    /// Every step is kept.
    pub const NATURAL: ClassWeights = ByClass([1.0; CLASSES]);

    /// Whether every step is kept.
    pub fn is_natural(&self) -> bool {
        self.0.iter().all(|&weight| weight == self.0[0])
    }

    /// The weights multiplied, class by class.
    pub fn times(&self, other: &ClassWeights) -> ClassWeights {
        ByClass(std::array::from_fn(|i| self.0[i] * other.0[i]))
    }

    /// Which steps are kept, decided by a stream of their own.
    pub fn thinning(&self, stream: Stream) -> Thinning {
        let most = self.0.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let keep = self.0.map(|weight| (weight / most * ALWAYS as f64).round() as u64);
        Thinning { rule: Rule::Shares(keep, Box::new(stream)) }
    }
}

/// A share of 1.
const ALWAYS: u64 = 1 << 32;

/// Decides which steps are kept, one after the other. What is not kept is not written either.
#[derive(Clone, Debug)]
pub struct Thinning {
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// A share of each class, in parts of 2^32.
    Shares([u64; CLASSES], Box<Stream>),
    /// How many more steps of each class.
    First([usize; CLASSES]),
}

impl Thinning {
    /// Keeps the first `most` steps of each class.
    pub fn first(most: usize) -> Thinning {
        Thinning { rule: Rule::First([most; CLASSES]) }
    }

    /// Whether the next step, of this class, is kept.
    #[inline]
    pub(crate) fn keeps(&mut self, class: StepClass) -> bool {
        match &mut self.rule {
            Rule::Shares(keep, stream) => match keep[class as usize] {
                0 => false,
                ALWAYS => true,
                share => stream.below(ALWAYS) < share,
            },
            Rule::First(left) => {
                let left = &mut left[class as usize];
                let kept = *left > 0;
                *left -= usize::from(kept);
                kept
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::granularity::Granularity;
    use crate::stream::{Purpose, Streams};
    use crate::token;

    fn class(writing: Writing, input: &str) -> Option<StepClass> {
        writing.class(StepKind::Mulstep, &token::encode(input).unwrap())
    }

    #[test]
    fn mulsteps_by_their_factors() {
        for (input, name) in [
            ("(2*x1)*(3)+(x1+1)*(x1)", "mul_multi0"),
            ("(2)*(x1+1)", "mul2_multi1"),
            ("(x1)+(x1+2)*(x1+1)", "mul2_multi2"),
            ("(2)*(x1+1)*(3)", "mul3_multi1"),
            ("(x1+1)*(2)*(x1^2+x1)", "mul3_multi2"),
            ("(x1^2+x1+1)*(2)*(x1^2+x1+3)", "mul3_multi2_sums3"),
            ("(x1+1)*(x1+2)*(x1+3)", "mul3_multi3"),
            ("(x1+1)*(x1+2)*(x1^2+x1+3)", "mul3_multi3_sums4"),
            ("(x1+1)*(x1^2+x1+2)*(x1^2+x1+3)", "mul3_multi3_sums5"),
            ("(x1+1)*(x1+1)*(x1+1)*(x1+1)", "mul3_multi3_sums5"),
            ("(x1^3+1)*(x1^2+x2)*(x3+1)", "mul3_multi3"),
        ] {
            assert_eq!(class(Writing::default(), input).map(StepClass::name), Some(name), "{input}");
        }
        assert_eq!(class(Writing::default(), "2*x1"), None);
        let fine = Writing { granularity: Granularity::FINE, ..Writing::default() };
        assert_eq!(class(fine, "(x1+1)*(x1+2)*(x1+3)"), Some(StepClass::Mul2Multi2));
        let marked = Writing { setting: Setting::Annotated, ..Writing::default() };
        assert_eq!(class(marked, "MUL $ (x1)+#(x1+1)*(2)#"), Some(StepClass::Mul2Multi1));
    }

    #[test]
    fn the_other_kinds_have_a_class_of_their_name() {
        for kind in StepKind::ALL.into_iter().filter(|&kind| kind != StepKind::Mulstep) {
            assert_eq!(StepClass::of_kind(kind).name(), kind.name());
            assert_eq!(Writing::default().class(kind, &[]), Some(StepClass::of_kind(kind)));
        }
        for class in StepClass::ALL {
            assert_eq!(toml::Value::try_from(class).unwrap().as_str(), Some(class.name()));
        }
    }

    #[test]
    fn values_by_class_are_a_map_in_files() {
        let mut counts = ByClass([0u64; CLASSES]);
        (*counts.at(StepClass::Sumstep), *counts.at(StepClass::Mul3Multi2Sums3)) = (3, 5);
        let text = toml::to_string(&counts).unwrap();
        assert_eq!(text, "mul3_multi2_sums3 = 5\nsumstep = 3\n");
        assert_eq!(toml::from_str::<ByClass<u64>>(&text).unwrap(), counts);
        assert!(toml::from_str::<ByClass<u64>>("mul9 = 1").unwrap_err().message().contains("unknown variant `mul9`"));
    }

    #[test]
    fn weights_are_shares_of_what_is_drawn() {
        let mut weights = ByClass([2.0; CLASSES]);
        assert!(weights.is_natural());
        (*weights.at(StepClass::Facstep), *weights.at(StepClass::Sumstep)) = (0.5, 0.0);
        let mut thinning = weights.thinning(Streams::new(1, Purpose::Shuffle, "mix").at(0));
        let mut kept = |class| (0..10_000).filter(|_| thinning.keeps(class)).count();
        let (facsteps, sumsteps, others) =
            (kept(StepClass::Facstep), kept(StepClass::Sumstep), kept(StepClass::Endpoint));
        // 2500 ± 5 standard deviations of 43
        assert!((2285..2715).contains(&facsteps), "{facsteps}");
        assert_eq!((sumsteps, others), (0, 10_000));
        let mut first = Thinning::first(3);
        assert_eq!((0..10).filter(|_| first.keeps(StepClass::Mul)).count(), 3);
    }
}

//! The explanations as values. Each one displays as one sentence.

use std::fmt;

use thiserror::Error;

use crate::named::listed;
use crate::notation::NotationError;
use crate::poly::ArithmeticError;
use crate::proof::{Operand, Step, StepKind};
use crate::token;

/// Why an answer is right or wrong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Explanation {
    /// It is what was expected.
    #[error("Right: this is the expected {0}.")]
    Right(StepKind),
    /// The model wrote nothing that came to an end.
    #[error("There is no answer: the input is too long for the model, or its output never came to an end.")]
    NoAnswer,
    /// It cannot be read; what is wrong, and the character at which it is, from 1.
    #[error("It cannot be read: {0} (character {1}).")]
    Unreadable(NotationError, usize),
    /// What was asked cannot be read.
    #[error("The input itself cannot be read: {0}.")]
    UnreadableInput(NotationError),
    /// What was expected cannot be read.
    #[error("The target itself cannot be read: {0}.")]
    UnreadableTarget(NotationError),
    /// The input is none that a proof in this writing has.
    #[error("The input is no line of a proof, so there is no right answer to it.")]
    NotAsked,
    /// The numbers of what was asked are too large.
    #[error("It cannot be checked: {0}.")]
    TooLarge(ArithmeticError),
    /// The answer's own numbers are too large.
    #[error("Not the same polynomial: {0}.")]
    AnswerTooLarge(ArithmeticError),
    /// A plain state holds a bracket.
    #[error("It leaves a bracket open, which only a calculator's proof may.")]
    OpenBracket,
    /// A person may write it so; a model has to write what was expected.
    #[error("It is not written as the language writes it. Expected {0}.")]
    Spelling(String),

    /// The same polynomial, where nothing was left to do.
    #[error("The proof was already finished: there is nothing left to simplify.")]
    Finished,
    /// Another polynomial, where nothing was left to do.
    #[error("The proof was already finished, and this is another polynomial.")]
    FinishedElsewhere,
    /// Another polynomial: the step that was to be done, and where it went wrong.
    #[error("In {0}, {1}.")]
    WrongValue(StepName, Place),
    /// The line is a copy.
    #[error("Nothing was done: the line is a copy, but {0} comes next.")]
    Copied(StepName),
    /// So many steps at once.
    #[error("The same polynomial, but {1} steps at once: {0} comes next, alone.")]
    TooFar(StepName, usize),
    /// Other products, in words, were rewritten.
    #[error("The same polynomial, but {1} rewritten: {0} comes first.")]
    OtherProducts(StepName, String),
    /// Other products were rewritten, too.
    #[error("The same polynomial, but more than one product was rewritten: {0} comes next, alone.")]
    MoreProducts(StepName),
    /// The expected products in another order than in the expected text.
    #[error("The same polynomial, but {0} leaves its products in another order: expected {1}.")]
    Permuted(StepName, String),
    /// The right thing was done, but it is not written as the step writes it.
    #[error("The same polynomial, but not written as {0} writes it: expected {1}.")]
    NotAsWritten(StepName, String),
    /// Another step was done than the one that leads to the expected text.
    #[error("The same polynomial, but not {0}: expected {1}.")]
    OtherStep(StepName, String),

    /// A step of a file stands where the proof is over.
    #[error("The proof was already finished before this step.")]
    PastTheEnd,
    /// So many steps are missing at the end of a file's proof.
    #[error("The proof stops too early: {0} more steps lead to the endpoint.")]
    TooShort(usize),
    /// The end of a file's proof is not this endpoint.
    #[error("The record's end is not the endpoint, {0}.")]
    WrongEnd(String),
    /// The input of a file's step is not this line.
    #[error("The step does not start where the one before it ended: expected {0}.")]
    Disconnected(String),
    /// The kind of a file's step, and what it is called there.
    #[error("This is a {0}, not a {1}.")]
    WrongKind(StepKind, StepKind),
    /// The right numbers, but other brackets than these.
    #[error("The brackets should be left open as {0}.")]
    OtherBrackets(String),
    /// The evaluated state of a file's step is not that of its brackets.
    #[error("The evaluated state does not follow from the brackets.")]
    WronglyEvaluated,

    /// How many digits the result has, how many were written, and the result.
    #[error("The result has {0} digits, not {1}: expected {2}.")]
    DigitCount(usize, usize, String),
    /// The right digits, with something between them; what was expected.
    #[error("It is not written as a number: expected {0}.")]
    NotANumber(String),
    /// One digit is wrong; what was expected.
    #[error("One digit is wrong: expected {0}.")]
    OneDigit(String),
    /// How many digits are wrong, of how many, and what was expected.
    #[error("{0} of {1} digits are wrong: expected {2}.")]
    Digits(usize, usize, String),

    /// The right endpoint, but not in normal form.
    #[error("The right polynomial, but its terms are not in order.")]
    TermsOutOfOrder,
    /// A state that is not the endpoint yet.
    #[error("The right polynomial, but it is not simplified to the end.")]
    NotSimplified,
    /// All terms of the endpoint, and more.
    #[error("It has terms that should not be there.")]
    ExtraTerms,
    /// Another endpoint: its first wrong term, and how many more there are, in words.
    #[error("Another polynomial: {0}{1}.")]
    WrongEndpoint(String, String),

    /// An annotated state without its tag.
    #[error("It has no tag: an annotated state begins with {}.", tags())]
    Untagged,
    /// The input of an annotated step has no tag.
    #[error("The input itself has no tag.")]
    UntaggedInput,
    /// A markstep whose state cannot be read.
    #[error("It cannot be read: without its marks it is no state.")]
    MarkUnreadable,
    /// A markstep that changed the state.
    #[error("The state was changed, but a markstep only marks.")]
    MarkChanged,
    /// The right tag of a markstep, and the one that was written.
    #[error("What comes next is {0}, not {1}.")]
    WrongTag(&'static str, &'static str),
    /// The right tag, around another operand.
    #[error("The next step is {0}, but another operand is marked.")]
    WrongMark(&'static str),
    /// The right state, but without the right tag or with marks.
    #[error("The state is right, but it should be tagged {0} and carry no mark.")]
    NotCleared(&'static str),
}

impl Explanation {
    /// The first wrong term of an endpoint: what stands in its place, if anything, what it should be, and how many more are
    /// wrong.
    pub(super) fn wrong_endpoint(instead: Option<String>, wanted: &str, more: usize) -> Explanation {
        let first = match instead {
            Some(found) => format!("{found} should be {wanted}"),
            None => format!("{wanted} is missing"),
        };
        let more = match more {
            0 => String::new(),
            1 => ", and one more term is wrong".to_owned(),
            n => format!(", and {n} more terms are wrong"),
        };
        Explanation::WrongEndpoint(first, more)
    }
}

/// "product 2 was" or "products 2 and 3 were", counted from 1.
pub(super) fn numbered(products: &[usize]) -> String {
    let list = products.iter().map(|p| (p + 1).to_string()).collect::<Vec<_>>().join(" and ");
    if products.len() == 1 { format!("product {list} was") } else { format!("products {list} were") }
}

/// "MARK $, FAC $ or END $"
fn tags() -> String {
    let tags = token::TAGS.map(|tag| format!("{} $", token::name(tag)));
    listed(&tags.each_ref().map(String::as_str))
}

/// A step as people name it: "the facstep of product 2".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepName {
    /// What it does.
    pub kind: StepKind,
    /// What it rewrites.
    pub operand: Operand,
    /// How many products the state has.
    pub products: usize,
}

impl StepName {
    pub(super) fn of(step: &Step) -> StepName {
        StepName { kind: step.kind, operand: step.operand.clone(), products: step.before.products().len() }
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} of ", self.kind)?;
        match &self.operand {
            Operand::Products(r) if r.len() == 1 => write!(f, "product {}", r.end),
            Operand::Products(r) if r.len() == self.products => f.write_str("all products"),
            Operand::Products(r) => write!(f, "products {} and {}", r.start + 1, r.end),
            Operand::Factors { product, factors } if factors.len() == 1 => {
                write!(f, "factor {} of product {}", factors.end, product + 1)
            }
            Operand::Factors { product, .. } => write!(f, "the two leftmost factors of product {}", product + 1),
            Operand::Terms { product, factor, .. } => {
                write!(f, "the next term of factor {} of product {}", factor + 1, product + 1)
            }
        }
    }
}

/// Where a step became another polynomial. Products and factors count from 1.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Place {
    /// In a product that the step does not touch.
    #[error("product {0} was changed too, and wrongly: it should have been copied")]
    Untouched(usize),
    /// In the only factor of the product.
    #[error("{0}")]
    OnlyFactor(Difference),
    /// In a factor of the product.
    #[error("in factor {0}, {1}")]
    Factor(usize, Difference),
    /// In a product.
    #[error("product {0} became another polynomial: {1}")]
    Product(usize, Difference),
    /// Somewhere.
    #[error("the polynomial became another one: {0}")]
    Whole(Difference),
}

/// The first term in which two polynomials differ.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Difference {
    /// The constant as it should be, and as it is.
    #[error("the constant should be {0}, not {1}")]
    Constant(i64, i64),
    /// The coefficient of a monomial as it should be, and as it is.
    #[error("the coefficient of {0} should be {1}, not {2}")]
    Coefficient(String, i64, i64),
    /// A term is missing.
    #[error("the term {0} is missing")]
    Missing(String),
    /// A term should not be there.
    #[error("the term {0} should not be there")]
    Extra(String),
}

//! Could this state have been sampled? What a model was trained on, asked about an expression that a person typed.

use crate::expr::State;
use crate::poly::Poly;
use crate::space::{Count, Space};
use crate::{ArithmeticError, TermOrder};

/// Why a start does not belong to a space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// How many of its questions the start has passed: of several spaces, the nearest is the one with most.
    pub passed: usize,
    /// The first that it fails, as the end of a sentence: "it has 4 products; there it is 2 to 3".
    pub why: String,
}

/// Asks whether a start could have been sampled from a space with so many variables; none if it could.
pub fn misfit(state: &State, space: &Space, vars: usize, order: TermOrder) -> Result<Option<Misfit>, ArithmeticError> {
    let mut asked = vec![over("the number of variables", state.vars() as u64, vars as u64)];
    if state.is_endpoint() {
        asked.push(Some("it is a bare polynomial, not a sum of products".into()));
    }
    let products = state.products();
    asked.push(outside("product", "", products.len(), space.products));
    for product in products {
        // A product may end early, so one factor is always possible.
        asked.push(outside("factor", " in a product", product.0.len(), Count { min: 1, ..space.factors }));
        for factor in &product.0 {
            let coeff = factor.0.iter().map(|t| t.coeff).max().unwrap_or(0);
            let degree = factor.0.iter().map(|t| t.monomial.degree()).max().unwrap_or(0);
            asked.extend([
                over("terms in a factor", factor.0.len() as u64, u64::from(space.terms.factor)),
                over("a coefficient in a factor", coeff, space.coeff.factor),
                over("the degree of a factor", u64::from(degree), u64::from(space.degree.factor)),
            ]);
        }
        let value = product.value(order)?;
        asked.extend([
            over("terms in a simplified product", value.terms().len() as u64, u64::from(space.terms.product)),
            over("a coefficient in a simplified product", value.max_coeff(), space.coeff.product),
        ]);
    }
    let value: Poly = state.value(order)?;
    let degree = value.degree();
    asked.extend([
        over("a coefficient of the endpoint", value.max_coeff(), space.coeff.polynomial),
        over("the degree of the endpoint", u64::from(degree), u64::from(space.degree.polynomial)),
    ]);
    let failed = asked.into_iter().enumerate().find_map(|(passed, why)| Some(Misfit { passed, why: why? }));
    Ok(failed)
}

/// A number of things, named by a noun and what follows it.
fn outside(noun: &str, after: &str, n: usize, count: Count) -> Option<String> {
    let (min, max) = (count.min as usize, count.max as usize);
    let s = if n == 1 { "" } else { "s" };
    (n < min || n > max).then(|| format!("it has {n} {noun}{s}{after}; there it is {min} to {max}"))
}

fn over(what: &str, n: u64, cap: u64) -> Option<String> {
    (n > cap).then(|| format!("{what} is {n}; there it is at most {cap}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Notation, Purpose, Sampler, Style, Task, notation};

    fn why(text: &str) -> Option<String> {
        let style = Style::default();
        let state = notation::parse(text, Notation::Infix, style).unwrap();
        misfit(&state, &Space::named("small_coeff").unwrap(), 1, style.order).unwrap().map(|m| m.why)
    }

    #[test]
    fn what_was_sampled_fits() {
        for key in crate::space::KEYS {
            for vars in [1, 2] {
                let space = Space::named(key).unwrap();
                let task = Task::new(space.clone(), vars);
                let mut sampler = Sampler::new(&task, 5, Purpose::Train).unwrap();
                for index in 0..300 {
                    let start = sampler.proof(index).start().clone();
                    assert_eq!(
                        misfit(&start, &space, vars, task.writing.style.order).unwrap(),
                        None,
                        "{key} {vars} {index}"
                    );
                }
            }
        }
    }

    #[test]
    fn each_cap_is_named() {
        for (text, part) in [
            ("(x1^1)*(x2^1)+(3)*(2)", "the number of variables is 2"),
            ("(x1^1)*(2)", "1 product;"),
            ("(x1^1)*(2)*(2)*(2)+(3)*(2)", "4 factors"),
            ("(6*x1^1)*(2)+(3)*(2)", "a coefficient in a factor is 6"),
            ("(x1^4)*(2)+(3)*(2)", "the degree of a factor is 4"),
            ("(5*x1^1)*(5)+(3)*(2)", "a coefficient in a simplified product is 25"),
            ("(x1^3)*(x1^3)*(x1^3)+(3)*(2)", "the degree of the endpoint is 9"),
        ] {
            let found = why(text).unwrap_or_default();
            assert!(found.contains(part), "{text}: {found}");
        }
    }
}

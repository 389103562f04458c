//! Could this state have been sampled? What a model was trained on, asked about an expression that a person typed.

use crate::expr::State;
use crate::poly::Poly;
use crate::space::{Count, Space};
use crate::{ArithmeticError, TermOrder};

/// The first reason why a start does not belong to a space with so many variables, as the end of a sentence: "it has 4 products,
/// at most 3 are drawn"; none if it could have been sampled.
pub fn misfit(state: &State, space: &Space, vars: usize, order: TermOrder) -> Result<Option<String>, ArithmeticError> {
    if state.vars() > vars {
        return Ok(Some(format!("it has {} variables, not {vars}", state.vars())));
    }
    let State::Sum(products) = state else {
        return Ok(Some("it is a bare polynomial, not a sum of products".into()));
    };
    if let Some(why) = outside("products", products.len(), space.products) {
        return Ok(Some(why));
    }
    for product in products {
        // A product may end early, so one factor is always possible.
        if let Some(why) = outside("factors in a product", product.0.len(), Count { min: 1, ..space.factors }) {
            return Ok(Some(why));
        }
        for factor in &product.0 {
            let coeff = factor.0.iter().map(|t| t.coeff).max().unwrap_or(0);
            let degree = factor.0.iter().map(|t| t.monomial.degree()).max().unwrap_or(0);
            let checks = [
                over("terms in a factor", factor.0.len() as u64, u64::from(space.terms.factor)),
                over("a coefficient in a factor", coeff, space.coeff.factor),
                over("the degree of a factor", u64::from(degree), u64::from(space.degree.factor)),
            ];
            if let Some(why) = checks.into_iter().flatten().next() {
                return Ok(Some(why));
            }
        }
        let value = product.value(order)?;
        let checks = [
            over("terms in a simplified product", value.terms().len() as u64, u64::from(space.terms.product)),
            over("a coefficient in a simplified product", value.max_coeff(), space.coeff.product),
        ];
        if let Some(why) = checks.into_iter().flatten().next() {
            return Ok(Some(why));
        }
    }
    let value: Poly = state.value(order)?;
    let degree = value.degree();
    let checks = [
        over("a coefficient of the endpoint", value.max_coeff(), space.coeff.polynomial),
        over("the degree of the endpoint", u64::from(degree), u64::from(space.degree.polynomial)),
    ];
    Ok(checks.into_iter().flatten().next())
}

fn outside(what: &str, n: usize, count: Count) -> Option<String> {
    let (min, max) = (count.min as usize, count.max as usize);
    (n < min || n > max).then(|| format!("it has {n} {what}; there it is {min} to {max}"))
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
        misfit(&state, &Space::named("small_coeff").unwrap(), 1, style.order).unwrap()
    }

    #[test]
    fn what_was_sampled_fits() {
        for key in crate::space::KEYS {
            for vars in [1, 2] {
                let space = Space::named(key).unwrap();
                let task = Task::new(space.clone(), vars);
                let mut sampler = Sampler::new(&task, 5, Purpose::Train).unwrap();
                for index in 0..300 {
                    let start = sampler.proof(index, None).start;
                    assert_eq!(misfit(&start, &space, vars, task.style.order).unwrap(), None, "{key} {vars} {index}");
                }
            }
        }
    }

    #[test]
    fn each_cap_is_named() {
        for (text, part) in [
            ("(x1^1)*(x2^1)+(3)*(2)", "2 variables"),
            ("(x1^1)*(2)", "1 products"),
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

//! Could this state have been sampled? What a model was trained on, asked about an expression that a person typed.
//!
//! A start is measured in several ways: how many variables and products it has, its largest coefficient, whether it has a
//! minus, and so on. A space has learned a range of each measure. A start fits a space if every measure lies in its range.

use crate::ArithmeticError;
use crate::expr::State;
use crate::task::Task;

/// How many measures there are.
const MEASURES: usize = 12;

/// The smallest and the largest value of each measure.
type Ranges = [(u64, u64); MEASURES];

/// The measures of a start, each at its largest.
fn measures(state: &State, order: crate::TermOrder) -> Result<[u64; MEASURES], ArithmeticError> {
    let value = state.value(order)?;
    let products = state.products();
    let (mut found, count) = ([0; MEASURES], |n: usize| n as u64);
    found[0] = count(state.vars());
    found[1] = count(products.len());
    let mut note = |measure: usize, n: u64| found[measure] = found[measure].max(n);
    for product in products {
        note(2, count(product.0.len()));
        for factor in &product.0 {
            note(3, count(factor.0.len()));
            for term in &factor.0 {
                note(4, term.coeff.unsigned_abs());
                note(5, u64::from(term.monomial.degree()));
                note(10, u64::from(term.coeff < 0));
                note(11, u64::from(term.coeff == 0));
            }
        }
        let value = product.value(order)?;
        note(6, count(value.terms().len()));
        note(7, value.max_coeff());
    }
    note(8, value.max_coeff());
    note(9, u64::from(value.degree()));
    Ok(found)
}

/// What a task has learned of each measure.
fn learned(task: &Task) -> Ranges {
    let Task { space, vars, .. } = task;
    let most = |cap: u32| (0, u64::from(cap));
    [
        (0, *vars as u64),
        (u64::from(space.products.min), u64::from(space.products.max)),
        // A product may end early, so one factor is always possible.
        (0, u64::from(space.factors.max)),
        most(space.terms.factor),
        (0, space.coeff.factor),
        most(space.degree.factor),
        most(space.terms.product),
        (0, space.coeff.product),
        (0, space.coeff.polynomial),
        most(space.degree.polynomial),
        (0, u64::from(space.signed)),
        // No start of any space has a zero; in signed spaces zeros come up later.
        (0, 0),
    ]
}

/// A measure and its value, by name: "4 factors in a product".
fn named(measure: usize, n: u64) -> String {
    let s = if n == 1 { "" } else { "s" };
    match measure {
        0 => format!("{n} variable{s}"),
        1 => format!("{n} product{s}"),
        2 => format!("{n} factor{s} in a product"),
        3 => format!("{n} term{s} in a factor"),
        4 => format!("coefficient {n} in a factor"),
        5 => format!("degree {n} of a factor"),
        6 => format!("{n} term{s} in a simplified product"),
        7 => format!("coefficient {n} in a simplified product"),
        8 => format!("coefficient {n} in the endpoint"),
        9 => format!("degree {n} of the endpoint"),
        10 => "a minus".to_owned(),
        _ => "a factor 0".to_owned(),
    }
}

/// The measures that lie outside of their ranges.
fn misfits(found: &[u64; MEASURES], ranges: &Ranges) -> Vec<usize> {
    (0..MEASURES).filter(|&m| found[m] < ranges[m].0 || found[m] > ranges[m].1).collect()
}

/// Whether a start could have been sampled in a task.
pub fn fits(state: &State, task: &Task) -> Result<bool, ArithmeticError> {
    Ok(misfits(&measures(state, task.writing.style.order)?, &learned(task)).is_empty())
}

/// What in a start lies outside of everything that these tasks learned, by name; none if it fits one of them.
///
/// A measure that no task covers is compared with all of them: "1 product (it learned 2 to 3)". If each measure is covered
/// by some task but no task covers all, the nearest task is named.
pub fn outside(state: &State, tasks: &[Task]) -> Result<Option<String>, ArithmeticError> {
    let Some(first) = tasks.first() else { return Ok(None) };
    let found = measures(state, first.writing.style.order)?;
    let each: Vec<(&Task, Ranges)> = tasks.iter().map(|task| (task, learned(task))).collect();
    // Of two with as many misfits, the one whose number of variables is nearer.
    let far = |(task, ranges): &&(&Task, Ranges)| (misfits(&found, ranges).len(), task.vars.abs_diff(state.vars()));
    let Some((nearest, ranges)) = each.iter().min_by_key(far) else { return Ok(None) };
    if misfits(&found, ranges).is_empty() {
        return Ok(None);
    }
    let mut all = *ranges;
    for (_, ranges) in &each {
        for (measure, &(from, to)) in ranges.iter().enumerate() {
            all[measure] = (all[measure].0.min(from), all[measure].1.max(to));
        }
    }
    let told = |ranges: &Ranges, place: &str| {
        let one = |measure: usize| {
            let (from, to) = ranges[measure];
            let range = match from {
                _ if measure >= 10 => "none".to_owned(),
                0 => format!("at most {to}"),
                _ if from == to => to.to_string(),
                _ => format!("{from} to {to}"),
            };
            format!("{} (it learned {range}{place})", named(measure, found[measure]))
        };
        misfits(&found, ranges).into_iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let whole = told(&all, "");
    if !whole.is_empty() {
        return Ok(Some(whole));
    }
    let (key, vars, s) = (&nearest.space.key, nearest.vars, if nearest.vars == 1 { "" } else { "s" });
    Ok(Some(told(ranges, &format!(" in {key} with {vars} variable{s}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Notation, Purpose, Sampler, Space, Style, notation};

    fn start(text: &str) -> State {
        notation::parse(text, Notation::Infix, Style::default()).unwrap()
    }

    fn task(key: &str, vars: usize) -> Task {
        Task::new(Space::named(key).unwrap(), vars)
    }

    #[test]
    fn what_was_sampled_fits() {
        for key in crate::space::KEYS {
            for vars in [1, 2] {
                let task = task(key, vars);
                let mut sampler = Sampler::new(&task, 5, Purpose::Train).unwrap();
                for index in 0..300 {
                    let start = sampler.proof(index).start().clone();
                    assert!(fits(&start, &task).unwrap(), "{key} {vars} {index}");
                    assert_eq!(outside(&start, std::slice::from_ref(&task)).unwrap(), None);
                }
            }
        }
    }

    #[test]
    fn each_cap_is_named() {
        for (text, part) in [
            ("(x1^1)*(x2^1)+(3)*(2)", "2 variables (it learned at most 1)"),
            ("(x1^1)*(2)", "1 product (it learned 2 to 3)"),
            ("(x1^1)*(2)*(2)*(2)+(3)*(2)", "4 factors in a product (it learned at most 3)"),
            ("(1+1+1+1)*(2)+(3)*(2)", "4 terms in a factor (it learned at most 3)"),
            ("(6*x1^1)*(2)+(3)*(2)", "coefficient 6 in a factor (it learned at most 5)"),
            ("(x1^4)*(2)+(3)*(2)", "degree 4 of a factor (it learned at most 3)"),
            ("(5*x1^1)*(5)+(3)*(2)", "coefficient 25 in a simplified product (it learned at most 20)"),
            ("(x1^1-2)*(2)+(3)*(2)", "a minus (it learned none)"),
            ("(0)*(2)+(3)*(2)", "a factor 0 (it learned none)"),
            ("(x1^3)*(x1^3)*(x1^3)+(3)*(2)", "degree 9 of the endpoint (it learned at most 6)"),
        ] {
            let found = outside(&start(text), &[task("small_coeff", 1)]).unwrap();
            assert_eq!(found.as_deref(), Some(part), "{text}");
        }
        let several = outside(&start("(6*x2)*(x1^4)"), &[task("small_coeff", 1)]).unwrap().unwrap();
        assert_eq!(several.matches("it learned").count(), 4, "{several}");
    }

    #[test]
    fn several_tasks_are_one_training() {
        let tasks = [task("small_coeff", 1), task("large_coeff", 1), task("small_coeff", 2)];
        let told = |text: &str| outside(&start(text), &tasks).unwrap();
        assert_eq!(told("(9*x1)*(2)+(3)*(2)"), None);
        assert_eq!(told("(11*x3)*(2)+(3)*(2)").unwrap().matches("it learned at most").count(), 2);
        // Two variables and a 9 were both learned, but not together.
        let apart = "coefficient 9 in a factor (it learned at most 5 in small_coeff with 2 variables)";
        assert_eq!(told("(9*x1)*(x2)+(3)*(2)").as_deref(), Some(apart));
    }
}

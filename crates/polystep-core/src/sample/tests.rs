use super::*;
use crate::granularity::Granularity;
use crate::monomial::TermOrder;
use crate::notation::{Notation, Style, print};
use crate::space::Space;
use crate::writing::Writing;

#[test]
fn the_same_polynomial_in_every_task() {
    let space = Space::named("large_coeff").unwrap();
    let starts = |setting, granularity, order| {
        let style = Style { order, ..Style::default() };
        let writing = Writing { setting, granularity, style, ..Writing::default() };
        let task = Task { writing, ..Task::new(space.clone(), 2) };
        let mut sampler = Sampler::new(&task, 3, Purpose::Train).unwrap();
        (0..20).map(|i| sampler.proof(i).end().value(TermOrder::Paper).unwrap()).collect::<Vec<_>>()
    };
    let plain = starts(Setting::Plain, Granularity::COARSE, TermOrder::Paper);
    assert_eq!(plain, starts(Setting::Calculator, Granularity::FINE, TermOrder::Paper));
    assert_eq!(plain, starts(Setting::Plain, Granularity::FINE, TermOrder::Grlex));
}

#[test]
fn a_guarded_endpoint_is_drawn_again() {
    let task = Task::new(Space::named("small_coeff").unwrap(), 1);
    let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
    let guard = Guard::standard();
    let mut examples = Examples::default();
    for index in 0..20_000 {
        sampler.write_examples(index, Some(&guard), &mut examples);
        assert!(!guard.contains(sampler.proof_of_drawn().end().value(TermOrder::Paper).unwrap().fingerprint()));
    }
    let share = sampler.rejected() as f64 / sampler.drawn() as f64;
    assert!((0.001..0.3).contains(&share), "{share}");
    for index in 0..20 {
        let (free, guarded) = (sampler.proof(index), sampler.written(index, Some(&guard)).unwrap());
        let fingerprint = free.end().value(TermOrder::Paper).unwrap().fingerprint();
        let same = print(free.end(), Notation::Infix, Style::default()) == guarded.end;
        assert_eq!(same, !guard.contains(fingerprint), "{index}");
    }
}

#[test]
fn where_the_guard_holds_everything_nothing_is_drawn() {
    let text = "[space]\ncoeff = { polynomial = 2, product = 1, factor = 1 }\n\
                degree = { polynomial = 1, factor = 1 }\nmax = { products = 2, factors = 2 }";
    let task = Task::new(Space::from_toml(text).unwrap(), 1);
    let mut guard = Guard::default();
    guard.extend(&task.space, 1).unwrap();
    let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
    assert_eq!(sampler.written(0, Some(&guard)), None);
    let mut examples = Examples::default();
    sampler.write_examples(0, Some(&guard), &mut examples);
    assert!(examples.is_empty());
    assert!(sampler.written(0, None).is_some());
}

/// No polynomials are made for them, so their space needs none.
#[test]
fn exercises_are_drawn_from_a_space_without_polynomials() {
    let writing = Writing { setting: Setting::Arithmetic, ..Writing::default() };
    let task = Task { writing, ..Task::new(Space::exercises("mul4").unwrap(), 1) };
    let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
    let lines = sampler.written(0, None).unwrap().lines;
    assert_eq!(lines[0].kind, crate::StepKind::Mul);
    assert!(Polynomials::new(&task.space, 1, Style::default(), 1, Purpose::Train).is_err());
}

/// Longer polynomials than any that the paper's models have seen: every minimum is met by every draw.
#[test]
fn minimums_are_kept() {
    let text = "[space]\nbase = \"no_backtrack\"\nmin = { products = 4, factors = 4, terms = 2 }\nterms.product = 200\n\
                coeff = { polynomial = 1000000, product = 1000000 }\n";
    let space = Space::from_toml(text).unwrap();
    let mut polynomials = Polynomials::new(&space, 1, Style::default(), 1, Purpose::Test).unwrap();
    for index in 0..300 {
        polynomials.draw(index);
        let state = polynomials.state();
        assert_eq!(state.products().len(), 4);
        for product in state.products() {
            assert_eq!(product.0.len(), 4, "a product ends early only at the paper's minimum of 2");
            assert!(product.0.iter().all(|factor| (2..=3).contains(&factor.0.len())));
        }
    }
}

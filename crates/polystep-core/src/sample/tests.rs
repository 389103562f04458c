use super::*;
use crate::expr::{State, Term};
use crate::granularity::Granularity;
use crate::guard::GuardScope;
use crate::monomial::TermOrder;
use crate::notation::{Notation, Style, print};
use crate::sets;
use crate::space::{Space, Subtask};
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
    let guard = Guard::standard().unwrap();
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

/// The magnitudes are those of the unsigned space; the signs are fair, and redrawn with the polynomial.
#[test]
fn a_signed_space_gives_signs_to_the_unsigned_one() {
    for (key, vars) in [("small_coeff", 1), ("medium_terms", 2)] {
        let space = Space::named(key).unwrap();
        let unsigned = Task::new(space.clone(), vars);
        let signed = Task::new(space.subtask(Subtask::Signed), vars);
        let mut samplers = [unsigned, signed].map(|task| Sampler::new(&task, 5, Purpose::Test).unwrap());
        let (mut negative, mut all) = (0.0, 0.0);
        for index in 0..2000 {
            let [plain, signs] = samplers.each_mut().map(|sampler| sampler.proof(index).start().clone());
            let terms = |state: &State| state.products().iter().flat_map(|p| &p.0).flat_map(|f| f.0.clone()).collect();
            let (plain, mut signs): (Vec<Term>, Vec<Term>) = (terms(&plain), terms(&signs));
            negative += signs.iter().filter(|t| t.coeff < 0).count() as f64;
            all += signs.len() as f64;
            signs.iter_mut().for_each(|t| t.coeff = t.coeff.abs());
            assert_eq!(plain, signs, "{key} {index}");
        }
        // Five standard deviations.
        assert!((negative / all - 0.5).abs() < 2.5 / f64::sqrt(all), "{negative} of {all}");
    }
}

#[test]
fn a_guarded_signed_endpoint_is_drawn_again() {
    let task = Task::new(Space::of_key("small_coeff/signed").unwrap(), 1);
    let mut guard = Guard::standard().unwrap();
    assert!(!GuardScope::All.always_holds(&task.space, task.vars));
    let (unguarded, standard) = (Sampler::new(&task, sets::SEED, Purpose::Test), guard.len());
    guard.extend(&task.space, task.vars).unwrap();
    assert!(guard.len() > standard);
    let end = unguarded.unwrap().proof(7).end().value(TermOrder::Paper).unwrap();
    assert!(guard.contains(end.fingerprint()));
    let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
    let mut examples = Examples::default();
    for index in 0..3000 {
        sampler.write_examples(index, Some(&guard), &mut examples);
        let proof = sampler.proof_of_drawn();
        let end = proof.end().value(TermOrder::Paper).unwrap();
        assert!(!guard.contains(end.fingerprint()));
        let text = task.writing.print(proof.end());
        assert_eq!(task.writing.text(examples.tgt(examples.len() - 1)), text, "the draft is that of the last draw");
    }
    assert!(sampler.rejected() > 0);
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
        let state = polynomials.state(Notation::Infix);
        assert_eq!(state.products().len(), 4);
        for product in state.products() {
            assert_eq!(product.0.len(), 4, "a product ends early only at the paper's minimum of 2");
            assert!(product.0.iter().all(|factor| (2..=3).contains(&factor.0.len())));
        }
    }
}

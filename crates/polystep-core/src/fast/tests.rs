use crate::class::ByClass;
use crate::examples::Examples;
use crate::expr::{Factor, Product, State, Term};
use crate::granularity::Granularity;
use crate::monomial::{Monomial, TermOrder};
use crate::notation::{Notation, Style};
use crate::proof::StepKind;
use crate::sample::Sampler;
use crate::space::{KEYS, Retry, Space, Subtask, Variables};
use crate::stream::{Purpose, Streams};
use crate::task::Task;
use crate::writing::{Setting, Writing};

/// Both ways of writing steps agree on every example of a task.
fn agree(task: &Task, proofs: u64) {
    let mut sampler = Sampler::new(task, 1, Purpose::Train).unwrap();
    for index in 0..proofs {
        let (mut fast, mut slow) = (Examples::default(), Examples::default());
        sampler.write_examples(index, None, &mut fast);
        for (i, line) in task.writing.lines(&sampler.proof_of_drawn()).enumerate() {
            let class = task.writing.class(line.kind, &line.input).unwrap();
            slow.push((line.kind, class), index, i, &line.input, &line.target);
        }
        assert_eq!(fast.len(), slow.len(), "{task:?} {index}");
        for i in 0..fast.len() {
            let text = |tokens: &[u8]| task.writing.text(tokens);
            assert_eq!(text(fast.src(i)), text(slow.src(i)), "source {i} of {index}: {task:?}");
            assert_eq!(text(fast.tgt(i)), text(slow.tgt(i)), "target {i} of {index}: {task:?}");
            assert_eq!(fast.kind(i), slow.kind(i));
            assert_eq!(fast.spans[i].class, slow.spans[i].class, "{}", text(fast.src(i)));
            let (f, s) = (fast.spans[i], slow.spans[i]);
            assert_eq!((f.proof, f.step), (s.proof, s.step));
        }
    }
}

/// What is thinned out leaves the other examples as they are.
fn agree_where_thinned(task: &Task, proofs: u64) {
    let mut whole = Sampler::new(task, 1, Purpose::Train).unwrap();
    let mut thinned = Sampler::new(task, 1, Purpose::Train).unwrap();
    let weights = ByClass(std::array::from_fn(|i| [0.5, 0.3, 0.7][i % 3]));
    let stream = || Streams::new(1, Purpose::Shuffle, "mix").at(7);
    thinned.thin(Some(weights.thinning(stream())));
    let mut by_hand = weights.thinning(stream());
    for index in 0..proofs {
        let (mut all, mut some) = (Examples::default(), Examples::default());
        whole.write_examples(index, None, &mut all);
        thinned.write_examples(index, None, &mut some);
        let kept: Vec<usize> = (0..all.len()).filter(|&i| by_hand.keeps(all.spans[i].class)).collect();
        assert_eq!(kept.len(), some.len(), "{task:?} {index}");
        for (i, k) in kept.into_iter().enumerate() {
            assert_eq!((some.src(i), some.tgt(i)), (all.src(k), all.tgt(k)), "{task:?} {index}");
            let (a, b) = (all.spans[k], some.spans[i]);
            assert_eq!((a.kind, a.class, a.proof, a.step), (b.kind, b.class, b.proof, b.step));
        }
    }
}

fn agree_in_every_way(space: &Space, vars: usize, style: Style, proofs: u64) {
    for setting in [Setting::Plain, Setting::Calculator, Setting::Annotated, Setting::Endpoint] {
        for granularity in Granularity::known() {
            for notation in Notation::ALL {
                let writing = Writing { setting, granularity, notation, style };
                let task = Task { space: space.clone(), vars, writing };
                if task.validate().is_ok() {
                    agree(&task, proofs);
                    agree_where_thinned(&task, proofs);
                }
            }
        }
    }
}

#[test]
fn the_fast_path_writes_what_the_proof_says() {
    for key in KEYS {
        let space = Space::named(key).unwrap();
        for vars in [1, 2] {
            agree_in_every_way(&space, vars, Style::default(), 12);
        }
        for subtask in Subtask::ALL {
            agree_in_every_way(&space.subtask(subtask), 1, Style::default(), 6);
        }
        agree_in_every_way(&space.subtask(Subtask::Mul3).subtask(Subtask::Signed), 2, Style::default(), 6);
    }
}

#[test]
fn and_in_every_style_and_space() {
    let mut space = Space::named("medium_degree").unwrap();
    for order in [TermOrder::Paper, TermOrder::Grlex] {
        for ones in [false, true] {
            agree_in_every_way(&space, 2, Style { order, ones }, 4);
            agree_in_every_way(&space.subtask(Subtask::Signed), 2, Style { order, ones }, 8);
        }
    }
    (space.retry, space.variables, space.degree.polynomial) = (Retry::Factor, Variables::Uniform, 6);
    agree_in_every_way(&space, 5, Style::default(), 4);
    (space.retry, space.coeff.factor, space.coeff.product, space.coeff.polynomial) =
        (Retry::Polynomial, 5000, 1 << 32, 1 << 40);
    agree_in_every_way(&space, 3, Style::default(), 4);
    agree_in_every_way(&space.subtask(Subtask::Signed), 3, Style::default(), 4);
}

/// Terms cancel often where few monomials and small coefficients are drawn.
#[test]
fn and_where_terms_cancel() {
    let text = "[space]\ncoeff = { polynomial = 12, product = 6, factor = 1 }\nterms = { product = 4, factor = 4 }\n\
                degree = { polynomial = 2, factor = 1 }\nmin = { products = 1 }\nsigned = true";
    let space = Space::from_toml(text).unwrap();
    agree_in_every_way(&space, 1, Style::default(), 100);
    agree_in_every_way(&space, 2, Style { ones: true, ..Style::default() }, 50);
}

/// Its starts fit into a span of 65 535 tokens; the last sumstep of its eighth proof would have 71 627 of them.
#[test]
fn a_space_whose_products_are_too_long_is_refused() {
    let mut space = Space::named("medium_terms").unwrap();
    (space.coeff.polynomial, space.coeff.product, space.coeff.factor) = (1 << 40, 1 << 32, 2);
    (space.degree.polynomial, space.degree.factor) = (255, 85);
    (space.terms.product, space.terms.factor, space.products.max, space.factors.max) = (1024, 16, 29, 3);
    let sampler = |space: &Space| Sampler::new(&Task::new(space.clone(), 2), 1, Purpose::Train);
    let error = sampler(&space).unwrap_err().to_string();
    assert!(error.starts_with("terms.product = 1024 is too large: a step could have"), "{error}");
    (space.degree.polynomial, space.degree.factor, space.products.max) = (6, 3, 28);
    assert!(sampler(&space).is_ok(), "there are only 28 monomials");
}

/// A sub-task written as inside the target has the lines of its product in a sum, without the rest of that sum.
#[test]
fn a_product_inside_is_written_as_in_a_sum() {
    let space = Space::named("no_backtrack").unwrap();
    let one = Product(vec![Factor(vec![Term::plain(1, Monomial::ONE)])]);
    for (setting, notation, granularity) in [Setting::Plain, Setting::Calculator].into_iter().flat_map(|setting| {
        let both = [Notation::Infix, Notation::Prefix].into_iter();
        both.flat_map(move |n| Granularity::known().into_iter().map(move |g| (setting, n, g)))
    }) {
        let writing = Writing { setting, notation, granularity, ..Writing::default() };
        let task = Task { space: space.subtask(Subtask::Mul3), vars: 2, writing };
        let mut plain = Sampler::new(&task, 1, Purpose::Train).unwrap();
        let mut inside = Sampler::new(&task, 1, Purpose::Train).unwrap().inside();
        let (before, behind) = match notation {
            Notation::Infix => ("", "+(1)"),
            Notation::Prefix => ("+P ", " INT+ 1"),
        };
        for index in 0..20 {
            let start = plain.proof(index).start().clone();
            let sum = State::Sum([start.products(), std::slice::from_ref(&one)].concat());
            let proof = writing.proof(&sum).unwrap();
            let stripped = |tokens: &[u8]| {
                let text = writing.text(tokens);
                let text = text.strip_prefix(before).and_then(|text| text.strip_suffix(behind));
                text.expect("the rest of the sum").to_owned()
            };
            let steps = writing.lines(&proof).filter(|line| line.kind != StepKind::Sumstep);
            let expected: Vec<_> = steps.map(|line| (stripped(&line.input), stripped(&line.target))).collect();
            let mut found = Examples::default();
            inside.write_examples(index, None, &mut found);
            let text = |i| (writing.text(found.src(i)), writing.text(found.tgt(i)));
            assert_eq!((0..found.len()).map(text).collect::<Vec<_>>(), expected, "{writing:?} {index}");
        }
    }
}

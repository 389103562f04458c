//! The laws of the exact core, on polynomials drawn from every space.

use polystep_core::notation::{Open, laid_out, parse, parse_open, parse_tokens, print, print_open, write_tokens};
use polystep_core::proof::Operand;
use polystep_core::space::{KEYS, Retry, Variables};
use polystep_core::writing::untagged;
use polystep_core::{
    Granularity, Notation, Proof, Purpose, Sampler, Setting, Space, State, StepKind, Style, Subtask, Task, TermOrder,
    Verdict, Writing, token,
};
use proptest::prelude::*;

fn granularity() -> impl Strategy<Value = Granularity> {
    prop::sample::select(Granularity::known())
}

fn style() -> impl Strategy<Value = Style> {
    let order = prop::sample::select(vec![TermOrder::Paper, TermOrder::Grlex]);
    (order, any::<bool>()).prop_map(|(order, ones)| Style { order, ones })
}

fn space() -> impl Strategy<Value = Space> {
    let retry = prop::sample::select(vec![Retry::Factor, Retry::Product, Retry::Polynomial]);
    let variables = prop::sample::select(vec![Variables::All, Variables::Uniform]);
    let subtask = prop::sample::select(Subtask::ALL.to_vec());
    let key = prop::sample::select(KEYS.to_vec());
    (key, subtask, retry, variables, any::<bool>()).prop_map(|(key, subtask, retry, variables, signed)| {
        let space = Space { retry, variables, signed, ..Space::named(key).unwrap() };
        space.subtask(subtask)
    })
}

prop_compose! {
    /// A task, and one of its proofs.
    fn drawn()(
        space in space(), vars in 1usize..=4, granularity in granularity(), style in style(),
        notation in prop::sample::select(Notation::ALL.to_vec()), seed in any::<u64>(), index in any::<u64>(),
    ) -> (Task, Proof) {
        let writing = Writing { granularity, notation, style, ..Writing::default() };
        let task = Task { writing, ..Task::new(space, vars) };
        let proof = Sampler::new(&task, seed, Purpose::Train).unwrap().proof(index);
        (task, proof)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_step_keeps_the_value((task, proof) in drawn()) {
        let order = task.writing.style.order;
        let value = proof.start().value(order).unwrap();
        for state in proof.states() {
            prop_assert_eq!(state.value(order).unwrap(), value.clone());
        }
        let steps: Vec<_> = proof.steps().collect();
        for pair in steps.windows(2) {
            prop_assert_eq!(&pair[0].after, &pair[1].before);
            prop_assert!(pair[0].kind <= pair[1].kind, "facsteps, then mulsteps, then sumsteps");
        }
        prop_assert!(steps.iter().all(|s| s.before != s.after));
        prop_assert_eq!(proof.end(), &State::Bare(value));
    }

    #[test]
    fn coarse_and_fine_reach_one_endpoint((task, proof) in drawn(), other in granularity()) {
        let again = Proof::of(proof.start(), other, task.writing.style).unwrap();
        prop_assert_eq!(again.end(), proof.end());
    }

    #[test]
    fn endpoints_are_inside_every_cap((task, proof) in drawn()) {
        let Space { coeff, degree, terms, products, factors, .. } = task.space;
        let order = task.writing.style.order;
        let end = proof.end().value(order).unwrap();
        prop_assert!(end.terms().is_sorted_by(|a, b| order.compare(a.1, b.1).is_lt()));
        prop_assert!(end.max_coeff() <= coeff.polynomial && end.degree() <= degree.polynomial);
        let found = proof.start().products();
        prop_assert!((products.min as usize..=products.max as usize).contains(&found.len()));
        for product in found {
            let expanded = product.value(order).unwrap();
            prop_assert!(expanded.max_coeff() <= coeff.product && expanded.terms().len() <= terms.product as usize);
            prop_assert!((1..=factors.max as usize).contains(&product.0.len()));
            for factor in &product.0 {
                prop_assert!(factor.0.len() <= terms.factor as usize);
                prop_assert!(factor.0.iter().all(|t| t.coeff.unsigned_abs() <= coeff.factor && t.monomial.degree() <= degree.factor));
            }
        }
    }

    #[test]
    fn parsing_inverts_printing((task, proof) in drawn()) {
        let Writing { notation, style, .. } = task.writing;
        for step in proof.steps() {
            for state in [&step.before, &step.after] {
                let text = print(state, notation, style);
                let read = parse(&text, notation, style);
                prop_assert_eq!(read.as_ref(), Ok(state), "{}", text);
                prop_assert_eq!(token::decode(&token::encode(&text).unwrap(), notation), text);
            }
            let text = print_open(&step.after, &step.open, notation, style);
            let read = parse_open(&text, notation, style);
            prop_assert_eq!(read, Ok((step.after.clone(), step.open.clone())), "{}", text);
        }
    }

    #[test]
    fn a_calculator_computes_the_plain_step((task, proof) in drawn()) {
        for notation in Notation::ALL {
            let writing = |setting| Writing { setting, notation, ..task.writing };
            let calculator = writing(Setting::Calculator);
            let (plain, open) = (writing(Setting::Plain).lines(&proof), calculator.lines(&proof));
            prop_assert_eq!(plain.len(), open.len());
            for (plain, open) in plain.zip(open) {
                prop_assert_eq!(open.next.as_ref(), Some(&plain.target));
                prop_assert_eq!(calculator.evaluated(&open.target), Some(plain.target.clone()));
            }
        }
    }

    #[test]
    fn annotations_mark_exactly_what_the_step_rewrites((task, proof) in drawn()) {
        let writing = Writing { setting: Setting::Annotated, notation: Notation::Infix, ..task.writing };
        let lines: Vec<_> = writing.lines(&proof).collect();
        prop_assert_eq!(lines.len(), 2 * proof.kinds().len() + 1);
        for (i, step) in proof.steps().enumerate() {
            let (marked, result) = (&lines[2 * i].target, untagged(&lines[2 * i + 1].target).unwrap());
            let mut parts = marked[2..].split(|&t| t == token::HASH);
            let (mut before, _operand, mut after) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            prop_assert!(parts.next().is_none());
            if let Operand::Terms { .. } = step.operand {
                // Terms that vanish or turn negative take the `+` beside them with them.
                before = before.strip_suffix(&[token::PLUS]).unwrap_or(before);
                after = after.strip_prefix(&[token::PLUS]).unwrap_or(after);
            }
            // The step that writes the endpoint drops the last parentheses.
            let inside = |part: &[u8]| part.iter().copied().filter(|&t| t != token::OPEN && t != token::CLOSE).collect();
            let (before, after): (Vec<u8>, Vec<u8>) =
                if step.after.is_endpoint() { (inside(before), inside(after)) } else { (before.to_vec(), after.to_vec()) };
            prop_assert!(result.starts_with(&before) && result.ends_with(&after), "{:?}", step);
            let (tokens, layout) = laid_out(&step.before, Notation::Infix, task.writing.style);
            let span = step.operand.span(&tokens, &layout, Notation::Infix);
            let text = print(&step.before, Notation::Infix, task.writing.style);
            let mut with_marks = text.clone();
            with_marks.insert(span.end, '#');
            with_marks.insert(span.start, '#');
            prop_assert_eq!(token::decode(&marked[2..], Notation::Infix), with_marks);
        }
    }

    #[test]
    fn the_checker_tells_right_from_wrong(
        (task, proof) in drawn(), at in any::<prop::sample::Index>(),
        new in prop::sample::select((4u8..34).chain(39..41).collect::<Vec<_>>()), how in 0..3,
    ) {
        let writing = task.writing;
        let Writing { notation, style, .. } = writing;
        for step in proof.steps() {
            let check = writing.check(&step.before, &writing.print(&step.after)).unwrap();
            prop_assert_eq!(check.verdict, Verdict::Exact);

            let mut target = Vec::new();
            write_tokens(&step.after, &Open::new(), notation, style, &mut target);
            let mut tokens = target.clone();
            let i = at.index(tokens.len());
            match how {
                0 => tokens[i] = new,
                1 => { tokens.remove(i); }
                _ => tokens.insert(i, new),
            }
            let value = step.after.value(style.order).unwrap();
            let mutated = parse_tokens(&tokens, notation, style).ok().map(|(s, _)| s.value(style.order));
            let text = token::decode(&tokens, notation);
            let verdict = writing.check(&step.before, &text).unwrap().verdict;
            let judged = writing.judge(step.kind, &target, &tokens).verdict;
            match mutated {
                None => prop_assert!(judged.malformed() && verdict == Verdict::Malformed, "{}", text),
                Some(Ok(v)) if v == value => prop_assert!(verdict <= Verdict::SameValue, "{}", text),
                Some(_) => {
                    prop_assert_eq!(verdict, Verdict::WrongValue, "{}", text);
                    prop_assert!(!judged.exact() && !judged.symbolic());
                }
            }
            prop_assert_eq!(judged.exact(), tokens == target);
        }
    }

    #[test]
    fn nothing_that_can_be_typed_makes_it_panic(text in "[0-9xyz+*^()\\[\\] _#$.-]{0,40}|\\PC{0,20}") {
        for notation in Notation::ALL {
            if let Ok(state) = parse(&text, notation, Style::default()) {
                let _ = Proof::of(&state, Granularity::FINE, Style::default());
                let printed = print(&state, notation, Style::default());
                prop_assert_eq!(parse(&printed, notation, Style::default()), Ok(state));
            }
        }
    }

    #[test]
    fn no_tokens_make_it_panic(tokens in prop::collection::vec(0u8..64, 0..40)) {
        for notation in Notation::ALL {
            let _ = parse_tokens(&tokens, notation, Style::default());
            for setting in Setting::ALL {
                let writing = Writing { setting, notation, ..Writing::default() };
                let _ = writing.judge(StepKind::Mulstep, &[token::DIGIT + 1], &tokens);
                let _ = writing.check_line(&tokens, &tokens);
            }
        }
    }
}

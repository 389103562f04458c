//! The feed as training sees it.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use polystep_core::arithmetic::{Probe, kind_name};
use polystep_core::sets::{SEED, SETS};
use polystep_core::{
    ByClass, ClassWeights, Guard, GuardScope, Notation, Polynomials, Sampler, Setting, Space, StepClass, StepKind,
    Style, Task, Writing, notation, token,
};
use polystep_engine::{Batch, Limits};
use proptest::prelude::*;

use super::*;
use crate::LearnError;

const LIMITS: Limits = Limits { sequences: 7, src_tokens: 3000, tgt_tokens: 3000 };

fn task() -> Task {
    Task::new(Space::named("small_coeff").unwrap(), 1)
}

fn source() -> Proofs {
    Proofs::new(&task(), 3, 512).unwrap().with_blocks_of(10)
}

fn feed(source: &dyn Source, position: Position, counts: Counts, threads: usize) -> BatchQueue {
    BatchQueue::start(source, LIMITS, position, counts, threads).unwrap()
}

/// The next batches, each with what the feed says of itself after it.
fn take(feed: &mut dyn Feed, n: usize) -> Vec<(Batch, Position, Counts)> {
    (0..n)
        .map(|_| {
            let batch = feed.next().unwrap().clone();
            (batch, feed.position(), feed.counts())
        })
        .collect()
}

#[test]
fn one_thread_and_three_give_the_same_batches() {
    let source = source();
    let start = Position::default();
    let one = take(&mut feed(&source, start, Counts::default(), 1), 60);
    let three = take(&mut feed(&source, start, Counts::default(), 3), 60);
    assert_eq!(one, three);
    assert!(one.last().unwrap().1.block > 5, "the batches must cross borders");
}

#[test]
fn any_position_continues_as_if_nothing_had_happened() {
    let source = source();
    let all = take(&mut feed(&source, Position::default(), Counts::default(), 2), 40);
    for stop in [0, 1, 7, 20, 33] {
        let (_, position, counts) = all[stop];
        assert_eq!(take(&mut feed(&source, position, counts, 2), 5), all[stop + 1..stop + 6]);
    }
}

/// small_coeff and, twice as often, large_coeff, with hard steps more often than easy ones.
fn mixed_source() -> Proofs {
    let other = Task::new(Space::named("large_coeff").unwrap(), 2);
    Proofs::mixed(&[task(), other], 3, 512)
        .unwrap()
        .weighted(vec![1.0, 2.0])
        .mixing(hard_more_often())
        .with_blocks_of(60)
}

fn hard_more_often() -> ClassWeights {
    let mut weights = ClassWeights::NATURAL;
    (*weights.at(StepClass::Facstep), *weights.at(StepClass::Sumstep)) = (0.1, 0.4);
    weights
}

#[test]
fn a_mix_depends_on_its_position_alone() {
    let source = mixed_source();
    let start = |at, counted, threads| BatchQueue::resume(&source, LIMITS, at, counted, threads).unwrap();
    let from_the_start = |threads| start(Position::default(), (Counts::default(), ByClass::default()), threads);
    let all = |mut feed: BatchQueue, n| -> Vec<_> {
        (0..n).map(|_| (feed.next().unwrap().clone(), feed.position(), feed.counts(), feed.seen())).collect()
    };
    let one = all(from_the_start(1), 60);
    assert_eq!(one, all(from_the_start(3), 60));
    assert!(one.last().unwrap().1.block > 1, "the batches must cross borders");
    for stop in [0, 8, 33] {
        let (_, position, counts, seen) = one[stop];
        assert_eq!(all(start(position, (counts, seen), 2), 5), one[stop + 1..stop + 6]);
    }
    let (examples, seen) = (one.iter().map(|b| b.0.src.sequences() as u64).sum::<u64>(), one[59].3);
    assert_eq!(seen.0.iter().sum::<u64>(), examples);
}

/// What is left of each class is its share; what is drawn stays the same.
#[test]
fn a_mix_keeps_a_share_of_each_class() {
    let natural = mixed_source().mixing(ClassWeights::NATURAL).with_blocks_of(6000);
    let [natural, mixed] = [natural, mixed_source().with_blocks_of(6000)].map(|source| {
        let mut block = Block::default();
        source.generator().unwrap().fill(1, &mut block, &AtomicBool::new(false));
        block
    });
    let count = |block: &Block, class| block.examples.spans.iter().filter(|s| s.class == class).count() as f64;
    for class in StepClass::ALL {
        let (all, kept) = (count(&natural, class), count(&mixed, class));
        let share = hard_more_often().of(class);
        let deviation = (all * share * (1.0 - share)).sqrt();
        assert!((kept - all * share).abs() <= 5.0 * deviation, "{class}: {kept} of {all}");
    }
    let proofs: HashSet<u32> = natural.examples.spans.iter().map(|s| s.proof).collect();
    assert!(mixed.examples.spans.iter().all(|s| proofs.contains(&s.proof)));
    assert_eq!(natural.counts().proofs, mixed.counts().proofs);
    // Of 6000 proofs 2000 and 4000: proofs 2000.. and 4000.. in the second block.
    let last = |first| natural.examples.spans.iter().filter(|s| s.proof >= first).map(|s| s.proof).max();
    assert_eq!((last(0), natural.examples.spans[0].proof), (Some(7999), 2000));
}

/// A source whose blocks are never done.
struct Endless;

impl Source for Endless {
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
        Ok(Box::new(Endless))
    }
}

impl Generator for Endless {
    fn fill(&mut self, _: u64, _: &mut Block, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn a_wait_for_data_can_be_given_up_and_its_threads_end() {
    let mut feed = feed(&Endless, Position::default(), Counts::default(), 2);
    assert!(feed.next_unless(&|| true).unwrap().is_none());
    drop(feed);
}

/// A source without a single example.
struct Empty;

impl Source for Empty {
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
        Ok(Box::new(Empty))
    }
}

impl Generator for Empty {
    fn fill(&mut self, _: u64, _: &mut Block, _: &AtomicBool) {}
}

#[test]
fn a_source_without_examples_is_an_error() {
    let error = feed(&Empty, Position::default(), Counts::default(), 1).next().unwrap_err().to_string();
    assert!(error.starts_with("the run has no examples to learn from: "), "{error}");
}

#[test]
fn a_position_outside_its_block_is_an_error() {
    let position = Position { block: 0, offset: 1_000_000 };
    let error = feed(&source(), position, Counts::default(), 1).next().unwrap_err().to_string();
    assert!(error.starts_with("the checkpoint's data position is wrong: 1000000 examples"), "{error}");
}

#[test]
fn a_block_is_a_permutation_of_its_proofs_steps() {
    let source = source();
    let mut block = Block::default();
    source.generator().unwrap().fill(4, &mut block, &AtomicBool::new(false));
    let mut sampler = Sampler::new(&task(), 3, polystep_core::Purpose::Train).unwrap();
    let mut plain = polystep_core::Examples::default();
    (40..50).for_each(|i| sampler.write_examples(i, Some(source.guard()), &mut plain));
    let mut expected: Vec<_> = (0..plain.len()).map(|i| (plain.src(i).to_vec(), plain.tgt(i).to_vec())).collect();
    let in_order: Vec<_> = (0..block.len()).map(|i| block.example(i)).map(|(s, t)| (s.to_vec(), t.to_vec())).collect();
    assert_ne!(in_order, expected);
    let mut sorted = in_order;
    sorted.sort();
    expected.sort();
    assert_eq!(sorted, expected);
}

#[test]
fn other_seeds_and_blocks_are_other_data() {
    let other = Proofs::new(&task(), 4, 512).unwrap().with_blocks_of(10);
    let first = |source: &Proofs, block| {
        let mut out = Block::default();
        source.generator().unwrap().fill(block, &mut out, &AtomicBool::new(false));
        out.examples
    };
    assert_ne!(first(&source(), 0), first(&other, 0));
    assert_ne!(first(&source(), 0), first(&source(), 1));
}

#[test]
fn a_space_of_ones_own_is_guarded_too() {
    let space = Space::from_toml("[space]\ncoeff = { polynomial = 30, product = 10, factor = 3 }").unwrap();
    let source = Proofs::new(&Task::new(space.clone(), 1), 1, 512).unwrap();
    for set in SETS {
        let mut polynomials = Polynomials::new(&space, 1, Style::default(), SEED, set.purpose).unwrap();
        for index in 0..set.proofs {
            polynomials.draw(index);
            assert!(source.guard().contains(polynomials.endpoint_fingerprint()));
        }
    }
    assert!(source.guard().len() > Guard::standard().unwrap().len());
}

/// What `guards` says of a test set is what the guard of the training data does.
#[test]
fn a_run_knows_which_sets_it_guarded_against() {
    let task = |key: &str, vars| Task::new(Space::of_key(key).unwrap(), vars);
    let learned = [task("small_coeff", 1), task("small_coeff", 3)];
    for (key, vars, always, guarded) in [
        ("small_coeff", 1, true, true),
        ("no_backtrack", 2, true, false),
        ("small_coeff", 3, true, true),
        ("large_coeff", 3, false, false),
        ("medium_coeff/mul2", 1, false, false),
    ] {
        let tested = task(key, vars);
        for scope in GuardScope::ALL {
            let source = Proofs::guarded(&learned, (scope, &[]), 1, 512).unwrap();
            let guarded = if scope == GuardScope::Own { guarded } else { always };
            assert_eq!(Proofs::guards(scope, &learned, &tested), guarded, "{key}:{vars} {scope}");
            let mut polynomials =
                Polynomials::new(&tested.space, vars, Style::default(), SEED, polystep_core::Purpose::Test).unwrap();
            let held = |index| {
                polynomials.draw(index);
                source.guard().contains(polynomials.endpoint_fingerprint())
            };
            assert_eq!((0..1000).all(held), guarded, "{key}:{vars} {scope}");
        }
    }
    let arithmetic = Writing { setting: Setting::Arithmetic, ..Writing::default() };
    let exercises = Task { writing: arithmetic, ..task("small_coeff", 1) };
    assert!(Proofs::guards(GuardScope::Own, &[], &exercises));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Every example's value, taken from its source as a text and simplified from scratch, is outside the guard. Spaces as
    /// small as this one collide all the time.
    #[test]
    fn no_guarded_endpoint_is_ever_trained_on(seed in 0u64..1000, block in 0u64..1000) {
        let space = Space::named("small_coeff").unwrap();
        let source = Proofs::new(&Task::new(space, 1), seed, 512).unwrap().with_blocks_of(300);
        let mut out = Block::default();
        source.generator().unwrap().fill(block, &mut out, &AtomicBool::new(false));
        for i in 0..out.len() {
            let text = token::decode(out.example(i).0, Notation::Infix);
            let state = notation::parse(&text, Notation::Infix, Style::default()).unwrap();
            let end = state.value(Style::default().order).unwrap();
            prop_assert!(!source.guard().contains(end.fingerprint()), "{}", text);
        }
        prop_assert_eq!(out.counts().proofs, 300);
    }
}

/// The probe's training blocks hold exercises that no evaluation set has, in equal parts and in both notations alike.
#[test]
fn exercises_are_guarded_and_mixed() {
    let block = |notation| {
        let space = Space::exercises("arithmetic").unwrap();
        let task = Task {
            writing: Writing { setting: Setting::Arithmetic, notation, ..Writing::default() },
            ..Task::new(space, 1)
        };
        let mut block = Block::default();
        Proofs::new(&task, 1, 512).unwrap().generator().unwrap().fill(3, &mut block, &AtomicBool::new(false));
        block
    };
    let (infix, prefix) = (block(Notation::Infix), block(Notation::Prefix));
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut fixed = HashSet::new();
    for set in SETS {
        let probe = Probe::new("arithmetic", SEED, set.purpose);
        fixed.extend((0..set.proofs).map(|i| probe.exercise(i, None).0.line(Notation::Infix).input));
    }
    for i in 0..infix.len() {
        let (input, target) = infix.example(i);
        assert!(!fixed.contains(input));
        let (a, b) = (token::decode(target, Notation::Infix), token::decode(prefix.example(i).1, Notation::Prefix));
        assert_eq!(a, b.replace("INT+", "").replace(' ', ""));
        let kind = if input.contains(&token::TIMES) { StepKind::Mul } else { StepKind::Add };
        *kinds.entry(kind_name(kind, input)).or_default() += 1;
    }
    assert_eq!(infix.len() as u64, BLOCK_PROOFS);
    assert!(infix.counts().rejected > 0, "{:?}", infix.counts());
    assert_eq!(kinds.values().copied().collect::<Vec<_>>(), [BLOCK_PROOFS as usize / 4; 4]);
}

#[test]
fn rejections_are_counted() {
    let mut block = Block::default();
    Proofs::new(&task(), 1, 512).unwrap().with_blocks_of(3000).generator().unwrap().fill(
        0,
        &mut block,
        &AtomicBool::new(false),
    );
    assert!(block.counts().rejected > 0, "{:?}", block.counts());
}

#[test]
fn tasks_share_a_block_in_equal_parts() {
    let large = Task::new(Space::named("large_coeff").unwrap(), 2);
    let tasks = [task(), large.clone(), Task { vars: 2, ..task() }];
    let source = Proofs::mixed(&tasks, 3, 512).unwrap().with_blocks_of(10);
    let mut block = Block::default();
    source.generator().unwrap().fill(2, &mut block, &AtomicBool::new(false));
    // 3, 3 and 4 of ten proofs; the second task's are its proofs 6 to 8.
    let starts = |task: &Task, proofs: std::ops::Range<u64>| {
        let mut sampler = Sampler::new(task, 3, polystep_core::Purpose::Train).unwrap();
        let mut examples = polystep_core::Examples::default();
        for i in proofs {
            sampler.write_examples(i, Some(source.guard()), &mut examples);
        }
        (0..examples.len()).map(|i| examples.src(i).to_vec()).collect::<Vec<_>>()
    };
    let mut want = [starts(&tasks[0], 6..9), starts(&large, 6..9), starts(&tasks[2], 8..12)].concat();
    let mut got: Vec<Vec<u8>> = (0..block.len()).map(|i| block.example(i).0.to_vec()).collect();
    want.sort();
    got.sort();
    assert_eq!((got, block.counts().proofs), (want, 10));
}

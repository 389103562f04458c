//! The streams are pinned: the n-th polynomial of a seed is the same in every later version.
//!
//! `golden/streams.txt` holds the first three starts of each configuration for seed 1, and a BLAKE3 checksum of the tokens
//! of the first 500 proofs of every kind of task, and of the first 1000 exercises of each of the arithmetic probe's sets. `UPDATE_GOLDEN=1 cargo test -p polystep-core --test streams` rewrites it;
//! a change to that file is a break with every dataset ever generated.

use std::fmt::Write;
use std::path::Path;

use polystep_core::notation::print;
use polystep_core::sets::SEED;
use polystep_core::space::{KEYS, Retry, Variables};
use polystep_core::{
    Examples, Granularity, Notation, Polynomials, Purpose, Sampler, Setting, Space, Style, Subtask, Task, Writing,
    arithmetic,
};

fn golden() -> String {
    let mut text = String::new();
    for key in KEYS {
        for vars in [1, 2] {
            let task = Task::new(Space::named(key).unwrap(), vars);
            let mut sampler = Sampler::new(&task, 1, Purpose::Train).unwrap();
            for index in 0..3 {
                let start = print(sampler.proof(index).start(), Notation::Infix, task.writing.style);
                writeln!(text, "{key} {vars} {index} {start}").unwrap();
            }
        }
    }
    steps(&mut text, "medium_coeff", "");
    for key in arithmetic::KEYS {
        for (purpose, seed) in
            [(Purpose::Train, 1), (Purpose::Valid, SEED), (Purpose::Test, SEED), (Purpose::Beam, SEED)]
        {
            let probe = arithmetic::Probe::new(key, seed, purpose);
            let mut hasher = blake3::Hasher::new();
            for index in 0..1000 {
                let (exercise, _) = probe.exercise(index, None);
                hasher.update(&exercise.line(Notation::Infix).input).update(&[255]);
            }
            writeln!(text, "{key} {} {seed} {}", purpose.name(), hasher.finalize().to_hex()).unwrap();
        }
    }
    for (space, vars) in keyed() {
        let mut polynomials = Polynomials::new(&space, vars, Style::default(), 1, Purpose::Train).unwrap();
        polynomials.draw(0);
        let start = print(&polynomials.state(Notation::Infix), Notation::Infix, Style::default());
        writeln!(text, "{}: {start}", space.stream_key(vars)).unwrap();
    }
    steps(&mut text, "medium_coeff/signed", "signed ");
    text
}

/// Checksums of the first 500 proofs of a space in every way of writing.
fn steps(text: &mut String, key: &str, name: &str) {
    for setting in Setting::ALL {
        for granularity in [Granularity::COARSE, Granularity::FINE, Granularity::FINE_COUNTED] {
            for notation in Notation::ALL {
                let space = Space::of_key(key).unwrap();
                let writing = Writing { setting, granularity, notation, ..Writing::default() };
                let task = Task { writing, ..Task::new(space, 2) };
                let Ok(mut sampler) = Sampler::new(&task, 1, Purpose::Train) else {
                    continue;
                };
                let mut examples = Examples::default();
                (0..500).for_each(|i| sampler.write_examples(i, None, &mut examples));
                let mut hasher = blake3::Hasher::new();
                for i in 0..examples.len() {
                    hasher.update(examples.kind(i).name().as_bytes());
                    hasher.update(examples.src(i)).update(&[255]);
                    hasher.update(examples.tgt(i)).update(&[255]);
                }
                writeln!(text, "{name}{setting} {granularity} {notation} {}", hasher.finalize().to_hex()).unwrap();
            }
        }
    }
}

/// Spaces that differ from the paper's in what keys their streams.
fn keyed() -> Vec<(Space, usize)> {
    let mut spaces = Vec::new();
    for retry in [Retry::Factor, Retry::Product, Retry::Polynomial] {
        for variables in [Variables::All, Variables::Uniform] {
            spaces.push((Space { retry, variables, ..Space::named("medium_coeff").unwrap() }, 3));
        }
    }
    let base = Space::named("large_coeff").unwrap();
    spaces.push((Space { vars_prod: Some(2), vars_fac: Some(1), ..base.clone() }, 3));
    for subtask in Subtask::ALL {
        spaces.push((base.subtask(subtask), 2));
    }
    spaces
}

#[test]
fn the_streams_have_not_moved() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/streams.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, golden()).unwrap();
    }
    assert_eq!(golden(), std::fs::read_to_string(path).unwrap());
}

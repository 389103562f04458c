//! A model's answers to a test set, as prediction records in files: greedy, by recursion, and by beam search.
//!
//! Greedy decoding and recursion share their answers: where greedy decoding gets every step of a proof right, recursion asks the
//! model nothing new.

use std::time::Instant;

use anyhow::Context;
use polystep_core::sets::FixedSet;
use polystep_core::{Purpose, Task};
use polystep_learn::decode::{
    AnswerCache, EngineStepper, Recursion, Stepper, assisted_answers, beam_answers, greedy_answers, recursive_answers,
};
use polystep_learn::feed::Questions;
use polystep_record::{Decoding, RecursiveRecord, SetFolder, write_json_lines};

use super::{Options, set_of};
use crate::decode_progress::ReportingStepper;
use crate::failure::{Result, bad_input};
use crate::interrupt;
use crate::output::note;

/// Steps of the validation set that the best threshold of confidence is chosen on.
const VALID_STEPS: usize = 1000;

/// Has the model answer proofs that are in no set, and writes the records.
pub fn fresh(stepper: &mut EngineStepper, task: &Task, (seed, proofs): (u64, u64), folder: &SetFolder) -> Result<()> {
    std::fs::create_dir_all(folder.path()).with_context(|| format!("cannot make {}", folder.path().display()))?;
    let questions = Questions::fresh(task, seed, proofs).map_err(bad_input)?;
    timed(stepper, task, "greedy", questions.len(), |stepper| {
        Ok(write_json_lines(
            &folder.answers(Decoding::Greedy),
            greedy_answers(&questions, stepper, &mut AnswerCache::default())?,
        )?)
    })
}

/// Has the model answer one test set, and writes the records. On a set of its `own` space its confidence is measured on
/// validation too.
pub fn set(stepper: &mut EngineStepper, task: &Task, own: bool, folder: &SetFolder, options: &Options) -> Result<()> {
    let questions = |purpose, most: usize| {
        let set = FixedSet::of(purpose).map(|set| if options.long { set.lengthened() } else { set });
        let set = set.ok_or_else(|| bad_input("training has no fixed set"))?;
        Questions::of(task, FixedSet { steps: set.steps.min(most), ..set }).map_err(bad_input)
    };
    let proofs = options.proofs.unwrap_or(usize::MAX);

    let test = questions(Purpose::Test, usize::MAX)?.first_proofs(proofs);
    let mut cache = AnswerCache::default();
    timed(stepper, task, "greedy", test.len(), |stepper| {
        Ok(write_json_lines(&folder.answers(Decoding::Greedy), greedy_answers(&test, stepper, &mut cache)?)?)
    })?;
    timed(stepper, task, "recursive", test.len(), |stepper| {
        let records = recursive_answers(&test, stepper, &mut cache)?.into_iter().map(|r| recursive_record(r, task));
        Ok(write_json_lines(&folder.answers(Decoding::Recursive), records)?)
    })?;
    let Some(width) = options.beam else { return Ok(()) };
    timed(stepper, task, "assisted", test.len(), |stepper| {
        Ok(write_json_lines(&folder.answers(Decoding::Assisted), assisted_answers(&test, stepper, &mut cache)?)?)
    })?;
    let width = usize::from(width);
    let beam = questions(Purpose::Beam, proofs.saturating_mul(5))?;
    timed(stepper, task, "beam", beam.len(), |stepper| {
        let (headline, lp1) = beam_answers(&beam, stepper, width)?;
        write_json_lines(&folder.answers(Decoding::Beam), headline)?;
        Ok(write_json_lines(&folder.answers(Decoding::BeamLp1), lp1)?)
    })?;
    if own {
        let valid = questions(Purpose::Valid, VALID_STEPS.min(proofs.saturating_mul(5)))?;
        timed(stepper, task, "threshold", valid.len(), |stepper| {
            Ok(write_json_lines(&folder.answers(Decoding::Valid), beam_answers(&valid, stepper, width)?.0)?)
        })?;
    }
    Ok(())
}

fn recursive_record(recursion: Recursion, task: &Task) -> RecursiveRecord {
    let text = |states: &[Vec<u8>]| states.iter().map(|s| task.writing.text(s)).collect();
    RecursiveRecord {
        proof: recursion.proof,
        states: text(&recursion.found.states),
        expected: text(&recursion.expected),
        stop: recursion.found.stop,
    }
}

/// Has a model answer `steps` steps of a task's set, watched, and says how long it took.
fn timed(
    stepper: &mut EngineStepper,
    task: &Task,
    what: &str,
    steps: usize,
    work: impl FnOnce(&mut dyn Stepper) -> Result<()>,
) -> Result<()> {
    let start = Instant::now();
    let set = set_of(task);
    let done = work(&mut ReportingStepper::new(stepper, format!("steps of {set}, {what}"), steps));
    // A signal ends decoding by an error of the stepper.
    interrupt::check()?;
    done?;
    note(format_args!("  {set}  {what:<10}{steps:>6} steps in {:.1} s", start.elapsed().as_secs_f64()));
    Ok(())
}

//! Proofs of typed expressions by a trained model: the one mechanism behind the command line, the server and Python.
//!
//! A [`Problem`] is what a person typed. [`fitting`] chooses a model for it. An [`OpenProof`] knows every line that the model
//! will be asked for, and turns its answers into [steps](ModelStep), one at a time or all at once:
//!
//! - [`prove`] and [`prove_many`] ask for all lines at once, which is fastest for whole proofs;
//! - a server asks for the next line of many proofs at once, and shows each step when it is there.
//!
//! Model and checker work together, so every line is right: where the model's greedy step is not the expected one, a beam
//! takes its place, and if no beam is, the exact step. Alone, the model's own output is its next input, and every line is
//! judged against the start.

mod alone;
mod choice;
mod judged;
mod open;
mod problem;
mod record;

pub use choice::{KnownModel, fitting, known_models};
pub use judged::ANOTHER_WAY;
pub use open::{OpenProof, ProveError, verdict_on};
pub use problem::{Problem, ProblemError};
pub use record::{ModelProof, ModelStep, StepsBy};

use polystep_core::writing::Line;

use crate::decode::{AnswerCache, BEAM_WIDTH, Stepper, assisted_steps, beam_search};

/// How a model is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProveOptions {
    /// The model by itself, without the checker's help.
    pub alone: bool,
    /// The beams of every step, not only of those that needed them.
    pub alternatives: bool,
}

/// Has a model write the whole proof.
pub fn prove(open: OpenProof, stepper: &mut dyn Stepper, options: ProveOptions) -> Result<ModelProof, ProveError> {
    Ok(prove_many(vec![open], stepper, options)?.remove(0))
}

/// Has one model write many proofs. It is asked for the lines of all of them at once.
pub fn prove_many(
    mut open: Vec<OpenProof>,
    stepper: &mut dyn Stepper,
    options: ProveOptions,
) -> Result<Vec<ModelProof>, ProveError> {
    if options.alone {
        return alone::alone(open, stepper, options.alternatives);
    }
    let Some(first) = open.first() else { return Ok(Vec::new()) };
    let lines: Vec<Line> = open.iter().flat_map(|o| o.waiting().to_vec()).collect();
    let mut steps = assisted_steps(stepper, first.writing(), &lines, &mut AnswerCache::default())?;
    if options.alternatives {
        let rest: Vec<usize> = (0..steps.len()).filter(|&i| steps[i].beams.is_empty()).collect();
        let inputs: Vec<&[u8]> = rest.iter().map(|&i| lines[i].input.as_slice()).collect();
        for (i, found) in rest.into_iter().zip(beam_search(stepper, &inputs, BEAM_WIDTH)?) {
            steps[i].beams = found.headline;
        }
    }
    let mut steps = steps.iter();
    for open in &mut open {
        for step in steps.by_ref().take(open.waiting().len()) {
            open.push(step, options.alternatives);
        }
    }
    Ok(open.into_iter().map(OpenProof::finish).collect())
}

//! The proof by a trained model, together with the checker or (`--alone`) by itself, printed.

use polystep_learn::prove::{OpenProof, Problem, ProveError, ProveOptions, prove as prove_by};
use polystep_learn::trained::TrainedModel;

use super::exact::NOTHING_TO_PROVE;
use super::show;
use crate::device::Device;
use crate::failure::{Failure, Result, bad_input};
use crate::trained_model;

/// A model, and why it is this one.
pub struct ChosenModel {
    /// The model.
    pub trained: TrainedModel,
    /// The name of its folder.
    pub name: String,
    /// Why it was chosen.
    pub why: String,
}

/// What to print, and whether the answer is right.
pub struct PrintedAnswer {
    pub text: String,
    pub right: bool,
}

/// Has the model prove an expression; as JSON, or as text.
pub fn prove(
    chosen: &ChosenModel,
    problem: &Problem,
    device: Device,
    threads: usize,
    options: ProveOptions,
    json: bool,
) -> Result<PrintedAnswer> {
    let ChosenModel { trained, name, why } = chosen;
    let open = OpenProof::new(trained, name, why, problem)?;
    if open.lines().is_empty() && !json {
        return Ok(PrintedAnswer { text: format!("{NOTHING_TO_PROVE}\n"), right: true });
    }
    let mut stepper = trained_model::stepper(trained, device, threads)?;
    let proof = prove_by(open, &mut stepper, options)?;
    let text = match json {
        true => serde_json::to_string(&proof)? + "\n",
        false => show::for_people(&proof, &problem.names, options.alternatives, &stepper.device()),
    };
    Ok(PrintedAnswer { text, right: proof.answer_right != Some(false) })
}

impl From<ProveError> for Failure {
    fn from(error: ProveError) -> Failure {
        match error {
            ProveError::Engine(error) => error.into(),
            ProveError::TooLong { .. } => {
                bad_input(format!("{error}: polystep prove --symbolic writes the exact proof"))
            }
            error => bad_input(error),
        }
    }
}

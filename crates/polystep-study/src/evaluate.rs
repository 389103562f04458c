//! From predictions to an [`Evaluation`]: the one way in for our models and everyone else's.

use std::path::Path;

use polystep_core::Writing;

use crate::error::StudyError;
use crate::metrics::{self, Evaluation};
use crate::predictions::{Prediction, Records};
use crate::recursive::{self, RecursiveRecord};
use crate::run::{BEAM, BEAM_LP1, GREEDY, RECURSIVE, VALID};
use crate::score::score_all;

/// A stream of predictions.
pub type Predictions<'a> = Box<dyn Iterator<Item = Result<Prediction, StudyError>> + 'a>;

/// What there is to be scored on one test set; what is left out is not measured.
#[derive(Default)]
pub struct Inputs<'a> {
    /// Greedy, teacher-forced: every step of every proof.
    pub greedy: Option<Predictions<'a>>,
    /// Beam search, headline order.
    pub beam: Option<Predictions<'a>>,
    /// Beam search, the classic order.
    pub beam_lp1: Option<Predictions<'a>>,
    /// Beam search on validation, for the best threshold.
    pub valid: Option<Predictions<'a>>,
    /// Recursive proofs.
    pub recursive: Option<Box<dyn Iterator<Item = Result<RecursiveRecord, StudyError>> + 'a>>,
}

impl Inputs<'static> {
    /// The files of a set's folder, as far as they exist.
    pub fn open(folder: &Path) -> Result<Inputs<'static>, StudyError> {
        let open = |name: &str| -> Result<Option<Predictions<'static>>, StudyError> {
            let path = folder.join(name);
            Ok(if path.exists() { Some(Box::new(Records::open(&path)?)) } else { None })
        };
        let recursive = folder.join(RECURSIVE);
        Ok(Inputs {
            greedy: open(GREEDY)?,
            beam: open(BEAM)?,
            beam_lp1: open(BEAM_LP1)?,
            valid: open(VALID)?,
            recursive: if recursive.exists() { Some(Box::new(Records::open(&recursive)?)) } else { None },
        })
    }
}

/// Measures everything that the inputs allow.
///
/// ```
/// use polystep_core::Writing;
/// use polystep_study::{Inputs, Prediction, evaluate};
/// let line = r#"{"proof":"a","step":0,"kind":"sumstep","input":"(x1)+(2*x1)","target":"3*x1",
///                "beams":[{"output":"3*x1","logprob":-0.1}]}"#;
/// let predictions = vec![serde_json::from_str::<Prediction>(line).unwrap()];
/// let inputs = Inputs { greedy: Some(Box::new(predictions.into_iter().map(Ok))), ..Inputs::default() };
/// let evaluation = evaluate("small_coeff", 1, inputs, &Writing::default())?;
/// assert_eq!(evaluation.greedy.unwrap().full_proof.exact.percent, 100.0);
/// # Ok::<(), polystep_study::StudyError>(())
/// ```
pub fn evaluate(config: &str, vars: u32, inputs: Inputs<'_>, writing: &Writing) -> Result<Evaluation, StudyError> {
    let scored = |stream: Option<Predictions<'_>>| stream.map(|s| score_all(s, writing)).transpose();
    let greedy = scored(inputs.greedy)?;
    let (beam, lp1, valid) = (scored(inputs.beam)?, scored(inputs.beam_lp1)?, scored(inputs.valid)?);
    Ok(Evaluation {
        config: config.to_owned(),
        vars,
        greedy: greedy.map(|outcomes| metrics::greedy(&outcomes)).transpose()?.flatten(),
        recursive: inputs.recursive.map(recursive::score).transpose()?.flatten(),
        beam: beam.and_then(|outcomes| metrics::beam(&outcomes, valid.as_deref())),
        // Validation was searched in headline order, so its threshold says nothing about the other.
        beam_lp1: lp1.and_then(|outcomes| metrics::beam(&outcomes, None)),
    })
}

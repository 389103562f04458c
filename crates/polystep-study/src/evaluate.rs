//! From predictions to an [`Evaluation`]: the one way in for our models and everyone else's.

use polystep_record::{Decoding, JsonLines, Prediction, RecordError, RecursiveRecord, SetFolder};

use serde::de::DeserializeOwned;

use polystep_core::Writing;

use crate::error::StudyError;
use crate::metrics::{self, Evaluation};
use crate::recursive;
use crate::score::score_all;

/// A stream of predictions.
pub type Predictions<'a> = Box<dyn Iterator<Item = Result<Prediction, RecordError>> + 'a>;

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
    pub recursive: Option<Box<dyn Iterator<Item = Result<RecursiveRecord, RecordError>> + 'a>>,
}

impl Inputs<'static> {
    /// The files of a set's folder, as far as they exist.
    pub fn open(folder: &SetFolder) -> Result<Inputs<'static>, RecordError> {
        fn open<T: DeserializeOwned + 'static>(folder: &SetFolder, decoding: Decoding) -> Found<T> {
            let path = folder.answers(decoding);
            Ok(if path.exists() { Some(Box::new(JsonLines::open(&path)?)) } else { None })
        }
        Ok(Inputs {
            greedy: open(folder, Decoding::Greedy)?,
            beam: open(folder, Decoding::Beam)?,
            beam_lp1: open(folder, Decoding::BeamLp1)?,
            valid: open(folder, Decoding::Valid)?,
            recursive: open(folder, Decoding::Recursive)?,
        })
    }
}

type Found<T> = Result<Option<Box<dyn Iterator<Item = Result<T, RecordError>>>>, RecordError>;

/// Measures everything that the inputs allow.
///
/// ```
/// use polystep_core::Writing;
/// use polystep_record::Prediction;
/// use polystep_study::{Inputs, evaluate};
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

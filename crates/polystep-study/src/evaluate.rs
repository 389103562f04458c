//! From predictions to an [`Evaluation`]: the one way in for our models and everyone else's.

use polystep_core::Writing;
use polystep_record::{AssistedRecord, Decoding, JsonLines, RecordError, RecursiveRecord, SetFolder, TestSet};
use serde::de::DeserializeOwned;

use crate::assisted;
use crate::error::StudyError;
use crate::metrics::{self, Evaluation};
use crate::recursive;
use crate::score::{ScoredStep, judge, score_judged};

/// What there is on one test set; what is left out is not measured.
#[derive(Default)]
pub struct Inputs {
    /// Greedy, teacher-forced: every step of every proof.
    pub greedy: Option<Vec<ScoredStep>>,
    /// Beam search, headline order.
    pub beam: Option<Vec<ScoredStep>>,
    /// Beam search, the classic order.
    pub beam_lp1: Option<Vec<ScoredStep>>,
    /// Beam search on validation, for the best threshold.
    pub valid: Option<Vec<ScoredStep>>,
    /// Recursive proofs.
    pub recursive: Option<Vec<RecursiveRecord>>,
    /// Assisted proofs.
    pub assisted: Option<Vec<AssistedRecord>>,
}

/// As many beams as the paper's search has: the most that a checker looks at.
const BEAMS: usize = 5;

impl Inputs {
    /// Judges the answers in a set's folder, as far as they exist, and stores the verdicts beside them.
    pub fn judge(folder: &SetFolder, writing: &Writing) -> Result<Inputs, RecordError> {
        let scored = |decoding| -> Result<_, RecordError> {
            let Some(found) = folder.read(decoding, writing)? else { return Ok(None) };
            let verdicts: Vec<_> = found.predictions.iter().map(|prediction| judge(prediction, writing)).collect();
            folder.write_verdicts(decoding, writing, &verdicts)?;
            let judged = found.predictions.iter().zip(&verdicts);
            Ok(Some(judged.map(|(prediction, verdict)| score_judged(prediction, verdict, writing)).collect()))
        };
        Ok(Inputs {
            greedy: scored(Decoding::Greedy)?,
            beam: scored(Decoding::Beam)?,
            beam_lp1: scored(Decoding::BeamLp1)?,
            valid: scored(Decoding::Valid)?,
            recursive: records(folder, Decoding::Recursive)?,
            assisted: records(folder, Decoding::Assisted)?,
        })
    }
}

/// The records of a file, if it exists.
fn records<T: DeserializeOwned>(folder: &SetFolder, decoding: Decoding) -> Result<Option<Vec<T>>, RecordError> {
    let path = folder.answers(decoding);
    path.exists().then(|| JsonLines::open(&path)?.collect()).transpose()
}

/// Measures everything that the inputs allow.
///
/// ```
/// use polystep_core::Writing;
/// use polystep_record::{Prediction, TestSet};
/// use polystep_study::score::score;
/// use polystep_study::{Inputs, evaluate};
/// let line = r#"{"proof":"a","step":0,"kind":"sumstep","input":"(x1)+(2*x1)","target":"3*x1",
///                "beams":[{"output":"3*x1","logprob":-0.1}]}"#;
/// let prediction: Prediction = serde_json::from_str(line).unwrap();
/// let inputs = Inputs { greedy: Some(vec![score(&prediction, &Writing::default())]), ..Inputs::default() };
/// let evaluation = evaluate(&TestSet::new("small_coeff", 1), &inputs)?;
/// assert_eq!(evaluation.greedy.unwrap().full_proof.exact.percent, 100.0);
/// # Ok::<(), polystep_study::StudyError>(())
/// ```
pub fn evaluate(set: &TestSet, inputs: &Inputs) -> Result<Evaluation, StudyError> {
    let valid = inputs.valid.as_deref();
    Ok(Evaluation {
        config: set.config.clone(),
        vars: set.vars,
        space: None,
        unguarded: false,
        long: false,
        greedy: inputs.greedy.as_deref().map(metrics::greedy).transpose()?.flatten(),
        recursive: inputs.recursive.as_deref().and_then(recursive::score),
        assisted: inputs.assisted.as_deref().and_then(|records| assisted::score(records, BEAMS)),
        beam: inputs.beam.as_deref().and_then(|outcomes| metrics::beam(outcomes, valid)),
        // Validation was searched in headline order, so its threshold says nothing about the other.
        beam_lp1: inputs.beam_lp1.as_deref().and_then(|outcomes| metrics::beam(outcomes, None)),
    })
}

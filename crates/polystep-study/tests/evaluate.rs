//! An evaluation computed by hand, and the shape of metrics.json.

mod fixture;

use fixture::Fake;
use polystep_core::{StepKind, Writing};
use polystep_record::{Beam, Keys, PaperSetting, Prediction, Proportion, TestSet};
use polystep_study::score::score;
use polystep_study::{Evaluation, Inputs, Metrics, Provenance, StudyError, evaluate};

fn prediction(
    proof: &str,
    step: usize,
    kind: StepKind,
    input: &str,
    target: &str,
    beams: &[(&str, f64)],
) -> Prediction {
    let beam =
        |(output, logprob): &(&str, f64)| Beam { output: (*output).into(), logprob: Some(*logprob), finished: true };
    Prediction {
        proof: proof.into(),
        step,
        kind,
        input: input.into(),
        target: target.into(),
        beams: beams.iter().map(beam).collect(),
    }
}

/// Two proofs of two steps and one of one. `a` is right; `b` copies its input at its mulstep (right value) and then adds
/// wrongly; `c` cannot be read.
fn five() -> Vec<Prediction> {
    use StepKind::{Mulstep, Sumstep};
    let product = "(2)*(x1)+(3)";
    let sum = "(2*x1)+(3)";
    vec![
        prediction("a", 0, Mulstep, product, sum, &[(sum, -0.1), (product, -7.1)]),
        prediction("a", 1, Sumstep, sum, "2*x1+3", &[("2*x1+3", -0.2), ("2*x1+4", -4.2)]),
        prediction("b", 0, Mulstep, product, sum, &[(product, -0.5), (sum, -1.0)]),
        prediction("b", 1, Sumstep, sum, "2*x1+3", &[("3*x1+3", -0.1), ("2*x1+4", -9.0)]),
        prediction("c", 0, Sumstep, sum, "2*x1+3", &[("2*x1+", -1.0)]),
    ]
}

fn scored(list: Vec<Prediction>) -> Result<Evaluation, StudyError> {
    let scored = || Some(list.iter().map(|prediction| score(prediction, &Writing::default())).collect());
    let inputs = Inputs { greedy: scored(), beam: scored(), valid: scored(), ..Inputs::default() };
    evaluate(&TestSet::new("small_coeff", 1), &inputs)
}

#[test]
fn by_hand() {
    let evaluation = scored(five()).unwrap();
    let greedy = evaluation.greedy.unwrap();
    assert_eq!((greedy.full_proof.exact.count, greedy.full_proof.exact.of), (1, 3));
    assert_eq!(greedy.full_proof.symbolic.count, 1);
    assert_eq!((greedy.stepwise.exact.count, greedy.stepwise.exact.of), (2, 5));
    assert_eq!(greedy.stepwise.symbolic.count, 3);
    assert_eq!(greedy.malformed.count, 1);
    let classes: Vec<_> = greedy.by_class.iter().map(|(class, right)| (class.name(), right.count, right.of)).collect();
    assert_eq!(classes, [("mul_multi0", 1, 2), ("sumstep", 1, 3)]);
    assert_eq!(greedy.raw_exact, None);
    let kind = |kind| greedy.errors.of_kind(kind).unwrap();
    assert_eq!((greedy.errors.wrong_proofs, greedy.errors.wrong_steps), (2, 3));
    assert_eq!((kind(StepKind::Mulstep).first.unwrap().count, kind(StepKind::Mulstep).total.unwrap().count), (1, 1));
    assert_eq!((kind(StepKind::Sumstep).first.unwrap().count, kind(StepKind::Sumstep).total.unwrap().count), (1, 2));

    let beam = evaluation.beam.unwrap();
    assert_eq!((beam.width, beam.top1.exact.count, beam.any5.exact.count), (2, 2, 3));
    // Margins: 7, 4, 0.5, 8.9 and, with a single beam, +∞. Sure: a0 (right), b1, c0 (wrong).
    let calibration = beam.calibration.unwrap();
    let counts = |p: Option<Proportion>| p.map(|p| (p.count, p.of)).unwrap();
    assert_eq!(counts(calibration.sure.sure_rate), (3, 5));
    assert_eq!(counts(calibration.sure.precision), (1, 3));
    assert_eq!(counts(calibration.sure.recall), (1, 2));
    assert!((calibration.sure.f1.unwrap() - 0.4).abs() < 1e-12);
    // Of the six pairs (right, wrong), 7 > 0.5 and 4 > 0.5 are in order.
    assert!((calibration.auroc.unwrap() - 2.0 / 6.0).abs() < 1e-12);
    // Right answers stand at places 3 and 4 of the order by margin: (1/3 + 2/4) / 2.
    assert!((calibration.auprc.unwrap() - (1.0 / 3.0 + 0.5) / 2.0).abs() < 1e-12);
    // F1 is highest if everything but the tie is accepted: 2·2 / (4 + 2), at the threshold 0.5.
    let best = calibration.best.unwrap();
    assert_eq!((best.test.threshold, best.valid_steps), (0.5, 5));
    assert!((best.valid_f1 - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn the_order_of_a_file_does_not_matter_but_every_step_does() {
    let forward = scored(five()).unwrap();
    let mut backward = five();
    backward.reverse();
    assert_eq!(scored(backward).unwrap().greedy.unwrap().errors, forward.greedy.unwrap().errors);
    let mut twice = five();
    twice.push(twice[0].clone());
    assert!(scored(twice).unwrap_err().to_string().starts_with("step 0 of proof a stands twice"));
    let mut gap = five();
    gap.remove(2);
    assert!(scored(gap).unwrap_err().to_string().starts_with("proof b has a step 1 but no step 0"));
    let nothing = scored(Vec::new()).unwrap();
    assert!(nothing.greedy.is_none() && nothing.beam.is_none());
}

#[test]
fn the_identity_holds_for_a_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Fake::default().write(folder.path()).metrics.unwrap();
    let beam = metrics.evaluations[0].beam.as_ref().unwrap();
    let sure = beam.calibration.as_ref().unwrap().sure;
    let [rate, precision, recall] = [sure.sure_rate, sure.precision, sure.recall].map(|p| p.unwrap().percent);
    assert!(
        (recall - precision * rate / beam.top1.exact.percent).abs() < 1e-5,
        "up to the six decimals of the document"
    );
    assert!(rate > 50.0 && precision > 95.0, "the made-up model is calibrated");
}

/// The keys of metrics.json, in order: what others may rely on.
#[test]
fn the_document_is_stable() {
    let keys = Keys { vars: 1, config: "small_coeff".into(), setting: Some(PaperSetting::Plain), ..Keys::default() };
    let run = Provenance { seed: Some(1), ..Provenance::default() };
    let metrics = Metrics { run, keys, evaluations: vec![scored(five()).unwrap()], ..Metrics::default() };
    let text = serde_json::to_string_pretty(&metrics).unwrap();
    insta::assert_snapshot!("metrics_json", text);
    let again: Metrics = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string_pretty(&again).unwrap(), text);
}

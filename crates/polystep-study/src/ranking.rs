//! How well a score separates right from wrong answers: AUROC and AUPRC, with ties as scikit-learn handles them.
//!
//! Equal scores form one threshold and have no order. In the ROC curve they are a straight line (each tied pair counts half),
//! in the precision-recall curve one step. AUPRC is the average precision Σ (Rₙ − Rₙ₋₁)·Pₙ. The trapezoid rule would give a
//! higher area than the model deserves.

/// What lies at or above one distinct score.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cut {
    /// The score.
    pub score: f64,
    /// Right answers with at least this score.
    pub right: u64,
    /// Wrong answers with at least this score.
    pub wrong: u64,
}

/// The cumulative counts at every distinct score, the highest first. An answer is its score, which should be high if it is right
/// and may be +∞, and whether it is right.
pub fn cuts(answers: impl Iterator<Item = (f64, bool)>) -> Vec<Cut> {
    let mut sorted: Vec<_> = answers.collect();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut cuts: Vec<Cut> = Vec::new();
    let (mut right, mut wrong) = (0, 0);
    for (score, is_right) in sorted {
        right += u64::from(is_right);
        wrong += u64::from(!is_right);
        match cuts.last_mut() {
            Some(last) if last.score == score => (last.right, last.wrong) = (right, wrong),
            _ => cuts.push(Cut { score, right, wrong }),
        }
    }
    cuts
}

/// The probability that a right answer scores above a wrong one, ties counted half. `None` unless both kinds occur.
pub fn auroc(cuts: &[Cut]) -> Option<f64> {
    let (right, wrong) = totals(cuts).filter(|&(right, wrong)| right > 0 && wrong > 0)?;
    let mut area = 0.0;
    let mut before = (0, 0);
    for cut in cuts {
        area += (cut.wrong - before.1) as f64 * (cut.right + before.0) as f64 / 2.0;
        before = (cut.right, cut.wrong);
    }
    Some(area / (right as f64 * wrong as f64))
}

/// The average precision. `None` if no answer is right.
pub fn auprc(cuts: &[Cut]) -> Option<f64> {
    let (right, _) = totals(cuts).filter(|&(right, _)| right > 0)?;
    let mut area = 0.0;
    let mut before = 0;
    for cut in cuts {
        area += (cut.right - before) as f64 / right as f64 * cut.right as f64 / (cut.right + cut.wrong) as f64;
        before = cut.right;
    }
    Some(area)
}

/// All right and all wrong answers.
pub fn totals(cuts: &[Cut]) -> Option<(u64, u64)> {
    cuts.last().map(|last| (last.right, last.wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `roc_auc_score` and `average_precision_score`, from reference/sklearn_golden.py.
    #[test]
    fn the_areas_are_scikit_learns() {
        let golden: serde_json::Value = serde_json::from_str(include_str!("../tests/golden/sklearn.json")).unwrap();
        let cases = golden["ranking"].as_array().unwrap();
        assert!(cases.len() >= 8);
        for case in cases {
            let labels = case["labels"].as_array().unwrap().iter().map(|y| y.as_u64().unwrap() == 1);
            let scores = case["scores"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap_or(f64::INFINITY));
            let cuts = cuts(scores.zip(labels));
            let close = |ours: f64, key: &str| (ours - case[key].as_f64().unwrap()).abs() < 1e-12;
            assert!(close(auroc(&cuts).unwrap(), "auroc"), "{}: {:?}", case["name"], auroc(&cuts));
            assert!(close(auprc(&cuts).unwrap(), "auprc"), "{}: {:?}", case["name"], auprc(&cuts));
        }
    }

    #[test]
    fn one_class_has_no_area() {
        let right = cuts([(1.0, true)].into_iter());
        assert_eq!((auroc(&right), auprc(&right)), (None, Some(1.0)));
        let wrong = cuts([(1.0, false)].into_iter());
        assert_eq!((auroc(&wrong), auprc(&wrong)), (None, None));
        assert_eq!((auroc(&[]), auprc(&[])), (None, None));
    }
}

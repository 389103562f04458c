//! Does the model know when it is right? (§4, "calibration")
//!
//! The paper measures the confidence of an answer by its margin: ln p₁ − ln p₂ of the two best beams. An answer is *sure* if its
//! margin is above the threshold (5). A search that finished fewer than two beams has no second answer, so its margin is +∞, even
//! when nothing finished. Precision is the share of sure answers that are right. Recall is the share of right answers that are
//! sure. Therefore recall = precision × sure rate ÷ top-1. This identity revealed misprints in the paper's tables.

use crate::ranking::{self, Cut};
use polystep_record::Proportion;
use polystep_record::metrics::{BestThreshold, Calibration, CurvePoint, ReliabilityBin, Sure};

/// The paper's threshold.
pub const THRESHOLD: f64 = 5.0;

/// One answer of a beam search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Answer {
    /// The first beam is right.
    pub right: bool,
    /// ln p₁ − ln p₂ of the two best finished beams, +∞ if there are fewer.
    pub margin: f64,
    /// ln p₁; −∞ if nothing finished.
    pub logprob: f64,
}

/// The margin of finished beams, in any order, by their log-probabilities.
pub fn margin(logprobs: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = logprobs.into_iter().collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    match sorted[..] {
        // Two beams of probability 0 are equally (un)likely; their difference is not a number.
        [first, second, ..] if first == second => 0.0,
        [first, second, ..] => first - second,
        _ => f64::INFINITY,
    }
}

/// Counts at a threshold.
pub fn sure_at(threshold: f64, answers: &[Answer]) -> Sure {
    let count = |keep: &dyn Fn(&Answer) -> bool| answers.iter().filter(|a| keep(a)).count() as u64;
    let sure = count(&|a| a.margin > threshold);
    let right = count(&|a| a.right);
    let sure_and_right = count(&|a| a.right && a.margin > threshold);
    Sure {
        threshold,
        sure_rate: Proportion::new(sure, answers.len() as u64),
        precision: Proportion::new(sure_and_right, sure),
        recall: Proportion::new(sure_and_right, right),
        f1: f1(sure_and_right, sure, right),
    }
}

/// 2·both ÷ (sure + right): the harmonic mean of precision and recall, and 0 where those do not meet.
fn f1(sure_and_right: u64, sure: u64, right: u64) -> Option<f64> {
    (sure + right > 0).then(|| 2.0 * sure_and_right as f64 / (sure + right) as f64)
}

/// Points kept of a precision-recall curve.
pub const CURVE: usize = 100;

/// Measures answers; the best threshold is chosen on `valid` only.
pub fn calibrate(answers: &[Answer], valid: Option<&[Answer]>) -> Calibration {
    let cuts = cuts(answers);
    let reliability = reliability(answers);
    let n = answers.len() as f64;
    let gap = |bin: &ReliabilityBin| bin.right.of as f64 / n * (bin.confidence - bin.right.percent).abs();
    Calibration {
        sure: sure_at(THRESHOLD, answers),
        auroc: ranking::auroc(&cuts),
        auprc: ranking::auprc(&cuts),
        best: valid.and_then(|valid| {
            let (threshold, valid_f1) = best_threshold(valid)?;
            Some(BestThreshold { valid_steps: valid.len() as u64, valid_f1, test: sure_at(threshold, answers) })
        }),
        expected_error: (!reliability.is_empty()).then(|| reliability.iter().map(gap).sum()),
        curve: curve(&cuts),
        reliability,
    }
}

fn cuts(answers: &[Answer]) -> Vec<Cut> {
    ranking::cuts(answers.iter().map(|a| (a.margin, a.right)))
}

/// The threshold with the highest F1, and that F1. Among equals the highest: it claims the least.
///
/// A threshold is the largest margin that is not sure any more, so +∞ is never one.
pub fn best_threshold(answers: &[Answer]) -> Option<(f64, f64)> {
    let cuts = cuts(answers);
    let (right, _) = ranking::totals(&cuts).filter(|&(right, _)| right > 0)?;
    let mut best: Option<(f64, f64)> = None;
    for (i, cut) in cuts.iter().enumerate() {
        // Below every margin: 0 accepts them all unless two beams tied.
        let lowest = if cut.score > 0.0 { 0.0 } else { -1.0 };
        let threshold = cuts.get(i + 1).map_or(lowest, |next| next.score);
        let f1 = f1(cut.right, cut.right + cut.wrong, right)?;
        if best.is_none_or(|(_, most)| f1 > most) {
            best = Some((threshold, f1));
        }
    }
    best
}

fn reliability(answers: &[Answer]) -> Vec<ReliabilityBin> {
    let mut tenths = [(0u64, 0u64, 0.0f64); 10];
    for answer in answers {
        let p = answer.logprob.exp().min(1.0);
        let tenth = &mut tenths[((p * 10.0) as usize).min(9)];
        *tenth = (tenth.0 + u64::from(answer.right), tenth.1 + 1, tenth.2 + p);
    }
    let bin = |(i, (right, of, sum)): (usize, (u64, u64, f64))| {
        let right = Proportion::new(right, of)?;
        let from = 10.0 * i as f64;
        Some(ReliabilityBin { from, to: from + 10.0, confidence: 100.0 * sum / of as f64, right })
    };
    tenths.into_iter().enumerate().filter_map(bin).collect()
}

/// The curve, thinned evenly in recall; its two ends always stay.
fn curve(cuts: &[Cut]) -> Vec<CurvePoint> {
    let Some((right, _)) = ranking::totals(cuts).filter(|&(right, _)| right > 0) else {
        return Vec::new();
    };
    let point = |cut: &Cut| CurvePoint {
        margin: cut.score.is_finite().then_some(cut.score),
        precision: 100.0 * cut.right as f64 / (cut.right + cut.wrong) as f64,
        recall: 100.0 * cut.right as f64 / right as f64,
    };
    let every = cuts.len().div_ceil(CURVE - 1).max(1);
    let last = cuts.len() - 1;
    cuts.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, cut)| point(cut)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answers(list: &[(bool, f64)]) -> Vec<Answer> {
        list.iter().map(|&(right, margin)| Answer { right, margin, logprob: -0.1 }).collect()
    }

    #[test]
    fn the_margin_of_beams() {
        assert_eq!(margin([-0.5, -6.0, -7.0]), 5.5);
        assert_eq!(margin([-6.0, -0.5]), 5.5);
        assert_eq!(margin([-0.5]), f64::INFINITY);
        assert_eq!(margin([]), f64::INFINITY);
        assert_eq!(margin([f64::NEG_INFINITY, f64::NEG_INFINITY]), 0.0);
    }

    /// Eight answers; sure are those above 5: three right, one wrong; two right ones are missed. 5 itself is not sure.
    #[test]
    fn the_papers_columns_by_hand() {
        let list = [
            (true, 9.0),
            (true, 7.0),
            (false, 6.0),
            (true, f64::INFINITY),
            (true, 5.0),
            (true, 1.0),
            (false, 0.5),
            (false, 0.1),
        ];
        let sure = sure_at(THRESHOLD, &answers(&list));
        assert_eq!(sure.sure_rate.unwrap().percent, 50.0);
        assert_eq!(sure.precision.unwrap().percent, 75.0);
        assert_eq!(sure.recall.unwrap().percent, 60.0);
        assert!((sure.f1.unwrap() - 2.0 * 0.75 * 0.6 / 1.35).abs() < 1e-15);
        // All but the two last: F1 = 2·5/(6+5). Taking fewer loses right ones, taking more adds wrong ones.
        assert_eq!(best_threshold(&answers(&list)), Some((0.5, 10.0 / 11.0)));
    }

    #[test]
    fn the_extremes_have_no_numbers_instead_of_wrong_ones() {
        let none = sure_at(THRESHOLD, &answers(&[(true, 1.0), (false, 1.0)]));
        assert_eq!((none.precision, none.recall.unwrap().percent, none.f1), (None, 0.0, Some(0.0)));
        let wrong = sure_at(THRESHOLD, &answers(&[(false, 9.0)]));
        assert_eq!((wrong.precision.unwrap().percent, wrong.recall), (0.0, None));
        assert_eq!(best_threshold(&answers(&[(false, 9.0)])), None);
        let empty = calibrate(&[], Some(&[]));
        assert_eq!((empty.sure.sure_rate, empty.auroc, empty.best, empty.expected_error), (None, None, None, None));
    }

    #[test]
    fn a_tie_of_beams_is_never_sure_by_accident() {
        assert_eq!(best_threshold(&answers(&[(true, 0.0)])), Some((-1.0, 1.0)));
        assert_eq!(best_threshold(&answers(&[(true, 0.2)])), Some((0.0, 1.0)));
        // Only the rivalless answer is right: the threshold is the largest finite margin.
        assert_eq!(best_threshold(&answers(&[(true, f64::INFINITY), (false, 3.0)])), Some((3.0, 1.0)));
    }

    #[test]
    fn reliability_by_hand() {
        let answer = |right, p: f64| Answer { right, margin: 1.0, logprob: p.ln() };
        let list = [answer(true, 0.95), answer(true, 0.97), answer(false, 0.15), answer(true, 0.17)];
        let measured = calibrate(&list, None);
        assert_eq!(measured.reliability.len(), 2);
        let low = measured.reliability[0];
        assert_eq!((low.from, low.right.percent), (10.0, 50.0));
        assert!((low.confidence - 16.0).abs() < 1e-9);
        // ½·|16 − 50| + ½·|96 − 100|
        assert!((measured.expected_error.unwrap() - 19.0).abs() < 1e-9);
    }

    proptest! {
        /// recall = precision × sure rate ÷ top-1, the paper's identity.
        #[test]
        fn the_identity_of_the_paper(list in prop::collection::vec((any::<bool>(), 0.0f64..12.0), 1..200)) {
            let list = answers(&list);
            let top1 = Proportion::of(list.iter().map(|a| a.right)).unwrap();
            let sure = sure_at(THRESHOLD, &list);
            if let (Some(precision), Some(recall)) = (sure.precision, sure.recall) {
                let product = precision.percent * sure.sure_rate.unwrap().percent / top1.percent;
                prop_assert!((recall.percent - product).abs() < 1e-9);
                let (p, r) = (precision.percent / 100.0, recall.percent / 100.0);
                if p + r > 0.0 {
                    prop_assert!((sure.f1.unwrap() - 2.0 * p * r / (p + r)).abs() < 1e-12);
                }
            }
        }

        /// No threshold on a fine grid beats the chosen one.
        #[test]
        fn the_best_threshold_is_the_best(list in prop::collection::vec((any::<bool>(), 0u8..20), 1..60)) {
            let list: Vec<_> = list.into_iter().map(|(right, m)| (right, f64::from(m) / 2.0)).collect();
            let list = answers(&list);
            if let Some((threshold, f1)) = best_threshold(&list) {
                prop_assert_eq!(sure_at(threshold, &list).f1, Some(f1));
                for step in -1..30 {
                    let other = sure_at(f64::from(step) / 2.0, &list).f1.unwrap();
                    prop_assert!(other <= f1);
                }
            }
        }
    }
}

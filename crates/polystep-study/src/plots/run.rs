//! The charts of one run: learning curves, confidence, and where the errors are. A comparison adds one chart of several runs.

use std::collections::BTreeMap;

use crate::chart::{Axis, Bar, Chart, Series, bars, plot};
use crate::number::short;
use polystep_record::LogLine;
use polystep_record::metrics::Calibration;
use polystep_record::metrics::Slice;

/// The points of a curve, from left to right.
type Points = Vec<(f64, f64)>;

/// Accuracy and loss over the examples seen. The log does not say how many proofs are validated; the run's configuration does.
pub fn learning(log: &[LogLine], valid_proofs: Option<u64>) -> Vec<Chart> {
    let points = |get: fn(&LogLine) -> Option<(u64, f64)>| -> Points {
        log.iter().filter_map(get).map(|(examples, value)| (examples as f64, value)).collect()
    };
    let full = validation(log);
    let stepwise = points(|line| line.valid().map(|l| (l.examples, 100.0 * l.stepwise)));
    let valid_loss = points(|line| line.valid().and_then(|l| Some((l.examples, l.loss?))));
    let exact = points(|line| line.train().and_then(|l| Some((l.examples, 100.0 * l.exact?))));
    let train_loss = points(|line| line.train().map(|l| (l.examples, l.loss)));
    let last = |points: &Points| points.last().map_or("unknown".to_owned(), |p| format!("{:.1} %", p.1));
    let raw = log.iter().filter_map(LogLine::valid).any(|l| l.raw);
    let proofs = valid_proofs.map_or("the validation proofs".to_owned(), |n| format!("{n} validation proofs"));
    let words = format!(
        "At the end {} of {proofs} and {} of their steps are right{}",
        last(&full),
        last(&stepwise),
        if raw { "; raw: brackets as they stand, before evaluation" } else { "" }
    );
    let lines = [("full proofs, validation", full), ("steps, validation", stepwise), ("steps, training", exact)];
    let mut charts: Vec<Chart> = accuracy("Accuracy", words, furthest(log), lines).into_iter().collect();
    charts.extend(by_kind(log, &proofs));
    let losses = series([("training", train_loss), ("validation", valid_loss)]);
    let positive = losses.iter().flat_map(|s| &s.points).map(|p| p.1).filter(|y| *y > 0.0 && y.is_finite());
    let low = positive.clone().fold(f64::INFINITY, f64::min);
    let high = positive.fold(0.0, f64::max);
    if high > 0.0 {
        let words = format!("From {} down to {} per target token", short(high), short(low));
        let y = Axis::log("loss per token, log scale", (low * 0.85, high * 1.15));
        charts.push(plot("Loss", words, (Axis::examples(furthest(log)), y), losses, false));
    }
    charts
}

fn series<'a>(lines: impl IntoIterator<Item = (&'a str, Points)>) -> Vec<Series> {
    lines.into_iter().filter_map(|(name, points)| Series::line(name, points)).collect()
}

/// Percents over the examples seen; `None` without a line.
fn accuracy<'a>(
    title: &str,
    words: String,
    far: f64,
    lines: impl IntoIterator<Item = (&'a str, Points)>,
) -> Option<Chart> {
    let series = series(lines);
    let axes = (Axis::examples(far), Axis::percent("right, %"));
    (!series.is_empty()).then(|| plot(title, words, axes, series, false))
}

/// One validation curve per kind of step; `None` for fewer than two kinds.
fn by_kind(log: &[LogLine], proofs: &str) -> Option<Chart> {
    let mut kinds: BTreeMap<&str, Points> = BTreeMap::new();
    for line in log.iter().filter_map(LogLine::valid) {
        for (kind, share) in &line.by_kind {
            kinds.entry(kind).or_default().push((line.examples as f64, 100.0 * share));
        }
    }
    let end = |(kind, points): (&&str, &Points)| Some(format!("{kind} {:.1} %", points.last()?.1));
    let words =
        format!("Of the steps of {proofs} at the end: {}", kinds.iter().filter_map(end).collect::<Vec<_>>().join(", "));
    if kinds.len() > 1 { accuracy("Accuracy by kind, validation", words, furthest(log), kinds) } else { None }
}

/// One validation curve per run; `None` for fewer than two curves.
pub fn together(runs: &[(&str, &[LogLine])]) -> Option<Chart> {
    let curves = runs.iter().map(|(name, log)| (*name, validation(log)));
    let far = runs.iter().map(|r| furthest(r.1)).fold(1.0, f64::max);
    let words = "Full proofs that are right on validation, run by run".to_owned();
    accuracy("Full proofs on validation", words, far, curves).filter(|chart| chart.legend.len() > 1)
}

/// Full proofs on validation over the examples seen, in percent.
pub fn validation(log: &[LogLine]) -> Points {
    log.iter().filter_map(LogLine::valid).map(|line| (line.examples as f64, 100.0 * line.full_proof)).collect()
}

/// The largest number of examples in a log.
pub fn furthest(log: &[LogLine]) -> f64 {
    log.iter().filter_map(LogLine::progress).map(|(_, examples, _)| examples as f64).fold(1.0, f64::max)
}

/// Precision against recall, and confidence against truth.
pub fn calibration(calibration: &Calibration) -> Vec<Chart> {
    let mut charts = Vec::new();
    let answers = calibration.sure.sure_rate.map_or(String::new(), |share| format!(", {} answers", share.of));
    let points: Points = calibration.curve.iter().map(|p| (p.recall, p.precision)).collect();
    if points.len() > 1 {
        // The first few answers of a curve jump about.
        let low = points.iter().filter(|p| p.0 >= 5.0).map(|p| p.1).fold(100.0, f64::min);
        // The curve of a good model stays near the top, so the axis begins just below it.
        let from = [99.0, 95.0, 90.0, 80.0, 50.0].into_iter().find(|f| *f < low).unwrap_or(0.0);
        let curve = Series { name: "every threshold".into(), points, dots: false, steps: true };
        let dot = |name: String, sure: polystep_record::metrics::Sure| {
            Some(Series::dot(name, (sure.recall?.percent, sure.precision?.percent)))
        };
        let sure = dot(format!("threshold {}", calibration.sure.threshold), calibration.sure);
        let best = calibration.best.map(|best| best.test);
        let best = best.and_then(|sure| dot(format!("best on validation, {:.2}", sure.threshold), sure));
        let words = calibration.auprc.map_or(String::new(), |area| format!("Average precision {area:.4}{answers}"));
        let axes = (Axis::percent("recall, %"), Axis::linear("precision, %", (from, 100.0)));
        let series = [Some(curve), sure, best].into_iter().flatten().collect();
        charts.push(plot("Precision and recall", words, axes, series, false));
    }
    let points: Points = calibration.reliability.iter().map(|b| (b.confidence, b.right.percent)).collect();
    if !points.is_empty() {
        let words = calibration.expected_error.map_or(String::new(), |gap| {
            format!(
                "On average, confidence and truth are {gap:.1} points apart{answers}; the dashed line is perfect calibration"
            )
        });
        let curve = Series { name: "answers by tenths of confidence".into(), points, dots: true, steps: false };
        let axes = (Axis::percent("probability the model gives its answer, %"), Axis::percent("right, %"));
        charts.push(plot("Reliability", words, axes, vec![curve], true));
    }
    charts
}

/// Error rates of slices; `None` without a slice.
pub fn slices(title: &str, x: &str, slices: &[Slice]) -> Option<Chart> {
    let range = |s: &Slice| match s.to {
        Some(to) if to == s.from => s.from.to_string(),
        Some(to) => format!("{}–{to}", s.from),
        None => format!("≥ {}", s.from),
    };
    let bar = |s: &Slice| Bar {
        label: range(s),
        count: format!("{} of {}", s.wrong.count, s.wrong.of),
        note: format!("{}: {} of {} wrong, {:.2} %", range(s), s.wrong.count, s.wrong.of, s.wrong.percent),
        value: s.wrong.percent,
        interval: (s.wrong.lo, s.wrong.hi),
    };
    let drawn: Vec<Bar> = slices.iter().map(bar).collect();
    // The intervals of very small slices would flatten everything else.
    let firm = slices.iter().filter(|s| s.wrong.of >= 20).map(|s| s.wrong.hi);
    let top = firm.chain(slices.iter().map(|s| s.wrong.percent)).fold(1.0, f64::max).min(100.0);
    let notes = drawn.iter().map(|b| b.note.as_str()).collect::<Vec<_>>().join("; ");
    let chart = bars(title, &notes, x, &Axis::linear("wrong, %", (0.0, top * 1.05)), &drawn);
    let description = format!("Wrong steps by the {x}: bars are error rates, whiskers 95 % intervals");
    (!slices.is_empty()).then_some(Chart { description, ..chart })
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_record::{Proportion, TrainLine, ValidLine};

    #[test]
    fn what_was_not_logged_is_not_drawn() {
        assert!(learning(&[], None).is_empty());
        let train_only = [LogLine::Train(TrainLine { examples: 100, loss: 2.0, ..TrainLine::default() })];
        let charts = learning(&train_only, None);
        assert_eq!(charts.iter().map(|c| c.title.as_str()).collect::<Vec<_>>(), ["Loss"]);
        assert!(slices("Terms", "terms", &[]).is_none());
    }

    #[test]
    fn kinds_have_curves_where_there_are_two() {
        let valid = |examples, kinds: &[(&str, f64)]| {
            let by_kind = kinds.iter().map(|(kind, share)| ((*kind).to_owned(), *share)).collect();
            LogLine::Valid(ValidLine { examples, by_kind, ..ValidLine::default() })
        };
        let titles = |log: &[LogLine]| learning(log, None).into_iter().map(|c| c.title).collect::<Vec<_>>();
        assert_eq!(titles(&[valid(100_000, &[("endpoint", 0.5)]), valid(200_000, &[("endpoint", 0.6)])]), ["Accuracy"]);
        let log = [valid(100_000, &[("add4", 0.5), ("mul4", 0.0)]), valid(200_000, &[("add4", 0.99), ("mul4", 0.004)])];
        assert_eq!(titles(&log), ["Accuracy", "Accuracy by kind, validation"]);
        let chart = &learning(&log, Some(50))[1];
        assert_eq!(chart.description, "Of the steps of 50 validation proofs at the end: add4 99.0 %, mul4 0.4 %");
        assert_eq!(chart.legend.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["add4", "mul4"]);
    }

    #[test]
    fn raw_brackets_are_named() {
        let line = |raw| LogLine::Valid(ValidLine { examples: 100, raw, ..ValidLine::default() });
        let words = |raw| learning(&[line(raw)], None).remove(0).description;
        assert_eq!(words(true), words(false) + "; raw: brackets as they stand, before evaluation");
    }

    #[test]
    fn slices_say_their_ranges() {
        let slice = |from, to, wrong| Slice { from, to, wrong: Proportion::new(wrong, 50).unwrap() };
        let chart = slices("Terms", "terms", &[slice(1, Some(1), 0), slice(2, Some(4), 5), slice(5, None, 9)]).unwrap();
        for text in ["1: 0 of 50 wrong", "2–4: 5 of 50 wrong", "≥ 5: 9 of 50 wrong", ">9 of 50<"] {
            assert!(chart.drawing.body.contains(text), "{text}");
        }
    }
}

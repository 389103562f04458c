//! Which charts a run has, and over which axes.

use std::collections::BTreeMap;

use crate::chart::{Axis, Bar, Chart, Series, bars, line, plot, short};
use polystep_record::LogLine;
use polystep_record::metrics::Calibration;
use polystep_record::metrics::Slice;

/// Accuracy and loss over the examples seen.
pub fn learning(log: &[LogLine]) -> Vec<Chart> {
    let pick = |get: &dyn Fn(&LogLine) -> Option<(f64, f64)>| log.iter().filter_map(get).collect::<Vec<_>>();
    let percent = |x: f64, y: f64| (x, 100.0 * y);
    let full = validation(log);
    let stepwise = pick(&|l| match l {
        LogLine::Valid(l) => Some(percent(l.examples as f64, l.stepwise)),
        _ => None,
    });
    let exact = pick(&|l| match l {
        LogLine::Train(l) => l.exact.map(|e| percent(l.examples as f64, e)),
        _ => None,
    });
    let train_loss = pick(&|l| match l {
        LogLine::Train(l) => Some((l.examples as f64, l.loss)),
        _ => None,
    });
    let valid_loss = pick(&|l| match l {
        LogLine::Valid(l) => l.loss.map(|loss| (l.examples as f64, loss)),
        _ => None,
    });
    let mut charts = Vec::new();
    let last =
        |points: &[(f64, f64)]| points.last().map(|p| format!("{:.1} %", p.1)).unwrap_or_else(|| "unknown".to_owned());
    let raw = log.iter().filter_map(LogLine::valid).any(|l| l.raw);
    let words = format!(
        "At the end {} of the validation proofs and {} of their steps are right{}",
        last(&full),
        last(&stepwise),
        if raw { "; raw: brackets as they stand, before evaluation" } else { "" }
    );
    let series: Vec<_> =
        [line("full proofs, validation", full), line("steps, validation", stepwise), line("steps, training", exact)]
            .into_iter()
            .flatten()
            .collect();
    let x = || Axis::linear("training examples", (0.0, furthest(log)), "");
    if !series.is_empty() {
        charts.push(plot("Accuracy", words, x(), Axis::linear("right, %", (0.0, 100.0), ""), series, false));
    }
    charts.extend(by_kind(log));
    let series: Vec<_> = [line("training", train_loss), line("validation", valid_loss)].into_iter().flatten().collect();
    let positive = series.iter().flat_map(|s| &s.points).map(|p| p.1).filter(|y| *y > 0.0 && y.is_finite());
    let low = positive.clone().fold(f64::INFINITY, f64::min);
    let high = positive.fold(0.0, f64::max);
    if high > 0.0 {
        let words = format!("From {} down to {} per target token", short(high), short(low));
        let y = Axis::log("loss per token, log scale", (low * 0.85, high * 1.15));
        charts.push(plot("Loss", words, x(), y, series, false));
    }
    charts
}

/// One validation curve per kind of step; nothing where there are no two kinds to tell apart.
fn by_kind(log: &[LogLine]) -> Option<Chart> {
    let mut kinds: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for line in log.iter().filter_map(LogLine::valid) {
        for (kind, share) in &line.by_kind {
            kinds.entry(kind).or_default().push((line.examples as f64, 100.0 * share));
        }
    }
    if kinds.len() < 2 {
        return None;
    }
    let end = |(kind, points): (&&str, &Vec<(f64, f64)>)| Some(format!("{kind} {:.1} %", points.last()?.1));
    let words = format!("At the end: {}", kinds.iter().filter_map(end).collect::<Vec<_>>().join(", "));
    let series = kinds.into_iter().filter_map(|(kind, points)| line(kind, points)).collect();
    let x = Axis::linear("training examples", (0.0, furthest(log)), "");
    let y = Axis::linear("right, %", (0.0, 100.0), "");
    Some(plot("Accuracy by kind, validation", words, x, y, series, false))
}

/// One validation curve per run.
pub fn together(runs: &[(String, &[LogLine])]) -> Option<Chart> {
    let curve = |(name, log): &(String, &[LogLine])| line(name, validation(log));
    let series: Vec<Series> = runs.iter().filter_map(curve).collect();
    if series.len() < 2 {
        return None;
    }
    let far = runs.iter().map(|r| furthest(r.1)).fold(1.0, f64::max);
    let words = "Full proofs that are right on validation, run by run".to_owned();
    let x = Axis::linear("training examples", (0.0, far), "");
    Some(plot("Full proofs on validation", words, x, Axis::linear("right, %", (0.0, 100.0), ""), series, false))
}

/// Full proofs on validation over the examples seen, in percent.
pub fn validation(log: &[LogLine]) -> Vec<(f64, f64)> {
    log.iter().filter_map(LogLine::valid).map(|line| (line.examples as f64, 100.0 * line.full_proof)).collect()
}

/// The most examples that a log tells of.
pub fn furthest(log: &[LogLine]) -> f64 {
    log.iter().filter_map(LogLine::progress).map(|(_, examples, _)| examples as f64).fold(1.0, f64::max)
}

/// Precision against recall, and confidence against truth.
pub fn calibration(calibration: &Calibration) -> Vec<Chart> {
    let mut charts = Vec::new();
    let points: Vec<_> = calibration.curve.iter().map(|p| (p.recall, p.precision)).collect();
    if points.len() > 1 {
        // The first few answers of a curve jump about.
        let low = points.iter().filter(|p| p.0 >= 5.0).map(|p| p.1).fold(100.0, f64::min);
        // A good model's curve hugs the top: the axis begins where there is something to see.
        let from = [99.0, 95.0, 90.0, 80.0, 50.0].into_iter().find(|f| *f < low).unwrap_or(0.0);
        let curve = Series { name: "every threshold".into(), points, dots: false, steps: true };
        let sure = calibration.sure;
        let at = sure.recall.zip(sure.precision).map(|(r, p)| (r.percent, p.percent));
        let chosen = calibration.best.and_then(|b| Some((b.test.recall?.percent, b.test.precision?.percent)));
        let dot = |name: String, at: (f64, f64)| Series { name, points: vec![at], dots: true, steps: false };
        let series: Vec<_> = [
            Some(curve),
            at.map(|at| dot(format!("threshold {}", sure.threshold), at)),
            chosen.zip(calibration.best).map(|(at, b)| dot(format!("best on validation, {:.2}", b.test.threshold), at)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let words = match calibration.auprc {
            Some(area) => format!("Average precision {area:.4}"),
            None => String::new(),
        };
        let (x, y) = (Axis::linear("recall, %", (0.0, 100.0), ""), Axis::linear("precision, %", (from, 100.0), ""));
        charts.push(plot("Precision and recall", words, x, y, series, false));
    }
    let points: Vec<_> = calibration.reliability.iter().map(|b| (b.confidence, b.right.percent)).collect();
    if !points.is_empty() {
        let words = match calibration.expected_error {
            Some(gap) => format!(
                "On average, confidence and truth are {gap:.1} points apart; the dashed line is perfect calibration"
            ),
            None => String::new(),
        };
        let curve = Series { name: "answers by tenths of confidence".into(), points, dots: true, steps: false };
        let x = Axis::linear("probability the model gives its answer, %", (0.0, 100.0), "");
        charts.push(plot("Reliability", words, x, Axis::linear("right, %", (0.0, 100.0), ""), vec![curve], true));
    }
    charts
}

/// Error rate by a slice.
pub fn slices(title: &str, x: &str, slices: &[Slice]) -> Option<Chart> {
    if slices.is_empty() {
        return None;
    }
    let range = |s: &Slice| match s.to {
        Some(to) if to == s.from => s.from.to_string(),
        Some(to) => format!("{}–{to}", s.from),
        None => format!("≥ {}", s.from),
    };
    let bar = |s: &Slice| Bar {
        label: range(s),
        note: format!("{}: {} of {} wrong, {:.2} %", range(s), s.wrong.count, s.wrong.of, s.wrong.percent),
        value: s.wrong.percent,
        interval: (s.wrong.lo, s.wrong.hi),
    };
    let drawn: Vec<Bar> = slices.iter().map(bar).collect();
    // Slices of a handful have intervals that would flatten everything else.
    let firm = slices.iter().filter(|s| s.wrong.of >= 20).map(|s| s.wrong.hi);
    let top = firm.chain(slices.iter().map(|s| s.wrong.percent)).fold(1.0, f64::max).min(100.0);
    let words: Vec<String> = drawn.iter().map(|b| b.note.clone()).collect();
    let description = words.join("; ");
    let drawing = bars(title, &description, x, &Axis::linear("wrong, %", (0.0, top * 1.05), ""), &drawn);
    Some(Chart {
        title: title.to_owned(),
        description: "Bars are error rates, whiskers 95 % intervals".to_owned(),
        legend: Vec::new(),
        drawing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_record::{Proportion, TrainLine, ValidLine};

    #[test]
    fn what_was_not_logged_is_not_drawn() {
        assert!(learning(&[]).is_empty());
        let train_only = [LogLine::Train(TrainLine { examples: 100, loss: 2.0, ..TrainLine::default() })];
        let charts = learning(&train_only);
        assert_eq!(charts.iter().map(|c| c.title.as_str()).collect::<Vec<_>>(), ["Loss"]);
        assert!(slices("Terms", "terms", &[]).is_none());
    }

    #[test]
    fn kinds_have_curves_where_there_are_two() {
        let valid = |examples, kinds: &[(&str, f64)]| {
            let by_kind = kinds.iter().map(|(kind, share)| ((*kind).to_owned(), *share)).collect();
            LogLine::Valid(ValidLine { examples, by_kind, ..ValidLine::default() })
        };
        let titles = |log: &[LogLine]| learning(log).into_iter().map(|c| c.title).collect::<Vec<_>>();
        assert_eq!(titles(&[valid(100_000, &[("endpoint", 0.5)]), valid(200_000, &[("endpoint", 0.6)])]), ["Accuracy"]);
        let log = [valid(100_000, &[("add4", 0.5), ("mul4", 0.0)]), valid(200_000, &[("add4", 0.99), ("mul4", 0.004)])];
        assert_eq!(titles(&log), ["Accuracy", "Accuracy by kind, validation"]);
        let chart = &learning(&log)[1];
        assert_eq!(chart.description, "At the end: add4 99.0 %, mul4 0.4 %");
        assert_eq!(chart.legend.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["add4", "mul4"]);
    }

    #[test]
    fn raw_brackets_are_named() {
        let line = |raw| LogLine::Valid(ValidLine { examples: 100, raw, ..ValidLine::default() });
        let words = |raw| learning(&[line(raw)]).remove(0).description;
        assert_eq!(words(true), words(false) + "; raw: brackets as they stand, before evaluation");
    }

    #[test]
    fn slices_say_their_ranges() {
        let slice = |from, to, wrong| Slice { from, to, wrong: Proportion::new(wrong, 50).unwrap() };
        let chart = slices("Terms", "terms", &[slice(1, Some(1), 0), slice(2, Some(4), 5), slice(5, None, 9)]).unwrap();
        for text in ["1: 0 of 50 wrong", "2–4: 5 of 50 wrong", "≥ 5: 9 of 50 wrong"] {
            assert!(chart.drawing.body.contains(text), "{text}");
        }
    }
}

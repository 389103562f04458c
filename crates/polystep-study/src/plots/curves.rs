//! Learning curves: validation over training examples, a line for each run, with the paper's result as a mark.
//!
//! A few runs share one panel. Many runs are split into panels by one of their keys. The rest of their names (`coarse infix`)
//! has the same colour in every panel, so formats are compared within a panel and configurations between panels. Seeds of one
//! run share its colour and the paper's result.

use super::run::{furthest, validation};
use crate::chart::{Axis, Chart, Mark, Panel, Panels, Series};
use crate::number::short;
use crate::records::{RunRecord, RunRecords};
use crate::tables::{Need, PaperRow, PaperTable, RAW, TableView, ViewRow};
use polystep_record::paper::KeyColumn;

/// A run with the paper's result beside it.
pub struct CurveOfRun<'a> {
    /// Its name.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// What tells it from the others, but for its seed: keys and their values.
    pub words: Vec<(KeyColumn, String)>,
    /// What is known of it.
    pub record: &'a RunRecord,
    /// The paper's result.
    pub paper: Option<PaperPoint>,
}

/// A result of the paper: its count of examples and percent, and how it prints the latter.
pub struct PaperPoint {
    /// Examples and percent.
    pub at: (f64, f64),
    /// The percent as printed.
    pub text: &'static str,
}

impl CurveOfRun<'_> {
    fn word(&self, key: KeyColumn) -> Option<&str> {
        self.words.iter().find(|(name, _)| *name == key).map(|(_, word)| word.as_str())
    }

    /// Its words, but for one key's.
    fn label(&self, without: Option<KeyColumn>) -> String {
        let words = self.words.iter().filter(|(key, _)| Some(*key) != without);
        words.map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn mark(&self) -> Option<Mark> {
        let PaperPoint { at, text } = self.paper.as_ref()?;
        Some(Mark { at: *at, note: format!("{}, the paper's: {text} at {}", self.label(None), short(at.0)) })
    }
}

/// The step-wise runs of a table, or its one-shot runs, each once.
pub fn runs<'a>(
    table: &PaperTable,
    view: &TableView,
    seeds: u64,
    endpoint: bool,
    records: &'a RunRecords,
) -> Vec<CurveOfRun<'a>> {
    let mut runs: Vec<CurveOfRun> = Vec::new();
    let rows = view.rows.iter().filter_map(|shown| Some((shown, table.rows.get(shown.number - 1)?)));
    for ((shown, row), seed) in rows.flat_map(|row| (1..=seeds).map(move |seed| (row, seed))) {
        for need in row.needs(view.recipe, seed).into_iter().filter(|need| need.endpoint == endpoint) {
            let name = need.experiment.name();
            if let Some(record) = records.get(&name).filter(|_| runs.iter().all(|run| run.name != name)) {
                let words = words(view, shown, &need);
                runs.push(CurveOfRun { name, seed, words, record, paper: paper(row, endpoint) });
            }
        }
    }
    runs
}

fn paper(row: &PaperRow, endpoint: bool) -> Option<PaperPoint> {
    let [count, right] =
        if endpoint { ["endpoint_train_examples", "endpoint_acc"] } else { ["train_examples", "full_proof_acc"] };
    Some(PaperPoint { at: (row.value(count)?, row.value(right)?), text: row.text(right)? })
}

/// Whether a key says something of a step-wise or of a one-shot model: an endpoint has no setting and no granularity.
pub fn belongs(key: KeyColumn, endpoint: bool) -> bool {
    !endpoint || matches!(key, KeyColumn::Vars | KeyColumn::Config | KeyColumn::Notation)
}

/// What tells a run from the others of its table.
fn words(view: &TableView, row: &ViewRow, need: &Need) -> Vec<(KeyColumn, String)> {
    let (_, names) = view.common_keys();
    names
        .into_iter()
        .filter(|name| belongs(*name, need.endpoint))
        .map(|name| (name, row.key(name).to_owned()))
        .filter(|(_, word)| !word.is_empty())
        .collect()
}

/// Lines that one panel can show.
const LINES: usize = 6;

/// The chart; none without a run that was validated.
pub fn chart(title: String, what: &str, runs: &[CurveOfRun]) -> Option<Chart> {
    let drawn: Vec<&CurveOfRun> = runs.iter().filter(|run| !validation(&run.record.log).is_empty()).collect();
    let seen = drawn.iter().map(|run| furthest(&run.record.log));
    let printed = drawn.iter().filter_map(|run| Some(run.paper.as_ref()?.at.0));
    let far = seen.chain(printed).reduce(f64::max)?;
    let key = split(&drawn);
    let seeds = if drawn.iter().any(|run| run.seed > 1) { ", a line for each seed" } else { "" };
    let split = key.map_or(String::new(), |key| format!("; a panel for each {key}"));
    let raw = if drawn.iter().any(|run| run.record.is_raw()) { format!(" {RAW}") } else { String::new() };
    let paper = "A diamond is the paper's test at its count of examples, in the colour of our run.";
    let description = format!("{what}: validation during training, in percent{seeds}{split}. {paper}{raw}");
    let (x, y) = (Axis::examples(1.02 * far), Axis::percent("right, %"));
    Some(Panels { title, description, x, y, panels: panels(&drawn, key) }.chart())
}

/// The key that splits runs which are too many for one panel: the first, `config` before all others, that leaves none with too
/// many, or else the one that leaves the fewest together.
fn split(runs: &[&CurveOfRun]) -> Option<KeyColumn> {
    let most = |key: KeyColumn| {
        let together = |run: &&CurveOfRun| runs.iter().filter(|other| other.word(key) == run.word(key)).count();
        runs.iter().map(together).max().unwrap_or(0)
    };
    let mut keys: Vec<KeyColumn> = runs.first()?.words.iter().map(|(key, _)| *key).collect();
    keys.retain(|key| runs.iter().all(|run| run.word(*key).is_some()) && most(*key) < runs.len());
    keys.sort_by_key(|key| *key != KeyColumn::Config);
    keys.into_iter().filter(|_| runs.len() > LINES).min_by_key(|key| most(*key).max(LINES))
}

/// A panel for each value of a key, in the order of the runs; one of all without a key.
fn panels(runs: &[&CurveOfRun], key: Option<KeyColumn>) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for run in runs {
        let title = key.and_then(|key| run.word(key)).unwrap_or_default();
        let series = Series::line(&run.label(key), validation(&run.record.log));
        // A lone point is no line, and would not be seen.
        let series = series.map(|series| Series { dots: series.points.len() == 1, ..series });
        let at = panels.iter().position(|panel| panel.title == title).unwrap_or_else(|| {
            panels.push(Panel { title: title.to_owned(), lines: Vec::new() });
            panels.len() - 1
        });
        let lines = &mut panels[at].lines;
        let mark = run.mark().filter(|mark| lines.iter().all(|(_, other)| other.as_ref() != Some(mark)));
        lines.extend(series.map(|series| (series, mark)));
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use KeyColumn::{Config, Curriculum, Granularity, Notation};
    use polystep_record::{LogLine, ValidLine};

    fn record() -> RunRecord {
        let valid = |i: u32| {
            let (examples, full_proof) = (100_000 * u64::from(i), 0.1 * f64::from(i));
            LogLine::Valid(ValidLine { examples, full_proof, ..ValidLine::default() })
        };
        RunRecord { config: toml::Table::new(), metrics: Metrics::default(), log: (1..9).map(valid).collect() }
    }

    /// A run for each combination of the keys' values.
    fn all<'a>(record: &'a RunRecord, keys: &[(KeyColumn, usize)]) -> Vec<CurveOfRun<'a>> {
        let mut words: Vec<Vec<(KeyColumn, String)>> = vec![Vec::new()];
        for (key, count) in keys {
            let with = |i: usize, word: &[(KeyColumn, String)]| [word, &[(*key, format!("{key}{i}"))]].concat();
            words = words.iter().flat_map(|word| (0..*count).map(|i| with(i, word)).collect::<Vec<_>>()).collect();
        }
        let paper = || Some(PaperPoint { at: (4e5, 50.0), text: "50" });
        words
            .into_iter()
            .map(|words| CurveOfRun { name: String::new(), seed: 1, words, record, paper: paper() })
            .collect()
    }

    fn key(keys: &[(KeyColumn, usize)]) -> Option<KeyColumn> {
        let record = record();
        split(&all(&record, keys).iter().collect::<Vec<_>>())
    }

    #[test]
    fn many_runs_are_split_by_configuration_first() {
        assert_eq!(key(&[(Config, 3), (Notation, 2)]), None, "six lines can be read");
        assert_eq!(key(&[(Granularity, 2), (Config, 6), (Notation, 2)]), Some(Config));
        assert_eq!(key(&[(Config, 2), (Notation, 3), (Curriculum, 3)]), Some(Notation), "of 9, or of 6");
        assert_eq!(key(&[(Config, 2), (Notation, 8), (Curriculum, 3)]), Some(Notation), "of 24, 6 or 16");
        assert_eq!(key(&[(Config, 2), (Notation, 9), (Curriculum, 3)]), Some(Notation), "of 27, 6 or 18");
        assert_eq!(key(&[(Config, 1), (Notation, 1)]), None);
    }

    #[test]
    fn where_no_key_leaves_few_the_fewest_stay_together() {
        assert_eq!(key(&[(Config, 2), (Notation, 10), (Curriculum, 9)]), Some(Notation));
        assert_eq!(key(&[(Config, 9), (Notation, 9)]), Some(Config));
    }

    #[test]
    fn a_key_that_some_runs_have_not_splits_nothing() {
        let record = record();
        let mut runs = all(&record, &[(Config, 7)]);
        for run in &mut runs[1..] {
            run.words = vec![(Curriculum, "C2".to_owned())];
        }
        assert_eq!(split(&runs.iter().collect::<Vec<_>>()), None);
    }

    #[test]
    fn every_run_is_drawn_once_in_the_panel_of_its_key() {
        let record = record();
        let runs = all(&record, &[(Config, 5), (Notation, 2), (Granularity, 2)]);
        let panels = panels(&runs.iter().collect::<Vec<_>>(), Some(Config));
        assert_eq!(
            panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>(),
            ["config0", "config1", "config2", "config3", "config4"]
        );
        let notes = |panel: &Panel| panel.lines.iter().filter_map(|l| Some(l.1.as_ref()?.note.clone())).collect();
        let drawn: Vec<String> = panels.iter().flat_map(|panel| -> Vec<String> { notes(panel) }).collect();
        let wanted: Vec<String> =
            runs.iter().map(|run| format!("{}, the paper's: 50 at 400k", run.label(None))).collect();
        assert_eq!(drawn, wanted);
        for panel in &panels {
            let names: Vec<&str> = panel.lines.iter().map(|(series, _)| series.name.as_str()).collect();
            let formats = [
                "notation0 granularity0",
                "notation0 granularity1",
                "notation1 granularity0",
                "notation1 granularity1",
            ];
            assert_eq!(names, formats);
        }
    }

    #[test]
    fn seeds_share_the_papers_result() {
        let record = record();
        let mut runs = all(&record, &[(Config, 2)]);
        runs.extend(all(&record, &[(Config, 2)]).into_iter().map(|run| CurveOfRun { seed: 2, ..run }));
        let panels = panels(&runs.iter().collect::<Vec<_>>(), None);
        let drawn: Vec<_> =
            panels[0].lines.iter().map(|(series, mark)| (series.name.as_str(), mark.is_some())).collect();
        assert_eq!(drawn, [("config0", true), ("config1", true), ("config0", false), ("config1", false)]);
        let words = chart("T".into(), "what", &runs).unwrap().description;
        assert!(words.starts_with("what: validation during training, in percent, a line for each seed. A"), "{words}");
    }

    #[test]
    fn a_lone_validation_is_a_dot() {
        let record = RunRecord { log: record().log[..1].to_vec(), ..record() };
        let runs = all(&record, &[(Config, 1)]);
        let panels = panels(&[&runs[0]], None);
        assert!(panels[0].lines[0].0.dots && panels[0].title.is_empty());
        assert!(chart("T".into(), "what", &[]).is_none());
    }
}

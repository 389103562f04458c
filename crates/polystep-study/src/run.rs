//! A run as a reader finds it: every part may be missing, and says so.
//!
//! A part that is there but damaged is treated like one that is missing, with its sentence: a report should show what it can.

use std::fs;
use std::path::Path;

use polystep_core::Writing;
use polystep_record::{JsonLines, Keys, LogLine, RecordError, RunFolder};

use crate::error::StudyError;
use crate::metrics::{Evaluation, Metrics};

/// What there is of a run.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The folder.
    pub folder: RunFolder,
    /// Its name, for people.
    pub name: String,
    /// The resolved configuration.
    pub config: Option<toml::Table>,
    /// The learning curves.
    pub log: Vec<LogLine>,
    /// The numbers.
    pub metrics: Option<Metrics>,
    /// What the model was trained on: from `metrics.json`, else from `config.toml`.
    pub keys: Keys,
    /// How its predictions are written.
    pub writing: Writing,
    /// What is missing or damaged, one sentence each.
    pub notes: Vec<String>,
}

impl StoredRun {
    /// Reads a folder. It is an error if it holds nothing of a run, or if its configuration names a setting, granularity or
    /// notation that does not exist: then nothing could be scored.
    pub fn open(path: &Path) -> Result<StoredRun, StudyError> {
        fs::read_dir(path).map_err(RecordError::file("read", path))?;
        let folder = RunFolder::new(path);
        let mut run = StoredRun {
            name: folder.name(),
            folder,
            config: None,
            log: Vec::new(),
            metrics: None,
            keys: Keys::default(),
            writing: Writing::default(),
            notes: Vec::new(),
        };
        run.config = run.part(&run.folder.config(), "how the model was trained is not known", run.folder.read_config());
        run.log = run.read_log();
        run.metrics = run.part(&run.folder.metrics(), "it has not been evaluated", run.folder.read_metrics());
        if run.config.is_none() && run.metrics.is_none() && run.log.is_empty() {
            return Err(StudyError::NoRun { path: path.to_path_buf(), why: run.notes.join(" ") });
        }
        let (keys, style) = Keys::of_config(run.config.as_ref().unwrap_or(&toml::Table::new()))
            .map_err(|why| RecordError::document(&run.folder.config(), why))?;
        let measured = run.metrics.as_ref().map(|m| &m.keys).filter(|keys| !keys.config.is_empty());
        run.keys = measured.cloned().unwrap_or(keys);
        let caveats = run.metrics.iter().flat_map(|metrics| &metrics.evaluations).filter_map(Evaluation::caveat);
        run.notes.extend(caveats.collect::<Vec<_>>());
        // The table of a configuration says more about the writing than the paper's keys do.
        run.writing = run.keys.writing(style);
        Ok(run)
    }

    /// How many proofs its validation has, by its configuration.
    pub fn valid_proofs(&self) -> Option<u64> {
        self.config.as_ref()?.get("train")?.get("valid_proofs")?.as_integer()?.try_into().ok()
    }

    fn part<T>(&mut self, path: &Path, consequence: &str, read: Result<Option<T>, RecordError>) -> Option<T> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let why = match read {
            Ok(Some(part)) => return Some(part),
            Ok(None) => format!("there is no {name}"),
            Err(RecordError::File { source, .. }) => format!("{name} cannot be read ({source})"),
            Err(RecordError::Document { why, .. }) => format!("{name} is damaged ({why})"),
            Err(error) => format!("{name} is damaged ({error})"),
        };
        self.notes.push(format!("In {}, {why}: {consequence}.", self.name));
        None
    }

    fn read_log(&mut self) -> Vec<LogLine> {
        let path = self.folder.log();
        if !path.exists() {
            self.notes.push(format!("In {}, there is no metrics.jsonl: there are no learning curves.", self.name));
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut read = |line: Result<LogLine, RecordError>| line.map(|line| lines.push(line));
        match JsonLines::open(&path).map(|mut records| records.try_for_each(&mut read)) {
            Ok(Ok(())) => {}
            // The last line of a run that was killed is not whole; nothing follows it.
            Ok(Err(error)) => self.notes.push(format!("The learning curves of {} are cut: {error}.", self.name)),
            Err(error) => self.notes.push(format!("{error}.")),
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use polystep_core::{Granularity, Notation, Setting};
    use polystep_record::PaperSetting;

    use super::*;

    #[test]
    fn every_part_may_be_missing_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run-a");
        assert!(StoredRun::open(&path).unwrap_err().to_string().starts_with("cannot read "));
        fs::create_dir(&path).unwrap();
        assert!(StoredRun::open(&path).unwrap_err().to_string().contains("there is no config.toml"));
        fs::write(path.join("config.toml"), "[data]\nconfig = \"small_coeff\"\nvars = 2\nsetting = \"calculator\"\nnotation = \"prefix\"\ngranularity = \"fine\"\n").unwrap();
        let run = StoredRun::open(&path).unwrap();
        assert_eq!(
            run.notes,
            [
                "In run-a, there is no metrics.jsonl: there are no learning curves.",
                "In run-a, there is no metrics.json: it has not been evaluated."
            ]
        );
        assert_eq!(run.keys.title(), "2 variables · small_coeff · calculator · fine · prefix");
        let Writing { setting, granularity, notation, .. } = run.writing;
        assert_eq!((setting, granularity, notation), (Setting::Calculator, Granularity::FINE, Notation::Prefix));
    }

    /// The paper's rows of curricula are of a setting of their own; its proofs are plain ones.
    #[test]
    fn a_curriculum_is_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let keys = |setting: &str, curriculum: &str| {
            let data = format!("config = \"no_backtrack\"\nvars = 1\nsetting = \"{setting}\"\nnotation = \"infix\"");
            let text = format!("[data]\n{data}\ngranularity = \"coarse\"\n[curriculum]\n{curriculum}\n");
            fs::write(folder.path().join("config.toml"), text).unwrap();
            let run = StoredRun::open(folder.path()).unwrap();
            (run.keys.clone(), run.writing.setting)
        };
        let (c2, setting) = keys("plain", "name = \"C2\"");
        assert_eq!(
            (c2.title().as_str(), setting),
            ("1 variable · no_backtrack · curriculum · coarse · infix · C2", Setting::Plain)
        );
        let printed = polystep_record::paper::lookup(&c2);
        assert!(printed.iter().any(|p| p.column == "full_proof_acc" && p.value == 86.44), "{printed:?}");
        assert_eq!(keys("plain", "tasks = [\"add\"]").0.curriculum, "own");
        let (annotated, setting) = keys("annotated", "name = \"C\"");
        assert_eq!((annotated.setting, setting), (Some(PaperSetting::Annotated), Setting::Annotated));
    }

    #[test]
    fn a_damaged_part_does_not_hide_the_others() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("metrics.json"), "{").unwrap();
        let log = concat!(
            r#"{"kind":"train","step":100,"examples":3200,"loss":1.5,"grad_norm":1,"lr":0.1,"exact":0.25,"tokens":9,"seconds":1}"#,
            "\n",
            r#"{"kind":"epoch","n":1}"#,
            "\n",
            r#"{"kind":"valid","step":100,"examples":3200,"full_proof":0.5,"stepwise":0.75,"loss":0.1,"best":true,"seconds":1}"#,
            "\n",
            r#"{"kind":"tr"#
        );
        fs::write(folder.path().join("metrics.jsonl"), log).unwrap();
        let run = StoredRun::open(folder.path()).unwrap();
        assert_eq!(run.log.len(), 3);
        assert!(
            matches!(&run.log[0], LogLine::Train(line) if (line.examples, line.loss, line.exact) == (3200, 1.5, Some(0.25)))
        );
        assert!(run.notes.iter().any(|n| n.contains("metrics.json is damaged")), "{:?}", run.notes);
        assert!(run.notes.iter().any(|n| n.contains("are cut: ") && n.contains("line 4")), "{:?}", run.notes);
    }

    /// A misspelt word must not be read as the default, which would score everything wrongly.
    #[test]
    fn a_misspelt_setting_is_an_error_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.toml"), "[data]\nconfig = \"small_coeff\"\nsetting = \"calcualtor\"\n")
            .unwrap();
        let error = StoredRun::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("config.toml cannot be understood: [data]: unknown setting `calcualtor`"), "{error}");
    }
}

//! Real failures: steps that the bundled models got wrong on their fixed test sets, with what the checker says.
//!
//! `gallery.jsonl` holds prediction records as `polystep eval` writes them, each with the name of its model. The page shows
//! them, and has the model make the same mistake again.

use polystep_core::{Setting, Writing};
use polystep_record::Prediction;
use serde::{Deserialize, Serialize};

/// The records, embedded.
const RECORDS: &str = include_str!("../gallery.jsonl");

/// A record of the file.
#[derive(Deserialize)]
struct Kept {
    model: String,
    set: String,
    #[serde(default)]
    setting: Setting,
    #[serde(flatten)]
    prediction: Prediction,
}

/// A failure.
#[derive(Serialize)]
struct GalleryEntry {
    model: String,
    /// The test set.
    set: String,
    kind: &'static str,
    input: String,
    output: String,
    target: String,
    probability: Option<f64>,
    sentence: String,
}

/// All of them.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Gallery(Vec<GalleryEntry>);

impl Gallery {
    /// The failures that come with the page.
    pub fn embedded() -> Gallery {
        let read = |line: &str| serde_json::from_str::<Kept>(line).ok().map(entry);
        Gallery(RECORDS.lines().filter_map(read).collect())
    }
}

fn entry(kept: Kept) -> GalleryEntry {
    let Kept { model, set, setting, prediction } = kept;
    let writing = Writing { setting, ..Writing::default() };
    let answer = prediction.answers().next();
    let (output, logprob) = answer.map_or((None, None), |a| (Some(a.output.clone()), a.logprob));
    let why = writing.explain(prediction.kind, &prediction.input, &prediction.target, output.as_deref());
    GalleryEntry {
        model,
        set,
        kind: prediction.kind.name(),
        probability: logprob.map(f64::exp),
        output: output.unwrap_or_default(),
        input: prediction.input,
        target: prediction.target,
        sentence: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every record is read, and every one is a failure.
    #[test]
    fn the_gallery_holds_failures() {
        let Gallery(entries) = Gallery::embedded();
        assert_eq!(entries.len(), RECORDS.lines().count());
        assert!(entries.len() >= 12, "{}", entries.len());
        for entry in entries {
            assert!(entry.output != entry.target && !entry.sentence.starts_with("Right"), "{}", entry.sentence);
            assert!(!entry.model.is_empty() && !entry.input.is_empty());
        }
    }
}

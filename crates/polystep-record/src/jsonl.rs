//! Files with one JSON object per line, read one line at a time. A bad line becomes an error that names the file and the line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::RecordError;
use crate::whole::WholeFile;

/// The lines of a file as values of one type. Empty lines are skipped.
pub struct JsonLines<T, R = BufReader<File>> {
    reader: R,
    path: PathBuf,
    line: usize,
    text: String,
    kind: PhantomData<T>,
}

impl<T> JsonLines<T> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<JsonLines<T>, RecordError> {
        let file = File::open(path).map_err(RecordError::file("read", path))?;
        Ok(JsonLines::new(BufReader::new(file), path))
    }
}

impl<T, R: BufRead> JsonLines<T, R> {
    /// Reads from anywhere; `path` is what errors call it.
    pub fn new(reader: R, path: &Path) -> JsonLines<T, R> {
        JsonLines { reader, path: path.to_path_buf(), line: 0, text: String::new(), kind: PhantomData }
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl<T: DeserializeOwned, R: BufRead> Iterator for JsonLines<T, R> {
    type Item = Result<T, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.text.clear();
            self.line += 1;
            match self.reader.read_line(&mut self.text) {
                Ok(0) => return None,
                Ok(_) if self.text.trim().is_empty() => continue,
                Ok(_) => break,
                Err(e) => return Some(Err(RecordError::file("read", &self.path)(e))),
            }
        }
        Some(serde_json::from_str(&self.text).map_err(|e| {
            // serde_json counts lines too, within this one.
            let why = e.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            let column = if e.column() > 0 { format!(" (column {})", e.column()) } else { String::new() };
            RecordError::Line { path: self.path.clone(), line: self.line, why: format!("{why}{column}") }
        }))
    }
}

/// Writes values to a file, one JSON object per line. The file is whole or not there.
pub fn write_json_lines<T: Serialize>(path: &Path, values: impl IntoIterator<Item = T>) -> Result<(), RecordError> {
    let mut file = WholeFile::create(path)?;
    for value in values {
        let written = serde_json::to_writer(&mut file, &value).map_err(Into::into).and_then(|()| file.write_all(b"\n"));
        written.map_err(RecordError::file("write", path))?;
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::Prediction;

    fn read(text: &str) -> Vec<Result<Prediction, RecordError>> {
        JsonLines::new(text.as_bytes(), Path::new("predictions/test.jsonl")).collect()
    }

    const GOOD: &str = r#"{"proof":"a","step":0,"kind":"sumstep","input":"(1)+(2)","target":"3","beams":[{"output":"3","logprob":-0.5}]}"#;

    #[test]
    fn a_bad_line_is_named() {
        let text = format!("{GOOD}\n\n{}\n", GOOD.replace("sumstep", "leapstep"));
        let found = read(&text);
        assert_eq!(found.len(), 2);
        let sentence = found[1].as_ref().unwrap_err().to_string();
        assert!(
            sentence.starts_with("predictions/test.jsonl line 3: unknown variant `leapstep`, expected one of"),
            "{sentence}"
        );
        let cut = read(&GOOD[..40]).remove(0).unwrap_err().to_string();
        assert!(cut.starts_with("predictions/test.jsonl line 1: EOF while parsing"), "{cut}");
        let missing = read(r#"{"proof":"a","step":0}"#).remove(0).unwrap_err().to_string();
        assert!(missing.contains("line 1: missing field `kind`"), "{missing}");
        let none = JsonLines::<Prediction>::open(Path::new("no/such.jsonl")).err().unwrap().to_string();
        assert!(none.starts_with("cannot read no/such.jsonl: "), "{none}");
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        write_json_lines(&path, [1, 2]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n");
        assert_eq!(JsonLines::<u8>::open(&path).unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [1, 2]);
    }
}

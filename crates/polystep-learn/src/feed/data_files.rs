//! Files of training data, cut into chunks that can be read in any order: lines of JSONL, or rows of Parquet.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StructArray};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use polystep_record::{ExamplePair, ExampleRecord, RecordError};

/// Records in a chunk. Part of what a seed means for data in files.
pub(super) const CHUNK_RECORDS: u64 = 1024;

/// Some consecutive records of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chunk {
    file: PathBuf,
    /// The first record: its line or row, from 1.
    first: u64,
    records: u64,
    place: Place,
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// Bytes of a JSONL file.
    Bytes { at: u64, len: u64 },
    /// Rows of a Parquet file.
    Rows,
}

/// A record's line or row, and its pairs.
pub(super) type Numbered = (u64, Vec<ExamplePair>);

/// The data files that a path names: itself, or all that a folder holds at any depth, in the order of their names.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, RecordError> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    let mut open = vec![path.to_path_buf()];
    while let Some(folder) = open.pop() {
        let failed = |e| RecordError::file("read", &folder)(e);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            match path.extension().and_then(|e| e.to_str()) {
                _ if path.is_dir() => open.push(path),
                Some("jsonl" | "parquet") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(RecordError::document(path, "there is no file in it that ends in .jsonl or .parquet")),
        false => Ok(found),
    }
}

/// The chunks of a file. Its bytes go into the checksum.
pub(super) fn chunks(path: &Path, checksum: &mut blake3::Hasher) -> Result<Vec<Chunk>, RecordError> {
    let failed = |e| RecordError::file("read", path)(e);
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
    let chunk = |first, records, place| Chunk { file: path.to_path_buf(), first, records, place };
    if path.extension().is_some_and(|e| e == "parquet") {
        std::io::copy(&mut file, checksum).map_err(failed)?;
        let rows = parquet(path)?.metadata().file_metadata().num_rows().unsigned_abs();
        let starts = (0..rows).step_by(CHUNK_RECORDS as usize);
        return Ok(starts.map(|at| chunk(at + 1, CHUNK_RECORDS.min(rows - at), Place::Rows)).collect());
    }
    let (mut all, mut line, mut at, mut begun) = (Vec::new(), Vec::new(), 0, (0, 1));
    for number in 1.. {
        line.clear();
        let len = file.read_until(b'\n', &mut line).map_err(failed)? as u64;
        checksum.update(&line);
        at += len;
        let records = number - begun.1 + u64::from(len > 0);
        if records > 0 && (records == CHUNK_RECORDS || len == 0) {
            all.push(chunk(begun.1, records, Place::Bytes { at: begun.0, len: at - begun.0 }));
            begun = (at, number + 1);
        }
        if len == 0 {
            break;
        }
    }
    Ok(all)
}

impl Chunk {
    /// The error of one of its records.
    pub fn wrong(&self, number: u64, why: impl ToString) -> RecordError {
        let why = why.to_string();
        match self.place {
            Place::Bytes { .. } => RecordError::Line { path: self.file.clone(), line: number as usize, why },
            Place::Rows => RecordError::document(&self.file, format!("row {number}: {why}")),
        }
    }

    /// Its records. Empty lines have none.
    pub fn read(&self) -> Result<Vec<Numbered>, RecordError> {
        match self.place {
            Place::Bytes { at, len } => self.read_lines(at, len),
            Place::Rows => self.read_rows(),
        }
    }

    fn read_lines(&self, at: u64, len: u64) -> Result<Vec<Numbered>, RecordError> {
        let mut bytes = Vec::with_capacity(len as usize);
        let read = File::open(&self.file).and_then(|mut file| {
            file.seek(SeekFrom::Start(at))?;
            file.take(len).read_to_end(&mut bytes)
        });
        read.map_err(RecordError::file("read", &self.file))?;
        let mut records = Vec::with_capacity(self.records as usize);
        for (number, line) in (self.first..).zip(bytes.split(|&b| b == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let record: Result<ExampleRecord, _> = serde_json::from_slice(line);
            let pairs = record.map_err(|e| {
                // serde_json counts lines too, within this one.
                let text = e.to_string();
                let why = text.split(" at line ").next().unwrap_or_default();
                format!("{why} (column {})", e.column())
            });
            records.push((number, pairs.and_then(ExampleRecord::pairs).map_err(|why| self.wrong(number, why))?));
        }
        Ok(records)
    }

    fn read_rows(&self) -> Result<Vec<Numbered>, RecordError> {
        let damaged = |e: &dyn std::fmt::Display| RecordError::document(&self.file, e.to_string());
        let builder = parquet(&self.file)?;
        let reader = builder.with_offset(self.first as usize - 1).with_limit(self.records as usize).build();
        let mut records = Vec::with_capacity(self.records as usize);
        for batch in reader.map_err(|e| damaged(&e))? {
            let batch = batch.map_err(|e| damaged(&e))?;
            for pairs in rows(&batch).ok_or_else(|| {
                damaged(
                    &"its columns must be `input` and `target` of text, or a list `steps` of such pairs, without nulls",
                )
            })? {
                records.push((self.first + records.len() as u64, pairs));
            }
        }
        Ok(records)
    }
}

fn parquet(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, RecordError> {
    let file = File::open(path).map_err(RecordError::file("read", path))?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| RecordError::document(path, e))
}

/// The pairs of every row; none if the columns are not those of training data.
fn rows(batch: &RecordBatch) -> Option<Vec<Vec<ExamplePair>>> {
    let table = StructArray::from(batch.clone());
    let Some(steps) = table.column_by_name("steps") else {
        return Some(pairs(&table)?.into_iter().map(|pair| vec![pair]).collect());
    };
    let (count, item): (usize, Box<dyn Fn(usize) -> arrow_array::ArrayRef>) = match steps.as_list_opt::<i32>() {
        Some(list) => (list.len(), Box::new(|i| list.value(i))),
        None => {
            let list = steps.as_list_opt::<i64>()?;
            (list.len(), Box::new(|i| list.value(i)))
        }
    };
    (0..count).map(|i| pairs(item(i).as_struct_opt()?)).collect()
}

/// The columns `input` and `target`, row by row.
fn pairs(table: &StructArray) -> Option<Vec<ExamplePair>> {
    let [inputs, targets] = ["input", "target"].map(|name| texts(table.column_by_name(name)?));
    Some(inputs?.into_iter().zip(targets?).map(|(input, target)| ExamplePair { input, target }).collect())
}

fn texts(column: &dyn Array) -> Option<Vec<String>> {
    fn owned<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Option<Vec<String>> {
        values.map(|value| value.map(str::to_owned)).collect()
    }
    if let Some(texts) = column.as_string_opt::<i32>() {
        return owned(texts.iter());
    }
    match column.as_string_opt::<i64>() {
        Some(texts) => owned(texts.iter()),
        None => owned(column.as_string_view_opt()?.iter()),
    }
}

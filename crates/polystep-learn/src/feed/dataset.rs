//! Examples from files, in place of those that are drawn.
//!
//! Every record is read once before training begins. So a bad one is named by its line, and not after hours; and an example
//! whose endpoint belongs to an evaluation set, or that is longer than the model can take, is marked and counted. Training then
//! reads chunks of consecutive records, in an order that seed and epoch decide, and shuffles sixteen of them at a time. Memory
//! holds a flag for each example, never the data. A block depends on its number alone, so the data position is all that a
//! checkpoint needs; the checksum of the files says whether they are still the same.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polystep_core::arithmetic::Exercise;
use polystep_core::{ExampleSpan, Guard, Purpose, Setting, StepClass, StepKind, Streams, Writing, token};
use polystep_engine::Limits;
use polystep_record::{ExamplePair, RecordError};
use rayon::prelude::*;

use super::data_files::{Chunk, chunks, files};
use super::{Block, Generator, Source};
use crate::{ConfigError, LearnError};

/// Chunks of a block. Part of what a seed means for data in files.
const BLOCK_CHUNKS: usize = 16;

/// Training data in files.
#[derive(Clone, Debug)]
pub struct Dataset {
    index: Arc<Index>,
    seed: u64,
}

#[derive(Debug)]
struct Index {
    /// Chunks with something to learn from, and which of their examples are left out.
    chunks: Vec<(Chunk, Seen)>,
    summary: DatasetSummary,
    lengths: [Lengths; 2],
}

/// What the data holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetSummary {
    /// Files.
    pub files: usize,
    /// Records.
    pub records: u64,
    /// Examples of all records.
    pub examples: u64,
    /// Of these, left out because their endpoint belongs to an evaluation set.
    pub guarded: u64,
    /// Left out because they are longer than the model can take.
    pub too_long: u64,
    /// BLAKE3 of all bytes.
    pub checksum: String,
}

/// What a chunk holds.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Whether each of its examples is learned from.
    kept: Vec<bool>,
    records: u64,
    guarded: u64,
    too_long: u64,
    lengths: [Lengths; 2],
}

/// Of lengths in tokens, `</s>` included: how many, their sum and the sum of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths(u64, u64, u64);

impl Lengths {
    fn add(&mut self, length: u64) {
        *self = Lengths(self.0 + 1, self.1 + length, self.2 + length * length);
    }

    /// Tokens of a batch: the mean and eight standard deviations, and one longest example.
    fn room(self, batch: usize, longest: usize) -> usize {
        let n = self.0.max(1) as f64;
        let mean = self.1 as f64 / n;
        let deviation = (self.2 as f64 / n - mean * mean).max(0.0).sqrt();
        let b = batch as f64;
        let enough = (b * mean + 8.0 * deviation * b.sqrt()).ceil() as usize + longest;
        enough.min(batch * longest).next_multiple_of(64)
    }
}

/// Why a pair cannot be learned from, as a sentence.
fn tokens(pair: &ExamplePair, writing: &Writing) -> Result<[Vec<u8>; 2], String> {
    let encode = |what: &str, text: &str| match token::encode(text) {
        Ok(tokens) if tokens.is_empty() => Err(format!("its {what} is empty")),
        Ok(tokens) => Ok(tokens),
        Err(e) => Err(format!("its {what} is not in the vocabulary: {e}")),
    };
    let [input, target] = [encode("input", &pair.input)?, encode("target", &pair.target)?];
    if endpoint(&input, writing).is_none() {
        let (setting, notation) = (writing.setting, writing.notation);
        let why = "so it cannot be compared with the evaluation sets";
        return Err(format!("its input is not a state of setting {setting} in {notation}, {why}"));
    }
    Ok([input, target])
}

/// The fingerprint of what tokens come to, and whether it is an exercise.
fn endpoint(tokens: &[u8], writing: &Writing) -> Option<(u64, bool)> {
    if writing.setting == Setting::Arithmetic {
        return Some((Exercise::read(tokens, writing.notation)?.fingerprint(), true));
    }
    Some((writing.state(tokens)?.value(writing.style.order).ok()?.fingerprint(), false))
}

/// Reads every record of a chunk and marks what is learned from.
fn look(chunk: &Chunk, writing: &Writing, guard: &Guard, longest: usize) -> Result<Seen, RecordError> {
    let mut seen = Seen::default();
    for (number, pairs) in chunk.read()? {
        seen.records += 1;
        for pair in pairs {
            let both = tokens(&pair, writing).map_err(|why| chunk.wrong(number, why))?;
            let guarded = both.iter().filter_map(|side| endpoint(side, writing)).any(|(fingerprint, exercise)| {
                if exercise { guard.contains_exercise(fingerprint) } else { guard.contains(fingerprint) }
            });
            let too_long = both.iter().any(|side| side.len() >= longest);
            seen.guarded += u64::from(guarded);
            seen.too_long += u64::from(too_long && !guarded);
            seen.kept.push(!guarded && !too_long);
            if !guarded && !too_long {
                seen.lengths.iter_mut().zip(&both).for_each(|(lengths, side)| lengths.add(side.len() as u64 + 1));
            }
        }
    }
    Ok(seen)
}

impl Dataset {
    /// Reads all records of a file or folder once. Examples with more than `longest` tokens on a side, `</s>` included, are left
    /// out.
    pub fn open(path: &Path, writing: &Writing, guard: &Guard, seed: u64, longest: usize) -> Result<Self, LearnError> {
        let mut checksum = blake3::Hasher::new();
        let (files, mut all) = (files(path)?, Vec::new());
        for file in &files {
            all.extend(chunks(file, &mut checksum)?);
        }
        let seen = all.par_iter().map(|chunk| look(chunk, writing, guard, longest));
        // The first bad record is named, whichever thread finds one first.
        let seen: Vec<Result<Seen, RecordError>> = seen.collect();
        let checksum = checksum.finalize().to_hex().to_string();
        let mut summary = DatasetSummary { files: files.len(), checksum, ..DatasetSummary::default() };
        let (mut chunks, mut lengths) = (Vec::new(), [Lengths::default(); 2]);
        for (chunk, seen) in all.into_iter().zip(seen) {
            let seen = seen?;
            summary.records += seen.records;
            summary.examples += seen.kept.len() as u64;
            summary.guarded += seen.guarded;
            summary.too_long += seen.too_long;
            for (Lengths(n, sum, squares), more) in lengths.iter_mut().zip(seen.lengths) {
                (*n, *sum, *squares) = (*n + more.0, *sum + more.1, *squares + more.2);
            }
            if seen.kept.contains(&true) {
                chunks.push((chunk, seen));
            }
        }
        if chunks.is_empty() {
            let DatasetSummary { examples, guarded, too_long, .. } = summary;
            return Err(LearnError::Config(ConfigError::new(format!(
                "{} has nothing to learn from: of {examples} examples {guarded} belong to evaluation sets, and {too_long} are \
                 too long for model.max_positions",
                path.display()
            ))));
        }
        Ok(Dataset { index: Arc::new(Index { chunks, summary, lengths }), seed })
    }

    /// What the data holds.
    pub fn summary(&self) -> &DatasetSummary {
        &self.index.summary
    }

    /// Memory for batches of this many examples.
    pub fn limits(&self, batch: usize, longest: usize) -> Limits {
        let [src_tokens, tgt_tokens] = self.index.lengths.map(|lengths| lengths.room(batch, longest));
        Limits { sequences: batch, src_tokens, tgt_tokens }
    }
}

impl Source for Dataset {
    fn generator(&self) -> Result<Box<dyn Generator>, LearnError> {
        Ok(Box::new(ChunkReader {
            index: Arc::clone(&self.index),
            epochs: Streams::new(self.seed, Purpose::Shuffle, "epochs"),
            shuffle: Streams::new(self.seed, Purpose::Shuffle, ""),
            order: (u64::MAX, Vec::new()),
        }))
    }
}

struct ChunkReader {
    index: Arc<Index>,
    epochs: Streams,
    shuffle: Streams,
    /// An epoch and the order of its chunks.
    order: (u64, Vec<u32>),
}

impl Generator for ChunkReader {
    fn fill(&mut self, index: u64, block: &mut Block, stop: &AtomicBool) {
        let all = &self.index.chunks;
        block.clear();
        let blocks = all.len().div_ceil(BLOCK_CHUNKS) as u64;
        let (epoch, within) = (index / blocks, (index % blocks) as usize);
        if self.order.0 != epoch {
            let mut order: Vec<u32> = (0..all.len() as u32).collect();
            self.epochs.at(epoch).shuffle(&mut order);
            self.order = (epoch, order);
        }
        let chosen = self.order.1.iter().skip(within * BLOCK_CHUNKS).take(BLOCK_CHUNKS);
        for &i in chosen.take_while(|_| !stop.load(Ordering::Relaxed)) {
            let (chunk, seen) = &all[i as usize];
            if let Err(error) = add(chunk, seen, block) {
                return block.fail(format!("{error}; the data has changed since training began"));
            }
        }
        block.shuffle(usize::MAX, &mut self.shuffle.at(index));
    }
}

/// Adds what is learned from a chunk to a block.
fn add(chunk: &Chunk, seen: &Seen, block: &mut Block) -> Result<(), RecordError> {
    let records = chunk.read()?;
    let pairs = records.iter().flat_map(|(number, pairs)| pairs.iter().map(move |pair| (*number, pair)));
    let mut count = 0;
    for (i, (number, pair)) in pairs.enumerate() {
        count += 1;
        if seen.kept.get(i) != Some(&true) {
            continue;
        }
        let encode = |text: &str| token::encode(text).map_err(|e| chunk.wrong(number, e));
        let [src, tgt] = [encode(&pair.input)?, encode(&pair.target)?];
        let [src_len, tgt_len] = [&src, &tgt].map(|side| side.len() as u16);
        let start = block.examples.tokens.len() as u32;
        let (kind, class) = (StepKind::Endpoint, StepClass::Endpoint); // not used in training
        block.examples.spans.push(ExampleSpan { start, src_len, tgt_len, kind, class, proof: number as u32, step: 0 });
        block.examples.tokens.extend(src.into_iter().chain(tgt));
    }
    if count != seen.kept.len() {
        return Err(chunk.wrong(records.first().map_or(0, |r| r.0), "other records than before"));
    }
    block.count(seen.records, seen.guarded);
    block.skip(seen.too_long);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use polystep_core::{Sampler, Space, Task};
    use polystep_record::ProofRecord;

    use super::*;
    use crate::feed::{BatchQueue, Counts, Feed, Position};

    const LIMITS: Limits = Limits { sequences: 7, src_tokens: 3000, tgt_tokens: 3000 };

    /// Proofs of small_coeff, unguarded: some of these polynomials are in the guard.
    fn proofs(n: u64) -> Vec<ProofRecord> {
        let task = Task::new(Space::named("small_coeff").unwrap(), 1);
        let mut sampler = Sampler::new(&task, 5, Purpose::Train).unwrap();
        (0..n).map(|i| ProofRecord::of(&mut sampler, i)).collect()
    }

    fn lines(proofs: &[ProofRecord]) -> String {
        proofs.iter().fold(String::new(), |mut text, p| {
            writeln!(text, "{}", serde_json::to_string(p).unwrap()).unwrap();
            text
        })
    }

    fn open(path: &Path, guard: &Guard) -> Result<Dataset, LearnError> {
        Dataset::open(path, &Writing::default(), guard, 3, 512)
    }

    fn take(data: &Dataset, at: Position, counts: Counts, threads: usize, n: usize) -> Vec<(String, Position, Counts)> {
        let mut feed = BatchQueue::start(data, LIMITS, at, counts, threads).unwrap();
        let mut next = || {
            let batch = format!("{:?}", feed.next().unwrap());
            (batch, feed.position(), feed.counts())
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn threads_and_stops_change_nothing_and_epochs_differ() {
        let folder = tempfile::tempdir().unwrap();
        // Three chunks in two files, one of them below.
        let all = proofs(2100);
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("data/a.jsonl"), lines(&all[..1500])).unwrap();
        std::fs::write(folder.path().join("b.jsonl"), format!("\n{}", lines(&all[1500..]))).unwrap();
        std::fs::write(folder.path().join("README.md"), "not data").unwrap();
        let data = open(folder.path(), &Guard::default()).unwrap();
        let steps: u64 = all.iter().map(|p| p.steps.len() as u64).sum();
        let DatasetSummary { files, records, examples, guarded, too_long, .. } = data.summary().clone();
        assert_eq!((files, records, examples, guarded, too_long), (2, 2100, steps, 0, 0));
        // An epoch and a half.
        let batches = (steps * 3 / 2 / 7) as usize;
        let one = take(&data, Position::default(), Counts::default(), 1, batches);
        assert_eq!(one, take(&data, Position::default(), Counts::default(), 3, batches));
        let epoch = one.iter().position(|(_, at, _)| at.block == 1).unwrap();
        assert_ne!(one[0].0, one[epoch].0);
        for stop in [0, 100, epoch - 1, epoch] {
            let (_, at, counts) = one[stop].clone();
            assert_eq!(take(&data, at, counts, 2, 5), one[stop + 1..stop + 6], "after {stop}");
        }
    }

    #[test]
    fn parquet_and_jsonl_are_the_same_examples() {
        let folder = tempfile::tempdir().unwrap();
        let steps: Vec<_> = proofs(200).into_iter().flat_map(|p| p.steps).collect();
        let [jsonl, parquet] = ["a.jsonl", "a.parquet"].map(|name| folder.path().join(name));
        let text = steps.iter().map(|s| serde_json::to_string(s).unwrap() + "\n").collect::<String>();
        std::fs::write(&jsonl, text).unwrap();
        let column = |texts: Vec<&str>| std::sync::Arc::new(StringArray::from(texts)) as ArrayRef;
        let batch = RecordBatch::try_from_iter([
            ("target", column(steps.iter().map(|s| s.target.as_str()).collect())),
            ("input", column(steps.iter().map(|s| s.input.as_str()).collect())),
        ]);
        let batch = batch.unwrap();
        let mut writer = ArrowWriter::try_new(std::fs::File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let read =
            |path: &Path| take(&open(path, &Guard::default()).unwrap(), Position::default(), Counts::default(), 1, 40);
        assert_eq!(read(&jsonl), read(&parquet));
    }

    #[test]
    fn what_belongs_to_an_evaluation_set_is_left_out_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut all = proofs(300);
        std::fs::write(&path, lines(&all)).unwrap();
        let mut guard = Guard::default();
        guard.extend(&Space::named("small_coeff").unwrap(), 1).unwrap();
        let writing = Writing::default();
        all.retain(|p| {
            !guard.contains(writing.parse(&p.start).unwrap().value(writing.style.order).unwrap().fingerprint())
        });
        let left: u64 = all.iter().map(|p| p.steps.len() as u64).sum();
        let summary = open(&path, &guard).unwrap().summary().clone();
        assert!(left < summary.examples, "some must be guarded, or this tests nothing");
        assert_eq!(summary.guarded, summary.examples - left);
        let none = Dataset::open(&path, &writing, &guard, 3, 5).unwrap_err().to_string();
        assert!(none.contains("has nothing to learn from: of"), "{none}");
    }

    #[test]
    fn a_bad_record_is_named_by_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let refused = |line: &str| {
            std::fs::write(&path, format!("{}\n{line}\n", lines(&proofs(3)))).unwrap();
            open(&path, &Guard::default()).unwrap_err().to_string()
        };
        let wrong = refused(r#"{"input":"(x1)+(2)","target":"y"}"#);
        assert!(wrong.contains("a.jsonl line 5: its target is not in the vocabulary"), "{wrong}");
        let wrong = refused(r#"{"input":"+P INT+ 2 INT+ 3","target":"5"}"#);
        assert!(wrong.contains("line 5: its input is not a state of setting plain in infix"), "{wrong}");
        assert!(
            refused(r#"{"input":"(x1)+(2)"}"#).ends_with("line 5: it has neither `input` and `target` nor `steps`")
        );
        assert!(refused(r#"{"input":"(x1)+"#).contains("line 5: EOF while parsing"));
        std::fs::write(folder.path().join("b.parquet"), "PAR1").unwrap();
        assert!(open(&folder.path().join("b.parquet"), &Guard::default()).is_err());
        assert!(
            open(&folder.path().join("none.jsonl"), &Guard::default())
                .unwrap_err()
                .to_string()
                .starts_with("cannot read")
        );
    }

    #[test]
    fn data_that_changes_during_training_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, lines(&proofs(50))).unwrap();
        let data = open(&path, &Guard::default()).unwrap();
        std::fs::write(&path, lines(&proofs(20))).unwrap();
        let mut feed = BatchQueue::start(&data, LIMITS, Position::default(), Counts::default(), 1).unwrap();
        let error = feed.next().unwrap_err().to_string();
        assert!(error.ends_with("the data has changed since training began"), "{error}");
    }
}

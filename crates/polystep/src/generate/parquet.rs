//! Records as Parquet shards in a folder that Hugging Face `datasets` opens: `data/SPLIT-00000-of-00004.parquet` and the
//! dataset card. A shard's name holds the number of shards, so the number of rows must be known at the beginning.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use anyhow::Context;
use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema};
use polystep_record::{ProofRecord, WholeFolder};

use crate::failure::Result;
use crate::generate::StepExample;
use crate::output::new_folder;

/// Rows per row group: what a reader must hold at once.
const ROW_GROUP: usize = 20_000;

/// A folder of shards being written.
pub struct Shards {
    folder: WholeFolder,
    rows_per_shard: u64,
    split: &'static str,
    rows: u64,
    written: Written,
    open: Option<ArrowWriter<File>>,
}

impl Shards {
    /// Shards of `rows_per_shard` rows, in a folder that will be called `path`.
    pub fn create(path: &Path, rows_per_shard: u64) -> Result<Self> {
        let folder = new_folder(path)?;
        Ok(Shards { folder, rows_per_shard, split: "", rows: 0, written: Written::default(), open: None })
    }

    /// Begins a split of `rows` rows.
    pub fn begin(&mut self, split: &'static str, rows: u64) {
        (self.split, self.rows, self.written) = (split, rows, Written::default());
    }

    /// Ends a split; what it holds.
    pub fn end(&mut self) -> Result<Written> {
        self.close()?;
        Ok(self.written)
    }

    /// Appends rows, cutting them at the borders of shards.
    pub fn write(&mut self, mut batch: RecordBatch) -> Result<()> {
        self.written.memory += batch.get_array_memory_size() as u64;
        while batch.num_rows() > 0 {
            let room = self.rows_per_shard - self.written.rows % self.rows_per_shard;
            let n = usize::try_from(room).map_or(batch.num_rows(), |room| room.min(batch.num_rows()));
            let rest = batch.slice(n, batch.num_rows() - n);
            let cannot = format!("cannot write {}", self.folder.path().display());
            self.shard(&batch)?.write(&batch.slice(0, n)).context(cannot)?;
            self.written.rows += n as u64;
            if self.written.rows.is_multiple_of(self.rows_per_shard) {
                self.close()?;
            }
            batch = rest;
        }
        Ok(())
    }

    /// Adds the card and gives the folder its name.
    pub fn finish(self, card: &str) -> Result<()> {
        std::io::Write::write_all(&mut self.folder.file("README.md")?, card.as_bytes())?;
        Ok(self.folder.finish()?)
    }

    fn shard(&mut self, batch: &RecordBatch) -> Result<&mut ArrowWriter<File>> {
        if self.open.is_none() {
            let (i, n) = (self.written.rows / self.rows_per_shard, self.rows.div_ceil(self.rows_per_shard));
            let file = self.folder.file(&format!("data/{}-{i:05}-of-{n:05}.parquet", self.split))?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(Some(ROW_GROUP))
                .build();
            let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))
                .with_context(|| format!("cannot write {}", self.folder.path().display()))?;
            self.open = Some(writer);
        }
        self.open.as_mut().context("no shard is open").map_err(Into::into)
    }

    fn close(&mut self) -> Result<()> {
        if let Some(mut writer) = self.open.take() {
            writer.finish().with_context(|| format!("cannot write {}", self.folder.path().display()))?;
            self.written.bytes += writer.bytes_written() as u64;
            writer.inner().sync_all()?;
        }
        Ok(())
    }
}

/// What the shards of a split hold, for the card.
#[derive(Clone, Copy, Default)]
pub struct Written {
    /// Rows of all shards.
    pub rows: u64,
    /// Bytes of all shards.
    pub bytes: u64,
    /// Bytes of the rows in memory.
    pub memory: u64,
}

/// Proofs as rows.
pub fn proof_batch(proofs: &[ProofRecord]) -> Result<RecordBatch> {
    let step_fields: Fields =
        vec![text("kind"), text("input"), text("target"), Field::new("next", DataType::Utf8, true)].into();
    let columns = (0..4).map(|_| Box::new(StringBuilder::new()) as _).collect();
    let item = Field::new("item", DataType::Struct(step_fields.clone()), false);
    let mut steps = ListBuilder::new(StructBuilder::new(step_fields, columns)).with_field(item.clone());
    for proof in proofs {
        for step in &proof.steps {
            let row = [Some(step.kind.name()), Some(&*step.input), Some(&*step.target), step.next.as_deref()];
            for (column, value) in row.into_iter().enumerate() {
                let builder = steps.values().field_builder::<StringBuilder>(column).context("a column of text")?;
                builder.append_option(value);
            }
            steps.values().append(true);
        }
        steps.append(true);
    }
    let columns: Vec<(Field, ArrayRef)> = vec![
        strings("id", proofs.iter().map(|p| p.id.as_str())),
        integers("seed", proofs.iter().map(|p| p.seed)),
        integers("index", proofs.iter().map(|p| p.index)),
        strings("config", proofs.iter().map(|p| p.config.as_str())),
        small("vars", proofs.iter().map(|p| p.vars as u32)),
        strings("setting", proofs.iter().map(|p| p.setting.name())),
        strings("granularity", proofs.iter().map(|p| p.granularity.to_string())),
        strings("notation", proofs.iter().map(|p| p.notation.to_string())),
        strings("start", proofs.iter().map(|p| p.start.as_str())),
        strings("end", proofs.iter().map(|p| p.end.as_str())),
        (Field::new("steps", DataType::List(Arc::new(item)), false), Arc::new(steps.finish())),
    ];
    batch(columns)
}

/// Step examples as rows.
pub fn step_batch(steps: &[StepExample]) -> Result<RecordBatch> {
    let mut next = StringBuilder::new();
    steps.iter().for_each(|s| next.append_option(s.next.as_deref()));
    batch(vec![
        strings("proof", steps.iter().map(|s| s.proof.as_str())),
        small("step", steps.iter().map(|s| s.step as u32)),
        strings("kind", steps.iter().map(|s| s.kind.name())),
        strings("input", steps.iter().map(|s| s.input.as_str())),
        strings("target", steps.iter().map(|s| s.target.as_str())),
        (Field::new("next", DataType::Utf8, true), Arc::new(next.finish())),
    ])
}

fn batch(columns: Vec<(Field, ArrayRef)>) -> Result<RecordBatch> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).context("cannot lay out rows")?)
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, false)
}

fn strings(name: &str, values: impl Iterator<Item = impl AsRef<str>>) -> (Field, ArrayRef) {
    let mut builder = StringBuilder::new();
    values.for_each(|v| builder.append_value(v));
    (text(name), Arc::new(builder.finish()))
}

fn integers(name: &str, values: impl Iterator<Item = u64>) -> (Field, ArrayRef) {
    let mut builder = UInt64Builder::new();
    values.for_each(|v| builder.append_value(v));
    (Field::new(name, DataType::UInt64, false), Arc::new(builder.finish()))
}

fn small(name: &str, values: impl Iterator<Item = u32>) -> (Field, ArrayRef) {
    let mut builder = UInt32Builder::new();
    values.for_each(|v| builder.append_value(v));
    (Field::new(name, DataType::UInt32, false), Arc::new(builder.finish()))
}

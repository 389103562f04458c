//! safetensors files with a checksum: what checkpoints and weights have in common.
//!
//! The header is written here rather than by the `safetensors` crate because that keeps metadata in a hash map, and two
//! equal files must be equal byte for byte. Reading goes through the crate. The checksum (BLAKE3, in the metadata under
//! `blake3`) covers the metadata and all tensor bytes.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use polystep_record::RecordError;

use crate::LearnError;
use polystep_record::write_parts;

/// Text beside the tensors.
pub type Metadata = BTreeMap<String, String>;

/// A tensor to be written.
pub struct Tensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// `F32` or `BF16`.
    pub dtype: &'static str,
    /// Its dimensions.
    pub shape: &'a [usize],
    /// Its numbers, little-endian.
    pub bytes: &'a [u8],
}

/// Writes a whole file, or nothing.
pub fn save(path: &Path, metadata: Metadata, tensors: &[Tensor]) -> Result<(), LearnError> {
    let mut text = metadata;
    text.insert("blake3".into(), checksum(&text, tensors.iter().map(|t| t.bytes)));
    let mut header = Map::new();
    header.insert("__metadata__".into(), json!(text));
    let mut at = 0;
    for t in tensors {
        let end = at + t.bytes.len();
        header.insert(t.name.into(), json!({"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, end]}));
        at = end;
    }
    let mut header = Value::Object(header).to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let length = (header.len() as u64).to_le_bytes();
    let mut parts = vec![&length[..], header.as_bytes()];
    parts.extend(tensors.iter().map(|t| t.bytes));
    Ok(write_parts(path, &parts)?)
}

/// A file in memory, its checksum verified.
pub struct TensorFile {
    bytes: Vec<u8>,
    metadata: Metadata,
}

impl TensorFile {
    /// Reads and verifies; `checked` says whether a file without a checksum is damaged.
    pub fn read(path: &Path, checked: bool) -> Result<Self, LearnError> {
        let bytes = std::fs::read(path).map_err(RecordError::file("read", path))?;
        let damaged = |why: String| LearnError::Damaged { path: path.to_path_buf(), why, help: String::new() };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
        let mut metadata: Metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
        match metadata.remove("blake3") {
            Some(sum) => {
                let mut data: Vec<_> = header.tensors().into_values().map(|t| t.data_offsets).collect();
                data.sort_unstable();
                let start = bytes.len() - data.last().map_or(0, |d| d.1);
                let parts = data.iter().map(|d| &bytes[start + d.0..start + d.1]);
                if sum != checksum(&metadata, parts) {
                    return Err(damaged("its checksum does not match".into()));
                }
            }
            None if checked => return Err(damaged("it has no checksum".into())),
            None => {}
        }
        Ok(TensorFile { bytes, metadata })
    }

    /// The text beside the tensors.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors.
    pub fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).expect("the header was read before")
    }
}

/// The numbers of an `F32` or `BF16` tensor.
pub fn floats(dtype: safetensors::Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    match dtype {
        safetensors::Dtype::F32 => {
            Some(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        }
        safetensors::Dtype::BF16 => {
            Some(bytes.chunks_exact(2).map(|b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect())
        }
        _ => None,
    }
}

fn checksum<'a>(metadata: &Metadata, data: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (key, value) in metadata {
        for part in [key, value] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    for part in data {
        hasher.update(part);
    }
    hasher.finalize().to_hex().to_string()
}

//! safetensors files with checksums. Checkpoints and weights are such files.
//!
//! The header is written here rather than by the `safetensors` crate, because the crate keeps metadata in a hash map, and two
//! equal files must be equal byte for byte. Reading goes through the crate.
//!
//! The metadata holds two BLAKE3 checksums. `blake3` covers the other metadata and all tensor bytes; files of earlier versions
//! have only this one. `blake3_tensors` covers the name, type, shape and place of every tensor too. Each of them also notices
//! damage to the key of the other, so that no single flipped bit can switch the checks off.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use polystep_record::RecordError;

use crate::LearnError;
use polystep_record::write_parts;

const DATA_SUM: &str = "blake3";
const TENSORS_SUM: &str = "blake3_tensors";

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

/// Writes the file in one piece: if that fails, nothing is written.
pub fn save(path: &Path, metadata: Metadata, tensors: &[Tensor]) -> Result<(), LearnError> {
    let mut entries = Map::new();
    let mut at = 0;
    for t in tensors {
        let end = at + t.bytes.len();
        entries.insert(t.name.into(), json!({"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, end]}));
        at = end;
    }
    let data = || tensors.iter().map(|t| t.bytes);
    let mut text = metadata;
    text.insert(TENSORS_SUM.into(), checksum(&text, Some(&entries), data()));
    text.insert(DATA_SUM.into(), checksum(&text, None, data()));
    entries.insert("__metadata__".into(), json!(text));
    let mut header = Value::Object(entries).to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let length = (header.len() as u64).to_le_bytes();
    let mut parts = vec![&length[..], header.as_bytes()];
    parts.extend(data());
    Ok(write_parts(path, &parts)?)
}

/// A file in memory, its checksums verified.
pub struct TensorFile {
    bytes: Vec<u8>,
    /// The text beside the tensors, without the checksums.
    pub metadata: Metadata,
    /// Whether the file has a checksum. One that is not ours has none.
    pub verified: bool,
}

impl TensorFile {
    /// Reads a file and verifies the checksums that it has.
    pub fn read(path: &Path) -> Result<Self, LearnError> {
        let bytes = std::fs::read(path).map_err(RecordError::file("read", path))?;
        let damaged = |why: String| LearnError::Damaged { path: path.to_path_buf(), why, help: String::new() };
        let (length, header) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
        let mut metadata: Metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
        let data = || std::iter::once(&bytes[8 + length..]);
        let data_sum = metadata.remove(DATA_SUM);
        if data_sum.as_ref().is_some_and(|sum| *sum != checksum(&metadata, None, data())) {
            return Err(damaged("its checksum does not match".into()));
        }
        let tensors_sum = metadata.remove(TENSORS_SUM);
        if let Some(sum) = &tensors_sum {
            let entries: Map<String, Value> =
                serde_json::from_slice(&bytes[8..8 + length]).map_err(|e| damaged(e.to_string()))?;
            let entries = entries.into_iter().filter(|(name, _)| name != "__metadata__").collect();
            if *sum != checksum(&metadata, Some(&entries), data()) {
                return Err(damaged("the checksum of its tensors does not match".into()));
            }
        }
        let verified = data_sum.is_some() || tensors_sum.is_some();
        Ok(TensorFile { bytes, metadata, verified })
    }

    /// The tensors.
    pub fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).expect("the header was read before")
    }
}

/// The numbers of an `F32`, `F16` or `BF16` tensor.
pub fn floats(dtype: safetensors::Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    match dtype {
        safetensors::Dtype::F32 => {
            Some(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        }
        safetensors::Dtype::BF16 => {
            Some(bytes.chunks_exact(2).map(|b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect())
        }
        safetensors::Dtype::F16 => {
            Some(bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect())
        }
        _ => None,
    }
}

/// The checksum of the metadata, of the tensors' entries in the header if given, and of the data. Entries are in the order of their
/// names.
fn checksum<'a>(
    metadata: &Metadata,
    entries: Option<&Map<String, Value>>,
    data: impl Iterator<Item = &'a [u8]>,
) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    metadata.iter().for_each(|(key, value)| [key, value].into_iter().for_each(|part| add(part)));
    entries
        .into_iter()
        .flatten()
        .for_each(|(name, entry)| [name, &entry.to_string()].into_iter().for_each(|part| add(part)));
    data.for_each(|part| {
        hasher.update(part);
    });
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not even a flipped bit in the key of a checksum goes unnoticed.
    #[test]
    fn no_flipped_bit_of_the_header_passes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let metadata = Metadata::from([("format".into(), "pt".into())]);
        let tensor = |name, bytes| Tensor { name, dtype: "F32", shape: &[2], bytes };
        save(&path, metadata, &[tensor("k_proj", &[1; 8]), tensor("v_proj", &[2; 8])]).unwrap();
        assert!(TensorFile::read(&path).unwrap().verified);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..8 * (whole.len() - 16) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            assert!(TensorFile::read(&path).is_err(), "bit {bit}: {}", String::from_utf8_lossy(&bytes[8..]));
        }
    }

    #[test]
    fn a_file_of_an_earlier_version_is_verified_by_its_one_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let data: &[u8] = &[0; 8];
        let sum = checksum(&Metadata::new(), None, std::iter::once(data));
        let write = |sum: &str| {
            let header =
                json!({"__metadata__": {DATA_SUM: sum}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}});
            let header = header.to_string();
            std::fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat())
                .unwrap();
            TensorFile::read(&path)
        };
        assert!(write(&sum).unwrap().verified);
        assert!(write("0").is_err());
    }
}

//! TensorBoard event files: TFRecords (length, masked CRC-32C, payload, masked CRC-32C) of hand-encoded `Event` messages.
//!
//! A resumed run opens a new file beside the old ones. Its second event is a session start that carries the step, which
//! tells TensorBoard to forget what a killed run had logged past its last checkpoint.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use polystep_record::RecordError;

use crate::LearnError;

/// An open event file.
pub struct EventFile {
    file: File,
    record: Vec<u8>,
}

impl EventFile {
    /// A new file in `folder`, for a run that continues after `step` (0 for a fresh one).
    pub fn create(folder: &Path, step: u64) -> Result<Self, LearnError> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        // The step keeps two sessions within one second apart.
        let path = folder.join(format!("events.out.tfevents.{seconds}.polystep.{}.{step}", std::process::id()));
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(RecordError::file("write", &path))?;
        let mut events = EventFile { file, record: Vec::new() };
        let open = |events: &mut EventFile| -> io::Result<()> {
            events.write(None, &field(3, b"brain.Event:2"))?;
            // session_log { status: START }
            events.write(Some(step + 1), &field(7, &[0x08, 0x01]))
        };
        open(&mut events).map_err(RecordError::file("write", &path))?;
        Ok(events)
    }

    /// Writes scalars of one step.
    pub fn scalars(&mut self, step: u64, values: &[(String, f64)]) -> io::Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut entry = field(1, tag.as_bytes());
            entry.push(2 << 3 | 5);
            entry.extend((*value as f32).to_le_bytes());
            summary.extend(field(1, &entry));
        }
        self.write(Some(step), &field(5, &summary))
    }

    fn write(&mut self, step: Option<u64>, what: &[u8]) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let mut event = vec![1 << 3 | 1];
        event.extend(now.to_le_bytes());
        if let Some(step) = step {
            event.push(2 << 3);
            varint(step, &mut event);
        }
        event.extend(what);
        self.record.clear();
        let length = (event.len() as u64).to_le_bytes();
        self.record.extend(length);
        self.record.extend(masked_crc(&length).to_le_bytes());
        self.record.extend(&event);
        self.record.extend(masked_crc(&event).to_le_bytes());
        self.file.write_all(&self.record)
    }
}

/// A length-delimited protobuf field.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint(bytes.len() as u64, &mut out);
    out.extend(bytes);
    out
}

fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// TFRecord's checksum: a CRC of data that holds CRCs is a poor one, so it is rotated and shifted.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of a file, each with both checksums verified.
    fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = bytes;
        let mut out = Vec::new();
        while !rest.is_empty() {
            let n = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(masked_crc(&rest[..8]).to_le_bytes(), rest[8..12]);
            assert_eq!(masked_crc(&rest[12..12 + n]).to_le_bytes(), rest[12 + n..16 + n]);
            out.push(rest[12..12 + n].to_vec());
            rest = &rest[16 + n..];
        }
        out
    }

    /// TensorFlow's own `masked_crc32c` of the eight bytes of the length 24, the head of every file it writes.
    #[test]
    fn the_checksum_is_tensorflows() {
        assert_eq!(masked_crc(&24u64.to_le_bytes()).to_le_bytes(), [0xa3, 0x7f, 0x4b, 0x22]);
    }

    #[test]
    fn a_file_holds_version_session_and_scalars() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(folder.path(), 300).unwrap();
        events.scalars(400, &[("loss".into(), 0.5), ("exact".into(), 0.25)]).unwrap();
        let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let records = records(&std::fs::read(path).unwrap());
        assert_eq!(records.len(), 3);
        assert!(records[0].ends_with(b"\x1a\x0dbrain.Event:2"));
        // step 301, then the session log
        assert!(records[1].ends_with(&[0x10, 0xad, 0x02, 0x3a, 0x02, 0x08, 0x01]));
        let loss = [&[0x0a, 0x04][..], b"loss", &[0x15], &0.5f32.to_le_bytes()].concat();
        assert!(records[2].windows(loss.len()).any(|w| w == loss));
    }
}

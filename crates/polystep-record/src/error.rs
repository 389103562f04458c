//! What can go wrong with a file: it cannot be reached, a line or a document in it is wrong, or another process holds its folder.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file could not be read or written.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A file cannot be read, written, made or removed.
    #[error("cannot {verb} {}: {source}", path.display())]
    File {
        /// read, write, make or remove.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line of a file is not what it should be.
    #[error("{} line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A file that is one document is not what it should be.
    #[error("{} cannot be understood: {why}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process holds the folder.
    #[error("{} is in use: {holder}; wait for it, or choose another --out", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// Another process took over what this one was at.
    #[error("another process has taken over {}: this one was silent for three heartbeats", path.display())]
    LeaseLost {
        /// The lease.
        path: PathBuf,
    },
}

impl RecordError {
    /// Turns an I/O error into a [`RecordError::File`].
    pub fn file(verb: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> RecordError {
        let path = path.into();
        move |source| RecordError::File { verb, path, source }
    }

    /// Whether what was read is to blame, and not the disk or another process.
    pub fn is_bad_input(&self) -> bool {
        match self {
            RecordError::File { verb, .. } => *verb == "read",
            RecordError::LeaseLost { .. } => false,
            _ => true,
        }
    }

    /// A document that cannot be understood.
    pub fn document(path: &Path, why: impl ToString) -> RecordError {
        RecordError::Document { path: path.to_path_buf(), why: why.to_string() }
    }
}

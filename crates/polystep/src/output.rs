//! Where a command writes: standard output, or a file or folder that appears under its name only when it is whole.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use polystep_record::{WholeFile, WholeFolder};

use crate::failure::{Result, bad_input};
use crate::printable::printable;

/// Standard output, for people.
pub const STDOUT: &str = "to standard output";

/// An error with the place that could not be written. Its kind stays: a closed pipe is still one.
pub fn cannot_write(place: impl Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {place}: {error}"))
}

/// Standard output, or a file that appears when it is finished.
pub enum OutputStream {
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
    /// A file that is not finished yet, and the name it will have.
    File(WholeFile, PathBuf),
}

impl OutputStream {
    /// Opens `path`; none, or `-`, is standard output.
    pub fn create(path: Option<&Path>) -> Result<Self> {
        match path {
            Some(path) if path != Path::new("-") => {
                if path.is_dir() {
                    return Err(bad_input(format!("{} is a folder: give a file name", path.display())));
                }
                check_name(path)?;
                Ok(OutputStream::File(WholeFile::create(path)?, path.to_path_buf()))
            }
            _ => Ok(OutputStream::Stdout(BufWriter::with_capacity(1 << 16, io::stdout()))),
        }
    }

    /// Gives a file its name. Without this call nothing stays behind.
    pub fn finish(self) -> Result<()> {
        match self {
            OutputStream::Stdout(mut out) => Ok(out.flush().map_err(|e| cannot_write(STDOUT, e))?),
            OutputStream::File(out, _) => Ok(out.finish()?),
        }
    }
}

impl Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            OutputStream::Stdout(out) => out.write(bytes).map_err(|e| cannot_write(STDOUT, e)),
            OutputStream::File(out, path) => out.write(bytes).map_err(|e| cannot_write(path.display(), e)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            OutputStream::Stdout(out) => out.flush().map_err(|e| cannot_write(STDOUT, e)),
            OutputStream::File(out, path) => out.flush().map_err(|e| cannot_write(path.display(), e)),
        }
    }
}

/// A folder that appears under the name `path` when it is finished; nothing may be there yet.
pub fn new_folder(path: &Path) -> Result<WholeFolder> {
    let taken = path.is_file() || path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if taken {
        return Err(bad_input(format!("{} exists and is not an empty folder: choose another name", path.display())));
    }
    check_name(path)?;
    Ok(WholeFolder::create(path)?)
}

/// Whether `path` can be a new name: it ends in one, and its folder is there.
pub fn check_name(path: &Path) -> Result<()> {
    if path.file_name().is_none() {
        return Err(bad_input(format!("{} is not a file name", path.display())));
    }
    match path.parent() {
        Some(parent) if parent != Path::new("") && !parent.is_dir() => {
            Err(bad_input(format!("there is no folder {}", parent.display())))
        }
        _ => Ok(()),
    }
}

/// `; looked in FOLDER`, for a relative name that is not there: folders such as `configs/` and `results/` are part of a clone.
pub fn working_folder() -> String {
    std::env::current_dir().map_or(String::new(), |folder| format!("; looked in {}", folder.display()))
}

/// Writes one line to standard error; a closed one must not end the work.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", printable(&line.to_string()));
}

/// Writes one line to standard output; a closed pipe is the caller's to pass on.
macro_rules! say {
    ($($part:tt)*) => {
        std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($part)*)))
            .map_err(|e| $crate::failure::Failure::from($crate::output::cannot_write($crate::output::STDOUT, e)))
    };
}
pub(crate) use say;

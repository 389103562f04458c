//! Where a command writes. A file or folder appears under its name only when it is whole: it is written beside its place under
//! a temporary name, which is renamed at the end and removed on every other way out.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::{Builder, NamedTempFile, TempDir};

use crate::failure::{Result, bad_input};

/// Standard output, for people.
pub const STDOUT: &str = "to standard output";

/// An error with the place that could not be written. Its kind stays: a closed pipe is still one.
pub fn cannot_write(place: impl Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {place}: {error}"))
}

/// Standard output, or a file that appears when it is finished.
pub enum Output {
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
    /// A file under its temporary name, and the name it will have.
    File(BufWriter<NamedTempFile>, PathBuf),
}

impl Output {
    /// Opens `path`; none, or `-`, is standard output.
    pub fn create(path: Option<&Path>) -> Result<Self> {
        match path {
            Some(path) if path != Path::new("-") => {
                if path.is_dir() {
                    return Err(bad_input(format!("{} is a folder: give a file name", path.display())));
                }
                let file = temporary(path, 0o666)?
                    .tempfile_in(folder(path)?)
                    .with_context(|| format!("cannot write beside {}", path.display()))?;
                Ok(Output::File(BufWriter::with_capacity(1 << 18, file), path.to_path_buf()))
            }
            _ => Ok(Output::Stdout(BufWriter::with_capacity(1 << 16, io::stdout()))),
        }
    }

    /// Gives a file its name. Without this call nothing stays behind.
    pub fn finish(self) -> Result<()> {
        match self {
            Output::Stdout(mut out) => Ok(out.flush().map_err(|e| cannot_write(STDOUT, e))?),
            Output::File(out, path) => {
                let cannot = |e| cannot_write(path.display(), e);
                let file = out.into_inner().map_err(|e| cannot(e.into_error()))?;
                file.as_file().sync_all().map_err(cannot)?;
                file.persist(&path).with_context(|| format!("cannot write {}", path.display()))?;
                Ok(())
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(out) => out.write(bytes).map_err(|e| cannot_write(STDOUT, e)),
            Output::File(out, path) => out.write(bytes).map_err(|e| cannot_write(path.display(), e)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush().map_err(|e| cannot_write(STDOUT, e)),
            Output::File(out, path) => out.flush().map_err(|e| cannot_write(path.display(), e)),
        }
    }
}

/// A folder that appears when it is finished.
pub struct OutputFolder {
    temporary: TempDir,
    path: PathBuf,
}

impl OutputFolder {
    /// A folder that will be called `path`, which must not hold anything yet.
    pub fn create(path: &Path) -> Result<Self> {
        let taken = path.is_file() || path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if taken {
            return Err(bad_input(format!(
                "{} exists and is not an empty folder: choose another name",
                path.display()
            )));
        }
        let temporary = temporary(path, 0o777)?
            .tempdir_in(folder(path)?)
            .with_context(|| format!("cannot write beside {}", path.display()))?;
        Ok(OutputFolder { temporary, path: path.to_path_buf() })
    }

    /// The name that it will have.
    pub fn name(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// A new file inside, folders on the way included.
    pub fn file(&self, name: &str) -> Result<File> {
        let path = self.temporary.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(File::create(path)?)
    }

    /// Gives the folder its name. Without this call nothing stays behind.
    pub fn finish(self) -> Result<()> {
        // An empty folder of that name is replaced; anything else was refused at the beginning.
        std::fs::rename(self.temporary.path(), &self.path)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        let _ = self.temporary.keep();
        Ok(())
    }
}

fn folder(path: &Path) -> Result<&Path> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if parent.is_dir() { Ok(parent) } else { Err(bad_input(format!("there is no folder {}", parent.display()))) }
}

/// A temporary name beside `path`; of `mode` the user's umask takes its part, as for any other new file.
fn temporary(path: &Path, mode: u32) -> Result<Builder<'static, 'static>> {
    if path.file_name().is_none() {
        return Err(bad_input(format!("{} is not a file name", path.display())));
    }
    let mut builder = Builder::new();
    builder.prefix(".polystep-").suffix(".tmp");
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    Ok(builder)
}

/// Writes one line to standard error; a closed one must not end the work.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes one line to standard output; a closed pipe is the caller's to pass on.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {
        std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($part)*)))
            .map_err(|e| $crate::failure::Failure::from($crate::output::cannot_write($crate::output::STDOUT, e)))
    };
}

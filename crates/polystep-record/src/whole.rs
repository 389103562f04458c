//! Files and folders that are either complete or not there. They are written under a temporary name beside their place, synced and
//! renamed; then the folder around them is synced. A process may be killed at any instruction, so no other way of writing is used.
//!
//! A temporary name is random and is never opened through a link. A run folder that somebody sent can therefore not make
//! us write elsewhere. The name also says which process writes, so the next writer in the same folder knows which temporary files
//! nobody will finish, and removes those. What a process of another host left goes when its [lease](crate::Lease) is taken over.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempDir};

use crate::error::RecordError;
use crate::process::ProcessMark;

const PREFIX: &str = ".polystep-";
const SUFFIX: &str = ".tmp";

/// A file that appears under its name when it is finished. Dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub struct WholeFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl WholeFile {
    /// Begins to write the file `path`, whose folder must exist.
    pub fn create(path: &Path) -> Result<WholeFile, RecordError> {
        let file = temporary_beside(path).map_err(RecordError::file("write", path))?;
        Ok(WholeFile { file: BufWriter::with_capacity(1 << 18, file), path: path.to_path_buf() })
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<(), RecordError> {
        let WholeFile { file, path } = self;
        let finish = || -> io::Result<()> {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            sync_folder(&path)
        };
        finish().map_err(RecordError::file("write", &path))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes `bytes` to `path` in one piece. If that fails, nothing is written.
pub fn write_whole(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), RecordError> {
    write_parts(path, &[bytes.as_ref()])
}

/// Writes the parts one after the other to `path`, in one piece. If that fails, nothing is written.
pub fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<(), RecordError> {
    let mut file = WholeFile::create(path)?;
    parts.iter().try_for_each(|part| file.write_all(part)).map_err(RecordError::file("write", path))?;
    file.finish()
}

/// A folder that appears under its name when it is finished. Dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub struct WholeFolder {
    temporary: TempDir,
    path: PathBuf,
}

impl WholeFolder {
    /// Begins to write the folder `path`, which must be empty or not there.
    pub fn create(path: &Path) -> Result<WholeFolder, RecordError> {
        let made = swept_folder_of(path).and_then(|folder| with_name(0o777, |builder| builder.tempdir_in(folder)));
        Ok(WholeFolder { temporary: made.map_err(RecordError::file("write", path))?, path: path.to_path_buf() })
    }

    /// The name that it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is until it is finished.
    pub fn place(&self) -> &Path {
        self.temporary.path()
    }

    /// A new file inside; folders on the way are made.
    pub fn file(&self, name: &str) -> Result<File, RecordError> {
        let path = self.temporary.path().join(name);
        let folders = path.parent().map_or(Ok(()), fs::create_dir_all);
        folders.and_then(|()| File::create(&path)).map_err(RecordError::file("write", path))
    }

    /// Gives the folder its name.
    pub fn finish(self) -> Result<(), RecordError> {
        let place = self.temporary.path();
        let named =
            sync_files(place).and_then(|()| fs::rename(place, &self.path)).and_then(|()| sync_folder(&self.path));
        named.map_err(RecordError::file("write", &self.path))?;
        let _ = self.temporary.keep();
        Ok(())
    }
}

/// Syncs every file below a folder, and the folder. Its name must not survive a power cut that its files do not survive.
fn sync_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_files(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    File::open(folder)?.sync_all()
}

/// A temporary file beside `path`.
pub(crate) fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = swept_folder_of(path)?;
    with_name(0o666, |builder| builder.tempfile_in(folder))
}

/// The folder that `path` is in, without what dead processes left there.
fn swept_folder_of(path: &Path) -> io::Result<&Path> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a file name"));
    }
    sweep(folder_of(path));
    Ok(folder_of(path))
}

/// Removes what dead processes of this host left half-written in a folder. What another process may still be writing stays, and so
/// does everything that does not have one of our temporary names.
pub fn sweep(folder: &Path) {
    remove_temporaries(folder, ProcessMark::is_gone);
}

/// Removes what a process left half-written beside a file and one folder below, after its lease has been taken over.
pub(crate) fn sweep_of(path: &Path, process: &ProcessMark) {
    let folder = folder_of(path);
    let below =
        fs::read_dir(folder).into_iter().flatten().flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
    below
        .map(|entry| entry.path())
        .chain([folder.to_owned()])
        .for_each(|f| remove_temporaries(&f, |mark| mark == process));
}

fn remove_temporaries(folder: &Path, of: impl Fn(&ProcessMark) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let mark = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.rsplit_once('.'));
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_symlink() || !mark.and_then(|(mark, _)| ProcessMark::of_name(mark)).is_some_and(|mark| of(&mark)) {
            continue;
        }
        let path = entry.path();
        let _ = if kind.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// Makes something under a temporary name. The user's umask applies to `mode`, as for any other new file.
fn with_name<T>(mode: u32, make: impl FnOnce(&Builder<'_, '_>) -> io::Result<T>) -> io::Result<T> {
    let prefix = format!("{PREFIX}{}.", ProcessMark::own().name());
    make(Builder::new().prefix(&prefix).suffix(SUFFIX).permissions(fs::Permissions::from_mode(mode)))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs a folder, so that a new name in it survives a power failure.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn replaces_the_old_file_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        write_whole(&path, b"old").unwrap();
        write_parts(&path, &[b"ne", b"w"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_get_its_name_is_not_left_under_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        fs::create_dir(&path).unwrap();
        assert!(write_whole(&path, b"x").unwrap_err().to_string().starts_with("cannot write "));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_one_sentence() {
        let error = write_whole(Path::new("/nowhere/at/all/a.bin"), b"x").unwrap_err().to_string();
        assert!(error.starts_with("cannot write /nowhere/at/all/a.bin: "), "{error}");
    }

    /// A run folder that somebody sent holds links under the names that we write to, or once wrote to.
    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, path] = ["victim", "model.safetensors"].map(|name| folder.path().join(name));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &path).unwrap();
        symlink(&victim, folder.path().join("model.tmp")).unwrap();
        write_whole(&path, b"theirs").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    /// Only what a dead process of this host left goes. A file that is being written stays, here or on another host, and so does
    /// whatever else ends in `.tmp`.
    #[test]
    fn only_what_nobody_will_finish_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let of = |mark: &ProcessMark, end: &str| place(&format!(".polystep-{}.{end}.tmp", mark.name()));
        let (ended, elsewhere) = (ProcessMark::ended(), ProcessMark::elsewhere());
        let (left, left_folder, theirs) = (of(&ended, "a"), of(&ended, "b"), of(&elsewhere, "c"));
        fs::write(&left, "half").unwrap();
        fs::create_dir(&left_folder).unwrap();
        fs::write(&theirs, "half").unwrap();
        fs::write(place("thesis.tmp"), "mine").unwrap();
        symlink(place("thesis.tmp"), of(&ended, "link")).unwrap();
        let (mut file, written) = (WholeFile::create(&place("a")).unwrap(), WholeFolder::create(&place("b")).unwrap());
        file.write_all(b"whole").unwrap();
        sweep(folder.path());
        assert!(!left.exists() && !left_folder.exists());
        assert!(place("thesis.tmp").exists() && of(&ended, "link").exists() && theirs.exists());
        file.finish().unwrap();
        written.finish().unwrap();
        assert!(place("a").is_file() && place("b").is_dir());
        sweep_of(&place("lease.json"), &elsewhere);
        assert!(!theirs.exists());
    }
}

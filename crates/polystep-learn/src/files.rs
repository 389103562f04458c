//! Files that are whole or not there: written beside their place, synced, renamed, and the folder synced after them.
//!
//! A run may be killed between any two instructions, so no other way of writing a checkpoint or a weight file is used here.
//! For the same reason a folder is kept for one process by a lock of the system, which ends with it, and not by a file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use crate::LearnError;

/// Writes `bytes` under `path`, or nothing.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), LearnError> {
    write_parts(path, &[bytes])
}

/// Writes the parts one after the other under `path`, or nothing.
pub fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<(), LearnError> {
    let temporary = path.with_extension("tmp");
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    let written = write().inspect_err(|_| {
        // A full disk must not keep the half of a file on top of it.
        let _ = fs::remove_file(&temporary);
    });
    let written = written.and_then(|()| sync_folder(path.parent().unwrap_or(Path::new("."))));
    written.map_err(|source| LearnError::file("cannot write", path, source))
}

/// Makes renames and removals in a folder last.
fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// A folder that no other process trains into while this is held.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] Option<File>);

impl Lock {
    /// Takes a folder, or says that another process has it. A file system that has no locks does not end a run: there,
    /// nobody is warned.
    pub fn take(folder: &Path) -> Result<Lock, LearnError> {
        let Ok(file) = File::open(folder) else { return Ok(Lock(None)) };
        match file.try_lock() {
            Ok(()) => Ok(Lock(Some(file))),
            Err(TryLockError::WouldBlock) => {
                let name = folder.display();
                Err(LearnError::Folder(format!(
                    "{name} is in use: another polystep is training in it; wait for it, or choose another --out"
                )))
            }
            Err(TryLockError::Error(_)) => Ok(Lock(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_folder_is_locked_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::take(folder.path()).unwrap();
        let error = Lock::take(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is in use: ", folder.path().display())), "{error}");
        drop(held);
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_missing_folder_is_one_sentence() {
        let error = write_whole(Path::new("/nowhere/at/all/a.bin"), b"x").unwrap_err().to_string();
        assert!(error.starts_with("cannot write /nowhere/at/all/a.bin: "), "{error}");
    }
}

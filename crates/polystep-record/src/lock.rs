//! A folder that belongs to one process for a while. The lock is the operating system's, so it ends with the process,
//! however that ends; a lock file would stay behind.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::RecordError;

/// A folder that no other process trains into while this value lives.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held, not read")] Option<File>);

impl FolderLock {
    /// Locks a folder. An error if another process holds it. On a file system without locks there is no error, and no protection.
    pub fn take(folder: &Path) -> Result<FolderLock, RecordError> {
        let Ok(file) = File::open(folder) else { return Ok(FolderLock(None)) };
        match file.try_lock() {
            Ok(()) => Ok(FolderLock(Some(file))),
            Err(TryLockError::WouldBlock) => Err(RecordError::InUse { folder: folder.to_path_buf() }),
            Err(TryLockError::Error(_)) => Ok(FolderLock(None)),
        }
    }

    /// Waits until no other process holds the folder, then locks it.
    pub fn wait(folder: &Path) -> FolderLock {
        let file = File::open(folder).ok();
        FolderLock(file.filter(|file| file.lock().is_ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let held = FolderLock::take(folder.path()).unwrap();
        let error = FolderLock::take(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is in use: ", folder.path().display())), "{error}");
        drop(held);
        FolderLock::take(folder.path()).unwrap();
    }
}

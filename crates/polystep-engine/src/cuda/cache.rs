//! Compiled kernels on disk, so that only the first start has to compile them.
//!
//! A kernel is code that will run, so the cache is private. Its folder belongs to the user and is closed to everybody else.
//! Every file begins with a hash of its contents and of what they were compiled from. Links are not followed. A new file is
//! written under a name that nobody can guess, then renamed. A file that does not verify is compiled again. Failing to read
//! or write the cache is no error, only slower.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Result;

/// Bytes of the hash at the head of a file.
const HASH: usize = blake3::OUT_LEN;

/// What a kernel was compiled from: sources, options, version of the compiler.
pub(super) struct Key {
    stem: String,
    hash: blake3::Hash,
}

impl Key {
    /// `stem` is the readable part of the file name.
    pub(super) fn new(stem: &str, compiled_from: &str) -> Self {
        Key { stem: stem.into(), hash: blake3::hash(compiled_from.as_bytes()) }
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}-{}.cubin", self.stem, &self.hash.to_hex()[..32]))
    }

    fn seal(&self, cubin: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(self.hash.as_bytes(), cubin)
    }
}

/// Where the user's caches lie.
pub(super) fn base() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
}

/// The kernel of a key, from the cache under `base`. If it is not there, it is made and put there. With `fresh` it is made in any
/// case, because the driver refused the one in the cache.
pub(super) fn cached(
    base: Option<PathBuf>,
    key: &Key,
    fresh: bool,
    make: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let folder = base.and_then(|base| private_folder(&base).ok());
    if let (Some(folder), false) = (&folder, fresh)
        && let Ok(cubin) = read(folder, key)
    {
        return Ok(cubin);
    }
    let cubin = make()?;
    if let Some(folder) = folder {
        let _ = write(&folder, key, &cubin);
    }
    Ok(cubin)
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Makes the folder, or closes it to other users if it is open to them. An error if it is a link or belongs to somebody else.
fn private_folder(base: &Path) -> io::Result<PathBuf> {
    let folder = base.join("polystep/kernels");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    // A file that we make belongs to us, and so must the folders.
    let own = tempfile::NamedTempFile::new_in(&folder)?.as_file().metadata()?.uid();
    for part in [base.join("polystep"), folder.clone()] {
        let found = fs::symlink_metadata(&part)?;
        if !found.is_dir() || found.uid() != own {
            return Err(refused("the folder of compiled kernels is a link, or somebody else's"));
        }
    }
    if fs::symlink_metadata(&folder)?.mode() & 0o077 != 0 {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
    }
    Ok(folder)
}

fn read(folder: &Path, key: &Key) -> io::Result<Vec<u8>> {
    let path = key.path(folder);
    let (named, mut file) = (fs::symlink_metadata(&path)?, File::open(&path)?);
    let opened = file.metadata()?;
    let same = (named.dev(), named.ino()) == (opened.dev(), opened.ino());
    if !same || !opened.is_file() || opened.uid() != fs::symlink_metadata(folder)?.uid() || opened.mode() & 0o022 != 0 {
        return Err(refused("a compiled kernel is a link, somebody else's, or open to others"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    match bytes.split_at_checked(HASH) {
        Some((seal, cubin)) if key.seal(cubin).as_bytes() == seal => Ok(bytes.split_off(HASH)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a compiled kernel does not verify")),
    }
}

fn write(folder: &Path, key: &Key, cubin: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(key.seal(cubin).as_bytes())?;
    file.write_all(cubin)?;
    file.persist(key.path(folder))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    /// A cache with one kernel in it: its base, folder, key, and the file.
    fn filled() -> (tempfile::TempDir, PathBuf, Key, PathBuf) {
        let base = tempfile::tempdir().unwrap();
        let key = Key::new("norm", "the source");
        assert_eq!(get(base.path(), &key, b"code").0, b"code");
        let folder = base.path().join("polystep/kernels");
        let path = key.path(&folder);
        (base, folder, key, path)
    }

    /// The kernel, and whether it had to be made.
    fn get(base: &Path, key: &Key, made: &[u8]) -> (Vec<u8>, bool) {
        let mut compiled = false;
        let make = || {
            compiled = true;
            Ok(made.to_vec())
        };
        let cubin = cached(Some(base.into()), key, false, make).unwrap();
        (cubin, compiled)
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_kernel_is_compiled_once_and_kept_in_private() {
        let (base, folder, key, path) = filled();
        assert_eq!(get(base.path(), &key, b"never"), (b"code".to_vec(), false));
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        assert!(get(base.path(), &Key::new("norm", "another source"), b"more").1);
    }

    #[test]
    fn what_does_not_verify_is_compiled_again() {
        let (base, folder, key, path) = filled();
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in [flipped, good[..good.len() - 1].to_vec(), Vec::new(), b"\x7fELF of somebody".to_vec()] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(get(base.path(), &key, b"code"), (b"code".to_vec(), true));
            assert_eq!(get(base.path(), &key, b"never"), (b"code".to_vec(), false));
        }
        // A whole file under another kernel's name.
        let other = Key::new("norm", "another source");
        fs::copy(&path, other.path(&folder)).unwrap();
        assert!(get(base.path(), &other, b"code").1);
    }

    #[test]
    fn links_and_files_open_to_others_are_not_read() {
        let (base, folder, key, path) = filled();
        let aside = folder.join("aside");
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        assert!(get(base.path(), &key, b"code").1);
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "the link was replaced");
        fs::set_permissions(&path, Permissions::from_mode(0o622)).unwrap();
        assert!(get(base.path(), &key, b"code").1);
        // Only root can give a file to another user. Without root this part tests nothing.
        if chown(&path, Some(12345), None).is_ok() {
            assert!(get(base.path(), &key, b"code").1);
            chown(&folder, Some(12345), None).unwrap();
            assert!(private_folder(base.path()).is_err());
        }
    }

    #[test]
    fn an_open_folder_is_closed_and_a_linked_one_refused() {
        let (base, folder, key, _) = filled();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(!get(base.path(), &key, b"never").1);
        assert_eq!(mode(&folder), 0o700);
        let linked = tempfile::tempdir().unwrap();
        symlink(base.path().join("polystep"), linked.path().join("polystep")).unwrap();
        assert!(private_folder(linked.path()).is_err());
        assert_eq!(get(linked.path(), &key, b"code"), (b"code".to_vec(), true));
    }
}

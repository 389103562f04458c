//! Finds the CUDA libraries without ever needing them to build.
//!
//! The decision a reader would get wrong: every library is opened here, by path if necessary, *before* cudarc asks for it.
//! cudarc panics if a library is missing. Once a library is loaded under its soname, cudarc's own `dlopen` finds that copy.

#![allow(unsafe_code)] // dlopen

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use crate::{EngineError, Result};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const NOW_GLOBAL: c_int = 0x102;

/// A library that was found, and where.
#[derive(Clone, Debug)]
pub struct Library {
    /// "libnvrtc.so.13", say.
    pub name: String,
    /// The folder, or "the loader's path".
    pub place: String,
}

/// What `doctor` shows about a machine that can run CUDA programs.
#[derive(Clone, Debug)]
pub struct Info {
    /// The device's name.
    pub device: String,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub processors: usize,
    /// Device memory in MiB.
    pub memory_mib: usize,
    /// The driver's CUDA version.
    pub driver: String,
    /// The libraries in use.
    pub libraries: Vec<Library>,
}

fn open(path: &Path) -> Result<(), String> {
    let Ok(name) = CString::new(path.as_os_str().as_encoded_bytes()) else {
        return Err("a path with a zero byte".into());
    };
    // SAFETY: `name` is a valid C string; the handle is kept open for the life of the process. Opening runs the library's
    // initialisers, which is what the user of a CUDA library wants.
    unsafe {
        if !dlopen(name.as_ptr(), NOW_GLOBAL).is_null() {
            return Ok(());
        }
        let message = dlerror();
        Err(if message.is_null() { "unknown".into() } else { CStr::from_ptr(message).to_string_lossy().into_owned() })
    }
}

fn children(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Folders of a Python installation's `nvidia-*` packages.
fn python_folders(prefix: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for python in children(&prefix.join("lib"), |n| n.starts_with("python3")) {
        for package in children(&python.join("site-packages/nvidia"), |_| true) {
            folders.push(package.join("lib"));
        }
    }
    folders
}

/// Where CUDA libraries lie when the loader does not know them: our own variables, the toolkit, Python packages.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["POLYSTEP_NVRTC_DIR", "POLYSTEP_CUDA_DIR"]
        .iter()
        .filter_map(|name| std::env::var_os(name).map(PathBuf::from))
        .collect();
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = std::env::var_os(name) {
            folders.push(Path::new(&home).join("lib64"));
        }
    }
    folders.push("/usr/local/cuda/lib64".into());
    folders.push("/usr/local/cuda/targets/x86_64-linux/lib".into());
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = std::env::var_os(name) {
            folders.extend(python_folders(Path::new(&prefix)));
        }
    }
    if let Some(path) = std::env::var_os("PATH") {
        for bin in std::env::split_paths(&path) {
            if let (true, Some(prefix)) = (bin.join("python3").exists(), bin.parent()) {
                folders.extend(python_folders(prefix));
            }
        }
    }
    if let Some(home) = std::env::var_os("HOME") {
        folders.extend(python_folders(&Path::new(&home).join(".local")));
    }
    folders
}

/// Opens the first of `names` that the loader or one of our folders has. The libraries `before` are opened first, from the same
/// folder.
fn find(names: &[&str], before: &str, help: &str) -> Result<Library> {
    let own = std::env::var_os("POLYSTEP_NVRTC_DIR").is_some();
    let loader = |found: &mut Option<Library>| {
        for name in names {
            if found.is_none() && open(Path::new(name)).is_ok() {
                *found = Some(Library { name: (*name).into(), place: "the loader's path".into() });
            }
        }
    };
    let mut found = None;
    if !own {
        loader(&mut found);
    }
    let mut last = String::new();
    if found.is_none() {
        'folders: for folder in folders() {
            for name in names {
                let path = folder.join(name);
                if !path.exists() {
                    continue;
                }
                if !before.is_empty() {
                    for first in children(&folder, |n| n.starts_with(before) && !n.contains(".alt.")) {
                        let _ = open(&first);
                    }
                }
                match open(&path) {
                    Ok(()) => {
                        found = Some(Library { name: (*name).into(), place: folder.display().to_string() });
                        break 'folders;
                    }
                    Err(message) => last = format!(" ({message})"),
                }
            }
        }
    }
    if own {
        loader(&mut found);
    }
    found.ok_or_else(|| EngineError::MissingLibrary { library: names[0].into(), help: format!("{help}{last}") })
}

/// The driver.
pub(crate) fn driver() -> Result<Library> {
    find(&["libcuda.so.1", "libcuda.so"], "", "install the NVIDIA driver, or compute with --device cpu")
}

/// The run-time compiler.
pub(crate) fn nvrtc() -> Result<Library> {
    find(
        &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
        "libnvrtc-builtins.so",
        "install the CUDA toolkit or `pip install nvidia-cuda-nvrtc`, or name its folder in POLYSTEP_NVRTC_DIR",
    )
}

/// Matrix products.
pub(crate) fn cublaslt() -> Result<Library> {
    find(
        &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
        "",
        "install the CUDA toolkit or `pip install nvidia-cublas`, or name its folder in POLYSTEP_CUDA_DIR",
    )
}

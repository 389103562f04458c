//! Finds the CUDA libraries without ever needing them to build.
//!
//! The decision a reader would get wrong: every library is opened here, by path if necessary, *before* cudarc asks for it.
//! cudarc panics if a library is missing. Once a library is loaded under its soname, cudarc's own `dlopen` finds that copy.

#![allow(unsafe_code)] // dlopen

use std::env::{split_paths, var_os};
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
    let pythons = children(&prefix.join("lib"), |n| n.starts_with("python3"));
    let packages = pythons.iter().flat_map(|python| children(&python.join("site-packages/nvidia"), |_| true));
    packages.map(|package| package.join("lib")).collect()
}

/// Where CUDA libraries lie when the loader does not know them: our own variables, the toolkit, Python packages.
fn folders() -> impl Iterator<Item = PathBuf> {
    let named = |names: [&'static str; 2]| names.into_iter().filter_map(var_os).map(PathBuf::from);
    let toolkit = named(["CUDA_HOME", "CUDA_PATH"]).map(|home| home.join("lib64"));
    let usual = ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"].map(PathBuf::from);
    let bins: Vec<PathBuf> = split_paths(&var_os("PATH").unwrap_or_default()).collect();
    let pythons = bins.into_iter().filter(|bin| bin.join("python3").exists());
    let installed = pythons.filter_map(|bin| Some(bin.parent()?.to_path_buf()));
    let users = var_os("HOME").map(|home| Path::new(&home).join(".local"));
    let prefixes = named(["VIRTUAL_ENV", "CONDA_PREFIX"]).chain(installed).chain(users);
    let packages = prefixes.flat_map(|prefix| python_folders(&prefix));
    named(["POLYSTEP_NVRTC_DIR", "POLYSTEP_CUDA_DIR"]).chain(toolkit).chain(usual).chain(packages)
}

/// Opens the first of `names` that the loader or one of our folders has. The libraries `before` are opened first, from the same
/// folder. If the user has named a folder, the loader is asked last.
fn find(names: &[&str], before: &str, help: &str) -> Result<Library> {
    let mut why = String::new();
    let by_loader = || names.iter().find(|name| open(Path::new(name)).is_ok()).map(|name| (*name, None));
    let mut in_folder = || {
        let places = folders().flat_map(|folder| names.iter().map(move |name| (*name, folder.clone())));
        for (name, folder) in places.filter(|(name, folder)| folder.join(name).exists()) {
            if !before.is_empty() {
                let firsts = children(&folder, |n| n.starts_with(before) && !n.contains(".alt."));
                firsts.iter().for_each(|first| drop(open(first)));
            }
            match open(&folder.join(name)) {
                Ok(()) => return Some((name, Some(folder))),
                Err(message) => why = format!(" ({message})"),
            }
        }
        None
    };
    let found = match var_os("POLYSTEP_NVRTC_DIR") {
        Some(_) => in_folder().or_else(by_loader),
        None => by_loader().or_else(in_folder),
    };
    let place = |folder: Option<PathBuf>| folder.map_or("the loader's path".into(), |path| path.display().to_string());
    found
        .map(|(name, folder)| Library { name: name.into(), place: place(folder) })
        .ok_or_else(|| EngineError::MissingLibrary { library: names[0].into(), help: format!("{help}{why}") })
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

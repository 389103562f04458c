//! Where the bundled models are: compact run folders under `models/`.
//!
//! `models/` is looked for in these places, and nowhere else:
//! 1. the folder that `POLYSTEP_MODELS` names;
//! 2. beside the binary, or in the folder of the Python package;
//! 3. in the clone whose `target/` holds the binary;
//! 4. in the clone that the program was built in.
//!
//! A folder of that name which holds none of our models is skipped.

use std::path::{Path, PathBuf};

use polystep_record::RunFolder;

use crate::launch;

/// Names the folder of the models.
const VARIABLE: &str = "POLYSTEP_MODELS";

/// The folder of the models, if there is one.
pub fn folder() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(PathBuf::from(named)).filter(|f| f.is_dir());
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    places(launch::folder()).into_iter().chain(built.canonicalize()).find(|f| holds_models(f))
}

/// Where `models/` may be for a program that lies in this folder.
fn places(folder: Option<&Path>) -> Vec<PathBuf> {
    let Some(beside) = folder else { return Vec::new() };
    let target = beside.parent().filter(|target| target.file_name().is_some_and(|name| name == "target"));
    [Some(beside), target.and_then(Path::parent)].into_iter().flatten().map(|f| f.join("models")).collect()
}

fn holds_models(folder: &Path) -> bool {
    let ours = |path: PathBuf| RunFolder::new(path).has_model();
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|e| ours(e.path()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever can write to a folder above the binary must not be able to supply its models.
    #[test]
    fn models_are_not_looked_for_in_every_folder_above_the_binary() {
        let places = |folder: &str| places(Some(Path::new(folder)));
        assert_eq!(places("/usr/local/bin"), [Path::new("/usr/local/bin/models")]);
        let clone = ["/home/a/polystep/target/release/models", "/home/a/polystep/models"];
        assert_eq!(places("/home/a/polystep/target/release"), clone.map(PathBuf::from));
    }

    #[test]
    fn another_folder_of_that_name_is_skipped() {
        let place = tempfile::tempdir().expect("a folder");
        let theirs = place.path().join("bert");
        std::fs::create_dir(&theirs).expect("a folder");
        std::fs::write(theirs.join("model.safetensors"), "").expect("a file");
        assert!(!holds_models(place.path()) && !holds_models(&place.path().join("nowhere")));
        assert!(holds_models(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")));
    }
}

//! The modules of this crate form no cycle: each one uses only those that the list in `lib.rs` names before it.

use std::path::{Path, PathBuf};

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// The modules in the order of the list: lines such as "- [`feed`]: where batches come from".
fn listed() -> Vec<String> {
    let lib = std::fs::read_to_string(Path::new(SRC).join("lib.rs")).unwrap();
    let name = |line: &str| Some(line.strip_prefix("//! - [`")?.split_once('`')?.0.to_owned());
    lib.lines().filter_map(name).collect()
}

/// The files of a module, tests not among them.
fn files(path: PathBuf) -> Vec<PathBuf> {
    let file = path.with_extension("rs");
    if file.exists() {
        return [file].into_iter().chain(folder(&path)).collect();
    }
    folder(&path)
}

fn folder(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = path.read_dir() else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| if path.is_dir() { folder(&path) } else { vec![path] })
        .filter(|p| !p.ends_with("tests.rs"))
        .collect()
}

/// The modules that a file names as `crate::module`, alone or in braces.
fn used(text: &str) -> Vec<String> {
    let code: String =
        text.split("#[cfg(test)]\nmod ").next().unwrap().lines().filter(|l| !l.trim().starts_with("//")).collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap().split(',').collect(),
            None => vec![rest],
        };
        let name =
            |text: &str| text.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
        found.extend(names.into_iter().map(name));
    }
    let module = |name: String| match name.as_str() {
        "LearnError" | "ConfigError" => "error".to_owned(),
        _ => name,
    };
    found.into_iter().filter(|name| name != "COMMIT").map(module).collect()
}

#[test]
fn every_module_uses_only_those_before_it() {
    let order = listed();
    let lib = std::fs::read_to_string(Path::new(SRC).join("lib.rs")).unwrap();
    let declared =
        lib.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    for module in declared {
        let place = order.iter().position(|name| name == module);
        let place = place.unwrap_or_else(|| panic!("lib.rs does not list {module}"));
        let sources = files(Path::new(SRC).join(module));
        assert!(!sources.is_empty(), "{module}");
        for file in sources {
            for other in used(&std::fs::read_to_string(&file).unwrap()) {
                let known = order[..=place].contains(&other);
                assert!(
                    known,
                    "{}: {module} uses {other}, which is not before it in the list of lib.rs",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn a_use_of_a_later_module_is_found() {
    assert_eq!(
        used("use crate::{LearnError, train::Trainer};\nlet x = crate::sweep::y();"),
        ["error", "train", "sweep"]
    );
    assert_eq!(used("// crate::a\n#[cfg(test)]\nmod tests { use crate::b; }"), [""; 0]);
}

//! The rules that keep the code base easy to find one's way in: every module has its sentence in ARCHITECTURE.md, a name means one
//! thing in all crates, and no file is longer than a person wants to read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The longest file, in lines.
const LONGEST: usize = 450;

/// Public types that two crates may both have: name and reason.
const SHARED_NAMES: [(&str, &str); 0] = [];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source file of the crates, with its path inside `crates/`.
fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "cu") {
                found.push(path);
            }
        }
    }
    let (crates, mut found) = (root().join("crates"), Vec::new());
    walk(&crates, &mut found);
    found.sort();
    let read =
        |path: PathBuf| (path.strip_prefix(&crates).unwrap().to_owned(), std::fs::read_to_string(&path).unwrap());
    found.into_iter().map(read).collect()
}

/// The crate of a file, and its module path: `polystep-engine`, `cpu::gemm`. Crate roots and tests are no modules.
fn module(path: &Path) -> Option<(String, String)> {
    let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap()).collect();
    let ["src", inner @ ..] = &names[1..] else { return None };
    let mut inner: Vec<&str> = inner.iter().map(|name| name.strip_suffix(".rs").unwrap_or(name)).collect();
    if inner.contains(&"tests") || inner == ["lib"] || inner == ["main"] {
        return None;
    }
    if inner.last() == Some(&"mod") {
        inner.pop();
    }
    Some((names[0].to_owned(), inner.join("::")))
}

/// `- `module`: sentence` under the heading of a crate.
fn described() -> BTreeMap<String, Vec<(String, String)>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut described: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.trim_matches('`').to_owned();
        } else if let Some((module, sentence)) = line.trim_start().strip_prefix("- `").and_then(|l| l.split_once("`: "))
        {
            described.entry(heading.clone()).or_default().push((module.to_owned(), sentence.to_owned()));
        }
    }
    described
}

#[test]
fn every_module_has_its_sentence_in_the_architecture() {
    let mut wrong = Vec::new();
    let mut described = described();
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (crate_name, module) in sources().iter().filter_map(|(path, _)| module(path)) {
        crates.entry(crate_name).or_default().insert(module);
    }
    for (crate_name, modules) in crates {
        let lines = described.remove(&crate_name).unwrap_or_default();
        let named: BTreeSet<String> = lines.iter().map(|(module, _)| module.clone()).collect();
        wrong.extend(modules.difference(&named).map(|module| format!("{crate_name}: `{module}` is not described")));
        wrong.extend(named.difference(&modules).map(|module| format!("{crate_name}: there is no module `{module}`")));
        if named.len() < lines.len() {
            wrong.push(format!("{crate_name}: a module is described twice"));
        }
        let unfinished = lines.iter().filter(|(_, sentence)| !sentence.ends_with(['.', '?']) || sentence.len() < 20);
        wrong.extend(unfinished.map(|(module, _)| format!("{crate_name}: `{module}` has no whole sentence")));
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

/// The types that a file defines with `pub`.
fn types(text: &str) -> impl Iterator<Item = String> {
    let starts = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
    let names = text.lines().filter_map(move |line| starts.iter().find_map(|start| line.strip_prefix(start)));
    names.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric()).collect())
}

/// The words of all `pub use` of a file: what it exports by another way.
fn exports(text: &str) -> BTreeSet<String> {
    let uses = text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    uses.flat_map(|list| list.split(|c: char| !c.is_alphanumeric()).map(str::to_owned)).collect()
}

/// A type of the binary, or one that users of a library can name: its modules are public, or a public one exports it.
#[test]
fn a_public_type_has_its_name_for_itself() {
    let sources = sources();
    let mut files: BTreeMap<(String, String), &str> = BTreeMap::new();
    for (path, text) in &sources {
        let root = || {
            path.ends_with("src/lib.rs").then(|| (path.iter().next().unwrap().to_str().unwrap().into(), String::new()))
        };
        if let Some(key) = module(path).or_else(root) {
            files.insert(key, text);
        }
    }
    let parent = |module: &str| module.rsplit_once("::").map_or(String::new(), |(parent, _)| parent.to_owned());
    let is_public = |crate_name: &str, module: &str| {
        let mut inner = module.to_owned();
        while !inner.is_empty() {
            let name = inner.rsplit("::").next().unwrap().to_owned();
            inner = parent(&inner);
            let declared = files.get(&(crate_name.to_owned(), inner.clone()));
            if !declared.is_some_and(|text| text.lines().any(|line| line == format!("pub mod {name};"))) {
                return false;
            }
        }
        true
    };
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for ((crate_name, module), text) in &files {
        let public = crate_name == "polystep" || is_public(crate_name, module);
        let above = parent(module);
        let exported = match files.get(&(crate_name.clone(), above.clone())) {
            Some(text) if is_public(crate_name, &above) => exports(text),
            _ => BTreeSet::new(),
        };
        for name in types(text).filter(|name| public || exported.contains(name)) {
            owners.entry(name).or_default().insert(crate_name);
        }
    }
    assert!(owners.len() > 150, "only {} types were found", owners.len());
    let shared = owners.iter().filter(|(name, owners)| owners.len() > 1 && SHARED_NAMES.iter().all(|(n, _)| n != name));
    let shared: Vec<String> = shared.map(|(name, owners)| format!("{name} is in {owners:?}")).collect();
    assert!(shared.is_empty(), "{}", shared.join("\n"));
}

#[test]
fn no_file_is_too_long_to_read() {
    let long =
        sources().into_iter().map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > LONGEST);
    let long: Vec<String> = long.map(|(path, lines)| format!("{} has {lines} lines", path.display())).collect();
    assert!(long.is_empty(), "more than {LONGEST} lines:\n{}", long.join("\n"));
}

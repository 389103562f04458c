//! The committed corpora of the fuzz targets, and the inputs that once broke one of them, as an ordinary test.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

#[test]
fn every_input_of_the_corpora_passes() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in targets::TARGETS {
        let inputs = corpora.join(name).read_dir().unwrap_or_else(|e| panic!("the corpus of {name}: {e}"));
        let mut inputs: Vec<_> = inputs.map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{name} has no corpus");
        for input in inputs {
            let data = std::fs::read(&input).unwrap();
            let passed = catch_unwind(AssertUnwindSafe(|| target(&data)));
            assert!(passed.is_ok(), "{} breaks the target {name}", input.display());
        }
    }
}

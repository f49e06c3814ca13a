//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz target.

#[path = "../../../../fuzz/src/carton_read.rs"]
mod carton_read;

use std::{fs, path::Path};

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let mut replayed = replay(&test_support::workspace().join("fuzz/corpus/carton_read"));
    for folder in ["invalid", "golden", "valid"] {
        replayed += replay(&test_support::testdata("carton").join(folder));
    }
    assert!(replayed > 400, "{replayed}");
}

fn replay(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| carton_read::run(&fs::read(file).unwrap())).count()
}

//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz target.

#[path = "../../../../fuzz/src/ztensor_read.rs"]
mod ztensor_read;

use std::{fs, path::Path};

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let mut replayed = replay(&test_support::workspace().join("fuzz/corpus/ztensor_read"));
    for folder in ["invalid", "valid/legacy", "valid/v1.1-hand", "valid/v1.1-ref"] {
        replayed += replay(&test_support::testdata("ztensor").join(folder));
    }
    assert!(replayed > 200, "{replayed}");
}

fn replay(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| ztensor_read::run(&fs::read(file).unwrap())).count()
}

//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz target.

use std::{fs, path::Path};

use crate::rten_read;

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let mut replayed = replay(&test_support::workspace().join("fuzz/corpus/rten_read"));
    for folder in ["invalid", "valid"] {
        replayed += replay(&test_support::testdata("rten").join(folder));
    }
    assert!(replayed > 80, "{replayed}");
}

fn replay(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| rten_read::run(&fs::read(file).unwrap())).count()
}

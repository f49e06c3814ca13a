//! Replays the files of `testdata`, and inputs that fuzzing has found, through the fuzz target.

#[path = "../../../../fuzz/src/circle_read.rs"]
pub(crate) mod circle_read;

use std::{fs, path::Path};

use crate::common::packed_models;

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let mut replayed = replay(&test_support::testdata("nnpackage"));
    for (_, bytes) in packed_models() {
        circle_read::run(&bytes);
    }
    let found = test_support::workspace().join("fuzz/corpus/circle_read");
    if found.exists() {
        replayed += replay(&found);
    }
    assert!(replayed > 250, "{replayed}");
}

fn replay(folder: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += replay(&path);
        } else {
            circle_read::run(&fs::read(path).unwrap());
            count += 1;
        }
    }
    count
}

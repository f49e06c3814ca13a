//! Replays the files of `testdata`, and inputs that fuzzing has found, through the fuzz targets.

use std::{fs, path::Path};

use crate::{nnpackage_edit, nnpackage_read};

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let mut replayed = replay(&test_support::testdata("nnpackage"));
    let found = test_support::workspace().join("fuzz/corpus/nnpackage_read");
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
            let bytes = fs::read(path).unwrap();
            nnpackage_read::run(&bytes);
            nnpackage_edit::run(&bytes);
            count += 1;
        }
    }
    count
}

#[test]
fn no_change_of_a_byte_breaks_edits() {
    let manifest =
        br#"{"models":["a",/*b*/"c"],"model-connect":[{"from":"0:0:0","to":["1:0:0"]},]}"#;
    test_support::mutations(manifest, nnpackage_edit::run);
    test_support::truncations(manifest, nnpackage_edit::run);
}

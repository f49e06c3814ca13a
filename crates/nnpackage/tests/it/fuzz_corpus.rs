//! Replays the files of `testdata`, and inputs that fuzzing has found, through the fuzz targets.

use crate::{nnpackage_edit, nnpackage_read};

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let folders =
        ["testdata/nnpackage", "fuzz/corpus/nnpackage_read", "fuzz/corpus/nnpackage_edit"];
    let replayed = test_support::replay(&folders, |bytes| {
        nnpackage_read::run(bytes);
        nnpackage_edit::run(bytes);
    });
    assert!(replayed > 250, "{replayed}");
}

#[test]
fn no_change_of_a_byte_breaks_edits() {
    let manifest =
        br#"{"models":["a",/*b*/"c"],"model-connect":[{"from":"0:0:0","to":["1:0:0"]},]}"#;
    test_support::mutations(manifest, nnpackage_edit::run);
    test_support::truncations(manifest, nnpackage_edit::run);
}

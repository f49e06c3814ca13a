//! Replays the files of `testdata`, and inputs that fuzzing has found, through the fuzz target.

#[path = "../../../../fuzz/src/circle_read.rs"]
pub(crate) mod circle_read;

use crate::common::packed_models;

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let folders = ["testdata/nnpackage", "fuzz/corpus/circle_read"];
    let replayed = test_support::replay(&folders, circle_read::run);
    assert!(replayed > 250, "{replayed}");
    packed_models().iter().for_each(|(_, bytes)| circle_read::run(bytes));
}

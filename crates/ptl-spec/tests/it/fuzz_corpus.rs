//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz targets.

#[path = "../../../../fuzz/src/ptl_read.rs"]
mod read_target;
#[path = "../../../../fuzz/src/ptl_spec.rs"]
mod spec_target;

use test_support::replay;

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let folders = ["fuzz/corpus/ptl_read", "testdata/ptl/invalid", "testdata/ptl/valid"];
    let replayed = replay(&folders, read_target::run);
    assert!(replayed > 100, "{replayed}");
}

#[test]
fn nothing_in_the_corpus_breaks_a_spec() {
    let replayed = replay(&["fuzz/corpus/ptl_spec", "testdata/ptl/calls/specs"], spec_target::run);
    assert!(replayed > 10, "{replayed}");
}

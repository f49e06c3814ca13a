//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz target.

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let folders = ["fuzz/corpus/weights_read", "testdata/weights"];
    let replayed = test_support::replay(&folders, crate::weights_read::run);
    assert!(replayed > 10, "{replayed}");
}

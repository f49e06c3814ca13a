//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz target.

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let folders = ["fuzz/corpus/rten_read", "testdata/rten/invalid", "testdata/rten/valid"];
    let replayed = test_support::replay(&folders, crate::rten_read::run);
    assert!(replayed > 80, "{replayed}");
}

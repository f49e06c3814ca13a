//! Replays the inputs that fuzzing has found through the fuzz target.
#![cfg(all(feature = "deflate", feature = "zstd"))]

#[path = "../../../../fuzz/src/archive_read.rs"]
mod archive_read;

use std::fs;

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let folder = test_support::workspace().join("fuzz/corpus/archive_read");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let replayed = files.map(|file| archive_read::run(&fs::read(file).unwrap())).count();
    assert!(replayed > 100, "{replayed}");
}

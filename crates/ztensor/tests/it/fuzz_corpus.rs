//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz target.

#[path = "../../../../fuzz/src/zt2_read.rs"]
mod zt2_read;
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

#[test]
fn nothing_breaks_the_reader_of_generation_2() {
    let mut replayed = 0;
    for folder in ["v2/invalid", "v2/valid"] {
        for file in test_support::files(&format!("ztensor/{folder}"), "zt") {
            let file = fs::read(file).unwrap();
            zt2_read::run(&file);
            // The same manifest behind blobs of zeros.
            let footer = file.len() - 40.min(file.len());
            let manifest = &file[file.len().min(8192)..footer.max(file.len().min(8192))];
            zt2_read::run(&[&[0, 0][..], manifest].concat());
            replayed += 1;
        }
    }
    assert!(replayed > 110, "{replayed}");
}

fn replay(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| ztensor_read::run(&fs::read(file).unwrap())).count()
}

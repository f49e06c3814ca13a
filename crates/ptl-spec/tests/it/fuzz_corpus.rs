//! Replays the inputs that fuzzing has found, and the files of `testdata`, through the fuzz targets.

#[path = "../../../../fuzz/src/ptl_read.rs"]
mod read_target;
#[path = "../../../../fuzz/src/ptl_spec.rs"]
mod spec_target;

use std::{fs, path::Path};

use test_support::{testdata, workspace};

#[test]
fn nothing_in_the_corpus_breaks_the_reader() {
    let mut replayed = replay(&workspace().join("fuzz/corpus/ptl_read"), read_target::run);
    for folder in
        ["invalid", "valid/torch113", "valid/torch251", "valid/backport", "valid/variants"]
    {
        replayed += replay(&testdata("ptl").join(folder), read_target::run);
    }
    assert!(replayed > 100, "{replayed}");
}

#[test]
fn nothing_in_the_corpus_breaks_a_spec() {
    let mut replayed = replay(&workspace().join("fuzz/corpus/ptl_spec"), spec_target::run);
    replayed += replay(&testdata("ptl/calls/specs"), spec_target::run);
    assert!(replayed > 10, "{replayed}");
}

fn replay(folder: &Path, run: fn(&[u8])) -> usize {
    let Ok(files) = fs::read_dir(folder) else { return 0 };
    files.map(|file| run(&fs::read(file.unwrap().path()).unwrap())).count()
}

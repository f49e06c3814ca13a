//! Whoever opens a file while another process edits it, or after that was killed, finds the old file or
//! the new one.

use std::{fs, path::Path, thread, time::Duration};

use ptl_spec::{Editor, Reader, SPEC, WriteOptions, compact};
use test_support::{
    killed::{edits, kill},
    testdata,
};

/// Opens a file, and proves that it is whole and has one of the specs that are put in.
fn is_whole(path: &Path) -> Vec<String> {
    let reader = Reader::open(path).unwrap();
    let spec = reader.spec_text().unwrap().unwrap();
    assert!([2, LONG].contains(&spec.len()) || spec.starts_with(b"{"), "{}", spec.len());
    let tensors = reader.tensors().unwrap();
    let tensors = tensors.map(|tensor| {
        tensor.verify().unwrap();
        tensor.name().to_owned()
    });
    tensors.collect()
}

#[test]
fn old_or_new_at_every_moment() {
    for name in ["img.ptl", "img_fb.ptl"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::copy(testdata("ptl/valid/torch251").join(name), &path).unwrap();
        let expected = is_whole(&path);
        thread::scope(|scope| {
            let kills = scope.spawn(|| {
                let check = |_| assert_eq!(is_whole(&path), expected);
                kill("edited_until_killed", &path, 25, Duration::from_micros(300), check);
            });
            let mut reads = 0;
            while !kills.is_finished() {
                assert_eq!(is_whole(&path), expected);
                reads += 1;
            }
            kills.join().unwrap();
            assert!(reads > 100, "{reads}");
        });
    }
}

#[test]
fn edited_until_killed() {
    edits(|path, turn| {
        let options = WriteOptions::default().allow_invalid();
        let mut editor = Editor::open_with(path, options).unwrap();
        let text = if turn % 2 == 0 { "{}".to_owned() } else { " ".repeat(LONG) };
        editor.set(SPEC, text).unwrap();
        editor.commit().unwrap();
        if turn % 8 == 7 {
            compact(path, WriteOptions::default()).unwrap();
        }
    });
}

/// Bytes of a spec that is longer than what is appended in place.
const LONG: usize = 100_000;

//! An edit that is killed leaves the old file or the new one, or what `recover` makes the old one of.

use std::{fs, time::Duration};

use ptl_spec::{Editor, Reader, SPEC, compact, recover};
use test_support::{
    killed::{edits, kill},
    testdata,
};

#[test]
fn killed_edits_leave_a_whole_file() {
    for name in ["img.ptl", "img_fb.ptl"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::copy(testdata("ptl/valid/torch251").join(name), &path).unwrap();
        let names = |reader: &Reader| -> Vec<String> {
            reader.tensors().unwrap().map(|tensor| tensor.name().to_owned()).collect()
        };
        let expected = names(&Reader::open(&path).unwrap());
        kill("edited_until_killed", &path, 25, Duration::from_micros(300), |_| {
            if Reader::open(&path).is_err() {
                assert!(recover(&path).unwrap() > 0);
            }
            let reader = Reader::open(&path).unwrap();
            assert_eq!(names(&reader), expected);
            assert!(reader.spec_text().unwrap().is_some());
            for tensor in reader.tensors().unwrap() {
                tensor.verify().unwrap();
            }
        });
    }
}

#[test]
fn edited_until_killed() {
    edits(|path, turn| {
        let mut editor = Editor::open(path).unwrap();
        let text = if turn % 2 == 0 { "{}".to_owned() } else { " ".repeat(100_000) };
        editor.set(SPEC, text).unwrap();
        editor.commit().unwrap();
        if turn % 8 == 7 {
            compact(path).unwrap();
        }
    });
}

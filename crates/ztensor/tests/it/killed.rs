//! A process that is killed while it edits a file leaves the old one or the new one, and who reads it
//! all the time sees nothing else.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use tensor_core::TensorBuf;
use test_support::{killed, testdata};
use ztensor::{Editor, Reader};

/// How often a process is killed, each time a little later.
const KILLS: u32 = 40;

#[test]
fn old_or_new_at_every_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let restore = || {
        let other = folder.path().join("other.zt");
        fs::copy(testdata("ztensor/valid/v1.1-ref/scalars.zt"), &other).unwrap();
        fs::rename(other, &path).unwrap();
    };
    restore();
    let done = AtomicBool::new(false);
    let opened = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut opened = 0_u32;
            while !done.load(Ordering::Relaxed) {
                is_old_or_new(&Reader::open(&path).unwrap());
                opened += 1;
            }
            opened
        });
        let edits = "killed::edits_until_it_is_killed";
        killed::kill(edits, &path, KILLS, Duration::from_micros(700), |number| {
            let reader = Reader::open(&path).unwrap();
            is_old_or_new(&reader);
            assert!(reader.validate().is_valid(), "after kill {number}");
            restore();
        });
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(opened > KILLS, "{opened}");
}

#[track_caller]
fn is_old_or_new(reader: &Reader) {
    assert_eq!(reader.tensor("s_u16").unwrap().bytes().unwrap().len(), 2);
    assert!(matches!(reader.manifest().len(), 13..=14), "{}", reader.manifest().len());
}

/// Runs in the child: edits of every kind, some of which take several writes.
#[test]
fn edits_until_it_is_killed() {
    let large = TensorBuf::from_slice([9 << 20], &vec![1_u8; 9 << 20]).unwrap();
    killed::edits(|path: &Path, turn| {
        let mut editor = Editor::open(path).unwrap();
        match turn % 4 {
            0 => editor.writer().add("new", &large).unwrap(),
            1 => editor.replace("s_u8", &large).unwrap(),
            2 => editor.set_attribute("turn", turn).unwrap(),
            _ => editor.remove("new").unwrap(),
        }
        assert!(editor.commit().unwrap().has_changed());
    });
}

//! The reference reads files that we have edited, its own and ours.

use std::{fs, path::PathBuf};

use conformance::samples::{coo, csr, tensor};
use reference::ZTensorReader;
use tempfile::TempDir;
use ztensor::{
    Editor, Reader, Storage, WriteOptions, Writer, compact, recover,
    tensor_core::{DType, digest::Algorithm, output},
};

use crate::{Content, File, storages, zstd};

/// A file in a folder of its own.
struct Edited {
    folder: TempDir,
}

impl Edited {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("model.zt"), bytes).unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("model.zt")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    /// Asserts that the reference reads `expected` and nothing else, by reading and by mapping.
    #[track_caller]
    fn assert_holds(&self, expected: &File) {
        expected.assert_read_by_them(&self.bytes());
        let mut mapped = ZTensorReader::open_mmap(self.path()).unwrap();
        for entry in &expected.entries {
            entry.assert_read_by(&mut mapped);
        }
    }

    /// Asserts as [`assert_holds`](Self::assert_holds), and that we read the same and find no fault.
    #[track_caller]
    fn assert_compact(&self, expected: &File) {
        self.assert_holds(expected);
        expected.assert_read_by_us(&self.bytes());
    }
}

/// Five objects of every format, and an attribute.
fn start() -> File {
    let mut file = File::default();
    let version = ("made by".to_owned(), "a test".to_owned());
    file.attributes = Some([version].into_iter().collect());
    file.push("first", Content::Dense(tensor(DType::F32, [10, 10])));
    file.push("empty", Content::Dense(tensor(DType::I8, [0])));
    file.push("rows", Content::Csr(csr(DType::F64)));
    file.push("list", Content::Coo(coo(DType::U16)));
    file.push("last", Content::Dense(tensor(DType::BF16, [33])));
    file
}

/// The same file as our writer and as the reference makes it.
fn both() -> [Edited; 2] {
    let file = start();
    [Edited::new(&file.by_us(WriteOptions::default())), Edited::new(&file.by_them())]
}

#[track_caller]
fn remove(file: &mut File, name: &str) {
    let before = file.entries.len();
    file.entries.retain(|entry| entry.name != name);
    assert_eq!(file.entries.len() + 1, before);
}

#[test]
fn objects_are_added_in_every_storage() {
    for edited in both() {
        let mut expected = start();
        for (at, storage) in storages().into_iter().enumerate() {
            let options = WriteOptions::default().storage(storage);
            let mut editor = Editor::open_with(edited.path(), options).unwrap();
            let data = tensor(DType::F16, [50]);
            editor.writer().add(&format!("dense {at}"), &data).unwrap();
            editor.writer().add_csr(&format!("csr {at}"), &csr(DType::F32)).unwrap();
            editor.writer().add_coo(&format!("coo {at}"), &coo(DType::I16)).unwrap();
            editor.commit().unwrap();
            expected.push(format!("dense {at}"), Content::Stored(data, storage));
            expected.push(format!("csr {at}"), Content::Csr(csr(DType::F32)));
            expected.push(format!("coo {at}"), Content::Coo(coo(DType::I16)));
            edited.assert_holds(&expected);
        }
    }
}

#[test]
fn object_is_replaced() {
    for edited in both() {
        let (mut expected, data) = (start(), tensor(DType::U8, [3, 3, 3]));
        let mut editor = Editor::open(edited.path()).unwrap();
        editor.replace("first", &data).unwrap();
        editor.commit().unwrap();
        remove(&mut expected, "first");
        expected.push("first", Content::Dense(data));
        edited.assert_holds(&expected);
    }
}

#[test]
fn objects_are_removed_one_by_one() {
    for edited in both() {
        let mut expected = start();
        for entry in start().entries {
            let mut editor = Editor::open(edited.path()).unwrap();
            editor.remove(&entry.name).unwrap();
            editor.commit().unwrap();
            remove(&mut expected, &entry.name);
            edited.assert_holds(&expected);
        }
    }
}

#[test]
fn edit_is_not_committed() {
    for edited in both() {
        let before = edited.bytes();
        let mut editor = Editor::open(edited.path()).unwrap();
        editor.remove("first").unwrap();
        editor.writer().add("added", &tensor(DType::U8, [9])).unwrap();
        // What is there in the middle of an edit is what was there before it.
        edited.assert_holds(&start());
        drop(editor);
        test_support::assert_bytes(&edited.bytes(), &before, "the file");
    }
}

#[test]
fn interrupted_edit_is_recovered() {
    for edited in both() {
        let complete = edited.bytes().len();
        let mut editor = Editor::open(edited.path()).unwrap();
        editor.replace("last", &tensor(DType::F64, [100])).unwrap();
        editor.commit().unwrap();
        let after = edited.bytes();
        for cut in [complete + 1, complete + 100, after.len() - 1] {
            let cut_file = Edited::new(&after[..cut]);
            recover(cut_file.path(), WriteOptions::default()).unwrap();
            cut_file.assert_compact(&start());
        }
    }
}

#[test]
fn edited_file_is_compacted() {
    for edited in both() {
        let mut expected = start();
        let storage = Storage::default().compression(zstd(5)).digest(Algorithm::Sha256);
        let mut editor =
            Editor::open_with(edited.path(), WriteOptions::default().storage(storage)).unwrap();
        editor.remove("first").unwrap();
        let data = tensor(DType::I32, [500]);
        editor.replace("last", &data).unwrap();
        editor.commit().unwrap();
        let before = edited.bytes().len() as u64;
        let shorter = compact(edited.path(), WriteOptions::default()).unwrap();
        let after = edited.bytes().len() as u64;
        assert_eq!(shorter, output::Edited::Replaced { before, after });
        remove(&mut expected, "first");
        remove(&mut expected, "last");
        expected.push("last", Content::Stored(data, storage));
        edited.assert_compact(&expected);
    }
}

#[test]
fn compaction_makes_the_bytes_of_the_reference() {
    for edited in both() {
        let mut editor = Editor::open(edited.path()).unwrap();
        editor.writer().add("added", &tensor(DType::U8, [100])).unwrap();
        editor.commit().unwrap();
        let mut editor = Editor::open(edited.path()).unwrap();
        editor.remove("added").unwrap();
        editor.commit().unwrap();
        compact(edited.path(), WriteOptions::default()).unwrap();
        test_support::assert_bytes(&edited.bytes(), &start().by_them(), "a compacted file");
    }
}

#[test]
fn compaction_to_a_coarser_alignment() {
    for edited in both() {
        compact(edited.path(), WriteOptions::default().alignment(4_096)).unwrap();
        edited.assert_compact(&start());
    }
}

/// The reference leaves the blob of the first in the file.
#[test]
fn orphaned_blob_is_compacted_away() {
    let (first, last) = (tensor(DType::U8, [1_000]), tensor(DType::I16, [2]));
    let twice = File::dense([("t", first), ("t", last.clone())]);
    let once = File::dense([("t", last)]);
    let edited = Edited::new(&twice.by_them());
    compact(edited.path(), WriteOptions::default()).unwrap();
    test_support::assert_bytes(&edited.bytes(), &once.by_them(), "a compacted file");
}

#[test]
fn copies_of_objects() {
    for storage in storages() {
        let file = start().stored(storage);
        let reader = Reader::from_bytes(file.by_them()).unwrap();
        let mut writer = Writer::new(Vec::new());
        for entry in &file.entries {
            writer.copy(reader.tensor(&entry.name).unwrap()).unwrap();
        }
        let copied = File { attributes: None, ..file };
        let bytes = writer.finish().unwrap();
        test_support::assert_bytes(&bytes, &copied.by_them(), "copies in the same order");
    }
}

//! Packages of the test data, and what is done with them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use nnpackage::{Edit, Editor, Error, Package, Reader, Writer, extract, tensor_core::Source};
use tempfile::TempDir;
use test_support::files;

/// Returns the sound package whose name starts so.
pub(crate) fn valid(name: &str) -> PathBuf {
    let mut found = files("nnpackage/valid", "zip").into_iter();
    found.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name)).unwrap()
}

pub(crate) fn open(name: &str) -> Reader {
    Reader::open(valid(name)).unwrap()
}

/// Puts a sound package into a folder as an archive, and as a folder.
pub(crate) fn both(name: &str) -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let places = ["a.zip", "a"].map(|name| folder.path().join(name));
    fs::copy(valid(name), &places[0]).unwrap();
    extract(&open(name), &places[1]).unwrap();
    (folder, places)
}

/// Returns a file of a sound package.
pub(crate) fn part(name: &str, path: &str) -> Source {
    Source::from_bytes(open(name).file(path).unwrap().bytes().unwrap())
}

pub(crate) fn circle() -> Source {
    part("01", "add.circle")
}

pub(crate) fn bytes(text: &str) -> Source {
    Source::from_bytes(text.as_bytes().to_vec())
}

pub(crate) fn packed(package: &dyn Package) -> Vec<u8> {
    Writer::new(Vec::new(), package).finish().unwrap()
}

pub(crate) fn written(package: &dyn Package) -> Reader {
    Reader::from_bytes(packed(package)).unwrap()
}

/// Edits a package in place, and reads it again.
#[track_caller]
pub(crate) fn edited(place: &Path, edit: impl FnOnce(&mut Edit) -> Result<(), Error>) -> Reader {
    let mut editor = Editor::open(place).unwrap();
    edit(editor.edit_mut()).unwrap();
    editor.commit().unwrap();
    Reader::open(place).unwrap()
}

#[track_caller]
pub(crate) fn refuses<T>(result: Result<T, Error>, message: &str) {
    match result {
        Ok(_) => panic!("expected {message:?}"),
        Err(error) => assert_eq!(error.to_string(), message),
    }
}

/// Returns every file below a folder by its path, hidden ones too.
pub(crate) fn walk(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

//! Folders that lead elsewhere: nothing outside is read, and nothing waits.
#![cfg(unix)]

use std::{fs, os::unix::fs::symlink, path::PathBuf, thread, time::Duration};

use nnpackage::{
    Edit, Editor, Reaction, Reader, WriteOptions, Writer, extract,
    tensor_core::{
        Source,
        output::{Durability, Output},
    },
};
use tempfile::TempDir;
use test_support::testdata;

use crate::common::open;

/// A package in a folder, and a file beside it that is none of its business.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap() };
        let from = testdata("nnpackage/invalid/config_no_effect");
        for path in ["metadata/MANIFEST", "metadata/model.cfg", "add.circle"] {
            fs::create_dir_all(case.root().join(path).parent().unwrap()).unwrap();
            fs::copy(from.join(path), case.root().join(path)).unwrap();
        }
        fs::write(case.folder.path().join("secret"), "secret").unwrap();
        case
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("package")
    }

    /// Puts a link in the place of a file.
    fn link(&self, path: &str, target: &str) {
        let path = self.root().join(path);
        fs::remove_file(&path).unwrap();
        symlink(target, path).unwrap();
    }

    /// Returns the rules of all findings.
    fn rules(&self) -> Vec<String> {
        let diagnoses = Reader::open(self.root()).unwrap().diagnoses();
        diagnoses.into_iter().map(|diagnosis| diagnosis.finding.rule.into_owned()).collect()
    }
}

#[test]
fn sound_folder() {
    assert_eq!(Case::new().rules(), ["nnp/config-no-effect"]);
}

#[test]
fn files_can_be_mapped_by_their_path() {
    let case = Case::new();
    let reader = Reader::open(case.root()).unwrap();
    let path = reader.model(0).unwrap().file().disk_path().unwrap();
    assert_eq!(path, Some(case.root().canonicalize().unwrap().join("add.circle")));
    let reader = Reader::open(testdata("nnpackage/valid/01_minimal_circle_stored.zip")).unwrap();
    assert_eq!(reader.model(0).unwrap().file().disk_path().unwrap(), None);
}

#[test]
fn models_lead_out() {
    for target in ["../secret", "/etc/passwd"] {
        let case = Case::new();
        case.link("add.circle", target);
        let reader = Reader::open(case.root()).unwrap();
        let model = reader.model(0).unwrap();
        let error = model.file().bytes().unwrap_err();
        assert_eq!(error.to_string(), "\"add.circle\" leads out of the folder");
        let found = reader
            .diagnoses()
            .into_iter()
            .find(|found| found.finding.rule == "nnp/outside")
            .unwrap();
        assert_eq!(found.onert, Some(Reaction::Follows));
    }
}

#[test]
fn configurations_lead_out() {
    let case = Case::new();
    case.link("metadata/model.cfg", "../../secret");
    let error = Reader::open(case.root()).unwrap().config().unwrap_err();
    assert_eq!(error.to_string(), "\"metadata/model.cfg\" leads out of the folder");
    assert_eq!(case.rules(), ["nnp/outside"]);
}

#[test]
fn manifests_lead_out() {
    let case = Case::new();
    case.link("metadata/MANIFEST", "../../secret");
    let error = Reader::open(case.root()).unwrap_err();
    assert_eq!(error.to_string(), "\"metadata/MANIFEST\" leads out of the folder");
}

#[test]
fn links_inside_are_followed() {
    let case = Case::new();
    fs::rename(case.root().join("add.circle"), case.root().join("real")).unwrap();
    symlink("real", case.root().join("add.circle")).unwrap();
    assert_eq!(case.rules(), ["nnp/config-no-effect", "nnp/unreferenced-file"]);
}

#[test]
fn links_to_nothing() {
    let case = Case::new();
    case.link("add.circle", "none");
    assert_eq!(case.rules()[0], "nnp/missing-file");
}

/// A pipe that nobody writes to: whoever opened it would wait for ever.
#[test]
fn pipes_are_not_opened() {
    let case = Case::new();
    let path = case.root().join("add.circle");
    fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    assert_eq!(case.rules()[0], "nnp/file");
}

#[test]
fn links_to_folders_are_edited_through() {
    let case = Case::new();
    fs::rename(case.root().join("metadata"), case.root().join("meta")).unwrap();
    symlink("meta", case.root().join("metadata")).unwrap();
    assert!(case.rules().contains(&"nnp/folder-link".to_owned()));
    assert!(Reader::open(case.root()).unwrap().validate().is_valid());
    let mut editor = Editor::open(case.root()).unwrap();
    editor.edit_mut().set_config("new.cfg", "NUM_THREADS=1\n").unwrap();
    editor.commit().unwrap();
    assert!(case.root().join("metadata").is_symlink());
    assert_eq!(fs::read(case.root().join("meta/new.cfg")).unwrap(), b"NUM_THREADS=1\n");
    let reader = Reader::open(case.root()).unwrap();
    assert_eq!(reader.config().unwrap().unwrap().value("NUM_THREADS"), Some("1"));
    // An archive would have none of what is behind the link.
    let error = Writer::new(Vec::new(), &Edit::new(&reader)).finish().unwrap_err();
    assert_eq!(error.to_string(), "\"metadata\" is a folder, expected a file");
}

#[test]
fn what_is_not_complete_is_no_content() {
    let case = Case::new();
    fs::write(case.root().join("metadata/.MANIFEST.a1B2c3.modelcrate"), "half").unwrap();
    assert_eq!(case.rules(), ["nnp/config-no-effect"]);
    let mut editor = Editor::open(case.root()).unwrap();
    editor.edit_mut().digests(true);
    editor.commit().unwrap();
    let reader = Reader::open(case.root()).unwrap();
    assert!(reader.validate().is_valid());
    assert!(reader.sums().unwrap().unwrap().iter().all(|(path, _)| !path.contains("modelcrate")));
}

/// A link to the package leads to one and to the other while it is opened.
#[test]
fn what_is_locked_is_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, link, next] = ["a", "b", "link", "next"].map(|name| dir.path().join(name));
    let switch = |target| {
        symlink(target, &next).unwrap();
        fs::rename(&next, &link).unwrap();
    };
    for place in [&a, &b] {
        extract(&open("01"), place).unwrap();
        fs::write(place.join("name"), place.as_os_str().as_encoded_bytes()).unwrap();
    }
    switch("a");
    let wait = Duration::from_secs(10);
    let output = Output { wait, durability: Durability::Cached, ..Output::default() };
    thread::scope(|scope| {
        let edits = scope.spawn(|| {
            for _ in 0..200 {
                let options = WriteOptions::default().output(output);
                let mut editor = Editor::open_with(&link, options).unwrap();
                let name = editor.reader().file("name").unwrap().bytes().unwrap();
                editor.edit_mut().put("read", Source::from_bytes(name)).unwrap();
                editor.commit().unwrap();
            }
        });
        while !edits.is_finished() {
            ["b", "a"].into_iter().for_each(switch);
        }
    });
    for place in [a, b] {
        let [name, read] = ["name", "read"].map(|name| fs::read(place.join(name)).unwrap());
        assert_eq!(name, read);
    }
}

//! A process that is killed while it edits a package leaves the old one, or the new one, whole.

use std::{path::Path, time::Duration};

use nnpackage::{
    ConfigChange, Connected, Editor, ExtractOptions, Reader, WriteOptions, extract,
    tensor_core::{Severity, Source, output::Durability},
};
use test_support::{killed, testdata};

/// How often a process is killed for each form, each time a little later.
const KILLS: u32 = 20;

#[test]
fn old_or_new_but_whole() {
    let folder = tempfile::tempdir().unwrap();
    let [archive, unpacked] = ["a.zip", "a"].map(|name| folder.path().join(name));
    let package = testdata("nnpackage/valid/03_two_models_connected.zip");
    std::fs::copy(&package, &archive).unwrap();
    extract(&Reader::open(&package).unwrap(), &unpacked, &ExtractOptions::default()).unwrap();
    for place in [archive, unpacked] {
        let models = models(&place);
        let step = Duration::from_micros(300);
        killed::kill("edits_until_it_is_killed", &place, KILLS, step, |number| {
            assert_eq!(self::models(&place)[..2], models, "after kill {number}");
        });
    }
}

/// Returns the models of a package, which has to be sound.
fn models(path: &Path) -> Vec<Vec<u8>> {
    let reader = Reader::open(path).unwrap();
    let report = reader.validate();
    let errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
    // A third model that nothing is connected to is what half of the edits are about.
    let errors: Vec<_> = errors.filter(|found| found.rule != "nnp/input-unfed").collect();
    assert!(errors.is_empty(), "{errors:?}");
    reader.models().map(|model| model.file().bytes().unwrap().to_vec()).collect()
}

/// Runs in a process of its own; alone it does nothing.
#[test]
fn edits_until_it_is_killed() {
    let options = WriteOptions::default().durability(Durability::Cached);
    killed::edits(|path, turn| {
        let mut editor = Editor::open_with(path, options).unwrap();
        let edit = editor.edit_mut();
        let third = edit.manifest().models.len() > 2;
        if third {
            edit.remove_model(2, Connected::Drop).unwrap();
        } else {
            let model = edit.reader().model(0).unwrap().file().bytes().unwrap();
            edit.add_model("parts/m2.circle", Source::from_bytes(model)).unwrap();
        }
        let threads = (turn % 7).to_string();
        edit.change_config(&[ConfigChange::set("NUM_THREADS", threads)]).unwrap();
        editor.commit().unwrap();
    });
}

//! A process that is killed while it edits a package leaves the old one, or the new one, whole.

use std::{path::Path, time::Duration};

use nnpackage::{
    ConfigChange, Edit, Editor, Reader, WriteOptions, Writer,
    tensor_core::{
        Source,
        output::{Durability, is_temporary},
    },
};
use test_support::{killed, testdata};

/// How often a process is killed for each form, each time a little later.
const KILLS: u32 = 20;

#[test]
fn old_or_new_but_whole() {
    let folder = tempfile::tempdir().unwrap();
    let [archive, unpacked] = ["a.zip", "a"].map(|name| folder.path().join(name));
    let reader = Reader::open(testdata("nnpackage/valid/03_two_models_connected.zip")).unwrap();
    let mut edit = Edit::new(&reader);
    edit.digests(true);
    change(&mut edit, 0);
    Writer::create(&archive, &edit).unwrap().finish().unwrap();
    Writer::options().create_folder(&unpacked, &edit).unwrap();
    for place in [archive, unpacked] {
        let step = Duration::from_micros(300);
        killed::kill("edits_until_it_is_killed", &place, KILLS, step, |number| {
            let reader = Reader::open(&place).unwrap();
            // Digests are compared: nothing is half, missing, or there and not listed.
            let report = reader.validate();
            assert!(report.is_valid(), "after kill {number}: {report:?}");
            let config = reader.config().unwrap().unwrap();
            let turn: u64 = config.value("NUM_THREADS").unwrap().parse().unwrap();
            let content = |path: &str| reader.file(path).map(|file| file.bytes().unwrap());
            assert_eq!(content("number").unwrap(), format!("{turn}"), "after kill {number}");
            assert_eq!(content("odd").is_some(), turn % 2 == 1, "after kill {number}");
        });
        // What the dead have left goes away with the next edit.
        edited(&place, 0);
        let names = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = names.filter(|name| is_temporary(name)).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Runs in a process of its own; alone it does nothing.
#[test]
fn edits_until_it_is_killed() {
    killed::edits(edited);
}

fn edited(path: &Path, turn: u64) {
    let options = WriteOptions::default().durability(Durability::Cached);
    let mut editor = Editor::open_with(path, options).unwrap();
    change(editor.edit_mut(), turn);
    editor.commit().unwrap();
}

/// Makes the files of a package belong together: what the configuration says, the number, and a
/// file that only odd ones have.
fn change(edit: &mut Edit, turn: u64) {
    let bytes = |text: String| Source::from_bytes(text.into_bytes());
    edit.change_config(&[ConfigChange::set("NUM_THREADS", turn.to_string())]).unwrap();
    edit.put("number", bytes(turn.to_string())).unwrap();
    if turn % 2 == 1 {
        edit.put("odd", bytes("x".to_owned())).unwrap();
    } else if edit.reader().file("odd").is_some() {
        edit.remove("odd").unwrap();
    }
}

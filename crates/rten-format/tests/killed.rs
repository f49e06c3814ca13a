//! A process that is killed while it edits a model leaves the old file, or the new one, whole.

use std::{path::Path, time::Duration};

use rten_format::{
    Editor, Reader, Tensor, WriteOptions, tensor_core::output::Durability, topology::Topology,
};
use test_support::{killed, testdata};

#[test]
fn old_or_new_but_whole() {
    for name in ["all_ops.v1.rten", "all_ops.v2.rten"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.rten");
        std::fs::copy(testdata("rten/valid").join(name), &path).unwrap();
        let before = parts(&path);
        let step = Duration::from_micros(300);
        killed::kill("edits_until_it_is_killed", &path, 20, step, |number| {
            assert_eq!(parts(&path), before, "after kill {number}");
        });
    }
}

/// Returns what edits leave as it is.
fn parts(path: &Path) -> (Vec<Vec<u8>>, usize) {
    let reader = Reader::open(path).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    let content = |tensor: Tensor<'_>| tensor.bytes().unwrap().to_vec();
    let contents = reader.tensors().map(content).collect();
    (contents, Topology::of(reader.model()).scopes()[0].graph().nodes.len())
}

/// Runs in a process of its own; alone it does nothing.
#[test]
fn edits_until_it_is_killed() {
    let options = WriteOptions::default().durability(Durability::Cached);
    killed::edits(|path, turn| {
        let mut editor = Editor::open_with(path, options).unwrap();
        let metadata = editor.model_mut().metadata.get_or_insert_default();
        metadata.description = Some("x".repeat((turn % 7) as usize * 1000 + 1));
        editor.commit().unwrap();
    });
}

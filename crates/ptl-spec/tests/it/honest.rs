//! Whatever an editor writes has no error that was not there before.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::LazyLock};

use proptest::{prelude::*, sample::select};
use ptl_spec::{
    Editor, Error, Reader, SPEC, WriteOptions, compact,
    tensor_core::{Report, Severity, output::Durability},
};
use test_support::{files, testdata};

/// Files of both containers, sound and broken ones.
static FILES: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let folders = ["valid/torch251", "valid/backport", "valid/variants", "invalid"];
    folders.iter().flat_map(|folder| files(&format!("ptl/{folder}"), "ptl")).collect()
});

const NAMES: [&str; 12] = [
    SPEC,
    "Model/Live.spec.JSON",
    "model",
    "labels.txt",
    "LABELS.TXT",
    "labels.txt/a",
    "größe",
    "GRÖSSE",
    "extra/a",
    "data.pkl",
    "code/__torch__.py",
    "a\\b",
];

/// A name, and what becomes of that file: specs, sound ones and others, are among the contents.
fn change() -> impl Strategy<Value = (&'static str, Option<Vec<u8>>)> {
    let specs = files("ptl/calls/specs", "json").into_iter().map(|path| fs::read(path).unwrap());
    let content = prop_oneof![
        select(specs.collect::<Vec<_>>()),
        prop::collection::vec(any::<u8>(), 0..40),
        Just(vec![b' '; 100_000]),
    ];
    (select(&NAMES[..]), prop::option::weighted(0.8, content))
}

fn errors(report: &Report) -> BTreeSet<String> {
    let errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
    errors.map(|found| format!("{}: {}", found.rule, found.message)).collect()
}

proptest! {
    #[test]
    fn edits_add_no_error(
        file in select(&FILES[..]),
        changes in prop::collection::vec(change(), 1..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.ptl");
        fs::copy(&file, &path).unwrap();
        let options = WriteOptions::default().durability(Durability::Cached);
        let Ok(mut editor) = Editor::open_with(&path, options) else { return Ok(()) };
        let before = editor.reader().lint();
        for (name, content) in changes {
            // What is refused is not written.
            let _ = match content {
                Some(content) => editor.set(name, content),
                None => editor.remove(name),
            };
        }
        let is_refused = editor.commit().is_err();
        let after = Reader::open(&path).unwrap().lint();
        prop_assert_eq!(errors(&after.new_since(&before)), BTreeSet::new(), "{:?}", file);
        prop_assert!(!is_refused || fs::read(&path).unwrap() == fs::read(&file).unwrap());
        if compact(&path, options).is_ok() {
            let after = Reader::open(&path).unwrap().lint();
            prop_assert_eq!(errors(&after.new_since(&before)), BTreeSet::new(), "{:?}", file);
        }
    }
}

/// A spec that is wrong is written where that was asked for, or where it was so before.
#[test]
fn specs_that_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let misfit = fs::read(testdata("ptl/calls/specs/scalars.json")).unwrap();
    for name in ["img.ptl", "img_fb.ptl"] {
        let path = folder.path().join(name);
        fs::write(&path, crate::model(name)).unwrap();
        let put = |text: &[u8], options| {
            let mut editor = Editor::open_with(&path, options).unwrap();
            editor.set(SPEC, text.to_vec()).unwrap();
            editor.commit().map(|edited| assert!(edited.has_changed()))
        };
        for (text, message) in [
            (&b"{"[..], "spec would be faulty: spec is malformed: "),
            (&misfit, "spec would be faulty: pack makes a tuple of 3, but forward takes Tensor"),
        ] {
            let refused = put(text, WriteOptions::default()).unwrap_err();
            assert!(matches!(refused, Error::Faulty { .. }));
            assert!(refused.to_string().starts_with(message), "{refused}");
            assert!(fs::read(&path).unwrap() == crate::model(name));
        }
        put(&misfit, WriteOptions::default().allow_invalid()).unwrap();
        let again = [&misfit[..], b" "].concat();
        put(&again, WriteOptions::default()).unwrap();
    }
}

//! What the writers must reproduce is sound, and reads as they were told.

use nnpackage::{IoRef, Reader, model_archive::Method, tensor_core::Severity};
use test_support::{files, testdata};

fn golden(name: &str) -> Reader {
    Reader::open(testdata("nnpackage/golden").join(name)).unwrap()
}

#[test]
fn golden_files_are_sound() {
    for path in files("nnpackage/golden", "zip") {
        let report = Reader::open(&path).unwrap().validate();
        let errors = report.findings().iter().filter(|found| found.severity == Severity::Error);
        // What was edited and merged is wired as far as that shows something.
        let errors: Vec<_> = errors
            .filter(|found| {
                !["nnp/input-unfed", "nnp/no-outputs", "nnp/edge-shape"].contains(&&*found.rule)
            })
            .collect();
        assert!(errors.is_empty(), "{path:?}: {errors:?}");
    }
}

#[test]
fn one_package_in_every_layout() {
    let [a, b] = ["everything.zip", "stored.zip"].map(golden);
    assert_eq!(a.manifest(), b.manifest());
    for (a, b) in a.files().unwrap().zip(b.files().unwrap()) {
        assert_eq!((a.path(), a.bytes().unwrap()), (b.path(), b.bytes().unwrap()));
    }
    assert!(b.archive().unwrap().entries().all(|entry| entry.info().method == Method::Stored));
    for (reader, alignment) in [(a, 64), (b, 16), (golden("minimal.zip"), 4096)] {
        for model in reader.models() {
            let extent = model.file().extent().unwrap().unwrap();
            assert!(extent.is_aligned(alignment), "{} {extent:?}", model.path());
        }
    }
}

#[test]
fn edited_package_is_what_was_asked_for() {
    let reader = golden("edited.zip");
    let manifest = reader.manifest();
    assert_eq!(manifest.models, ["mymodel.model", "yourmodel.model", "more/add.circle"]);
    assert_eq!(manifest.model_types.as_ref().unwrap(), &["circle", "circle", "circle"]);
    let edges: Vec<_> = manifest.edges().collect();
    assert_eq!(edges, [(IoRef::new(0, 0, 0), IoRef::new(2, 0, 0))]);
    assert_eq!(manifest.version.to_string(), "1.3.0");
    assert_eq!(reader.config_path().as_deref(), Some("metadata/config.cfg"));
    assert!(reader.sums().unwrap().is_some());
}

#[test]
fn merged_package_has_all_models() {
    let reader = golden("merged.zip");
    let models = ["mymodel.model", "m0.circle", "m1.circle", "again/m0.circle", "again/m1.circle"];
    assert_eq!(reader.manifest().models, models);
    assert_eq!(reader.manifest().edges().count(), 3);
    assert_eq!(reader.config_path().as_deref(), Some("metadata/model.cfg"));
}

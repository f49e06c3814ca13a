//! Cuts, changes, names and sizes that lie: nothing but errors comes of them.

use std::fs;

use nnpackage::{Reader, extract, tensor_core::Limits};
use test_support::{files, testdata, truncations, zip::Zip};

use crate::nnpackage_read;

#[test]
fn every_truncation_of_a_package() {
    for path in files("nnpackage/valid", "zip") {
        let bytes = fs::read(&path).unwrap();
        truncations(&bytes, |cut| {
            nnpackage_read::run(cut);
            Reader::from_bytes(cut.to_vec()).expect_err("an archive without its end must not open");
        });
    }
}

#[test]
fn changed_packages_break_nothing() {
    let path = testdata("nnpackage/valid/01_minimal_circle_stored.zip");
    some_mutations(&fs::read(path).unwrap(), nnpackage_read::run);
}

#[test]
fn changed_documents_break_nothing() {
    for path in ["config_writes/metadata/model.cfg", "wiring_loop/metadata/MANIFEST"] {
        let bytes = fs::read(testdata("nnpackage/invalid").join(path)).unwrap();
        some_mutations(&bytes, nnpackage_read::run);
    }
}

/// Changes a few thousand places: the files are long, and most of them zeros.
fn some_mutations(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    let mut changed = bytes.to_vec();
    for at in (0..bytes.len()).step_by(bytes.len().div_ceil(1000)) {
        check(&bytes[..at]);
        for new in [bytes[at] ^ 1, 0xff] {
            changed[at] = new;
            check(&changed);
        }
        changed[at] = bytes[at];
    }
}

#[test]
fn changed_kernels_break_nothing() {
    let reader = Reader::open(testdata("nnpackage/valid/05_three_types_custom_op.zip")).unwrap();
    for kernel in reader.custom_ops().unwrap() {
        let bytes = kernel.file().bytes().unwrap();
        some_mutations(&bytes, |changed| drop(nnpackage::Library::parse(changed)));
    }
}

/// Golden data of one package, changed.
#[test]
fn changed_golden_data_break_nothing() {
    let reader = Reader::open(testdata("nnpackage/valid/03_two_models_connected.zip")).unwrap();
    let bytes = reader.golden_input().unwrap().file().bytes().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("metadata/tc")).unwrap();
    fs::write(folder.path().join("metadata/MANIFEST"), "{\"models\": [\"m\"]}").unwrap();
    let reader = Reader::open(folder.path()).unwrap();
    some_mutations(&bytes, |changed| {
        fs::write(folder.path().join("metadata/tc/input.h5"), changed).unwrap();
        drop(reader.golden_input().unwrap().values());
    });
}

/// A package that is nothing but its manifest and a model.
fn package() -> Zip {
    let reader = Reader::open(testdata("nnpackage/valid/01_minimal_circle_stored.zip")).unwrap();
    let read = |path| reader.file(path).unwrap().bytes().unwrap();
    Zip::of(&[
        ("metadata/MANIFEST", &read("metadata/MANIFEST")),
        ("add.circle", &read("add.circle")),
        ("note.txt", b"x"),
    ])
}

#[test]
fn names_that_lead_out() {
    for name in [
        "../evil",
        "/evil",
        "a/../../evil",
        "C:\\evil",
        "\\\\h\\s",
        "a\\..\\b",
        "./evil",
        "a//b",
        "a/..",
        "evil\0.txt",
        "c:evil",
    ] {
        let mut zip = package();
        zip.entries[2].local.name = name.into();
        zip.entries[2].central.name = name.into();
        let error = Reader::from_bytes(zip.to_bytes()).unwrap_err();
        assert_eq!(error.rule(), "zip/name", "{name:?}: {error}");
    }
}

#[test]
fn extracted_packages_are_what_was_packed() {
    for path in files("nnpackage/valid", "zip") {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("package");
        let reader = Reader::open(&path).unwrap();
        extract(&reader, &to).unwrap();
        let again = Reader::open(&to).unwrap();
        let paths = |reader: &Reader| -> Vec<String> {
            reader.files().unwrap().map(|file| file.path().to_owned()).collect()
        };
        assert_eq!(paths(&again), paths(&reader));
        for file in reader.files().unwrap() {
            let found = again.file(file.path()).unwrap().bytes().unwrap();
            assert_eq!(found, file.bytes().unwrap(), "{}", file.path());
        }
        assert_eq!(again.forecast(), reader.forecast());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn empty_folders_are_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("package");
    let path = testdata("nnpackage/valid/02_tflite_deflate_config.zip");
    extract(&Reader::open(path).unwrap(), &to).unwrap();
    assert!(to.join("custom_op").is_dir());
}

#[test]
fn broken_packages_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("package");
    let reader = Reader::open(testdata("nnpackage/invalid/zip_crc.zip")).unwrap();
    let error = extract(&reader, &to).unwrap_err();
    assert_eq!(error.rule(), "zip/crc", "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn full_folders_are_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine"), "x").unwrap();
    let reader = Reader::from_bytes(package().to_bytes()).unwrap();
    let error = extract(&reader, folder.path()).unwrap_err();
    assert_eq!(error.rule(), "zip/write", "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::read(folder.path().join("mine")).unwrap(), b"x");
}

#[test]
fn documents_over_the_limit() {
    let mut zip = package();
    let long = format!("{{\"models\": [\"add.circle\"]}}{}", " ".repeat(1 << 20));
    zip.entries[0] = Zip::of(&[("metadata/MANIFEST", long.as_bytes())]).entries[0].clone();
    assert_eq!(
        Reader::from_bytes(zip.to_bytes()).unwrap_err().to_string(),
        "MANIFEST in bytes is 1048602, over the limit of 1048576 (Limits::document_bytes)"
    );
    let limits = Limits::default().with_document_bytes(2 << 20);
    Reader::options().limits(limits).from_bytes(zip.to_bytes()).unwrap();
}

/// One model named very often is opened and checked once.
#[test]
fn one_model_named_very_often() {
    let model = fs::read(testdata("nnpackage/valid/everything.circle")).unwrap();
    let names = vec!["\"m\""; 65_535].join(",");
    let types = vec!["\"circle\""; 65_535].join(",");
    let manifest = format!("{{\"models\": [{names}], \"model-types\": [{types}]}}");
    let zip = Zip::of(&[("metadata/MANIFEST", manifest.as_bytes()), ("m", &model)]);
    let reader = Reader::from_bytes(zip.to_bytes()).unwrap();
    assert!(std::ptr::eq(
        reader.model(0).unwrap().open().unwrap(),
        reader.model(65_534).unwrap().open().unwrap()
    ));
    let rules =
        reader.diagnoses().into_iter().filter(|found| found.finding.rule == "nnp/model-name");
    assert_eq!(rules.count(), 1001);
    let manifest = manifest.replacen("\"m\"", "\"m\",\"m\"", 1);
    let zip = Zip::of(&[("metadata/MANIFEST", manifest.as_bytes()), ("m", &model)]);
    assert_eq!(
        Reader::from_bytes(zip.to_bytes()).unwrap_err().to_string(),
        "MANIFEST line 1 column 1: models is 65536 paths, expected at most 65535"
    );
}

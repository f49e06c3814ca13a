//! What is read, and when.

use std::fs;

use nnpackage::{Reader, tensor_core::Extent};
use test_support::{CountingSource, testdata, zip::Zip};

/// Returns a package and its model, which has a constant behind its tables, and 4 MiB in all.
fn package() -> (Vec<u8>, Vec<u8>) {
    let mut model = fs::read(testdata("nnpackage/invalid/model_external.circle")).unwrap();
    model.resize(4 << 20, 7);
    let manifest = br#"{"models": ["m.circle"], "model-types": ["circle"]}"#;
    let zip = Zip::of(&[("m.circle", &model), ("metadata/MANIFEST", manifest)]);
    (zip.to_bytes(), model)
}

#[test]
fn opening_reads_the_directory_and_the_manifest() {
    let (zip, _) = package();
    let store = CountingSource::new(&zip);
    let reader = Reader::from_source(store.source()).unwrap();
    assert!(store.total() < 200_000, "{}", store.total());
    drop(store.take_reads());
    assert_eq!(reader.models().len(), 1);
    assert_eq!(store.take_reads(), []);
}

#[test]
fn a_stored_model_is_read_up_to_the_end_of_its_tables() {
    let (zip, model) = package();
    let store = CountingSource::new(&zip);
    let reader = Reader::from_source(store.source()).unwrap();
    let before = store.total();
    let opened = reader.model(0).unwrap().open().unwrap();
    assert_eq!(opened.model().subgraphs[0].tensors.len(), 3);
    assert!(store.total() - before < (1 << 20) + 100_000, "{}", store.total() - before);
    drop(store.take_reads());
    drop(reader.diagnoses());
    let read: u64 = store.take_reads().into_iter().map(Extent::len).sum();
    // Local headers, and the bytes behind the tables.
    assert!(read < 4000, "{read} bytes are read to check what is open");
    let constant = opened.tensor("w").unwrap();
    assert_eq!(constant.bytes().unwrap(), model[512..528]);
    let read: u64 = store.take_reads().into_iter().map(Extent::len).sum();
    assert_eq!(read, 16);
}

#[test]
fn constants_in_memory_are_slices_of_it() {
    let (zip, _) = package();
    let bytes = bytes::Bytes::from(zip);
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    let model = reader.model(0).unwrap();
    let constant = model.open().unwrap().tensor("w").unwrap();
    let found = constant.bytes().unwrap();
    assert!(bytes.as_ptr_range().contains(&found.as_ptr()));
    let extent = model.file().extent().unwrap().unwrap();
    let at = (extent.offset() + constant.extent().unwrap().unwrap().offset()) as usize;
    assert!(std::ptr::eq(&*found, &bytes[at..at + 16]));
}

/// Models are opened once, whoever asks.
#[test]
fn models_are_opened_once() {
    let (zip, _) = package();
    let store = CountingSource::new(&zip);
    let reader = Reader::from_source(store.source()).unwrap();
    let first = reader.model(0).unwrap().open().unwrap();
    let second = reader.clone();
    assert!(std::ptr::eq(first, second.model(0).unwrap().open().unwrap()));
}

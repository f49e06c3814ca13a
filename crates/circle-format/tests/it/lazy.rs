//! What is read, and when.

use std::fs;

use circle_format::{
    Reader,
    model::Model,
    tensor_core::{Extent, Limits, Source},
};
use test_support::testdata;

#[test]
fn constants_in_tables_are_slices_too() {
    let bytes = fs::read(testdata("nnpackage/invalid/model_trailing.circle")).unwrap();
    let bytes = bytes::Bytes::from(bytes);
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    let constant = reader.tensor("w").unwrap();
    let (found, extent) = (constant.bytes().unwrap(), constant.extent().unwrap().unwrap());
    let at = extent.offset() as usize;
    assert!(std::ptr::eq(&*found, &bytes[at..at + 16]));
    let mut copy = [1; 16];
    constant.read_into(&mut copy).unwrap();
    assert_eq!(copy, [0; 16]);
    let error = constant.read_into(&mut copy[1..]).unwrap_err();
    assert_eq!(error.to_string(), "constant is 16 bytes long, but the buffer holds 15");
}

#[test]
fn a_model_behind_a_prefix_is_read_where_it_lies() {
    let model = fs::read(testdata("nnpackage/invalid/model_trailing.circle")).unwrap();
    let file = [&b"prefix"[..], &model].concat();
    let source = Source::from_bytes(file);
    let window = source.window(Extent::new(6, model.len() as u64).unwrap(), "model").unwrap();
    let reader = Reader::from_source(window).unwrap();
    assert_eq!(reader.tensor("w").unwrap().bytes().unwrap(), [0; 16][..]);
}

/// Tables reach no further than 2 GiB, but constants stand behind them.
#[test]
#[cfg(target_pointer_width = "64")]
fn files_of_more_than_2_gib() {
    let model = fs::read(testdata("nnpackage/invalid/model_trailing.circle")).unwrap();
    // Zeros that nothing touches take no memory.
    let mut file = vec![0; (1 << 31) + model.len()];
    file[..model.len()].copy_from_slice(&model);
    let file = bytes::Bytes::from(file);
    let reader = Reader::from_bytes(file.clone()).unwrap();
    assert_eq!(reader.source().len(), file.len() as u64);
    assert_eq!(reader.tensor("w").unwrap().bytes().unwrap(), [0; 16][..]);
    let model = Model::parse(file, &Limits::default()).unwrap();
    assert_eq!(&model, reader.model());
}

/// Readers can be shared and outlive what they were opened from.
#[test]
fn readers_are_handles() {
    fn assert_handle<T: Send + Sync + Clone + 'static>() {}
    assert_handle::<Reader>();
}

//! What is read of a file of 500 MB, and when.

use std::{
    fs::{self, File},
    io::Write as _,
    sync::atomic::Ordering::Relaxed,
};

use ptl_spec::{Editor, Reader, Tensor};
use test_support::CountingSource;

use crate::model;

const BIG: u64 = 500_000_000;

/// Returns the beginning of a FlatBuffer whose first storage, of so many bytes, is all behind it.
fn flat_with_a_big_storage(len: u64) -> Vec<u8> {
    let mut file = model("img_fb.ptl");
    let reader = Reader::from_bytes(file.clone()).unwrap();
    let tensor = reader.tensors().unwrap().next().unwrap();
    let vector = tensor.storage_extent().unwrap().unwrap().offset() as usize - 4;
    let leads_there = |at: &usize| {
        let offset = file[*at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        offset.is_some_and(|offset| at + offset as usize == vector)
    };
    let field = (0..vector).find(leads_there).unwrap();
    // The data, behind its length, starts at a multiple of 32.
    file.resize((file.len() + 4).next_multiple_of(32) - 4, 0);
    let offset = u32::try_from(file.len() - field).unwrap();
    file[field..field + 4].copy_from_slice(&offset.to_le_bytes());
    file.extend(u32::try_from(len).unwrap().to_le_bytes());
    file
}

#[test]
fn listing_a_big_flatbuffer() {
    let head = flat_with_a_big_storage(BIG);
    let store = CountingSource::with_zeros(&head, BIG);
    let reader = Reader::from_source(store.source()).unwrap();
    assert!(reader.spec().unwrap().is_some());
    assert_eq!(reader.bytecode().unwrap().methods.len(), 1);
    let names: Vec<&str> = reader.tensors().unwrap().map(Tensor::name).collect();
    assert_eq!(names, ["conv_weight", "conv_bias", "fc_weight", "fc_bias"]);
    // Each of these looks at what it needs, in pages of 4 KiB.
    assert!(store.total() < 64 << 10, "{}", store.total());
    let before = store.total();
    let tensor = reader.tensor("conv_weight").unwrap().unwrap();
    assert_eq!(tensor.storage_extent().unwrap().unwrap().len(), BIG);
    tensor.extent().unwrap();
    assert!(store.total() - before < 64 << 10);
    assert!(!reader.lint().findings().iter().any(|finding| finding.rule == "ptl/tensor"));
    assert!(store.total() < 1 << 20, "{}", store.total());
    let done = std::sync::atomic::AtomicU64::new(0);
    let report = reader.validate_with(|len| _ = done.fetch_add(len, Relaxed));
    assert!(!report.findings().iter().any(|finding| finding.rule == "ptl/tensor"));
    assert_eq!(done.into_inner(), head.len() as u64 + BIG);
    assert!(store.total() > BIG, "{}", store.total());
}

/// An edited FlatBuffer is another file, with the storage where it was against its alignment.
#[test]
fn editing_a_big_flatbuffer() {
    const LEN: u64 = 20_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big.ptl");
    let head = flat_with_a_big_storage(LEN);
    let mut file = File::create(&path).unwrap();
    file.write_all(&head).unwrap();
    file.set_len(head.len() as u64 + LEN).unwrap();
    for text in ["1", "2"] {
        let mut editor = Editor::open(&path).unwrap();
        editor.set("notes", text).unwrap();
        editor.set("labels.txt", "a").unwrap();
        editor.commit().unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.extra_file("notes").unwrap().bytes().unwrap(), text);
        assert_eq!(reader.extra_files().count(), 3);
    }
    let len = fs::metadata(&path).unwrap().len();
    assert!(len < head.len() as u64 + LEN + 200, "{len}");
    let reader = Reader::open(&path).unwrap();
    let extent = reader.tensor("conv_weight").unwrap().unwrap().storage_extent().unwrap().unwrap();
    assert!(extent.len() == LEN && extent.is_aligned(32), "{extent:?}");
}

#[test]
fn a_tensor_reads_its_storage() {
    for name in ["img.ptl", "img_fb.ptl"] {
        let store = CountingSource::new(&model(name));
        let reader = Reader::from_source(store.source()).unwrap();
        let tensor = reader.tensor("fc_weight").unwrap().unwrap();
        let extent = tensor.storage_extent().unwrap().unwrap();
        drop(store.take_reads());
        tensor.bytes().unwrap();
        let reads = store.take_reads();
        assert!(reads.iter().any(|read| read.overlaps(extent)), "{name}: {reads:?}");
        // Besides, the tables that lead there.
        let total: u64 = reads.iter().map(|read| read.len()).sum();
        assert!(total < extent.len() + (16 << 10), "{name}: {reads:?}");
    }
}

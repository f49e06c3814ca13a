//! What is read of a file, and when.

use model_archive::Archive;
use tensor_core::{Extent, Profile};
use test_support::{
    CountingSource, noise,
    zip::{Entry, Zip, Zip64End},
};

/// The entries of the tests: a large file between small ones.
fn archive() -> (Zip, Vec<u8>) {
    let large: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let zip = Zip::of(&[("a", b"first"), ("large", &large), ("z", b"last")]);
    (zip, large)
}

#[test]
fn opening_reads_the_end_once() {
    let (mut zip, _) = archive();
    for zip64 in [None, Some(Zip64End::default())] {
        zip.zip64 = zip64;
        let counting = CountingSource::new(&zip.to_bytes());
        let source = counting.source();
        Archive::from_source(source.clone()).unwrap();
        // The last 65,557 bytes are where an end record can start; the directory is among them.
        let end = Extent::between(source.len() - 65_557, source.len());
        assert_eq!(counting.take_reads(), [end]);
    }
}

#[test]
fn opening_reads_a_long_directory_once() {
    let names: Vec<String> = (0..10_000).map(|at| format!("tensors/{at:05}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b"data"[..])).collect();
    let zip = Zip::of(&files);
    let counting = CountingSource::new(&zip.to_bytes());
    let source = counting.source();
    Archive::from_source(source.clone()).unwrap();
    let reads = counting.take_reads();
    let directory = Extent::between(zip.directory_offset() as u64, source.len());
    assert_eq!(reads.last(), Some(&directory));
    assert_eq!(reads.len(), 2, "{reads:?}");
}

#[test]
fn a_small_entry_is_read_with_its_header() {
    let (zip, _) = archive();
    let counting = CountingSource::new(&zip.to_bytes());
    for profile in [Profile::Strict, Profile::Lenient] {
        let archive = Archive::options().profile(profile).from_source(counting.source()).unwrap();
        let (header, data) = (zip.header_offset(2) as u64, zip.data_offset(2) as u64);
        let _ = counting.take_reads();
        let entry = archive.entry("z").unwrap();
        assert_eq!((entry.name(), entry.info().size), ("z", 4));
        assert!(archive.entry("y").is_none() && archive.entries().len() == 3);
        assert_eq!(counting.take_reads(), [], "handles read nothing");
        entry.extent().unwrap();
        let local = Extent::between(header, data + 4);
        assert_eq!(counting.take_reads(), [local], "the header, as far as there is room for it");
        let content = entry.bytes().unwrap();
        assert_eq!(content, b"last"[..]);
        assert_eq!(content.as_ptr().align_offset(64), 0);
        entry.read_into(&mut [0; 4]).unwrap();
        entry.verify().unwrap();
        assert_eq!(counting.take_reads(), [local; 3]);
    }
}

#[test]
fn a_large_entry_is_not_read_with_its_header() {
    let (zip, large) = archive();
    let counting = CountingSource::new(&zip.to_bytes());
    let archive = Archive::from_source(counting.source()).unwrap();
    let (header, data) = (zip.header_offset(1) as u64, zip.data_offset(1) as u64);
    let _ = counting.take_reads();
    let entry = archive.entry("large").unwrap();
    entry.extent().unwrap();
    let reads = counting.take_reads();
    // Name and 128 bytes for extra fields are guessed.
    assert_eq!(reads, [Extent::between(header, header + 30 + 5 + 128)]);
    entry.bytes().unwrap();
    assert_eq!(counting.take_reads()[1..], [Extent::between(data, data + large.len() as u64)]);
}

#[test]
fn long_extra_fields_are_read_with_a_second_call() {
    let mut zip = archive().0;
    zip.entries[0].local.extra = test_support::zip::extra(0xd935, &[0; 4000]);
    let counting = CountingSource::new(&zip.to_bytes());
    let archive = Archive::from_source(counting.source()).unwrap();
    let _ = counting.take_reads();
    assert_eq!(archive.entry("a").unwrap().bytes().unwrap(), b"first"[..]);
    let reads = counting.take_reads();
    assert_eq!(reads[1], Extent::between(0, 30 + 1 + 4004));
    assert_eq!(reads[2], Extent::between(4035, 4040));
}

#[test]
fn checking_reads_headers_and_no_content() {
    let (mut zip, _) = archive();
    zip.entries[2] = zip.entries[2].clone().described();
    let counting = CountingSource::new(&zip.to_bytes());
    let archive = Archive::from_source(counting.source()).unwrap();
    let _ = counting.take_reads();
    assert!(archive.lint().is_empty());
    let reads = counting.take_reads();
    assert_eq!(reads.len(), 4, "three headers and a descriptor: {reads:?}");
    assert!(reads.iter().map(|extent| extent.len()).sum::<u64>() < 500);
}

#[test]
fn stored_content_in_memory_is_a_slice() {
    let (zip, large) = archive();
    let bytes = bytes::Bytes::from(zip.to_bytes());
    let archive = Archive::from_bytes(bytes.clone()).unwrap();
    let found = archive.entry("large").unwrap().bytes().unwrap();
    assert_eq!(found, large);
    assert_eq!(found.as_ptr(), bytes[zip.data_offset(1)..].as_ptr());
    drop((archive, bytes));
    assert_eq!(found, large, "what was handed out lives on");
}

#[test]
fn decoded_content_is_read_in_pieces() {
    if !cfg!(feature = "deflate") {
        return;
    }
    let content = noise(2 << 20);
    let entry = Entry::coded("a", &content, 8, crate::deflated(&content));
    let zip = Zip { entries: vec![entry], ..Zip::default() };
    let counting = CountingSource::new(&zip.to_bytes());
    let archive = Archive::from_source(counting.source()).unwrap();
    let _ = counting.take_reads();
    archive.entry("a").unwrap().verify().unwrap();
    let longest = counting.take_reads().iter().map(|extent| extent.len()).max();
    assert_eq!(longest, Some(256 << 10));
}

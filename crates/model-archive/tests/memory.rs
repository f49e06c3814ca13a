//! Claims of an archive do not take memory: the allocator of this program counts. What libzstd
//! takes for itself is not seen here.

use std::{
    io::{Read as _, Write as _},
    num::NonZeroUsize,
};

use model_archive::Archive;
use tensor_core::{Profile, Source};
use test_support::{
    memory::{Counting, measure},
    zip::{self, Entry, Zip, Zip64End},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Opens, checks and reads everything in every way, on this thread.
fn read(source: &Source) {
    let options = Archive::options().threads(NonZeroUsize::MIN);
    for profile in [Profile::Strict, Profile::Lenient] {
        let Ok(archive) = options.profile(profile).from_source(source.clone()) else { continue };
        let _ = archive.validate();
        for entry in archive.entries() {
            let _ = entry.verify();
            let _ = entry.bytes();
            let _ = entry.checked_bytes();
            if let Ok(mut reader) = entry.reader() {
                let _ = std::io::copy(&mut reader.by_ref().take(1 << 30), &mut std::io::sink());
            }
        }
    }
}

#[track_caller]
fn takes_little(zip: &Zip) {
    let bytes = zip.to_bytes();
    let len = bytes.len();
    let source = Source::from_bytes(bytes);
    let peak = measure(|| read(&source)).bytes;
    assert!(peak < 4 << 20, "{peak} bytes for an archive of {len}");
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn of_each_method(content: &[u8]) -> [Entry; 3] {
    [
        Entry::stored("a", content),
        Entry::coded("a", content, 8, deflated(content)),
        Entry::coded("a", content, 93, zstd::encode_all(content, 3).unwrap()),
    ]
}

#[test]
fn sizes_of_4_gib() {
    for entry in of_each_method(b"hello") {
        let huge = entry.clone().both(|header| header.size = u32::MAX - 1);
        takes_little(&Zip { entries: vec![huge], ..Zip::default() });
        let huge = entry.clone().both(|header| {
            (header.size, header.stored_size) = (u32::MAX - 1, u32::MAX - 1);
        });
        takes_little(&Zip { entries: vec![huge], ..Zip::default() });
    }
}

#[test]
fn sizes_of_8_exbibytes() {
    for entry in of_each_method(b"hello") {
        for size in [1_u64 << 33, 1 << 63, u64::MAX - 1, u64::MAX] {
            let mut entry = entry.clone();
            entry.central.size = u32::MAX;
            entry.central.extra = zip::extra(1, &size.to_le_bytes());
            takes_little(&Zip { entries: vec![entry], ..Zip::default() });
        }
    }
}

#[test]
fn counts_of_entries() {
    for entries in [65_534, 65_535, 1 << 20, 1 << 40, u64::MAX] {
        for bytes in [None, Some(46 * 1_000_000), Some(u64::MAX)] {
            // A file long enough that the parser believes the count.
            let mut zip = Zip::of(&[("a", &[0; 200_000])]);
            zip.zip64 = Some(Zip64End {
                entries: Some(entries),
                directory_bytes: bytes,
                ..Zip64End::default()
            });
            zip.end.entries = Some(u16::MAX);
            takes_little(&zip);
            zip.zip64 = None;
            zip.end.entries = Some(entries as u16);
            zip.end.directory_bytes = bytes.map(|bytes| bytes as u32);
            takes_little(&zip);
        }
    }
}

#[test]
fn names_and_extra_fields_of_64_kib() {
    let mut zip = Zip::of(&[("a", b"hello")]);
    zip.entries[0].central.name_len = Some(u16::MAX);
    zip.entries[0].central.extra_len = Some(u16::MAX);
    zip.entries[0].local.name_len = Some(u16::MAX);
    zip.entries[0].local.extra_len = Some(u16::MAX);
    takes_little(&zip);
}

/// A zstd frame that says 128 MiB, as its window and as its content.
#[test]
fn windows_and_contents_of_frames() {
    let content = vec![7; 200_000];
    let mut data = zstd::encode_all(&content[..], 3).unwrap();
    data[5] = 17 << 3;
    takes_little(&Zip { entries: vec![Entry::coded("a", &content, 93, data)], ..Zip::default() });
    // Single segment, content of 8 bytes: 2^27.
    let mut data = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    data.extend((1_u64 << 27).to_le_bytes());
    data.extend([0x01, 0, 0]);
    takes_little(&Zip { entries: vec![Entry::coded("a", b"", 93, data)], ..Zip::default() });
}

#[cfg(all(feature = "deflate", feature = "zstd"))]
#[test]
fn zeros_that_were_compressed() {
    let zeros = vec![0; 64 << 20];
    for entry in of_each_method(&zeros).into_iter().skip(1) {
        // Streamed, it takes what any stream takes.
        let zip = Zip { entries: vec![entry.clone()], ..Zip::default() };
        let archive = Archive::from_bytes(zip.to_bytes()).unwrap();
        let taken = measure(|| archive.entry("a").unwrap().verify());
        taken.result.unwrap();
        assert!(taken.bytes < 1 << 20);
        // With a size that lies, it is not decoded.
        takes_little(&Zip { entries: vec![entry.both(|h| h.size = 1 << 20)], ..Zip::default() });
    }
}

/// A directory is kept in few times its size.
#[test]
fn directories_of_many_entries() {
    let names: Vec<String> = (0..20_000).map(|at| format!("tensors/{at:05}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
    let zip = Zip::of(&files);
    let bytes = zip.to_bytes();
    let directory = bytes.len() - zip.directory_offset();
    let source = Source::from_bytes(bytes);
    let taken = measure(|| Archive::from_source(source).unwrap());
    let (kept, peak) = (taken.kept, taken.bytes);
    assert!(kept < 4 * directory as u64, "{kept} bytes for a directory of {directory}");
    assert!(peak < 12 * directory as u64, "{peak} bytes for a directory of {directory}");
}

//! What the fuzz target `archive_read` does with its input; a test of the crate replays the corpus.

use model_archive::{Archive, ArchiveWriter, Entry, Kind, Layout, ReadOptions, Storage, Symlinks};
use tensor_core::{Limits, Profile, Source};

/// Opens, checks and reads any bytes as an archive: nothing but errors may come of it, and what the
/// strict profile reads, the lenient one reads alike.
pub(crate) fn run(bytes: &[u8]) {
    let source = Source::from_bytes(bytes.to_vec());
    let limits = Limits::default()
        .with_entries(1 << 10)
        .with_directory_bytes(1 << 20)
        .with_decoded_bytes(1 << 20)
        .with_expansion(1)
        .with_zstd_window_log(20);
    let options = Archive::options().limits(limits).symlinks(Symlinks::Kept);
    let strict = options.profile(Profile::Strict).from_source(source.clone());
    let lenient = options.profile(Profile::Lenient).from_source(source);
    for archive in [&strict, &lenient].into_iter().flatten() {
        assert!(Archive::sniff(archive.source()).is_ok_and(|is_archive| is_archive));
        let within = archive.check_total().is_ok();
        for entry in archive.entries() {
            assert!(archive.entry(entry.name()).is_some());
            read(entry, within);
        }
        let (lint, report) = (archive.lint(), archive.validate());
        assert!(lint.is_valid() || !report.is_valid());
        if report.is_valid() && report.omitted() == 0 {
            assert!(archive.entries().all(|entry| entry.verify().is_ok()));
        }
        let storage = Storage::from(archive.clone());
        for path in storage.paths().expect("those of an archive are known") {
            assert!(storage.has(&path));
        }
    }
    if let Ok(lenient) = &lenient {
        append(bytes, lenient, options.profile(Profile::Lenient));
        let again = lenient.with_options(options.profile(Profile::Strict));
        assert_eq!(again.is_ok(), strict.is_ok());
    }
    if let Ok(strict) = strict {
        let lenient = lenient.expect("what is strict is lenient");
        assert_eq!(strict.entries().len(), lenient.entries().len());
        for (a, b) in strict.entries().zip(lenient.entries()) {
            assert_eq!((a.name(), a.info()), (b.name(), b.info()));
            if let Ok(content) = a.checked_bytes() {
                assert!(b.checked_bytes().is_ok_and(|other| other == content));
            }
        }
    }
}

/// An archive with a tail has what it had; without the end of the tail something whole is left.
fn append(bytes: &[u8], archive: &Archive, options: ReadOptions) {
    let tail = ArchiveWriter::behind_archive(Vec::new(), archive, Layout::PyTorch, |_| true);
    let Ok(tail) = tail else { return assert!(archive.shift() > 0) };
    let tail = tail.finish().expect("memory takes all");
    let all = [bytes, &tail].concat();
    let changed = options.from_bytes(all.clone()).expect("what is listed is what was");
    assert!(changed.entries().map(Entry::name).eq(archive.entries().map(Entry::name)));
    let cut = Source::from_bytes(all[..all.len() - 1].to_vec());
    let is_whole = |source: &Source| options.from_source(source.clone()).is_ok();
    // A comment can hold an end that fits once something stands behind it.
    let len = Archive::recoverable_len(&cut, is_whole).expect("what was there is there");
    assert!(len <= cut.len());
}

fn read(entry: Entry<'_>, within: bool) {
    let _ = entry.extent();
    let _ = entry.target();
    if let Ok(found) = entry.resolve() {
        assert_ne!(found.info().kind, Kind::Symlink);
    }
    let plain = entry.bytes();
    let checked = entry.checked_bytes();
    if let Ok(checked) = &checked {
        assert_eq!(checked.len() as u64, entry.info().size);
        assert!(plain.is_ok_and(|plain| plain == checked));
        let mut copy = vec![0; checked.len()];
        entry.read_into(&mut copy).expect("what is read once is read again");
        assert!(copy == *checked);
    }
    if within && entry.info().kind != Kind::Folder && entry.info().size <= 1 << 20 {
        assert_eq!(entry.verify().is_ok(), checked.is_ok());
    }
}

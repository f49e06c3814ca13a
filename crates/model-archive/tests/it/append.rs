//! Archives that are changed in place, and the layout of PyTorch.

use std::{fs, io};

use model_archive::{
    Archive, ArchiveWriter, Compression, Entry, EntryOptions, Error, Layout, Method, Raw,
};
use tensor_core::{
    Extent, Profile, Source,
    output::{Append, Durability},
};
use test_support::{CountingSource, Recorded, assert_bytes, testdata};

const PLAIN: fn() -> EntryOptions = EntryOptions::default;

fn lenient(bytes: &[u8]) -> Archive {
    let source = Source::from_bytes(bytes.to_vec());
    Archive::options().profile(Profile::Lenient).from_source(source).unwrap()
}

fn archive(layout: Layout) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new()).layout(layout);
    for (name, content) in [("m/a", "first"), ("m/b", "second"), ("m/empty", "")] {
        writer.add(name, content.as_bytes(), &PLAIN()).unwrap();
    }
    writer.finish().unwrap()
}

fn contents(archive: &Archive) -> Vec<(String, String)> {
    let text = |entry: Entry<'_>| {
        let content = entry.checked_bytes().unwrap();
        (entry.name().to_owned(), String::from_utf8(content.to_vec()).unwrap())
    };
    archive.entries().map(text).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, content)| (name.to_owned(), content.to_owned())).into()
}

#[test]
fn entries_are_replaced_added_and_taken_out() {
    for layout in [Layout::Plain, Layout::PyTorch] {
        let mut bytes = archive(layout);
        let before = bytes.clone();
        let old = lenient(&bytes);
        let keep = |entry: Entry<'_>| entry.name() == "m/b";
        let mut tail = ArchiveWriter::behind_archive(Vec::new(), &old, layout, keep).unwrap();
        assert!(tail.contains("m/b") && !tail.contains("m/a"));
        tail.add("m/b", b"", &PLAIN()).unwrap_err();
        tail.add("m/b/c", b"", &PLAIN()).unwrap_err();
        let written = tail.add("m/a", b"third", &PLAIN().alignment(64)).unwrap();
        assert_eq!(written.data_offset % 64, 0);
        assert!(written.data_offset > before.len() as u64);
        tail.add("m/new", b"fourth", &PLAIN()).unwrap();
        bytes.extend(tail.finish().unwrap());
        assert_bytes(&bytes[..before.len()], &before, "what was there");
        let new = lenient(&bytes);
        assert_eq!(
            contents(&new),
            pairs([("m/b", "second"), ("m/a", "third"), ("m/new", "fourth")])
        );
        let mut read = zip::ZipArchive::new(io::Cursor::new(&bytes)).unwrap();
        let content = io::read_to_string(read.by_name("m/a").unwrap()).unwrap();
        assert_eq!((read.len(), &*content), (3, "third"));
        // What was cut off in the middle of the tail is found.
        for len in before.len()..bytes.len() {
            let source = Source::from_bytes(bytes[..len].to_vec());
            let is_whole = |source: &Source| {
                Archive::options().profile(Profile::Lenient).from_source(source.clone()).is_ok()
            };
            assert_eq!(
                Archive::recoverable_len(&source, is_whole).unwrap(),
                before.len() as u64,
                "{len}"
            );
        }
    }
}

#[test]
fn comments_stay() {
    let mut bytes = archive(Layout::Plain);
    let len = bytes.len();
    bytes[len - 2] = 4;
    bytes.extend(b"note");
    let old = lenient(&bytes);
    let tail = ArchiveWriter::behind_archive(Vec::new(), &old, Layout::Plain, |_| true).unwrap();
    bytes.extend(tail.finish().unwrap());
    assert!(bytes.ends_with(b"\x04\0note"));
    assert_eq!(contents(&lenient(&bytes)), contents(&old));
}

#[test]
fn archives_behind_other_bytes() {
    let bytes = [b"program".as_slice(), &archive(Layout::Plain)].concat();
    let archive = lenient(&bytes);
    assert_eq!(archive.shift(), 7);
    let result = ArchiveWriter::behind_archive(Vec::new(), &archive, Layout::Plain, |_| true);
    assert_eq!(
        result.unwrap_err().to_string(),
        "archive at byte 0: 7 bytes stand before the archive"
    );
}

#[test]
fn no_whole_archive() {
    let never = |_: &Source| false;
    let error =
        |bytes: Vec<u8>| Archive::recoverable_len(&Source::from_bytes(bytes), never).unwrap_err();
    for bytes in [Vec::new(), vec![0; 5000], archive(Layout::Plain)] {
        assert_eq!(error(bytes).to_string(), "there is no whole ZIP file in it");
    }
}

#[test]
fn the_search_for_a_whole_archive_is_bounded() {
    let many = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".repeat(10_000);
    let store = CountingSource::new(&many);
    let reads_all = |source: &Source| {
        let _ = source.read(Extent::first(source.len()), "all");
        false
    };
    let error = Archive::recoverable_len(&store.source(), reads_all).unwrap_err();
    assert!(matches!(error, Error::NotWhole { .. }));
    assert_eq!(error.to_string(), "it has too many ends of ZIP files in it");
    assert!(store.total() <= 3 * many.len() as u64 + (64 << 20), "{}", store.total());
}

#[test]
fn appended_behind_a_copy_of_the_end() {
    for layout in [Layout::Plain, Layout::PyTorch] {
        let before = archive(layout);
        let old = lenient(&before);
        let file = Recorded::new(&before);
        let end = old.clone();
        let old_end = move |offset| end.directory_at(offset).map_err(io::Error::other);
        let len = before.len() as u64;
        let sink = Append::new(Some(file.clone()), len, Durability::Synced, old_end);
        let mut tail =
            ArchiveWriter::behind_archive(sink, &old, layout, |entry| entry.name() != "m/a")
                .unwrap();
        tail.add("m/a", &vec![b'x'; 9 << 20], &PLAIN()).unwrap();
        tail.finish().unwrap().commit().unwrap();
        let states = file.states();
        assert!(states.len() > 5, "{} writes", states.len());
        let (last, others) = states.split_last().unwrap();
        for state in others {
            assert_eq!(contents(&lenient(state)), contents(&old));
        }
        let new = lenient(last);
        assert_eq!(new.entry("m/a").unwrap().info().size, 9 << 20);
        assert!(last.starts_with(&before));
    }
}

/// What PyTorch wrote is written again with the same bytes.
#[test]
fn layout_of_pytorch() {
    let mut written = 0;
    for file in fs::read_dir(testdata("ptl/valid/torch251")).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        if path.extension().is_none_or(|name| name != "ptl") || !bytes.starts_with(b"PK") {
            continue;
        }
        let archive = lenient(&bytes);
        let mut writer = ArchiveWriter::new(Vec::new()).layout(Layout::PyTorch);
        for entry in archive.entries_by_offset() {
            let stored = entry.stored_reader().unwrap();
            writer.copy_raw(entry.name(), Raw::from(entry.info()), 1, stored).unwrap();
        }
        assert_bytes(&writer.finish().unwrap(), &bytes, &path.display().to_string());
        written += 1;
    }
    assert!(written > 3, "{written}");
}

#[test]
fn what_the_layout_of_pytorch_does_not_have() {
    let mut writer = ArchiveWriter::new(Vec::new()).layout(Layout::PyTorch);
    let message = |error: Error| error.to_string();
    assert_eq!(
        writer.add_symlink("m/a", "b").map_err(message).unwrap_err(),
        r#"entry "m/a" cannot be written: the layout of PyTorch has no symbolic links"#
    );
    assert_eq!(
        writer.stream("m/a", &PLAIN()).map(drop).map_err(message).unwrap_err(),
        r#"entry "m/a" cannot be written: the layout of PyTorch has no streams"#
    );
    // Names of other writers may be those of devices.
    writer.add("m/aux.py", b"x", &PLAIN()).unwrap();
    if cfg!(feature = "deflate") {
        let deflate = PLAIN().compression(Compression::Deflate { level: 6 });
        let written = writer.add("m/long", &[0; 5000], &deflate).unwrap();
        assert_eq!((written.method, written.data_offset % 64), (Method::Deflate, 0));
        // No content, which takes two bytes when it is compressed.
        let written = writer.add("m/none", b"", &deflate).unwrap();
        assert_eq!((written.size, written.stored_size), (0, 2));
    }
    let archive = lenient(&writer.finish().unwrap());
    assert!(archive.entries().all(|entry| entry.verify().is_ok()));
    let report = archive.validate();
    assert!(report.findings().iter().all(|f| f.rule == "zip/unportable-name"), "{report:?}");
}

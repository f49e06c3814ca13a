//! Archives that were cut or changed anywhere, and what may be said of those that still read.

use std::io::{Cursor, Read as _};

use model_archive::{Archive, Kind};
use tensor_core::{Profile, Source};
use test_support::{
    mutations, truncations,
    zip::{Entry, Zip, Zip64End},
};

/// Names and contents, in the order of the directory.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Reads all of an archive in every way; `None` where anything is refused.
fn read(bytes: &[u8], profile: Profile) -> Option<Files> {
    let source = Source::from_bytes(bytes.to_vec());
    let archive = Archive::options().profile(profile).from_source(source).ok()?;
    let report = archive.lint();
    let files = archive.entries().map(|entry| {
        let content = content(entry)?;
        if entry.info().kind == Kind::File {
            let mut copy = vec![0; content.len()];
            entry.read_into(&mut copy).unwrap();
            assert!(entry.verify().is_ok() && copy == content);
        }
        Some((entry.name().to_owned(), content))
    });
    let files = files.collect::<Option<Files>>()?;
    (profile == Profile::Lenient || report.is_valid()).then_some(files)
}

pub(crate) fn content(entry: model_archive::Entry<'_>) -> Option<Vec<u8>> {
    match entry.info().kind {
        Kind::Folder => entry.verify().ok().map(|()| Vec::new()),
        _ => entry.checked_bytes().ok().map(Vec::from),
    }
}

/// Reads all of an archive with the parser's own reader, which tolerates more than we do.
pub(crate) fn read_by_zip(bytes: &[u8]) -> Option<Files> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).ok()?;
    let files = (0..archive.len()).map(|index| {
        let mut entry = archive.by_index(index).ok()?;
        let mut content = Vec::new();
        entry.read_to_end(&mut content).ok()?;
        Some((entry.name().ok()?.into_owned(), content))
    });
    files.collect()
}

fn archives() -> Vec<(&'static str, Zip)> {
    let content = b"hello, hello, hello";
    let deflated = Entry::coded("d", content, 8, crate::deflated(content));
    let frames = [&content[..5], &content[5..]].map(|part| zstd::encode_all(part, 3).unwrap());
    let frames = Entry::coded("z", content, 93, frames.concat());
    let stored = Zip::of(&[("a/x", b"hello"), ("b", b""), ("c/", b"")]);
    let with = |entries: Vec<Entry>| Zip { entries, ..Zip::default() };
    let zip64 = Zip {
        entries: vec![Entry::stored("a", b"hello").zip64(0), Entry::stored("b", b"x")],
        zip64: Some(Zip64End::default()),
        ..Zip::default()
    };
    let mut widened = zip64.clone();
    widened.end.entries = Some(u16::MAX);
    widened.end.directory_offset = Some(u32::MAX);
    let mut comment = stored.clone();
    comment.end.comment = b"a comment".to_vec();
    comment.entries[0].listing.comment = b"another".to_vec();
    let mut archives = vec![
        ("stored", stored),
        ("zip64", zip64),
        ("zip64 that is needed", widened),
        ("comment", comment),
        ("descriptor", with(vec![Entry::stored("a", b"hello").described(), frames_of(b"")])),
    ];
    if cfg!(feature = "deflate") {
        archives.push(("deflate", with(vec![deflated.clone(), deflated_twin(&deflated)])));
    }
    if cfg!(feature = "zstd") {
        archives
            .push(("zstd", with(vec![frames.clone(), frames.both(|h| h.name = b"y".to_vec())])));
    }
    archives
}

fn frames_of(content: &[u8]) -> Entry {
    Entry::stored("e", content).described()
}

fn deflated_twin(entry: &Entry) -> Entry {
    entry.clone().both(|header| header.name = b"e".to_vec()).described()
}

#[test]
fn truncated_archives_do_not_open() {
    for (what, zip) in archives() {
        truncations(&zip.to_bytes(), |cut| {
            for profile in [Profile::Strict, Profile::Lenient] {
                assert_eq!(read(cut, profile), None, "{what}, {} bytes", cut.len());
            }
        });
    }
}

/// A change that the strict profile and `check` let pass has changed neither a name nor a content;
/// nor has it for a reader that compares less.
#[test]
fn changed_archives_are_refused_or_read_as_before() {
    for (what, zip) in archives() {
        let bytes = zip.to_bytes();
        let before = read(&bytes, Profile::Strict).unwrap();
        assert_eq!(read_by_zip(&bytes).as_ref(), Some(&before));
        let mut accepted = 0;
        mutations(&bytes, |changed| {
            if let Some(now) = read(changed, Profile::Strict) {
                accepted += 1;
                assert!(now == before, "{what}: {now:?}");
                if let Some(other) = read_by_zip(changed) {
                    assert!(other == before, "{what}: {other:?}");
                }
            }
            // Without a look at the local headers a name may differ, and an end record may say
            // less; the checksum is still that of the content.
            for (name, content) in read(changed, Profile::Lenient).into_iter().flatten() {
                assert!(before.iter().any(|(_, known)| *known == content), "{what}: {name}");
            }
        });
        assert!(accepted > 50, "{what}: times, versions and comments may change");
    }
}

/// What the strict profile accepts without `check`, it has read as it was.
#[test]
fn opening_and_reading_strictly_is_enough_for_names_and_contents() {
    for (what, zip) in archives() {
        let bytes = zip.to_bytes();
        let before = read(&bytes, Profile::Strict).unwrap();
        mutations(&bytes, |changed| {
            let source = Source::from_bytes(changed.to_vec());
            let Ok(archive) = Archive::from_source(source) else { return };
            let files =
                archive.entries().map(|entry| Some((entry.name().to_owned(), content(entry)?)));
            if let Some(files) = files.collect::<Option<Files>>() {
                assert!(files == before, "{what}: {files:?}");
            }
        });
    }
}

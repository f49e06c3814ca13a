//! Ways to open, to ask what a file is, and to check all of it.

use std::{
    fs, io,
    sync::atomic::{AtomicU64, Ordering},
};

use model_archive::{
    Archive, ArchiveWriter, EntryOptions, Error, FaultAt, FileFault, Method, Symlinks, WriteFault,
    tensor_core::{
        At, ErrorKind, Limits, Profile, Severity, Source,
        output::{Existing, Output},
    },
};
use test_support::{CountingSource, zip::Zip};

fn archive() -> Vec<u8> {
    Zip::of(&[("a", b"first"), ("b", b"second")]).to_bytes()
}

#[test]
fn paths_bytes_and_sources() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("archive");
    fs::write(&path, archive()).unwrap();
    let source = Source::from_bytes(archive());
    for archive in [
        Archive::open(&path),
        Archive::from_bytes(archive()),
        Archive::from_source(source),
        Archive::options().open(&path),
        Archive::options().from_bytes(archive()),
    ] {
        assert_eq!(archive.unwrap().entry("b").unwrap().bytes().unwrap(), "second");
    }
    let error = Archive::open(dir.path().join("none")).unwrap_err();
    assert!(matches!(error, Error::Core(_)));
}

#[test]
fn archives_are_told_from_other_files() {
    let sniff = |bytes: &[u8]| {
        let counting = CountingSource::new(bytes);
        (Archive::sniff(&counting.source()).unwrap(), counting.take_reads().len())
    };
    assert_eq!(sniff(&archive()), (true, 1));
    assert_eq!(sniff(&archive()[..40]), (true, 1));
    let empty = ArchiveWriter::new(Vec::new()).finish().unwrap();
    assert!(sniff(&empty).0);
    assert!(sniff(&[b"program".to_vec(), archive()].concat()).0);
    for other in [&b""[..], b"PK", b"not an archive", &[0; 70_000]] {
        assert!(!sniff(other).0);
    }
}

#[test]
fn other_options_read_nothing_again() {
    let mut writer = ArchiveWriter::new(Vec::new());
    writer.add("folder/file", b"content", &EntryOptions::default()).unwrap();
    let plain = writer.finish().unwrap();
    let mut writer = ArchiveWriter::new(Vec::new());
    writer.add("file", b"content", &EntryOptions::default()).unwrap();
    writer.add_symlink("link", "file").unwrap();
    let linked = writer.finish().unwrap();
    let with_suffix = [plain.clone(), b"more".to_vec()].concat();
    let lenient = Archive::options().profile(Profile::Lenient).symlinks(Symlinks::Kept);
    let limits = Limits::default();
    for (bytes, options, rule) in [
        (&plain, Archive::options(), None),
        (&plain, Archive::options().methods(&[Method::Deflate]), Some("zip/method")),
        (&plain, Archive::options().limits(limits.with_entries(0)), Some("zip/limit")),
        (&plain, Archive::options().limits(limits.with_directory_bytes(9)), Some("zip/limit")),
        (&plain, Archive::options().limits(limits.with_name_components(1)), Some("zip/name")),
        (&linked, Archive::options().symlinks(Symlinks::Kept), None),
        (&linked, Archive::options(), Some("zip/symlink")),
        (&with_suffix, lenient, None),
        (&with_suffix, Archive::options(), Some("zip/suffix")),
    ] {
        let counting = CountingSource::new(bytes);
        let first = lenient.from_source(counting.source()).unwrap();
        let _ = counting.take_reads();
        let again = first.with_options(options);
        assert!(counting.take_reads().is_empty());
        let direct = options.from_source(counting.source());
        assert_eq!(again.as_ref().err().map(Error::rule), rule);
        assert_eq!(
            again.as_ref().map_err(ToString::to_string).err(),
            direct.map_err(|error| error.to_string()).err()
        );
        if let Ok(again) = again {
            assert!(again.entries().all(|entry| entry.verify().is_ok()));
        }
    }
}

#[test]
fn created_files_appear_when_they_are_finished() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("archive");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    writer.add("a", b"first", &EntryOptions::default()).unwrap();
    assert!(!path.exists());
    let written = writer.finish().unwrap().written();
    assert_eq!(fs::metadata(&path).unwrap().len(), written);
    assert_eq!(Archive::open(&path).unwrap().entries().len(), 1);
    drop(ArchiveWriter::create(&path).unwrap());
    let output = Output { existing: Existing::Keep, ..Output::default() };
    let error = ArchiveWriter::create_as(&path, output).unwrap().finish().unwrap_err();
    assert!(matches!(error, Error::Core(_)), "{error}");
    assert_eq!(Archive::open(&path).unwrap().entries().len(), 1);
}

#[test]
fn validation_reads_every_byte() {
    let sound = archive();
    let archive = Archive::from_bytes(sound.clone()).unwrap();
    let done = AtomicU64::new(0);
    let progress = |bytes| {
        done.fetch_add(bytes, Ordering::Relaxed);
    };
    assert!(archive.validate_with(progress).is_empty());
    assert_eq!(done.into_inner(), archive.total_size());
    let at = sound.windows(6).position(|window| window == b"second").unwrap();
    let mut bytes = sound;
    bytes[at] ^= 1;
    let archive = Archive::from_bytes(bytes).unwrap();
    assert!(archive.lint().is_empty());
    let report = archive.validate();
    let found: Vec<_> = report.findings().iter().map(|found| (&*found.rule, &found.at)).collect();
    let offset = report.findings()[0].at.offset;
    assert_eq!(found, [("zip/crc", &At::file().entry("b").offset(offset))]);
    assert_eq!(report.worst(), Some(Severity::Error));
}

#[test]
fn large_entries_are_read_into_the_buffer_and_compared() {
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut bytes = Zip::of(&[("large", &content)]).to_bytes();
    let start = bytes.windows(5).position(|window| window == b"large").unwrap() + 5;
    for is_changed in [false, true] {
        if is_changed {
            bytes[start + 2_500_000] ^= 1;
        }
        let counting = CountingSource::new(&bytes);
        let archive = Archive::from_source(counting.source()).unwrap();
        let mut buffer = vec![0; content.len()];
        let _ = counting.take_reads();
        let read = archive.entry("large").unwrap().read_into(&mut buffer);
        let reads: u64 = counting.take_reads().iter().map(|extent| extent.len()).sum();
        assert!(reads < content.len() as u64 + 1000);
        match read {
            Ok(()) => assert!(!is_changed && buffer == content),
            Err(error) => assert!(is_changed && error.rule() == "zip/crc", "{error}"),
        }
    }
    let archive = Archive::from_bytes(bytes).unwrap();
    let error = archive.entry("large").unwrap().read_into(&mut [0; 9]).unwrap_err();
    assert_eq!(error.to_string(), "entry is 3000000 bytes long, but the buffer holds 9");
}

#[test]
fn validation_stops_before_too_much_content() {
    let bytes = archive();
    let limits = Limits::default().with_expansion(0).with_decoded_bytes(10);
    let archive = Archive::options().limits(limits).from_bytes(bytes).unwrap();
    let report = archive.validate();
    let rules: Vec<_> = report.findings().iter().map(|found| &*found.rule).collect();
    assert_eq!(rules, ["zip/limit"]);
}

#[test]
fn kinds_of_errors() {
    let io = || io::Error::other("the system");
    let inside = |error: Error| Error::Io { what: "reading", source: io::Error::other(error) };
    let file = |fault| Error::File { path: "p".to_owned(), fault };
    let open = |bytes: &[u8]| Archive::from_bytes(bytes.to_vec()).unwrap_err();
    for (error, kind) in [
        (open(b"no archive"), ErrorKind::Malformed),
        (open(&[b"x".to_vec(), archive()].concat()), ErrorKind::Malformed),
        (
            Archive::options().methods(&[]).from_bytes(archive()).unwrap_err(),
            ErrorKind::Unsupported,
        ),
        (
            Archive::options()
                .limits(Limits::default().with_name_bytes(0))
                .from_bytes(archive())
                .unwrap_err(),
            ErrorKind::OverLimit,
        ),
        (
            Archive::options()
                .limits(Limits::default().with_entries(1))
                .from_bytes(archive())
                .unwrap_err(),
            ErrorKind::OverLimit,
        ),
        (Error::Io { what: "reading", source: io() }, ErrorKind::Io),
        (inside(open(b"no archive")), ErrorKind::Malformed),
        (file(FileFault::Outside), ErrorKind::Malformed),
        (file(FileFault::Replaced), ErrorKind::Busy),
        (file(FileFault::Io(io())), ErrorKind::Io),
        (Error::Write { entry: "e".to_owned(), fault: WriteFault::Duplicate }, ErrorKind::Usage),
        (Error::Unfinished { entry: "e".to_owned() }, ErrorKind::Usage),
        (Archive::open("/none/none").unwrap_err(), ErrorKind::NotFound),
    ] {
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(file(FileFault::Outside).at(), At::file().entry("p"));
}

#[test]
fn faults_say_where_they_are() {
    let bytes = [archive(), b"more".to_vec()].concat();
    let len = bytes.len() as u64;
    let error = Archive::from_bytes(bytes).unwrap_err();
    assert_eq!(error.at(), At::file().offset(len - 4));
    let Error::Fault(found) = &error else { panic!("{error}") };
    let found: &FaultAt = found;
    assert_eq!(found.finding(Profile::Strict).severity, Severity::Error);
    assert_eq!(error.finding(Profile::Lenient).severity, Severity::Warning);
}

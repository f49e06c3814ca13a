//! Edits change what they are asked to and nothing else, in both containers.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use ptl_spec::{
    ContainerKind, Editor, Reader, SPEC, Spec, Strip, WriteOptions, compact, recover, recoverable,
    rewrite, strip,
    tensor_core::{self, ErrorKind, Extent, ReadAt, Source, output::Edited},
    with_extra_files,
};
use test_support::{assert_bytes, files, mutations, testdata, truncations};

use crate::model;

const TEXT: &str = r#"{"pack":{"type":"tensor","dtype":"float","sizes":[1],"items":[1]},
    "unpack":{"type":"tensor","dtype":"float","key":"k"}}"#;

fn models() -> Vec<PathBuf> {
    let folders = ["torch113", "torch251", "backport"];
    folders.iter().flat_map(|folder| files(&format!("ptl/valid/{folder}"), "ptl")).collect()
}

/// Everything of a file but its extra files: what no edit may change.
fn rest(file: &[u8]) -> Vec<(String, Option<Extent>, Vec<u8>)> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let records = reader.records().filter(|record| !record.path().starts_with("extra/"));
    let mut rest: Vec<_> = records
        .map(|record| {
            let extent = record.stored_extent().unwrap();
            (record.path().to_owned(), Some(extent), {
                record.verify().unwrap();
                record.bytes().unwrap().to_vec()
            })
        })
        .collect();
    for tensor in reader.tensors().unwrap() {
        let extent = tensor.storage_extent().unwrap().map(|extent| match reader.container() {
            // They move, but not against what they are aligned to.
            ContainerKind::FlatBuffer => Extent::new(extent.offset() % 32, extent.len()).unwrap(),
            _ => extent,
        });
        rest.push((tensor.name().to_owned(), extent, tensor.bytes().unwrap().to_vec()));
    }
    rest.push((format!("{:?}", reader.bytecode().unwrap()), None, Vec::new()));
    rest
}

fn extras(file: &[u8]) -> Vec<(String, Bytes)> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let content = |file: ptl_spec::File<'_>| (file.path().to_owned(), file.bytes().unwrap());
    let mut files: Vec<_> = reader.extra_files().map(content).collect();
    files.sort();
    files
}

fn set(file: &[u8], name: &str, content: &str) -> Vec<u8> {
    with_extra_files(file, [(name, Some(Bytes::from(content.to_owned())))]).unwrap()
}

#[test]
fn pytorch_writes_the_same_bytes() {
    let mut checked = 0;
    for path in models() {
        let reader = Reader::open(&path).unwrap();
        let mut written = Vec::new();
        assert_eq!(rewrite(&reader, |_| true, &mut written).unwrap(), 0);
        assert_bytes(&written, &fs::read(&path).unwrap(), &format!("{path:?}"));
        checked += u32::from(reader.container() == ContainerKind::FlatBuffer);
    }
    assert!(checked > 6, "{checked}");
}

#[test]
fn a_spec_is_embedded_replaced_and_removed() {
    for path in models() {
        let old = fs::read(&path).unwrap();
        let others: Vec<_> = extras(&old).into_iter().filter(|(name, _)| name != SPEC).collect();
        for text in [TEXT, "{}", &" ".repeat(100_000)] {
            let new = set(&old, SPEC, text);
            assert_eq!(rest(&new), rest(&old), "{path:?}");
            let mut expected = others.clone();
            expected.push((SPEC.to_owned(), Bytes::from(text.to_owned())));
            expected.sort();
            assert_eq!(extras(&new), expected, "{path:?}");
            let again = set(&new, SPEC, TEXT);
            let reader = Reader::from_bytes(again.clone()).unwrap();
            assert_eq!(reader.spec_text().unwrap().unwrap(), TEXT);
            assert_eq!(rest(&again), rest(&old), "{path:?}");
            let without = with_extra_files(&again, [(SPEC, None)]).unwrap();
            assert_eq!(extras(&without), others, "{path:?}");
            assert_eq!(rest(&without), rest(&old), "{path:?}");
        }
    }
}

#[test]
fn several_files_at_once() {
    for name in ["img_extras.ptl", "img_fb.ptl", "img_nospec_fb.ptl"] {
        let old = model(name);
        let new = with_extra_files(
            &old,
            [
                ("labels.txt", None),
                (SPEC, Some(Bytes::from(TEXT))),
                ("größe", Some(Bytes::from("1"))),
                ("empty", Some(Bytes::new())),
            ],
        )
        .unwrap();
        let found = extras(&new);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        let expected = match name {
            "img_extras.ptl" => vec!["empty", "größe", SPEC, "unicode/ümlaut.txt"],
            _ => vec!["empty", "größe", SPEC],
        };
        assert_eq!(names, expected, "{name}");
        assert_eq!(rest(&new), rest(&old), "{name}");
    }
}

/// An offset that stands for two things is not changed: that of the extra files, which is that of the
/// methods too.
#[test]
fn flatbuffers_whose_fields_overlap() {
    let mut file = model("img_fb.ptl");
    let u32_at = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap());
    let root = u32_at(0);
    let vtable = root.wrapping_sub(u32_at(root as usize)) as usize;
    let field = |id: usize| vtable + 4 + 2 * id;
    file.copy_within(field(1)..field(2), field(2));
    let edited = with_extra_files(&file, [("x", Some(Bytes::from("1")))]);
    assert_eq!(edited.unwrap_err().to_string(), "the file cannot be edited: its parts overlap");
}

/// ZIP files do not tell cases apart, FlatBuffers do.
#[test]
fn changes_of_one_file() {
    for (name, expected) in
        [("img_nospec.ptl", vec![("A", "2")]), ("img_nospec_fb.ptl", vec![("A", "2"), ("a", "1")])]
    {
        let change = |name, content| (name, Some(Bytes::from_static(content)));
        let changes = [change("A", b"0"), change("a", b"1"), change("A", b"2")];
        let new = with_extra_files(&model(name), changes.clone()).unwrap();
        let expected: Vec<_> =
            expected.into_iter().map(|(n, text)| (n.to_owned(), Bytes::from(text))).collect();
        assert_eq!(extras(&new), expected, "{name}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, model(name)).unwrap();
        let mut editor = Editor::open(&path).unwrap();
        for (name, content) in changes {
            editor.set(name, content.unwrap()).unwrap();
        }
        editor.commit().unwrap();
        assert_bytes(&fs::read(&path).unwrap(), &new, name);
        let error = with_extra_files(&new, [change("../x", b"1")]).unwrap_err();
        let message = "extra file \"../x\": name has a component \".\" or \"..\"";
        assert_eq!(error.to_string(), message);
    }
    let collisions = fs::read(testdata("ptl/invalid/name_case.ptl")).unwrap();
    assert_eq!(
        with_extra_files(&collisions, []).unwrap_err().to_string(),
        "the file cannot be edited: two of its records have names that PyTorch takes for one"
    );
}

#[test]
fn shifted_archives_are_not_edited() {
    let shifted = [b"PK\x03\x04", model("img.ptl").as_slice()].concat();
    let error = with_extra_files(&shifted, [(SPEC, Some(Bytes::from(TEXT)))]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file cannot be edited: there are bytes before its first record"
    );
}

#[test]
fn new_records_start_on_64_bytes() {
    let new = set(&model("img.ptl"), "labels.txt", "a\n");
    let reader = Reader::from_bytes(new).unwrap();
    for record in reader.records().filter(|record| !record.is_compressed()) {
        assert!(record.stored_extent().unwrap().is_aligned(64), "{}", record.path());
    }
}

#[test]
fn variants_can_be_edited() {
    for path in files("ptl/valid/variants", "ptl") {
        let old = fs::read(&path).unwrap();
        let edited = with_extra_files(&old, [(SPEC, Some(Bytes::from(TEXT)))]);
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "spec_twice" {
            assert_eq!(
                edited.unwrap_err().to_string(),
                Reader::from_bytes(old).unwrap_err().to_string()
            );
            continue;
        }
        let reader = Reader::from_bytes(edited.unwrap()).unwrap();
        assert_eq!(reader.spec_text().unwrap().unwrap(), TEXT, "{name}");
        reader.bytecode().unwrap();
    }
}

#[test]
fn comments_stay() {
    let old = fs::read(testdata("ptl/valid/variants/zip_comment.ptl")).unwrap();
    let new = set(&old, SPEC, TEXT);
    let comment = old.len() - old.windows(4).rposition(|w| w == b"PK\x05\x06").unwrap() - 22;
    assert!(comment > 0);
    assert_eq!(new[new.len() - comment..], old[old.len() - comment..]);
}

#[test]
fn nothing_written_in_front_of_the_end() {
    let old = model("img.ptl");
    let new = set(&old, SPEC, TEXT);
    assert_bytes(&new[..old.len()], &old, "img.ptl");
}

#[test]
fn files_are_edited_in_place() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["img_nospec.ptl", "img_nospec_fb.ptl"] {
        let path = folder.path().join(name);
        fs::write(&path, model(name)).unwrap();
        let mut editor = Editor::open(&path).unwrap();
        let locked = Editor::open(&path).unwrap_err().to_string();
        assert_eq!(locked, format!("{path:?} is locked, expected no other writer"));
        editor.set("a", "1").unwrap();
        editor.remove("a").unwrap();
        assert_eq!(editor.remove("a").unwrap_err().to_string(), "there is no extra file \"a\"");
        drop(editor);
        assert_bytes(&fs::read(&path).unwrap(), &model(name), name);

        let mut dry = Editor::dry_run(&path, WriteOptions::default()).unwrap();
        dry.set_spec(&Spec::parse(TEXT).unwrap()).unwrap();
        // It has no lock, but nobody else may have one.
        let mut editor = Editor::open(&path).unwrap();
        let other = Editor::dry_run(&path, WriteOptions::default());
        assert_eq!(other.unwrap_err().to_string(), locked);
        let expected = dry.commit().unwrap();
        assert_bytes(&fs::read(&path).unwrap(), &model(name), name);
        editor.set_spec(&Spec::parse(TEXT).unwrap()).unwrap();
        let edited = editor.preview().unwrap();
        let edited = edited.source().read(Extent::first(edited.source().len()), "all").unwrap();
        assert_eq!(editor.commit().unwrap(), expected);
        assert_bytes(&fs::read(&path).unwrap(), &edited, name);
        let (before, after) = (model(name).len() as u64, edited.len() as u64);
        assert_eq!(
            expected,
            match name {
                "img_nospec.ptl" => Edited::Appended { before, after },
                _ => Edited::Replaced { before, after },
            }
        );
        let spec = Reader::open(&path).unwrap().spec().unwrap().unwrap();
        assert_eq!(spec.json(), Spec::parse(TEXT).unwrap().json());
        let mut editor = Editor::open(&path).unwrap();
        editor.remove(SPEC).unwrap();
        editor.commit().unwrap();
        assert!(Reader::open(&path).unwrap().spec().unwrap().is_none());
        assert_eq!(Editor::open(&path).unwrap().commit().unwrap(), Edited::Unchanged);
    }
}

/// A dry run meets what the edit would meet.
#[test]
fn dry_runs_of_what_may_not_be_written() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["img.ptl", "img_fb.ptl"] {
        let path = folder.path().join(name);
        fs::write(&path, model(name)).unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let refused = Editor::open(&path).unwrap_err().to_string();
        assert!(refused.contains("opening for writing"), "{refused}");
        let dry = Editor::dry_run(&path, WriteOptions::default());
        assert_eq!(dry.unwrap_err().to_string(), refused);
    }
}

#[test]
fn unsafe_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    fs::write(&path, model("img.ptl")).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    for (name, message) in [
        ("../x", "extra file \"../x\": name has a component \".\" or \"..\""),
        ("/x", "extra file \"/x\": name is absolute, expected a relative path"),
        ("", "extra file \"\": name is empty"),
        ("x/", "extra file \"x/\": name has an empty component"),
    ] {
        assert_eq!(editor.set(name, "1").unwrap_err().to_string(), message);
    }
}

/// Where PyTorch finds the directory: by the last end record, of 64 KiB and 22 bytes at the end.
fn directory(file: &[u8]) -> u32 {
    let searched = file.len().saturating_sub(65_535 + 22);
    let ends = (searched..file.len() - 21).rev();
    let end = ends.into_iter().find(|&at| file[at..].starts_with(b"PK\x05\x06")).unwrap();
    u32::from_le_bytes(*file[end + 16..].first_chunk().unwrap())
}

/// However little of it is written, what was there before is found, by PyTorch and by us.
#[test]
fn interrupted_edits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    let mut old = model("img.ptl");
    let recovered = || {
        let edited = recover(&path, WriteOptions::default()).unwrap();
        assert_bytes(&fs::read(&path).unwrap(), &old, "recovered");
        edited
    };
    let new = set(&old, SPEC, TEXT);
    truncations(&new[old.len()..], |tail| {
        let torn = [&old, tail].concat();
        fs::write(&path, &torn).unwrap();
        assert_eq!((rest(&torn), directory(&torn)), (rest(&old), directory(&old)));
        let (before, after) = (torn.len() as u64, old.len() as u64);
        let cut = Edited::Truncated { before, after };
        assert_eq!(recovered(), if before == after { Edited::Unchanged } else { cut });
    });
    // What others append may be too long for that.
    let long = set(&old, SPEC, &"x".repeat(200_000));
    fs::write(&path, &long[..long.len() - 1]).unwrap();
    assert_eq!(
        Reader::open(&path).unwrap_err().to_string(),
        "the ZIP file has no end: what an interrupted edit has appended is cut off by `modelcrate \
         recover` (ptl_spec::recover)"
    );
    let cut = recoverable(&Source::open(&path).unwrap()).unwrap();
    assert_eq!(recovered(), cut);
    // An archive among the extra files has an end of its own.
    let inner = test_support::zip::Zip::of(&[("x/y", b"z")]).to_bytes();
    let outer = with_extra_files(
        &old,
        [("a.zip", Some(Bytes::from(inner))), (SPEC, Some(Bytes::from("x".repeat(100_000))))],
    )
    .unwrap();
    fs::write(&path, &outer[..outer.len() - 1]).unwrap();
    recovered();
    fs::write(&path, "no model").unwrap();
    assert_eq!(
        recover(&path, WriteOptions::default()).unwrap_err().to_string(),
        "the file cannot be edited: there is no whole ZIP file in it"
    );
    for whole in [&new, &model("img_fb.ptl")] {
        fs::write(&path, whole).unwrap();
        assert_eq!(recover(&path, WriteOptions::default()).unwrap(), Edited::Unchanged);
    }
    // An edit is judged by where the end is, not by what stands behind it.
    old.extend([0; 60_000]);
    fs::write(&path, &old).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.set("x", "x".repeat(10_000)).unwrap();
    assert!(matches!(editor.commit().unwrap(), Edited::Replaced { .. }));
}

/// A file of which one read fails.
struct Failing {
    bytes: Vec<u8>,
    /// How many reads there are before it.
    left: AtomicUsize,
}

impl ReadAt for Failing {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(io::Error::other("the disk is broken"));
        }
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.bytes[start..start + buffer.len()]);
        Ok(())
    }
}

/// What cannot be read may be whole: nothing of it is cut off.
#[test]
fn recovery_after_a_failed_read() {
    let bytes = set(&model("img.ptl"), SPEC, TEXT);
    let mut reads = 0;
    loop {
        let file = Failing { bytes: bytes.clone(), left: AtomicUsize::new(reads) };
        match recoverable(&Source::from_read_at(file)) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
            Ok(edited) => break assert_eq!(edited, Edited::Unchanged, "after {reads} reads"),
        }
        reads += 1;
    }
    assert!(reads > 2, "{reads}");
}

/// What this build does not know may be whole as well.
#[test]
fn recovery_of_what_is_not_supported() {
    let mut bytes = set(&model("img.ptl"), SPEC, TEXT);
    let header = bytes.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    // Its compression method.
    bytes[header + 10] = 99;
    let error = recoverable(&Source::from_bytes(bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn recovery_is_bounded() {
    let ends = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".repeat(5000);
    let error = recoverable(&Source::from_bytes(ends)).unwrap_err();
    let expected = "the file cannot be edited: it has too many ends of ZIP files in it";
    assert_eq!(error.to_string(), expected);
}

/// A lock keeps other editors out, not other programs: what those append meanwhile stays.
#[test]
fn files_that_grow_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    for (name, len) in [("img.ptl", 10), ("img.ptl", 200_000), ("img_fb.ptl", 10)] {
        fs::write(&path, model(name)).unwrap();
        let mut editor = Editor::open(&path).unwrap();
        editor.set("x", "x".repeat(len)).unwrap();
        let mut other = fs::OpenOptions::new().append(true).open(&path).unwrap();
        other.write_all(b"from another program").unwrap();
        let error = editor.commit().unwrap_err();
        assert!(
            matches!(error, ptl_spec::Error::Core(tensor_core::Error::Replaced { .. })),
            "{error}"
        );
        let expected = [&model(name)[..], b"from another program"].concat();
        assert_bytes(&fs::read(&path).unwrap(), &expected, name);
    }
}

/// What is put behind the end of a file leaves the old end where PyTorch looks for it; whatever is
/// longer, or looks like an end itself, makes another file.
#[test]
fn edits_too_long_to_be_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    let old = model("img.ptl");
    let edit = |content: &[u8]| {
        fs::write(&path, &old).unwrap();
        let mut before = fs::File::open(&path).unwrap();
        let mut editor = Editor::open(&path).unwrap();
        editor.set("x", content.to_vec()).unwrap();
        let edited = editor.commit().unwrap();
        let (new, mut kept) = (fs::read(&path).unwrap(), Vec::new());
        io::Read::read_to_end(&mut before, &mut kept).unwrap();
        let change = [("x", Some(Bytes::from(content.to_vec())))];
        assert_bytes(&new, &with_extra_files(&old, change).unwrap(), "edited");
        let in_place = matches!(edited, Edited::Appended { .. });
        // Who has the file open sees what was appended, or goes on with the old file.
        assert_bytes(&kept, if in_place { &new } else { &old }, "open before");
        let torn = &new[..new.len() - 1];
        if in_place {
            assert_eq!(directory(torn), directory(&old));
        }
        in_place
    };
    let longest = (63_000..66_000).step_by(20).take_while(|len| edit(&vec![b'x'; *len])).last();
    assert!(longest.is_some_and(|len| len > 64_000), "{longest:?}");
    assert!(!edit(&vec![b'x'; 200_000]));
    assert!(edit(b"PK\x05") && !edit(b"PK\x05\x06"));
}

/// Whatever is taken out, and however little.
#[test]
fn removal_from_a_flatbuffer_does_not_grow_it() {
    for path in flat_models() {
        let mut file = fs::read(path).unwrap();
        for name in ["a", "b", "c"] {
            file = set(&file, name, "1");
        }
        for (name, _) in extras(&file) {
            let removed = with_extra_files(&file, [(&*name, None)]).unwrap();
            assert!(removed.len() <= file.len(), "{name}: {} {}", removed.len(), file.len());
            assert!(!extras(&removed).iter().any(|(other, _)| *other == name));
            assert_eq!(rest(&removed), rest(&file));
            file = removed;
        }
    }
}

/// A FlatBuffer has no dead bytes after an edit.
#[test]
fn flatbuffers_shrink() {
    for name in ["img_fb.ptl", "img_nospec_fb.ptl"] {
        let old = model(name);
        let long = set(&old, "blob", &"x".repeat(100_000));
        let both = set(&long, "short", "abc");
        assert!(both.len() < long.len() + 128, "{} {}", both.len(), long.len());
        let removed = with_extra_files(&both, [("short", None)]).unwrap();
        // Less than 32 bytes stay where an offset, a table and the texts were.
        assert!(removed.len() < long.len() + 96, "{} {}", removed.len(), long.len());
        assert!(removed.len() <= both.len(), "{} {}", removed.len(), both.len());
        assert_eq!(extras(&removed), extras(&long));
        let removed = with_extra_files(&removed, [("blob", None)]).unwrap();
        assert!(removed.len() < old.len() + 96, "{} {}", removed.len(), old.len());
        let again = (0..50).fold(old.clone(), |file, _| set(&set(&file, SPEC, "{}"), SPEC, TEXT));
        assert!(again.len() < set(&old, SPEC, TEXT).len() + 96, "{}", again.len());
    }
}

#[test]
fn compacting_leaves_no_dead_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    let old = model("img.ptl");
    let spec = extras(&old).remove(0).1;
    let edited =
        set(&set(&old, SPEC, &"x".repeat(10_000)), SPEC, std::str::from_utf8(&spec).unwrap());
    fs::write(&path, &edited).unwrap();
    let done = compact(&path, WriteOptions::default()).unwrap();
    let after = fs::read(&path).unwrap();
    let lens = [&edited, &after].map(|file| file.len() as u64);
    assert_eq!(done, Edited::Replaced { before: lens[0], after: lens[1] });
    // The spec is now the last record, so padding differs.
    assert!(after.len() < old.len() + 64);
    let contents = |file: &[u8]| {
        let contents = rest(file).into_iter().map(|(name, _, content)| (name, content));
        contents.collect::<Vec<_>>()
    };
    assert_eq!(contents(&after), contents(&old));
    assert_eq!(extras(&after), extras(&old));
}

fn flat_models() -> Vec<PathBuf> {
    let is_flat =
        |path: &PathBuf| Reader::open(path).unwrap().container() == ContainerKind::FlatBuffer;
    let flat: Vec<PathBuf> = models().into_iter().filter(is_flat).collect();
    assert!(flat.len() > 6, "{}", flat.len());
    flat
}

#[test]
fn compacting_flatbuffers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    for model in flat_models() {
        let old = fs::read(&model).unwrap();
        let mut edited = set(&old, SPEC, &"x".repeat(10_000));
        edited = set(&edited, "notes", &"secret".repeat(1000));
        edited = set(&edited, SPEC, TEXT);
        edited = with_extra_files(&edited, [("notes", None)]).unwrap();
        fs::write(&path, &edited).unwrap();
        let done = compact(&path, WriteOptions::default()).unwrap();
        let after = fs::read(&path).unwrap();
        let lens = [&edited, &after].map(|file| file.len() as u64);
        assert_eq!(done, Edited::Replaced { before: lens[0], after: lens[1] });
        assert!(after.len() < old.len() + 600, "{} {}", after.len(), old.len());
        assert!(!after.windows(6).any(|window| window == b"secret"), "{model:?}");
        assert_eq!((rest(&after), extras(&after)), (rest(&old), extras(&set(&old, SPEC, TEXT))));
        let report = Reader::from_bytes(after.clone()).unwrap().validate();
        assert!(!report.findings().iter().any(|finding| finding.rule == "ptl/flatbuffer"));
        // Nothing is left to do, and what comes of it can be edited again.
        compact(&path, WriteOptions::default()).unwrap();
        assert_bytes(&fs::read(&path).unwrap(), &after, "compacted twice");
        assert_eq!(rest(&set(&after, SPEC, "{}")), rest(&old));
    }
}

fn source_names(reader: &Reader) -> Vec<String> {
    reader.sources().unwrap().map(|file| file.path().to_owned()).collect()
}

#[test]
fn source_of_flatbuffers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    for model in flat_models() {
        let old = fs::read(&model).unwrap();
        let sources = source_names(&Reader::from_bytes(old.clone()).unwrap());
        assert!(sources.iter().all(|name| name.starts_with("code/__torch__")), "{sources:?}");
        fs::write(&path, &old).unwrap();
        assert_eq!(
            strip(&path, Strip::Code, WriteOptions::default()).unwrap().removed,
            sources.len() as u64
        );
        let after = fs::read(&path).unwrap();
        assert_eq!((rest(&after), extras(&after)), (rest(&old), extras(&old)));
        assert!(source_names(&Reader::from_bytes(after.clone()).unwrap()).is_empty());
        assert!(!after.windows(12).any(|window| window == b"def forward("), "{model:?}");
        assert_eq!(strip(&path, Strip::Code, WriteOptions::default()).unwrap().removed, 0);
        assert_eq!(
            strip(&path, Strip::DebugRecords, WriteOptions::default()).unwrap_err().to_string(),
            "the file cannot be edited: a FlatBuffer has no debug records, only source"
        );
        assert_bytes(&fs::read(&path).unwrap(), &after, "refused");
    }
    // Some of them may stay.
    let reader = Reader::from_bytes(model("img_opt_fb.ptl")).unwrap();
    let sources = source_names(&reader);
    assert!(sources.len() > 1, "{sources:?}");
    for kept in &sources {
        let mut written = Vec::new();
        let removed = rewrite(&reader, |name| name == kept, &mut written).unwrap();
        let written = Reader::from_bytes(written).unwrap();
        assert_eq!(source_names(&written), [kept.as_str()]);
        assert_eq!(written.extra_files().count(), 0);
        assert_eq!(removed as usize, sources.len() - 1 + reader.extra_files().count());
    }
}

/// However a FlatBuffer is broken, what is rewritten of it opens.
#[test]
fn broken_flatbuffers_are_rewritten_or_refused() {
    let file = model("img_nospec_fb.ptl");
    let (mut refused, mut turn) = (std::collections::BTreeSet::new(), 0_u32);
    mutations(&file, |changed| {
        let Ok(reader) = Reader::from_bytes(changed.to_vec()) else { return };
        turn += 1;
        if turn % 8 == 0
            && let Ok(edited) = with_extra_files(changed, [(SPEC, Some(Bytes::from(TEXT)))])
        {
            let edited = Reader::from_bytes(edited).unwrap();
            assert_eq!(edited.spec_text().unwrap().unwrap(), TEXT);
            assert_eq!(edited.bytecode().ok(), reader.bytecode().ok());
        }
        let mut written = Vec::new();
        match rewrite(&reader, |_| true, &mut written) {
            Ok(_) => {
                let written = Reader::from_bytes(written).unwrap();
                if let Ok(bytecode) = reader.bytecode() {
                    assert_eq!(written.bytecode().unwrap(), bytecode);
                }
            }
            Err(ptl_spec::Error::NotEditable { reason }) => _ = refused.insert(reason),
            Err(_) => {}
        }
    });
    assert_eq!(
        refused.into_iter().collect::<Vec<_>>(),
        [
            "it has a table with a field that is not known",
            "it has a value of a type that is not known",
            "its parts overlap"
        ]
    );
}

#[test]
fn stripped_files_keep_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.ptl");
    for (what, removed) in [(Strip::DebugRecords, 2), (Strip::Code, 4)] {
        let old = model("img_opt.ptl");
        fs::write(&path, &old).unwrap();
        assert_eq!(strip(&path, what, WriteOptions::default()).unwrap().removed, removed);
        let reader = Reader::open(&path).unwrap();
        assert!(reader.records().all(|record| !what.removes(record.path())));
        assert!(reader.spec().unwrap().is_some() && reader.bytecode().is_ok());
        for tensor in reader.tensors().unwrap() {
            let old = Reader::from_bytes(old.clone()).unwrap();
            let old = old.tensor(tensor.name()).unwrap().unwrap().bytes().unwrap();
            assert_eq!(tensor.bytes().unwrap(), old);
        }
    }
}

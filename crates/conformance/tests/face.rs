//! One face for all format crates: the same expressions, compiled and run for each of them. Who
//! knows one knows all; a crate that drifts from the others does not compile here.

#![allow(clippy::useless_conversion, reason = "some formats have an option already")]

use std::{
    error::Error,
    fs, io,
    num::NonZeroUsize,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use model_archive::{Archive, Symlinks};
use tensor_core::{
    At, ErrorKind, Extent, Limits, Profile, Report, Source, TensorBuf, TensorInfo, Verified,
    Verify,
    output::{Durability, Edited, Existing, Output},
};
use test_support::testdata;

/// A file of each format; the last is of one that none of them reads.
const FILES: [&str; 7] = [
    "carton/valid/ref_full.carton",
    "nnpackage/valid/everything.circle",
    "nnpackage/valid/06_rich_circle_numeric_versions.zip",
    "ptl/valid/torch113/img.ptl",
    "rten/valid/mlp.v2.rten",
    "ztensor/valid/v1.1-ref/scalars.zt",
    "nnpackage/valid/expected.json",
];

/// Writes what can be done with every format crate. `document` is what the crate calls it, and `?`
/// stands where a format can have a broken index.
macro_rules! face {
    (
        $test:ident: $krate:ident, $file:literal,
        document: $document:ident($($fails:tt)?);
        tensors($($broken:tt)?);
        $(archive: $from_archive:ident;)?
    ) => {
        #[test]
        fn $test() -> Result<(), Box<dyn Error>> {
            use $krate::{Editor, ReadOptions, Reader, Tensor, WriteOptions};

            // A document is found by content, and no other file is taken for one.
            for file in FILES {
                let found = Sniffed::from($krate::sniff(&Source::open(testdata(file))?)?);
                assert_eq!(found.0, file == $file, "{file}");
            }

            let path = testdata($file);
            let bytes = Bytes::from(fs::read(&path)?);
            let options: ReadOptions = Reader::options();
            let options = options
                .limits(Limits::default())
                .profile(Profile::Strict)
                .verify(Verify::Once)
                .threads(NonZeroUsize::MIN);
            options.clone().from_bytes(bytes.clone())?;
            options.clone().from_source(Source::from_bytes(bytes.clone()))?;
            Reader::open(&path)?;
            Reader::from_source(Source::from_bytes(bytes.clone()))?;
            Reader::from_bytes(bytes.clone())?;
            $(
                let archive = Archive::options().profile(Profile::Lenient);
                let archive = archive.symlinks(Symlinks::Kept).open(&path)?;
                assert!($krate::sniff_archive(&archive));
                Reader::options().$from_archive(archive)?;
            )?
            let reader = options.open(&path)?;
            let source = Option::<&Source>::from(reader.source()).ok_or("a folder")?;
            assert_eq!(source.len(), bytes.len() as u64);
            let _: &Limits = reader.limits();
            let _ = reader.$document()$($fails)?;

            // Checks: of every byte, and of what needs no tensor data.
            let done = AtomicU64::new(0);
            let with_progress: Report = reader.validate_with(|bytes: u64| {
                done.fetch_add(bytes, Ordering::Relaxed);
            });
            assert!(done.into_inner() > 0);
            let validated: Report = reader.validate();
            assert_eq!(validated.findings(), with_progress.findings());
            let linted: Report = reader.lint();
            assert_eq!(linted.worst(), validated.worst(), "tensor data are sound");
            for finding in linted.findings() {
                assert!(validated.findings().contains(finding), "{finding:?}");
                assert!(is_rule(&finding.rule), "{}", finding.rule);
            }

            // Tensors: handles, then their bytes in each way.
            let tensors: Vec<Tensor<'_>> = reader.tensors()$($broken)?.collect();
            assert!(!tensors.is_empty());
            let (mut read_too, mut found_by_name) = (0, 0);
            for &tensor in &tensors {
                if let Some(name) = Option::<&str>::from(tensor.name()) {
                    let same: Tensor<'_> = reader.tensor(name)$($broken)?.ok_or("no tensor")?;
                    assert_eq!(Option::<&str>::from(same.name()), Some(name));
                    found_by_name += 1;
                }
                let Ok(info) = tensor.info() else { continue };
                let info: TensorInfo = info;
                // Texts, and elements that only a format has.
                let Ok(read) = tensor.read() else { continue };
                let read: TensorBuf = read;
                assert_eq!(read.info(), &info);
                let content: Bytes = tensor.bytes()?;
                assert_eq!(&content[..], &read.bytes()[..]);
                let mut buffer = vec![0; content.len()];
                tensor.read_into(&mut buffer)?;
                assert_eq!(&buffer[..], &content[..]);
                assert!(tensor.read_into(&mut vec![0; content.len() + 1]).is_err());
                let extent: Option<Extent> = tensor.extent()?;
                if let Some(extent) = extent {
                    assert_eq!(extent.len(), content.len() as u64);
                }
                let _: Verified = tensor.verify()?;
                read_too += 1;
            }
            assert!(read_too > 0 && found_by_name > 0);
            assert!(reader.tensor("no such tensor")$($broken)?.is_none());

            // Errors: a stable rule, a kind and a place.
            let broken = Reader::from_bytes(&b"\0\0\0\0 not a model"[..]);
            let broken: $krate::Error = broken.err().ok_or("opened")?;
            let (rule, kind, _): (&str, ErrorKind, At) = (broken.rule(), broken.kind(), broken.at());
            assert!(is_rule(rule), "{rule}");
            assert!(kind.is_file_fault(), "{kind:?}");
            let missing = Reader::open("no such file").err().ok_or("opened")?;
            assert!(!missing.kind().is_file_fault());

            // Edits: in place under a lock, whole or not at all.
            let folder = tempfile::tempdir()?;
            let copy: PathBuf = folder.path().join("copy");
            fs::copy(&path, &copy)?;
            let options = WriteOptions::default().durability(Durability::Cached);
            let dry: Edited = Editor::dry_run(&copy, options)?.commit()?;
            assert_eq!(dry, Edited::Unchanged);
            let editor = Editor::open_with(&copy, options)?;
            assert_eq!(editor.reader().validate().findings(), validated.findings());
            drop(editor);
            assert_eq!(Editor::open(&copy)?.commit()?, Edited::Unchanged);
            assert_eq!(fs::read(&copy)?, bytes);
            Ok(())
        }
    };
}

/// What a crate says of bytes: that they are its own, or which of two formats they are.
struct Sniffed(bool);

impl From<bool> for Sniffed {
    fn from(found: bool) -> Self {
        Self(found)
    }
}

impl<T> From<Option<T>> for Sniffed {
    fn from(found: Option<T>) -> Self {
        Self(found.is_some())
    }
}

/// Tells whether an id is a prefix and words.
fn is_rule(id: &str) -> bool {
    let is_words = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    id.split_once('/').is_some_and(|(prefix, words)| is_words(prefix) && is_words(words))
}

face!(carton: carton_format, "carton/valid/ref_full.carton",
    document: description(?); tensors(?); archive: from_archive;);
face!(circle: circle_format, "nnpackage/valid/everything.circle",
    document: model(); tensors(););
face!(package: nnpackage, "nnpackage/valid/06_rich_circle_numeric_versions.zip",
    document: manifest(); tensors(?); archive: from_archive;);
face!(ptl: ptl_spec, "ptl/valid/torch113/img.ptl",
    document: spec(?); tensors(?); archive: from_archive;);
face!(rten: rten_format, "rten/valid/mlp.v2.rten",
    document: model(); tensors(););
face!(zt: ztensor, "ztensor/valid/v1.1-ref/scalars.zt",
    document: manifest(); tensors(););

/// Returns what would be written of a package that is not changed.
fn unchanged(reader: &nnpackage::Reader) -> &'static nnpackage::Edit {
    Box::leak(Box::new(nnpackage::Edit::new(reader)))
}

/// What a writer makes, of a crate whose writers take tensors one by one and of one whose writers
/// take a model first.
macro_rules! writers {
    ($test:ident: $krate:ident $(, $file:literal, $model:ident($of:path))?; create($($create:tt)?); write_to($($write:tt)?)) => {
        #[test]
        fn $test() -> Result<(), Box<dyn Error>> {
            use $krate::{WriteOptions, Writer};
            $(
                let reader = $krate::Reader::open(testdata($file))?;
                let $model = $of(&reader);
            )?
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("new");
            let options: WriteOptions = Writer::options()
                .output(Output::default())
                .existing(Existing::Keep)
                .durability(Durability::Cached);
            drop(options.create(&path $(, $model)?)$($create)?);
            drop(Writer::create(&path $(, $model)?)$($create)?);
            assert!(!path.exists(), "an unfinished file was left");
            drop(options.write_to(io::sink() $(, $model)?)$($write)?);
            drop(Writer::new(io::sink() $(, $model)?));
            Ok(())
        }
    };
}

writers!(writes_cartons: carton_format; create(?); write_to());
writers!(writes_circle: circle_format, "nnpackage/valid/everything.circle",
    model(circle_format::Reader::model); create(?); write_to());
writers!(writes_packages: nnpackage, "nnpackage/valid/06_rich_circle_numeric_versions.zip",
    edit(unchanged); create(?); write_to());
writers!(writes_rten: rten_format, "rten/valid/mlp.v2.rten",
    model(rten_format::Reader::model); create(?); write_to(?));
writers!(writes_zt: ztensor; create(?); write_to(?));

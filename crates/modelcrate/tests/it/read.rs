//! One reader of all formats.

use std::num::NonZeroUsize;

use modelcrate::{
    AnyReader, AnyTensor, Format, SummaryOptions,
    tensor_core::{ErrorKind, Limits, Profile, Verify},
};
use test_support::testdata;

/// A sound file of each format.
const FILES: [(&str, Format); 7] = [
    ("carton/valid/ref_all_dtypes.carton", Format::Carton),
    ("nnpackage/valid/everything.circle", Format::Circle),
    ("nnpackage/valid/06_rich_circle_numeric_versions.zip", Format::NnPackage),
    ("ptl/valid/torch113/img.ptl", Format::Ptl),
    ("rten/valid/mlp.v2.rten", Format::Rten),
    ("nnpackage/valid/everything.tflite", Format::TfLite),
    ("ztensor/valid/v1.1-ref/scalars.zt", Format::ZTensor),
];

#[test]
fn every_format_has_one_face() {
    for (name, format) in FILES {
        let options = AnyReader::options()
            .limits(Limits::default())
            .profile(Profile::Strict)
            .verify(Verify::Once)
            .threads(NonZeroUsize::MIN);
        let reader = options.open(testdata(name)).unwrap();
        assert_eq!(reader.format(), format);
        let source = reader.source().unwrap().clone();
        assert_eq!(AnyReader::from_source(source).unwrap().format(), format);

        let summary = reader.summary(SummaryOptions::default());
        let tensors: Vec<AnyTensor<'_>> = reader.tensors().unwrap().collect();
        let names: Vec<&str> =
            tensors.iter().map(|tensor| tensor.name().unwrap_or_default()).collect();
        let described: Vec<&str> = summary.tensors.iter().map(|tensor| &*tensor.name).collect();
        assert_eq!(names, described, "{name}");
        for (tensor, described) in tensors.iter().zip(&summary.tensors) {
            let Ok(info) = tensor.info() else { continue };
            assert_eq!((Some(info.dtype), &info.shape), (described.dtype, &described.shape));
            let Ok(len) = info.byte_len() else { continue };
            let Ok(read) = tensor.read() else { continue };
            let mut buffer = vec![0; usize::try_from(len).unwrap()];
            tensor.read_into(&mut buffer).unwrap();
            assert_eq!(read.bytes()[..], buffer[..], "{name}: {:?}", tensor.name());
            tensor.verify().unwrap();
        }
        assert!(reader.tensor("no such name").unwrap().is_none());
        let named = names.into_iter().find(|name| !name.is_empty()).unwrap();
        let found = reader.tensor(named).unwrap().unwrap();
        assert_eq!(found.name(), Some(named));
    }
}

#[test]
fn lint_is_a_part_of_validate() {
    for (name, _) in FILES {
        let reader = AnyReader::open(testdata(name)).unwrap();
        let validated = reader.validate();
        for finding in reader.lint().findings() {
            assert!(validated.findings().contains(finding), "{name}: {finding:?}");
        }
    }
}

#[test]
fn progress_comes_to_what_there_is() {
    use std::sync::atomic::{AtomicU64, Ordering};
    for (name, _) in FILES {
        let reader = AnyReader::open(testdata(name)).unwrap();
        let done = AtomicU64::new(0);
        let report = reader.validate_with(|bytes| {
            done.fetch_add(bytes, Ordering::Relaxed);
        });
        assert_eq!(report.worst(), reader.validate().worst());
        assert!(done.into_inner() <= reader.byte_len(), "{name}");
    }
}

#[test]
fn limits_reach_the_reader_of_the_format() {
    let limits =
        Limits::default().with_manifest_bytes(1).with_document_bytes(1).with_directory_bytes(1);
    for (name, _) in FILES {
        let opened = AnyReader::options().limits(limits).open(testdata(name));
        let error = match opened {
            Err(error) => error,
            // What is read without a document of its own.
            Ok(reader) => match reader.format() {
                Format::Circle | Format::TfLite | Format::Rten => continue,
                format => panic!("{format} opened"),
            },
        };
        assert_eq!(error.kind(), ErrorKind::OverLimit, "{name}: {error}");
    }
}

#[test]
fn errors_say_what_they_are_about() {
    let missing = AnyReader::open("none.zt").unwrap_err();
    assert!(!missing.kind().is_file_fault());
    assert_eq!(missing.format(), None);
    let broken = AnyReader::open(testdata("ztensor/invalid/cut_in_blob.zt")).unwrap_err();
    assert_eq!((broken.kind(), broken.format()), (ErrorKind::Malformed, Some(Format::ZTensor)));
    assert_eq!((broken.rule(), broken.at().offset), ("zt/footer", Some(59)));
    assert_eq!(modelcrate::kind_of(&broken), Some(ErrorKind::Malformed));
    let mut tflite = std::fs::read(testdata("nnpackage/valid/everything.tflite")).unwrap();
    tflite[0] = 0xff;
    let broken = AnyReader::from_bytes(tflite).unwrap_err();
    assert_eq!((broken.kind(), broken.format()), (ErrorKind::Malformed, Some(Format::TfLite)));
}

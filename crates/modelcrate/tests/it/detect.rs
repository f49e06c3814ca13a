//! What is read of a file to tell what it is.

use std::fs;

use modelcrate::{AnyReader, Error, Format, detect, tensor_core::Source};
use test_support::{CountingSource, testdata, zip::Zip};

/// A file of each format and container, and how many reads tell it from others: of its first 64
/// bytes, and of the end of an archive or the text of a spec.
const FILES: [(&str, Format, usize); 16] = [
    ("ztensor/valid/v1.1-ref/scalars.zt", Format::ZTensor, 1),
    ("ztensor/valid/legacy/v0_1_file.zt", Format::ZTensor, 1),
    ("nnpackage/valid/everything.circle", Format::Circle, 1),
    ("nnpackage/valid/everything.tflite", Format::TfLite, 1),
    ("ptl/valid/torch113/img_fb.ptl", Format::Ptl, 1),
    ("rten/valid/mlp.v2.rten", Format::Rten, 1),
    ("weights/model.gguf", Format::Gguf, 1),
    ("weights/rows.npy", Format::Npy, 1),
    ("weights/model.safetensors", Format::Safetensors, 1),
    ("weights/model.safetensors.index.json", Format::Safetensors, 2),
    // Its root table, as it has no magic.
    ("rten/valid/mlp.v1.rten", Format::Rten, 2),
    ("weights/arrays.npz", Format::Npz, 2),
    ("carton/valid/ref_full.carton", Format::Carton, 2),
    ("nnpackage/valid/03_two_models_connected.zip", Format::NnPackage, 2),
    ("ptl/valid/torch113/img.ptl", Format::Ptl, 2),
    ("ptl/valid/torch251/img.ptl", Format::Ptl, 2),
];

/// The end of an archive that is looked at, in bytes.
const TAIL: u64 = 128 << 10;

#[test]
fn the_start_and_one_tail_tell() {
    for (name, format, reads) in FILES {
        let bytes = fs::read(testdata(name)).unwrap();
        let store = CountingSource::new(&bytes);
        assert_eq!(detect(&store.source()).unwrap(), Some(format), "{name}");
        let read = store.take_reads();
        assert_eq!(read.len(), reads, "{name}: {read:?}");
        assert_eq!((read[0].offset(), read[0].len()), (0, 64.min(bytes.len() as u64)), "{name}");
        let tail: u64 = read[1..].iter().map(|extent| extent.len()).sum();
        assert!(tail <= TAIL, "{name}: {read:?}");
    }
}

#[test]
fn archives_are_opened_once() {
    for (name, format, reads) in FILES {
        if reads == 1 || matches!(format, Format::Rten | Format::Safetensors) {
            continue;
        }
        let bytes = fs::read(testdata(name)).unwrap();
        let store = CountingSource::new(&bytes);
        let reader = AnyReader::from_source(store.source()).unwrap();
        assert_eq!(reader.format(), format, "{name}");
        let end = bytes.len() as u64;
        let ends = store.take_reads().into_iter().filter(|extent| extent.end() == end);
        assert_eq!(ends.count(), 1, "{name}");
    }
}

#[test]
fn json_is_searched_for_what_specs_have() {
    let spec = br#"{"pack": {"type": "x"}, "unpack": {}}"#;
    for (text, format) in [
        (&spec[..], Some(Format::PtlSpec)),
        (&[&b"\xef\xbb\xbf \n"[..], spec].concat(), Some(Format::PtlSpec)),
        (b"{\"pack\": 1}", None),
        (b"[\"pack\", \"unpack\"]", None),
    ] {
        assert_eq!(detect(&Source::from_bytes(text.to_vec())).unwrap(), format);
    }
}

#[test]
fn what_is_no_model_is_read_no_further() {
    let mut bytes = vec![7; 1 << 20];
    let store = CountingSource::new(&bytes);
    assert_eq!(detect(&store.source()).unwrap(), None);
    assert!(store.total() <= 64 + TAIL, "{:?}", store.take_reads());
    bytes[0] = b'{';
    let store = CountingSource::new(&bytes);
    assert_eq!(detect(&store.source()).unwrap(), None);
}

#[test]
fn archives_that_cannot_be_opened_say_why() {
    let bytes = Zip::of(&[("a", b"b")]).to_bytes();
    let cut_off = &bytes[..bytes.len() - 1];
    assert_eq!(detect(&Source::from_bytes(cut_off.to_vec())).unwrap(), None);
    let error = AnyReader::from_bytes(cut_off.to_vec()).unwrap_err();
    assert!(matches!(error, Error::Archive(_)), "{error}");
    let whole = AnyReader::from_bytes(bytes).unwrap_err();
    let said = whole.to_string();
    let (found, read) = said.split_once(", expected a format that this build reads: ").unwrap();
    assert!(found == "file is a ZIP archive" && read.contains("safetensors"), "{said}");
    assert!(whole.kind().is_file_fault());
}

#[test]
fn folders_of_two_formats_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("MANIFEST"), "{}").unwrap();
    assert!(modelcrate::is_model_folder(folder.path()));
    let error = AnyReader::open(folder.path()).unwrap_err();
    assert_eq!(error.format(), Some(Format::NnPackage));
}

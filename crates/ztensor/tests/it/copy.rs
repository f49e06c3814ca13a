//! Copies between files: what they keep, what the other generation calls otherwise, and blobs that
//! overlap.
#![cfg(feature = "zstd")]

use ztensor::{
    Compression, Csr, Error, Format, Reader, Role, Storage, StoredType, Version, WriteOptions,
    Writer, compact,
    tensor_core::{DType, Limits, TensorBuf, output::Edited},
};

const TYPED: [(DType, &str, &str); 4] = [
    (DType::F8E4M3, "u8", "f8_e4m3fn"),
    (DType::F8E5M2, "u8", "f8_e5m2"),
    (DType::C64, "f32", "complex64"),
    (DType::C128, "f64", "complex128"),
];

fn options(version: Version) -> WriteOptions {
    WriteOptions::default().version(version)
}

fn zstd() -> Storage {
    Storage::default().compression(Compression::Zstd { level: 3, frame: None })
}

/// A file with a tensor of each type that the generations name otherwise, one of `f32`, and a
/// sparse matrix.
fn file(version: Version, storage: Storage) -> Reader {
    let mut writer = options(version).storage(storage).write_to(Vec::new()).unwrap();
    for dtype in TYPED.map(|(dtype, ..)| dtype).into_iter().chain([DType::F32]) {
        let bytes = vec![1; usize::try_from(dtype.byte_len(6).unwrap()).unwrap()];
        writer.add(dtype.name(), &TensorBuf::new(dtype, [2, 3], bytes).unwrap()).unwrap();
    }
    let indices =
        |elements: &[u64]| TensorBuf::from_slice([elements.len() as u64], elements).unwrap();
    let values = TensorBuf::new(DType::C64, [2], vec![1; 16]).unwrap();
    let csr = Csr::from_parts([2, 3], values, indices(&[0, 2]), indices(&[0, 1, 2])).unwrap();
    writer.add_csr("csr", &csr).unwrap();
    Reader::from_bytes(writer.finish().unwrap()).unwrap()
}

fn copied(reader: &Reader, version: Version) -> Reader {
    let mut writer = options(version).write_to(Vec::new()).unwrap();
    reader.tensors().for_each(|tensor| writer.copy(tensor).unwrap());
    Reader::from_bytes(writer.finish().unwrap()).unwrap()
}

/// Proves that two files hold the same elements.
#[track_caller]
fn assert_same(left: &Reader, right: &Reader) {
    let names: Vec<_> = left.manifest().names().collect();
    assert!(right.manifest().names().eq(names.iter().copied()));
    for name in names {
        let (left, right) = (left.tensor(name).unwrap(), right.tensor(name).unwrap());
        assert_eq!(left.info().unwrap(), right.info().unwrap(), "{name}");
        assert_eq!(left.read().unwrap().bytes(), right.read().unwrap().bytes(), "{name}");
    }
}

#[test]
fn types_get_the_names_of_the_other_generation() {
    let versions = [Version::V1_1, Version::V1_2];
    for (from, to) in versions.into_iter().zip(versions.into_iter().rev()) {
        for storage in [Storage::default(), zstd()] {
            let (old, written) = (file(from, storage), file(to, storage));
            let new = copied(&old, to);
            assert_same(&old, &new);
            let report = new.validate();
            assert!(report.is_valid() && (to == Version::V1_1 || report.is_empty()), "{report:?}");
            assert_eq!(new.manifest().version(), written.manifest().version());
            for (copy, written) in new.tensors().zip(written.tensors()) {
                let said = |object: ztensor::Object| -> Vec<_> {
                    let said = |part: &ztensor::Component| {
                        let length = part.uncompressed_length.filter(|_| to == Version::V1_2);
                        (part.dtype.clone(), part.logical_type.clone(), length)
                    };
                    object.components.iter().map(|(_, part)| said(part)).collect()
                };
                assert_eq!(said(copy.object().unwrap()), said(written.object().unwrap()));
            }
            for (dtype, stored, logical) in TYPED {
                let object = new.tensor(dtype.name()).unwrap().object().unwrap();
                let data = object.component(&Role::Data).unwrap();
                assert_eq!(data.element_type(), Some(dtype));
                let expected = match to {
                    Version::V1_1 => (StoredType::Known(dtype).name().to_owned(), None),
                    _ => (stored.to_owned(), Some(logical)),
                };
                let found = (data.dtype.name().to_owned(), data.logical_type.as_deref());
                assert_eq!(found, expected);
                assert!(to == Version::V1_2 || data.uncompressed_length.is_none());
            }
        }
    }
}

#[test]
fn migrating_into_1_2_says_it_in_its_words() {
    let old = file(Version::V1_1, zstd());
    let mut writer = options(Version::V1_2).write_to(Vec::new()).unwrap();
    let report = ztensor::migrate(&old, &mut writer).unwrap();
    assert!(report.is_empty(), "{report:?}");
    let new = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    assert_same(&old, &new);
    assert!(new.validate().is_empty());
}

/// Replaces the one place where some bytes stand in a file.
#[track_caller]
fn patched(reader: &Reader, from: &[u8], to: &[u8]) -> Vec<u8> {
    crate::patched(reader.source().as_slice().unwrap(), from, to)
}

#[test]
fn types_that_are_not_known_stay() {
    let old = patched(&file(Version::V1_2, zstd()), b"f8_e4m3fn", b"f8_e4m3xx");
    let new = copied(&Reader::from_bytes(old).unwrap(), Version::V1_1);
    let object = new.tensor(DType::F8E4M3.name()).unwrap().object().unwrap();
    let data = object.component(&Role::Data).unwrap();
    assert_eq!((data.dtype.name(), data.logical_type.as_deref()), ("u8", Some("f8_e4m3xx")));
}

#[cfg(feature = "digest")]
#[test]
fn keys_that_1_2_names_are_left_out() {
    let storage = Storage::default().digest(tensor_core::digest::Algorithm::Crc32c);
    let mut writer = options(Version::V1_1).storage(storage).write_to(Vec::new()).unwrap();
    writer.add("w", &TensorBuf::new(DType::F8E4M3, [2], vec![1, 2]).unwrap()).unwrap();
    let old = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    let object = old.tensor("w").unwrap().object().unwrap();
    // In place of the digest comes a `type` of bytes, which 1.1 ignores and 1.2 writes as text.
    let digest = object.components[0].1.digest.clone().unwrap();
    let digest = ["\x66digest\x71", &digest].concat();
    let old = patched(&old, digest.as_bytes(), b"\x64type\x53nineteen bytes here");
    let old = Reader::from_bytes(old).unwrap();
    assert_same(&old, &copied(&old, Version::V1_2));
    let mut writer = options(Version::V1_2).write_to(Vec::new()).unwrap();
    let report = ztensor::migrate(&old, &mut writer).unwrap();
    assert_eq!(report.findings()[0].rule, "zt/migrate-key");
    assert_same(&old, &Reader::from_bytes(writer.finish().unwrap()).unwrap());
}

/// Two tensors of 128 bytes, the second of which starts at `offset`.
fn two_blobs(offset: u8) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for name in ["a", "b"] {
        writer.add(name, &TensorBuf::new(DType::U8, [128], vec![7; 128]).unwrap()).unwrap();
    }
    let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    // The text "offset", and a byte behind the head of a number of one byte.
    patched(&reader, b"foffset\x18\xc0", &[&b"foffset\x18"[..], &[offset]].concat())
}

#[test]
fn blobs_that_overlap_are_not_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.zt");
    let overlapping = two_blobs(128);
    std::fs::write(&path, &overlapping).unwrap();
    let error = compact(&path, WriteOptions::default()).unwrap_err();
    let expected = "object \"b\": component \"data\" covers 128 bytes at byte 128, which overlap 128 \
                    bytes at byte 64 that were copied, expected the same or others";
    assert_eq!(error.to_string(), expected);
    assert_eq!(std::fs::read(&path).unwrap(), overlapping);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let mut writer = Writer::new(Vec::new());
    let migrated = ztensor::migrate(&Reader::from_bytes(overlapping).unwrap(), &mut writer);
    assert!(matches!(migrated, Err(Error::Layout { object, .. }) if object == "b"));
}

#[test]
fn blobs_that_are_the_same_are_copied_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.zt");
    std::fs::write(&path, two_blobs(64)).unwrap();
    let edited = compact(&path, WriteOptions::default()).unwrap();
    let Edited::Replaced { before, after } = edited else { panic!("{edited:?}") };
    assert_eq!(before - after, 128);
    let reader = Reader::open(&path).unwrap();
    for tensor in reader.tensors() {
        assert_eq!(tensor.object().unwrap().components[0].1.offset, 64);
        assert_eq!(tensor.bytes().unwrap(), [7; 128][..]);
    }
}

#[test]
fn inline_coordinates_hold_to_the_limit() {
    let record = |row: u64, column: u64, value: u8| {
        [&row.to_le_bytes()[..], &column.to_le_bytes(), &[value]].concat()
    };
    let mut writer = Writer::new(Vec::new());
    let mut object = writer.object("s").unwrap();
    let bytes = [record(0, 2, 5), record(1, 0, 6)].concat();
    object.put(Role::Data, DType::U8, &bytes).unwrap();
    object.finish(Format::Other("sparsecox".to_owned()), [2, 3]).unwrap();
    let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    let bytes = patched(&reader, b"sparsecox", b"sparsecoo");
    let read = |limit: u64| {
        let limits = Limits::default().with_decoded_bytes(limit);
        let reader = Reader::options().limits(limits).from_bytes(bytes.clone()).unwrap();
        reader.tensor("s").unwrap().read()
    };
    assert_eq!(read(34).unwrap().bytes()[..], [0, 0, 5, 6, 0, 0]);
    let error = read(33).unwrap_err();
    let cause = std::error::Error::source(&error);
    assert!(matches!(error, Error::Component { .. }), "{error:?} {cause:?}");
    assert!(error.to_string().contains("over the limit of 33"), "{error}");
}

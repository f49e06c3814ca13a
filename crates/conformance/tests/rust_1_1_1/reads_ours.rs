//! The reference reads what our writer writes, also where its own would write other bytes.

use std::num::NonZeroU64;

use conformance::samples::{DTYPES, bytes, tensor};
use reference::{ZTensorError, ZTensorReader};
use ztensor::{
    Attributes, Compression, Format, Reader, Role, Storage, Value, Version, WriteOptions, Writer,
    tensor_core::{DType, TensorBuf, digest::Algorithm},
};

use crate::{Content, File, assert_same, every_kind, open, storages, with_element, zstd};

/// Asserts that the reference and we ourselves read all of `file` from what our writer makes of it.
#[track_caller]
fn assert_read(file: &File, options: WriteOptions) {
    let bytes = file.by_us(options);
    file.assert_read_by_them(&bytes);
    file.assert_read_by_us(&bytes);
}

fn frames(bytes: u64) -> Storage {
    let frame = NonZeroU64::new(bytes);
    Storage::default().compression(Compression::Zstd { level: 3, frame })
}

#[test]
fn several_frames_in_a_row() {
    for frame in [1, 7, 64, 1_000, u64::MAX] {
        let storage = frames(frame).digest(Algorithm::Crc32c);
        assert_read(&every_kind().stored(storage), WriteOptions::default());
    }
    let mut mixed = File::dense([("frames", tensor(DType::U8, [100]))]).stored(frames(10));
    mixed.push("raw", Content::Stored(tensor(DType::BF16, [100]), Storage::default()));
    assert_read(&mixed, WriteOptions::default());
    let long = File::dense([("t", tensor(DType::F16, [300_000]))]);
    assert_read(&long.stored(frames(65_536)), WriteOptions::default());
}

#[test]
fn coarser_alignments() {
    for alignment in [64, 128, 192, 4_096, 65_536] {
        let file = every_kind();
        let bytes = file.by_us(WriteOptions::default().alignment(alignment));
        file.assert_read_by_them(&bytes);
        for object in open(&bytes).list_objects().values() {
            for component in object.components.values() {
                assert_eq!(component.offset % alignment, 0);
            }
        }
    }
}

#[test]
fn mapped_slices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.zt");
    for alignment in [64, 4_096] {
        let mut writer = WriteOptions::default().alignment(alignment).create(&path).unwrap();
        for dtype in DTYPES {
            writer.add(dtype.name(), &tensor(dtype, [3, 5])).unwrap();
        }
        writer.finish().unwrap();
        let reader = ZTensorReader::open_mmap(&path).unwrap();
        for dtype in DTYPES {
            let expected = tensor(dtype, [3, 5]);
            assert_eq!(reader.get_object_slice(dtype.name()).unwrap(), &expected.bytes()[..]);
            with_element!(dtype, T => {
                let slice = reader.get_object_slice_as::<T>(dtype.name()).unwrap();
                assert_same(&TensorBuf::from_slice([3, 5], slice).unwrap(), &expected);
            });
        }
    }
}

#[test]
fn file_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.zt");
    let file = every_kind();
    let mut writer = Writer::create(&path).unwrap();
    file.write(&mut writer);
    writer.finish().unwrap();
    let mut reader = ZTensorReader::open(&path).unwrap();
    for entry in &file.entries {
        entry.assert_read_by(&mut reader);
    }
}

/// That a digest passes proves little where it may not have been looked at.
#[test]
fn damage_under_a_digest() {
    for algorithm in [Algorithm::Sha256, Algorithm::Crc32c] {
        for compression in [Compression::None, zstd(3), frames(100).compression] {
            let storage = Storage::default().compression(compression).digest(algorithm);
            let file = File::dense([("t", tensor(DType::U8, [1_000]))]).stored(storage);
            let mut bytes = file.by_us(WriteOptions::default());
            bytes[64 + 20] ^= 1;
            let error = open(&bytes).read_object("t", true).unwrap_err();
            assert!(matches!(error, ZTensorError::ChecksumMismatch { .. }), "{error}");
        }
    }
}

#[test]
fn attributes_of_objects() {
    let values: [(&str, Value, &str); 17] = [
        ("null", Value::Null, "Null"),
        ("no", false.into(), "Bool(false)"),
        ("yes", true.into(), "Bool(true)"),
        ("one byte", 23_u64.into(), "Integer(23)"),
        ("two bytes", 24_u64.into(), "Integer(24)"),
        ("largest", u64::MAX.into(), "Integer(18446744073709551615)"),
        ("negative", (-1_i64).into(), "Integer(-1)"),
        ("smallest", Value::Integer(-(1 << 64)), "Integer(-18446744073709551616)"),
        ("half", 1.5.into(), "Float(1.5)"),
        ("single", f64::from(0.1_f32).into(), "Float(0.10000000149011612)"),
        ("double", 0.1.into(), "Float(0.1)"),
        ("infinite", f64::NEG_INFINITY.into(), "Float(-inf)"),
        ("nan", f64::NAN.into(), "Float(NaN)"),
        ("text", "é\n".into(), r#"Text("é\n")"#),
        ("bytes", Value::Bytes(vec![0, 255]), "Bytes([0, 255])"),
        ("list", Value::Array(vec![1_u64.into(), "a".into()]), r#"Array([Integer(1), Text("a")])"#),
        (
            "map",
            Value::Map(vec![(1_u64.into(), Value::Map(vec![("a".into(), Value::Null)]))]),
            r#"Map({Integer(1): Map({Text("a"): Null})})"#,
        ),
    ];
    let mut writer = Writer::new(Vec::new());
    let mut object = writer.object("t").unwrap();
    object.set_attributes(&values.iter().map(|(key, value, _)| (*key, value.clone())).collect());
    object.put(Role::Data, DType::U8, &[1, 2]).unwrap();
    object.finish(Format::Dense, [2]).unwrap();
    let bytes = writer.finish().unwrap();
    let mut reader = open(&bytes);
    assert_eq!(reader.read_object("t", true).unwrap(), [1, 2]);
    let found = reader.get_object("t").unwrap().attributes.clone().unwrap();
    assert_eq!(found.len(), values.len());
    for (key, _, expected) in &values {
        assert_eq!(format!("{:?}", found[*key]), *expected, "{key}");
    }
}

/// The reference reads a quantized tensor only one component at a time.
#[test]
fn quantized_components() {
    let attributes: Attributes = [
        ("bits", Value::from(4_u64)),
        ("group_size", 16_u64.into()),
        ("packing", "8_per_i32".into()),
    ]
    .into_iter()
    .collect();
    for storage in storages() {
        let mut writer = WriteOptions::default().storage(storage).write_to(Vec::new()).unwrap();
        let mut object = writer.object("q").unwrap();
        object.set_attributes(&attributes);
        let parts = [
            (Role::PackedWeight, tensor(DType::I32, [16])),
            (Role::Scales, tensor(DType::F16, [8])),
            (Role::Zeros, tensor(DType::F16, [8])),
        ];
        for (role, part) in &parts {
            object.put(role.clone(), part.dtype(), part.bytes()).unwrap();
        }
        object.finish(Format::QuantizedGroup, [8, 16]).unwrap();
        let file = writer.finish().unwrap();
        assert_eq!(Reader::from_bytes(file.clone()).unwrap().validate().findings(), []);
        let mut reader = open(&file);
        let object = reader.get_object("q").unwrap().clone();
        assert_eq!(object.format, "quantized_group");
        assert_eq!(object.shape, [8, 16]);
        for (role, part) in &parts {
            let component = &object.components[role.as_str()];
            assert_eq!(component.dtype, crate::their_dtype(part));
            assert_eq!(reader.read_component(component).unwrap(), *part.bytes());
        }
    }
}

#[test]
fn components_of_a_format_of_our_own() {
    let mut writer = Writer::new(Vec::new());
    let mut object = writer.object("t").unwrap();
    object.put(Role::Other("codes".to_owned()), DType::U8, &bytes(100)).unwrap();
    object.put(Role::Other("book".to_owned()), DType::F32, &bytes(16)).unwrap();
    object.finish(Format::Other("codebook".to_owned()), [10, 10]).unwrap();
    let bytes_of_file = writer.finish().unwrap();
    let mut reader = open(&bytes_of_file);
    let object = reader.get_object("t").unwrap().clone();
    assert_eq!(object.format, "codebook");
    assert_eq!(reader.read_component(&object.components["codes"]).unwrap(), bytes(100));
    assert_eq!(reader.read_component(&object.components["book"]).unwrap(), bytes(16));
}

/// Generation 1.2 is the same to a reader of 1.1, which ignores the keys that it does not know.
#[test]
fn later_version_of_what_1_1_has() {
    for storage in storages() {
        let file = every_kind().stored(storage);
        assert_read(&file, WriteOptions::default().version(Version::V1_2));
    }
}

/// A reader of 1.1 sees the elements that store the others.
#[test]
fn later_version_of_what_1_1_lacks() {
    for (dtype, stored) in [
        (DType::F8E4M3, reference::DType::U8),
        (DType::F8E5M2, reference::DType::U8),
        (DType::C64, reference::DType::F32),
        (DType::C128, reference::DType::F64),
    ] {
        for storage in storages() {
            let data = tensor(dtype, [6]);
            let options = WriteOptions::default().version(Version::V1_2).storage(storage);
            let mut writer = options.write_to(Vec::new()).unwrap();
            writer.add("t", &data).unwrap();
            let file = writer.finish().unwrap();
            let mut reader = open(&file);
            let component = reader.get_object("t").unwrap().components["data"].clone();
            assert_eq!(component.dtype, stored);
            assert_eq!(reader.read_component(&component).unwrap(), *data.bytes(), "{dtype}");
        }
    }
}

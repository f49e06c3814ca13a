//! What the writer emits: the bytes of the reference, every option, and what it refuses.
#![cfg(all(feature = "digest", feature = "zstd"))]

use std::{
    cell::Cell,
    io::Write as _,
    num::{NonZeroU64, NonZeroUsize},
    rc::Rc,
};

use proptest::prelude::*;
use test_support::{assert_bytes, files, testdata};
use ztensor::{
    Attributes, Blob, Compression, Coo, Csr, Encoding, Error, Format, Reader, Role, Storage, Value,
    Version, WriteOptions, Writer,
    tensor_core::{DType, ErrorKind, TensorBuf, digest::Algorithm},
};

const DTYPES: [DType; 17] = [
    DType::F64,
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::C64,
    DType::C128,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool,
];

fn tensor(dtype: DType, elements: u64) -> TensorBuf {
    let len = dtype.byte_len(elements).unwrap();
    let byte = |at: u64| if dtype == DType::Bool { at % 2 } else { at % 251 };
    let bytes: Vec<u8> = (0..len).map(|at| u8::try_from(byte(at)).unwrap()).collect();
    TensorBuf::new(dtype, [elements], bytes).unwrap()
}

fn zstd(level: i32) -> Storage {
    Storage::default().compression(Compression::Zstd { level, frame: None })
}

/// Copies a file object by object, in the order of its blobs, decoding and encoding again.
fn rewritten(reader: &Reader) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    if let Some(attributes) = reader.manifest().attributes().unwrap() {
        writer.set_attributes(&attributes);
    }
    let mut tensors: Vec<_> = reader.tensors().collect();
    tensors.sort_by_key(|tensor| {
        let object = tensor.object().unwrap();
        object.components.iter().map(|(_, c)| (c.offset, c.length)).min()
    });
    for tensor in tensors {
        let object = tensor.object().unwrap();
        let mut components: Vec<_> = object.components.iter().collect();
        components.sort_by_key(|(_, component)| (component.offset, component.length));
        match object.format {
            Format::SparseCsr | Format::SparseCoo => writer.copy(tensor).unwrap(),
            ref format => {
                let mut out = writer.object(tensor.name()).unwrap();
                if let Some(attributes) = tensor.attributes().unwrap() {
                    out.set_attributes(&attributes);
                }
                for (role, component) in components {
                    let blob = tensor.blob(role).unwrap().unwrap();
                    let mut storage = Storage::default();
                    if component.encoding == Encoding::Zstd {
                        storage = zstd(level_of(&blob));
                    }
                    storage.digest = component.digest.as_deref().map(|digest| match digest {
                        text if text.starts_with("sha256:") => Algorithm::Sha256,
                        _ => Algorithm::Crc32c,
                    });
                    out.set_storage(storage);
                    out.put(role.clone(), blob.element_type().unwrap(), &blob.bytes().unwrap())
                        .unwrap();
                }
                out.finish(format.clone(), object.shape).unwrap();
            }
        }
    }
    writer.finish().unwrap()
}

/// Finds the level at which our writer makes the stored bytes of a component: the files do not say
/// which one the reference was given. There is none unless the bytes are the same.
fn level_of(blob: &Blob<'_>) -> i32 {
    let (stored, bytes) = (blob.stored().unwrap(), blob.bytes().unwrap());
    let dtype = blob.element_type().unwrap();
    let at_level = |level: i32| {
        let mut writer = Writer::options().storage(zstd(level)).write_to(Vec::new()).unwrap();
        let mut object = writer.object("t").unwrap();
        object.put(Role::Data, dtype, &bytes).unwrap();
        object.finish(Format::Other("any".to_owned()), [0]).unwrap();
        let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
        reader.tensor("t").unwrap().blob(&Role::Data).unwrap().unwrap().stored().unwrap()
    };
    let levels = [3].into_iter().chain(-7..=22);
    levels.into_iter().find(|level| at_level(*level) == stored).expect("no level makes these bytes")
}

#[test]
fn files_of_the_reference_come_out_byte_for_byte() {
    let mut same = 0;
    for path in files("ztensor/valid/v1.1-ref", "zt") {
        // It was written twice under one name, which left an orphaned blob.
        if path.ends_with("duplicate_add_last_wins.zt") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let reader = Reader::from_bytes(bytes.clone()).unwrap();
        assert_bytes(&rewritten(&reader), &bytes, &path.display().to_string());
        same += 1;
    }
    assert_eq!(same, 14);
}

#[test]
fn stored_bytes_are_copied_as_they_are() {
    for path in files("ztensor/valid/v1.1-ref", "zt") {
        let bytes = std::fs::read(&path).unwrap();
        let reader = Reader::from_bytes(bytes.clone()).unwrap();
        let report = reader.validate();
        let mut writer = Writer::new(Vec::new());
        let migrated = ztensor::migrate(&reader, &mut writer).unwrap();
        assert!(migrated.is_empty(), "{migrated:?}");
        let copy = writer.finish().unwrap();
        if report.is_empty() {
            assert_bytes(&copy, &bytes, &path.display().to_string());
        } else {
            assert!(path.ends_with("duplicate_add_last_wins.zt"), "{path:?}: {report:?}");
        }
    }
}

#[test]
fn the_empty_file_has_48_bytes() {
    // Facts, section 2.
    let expected = b"ZTEN1000\xa2gversione1.1.0gobjects\xa0\x18\0\0\0\0\0\0\0ZTEN1000";
    assert_bytes(&Writer::new(Vec::new()).finish().unwrap(), expected, "empty file");
}

#[test]
fn every_option_reads_back_and_validates() {
    let frame = NonZeroU64::new(100).unwrap();
    let storages = [
        Storage::default(),
        Storage::default().digest(Algorithm::Sha256),
        zstd(3),
        zstd(-5).digest(Algorithm::Crc32c),
        Storage::default().compression(Compression::Zstd { level: 1, frame: Some(frame) }),
    ];
    for version in [Version::V1_1, Version::V1_2] {
        for (storage, alignment) in storages.into_iter().flat_map(|s| [(s, 64), (s, 4096)]) {
            let options =
                WriteOptions::default().version(version).alignment(alignment).storage(storage);
            let mut writer = options.write_to(Vec::new()).unwrap();
            for dtype in DTYPES {
                for elements in [0, 1, 77] {
                    let name = format!("{dtype} {elements}");
                    writer.add(&name, &tensor(dtype, elements)).unwrap();
                }
            }
            let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
            let report = reader.validate();
            assert!(report.is_empty(), "{options:?}: {report:?}");
            for dtype in DTYPES {
                for elements in [0, 1, 77] {
                    let found = reader.tensor(&format!("{dtype} {elements}")).unwrap();
                    let expected = tensor(dtype, elements);
                    assert_eq!(found.info().unwrap(), *expected.info(), "{options:?}");
                    assert_eq!(found.bytes().unwrap(), *expected.bytes(), "{options:?}");
                    let offset = found.object().unwrap().components[0].1.offset;
                    assert!(offset.is_multiple_of(alignment), "{offset}");
                }
            }
        }
    }
}

#[test]
fn sparse_and_quantized_objects_read_back() {
    let values = TensorBuf::from_slice([3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let indices = TensorBuf::from_slice([3], &[0_u16, 2, 1]).unwrap();
    let indptr = TensorBuf::from_slice([3], &[0_i32, 2, 3]).unwrap();
    let csr = Csr::from_parts([2, 3], values.clone(), indices, indptr).unwrap();
    let coords = TensorBuf::from_slice([6], &[0_u8, 0, 1, 0, 2, 1]).unwrap();
    let coo = Coo::from_parts([2, 3], values, coords).unwrap();
    for storage in [Storage::default(), zstd(3)] {
        let mut writer = Writer::options().storage(storage).write_to(Vec::new()).unwrap();
        writer.add_csr("csr", &csr).unwrap();
        writer.add_coo("coo", &coo).unwrap();
        let mut object = writer.object("q").unwrap();
        let pair = |key: &str, value: i64| (key.to_owned(), Value::from(value));
        object.set_attributes(&[pair("bits", 4), pair("group_size", 8)].into_iter().collect());
        object.put(Role::PackedWeight, DType::I32, &[0x21; 8]).unwrap();
        object.put(Role::Scales, DType::F32, &[0; 8]).unwrap();
        object.put(Role::Zeros, DType::F32, &[0; 8]).unwrap();
        object.finish(Format::QuantizedGroup, [2, 8]).unwrap();
        let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
        let report = reader.validate();
        assert!(report.is_empty(), "{report:?}");
        for name in ["csr", "coo"] {
            let dense = reader.tensor(name).unwrap().read().unwrap();
            assert_eq!(dense.to_vec::<f32>().unwrap(), [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
        }
        assert_eq!(reader.tensor("q").unwrap().quantized().unwrap().bits(), 4);
    }
}

#[test]
fn pieces_of_any_size_make_the_same_file() {
    let whole = tensor(DType::I16, 5000);
    let frame = NonZeroU64::new(1024);
    for storage in [
        Storage::default(),
        zstd(3),
        Storage::default().compression(Compression::Zstd { level: 3, frame }),
    ] {
        let file = |piece: usize| {
            let mut writer = Writer::options().storage(storage).write_to(Vec::new()).unwrap();
            let mut object = writer.object("t").unwrap();
            let mut component = object.component(Role::Data, DType::I16).unwrap();
            for piece in whole.bytes().chunks(piece) {
                component.write_all(piece).unwrap();
            }
            let len = component.finish().unwrap();
            object.finish(Format::Dense, [len / 2]).unwrap();
            writer.finish().unwrap()
        };
        let expected = file(whole.bytes().len());
        for piece in [1, 7, 1024, 4096] {
            assert_bytes(&file(piece), &expected, &format!("pieces of {piece}"));
        }
    }
}

#[test]
fn threads_do_not_show() {
    let frame = NonZeroU64::new(1000);
    let storage = Storage::default().compression(Compression::Zstd { level: 3, frame });
    let file = |threads: usize| {
        let threads = NonZeroUsize::new(threads).unwrap();
        let mut writer =
            Writer::options().storage(storage).threads(threads).write_to(Vec::new()).unwrap();
        writer.add("t", &tensor(DType::F32, 12_345)).unwrap();
        writer.finish().unwrap()
    };
    for threads in 2..6 {
        assert_bytes(&file(threads), &file(1), &format!("{threads} threads"));
    }
}

#[test]
fn attributes_of_every_type_read_back() {
    let attributes: Attributes = [
        ("null", Value::Null),
        ("yes", Value::Bool(true)),
        ("least", Value::Integer(-(1 << 64))),
        ("most", Value::Integer((1 << 64) - 1)),
        ("half", Value::Float(1.5)),
        ("double", Value::Float(0.1)),
        ("bytes", Value::Bytes(vec![0, 255])),
        ("list", Value::Array(vec![Value::from("x"), Value::Null])),
        ("map", Value::Map(vec![(Value::Integer(1), Value::from("one"))])),
        ("tag", Value::Tag(32, Box::new(Value::from("x:y")))),
    ]
    .into_iter()
    .collect();
    let mut writer = Writer::new(Vec::new());
    writer.set_attributes(&attributes);
    let mut object = writer.object("t").unwrap();
    object.set_attributes(&attributes);
    object.put(Role::Data, DType::U8, &[1]).unwrap();
    object.finish(Format::Dense, [1]).unwrap();
    let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(reader.manifest().attributes().unwrap(), Some(attributes.clone()));
    assert_eq!(reader.tensor("t").unwrap().attributes().unwrap(), Some(attributes));
}

#[track_caller]
fn refuses<T>(result: Result<T, Error>, message: &str) {
    match result {
        Ok(_) => panic!("accepted, expected: {message}"),
        Err(error) => assert_eq!(error.to_string(), message),
    }
}

#[test]
fn a_name_twice() {
    let mut writer = Writer::new(Vec::new());
    writer.add("w", &tensor(DType::U8, 1)).unwrap();
    let error = writer.add("w", &tensor(DType::U8, 1));
    refuses(error, "object \"w\" is there already, expected a new name");
    // Nothing was written, so the writer goes on.
    writer.add("v", &tensor(DType::U8, 1)).unwrap();
    assert_eq!(Reader::from_bytes(writer.finish().unwrap()).unwrap().manifest().len(), 2);
}

#[test]
fn data_that_does_not_fit_the_shape() {
    let mut writer = Writer::new(Vec::new());
    let mut object = writer.object("w").unwrap();
    object.put(Role::Data, DType::F32, &[0; 8]).unwrap();
    refuses(
        object.finish(Format::Dense, [3]),
        "component \"data\" of object \"w\" is 8 bytes long at byte 64, but shape [3] of f32 needs 12",
    );
    let message = "object \"w\" was not finished, so nothing more can be written";
    refuses(writer.add("v", &tensor(DType::U8, 1)), message);
    refuses(writer.finish(), message);
}

#[test]
fn a_component_that_was_not_finished() {
    let mut writer = Writer::new(Vec::new());
    let mut object = writer.object("w").unwrap();
    object.component(Role::Data, DType::F32).unwrap().write_all(&[0; 4]).unwrap();
    let message = "object \"w\" was not finished, so nothing more can be written";
    refuses(object.component(Role::Data, DType::F32), message);
    refuses(object.put(Role::Scales, DType::F32, &[0; 4]), message);
    refuses(object.finish(Format::Dense, [1]), message);
}

#[test]
fn a_role_twice_under_two_names() {
    let mut writer = Writer::new(Vec::new());
    let mut object = writer.object("w").unwrap();
    object.put(Role::Data, DType::U8, &[1]).unwrap();
    refuses(
        object.put(Role::Other("data".to_owned()), DType::U8, &[1]),
        "object \"w\": component \"data\" is written twice",
    );
}

#[test]
fn formats_that_are_spelled_out() {
    let finish = |format: &str, bytes: &[u8]| {
        let mut writer = Writer::new(Vec::new());
        let mut object = writer.object("w").unwrap();
        object.put(Role::Other("data".to_owned()), DType::U8, bytes).unwrap();
        object.finish(Format::Other(format.to_owned()), [3])
    };
    finish("dense", &[1, 2, 3]).unwrap();
    finish("anything", &[1]).unwrap();
    for (format, message) in [
        (
            "dense",
            "component \"data\" of object \"w\" is 1 bytes long at byte 64, but shape [3] of u8 needs 3",
        ),
        ("sparse_csr", "object \"w\": format sparse_csr is written by finish_csr and finish_coo"),
        (
            "quantized_group",
            "object \"w\" of format \"quantized_group\" has no component \"packed_weight\"",
        ),
        ("sparsecsr", "object \"w\": format sparsecsr is one of generation 0.1, expected a later"),
        ("sparsecoo", "object \"w\": format sparsecoo is one of generation 0.1, expected a later"),
    ] {
        refuses(finish(format, &[1]), message);
    }
}

#[test]
fn ranks_have_a_limit() {
    let file = |rank: usize| {
        let mut writer = Writer::new(Vec::new());
        let mut object = writer.object("w").unwrap();
        object.put(Role::Data, DType::U8, &[1])?;
        object.finish(Format::Dense, vec![1; rank])?;
        writer.finish()
    };
    let reader = Reader::from_bytes(file(1 << 16).unwrap()).unwrap();
    assert!(reader.validate().is_empty());
    refuses(file((1 << 16) + 1), "rank is 65537, over the limit of 65536 (Limits::rank)");
}

/// Writes a file with attributes of its own, and one whose object has them.
fn with_attributes(attributes: &Attributes) -> [Result<Vec<u8>, Error>; 2] {
    let of_file = || {
        let mut writer = Writer::new(Vec::new());
        writer.set_attributes(attributes);
        writer.finish()
    };
    let of_object = || {
        let mut writer = Writer::new(Vec::new());
        let mut object = writer.object("w")?;
        object.set_attributes(attributes);
        object.put(Role::Data, DType::U8, &[1])?;
        object.finish(Format::Dense, [1])?;
        writer.finish()
    };
    [of_file(), of_object()]
}

#[test]
fn attributes_nest_126_levels() {
    let nested = |levels: usize| -> Attributes {
        let most = Value::Integer(1 << 64);
        let value = (0..levels).fold(most, |value, level| match level % 3 {
            0 => Value::Array(vec![Value::Null, value]),
            1 => Value::Tag(1000, Box::new(value)),
            _ => Value::Map(vec![(Value::Null, value)]),
        });
        [("deep", value)].into_iter().collect()
    };
    for file in with_attributes(&nested(126)) {
        let report = Reader::from_bytes(file.unwrap()).unwrap().validate();
        assert!(report.is_valid(), "{report:?}");
    }
    for file in with_attributes(&nested(127)) {
        refuses(file, "nesting of attributes in levels is 127, expected at most 126");
    }
}

#[test]
fn equal_keys_in_an_attribute() {
    let pair = |key: Value| (key, Value::Null);
    let bignum = (1_u128 << 64).to_be_bytes().to_vec();
    for (pairs, key) in [
        (vec![pair(Value::from("a")), pair(Value::from("a"))], "a"),
        (
            vec![
                pair(Value::Integer(1 << 64)),
                pair(Value::Tag(2, Box::new(Value::Bytes(bignum)))),
            ],
            "2(h'00000000000000010000000000000000')",
        ),
    ] {
        let attributes: Attributes = [("map", Value::Map(pairs))].into_iter().collect();
        for (file, name) in with_attributes(&attributes).into_iter().zip(["", "w"]) {
            let path = "attributes.\"map\"";
            let message =
                format!("object {name:?}: {path} has the key {key:?} twice, expected one");
            refuses(file, &message);
        }
    }
}

#[test]
fn attributes_over_64_mib() {
    let attributes = |bytes: usize| -> Attributes {
        [("b", Value::Bytes(vec![0; bytes]))].into_iter().collect()
    };
    // A map of one, its key, and the head of the bytes take 1, 2 and 5 bytes.
    let room = (64 << 20) - 8;
    for file in with_attributes(&attributes(room)) {
        let reader = Reader::from_bytes(file.unwrap()).unwrap();
        reader.manifest().attributes().unwrap();
        reader.tensors().for_each(|tensor| drop(tensor.attributes().unwrap()));
    }
    for file in with_attributes(&attributes(room + 1)) {
        refuses(
            file,
            "length of attributes in bytes is 67108865, over the limit of 67108864 \
             (Limits::metadata_bytes)",
        );
    }
}

#[test]
fn attributes_that_are_set_anew_are_written() {
    let pair = || (Value::Null, Value::Null);
    let refused = [("map", Value::Map(vec![pair(), pair()]))].into_iter().collect();
    let mut writer = Writer::new(Vec::new());
    writer.set_attributes(&refused);
    let attributes: Attributes = [("key", "value")].into_iter().collect();
    writer.set_attributes(&attributes);
    let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(reader.manifest().attributes().unwrap(), Some(attributes));
}

#[test]
fn bools_other_than_0_and_1() {
    let mut writer = Writer::new(Vec::new());
    let odd = TensorBuf::new(DType::Bool, [3], vec![0, 1, 7]).unwrap();
    refuses(
        writer.add("b", &odd),
        "component \"data\" of object \"b\" has a bool at element 2 that is 7, expected 0 or 1",
    );
}

#[test]
fn types_that_the_format_lacks() {
    let mut writer = Writer::new(Vec::new());
    let packed = TensorBuf::new(DType::I4, [2], vec![0]).unwrap();
    refuses(
        writer.add("p", &packed),
        "component \"data\" of object \"p\" has dtype \"i4\", expected one of the format's element types",
    );
}

#[test]
fn settings_out_of_range() {
    assert!(Writer::options().alignment(1 << 26).write_to(Vec::new()).is_ok());
    for alignment in [0, 1, 32, 65, (1 << 26) + 64, 1 << 40] {
        refuses(
            Writer::options().alignment(alignment).write_to(Vec::new()),
            &format!(
                "alignment in bytes is {alignment}, expected a multiple of 64, at most 67108864"
            ),
        );
    }
    refuses(
        Writer::options().storage(zstd(99)).write_to(Vec::new()),
        "compression level is 99, expected a level of zstd, at most 22",
    );
}

#[test]
fn sparse_parts_that_contradict_each_other() {
    let values = TensorBuf::from_slice([2], &[1.0_f32, 2.0]).unwrap();
    let u64s = |elements: &[u64]| TensorBuf::from_slice([elements.len() as u64], elements).unwrap();
    let csr = |indices: &[u64], indptr: &[u64]| {
        Csr::from_parts([2, 3], values.clone(), u64s(indices), u64s(indptr))
    };
    csr(&[0, 2], &[0, 1, 2]).unwrap();
    assert_eq!(csr(&[0, 3], &[0, 1, 2]).unwrap_err().kind(), ErrorKind::Usage);
    refuses(csr(&[0, 3], &[0, 1, 2]), "indices[1] is 3, expected below 3");
    refuses(csr(&[0, 2], &[1, 1, 2]), "indptr[0] is 1, expected 0");
    refuses(csr(&[0, 2], &[0, 2, 1]), "indptr[2] is 1, below the 2 before it");
    refuses(csr(&[0, 2], &[0, 1, 3]), "indptr[2] is 3, but values has 2 elements");
    refuses(csr(&[0, 2], &[0, 1, 1]), "indptr ends at 1, but values has 2 elements");
    refuses(csr(&[0], &[0, 1, 2]), "values has 2 elements, but indices has 1");
}

#[test]
fn an_unfinished_file_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.zt");
    std::fs::copy(testdata("ztensor/valid/v1.1-ref/scalars.zt"), &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut writer = Writer::create(&path).unwrap();
    writer.add("w", &tensor(DType::F32, 1000)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Takes so many bytes, and fails at the next.
struct Full {
    room: u64,
    written: Rc<Cell<u64>>,
}

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = self.room.saturating_sub(self.written.get()).min(bytes.len() as u64);
        if taken == 0 && !bytes.is_empty() {
            return Err(std::io::Error::other("disk is full"));
        }
        self.written.set(self.written.get() + taken);
        Ok(usize::try_from(taken).unwrap())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn failing_writes_say_where() {
    let frame = NonZeroU64::new(50);
    for storage in [
        Storage::default(),
        zstd(3),
        Storage::default().compression(Compression::Zstd { level: 3, frame }),
    ] {
        let written = Rc::new(Cell::new(0));
        let write = |room: u64| {
            written.set(0);
            let sink = Full { room, written: Rc::clone(&written) };
            let mut writer = Writer::options().storage(storage).write_to(sink)?;
            writer.add("a", &tensor(DType::F32, 100))?;
            writer.add("b", &tensor(DType::U8, 100))?;
            writer.finish().map(drop)
        };
        write(u64::MAX).unwrap();
        for room in 0..written.get() {
            let error = write(room).unwrap_err();
            assert!(matches!(error, Error::Write { .. }), "{error:?}");
            assert_eq!((error.at().offset, written.get()), (Some(room), room), "{storage:?}");
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-(1_i128 << 64)..(1_i128 << 64)).prop_map(Value::Integer),
        any::<f64>().prop_filter("NaN differs from itself", |x| !x.is_nan()).prop_map(Value::Float),
        ".{0,9}".prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(".{0,3}", inner.clone(), 0..5).prop_map(|map| {
                Value::Map(map.into_iter().map(|(k, v)| (Value::Text(k), v)).collect())
            }),
            (6_u64..1000, inner).prop_map(|(tag, value)| Value::Tag(tag, Box::new(value))),
        ]
    })
}

proptest! {
    #[test]
    fn any_attribute_reads_back(key in ".{0,5}", value in any_value()) {
        let attributes: Attributes = [(key, value)].into_iter().collect();
        let mut writer = Writer::new(Vec::new());
        writer.set_attributes(&attributes);
        let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
        prop_assert_eq!(reader.manifest().attributes().unwrap(), Some(attributes));
    }

    #[test]
    fn any_set_of_tensors_reads_back(
        set in prop::collection::btree_map(".{0,12}", (0..17_usize, 0..50_u64), 0..12),
        level in prop::option::of(-3..6_i32),
    ) {
        let storage = level.map_or(Storage::default(), zstd).digest(Algorithm::Crc32c);
        let mut writer = Writer::options().storage(storage).write_to(Vec::new()).unwrap();
        for (name, (dtype, elements)) in set.iter().rev() {
            writer.add(name, &tensor(DTYPES[*dtype], *elements)).unwrap();
        }
        let reader = Reader::from_bytes(writer.finish().unwrap()).unwrap();
        prop_assert!(reader.validate().is_empty());
        prop_assert!(reader.manifest().names().eq(set.keys()));
        for (name, (dtype, elements)) in &set {
            let found = reader.tensor(name).unwrap().read().unwrap();
            let expected = tensor(DTYPES[*dtype], *elements);
            prop_assert_eq!(found.bytes(), expected.bytes());
        }
    }
}

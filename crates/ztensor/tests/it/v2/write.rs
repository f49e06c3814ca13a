//! What the writer of generation 2 makes, and what it refuses.

use std::{io::Write as _, num::NonZeroU64};

use proptest::prelude::*;
use test_support::{assert_bytes, testdata};
use ztensor::{
    Attributes, Compression, Coo, Csr, Editor, ElementType, Encoding, Error, Form, Format,
    Generation, Reader, Role, Shard, Storage, Value, Version, WriteOptions,
    tensor_core::{
        DType, Profile, Shape, Source, TensorBuf, TensorView, digest::Algorithm, output::Edited,
    },
};

use crate::patched;

pub(super) fn canonical() -> WriteOptions {
    WriteOptions::default().version(Version::V2)
}

pub(super) fn free() -> WriteOptions {
    canonical().form(Form::Free).alignment(4096)
}

fn zstd(frame: Option<u64>) -> WriteOptions {
    let frame = frame.and_then(NonZeroU64::new);
    free().storage(Storage::default().compression(Compression::Zstd { level: 3, frame }))
}

#[track_caller]
pub(super) fn sound(bytes: &[u8]) -> Reader {
    let reader = Reader::from_bytes(bytes.to_vec()).unwrap();
    assert_eq!(reader.generation(), Generation::V2);
    let report = reader.validate();
    assert!(report.is_valid(), "{report:?}");
    reader
}

/// Puts another manifest into a file.
pub(super) fn with_manifest(file: &[u8], change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let offset = Reader::from_bytes(file.to_vec()).unwrap().manifest().offset();
    let (blobs, rest) = file.split_at(usize::try_from(offset).unwrap());
    let manifest = change(&rest[..rest.len() - 40]);
    let hash = twox_hash::xxhash3_64::Hasher::oneshot(&manifest);
    let footer = [offset, manifest.len() as u64, hash, 2].map(u64::to_le_bytes).concat();
    [blobs, &manifest, &footer, &file[..8]].concat()
}

/// Writes the tensors of a file again.
fn again(reader: &Reader, options: WriteOptions) -> Vec<u8> {
    let mut writer = options.write_to(Vec::new()).unwrap();
    ztensor::migrate(reader, &mut writer).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_canonical_file_comes_out_byte_for_byte() {
    let path = testdata("ztensor/v2/valid/v2_canonical.zt");
    let expected = std::fs::read(&path).unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_bytes(&again(&reader, canonical()), &expected, "migrated");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new.zt");
    let mut writer = canonical().create(&out).unwrap();
    for name in ["a.bias", "a.weight", "tied"] {
        writer.add(name, &reader.tensor(name).unwrap().read().unwrap()).unwrap();
    }
    writer.finish().unwrap();
    assert_bytes(&std::fs::read(&out).unwrap(), &expected, "created");
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    for name in ["a.bias", "a.weight", "tied"] {
        writer.copy(reader.tensor(name).unwrap()).unwrap();
    }
    assert_bytes(&writer.finish().unwrap(), &expected, "copied");
}

#[test]
fn what_is_in_a_file_does_not_depend_on_how_it_is_stored() {
    let reader = Reader::open(testdata("ztensor/v2/valid/v2_mixed_4096.zt")).unwrap();
    let expected = reader.content_digest(Algorithm::Sha256).unwrap();
    for options in [canonical(), free(), zstd(None), zstd(Some(100))] {
        let new = sound(&again(&reader, options));
        assert_eq!(new.content_digest(Algorithm::Sha256).unwrap(), expected);
    }
    let other = canonical().write_to(Vec::new()).unwrap().finish().unwrap();
    assert_ne!(sound(&other).content_digest(Algorithm::Sha256).unwrap(), expected);
}

#[test]
fn layouts_say_what_their_sizes_follow_from() {
    let packing = map(&[
        ("word", "u8".into()),
        ("order", "lsb_first".into()),
        ("per_word", Value::Integer(2)),
    ]);
    let whole: Attributes = [
        ("bits", Value::Integer(4)),
        ("group_size", Value::Integer(16)),
        ("axis", Value::Integer(1)),
        ("scale_form", Value::from("f16_factors")),
        ("packing", packing),
        ("zero_point", map(&[("form", "tensor".into()), ("packing", "plain".into())])),
    ]
    .into_iter()
    .collect();
    let write = |attributes: &Attributes, scales: usize| {
        let mut writer = canonical().write_to(Vec::new()).unwrap();
        let mut object = writer.object("q").unwrap();
        object.set_attributes(attributes);
        object.put(Role::Data, DType::U8, &[0x21; 64]).unwrap();
        object.put(Role::Scales, DType::F16, &vec![0; scales]).unwrap();
        object.put(Role::Zeros, DType::U8, &[8; 8]).unwrap();
        object.finish(Format::QuantGroup, [4, 32])?;
        writer.finish()
    };
    assert!(sound(&write(&whole, 16).unwrap()).validate().is_empty());
    let refused =
        |attributes: &Attributes, scales| write(attributes, scales).unwrap_err().to_string();
    assert_eq!(refused(&whole, 18), "object \"q\": has 18 bytes of scales, expected 16");
    for (key, value, expected) in [
        ("bits", Value::Integer(7), "has bits 7, expected 2 to 6, or 8"),
        (
            "bits",
            Value::Integer(3),
            "has packing.per_word 2 for 3 bits in words of 8, expected words that codes of 3 bits fill",
        ),
        ("bits", Value::Integer(2), "has packing.per_word 2 for 2 bits in words of 8, expected 4"),
        ("axis", Value::Integer(2), "has axis 2, expected one of the 2 of shape [4, 32]"),
        (
            "group_size",
            Value::Integer(5),
            "has group_size 5, expected 0 or a divisor of the 32 elements along axis 1",
        ),
        (
            "scale_form",
            "e8m0_exponent".into(),
            "has scales of f16 and scale_form \"e8m0_exponent\", expected f8_e8m0",
        ),
        ("axis", Value::Null, "attribute \"axis\" is not an integer"),
    ] {
        let mut attributes = whole.clone();
        attributes.insert(key, value);
        assert_eq!(refused(&attributes, 16), format!("object \"q\": {expected}"));
    }

    let mx: Attributes =
        [("block_size", Value::Integer(32)), ("scale_form", "e8m0_exponent".into())]
            .into_iter()
            .collect();
    let exponent = ElementType::Packed { name: "f8_e8m0", bits: 8 };
    let half = ElementType::Packed { name: "f4_e2m1", bits: 4 };
    let write = |scales: usize| {
        let mut writer = canonical().write_to(Vec::new()).unwrap();
        let mut object = writer.object("m").unwrap();
        object.set_attributes(&mx);
        object.put(Role::Data, half, &[0; 32]).unwrap();
        object.put(Role::Scales, exponent, &vec![127; scales]).unwrap();
        object.finish(Format::Mx, [2, 32])?;
        writer.finish()
    };
    assert!(sound(&write(2).unwrap()).validate().is_empty());
    assert_eq!(
        write(3).unwrap_err().to_string(),
        "object \"m\": has 3 bytes of scales, expected 2"
    );

    let blocks: Attributes =
        [("elems_per_block", 32_u64), ("block_bytes", 18)].into_iter().collect();
    let write = |len: usize| {
        let mut writer = canonical().write_to(Vec::new()).unwrap();
        let mut object = writer.object("g").unwrap();
        object.set_attributes(&blocks);
        object.put(Role::Data, DType::U8, &vec![0; len]).unwrap();
        object.finish("gguf.q4_0/1".into(), [2, 32])?;
        writer.finish()
    };
    assert!(sound(&write(36).unwrap()).validate().is_empty());
    assert_eq!(
        write(35).unwrap_err().to_string(),
        "object \"g\": has 35 bytes of data, expected 36"
    );
}

fn map(pairs: &[(&str, Value)]) -> Value {
    Value::Map(pairs.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect())
}

/// Attributes of `zt.quant_group/1` along the second of two dimensions.
fn group(bits: i128, size: i128, (word, order): (&str, &str), zero: Value) -> Attributes {
    let width: i128 = word[1..].parse().unwrap();
    let packing = [
        ("word", word.into()),
        ("order", order.into()),
        ("per_word", Value::Integer(width / bits)),
    ];
    [
        ("bits", Value::Integer(bits)),
        ("group_size", Value::Integer(size)),
        ("axis", Value::Integer(1)),
        ("scale_form", Value::from("f32_factors")),
        ("packing", map(&packing)),
        ("zero_point", zero),
    ]
    .into_iter()
    .collect()
}

type Part<'b> = (Role, ElementType, &'b [u8]);

fn quantized(
    format: Format,
    shape: impl Into<Shape>,
    attributes: &Attributes,
    parts: &[Part<'_>],
) -> Vec<u8> {
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    let mut object = writer.object("q").unwrap();
    object.set_attributes(attributes);
    for (role, elements, bytes) in parts {
        object.put(role.clone(), *elements, bytes).unwrap();
    }
    object.finish(format, shape).unwrap();
    writer.finish().unwrap()
}

fn real(bytes: &[u8]) -> Vec<f32> {
    let reader = sound(bytes);
    reader.tensor("q").unwrap().dequantized().unwrap().map(Result::unwrap).collect()
}

/// Expected numbers are worked out by hand: (code - zero point) × scale.
#[test]
fn codes_become_numbers() {
    let floats =
        |numbers: &[f32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let [data, zeros] = [Role::Data, Role::Zeros];
    let scale = floats(&[0.5, 2.0]);
    fn scales_of(bytes: &[u8]) -> Part<'_> {
        (Role::Scales, DType::F32.into(), bytes)
    }
    let implied = map(&[("form", "implied".into()), ("value", Value::Integer(8))]);
    let codes = (data.clone(), DType::U8.into(), &[0x21, 0xf8][..]);
    let of = |order, zero: &Value, parts: &[Part<'_>]| {
        let attributes = group(4, 2, ("u8", order), zero.clone());
        real(&quantized(Format::QuantGroup, [2, 2], &attributes, parts))
    };
    // 1 and 2, then 8 and 15; from the high half 2 and 1, 15 and 8.
    let low = of("lsb_first", &implied, &[codes.clone(), scales_of(&scale)]);
    assert_eq!(low, [-3.5, -3.0, 0.0, 14.0]);
    let high = of("msb_first", &implied, &[codes.clone(), scales_of(&scale)]);
    assert_eq!(high, [-3.0, -3.5, 14.0, 0.0]);
    let plain = map(&[("form", "tensor".into()), ("packing", "plain".into())]);
    let points = floats(&[0.5, -1.0]);
    let parts = [codes.clone(), scales_of(&scale), (zeros.clone(), DType::F32.into(), &points)];
    assert_eq!(of("lsb_first", &plain, &parts), [0.25, 0.75, 18.0, 32.0]);
    let packed = map(&[("form", "tensor".into()), ("packing", "same_as_data".into())]);
    let parts = [codes, scales_of(&scale), (zeros, DType::U8.into(), &[0xf1])];
    assert_eq!(of("lsb_first", &packed, &parts), [0.0, 0.5, -14.0, 0.0]);

    // What scales are consumed as does not say how they are stored.
    let mut halves = group(4, 2, ("u8", "lsb_first"), implied);
    halves.insert("scale_form", "f16_factors");
    let parts = [
        (Role::Data, DType::U8.into(), &[0x21, 0xf8][..]),
        (Role::Scales, DType::BF16.into(), &[0x00, 0x3f, 0x00, 0x40][..]),
    ];
    let found = real(&quantized(Format::QuantGroup, [2, 2], &halves, &parts));
    assert_eq!(found, [-3.5, -3.0, 0.0, 14.0]);

    // Four codes of two bits in the low byte of a word, and four in the high one.
    let none = map(&[("form", "none".into())]);
    let wide = group(2, 8, ("u16", "lsb_first"), none.clone());
    let one = floats(&[1.0]);
    let parts =
        [(data.clone(), DType::U16.into(), &[0b11_10_01_00, 0b00_01_10_11][..]), scales_of(&one)];
    let found = real(&quantized(Format::QuantGroup, [1, 8], &wide, &parts));
    assert_eq!(found, [0.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 0.0]);
    // What fills words with a sign has one; a scale for each code.
    let bytes = group(8, 0, ("u8", "lsb_first"), none);
    let parts = [(data, DType::I8.into(), &[0xff, 0x80][..]), scales_of(&scale)];
    assert_eq!(real(&quantized(Format::QuantGroup, [1, 2], &bytes, &parts)), [-0.5, -256.0]);
}

#[test]
fn blocks_become_numbers() {
    let of = |elements: ElementType, data: &[u8], scales: &[u8]| {
        let attributes =
            [("block_size", Value::Integer(2)), ("scale_form", "e8m0_exponent".into())];
        let exponent = ElementType::Packed { name: "f8_e8m0", bits: 8 };
        let parts = [(Role::Data, elements, data), (Role::Scales, exponent, scales)];
        let shape = [2, scales.len() as u64];
        real(&quantized(Format::Mx, shape, &attributes.into_iter().collect(), &parts))
    };
    let half = ElementType::Packed { name: "f4_e2m1", bits: 4 };
    // Codes 1 to 4 and 7, 9, 14, 15 of the table of OCP Microscaling.
    let found = of(half, &[0x21, 0x43, 0x97, 0xfe], &[127, 128, 126, 130]);
    assert_eq!(found, [0.5, 1.0, 3.0, 4.0, 3.0, -0.25, -32.0, -48.0]);
    // The largest, one and a half, and the least of E4M3; what has NaN as its scale is none.
    let found = of(DType::F8E4M3.into(), &[0x7e, 0x3c, 0x01, 0x38], &[127, 255]);
    assert_eq!(found[..2], [448.0, 1.5]);
    assert!(found[2..].iter().all(|number| number.is_nan()));
    // 64ths.
    let found = of(DType::I8.into(), &[64, 0x80, 1, 0xff], &[127, 0]);
    assert_eq!(found[..2], [1.0, -2.0]);
    let least = 2.0_f64.powi(-133) as f32;
    assert_eq!(found[2..], [least, -least]);
}

/// The format says in which order scales come for the innermost axis alone.
#[test]
fn scales_along_other_axes_have_no_order() {
    let mut attributes = group(8, 2, ("u8", "lsb_first"), map(&[("form", "none".into())]));
    attributes.insert("axis", Value::Integer(0));
    let one = 1.0_f32.to_le_bytes().repeat(2);
    let parts = [
        (Role::Data, DType::U8.into(), &[1, 2, 3, 4][..]),
        (Role::Scales, DType::F32.into(), &one),
    ];
    let reader = sound(&quantized(Format::QuantGroup, [2, 2], &attributes, &parts));
    let error = reader.tensor("q").unwrap().dequantized().unwrap_err();
    assert_eq!(
        error.to_string(),
        "object \"q\" has scales along axis 0 of shape [2, 2], whose order the format defines for the \
         innermost axis alone"
    );
}

#[test]
fn what_has_no_place_is_named_before_anything_is_written() {
    let path = testdata("ztensor/valid/v1.1-hand/dense_extra_component.zt");
    let reader = Reader::open(path).unwrap();
    let mut written = Vec::new();
    let mut writer = canonical().write_to(&mut written).unwrap();
    let error = ztensor::migrate(&reader, &mut writer).unwrap_err();
    assert_eq!(error.rule(), "zt/migrate-refused");
    assert_eq!(
        error.to_string(),
        "version 2 cannot hold all of the file: tensor \"t\" has component \"mask\", which its \
         format does not name"
    );
    drop(writer);
    assert!(written.is_empty());
}

fn every_type() -> Vec<(ElementType, u64)> {
    let plain = DType::ALL.into_iter().filter_map(|dtype| Some((dtype, dtype.width()?)));
    let mut types: Vec<(ElementType, u64)> =
        plain.map(|(dtype, width)| (dtype.into(), width * 3)).collect();
    for name in ["f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0"] {
        types.push((ElementType::Packed { name, bits: 8 }, 3));
    }
    types.push((ElementType::Packed { name: "f4_e2m1", bits: 4 }, 2));
    types
}

#[test]
fn every_element_type_reads_back() {
    for options in [canonical(), free(), zstd(None)] {
        let mut writer = options.write_to(Vec::new()).unwrap();
        let types = every_type();
        for (index, (elements, len)) in types.iter().enumerate() {
            let mut bytes = vec![1; usize::try_from(*len).unwrap()];
            *bytes.last_mut().unwrap() = 0;
            let mut object = writer.object(&format!("t{index:02}")).unwrap();
            object.put(Role::Data, *elements, &bytes).unwrap();
            object.finish(Format::Dense, [3]).unwrap();
        }
        let reader = sound(&writer.finish().unwrap());
        for (index, (elements, len)) in types.iter().enumerate() {
            let tensor = reader.tensor(&format!("t{index:02}")).unwrap();
            let blob = tensor.blob(&Role::Data).unwrap().unwrap();
            assert_eq!(
                (blob.elements().unwrap(), blob.bytes().unwrap().len() as u64),
                (*elements, *len)
            );
            assert_eq!(tensor.info().is_ok(), matches!(elements, ElementType::Plain(_)));
        }
    }
}

#[test]
fn equal_bytes_are_stored_once() {
    let tensor = |byte: u8, len: u64| {
        TensorBuf::new(DType::U8, [len], vec![byte; usize::try_from(len).unwrap()]).unwrap()
    };
    let parts = [
        ("a", 1, 200_000),
        ("b", 2, 200_000),
        ("c", 1, 200_000),
        ("d", 1, 199_999),
        ("e", 3, 0),
        ("f", 4, 1),
        ("g", 5, 0),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.zt");
    let mut writer = canonical().create(&path).unwrap();
    for (name, byte, len) in parts {
        writer.add(name, &tensor(byte, len)).unwrap();
    }
    writer.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut streamed = canonical().write_to(Vec::new()).unwrap();
    for (name, byte, len) in parts {
        let mut object = streamed.object(name).unwrap();
        let mut part = object.component(Role::Data, DType::U8).unwrap();
        for piece in tensor(byte, len).bytes().chunks(70_000) {
            part.write_all(piece).unwrap();
        }
        part.finish().unwrap();
        object.finish(Format::Dense, [len]).unwrap();
    }
    assert_bytes(&streamed.finish().unwrap(), &whole, "in pieces");
    let reader = sound(&whole);
    assert!(reader.canonical().is_empty(), "{:?}", reader.canonical());
    let offset = |name: &str| reader.tensor(name).unwrap().object().unwrap().components[0].1.offset;
    assert_eq!(offset("a"), offset("c"));
    assert!(offset("b") != offset("a") && offset("d") != offset("a"));
}

/// A part that starts as another did is held back, beyond 16 MiB in a file.
#[test]
fn long_parts_that_start_alike_are_told_apart() {
    let zeros = vec![0; 17 << 20];
    let mut other = zeros.clone();
    *other.last_mut().unwrap() = 1;
    let parts = [("a", &zeros), ("b", &other), ("c", &zeros), ("d", &other)];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    fn write<W: std::io::Write>(mut writer: ztensor::Writer<W>, parts: &[(&str, &Vec<u8>)]) -> W {
        for (name, bytes) in parts {
            let mut object = writer.object(name).unwrap();
            let mut part = object.component(Role::Data, DType::U8).unwrap();
            bytes.chunks(1 << 20).for_each(|piece| part.write_all(piece).unwrap());
            part.finish().unwrap();
            object.finish(Format::Dense, [bytes.len() as u64]).unwrap();
        }
        writer.finish().unwrap()
    }
    write(canonical().create(&path).unwrap(), &parts);
    let streamed = write(canonical().write_to(Vec::new()).unwrap(), &parts);
    assert_bytes(&streamed, &std::fs::read(&path).unwrap(), "streamed");
    let reader = sound(&streamed);
    assert!(reader.canonical().is_empty(), "{:?}", reader.canonical());
    assert!(streamed.len() < 36 << 20);
}

/// The product of a shape is taken from the outermost dimension in.
#[test]
fn nothing_overflows_behind_a_zero() {
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    let mut object = writer.object("dense").unwrap();
    object.put(Role::Data, DType::F32, &[]).unwrap();
    object.finish(Format::Dense, [0, 1 << 33, 1 << 33]).unwrap();
    let [values, coords] = [DType::F32, DType::U32].map(|dtype| TensorBuf::new(dtype, [0], vec![]));
    let coo = Coo::from_parts([0, 1 << 33, 1 << 33], values.unwrap(), coords.unwrap()).unwrap();
    writer.add_coo("sparse", &coo).unwrap();
    let reader = sound(&writer.finish().unwrap());
    assert!(reader.validate().is_empty(), "{:?}", reader.validate());
    let tensor = reader.tensor("dense").unwrap();
    assert!(tensor.bytes().unwrap().is_empty());
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    let mut object = writer.object("wide").unwrap();
    object.put(Role::Data, DType::F32, &[]).unwrap();
    let error = object.finish(Format::Dense, [1 << 33, 1 << 33, 0]).unwrap_err();
    let message = "shape [8589934592, 8589934592, 0] has more elements than 64 bits can count";
    assert_eq!(error.to_string(), message);
    let error = ztensor::migrate(&reader, &mut ztensor::Writer::new(Vec::new())).unwrap_err();
    let message = "tensor \"dense\" has shape [0, 8589934592, 8589934592], which 1.x does not count \
                   behind its 0";
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn the_order_of_the_canonical_form_is_asked_for() {
    let one = TensorBuf::from_slice([1], &[1.0_f32]).unwrap();
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    writer.add("b", &one).unwrap();
    let error = writer.add("a", &one).unwrap_err();
    assert_eq!(
        error.to_string(),
        "object \"a\" comes after \"b\", expected them in the order of the canonical form"
    );
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    let mut object = writer.object("q").unwrap();
    object.put(Role::Scales, DType::F32, &[0; 4]).unwrap();
    let error = object.put(Role::Data, DType::U8, &[0; 4]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "component \"data\" of object \"q\" comes after \"scales\", expected them in the order of the canonical form"
    );
}

#[test]
fn settings_that_do_not_go_together() {
    let refused = |options: WriteOptions| options.write_to(Vec::new()).unwrap_err().to_string();
    assert_eq!(
        refused(canonical().alignment(4096)),
        "alignment in bytes is 4096, expected 65536, the only one of the canonical form"
    );
    assert_eq!(
        refused(free().alignment(2048)),
        "alignment in bytes is 2048, expected a power of two from 4096 to 65536"
    );
    assert_eq!(
        refused(free().alignment(1 << 17)),
        "alignment in bytes is 131072, expected a power of two from 4096 to 65536"
    );
    let zstd = Storage::default().compression(Compression::Zstd { level: 3, frame: None });
    assert_eq!(
        refused(canonical().storage(zstd)),
        "compression is zstd, expected none in the canonical form"
    );
    let frame = NonZeroU64::new((16 << 20) + 1);
    let long = Storage::default().compression(Compression::Zstd { level: 3, frame });
    assert_eq!(
        refused(free().storage(long)),
        "frame in bytes is 16777217, expected at most 16777216"
    );
    let crc = Storage::default().digest(Algorithm::Crc32c);
    assert_eq!(
        refused(free().storage(crc)),
        "digest is another, expected xxh3 or sha256 in generation 2"
    );
    let xxh3 = Storage::default().digest(Algorithm::Xxh3);
    assert_eq!(
        refused(WriteOptions::default().storage(xxh3)),
        "digest is another, expected sha256 or crc32c before generation 2"
    );
    let sha256 = Storage::default().digest(Algorithm::Sha256);
    assert_eq!(
        refused(canonical().storage(sha256)),
        "digest is another, expected xxh3 in the canonical form"
    );
    let mut writer = free().storage(sha256).write_to(Vec::new()).unwrap();
    writer.add("w", &TensorBuf::from_slice([1], &[1.0_f32]).unwrap()).unwrap();
    let reader = sound(&writer.finish().unwrap());
    let digest = reader.tensor("w").unwrap().object().unwrap().components[0].1.digest.clone();
    assert!(digest.unwrap().starts_with("sha256:"));
}

#[test]
fn names_and_attributes_are_those_of_the_format() {
    let one = TensorBuf::from_slice([1], &[1.0_f32]).unwrap();
    let refused = |name: &str| {
        canonical().write_to(Vec::new()).unwrap().add(name, &one).unwrap_err().to_string()
    };
    assert!(refused("").contains("0 bytes"), "{}", refused(""));
    assert!(refused("a\0b").contains("without NUL"));
    assert!(refused(&"x".repeat(1025)).contains("1025 bytes"));
    assert!(refused("e\u{301}").contains("normal form C"));
    let refused = |value: Value| {
        let mut writer = canonical().write_to(Vec::new()).unwrap();
        writer.set_attributes(&[("k", value)].into_iter().collect());
        writer.finish().unwrap_err().to_string()
    };
    assert_eq!(
        refused(Value::Tag(1, Box::new(Value::Null))),
        "attribute \"k\" has a tag, which generation 2 cannot hold"
    );
    assert_eq!(
        refused(Value::Integer(1 << 64)),
        "attribute \"k\" is a whole number of more than 64 bits, which generation 2 cannot hold"
    );
    let deep = |levels: usize| (0..levels).fold(Value::Null, |value, _| Value::Array(vec![value]));
    assert_eq!(refused(deep(29)), "nesting of attributes in levels is 29, expected at most 28");
    let mut writer = canonical().write_to(Vec::new()).unwrap();
    let mut object = writer.object("w").unwrap();
    let attributes: Attributes = [
        ("deep", deep(28)),
        ("b", Value::Float(1.5)),
        (
            "aa",
            Value::Map(vec![
                (Value::from("zz"), Value::Float(f64::NAN)),
                (Value::from("z"), Value::Float(0.1)),
            ]),
        ),
        ("n", Value::Integer(-(1 << 64))),
        ("bytes", Value::Bytes(vec![1, 2])),
    ]
    .into_iter()
    .collect();
    object.set_attributes(&attributes);
    object.put(Role::Data, DType::U8, &[1]).unwrap();
    object.finish(Format::Dense, [1]).unwrap();
    let reader = sound(&writer.finish().unwrap());
    let found = reader.tensor("w").unwrap().attributes().unwrap().unwrap();
    assert_eq!(found.get("deep"), attributes.get("deep"));
    assert_eq!(found.len(), 5);
}

#[test]
fn sparse_tensors_are_those_of_the_format() {
    let u32s = |numbers: &[u32]| TensorBuf::from_slice([numbers.len() as u64], numbers).unwrap();
    let values = |numbers: &[f32]| TensorBuf::from_slice([numbers.len() as u64], numbers).unwrap();
    let csr = Csr::from_parts([2, 3], values(&[1.0, 2.0, 3.0]), u32s(&[0, 2, 1]), u32s(&[0, 2, 3]))
        .unwrap();
    let coo = Coo::from_parts([2, 3], values(&[1.0, 2.0]), u32s(&[0, 1, 2, 0])).unwrap();
    for options in [canonical(), free(), zstd(Some(4))] {
        let mut writer = options.write_to(Vec::new()).unwrap();
        writer.add_csr("m", &csr).unwrap();
        writer.add_coo("n", &coo).unwrap();
        let reader = sound(&writer.finish().unwrap());
        let dense = reader.tensor("m").unwrap().read().unwrap();
        assert_eq!(dense.to_vec::<f32>().unwrap(), [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
        let dense = reader.tensor("n").unwrap().read().unwrap();
        assert_eq!(dense.to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
    }
    let refused = |csr: &Csr| {
        canonical().write_to(Vec::new()).unwrap().add_csr("m", csr).unwrap_err().to_string()
    };
    let unsorted =
        Csr::from_parts([1, 3], values(&[1.0, 2.0]), u32s(&[2, 0]), u32s(&[0, 2])).unwrap();
    assert_eq!(refused(&unsorted), "object \"m\": columns of row 0 are not in ascending order");
    let narrow = TensorBuf::from_slice([1], &[0_u16]).unwrap();
    let narrow = Csr::from_parts([1, 3], values(&[1.0]), narrow, u32s(&[0, 1])).unwrap();
    assert_eq!(
        refused(&narrow),
        "object \"m\": indices are u16 and indptr u32, expected u32 or u64 for both"
    );
    let twice = Coo::from_parts([2, 3], values(&[1.0, 2.0]), u32s(&[1, 1, 2, 2])).unwrap();
    let error = canonical().write_to(Vec::new()).unwrap().add_coo("n", &twice).unwrap_err();
    assert_eq!(error.to_string(), "object \"n\": element 5 of shape [2, 3] is stored twice");
}

#[test]
fn frames_have_tables() {
    let numbers: Vec<u32> = (0..10_000).map(|at| at / 7).collect();
    let tensor = TensorBuf::from_slice([10_000], &numbers).unwrap();
    for frame in [None, Some(4096), Some(39_999), Some(40_000), Some(1 << 20)] {
        let mut writer = zstd(frame).write_to(Vec::new()).unwrap();
        writer.add("w", &tensor).unwrap();
        writer.add("empty", &TensorBuf::new(DType::F32, [0], vec![]).unwrap()).unwrap();
        let reader = sound(&writer.finish().unwrap());
        let blob = reader.tensor("w").unwrap().blob(&Role::Data).unwrap().unwrap();
        assert_eq!(blob.component().encoding, Encoding::ZstdSeekable);
        assert_eq!(blob.bytes().unwrap(), tensor.bytes());
        assert_eq!(blob.bytes_at(5000..5004).unwrap(), tensor.bytes()[5000..5004]);
        // An empty part is the table alone.
        let empty = reader.tensor("empty").unwrap().object().unwrap();
        assert_eq!(empty.components[0].1.length, 17);
    }
}

#[test]
fn shards_and_overlays() {
    let folder = tempfile::tempdir().unwrap();
    let (base, root) = (folder.path().join("base-1.zt"), folder.path().join("base.zt"));
    let tensor = TensorBuf::from_slice([3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let mut writer = canonical().create(&base).unwrap();
    writer.add("w", &tensor).unwrap();
    writer.finish().unwrap();
    let shard_reader = Reader::open(&base).unwrap();
    let shard = Shard::of(shard_reader.source(), Algorithm::Sha256).unwrap();
    let mut writer = free().create(&root).unwrap();
    writer.add_shard("1", &shard).unwrap();
    assert!(writer.add_shard("1", &shard).is_err());
    assert!(writer.add_shard("../1", &shard).is_err());
    writer.link("w", shard_reader.tensor("w").unwrap(), "1").unwrap();
    assert!(writer.link("v", shard_reader.tensor("w").unwrap(), "2").is_err());
    writer.add("own", &tensor).unwrap();
    writer.finish().unwrap();
    let reader = Reader::open(&root).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    assert_eq!(
        reader.tensor("w").unwrap().read().unwrap().to_vec::<f32>().unwrap(),
        [1.0, 2.0, 3.0]
    );
    // An edit leaves what lies elsewhere, and so does compaction.
    let mut editor = Editor::open(&root).unwrap();
    editor.rename(&[("w", "weight")]).unwrap();
    editor.commit().unwrap();
    ztensor::compact(&root, WriteOptions::default()).unwrap();
    let reader = Reader::open(&root).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    assert_eq!(reader.tensor("weight").unwrap().read().unwrap().bytes(), tensor.bytes());
    // Another file may have another shard of the name, or none.
    let mut other = shard.clone();
    other.digest = shard.digest.replace("sha256:", "sha512:");
    let lies = reader.tensor("weight").unwrap();
    for (there, expected) in [(Some(&shard), Ok(())), (None, Ok(())), (Some(&other), Err(()))] {
        let mut writer = free().write_to(Vec::new()).unwrap();
        there.into_iter().for_each(|shard| writer.add_shard("1", shard).unwrap());
        let copied = writer.copy(lies);
        assert_eq!(copied.is_ok(), expected.is_ok(), "{copied:?}");
        if expected.is_ok() {
            let copy = Reader::from_bytes(writer.finish().unwrap()).unwrap();
            assert_eq!(copy.manifest().shards().next(), Some(("1", &shard)));
        }
    }
    // All in one file again.
    let reader = sound(&again(&reader, canonical()));
    assert!(reader.canonical().is_empty());
    assert!(canonical().write_to(Vec::new()).unwrap().add_shard("1", &shard).is_err());
}

#[test]
fn edits_append_and_compaction_makes_canonical_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let tensor = |number: f32| TensorBuf::from_slice([2], &[number, 0.5]).unwrap();
    let mut writer = canonical().create(&path).unwrap();
    for (name, number) in [("a", 1.0), ("b", 2.0), ("c", 3.0)] {
        writer.add(name, &tensor(number)).unwrap();
    }
    writer.finish().unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut editor = Editor::open(&path).unwrap();
    editor.remove("b").unwrap();
    editor.rename(&[("c", "z")]).unwrap();
    editor.set_attribute("license", "MIT").unwrap();
    editor.set_tensor_attribute("a", "kind", 7_u64).unwrap();
    editor.writer().add("n", &tensor(4.0)).unwrap();
    let preview = editor.preview().unwrap();
    assert_eq!(preview.manifest().len(), 3);
    let edited = editor.commit().unwrap();
    let after = std::fs::read(&path).unwrap();
    assert!(after.starts_with(&before));
    assert_eq!(edited, Edited::Appended { before: before.len() as u64, after: after.len() as u64 });
    let reader = sound(&after);
    let names: Vec<&str> = reader.manifest().names().collect();
    assert_eq!(names, ["a", "n", "z"]);
    assert_eq!(reader.tensor("z").unwrap().read().unwrap().bytes(), tensor(3.0).bytes());
    assert_eq!(
        reader.tensor("a").unwrap().attributes().unwrap().unwrap().get("kind"),
        Some(&Value::Integer(7))
    );
    assert!(!reader.canonical().is_empty());
    assert_eq!(Editor::open(&path).unwrap().commit().unwrap(), Edited::Unchanged);
    // Cut anywhere, the file as it was comes back.
    for len in [before.len(), before.len() + 1, after.len() - 41, after.len() - 1] {
        let cut = after[..len].to_vec();
        let reader = Reader::options().profile(Profile::Lenient).from_bytes(cut).unwrap();
        assert_eq!(reader.manifest().names().collect::<Vec<_>>(), ["a", "b", "c"], "{len}");
    }
    let content = reader.content_digest(Algorithm::Sha256).unwrap();
    ztensor::compact(&path, WriteOptions::default()).unwrap();
    let reader = sound(&std::fs::read(&path).unwrap());
    assert!(reader.canonical().is_empty(), "{:?}", reader.canonical());
    assert_eq!(reader.content_digest(Algorithm::Sha256).unwrap(), content);
    let copy =
        Editor::copy_to(Vec::new(), &reader, WriteOptions::default()).unwrap().finish().unwrap();
    assert_eq!(sound(&copy).content_digest(Algorithm::Sha256).unwrap(), content);
}

/// The canonical form has no keys that the format does not name, and no empty maps.
#[test]
fn compaction_keeps_what_the_canonical_form_has_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let tensor = TensorBuf::from_slice([2], &[1.0_f32, 0.5]).unwrap();
    let mut writer = canonical().create(&path).unwrap();
    writer.add("a", &tensor).unwrap();
    writer.finish().unwrap();
    // An empty map where the object has no attributes: `"attributes": {}` sorts behind what is there.
    let changed = with_manifest(&std::fs::read(&path).unwrap(), |bytes| {
        let changed = patched(bytes, b"\x61a\xa3", b"\x61a\xa4");
        [&changed[..], b"\x6aattributes\xa0"].concat()
    });
    std::fs::write(&path, &changed).unwrap();
    let content = sound(&changed).content_digest(Algorithm::Sha256).unwrap();
    ztensor::compact(&path, WriteOptions::default()).unwrap();
    let reader = sound(&std::fs::read(&path).unwrap());
    assert_eq!(reader.content_digest(Algorithm::Sha256).unwrap(), content);
}

/// Readers ignore such keys on every level, so an edit keeps them.
#[test]
fn edits_keep_keys_that_are_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let shard = Shard::of(&canonical_source(), Algorithm::Sha256).unwrap();
    let mut writer = free().write_to(Vec::new()).unwrap();
    writer.add("a", &TensorBuf::from_slice([2], &[1.0_f32, 0.5]).unwrap()).unwrap();
    writer.add_shard("1", &shard).unwrap();
    let file = with_manifest(&writer.finish().unwrap(), |bytes| {
        // Numbers and bytes sort before text: 7 is true, h'00' is null, -1 is 9.
        let bytes = patched(bytes, b"\x61a\xa3", b"\x61a\xa4\x07\xf5");
        let bytes = patched(&bytes, b"\x64data\xa3", b"\x64data\xa4\x41\x00\xf6");
        let bytes = patched(&bytes, b"\x611\xa2", b"\x611\xa3\x07\xf5");
        assert_eq!(bytes[0], 0xa2);
        [&[0xa3, 0x20, 0x09], &bytes[1..]].concat()
    });
    std::fs::write(&path, file).unwrap();
    let keys = |reader: &Reader| {
        let manifest = reader.manifest();
        let object = reader.tensor("a").unwrap().object().unwrap();
        let of = |keys: &mut dyn Iterator<Item = &str>| keys.collect::<Vec<_>>().join(" ");
        [
            of(&mut manifest.unknown_keys()),
            of(&mut object.unknown_keys()),
            of(&mut object.components[0].1.unknown_keys()),
        ]
    };
    let found = keys(&Reader::open(&path).unwrap());
    assert_eq!(found, ["h'20'", "h'07'", "h'4100'"]);
    let mut editor = Editor::open(&path).unwrap();
    editor.set_attribute("license", "MIT").unwrap();
    editor.set_tensor_attribute("a", "kind", 7_u64).unwrap();
    editor.commit().unwrap();
    assert_eq!(keys(&Reader::open(&path).unwrap()), found);
    ztensor::compact(&path, WriteOptions::default()).unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(keys(&reader), found);
    let bytes = std::fs::read(&path).unwrap();
    let kept: [&[u8]; 4] =
        [b"\xa4\x20\x09", b"\xa5\x07\xf5", b"\xa4\x41\x00\xf6", b"\x611\xa3\x07\xf5"];
    for kept in kept {
        assert!(bytes.windows(kept.len()).any(|window| window == kept), "{kept:02x?}");
    }
}

fn canonical_source() -> Source {
    Source::from_bytes(canonical().write_to(Vec::new()).unwrap().finish().unwrap())
}

#[test]
fn files_of_every_generation_come_over_and_back() {
    let mut came = 0;
    for folder in ["valid/v1.1-ref", "valid/v1.1-hand", "valid/legacy"] {
        for path in test_support::files(&format!("ztensor/{folder}"), "zt") {
            let reader = Reader::open(&path).unwrap();
            for options in [canonical(), free(), zstd(None)] {
                let mut writer = options.write_to(Vec::new()).unwrap();
                match ztensor::migrate(&reader, &mut writer) {
                    Ok(_) => {}
                    Err(Error::NotExpressible { problems, .. }) => {
                        assert!(!problems.is_empty(), "{path:?}");
                        continue;
                    }
                    Err(error) => panic!("{path:?}: {error}"),
                }
                let new = sound(&writer.finish().unwrap());
                came += 1;
                assert_eq!(new.manifest().len(), reader.manifest().len(), "{path:?}");
                let old = WriteOptions::default().write_to(Vec::new()).unwrap();
                let mut back = old;
                ztensor::migrate(&new, &mut back)
                    .unwrap_or_else(|error| panic!("{path:?}: {error}"));
                let back = Reader::from_bytes(back.finish().unwrap()).unwrap();
                assert!(back.validate().is_valid(), "{path:?}");
                for tensor in reader.tensors() {
                    let Ok(expected) = tensor.read() else { continue };
                    for found in [&new, &back] {
                        let found = found.tensor(tensor.name()).unwrap().read().unwrap();
                        assert_eq!(found.info(), expected.info(), "{path:?} {}", tensor.name());
                        assert!(found.bytes() == expected.bytes(), "{path:?} {}", tensor.name());
                    }
                }
            }
        }
    }
    assert!(came > 60, "{came}");
}

fn tensors() -> impl Strategy<Value = Vec<(String, u64, Vec<u8>)>> {
    let tensor = ("[a-e]{1,30}", 0_u64..4, proptest::collection::vec(any::<u8>(), 0..300));
    proptest::collection::btree_map("[a-zé]{1,40}", tensor, 0..12).prop_map(|map| {
        map.into_iter().map(|(name, (_, kind, bytes))| (name, kind, bytes)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_reads_back(tensors in tensors(), grid in 12_u32..=16, level in prop::option::of(1_i32..5)) {
        let mut options = canonical();
        if let Some(level) = level {
            let storage = Storage::default().compression(Compression::Zstd { level, frame: NonZeroU64::new(100) });
            options = options.form(Form::Free).alignment(1 << grid).storage(storage);
        } else if grid < 16 {
            options = options.form(Form::Free).alignment(1 << grid);
        }
        let mut writer = options.write_to(Vec::new()).unwrap();
        for (name, kind, bytes) in &tensors {
            let dtype = [DType::U8, DType::I16, DType::F32, DType::C64][usize::try_from(*kind).unwrap()];
            let width = usize::try_from(dtype.width().unwrap()).unwrap();
            let bytes = &bytes[..bytes.len() / width * width];
            let shape = Shape::from([(bytes.len() / width) as u64]);
            writer.add_view(name, &TensorView::new(dtype, shape, bytes).unwrap()).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let reader = sound(&bytes);
        if grid == 16 && level.is_none() {
            prop_assert!(reader.canonical().is_empty());
        }
        for (name, _, bytes) in &tensors {
            let found = reader.tensor(name).unwrap().bytes().unwrap();
            prop_assert!(bytes.starts_with(&found) && bytes.len() - found.len() < 8);
        }
    }
}

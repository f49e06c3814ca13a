//! What the writer of generation 2 makes, and what it refuses.

use std::{io::Write as _, num::NonZeroU64};

use proptest::prelude::*;
use test_support::{assert_bytes, testdata};
use ztensor::{
    Attributes, Compression, Coo, Csr, Editor, ElementType, Encoding, Error, Form, Format,
    Generation, Reader, Role, Shard, Storage, Value, Version, WriteOptions, Writer,
    tensor_core::{
        DType, Profile, Shape, TensorBuf, TensorView, digest::Algorithm, output::Edited,
    },
};

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
    let map = |pairs: &[(&str, Value)]| {
        Value::Map(pairs.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect())
    };
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
        ("bits", Value::Integer(3), "has packing.per_word 2 for 3 bits in words of 8"),
        ("axis", Value::Integer(2), "has axis 2, but shape [4, 32]"),
        ("group_size", Value::Integer(5), "has group_size 5, which does not divide 32"),
        (
            "scale_form",
            "e8m0_exponent".into(),
            "has scales of another type than its scale_form asks for",
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.zt");
    let write = |writer: &mut Writer<_>| {
        for (name, byte, len) in [
            ("a", 1, 200_000),
            ("b", 2, 200_000),
            ("c", 1, 200_000),
            ("d", 1, 199_999),
            ("e", 3, 0),
            ("f", 4, 1),
            ("g", 5, 0),
        ] {
            let mut object = writer.object(name).unwrap();
            let mut part = object.component(Role::Data, DType::U8).unwrap();
            let tensor = tensor(byte, len);
            for piece in tensor.bytes().chunks(70_000) {
                part.write_all(piece).unwrap();
            }
            part.finish().unwrap();
            object.finish(Format::Dense, [len]).unwrap();
        }
    };
    let mut writer = canonical().create(&path).unwrap();
    for (name, byte, len) in [
        ("a", 1, 200_000),
        ("b", 2, 200_000),
        ("c", 1, 200_000),
        ("d", 1, 199_999),
        ("e", 3, 0),
        ("f", 4, 1),
        ("g", 5, 0),
    ] {
        writer.add(name, &tensor(byte, len)).unwrap();
    }
    writer.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut streamed = canonical().write_to(Vec::new()).unwrap();
    write(&mut streamed);
    assert_bytes(&streamed.finish().unwrap(), &whole, "in pieces");
    let reader = sound(&whole);
    assert!(reader.canonical().is_empty(), "{:?}", reader.canonical());
    let offset = |name: &str| reader.tensor(name).unwrap().object().unwrap().components[0].1.offset;
    assert_eq!(offset("a"), offset("c"));
    assert!(offset("b") != offset("a") && offset("d") != offset("a"));
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
    let file = std::fs::read(&path).unwrap();
    let reader = Reader::open(&path).unwrap();
    let offset = reader.manifest().offset();
    let mut bytes = file[offset as usize..file.len() - 40].to_vec();
    let object = bytes.windows(3).position(|window| window == b"\x61a\xa3").unwrap() + 2;
    bytes[object] = 0xa4;
    bytes.extend(b"\x6aattributes\xa0");
    let mut changed = file[..offset as usize].to_vec();
    changed.extend(&bytes);
    let hash = twox_hash::xxhash3_64::Hasher::oneshot(&bytes);
    for number in [offset, bytes.len() as u64, hash, 2] {
        changed.extend(number.to_le_bytes());
    }
    changed.extend(&file[..8]);
    std::fs::write(&path, &changed).unwrap();
    let content = sound(&changed).content_digest(Algorithm::Sha256).unwrap();
    ztensor::compact(&path, WriteOptions::default()).unwrap();
    let reader = sound(&std::fs::read(&path).unwrap());
    assert_eq!(reader.content_digest(Algorithm::Sha256).unwrap(), content);
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

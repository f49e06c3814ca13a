//! Every file of `testdata/ztensor/valid` reads back exactly as `expected.json` says.

use serde_json::Value as Json;
use test_support::{CountingSource, hex, testdata};
use ztensor::{
    Attributes, Blob, ByteOrder, Component, Generation, Reader, Role, Tensor, Value,
    tensor_core::{DType, Extent, Source, Verified, Verify, digest::Algorithm},
};

fn expected() -> serde_json::Map<String, Json> {
    let text = std::fs::read_to_string(testdata("ztensor/valid/expected.json")).unwrap();
    let Json::Object(files) = serde_json::from_str(&text).unwrap() else { panic!("no object") };
    assert_eq!(files.len(), 50);
    files
}

#[test]
fn every_valid_file_reads_as_expected() {
    for (file, expected) in expected() {
        let path = testdata("ztensor/valid").join(&file);
        let reader = Reader::open(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, expected["size"].as_u64().unwrap(), "{file}");
        check_file(&file, &reader, &expected);
        let in_memory = Reader::from_bytes(bytes).unwrap();
        check_file(&file, &in_memory, &expected);
    }
}

fn check_file(file: &str, reader: &Reader, expected: &Json) {
    let manifest = reader.manifest();
    assert_eq!(manifest.offset(), expected["manifest_offset"].as_u64().unwrap(), "{file}");
    assert_eq!(manifest.byte_len(), expected["manifest_size"].as_u64().unwrap(), "{file}");
    let generation = match (expected["generation"].as_str().unwrap(), reader.generation()) {
        ("1.1+", Generation::V1_1 | Generation::V1_2) => "1.1+".to_owned(),
        (_, found) => found.to_string(),
    };
    assert_eq!(generation, expected["generation"].as_str().unwrap(), "{file}");
    if let Some(version) = expected.get("version") {
        assert_eq!(manifest.version(), version.as_str().unwrap(), "{file}");
    }
    if let Some(attributes) = expected.get("attributes") {
        assert_eq!(json_attributes(manifest.attributes().unwrap()), *attributes, "{file}");
    }
    let objects = expected["objects"].as_object().unwrap();
    let names: Vec<&str> = manifest.names().collect();
    assert_eq!(names, objects.keys().map(String::as_str).collect::<Vec<_>>(), "{file}");
    for (name, expected) in objects {
        let tensor = reader.tensor(name).unwrap();
        assert_eq!(tensor.name(), name);
        check_object(&format!("{file} {name:?}"), tensor, expected);
    }
    assert!(reader.tensor("no such name").is_none());
}

fn check_object(what: &str, tensor: Tensor<'_>, expected: &Json) {
    let object = tensor.object().unwrap();
    let shape: Vec<u64> = serde_json::from_value(expected["shape"].clone()).unwrap();
    assert_eq!(object.shape.dims(), shape, "{what}");
    let format = expected.get("format").or_else(|| expected.get("layout")).unwrap();
    assert_eq!(object.format.as_str(), format.as_str().unwrap(), "{what}");
    let attributes = expected.get("attributes").or_else(|| expected.get("custom_fields"));
    let found = json_attributes(tensor.attributes().unwrap());
    match attributes {
        Some(Json::Object(custom)) if custom.is_empty() && found.is_null() => {}
        Some(attributes) => assert_eq!(found, *attributes, "{what}"),
        None => assert_eq!(found, Json::Null, "{what}"),
    }
    let Some(components) = expected.get("components") else {
        // Generation 0.1: the one component is described by the tensor itself.
        return check_component(what, &blob(tensor, "data"), expected, expected);
    };
    let components = components.as_object().unwrap();
    let roles: Vec<&str> = object.components.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, components.keys().map(String::as_str).collect::<Vec<_>>(), "{what}");
    for (role, component) in components {
        let what = format!("{what} {role:?}");
        check_component(&what, &blob(tensor, role), component, expected);
    }
}

fn blob<'a>(tensor: Tensor<'a>, role: &str) -> Blob<'a> {
    tensor.blob(&Role::from(role)).unwrap().unwrap()
}

fn check_component(what: &str, blob: &Blob<'_>, expected: &Json, object: &Json) {
    let component = blob.component();
    let number = |key: &str| expected.get(key).and_then(Json::as_u64);
    assert_eq!(Some(component.offset), number("offset"), "{what}");
    assert_eq!(Some(component.length), number("length").or(number("size")), "{what}");
    check_dtype(what, component, expected, object);
    assert_eq!(component.uncompressed_length, number("uncompressed_length"), "{what}");
    assert_eq!(component.logical_type.as_deref(), expected.get("type").and_then(Json::as_str));
    let encoding = expected.get("encoding").and_then(Json::as_str).unwrap_or("raw");
    assert_eq!(component.encoding.as_str(), encoding, "{what}");
    let digest = expected.get("digest").or_else(|| expected.get("checksum"));
    assert_eq!(component.digest.as_deref(), digest.and_then(Json::as_str), "{what}");
    let stored = blob.stored().unwrap();
    assert_eq!(sha256(&stored), expected["stored_sha256"].as_str().unwrap(), "{what}");
    let mut decoded = blob.bytes().unwrap().to_vec();
    let mut into = vec![0; decoded.len()];
    blob.read_into(&mut into).unwrap();
    assert!(decoded == into && decoded == *blob.to_buf().unwrap(), "{what}");
    if component.byte_order == ByteOrder::Big {
        // The expected bytes are those that are stored; ours are little-endian.
        let width = usize::try_from(blob.element_type().unwrap().width().unwrap()).unwrap();
        decoded.chunks_mut(width).for_each(<[u8]>::reverse);
    }
    assert_eq!(decoded.len() as u64, expected["decoded_length"].as_u64().unwrap(), "{what}");
    match (expected.get("decoded_hex"), expected.get("decoded_sha256")) {
        (Some(digits), _) => assert_eq!(hex(&decoded), digits.as_str().unwrap(), "{what}"),
        (_, Some(digest)) => assert_eq!(sha256(&decoded), digest.as_str().unwrap(), "{what}"),
        _ => panic!("{what}: nothing to compare"),
    }
    let unknown = component.digest.as_deref().is_some_and(|digest| digest.starts_with("blake3"));
    let verified = match (&component.digest, unknown) {
        (None, _) => Verified::NoDigest,
        (Some(_), true) => Verified::UnknownAlgorithm,
        (Some(_), false) => Verified::Digest,
    };
    assert_eq!(blob.verify().unwrap(), verified, "{what}");
}

fn check_dtype(what: &str, component: &Component, expected: &Json, object: &Json) {
    let short = |long: &str| match long {
        "bfloat16" => "bf16".to_owned(),
        "bool" => "bool".to_owned(),
        long => long.replacen("float", "f", 1).replacen("uint", "u", 1).replacen("int", "i", 1),
    };
    let own = expected.get("dtype").and_then(Json::as_str);
    let (is_legacy, dtype) = match (own, object.get("dtype").and_then(Json::as_str)) {
        (_, Some(dtype)) => (true, short(dtype)),
        (Some(dtype), None) => (false, dtype.to_owned()),
        (None, None) => panic!("{what}: no dtype"),
    };
    // In generation 1.0 what indexes is u64, whatever the type of the values.
    let found = component.dtype.name();
    assert!(found == dtype || is_legacy && found == "u64", "{what}: {found}, not {dtype}");
}

fn sha256(bytes: &[u8]) -> String {
    Algorithm::Sha256.digest(bytes).to_string().replacen("sha256:", "", 1)
}

/// Writes attributes with the stand-ins of `expected.json`.
fn json_attributes(attributes: Option<Attributes>) -> Json {
    let Some(attributes) = attributes else { return Json::Null };
    Json::Object(attributes.iter().map(|(key, value)| (key.to_owned(), json(value))).collect())
}

fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => match u64::try_from(*value) {
            Ok(value) => value.into(),
            Err(_) => i64::try_from(*value).unwrap().into(),
        },
        Value::Float(value) => serde_json::json!({ "$float": value.to_string() }),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => serde_json::json!({ "$bytes": hex(bytes) }),
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| match key {
                Value::Text(key) => (key.clone(), json(value)),
                Value::Integer(key) => (format!("$key:{key}"), json(value)),
                other => panic!("key {other}"),
            };
            Json::Object(pairs.iter().map(pair).collect())
        }
        other => panic!("value {other}"),
    }
}

fn open(file: &str) -> Reader {
    Reader::open(testdata("ztensor/valid").join(file)).unwrap()
}

#[test]
fn big_endian_data_of_0_1_is_swapped() {
    let reader = open("legacy/v0_1_file.zt");
    let tensor = reader.tensor("be").unwrap().read().unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
}

#[test]
fn sparse_data_of_0_1_is_taken_apart() {
    // Facts, section 10: nnz × (coordinate u64, value); 32 bytes of zero are two entries at 0.
    let reader = open("legacy/v0_1_file.zt");
    let sparse = reader.tensor("sp").unwrap().coo().unwrap();
    assert_eq!(sparse.values().to_vec::<u64>().unwrap(), [0, 0]);
    assert_eq!(sparse.coords().to_vec::<u64>().unwrap(), [0, 0]);
}

#[test]
fn sparse_matrices_become_dense() {
    let reader = open("legacy/v1_0_file.zt");
    let dense = reader.tensor("csr").unwrap().read().unwrap();
    assert_eq!(dense.to_vec::<f32>().unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
    let dense = reader.tensor("coo").unwrap().read().unwrap();
    assert_eq!(dense.to_vec::<i32>().unwrap(), [10, 0, 0, 0, 0, 20]);
}

#[test]
fn every_index_type_is_read() {
    let reader = open("v1.1-hand/sparse_mixed_index_types.zt");
    let mut types = Vec::new();
    for tensor in reader.tensors() {
        let object = tensor.object().unwrap();
        let role = if object.format.as_str() == "sparse_csr" { "indices" } else { "coords" };
        types.push(blob(tensor, role).element_type().unwrap());
        tensor.read().unwrap();
    }
    for dtype in [DType::U8, DType::U16, DType::U32, DType::I32, DType::I64] {
        assert!(types.contains(&dtype), "{dtype} in {types:?}");
    }
}

#[test]
fn float8_and_complex_of_1_2_get_their_meaning() {
    let reader = open("legacy/v12_types.zt");
    let info = |name: &str| reader.tensor(name).unwrap().info().unwrap().to_string();
    assert_eq!(info("f8"), "f8_e4m3 [6]");
    assert_eq!(info("cplx"), "c64 [2]");
    assert_eq!(info("plain"), "f32 [2, 2]");
}

#[test]
fn opening_reads_both_ends_only() {
    let bytes = std::fs::read(testdata("ztensor/valid/v1.1-ref/many_300.zt")).unwrap();
    let store = CountingSource::new(&bytes);
    let reader = Reader::from_source(store.source()).unwrap();
    let manifest = reader.manifest();
    let (start, len) = (manifest.offset(), bytes.len() as u64);
    let both_ends = [
        Extent::first(8),
        Extent::between(len - 16, len),
        Extent::between(start, start + manifest.byte_len()),
    ];
    assert_eq!(store.take_reads(), both_ends);
    let tensor = reader.tensors().next().unwrap();
    tensor.info().unwrap();
    assert_eq!(store.take_reads(), []);
    let component = blob(tensor, "data").component().clone();
    tensor.bytes().unwrap();
    assert_eq!(store.take_reads(), [Extent::new(component.offset, component.length).unwrap()]);
}

#[test]
fn raw_bytes_in_memory_are_not_copied() {
    let bytes =
        bytes::Bytes::from(std::fs::read(testdata("ztensor/valid/v1.1-ref/scalars.zt")).unwrap());
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    for tensor in reader.tensors() {
        let data = blob(tensor, "data");
        if data.component().encoding.as_str() == "raw" {
            let offset = usize::try_from(data.component().offset).unwrap();
            assert_eq!(tensor.bytes().unwrap().as_ptr(), bytes[offset..].as_ptr());
        }
    }
}

#[test]
fn formats_are_told_by_the_first_bytes() {
    let sniffed = |bytes: &[u8]| {
        let store = CountingSource::new(bytes);
        let found = ztensor::sniff(&store.source()).unwrap();
        assert!(store.total() <= 8);
        found
    };
    for magic in [b"ZTEN1000", b"ZTEN0001", b"\x89ZT2\r\n\x1a\n"] {
        assert!(sniffed(magic) && sniffed(&[&magic[..], &[0; 100]].concat()));
        assert!(!sniffed(&magic[..7]));
    }
    assert!(!sniffed(b"") && !sniffed(b"PK\x03\x04 and so on"));
}

#[test]
fn every_way_of_reading_gives_the_same() {
    for (file, _) in expected() {
        let reader = Reader::open(testdata("ztensor/valid").join(&file)).unwrap();
        let in_file = Source::open(testdata("ztensor/valid").join(&file)).unwrap();
        for tensor in reader.tensors() {
            let Ok(read) = tensor.read() else {
                tensor.bytes().unwrap_err();
                tensor.read_into(&mut []).unwrap_err();
                continue;
            };
            let what = format!("{file}: {}", tensor.name());
            assert_eq!(*read.info(), tensor.info().unwrap(), "{what}");
            assert_eq!(tensor.bytes().unwrap(), read.bytes(), "{what}");
            let mut buffer = vec![0xff; read.bytes().len()];
            tensor.read_into(&mut buffer).unwrap();
            assert_eq!(buffer, read.bytes()[..], "{what}");
            buffer.push(0);
            tensor.read_into(&mut buffer).unwrap_err();
            if let Some(extent) = tensor.extent().unwrap() {
                assert_eq!(in_file.read(extent, "tensor").unwrap(), read.bytes(), "{what}");
            }
        }
    }
}

#[test]
fn digests_are_compared_when_asked() {
    let path = testdata("ztensor/invalid/digest_sha_wrong.zt");
    let read = |verify| {
        let reader = Reader::options().verify(verify).open(&path).unwrap();
        reader.tensor("t").unwrap().bytes()
    };
    read(Verify::Never).unwrap();
    for verify in [Verify::Once, Verify::Always] {
        assert_eq!(read(verify).unwrap_err().rule(), "zt/digest-mismatch");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.zt");
    let (once, always) = (Verify::Once, Verify::Always);
    for (verify, second) in [(once, None), (always, Some("zt/digest-mismatch"))] {
        let mut bytes = std::fs::read(testdata("ztensor/valid/v1.1-ref/digests.zt")).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let reader = Reader::options().verify(verify).open(&path).unwrap();
        let tensor = reader.tensors().find(|t| t.verify().unwrap() == Verified::Digest).unwrap();
        tensor.bytes().unwrap();
        // The file changes while it is open.
        bytes[usize::try_from(tensor.extent().unwrap().unwrap().offset()).unwrap()] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = tensor.bytes().err();
        assert_eq!(error.as_ref().map(ztensor::Error::rule), second, "{verify:?}");
    }
}

#[cfg(feature = "zstd")]
#[test]
fn digests_of_compressed_tensors_are_compared_in_every_way_of_reading() {
    use ztensor::{Compression, Storage, Writer, tensor_core::TensorBuf};

    let storage = Storage::default().compression(Compression::Zstd { level: 3, frame: None });
    let storage = storage.digest(Algorithm::Crc32c);
    let mut writer = Writer::options().storage(storage).write_to(Vec::new()).unwrap();
    writer.add("t", &TensorBuf::from_slice([1000], &[7_u32; 1000]).unwrap()).unwrap();
    let mut bytes = writer.finish().unwrap();
    let digits = bytes.windows(9).position(|word| word == b"crc32c:0x").unwrap() + 9;
    for is_right in [true, false] {
        for verify in [Verify::Never, Verify::Once, Verify::Always] {
            let open = || Reader::options().verify(verify).from_bytes(bytes.clone()).unwrap();
            let read = open().tensor("t").unwrap().read().map(drop);
            let into = open().tensor("t").unwrap().read_into(&mut [0; 4000]);
            for result in [read, into] {
                let expected =
                    (!is_right && verify != Verify::Never).then_some("zt/digest-mismatch");
                assert_eq!(result.err().map(|error| error.rule()), expected, "{verify:?}");
            }
        }
        bytes[digits] = if bytes[digits] == b'0' { b'1' } else { b'0' };
    }
}

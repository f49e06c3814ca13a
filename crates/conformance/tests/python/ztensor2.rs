//! Python's `ztensor` 2.1.2 on our files of zTensor 2, and us on its files.

use std::path::Path;

use conformance::python::Client;
use serde_json::{Value as Json, json};
use test_support::testdata;
use ztensor::{
    Attributes, Compression, Coo, Csr, Form, Format, Reader, Storage, Value, Version, WriteOptions,
    tensor_core::{DType, TensorBuf, digest::Algorithm},
};

fn canonical() -> WriteOptions {
    WriteOptions::default().version(Version::V2)
}

/// Returns what we read from a file, in the form in which the client prints it.
fn read(path: &Path) -> Json {
    let reader = Reader::open(path).unwrap();
    assert!(reader.validate().is_valid(), "{:?}", reader.validate());
    let tensor = |tensor: ztensor::Tensor<'_>| {
        let object = tensor.object().unwrap();
        let layout = match &object.format {
            Format::SparseCsr => "zt.sparse_csr/1",
            Format::SparseCoo => "zt.sparse_coo/1",
            other => other.as_str(),
        };
        let parts = tensor.blobs().unwrap().into_iter().map(|blob| {
            let digest = Algorithm::Sha256.digest(&blob.bytes().unwrap()).to_string();
            let mut part = json!({"dtype": blob.component().dtype.name(), "sha256": digest});
            if let Some(logical) = &blob.component().logical_type {
                part["type"] = logical.as_str().into();
            }
            (blob.role().to_string(), part)
        });
        let parts: serde_json::Map<String, Json> = parts.collect();
        (
            tensor.name().to_owned(),
            json!({"shape": object.shape.dims(), "layout": layout, "parts": parts}),
        )
    };
    let attributes = reader.manifest().attributes().unwrap().map(|attributes| {
        let value = |value: &Value| match value {
            Value::Integer(number) => json!(u64::try_from(*number).unwrap()),
            Value::Text(text) => json!(text),
            other => panic!("{other}"),
        };
        attributes.iter().map(|(key, one)| (key.to_owned(), value(one))).collect::<Json>()
    });
    let tensors: serde_json::Map<String, Json> = reader.tensors().map(tensor).collect();
    json!({"attributes": attributes, "tensors": tensors})
}

#[test]
fn python_2_reads_ours() {
    let folder = tempfile::tempdir().unwrap();
    let zstd = Storage::default().compression(Compression::Zstd { level: 3, frame: None });
    let free = canonical().form(Form::Free).alignment(4096);
    let u32s = |numbers: &[u32]| TensorBuf::from_slice([numbers.len() as u64], numbers).unwrap();
    let values = TensorBuf::from_slice([3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let csr = Csr::from_parts([2, 3], values.clone(), u32s(&[0, 2, 1]), u32s(&[0, 2, 3])).unwrap();
    let coo = Coo::from_parts([2, 3], values, u32s(&[0, 0, 1, 0, 2, 1])).unwrap();
    for (name, options) in
        [("canonical", canonical()), ("free", free), ("zstd", free.storage(zstd))]
    {
        let path = folder.path().join(format!("{name}.zt"));
        let mut writer = options.create(&path).unwrap();
        let attributes: Attributes =
            [("license", Value::from("MIT")), ("n", Value::Integer(7))].into_iter().collect();
        writer.set_attributes(&attributes);
        writer.add_coo("a.coo", &coo).unwrap();
        writer.add_csr("a.csr", &csr).unwrap();
        let mut types: Vec<DType> =
            DType::ALL.into_iter().filter(|dtype| dtype.width().is_some()).collect();
        types.sort_by_key(|dtype| dtype.name());
        for dtype in types {
            let bytes = vec![1; usize::try_from(dtype.byte_len(6).unwrap()).unwrap()];
            let name = format!("b.{dtype} é");
            writer.add(&name, &TensorBuf::new(dtype, [2, 3], bytes).unwrap()).unwrap();
        }
        writer.finish().unwrap();
        let Some(found) = Client::ZTENSOR_2.run("read_2.py", &[&path]) else { return };
        assert_eq!(found, read(&path), "{name}");
    }
    // A shard is found beside its file.
    let path = testdata("ztensor/v2/valid/shards.zt");
    let found = Client::ZTENSOR_2.run("read_2.py", &[&path]).unwrap();
    assert_eq!(found, read(&path));
}

#[test]
fn python_2_is_read_by_us() {
    let folder = tempfile::tempdir().unwrap();
    let [canonical, free] =
        ["canonical", "free"].map(|name| folder.path().join(format!("{name}.zt")));
    let Some(expected) = Client::ZTENSOR_2.run("write_2.py", &[&canonical, &free]) else { return };
    assert_eq!(read(&canonical), expected);
    assert_eq!(read(&free), expected);
    assert!(Reader::open(&canonical).unwrap().canonical().is_empty());
}
